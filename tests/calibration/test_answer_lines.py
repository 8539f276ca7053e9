"""The ledger of a corrected model: its lines are what moved the answer, and add up to it."""

import numpy as np
import pytest

import priory as pr
from priory import inbox


def draw_rows(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    a, b = rng.normal(size=(2, n)) + 1.2 * (y == 1) - 0.6 * (y == 2)
    rows = [
        {
            "a": float(a[i]),
            "b": float(b[i]),
            "kind": "xyz"[int(np.clip(y[i] + rng.integers(-1, 2), 0, 2))],
            "noise": "uv"[int(rng.random() < 0.5)],
            "constant": 7.0,
        }
        for i in range(n)
    ]
    return rows, y


@pytest.fixture(scope="module")
def model():
    return pr.NaiveBayes().fit(*draw_rows(500, seed=0))


def remove_cells(rows, share, seed=0):
    rng = np.random.default_rng(seed)
    return [{name: None if rng.random() < share else cell for name, cell in row.items()} for row in rows]


@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("class_prior", ["estimated", [0.2, 0.2, 0.6]])
def test_the_entries_add_up_to_the_log_odds(memory, share, class_prior):
    rows, y = draw_rows(300, seed=1)
    model = pr.NaiveBayes(memory=memory, class_prior=class_prior).fit(rows, y)
    rows = remove_cells([*draw_rows(20, seed=2)[0], rows[0] | {"kind": "new", "a": 1e300}], share)
    for ledger, p in zip(model.explain(rows), model.predict_proba(rows), strict=True):
        assert ledger.probabilities() == pytest.approx(p, abs=1e-9)
        assert len({line.name for line in ledger.lines}) == len(ledger.lines)


def test_every_line_has_a_name_and_none_is_a_rest(model):
    for ledger in model.explain(remove_cells(draw_rows(20, seed=3)[0], 0.2)):
        assert ledger.prior.name == "average row"
        other = {line.name for line in ledger.lines if not line.columns}
        assert other <= {"missing cells", "limit of 500 rows"}


def test_a_column_that_says_nothing_moves_nothing(model):
    ledgers = model.explain(draw_rows(50, seed=4)[0])
    sizes = {
        name: np.mean([np.ptp(line.log_likelihood) for ledger in ledgers for line in ledger.lines if line.name == name])
        for name in ("a", "b", "kind", "noise", "constant")
    }
    assert sizes["constant"] < 1e-6
    assert sizes["noise"] < 0.2 * min(sizes["a"], sizes["b"], sizes["kind"])


def test_lines_are_what_moves_the_answer(model):
    """Replacing one cell by those of learned rows changes the answer as its line says."""
    rows, learned = draw_rows(12, seed=5)[0], draw_rows(500, seed=0)[0][:60]
    moved, lines = [], []
    for row, ledger in zip(rows, model.explain(rows), strict=True):
        best = int(np.argmax(ledger.total))
        for name in ("a", "b", "kind"):
            changed = model.predict_log_proba([row, *(row | {name: other[name]} for other in learned)])
            centred = changed[:, best] - changed.mean(axis=1)
            moved.append(centred[0] - centred[1:].mean())
            own = np.zeros(3)
            for line in ledger.lines:
                if name in line.columns:
                    own += np.array(line.log_likelihood) / len(line.columns)
            lines.append(own[best] - own.mean())
    assert np.corrcoef(moved, lines)[0, 1] > 0.9


def test_a_row_without_any_cell_has_no_evidence(model):
    ledger = model.explain([dict.fromkeys(draw_rows(1, seed=0)[0][0])])[0]
    assert ledger.no_evidence
    assert ledger.probabilities() == pytest.approx(np.bincount(draw_rows(500, seed=0)[1]) / 500)


def test_texts_in_a_table_have_lines_of_their_own():
    emails, labels = inbox()
    model = pr.NaiveBayes().fit(emails, labels)
    ledgers = model.explain(emails[:30])
    assert np.mean([abs(line.log_likelihood[0]) for ledger in ledgers for line in ledger.lines if line.name == "text"])
    for ledger, p in zip(ledgers, model.predict_proba(emails[:30]), strict=True):
        assert ledger.probabilities() == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"pairs": True}, {"model": "bernoulli"}, {"refine": False}])
def test_words_and_pairs_of_words_add_up_to_the_log_odds(options):
    emails, labels = inbox()
    texts = [email["text"] for email in emails]
    model = pr.TextClassifier(**options).fit(texts, labels)
    texts = [*texts[:15], "", "unheardof"]
    for text, ledger, p in zip(texts, model.explain(texts), model.predict_proba(texts), strict=True):
        assert ledger.probabilities() == pytest.approx(p, abs=1e-9)
        for line in ledger.lines:
            assert not line.spans or all(word in text[a:b].lower() for a, b in line.spans for word in line.name.split())


def test_words_of_a_pair_are_one_line():
    texts = ["not good at all", "good not bad", "not bad at all", "bad not good"] * 30
    labels = ["bad", "good", "good", "bad"] * 30
    model = pr.TextClassifier(pairs=True).fit(texts, labels)
    names = {line.name for line in model.explain(["not good at all"])[0].lines}
    assert {"not", "good", "not good", "at all"} <= names
