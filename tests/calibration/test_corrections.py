"""Honest probabilities: tempering, refinement, one-dependence, the vote, and what becomes of them."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import priory as pr
from priory import inbox
from priory.calibration.corrections import Tempering
from priory.calibration.members import MemberPool
from priory.calibration.tempering import (
    PRECISION_ABOUT_MEAN,
    PRECISION_OF_EXPONENT,
    PRECISION_OF_SHIFT,
    USUAL_EXPONENT,
    WEIGHT_COST,
    fit_pool,
    fit_tempering,
    pool_answers,
)
from priory.errors import DataError
from priory.model.model_statistics import EvidenceTerms

RNG = np.random.default_rng(0)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers():
    RNG.bit_generator.state = START


def repeated(n=400, copies=6, seed=0):
    """A table whose columns all say the same: naive Bayes counts one thing ``copies`` times."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    told = y ^ (rng.random(n) < 0.3)
    return np.repeat(told[:, None], copies, axis=1).astype(str), y


def parity(n=600, seed=0):
    """Labels that no column tells and two columns tell together."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 4))
    return np.where(x == 1, "yes", "no").astype(object), (x[:, 0] ^ x[:, 1]) ^ (rng.random(n) < 0.1)


# -- tempering -------------------------------------------------------------------------------------------------------


def test_evidence_that_repeats_itself_is_counted_once():
    x, y = repeated()
    model = pr.NaiveBayes().fit(x, y)
    plain = pr.NaiveBayes(calibrate=False).fit(x, y)
    assert plain.predict_proba(x).max() > 0.97
    assert model.predict_proba(x).max() == pytest.approx(0.7, abs=0.06)


def test_the_joint_stays_plain():
    x, y = repeated()
    assert np.array_equal(
        pr.NaiveBayes().fit(x, y).predict_joint_log_proba(x),
        pr.NaiveBayes(calibrate=False).fit(x, y).predict_joint_log_proba(x),
    )


@pytest.mark.parametrize("options", [{}, {"refine": False}, {"refine": False, "class_prior": "uniform"}])
def test_a_batch_of_one_text_tempers_as_the_text_alone_does(options):
    messages, labels = inbox()
    texts = [message["text"] for message in messages]
    batch, alone = (pr.TextClassifier(**options).fit(texts[:200], labels[:200]) for _ in range(2))
    before = batch.corrections_.tempering
    for text, label in zip(texts[200:210], labels[200:210], strict=True):
        batch.partial_fit([text], [label])
        alone.learn_one(text, label)
    for name in ("weights", "exponents", "precision"):
        found = getattr(batch.corrections_.tempering, name)
        assert np.allclose(found, getattr(alone.corrections_.tempering, name), rtol=1e-9)
        assert not np.array_equal(found, getattr(before, name))


def test_the_tempering_is_where_the_slope_vanishes():
    y = RNG.integers(0, 2, 200)
    values = RNG.normal(0, 1, (200, 2, 3)) + (np.arange(2) == y[:, None])[:, :, None]
    terms = EvidenceTerms(values, np.column_stack([np.ones((200, 2)), RNG.uniform(0.1, 3, 200)]))
    found = fit_tempering(terms, y, np.ones(200))

    def cost(theta):
        at = Tempering(theta[:3], theta[3:], found.precision)
        away = theta - np.array([1, 0, 0, 0, 0, USUAL_EXPONENT])
        log_prior = terms.values[0, :, 0] - terms.values[0, :, 0].mean()
        of_prior = PRECISION_OF_SHIFT * (1 + log_prior @ log_prior)
        precision = np.array([of_prior, 0, 0, 1, 1, PRECISION_OF_EXPONENT])
        about_mean = theta[1:3] - theta[1:3].mean()
        logs = at.logits(terms)
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        prior = precision @ away**2 + PRECISION_ABOUT_MEAN * about_mean @ about_mean
        return 0.5 * prior + WEIGHT_COST * theta[1:3].sum() - logs[np.arange(200), y].sum()

    best = np.concatenate([found.weights, found.exponents])
    for direction in np.eye(6):
        assert cost(best) <= min(cost(best + 1e-2 * direction), cost(best - 1e-2 * direction)) + 1e-6


def test_a_part_that_says_nothing_or_the_contrary_is_worth_nothing():
    y = RNG.integers(0, 2, 300)
    own = (np.arange(2) == y[:, None])[:, :, None]
    values = RNG.normal(0, 1, (300, 2, 4)) + np.where(own, [0, 1.5, 0, -1.5], 0)
    found = fit_tempering(EvidenceTerms(values, np.ones((300, 4))), y, np.ones(300))
    assert found.weights[1] > 0.5
    assert found.weights[2] < 0.3
    assert found.weights[3] == 0


def test_long_texts_are_tempered_more():
    messages, labels = inbox()
    found = pr.TextClassifier().fit([message["text"] for message in messages], labels).corrections_.tempering
    assert 0 < found.weights[1] < 1


def test_a_declared_class_prior_takes_the_place_of_the_one_seen():
    x, y = repeated()
    seen = pr.NaiveBayes().fit(x, y)
    shifted = pr.NaiveBayes(class_prior=[0.9, 0.1]).fit(x, y)
    odds = np.diff(shifted.predict_log_proba(x)) - np.diff(seen.predict_log_proba(x))
    assert np.allclose(odds, np.log(0.1 / 0.9) - np.diff(np.log(seen.class_count_)))


def test_weights_count_as_repeated_rows():
    iris = load_iris()
    x, y = iris.data, iris.target
    times = RNG.integers(0, 3, len(y))
    often = np.repeat(np.arange(len(y)), times)
    weighed = pr.NaiveBayes().fit(x, y, sample_weight=times)
    again = pr.NaiveBayes().fit(x[often], y[often])
    assert np.allclose(weighed.predict_proba(x), again.predict_proba(x), atol=1e-6)


def test_fractional_weights_are_left_out_in_folds():
    x, y = repeated(200)
    model = pr.NaiveBayes().fit(x, y, sample_weight=RNG.uniform(0.2, 2, len(y)))
    assert model.predict_proba(x).max() == pytest.approx(0.7, abs=0.1)


# -- refinement and structure ----------------------------------------------------------------------------------------


def test_what_two_columns_tell_together_is_heard():
    x, y = parity()
    fresh, truth = parity(400, seed=1)
    assert pr.NaiveBayes(calibrate=False).fit(x, y).score(fresh, truth) < 0.65
    model = pr.NaiveBayes().fit(x, y)
    assert model.score(fresh, truth) > 0.85
    assert set(model.corrections_.names) >= {"tempering"}


def test_refinement_learns_what_naive_bayes_cannot():
    rng = np.random.default_rng(3)
    texts, labels = [], []
    for _ in range(300):
        good = rng.random() < 0.5
        said = "good" if good else "bad"
        texts.append(" ".join(["not", said][int(rng.random() < 0.5) :] + ["film", "plot"][: rng.integers(1, 3)]))
        labels.append("pos" if good != texts[-1].startswith("not") else "neg")
    plain = pr.TextClassifier(ngram_range=(1, 2), refine=False).fit(texts, labels)
    refined = pr.TextClassifier(ngram_range=(1, 2), refine=True).fit(texts, labels)
    assert refined.evaluate().log_loss.value < plain.evaluate().log_loss.value
    assert refined.corrections_.names == ("tempering", "refinement")


def mix(pool, base, *others):
    return pool.mix_base_rate(pool_answers(np.stack(others), pool.exponents), base)


def test_the_pool_listens_to_the_member_that_is_right():
    likely = RNG.integers(0, 2, 500)
    right = np.where(np.arange(2) == likely[:, None], 0.9, 0.1)
    y = np.where(RNG.random(500) < 0.9, likely, 1 - likely)
    base, noise = np.full((500, 2), 0.5), RNG.dirichlet([2, 2], 500)
    answers = [np.log(base), np.log(right), np.log(noise)]
    pool = fit_pool(answers, y, np.ones(500))
    assert pool.share > 0.9
    assert pool.exponents[0] > 0.9
    assert np.exp(mix(pool, *answers)).sum(axis=1) == pytest.approx(1)


def test_the_pool_of_members_that_know_nothing_is_the_base_rate():
    y = (RNG.random(200) < 0.3).astype(int)
    base = np.log(np.repeat([[0.7, 0.3]], 200, axis=0))
    noise = [np.log(RNG.dirichlet([2, 2], 200)) for _ in range(4)]
    found = mix(fit_pool([base, *noise], y, np.ones(200)), base, *noise)
    assert np.abs(np.exp(found) - np.exp(base)).mean() < 0.05


def test_a_pool_is_no_surer_than_its_members():
    base, one, two = np.log([[0.5, 0.5]]), np.log([[0.9, 0.1]]), np.log([[0.8, 0.2]])
    found = np.exp(mix(MemberPool(np.array([0.5, 0.5]), 1.0), base, one, two))[0]
    assert found[0] / found[1] == pytest.approx(6)  # of 9 : 1 and 4 : 1


@pytest.mark.parametrize(
    ("exponents", "share"), [([1.1, -0.1], 0.5), ([1.0, np.nan], 0.5), ([0.9, 0.1], 1.5), ([0.5], 0.5)]
)
def test_pools_that_cannot_be(exponents, share):
    pool = MemberPool(np.array(exponents), share)
    assert pool.find_fault() is not None


def test_options_that_are_not_there():
    x, y = repeated(60)
    with pytest.raises(DataError, match="calibrate is 'platt'; use 'loo' or False"):
        pr.NaiveBayes(calibrate="platt").fit(x, y)
    with pytest.raises(DataError, match="refine is 'yes'; use 'auto', True or False"):
        pr.TextClassifier(refine="yes").fit(["a b", "c d"], [0, 1])


# -- explaining ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"class_prior": [0.2, 0.8]}])
def test_the_ledger_of_a_table_adds_up_to_the_answer(options):
    x, y = parity()
    model = pr.NaiveBayes(**options).fit(x, y)
    for ledger, answer in zip(model.explain(x[:5]), model.predict_log_proba(x[:5]), strict=True):
        total = np.array(ledger.prior.log_likelihood) + np.sum([line.log_likelihood for line in ledger.lines], axis=0)
        assert np.allclose(np.diff(total), np.diff(answer))


@pytest.mark.parametrize("refine", [False, True])
def test_the_ledger_of_a_text_adds_up_to_the_answer(refine):
    messages, labels = inbox()
    texts = [message["text"] for message in messages]
    model = pr.TextClassifier(refine=refine).fit(texts, labels)
    for ledger, answer in zip(model.explain(texts[:5]), model.predict_log_proba(texts[:5]), strict=True):
        total = np.array(ledger.prior.log_likelihood) + np.sum([line.log_likelihood for line in ledger.lines], axis=0)
        assert np.allclose(np.diff(total), np.diff(answer))


def gaps(rows, seed, first):
    """Labels that hardly repeat, and are missing more often in one class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    missing = rng.random(rows) < np.where(y == 1, 0.6, 0.15)
    table = [{"id": None if gap else f"id{first + i}", "x": rng.normal()} for i, gap in enumerate(missing)]
    return table, y


def test_a_label_that_only_one_row_holds_looks_new_to_the_corrections():
    table, y = gaps(600, 0, 0)
    unseen, truth = gaps(4000, 1, 10_000)
    model = pr.NaiveBayes(families={"id": "categorical"}).fit(table, y)
    claimed = model.evaluate()
    found = pr.Scores.of(truth, model.predict_proba(unseen), model.classes_)
    assert found.accuracy.value > 0.65
    assert abs(claimed.accuracy.value - found.accuracy.value) < 0.06
