"""Averaging over all sets of tokens: the sum over all of them, with every law of a bag of words."""

import copy
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax
from scipy.stats import betabinom, binom, hypergeom, multinomial, nbinom, poisson
from sklearn.base import clone

import datasets
import priory as pr
from priory import inbox
from priory.calibration.calibrator import SMOOTHING_STRENGTHS
from priory.errors import DataError
from priory.families import Text
from priory.text.averaged_models import AVERAGED_BAG_MODELS

NaiveBayes = partial(pr.NaiveBayes, calibrate=False)  # the statistics alone
TextClassifier = partial(pr.TextClassifier, calibrate=False)  # the statistics alone

ROWS, LABELS = inbox()
TEXTS = [row["text"] for row in ROWS]
LETTERS = [letter * 2 for letter in "abcdefghij"]
SETS = np.array(list(product([False, True], repeat=10)))  # all 2^10


def letters(seed, rows=40):
    """Texts of ten tokens, of which some depend on the class, some faintly, some not at all."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 3
    x = rng.poisson(0.2 + 0.5 * y[:, None] * np.linspace(0, 1, 10))
    x[:3, :] = np.eye(3, 10, dtype=int) + 1
    return x, y, [" ".join(np.repeat(LETTERS, row)) for row in x]


def evidence(model, counts, n, alpha):
    """log p(counts of one token) with the classes apart and together, from SciPy's distributions."""
    total, chances = counts.sum(), n.sum()
    if model == "bernoulli":  # draws of a Beta; those together are then dealt to the classes
        apart = betabinom.logpmf(counts, n, alpha, alpha).sum()
        first = hypergeom.logpmf(counts[0], chances, n[0], total)
        dealt = first + hypergeom.logpmf(counts[1], n[1] + n[2], n[1], total - counts[0])
        return apart, betabinom.logpmf(total, chances, alpha, alpha) + dealt
    b = 1.0 if model == "poisson" else alpha * 10
    dealt = multinomial.logpmf(counts, total, n / chances)
    return nbinom.logpmf(counts, alpha, b / (b + n)).sum(), nbinom.logpmf(total, alpha, b / (b + chances)) + dealt


@pytest.mark.parametrize("alpha", [1.0, 0.1])
@pytest.mark.parametrize("model", sorted(AVERAGED_BAG_MODELS))
def test_it_equals_brute_force_over_all_sets_of_tokens(model, alpha):
    x, y, texts = letters(seed=len(model))
    ours = TextClassifier(model, average=True, alpha=alpha).fit(texts, y)
    assert ours.vocabulary_ == LETTERS
    x = np.minimum(x, 1) if model in ("bernoulli", "binary") else x
    counts = np.array([x[y == c].sum(axis=0) for c in range(3)]).T
    n = np.bincount(y) if model in ("bernoulli", "poisson") else counts.sum(axis=0)
    both = np.array([evidence(model, token, n, alpha) for token in counts])
    weight = softmax(np.where(SETS, both[:, 0], both[:, 1]).sum(axis=1))
    assert np.allclose(list(ours.inclusion_probability_.values()), weight @ SETS, rtol=0, atol=1e-10)

    room = {"bernoulli": 2 * alpha, "poisson": 1.0}.get(model, alpha * 10)
    apart = (counts + alpha) / (n + room)
    together = ((counts.sum(axis=1) + alpha) / (n.sum() + room))[:, None]
    rates = np.where(SETS[:, :, None], apart, together)  # (sets, tokens, classes)
    prior = np.log(np.bincount(y) / len(y))
    if model == "bernoulli":  # every set answers, and all of them vote
        votes = binom.logpmf(x[:8, None, :, None], 1, rates).sum(axis=2)
        joint = logsumexp(votes, axis=1, b=weight[:, None]) + prior
    else:
        rate = np.tensordot(weight, rates, axes=1)
        if model == "poisson":
            joint = poisson.logpmf(x[:8, :, None], rate).sum(axis=1) + prior
        else:
            shares = rate / rate.sum(axis=0)
            joint = multinomial.logpmf(x[:8, None], x[:8].sum(axis=1)[:, None], shares.T) + prior
    expected = joint - logsumexp(joint, axis=1, keepdims=True)
    assert np.allclose(ours.predict_log_proba(texts[:8]), expected, rtol=0, atol=1e-10)


def test_where_every_token_matters_it_is_the_plain_model():
    texts, labels = ["aa bb bb", "cc dd"] * 200, [0, 1] * 200
    for model in AVERAGED_BAG_MODELS:
        plain, averaged = (TextClassifier(model, average=a).fit(texts, labels) for a in (False, True))
        assert min(averaged.inclusion_probability_.values()) > 1 - 1e-15
        new = ["aa cc cc", "bb", "aa dd ee"]
        assert np.allclose(averaged.predict_log_proba(new), plain.predict_log_proba(new), atol=1e-9)


def test_where_none_does_the_prior_answers():
    model = TextClassifier(average=True).fit(["aa bb", "aa bb", "aa bb"] * 200, [0, 0, 1] * 200)
    assert max(model.inclusion_probability_.values()) < 0.1
    assert model.predict_proba(["aa bb"])[0, 1] == pytest.approx(1 / 3, abs=0.01)


# -- the laws ----------------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(cut=st.integers(1, 307), seed=st.integers(0, 99), model=st.sampled_from(sorted(AVERAGED_BAG_MODELS)))
def test_any_split_and_any_order_give_the_same_model(cut, seed, model):
    order = np.random.default_rng(seed).permutation(len(TEXTS))
    parts = TextClassifier(model, average=True)
    for part in (order[:cut], order[cut:]):
        parts.partial_fit([TEXTS[i] for i in part], [LABELS[i] for i in part])
    whole = TextClassifier(model, average=True).fit(TEXTS, LABELS)
    assert parts.inclusion_probability_ == whole.inclusion_probability_
    assert np.allclose(parts.predict_log_proba(TEXTS), whole.predict_log_proba(TEXTS), atol=1e-9)


@pytest.mark.parametrize("model", sorted(AVERAGED_BAG_MODELS))
def test_forgetting_is_exact_to_the_bit(model):
    left = TextClassifier(model, average=True).fit(TEXTS, LABELS).forget(TEXTS[100:], LABELS[100:])
    never = TextClassifier(model, average=True).fit(TEXTS[:100], LABELS[:100])
    assert left.inclusion_probability_ == never.inclusion_probability_
    assert np.array_equal(left.predict_proba(TEXTS), never.predict_proba(TEXTS))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"alpha": 0.05}, {"alpha": "evidence"}, {"min_df": 2}])
@pytest.mark.parametrize("model", sorted(AVERAGED_BAG_MODELS))
def test_leave_one_out_is_refitting(model, options):
    texts, labels = [*TEXTS[:80], "unheard of", "again again"], [*LABELS[:80], LABELS[0], LABELS[1]]
    fitted = TextClassifier(model, average=True, **options).fit(texts, labels)
    honest = fitted.leave_one_out(texts, labels)
    for i in [*range(0, 80, 13), 80, 81]:
        others = [j for j in range(82) if j != i]
        refitted = clone(fitted).fit([texts[j] for j in others], [labels[j] for j in others])
        assert np.allclose(honest[i], refitted.predict_log_proba([texts[i]])[0], atol=1e-9)


def test_a_token_in_every_document_can_be_left_out():
    texts, labels = ["aa bb", "aa cc", "dd aa", "dd"], [0, 0, 1, 1]
    honest = TextClassifier("bernoulli", average=True, alpha=0.1).fit(texts, labels).leave_one_out(texts, labels)
    refitted = TextClassifier("bernoulli", average=True, alpha=0.1).fit(texts[1:], labels[1:])
    assert np.allclose(honest[0], refitted.predict_log_proba(texts[:1])[0], atol=1e-12)


def test_hashed_and_declared_vocabularies_are_averaged_too():
    spelt = TextClassifier(average=True, vocabulary=["cash", "lunch", "prize"])
    hashed = TextClassifier("bernoulli", average=True, buckets=1 << 16, salt=7)
    texts, labels = ["cash prize", "cash now", "lunch at noon", "lunch"], [1, 1, 0, 0]
    for model in (spelt, hashed):
        assert model.fit(texts, labels).predict(["cash", "lunch"]).tolist() == [1, 0]
    assert list(spelt.inclusion_probability_) == ["cash", "lunch", "prize"]


def test_the_ledger_of_an_average_sums_to_its_log_odds():
    for name in AVERAGED_BAG_MODELS:
        model = TextClassifier(name, average=True).fit(TEXTS, LABELS)
        for ledger, row in zip(model.explain(TEXTS[:5]), model.predict_log_proba(TEXTS[:5]), strict=True):
            assert ledger.log_odds("spam", "normal") == pytest.approx(
                row[list(model.classes_).index("spam")] - row[list(model.classes_).index("normal")], abs=1e-9
            )


# -- texts among other columns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["binary", "bernoulli"])
def test_every_token_of_a_column_of_texts_is_a_feature(model):
    texts = [{"text": text} for text in TEXTS]
    table = NaiveBayes({"text": Text(model)}, average=True).fit(texts, LABELS)
    alone = TextClassifier(model, average=True).fit(TEXTS, LABELS)
    assert np.allclose(table.predict_log_proba(texts), alone.predict_log_proba(TEXTS), atol=1e-9)
    assert np.allclose(table.leave_one_out(texts, LABELS), alone.leave_one_out(TEXTS, LABELS), atol=1e-9)
    assert table.token_inclusion_ == {"text": alone.inclusion_probability_}
    none = np.prod([1 - r for r in alone.inclusion_probability_.values()])
    assert table.inclusion_probability_ == pytest.approx([1 - none])


def test_a_table_with_texts_forgets_and_leaves_out():
    rows = [{**row, "text": None if i % 20 == 0 else row["text"]} for i, row in enumerate(ROWS[:80])]
    families = {"text": Text("bernoulli")}
    model = NaiveBayes(families, average=True).fit(rows, LABELS[:80])
    honest = model.leave_one_out(rows, LABELS[:80])
    for i in (0, 7, 40, 79):
        others = [j for j in range(80) if j != i]
        refitted = NaiveBayes(families, average=True).fit([rows[j] for j in others], [LABELS[j] for j in others])
        assert np.allclose(honest[i], refitted.predict_log_proba([rows[i]])[0], atol=1e-8)
    never = NaiveBayes(families, average=True).fit(rows[:60], LABELS[:60])
    model.forget(rows[60:], LABELS[60:80])
    assert np.allclose(model.predict_log_proba(rows), never.predict_log_proba(rows), atol=1e-8)


# -- the strength of the prior -----------------------------------------------------------------------------------


def log_loss(model, texts, labels):
    honest = model.leave_one_out(texts, labels)
    return -honest[np.arange(len(texts)), np.searchsorted(model.classes_, labels)].mean()


@pytest.mark.parametrize("average", [False, True])
def test_fit_takes_the_strength_with_the_smallest_honest_loss(average):
    chosen = TextClassifier("bernoulli", average=average, alpha="loo").fit(TEXTS, LABELS)
    losses = {
        a: log_loss(TextClassifier("bernoulli", average=average, alpha=a).fit(TEXTS, LABELS), TEXTS, LABELS)
        for a in SMOOTHING_STRENGTHS
    }
    assert chosen.alpha_ == min(losses, key=losses.get)
    declared = TextClassifier("bernoulli", average=average, alpha=chosen.alpha_).fit(TEXTS, LABELS)
    assert np.array_equal(chosen.predict_proba(TEXTS), declared.predict_proba(TEXTS))
    assert np.allclose(chosen.leave_one_out(TEXTS, LABELS), declared.leave_one_out(TEXTS, LABELS), atol=1e-12)


def test_the_chosen_strength_stays_until_the_next_fit():
    model = TextClassifier("bernoulli", average=True, alpha="loo").fit(TEXTS, LABELS)
    other = TextClassifier("bernoulli", average=True, alpha="loo").fit(TEXTS[:30], LABELS[:30])
    chosen = model.alpha_
    assert other.alpha_ != chosen
    assert (model + other).alpha_ == chosen
    assert copy.deepcopy(model).forget(TEXTS[30:], LABELS[30:]).alpha_ == chosen
    assert model.fit(TEXTS[:30], LABELS[:30]).alpha_ == other.alpha_


@pytest.mark.parametrize("model", sorted(AVERAGED_BAG_MODELS))
def test_the_evidence_of_the_average_may_choose(model):
    _, y, texts = letters(seed=1)
    ours = TextClassifier(model, average=True, alpha="evidence").fit(texts, y)
    n = np.bincount(y) if model in ("bernoulli", "poisson") else ours.counts_.sum(axis=0)
    total = {
        a: sum(np.logaddexp(*evidence(model, token, n, a)) for token in ours.counts_) for a in 2.0 ** np.arange(-10, 3)
    }
    assert ours.alpha_ == max(total, key=total.get)


@pytest.mark.slow
def test_tables_may_choose_too():
    rng = np.random.default_rng(3)
    y = np.arange(100) % 2
    x = np.where(rng.random((100, 5)) < 0.9, y[:, None], rng.integers(0, 30, (100, 5))).astype(str).astype(object)
    model = NaiveBayes("categorical", average=True, alpha="loo").fit(x, y)
    losses = {}
    for a in SMOOTHING_STRENGTHS:
        honest = NaiveBayes("categorical", average=True, alpha=a).fit(x, y).leave_one_out(x, y)
        losses[a] = -honest[np.arange(100), y].mean()
    assert model.alpha_ == min(losses, key=losses.get)
    same = NaiveBayes("categorical", average=True, alpha=model.alpha_).fit(x, y)
    assert np.array_equal(model.predict_proba(x), same.predict_proba(x))
    halves = [NaiveBayes("categorical", alpha=0.5).fit(x[part], y[part]) for part in (slice(0, 45), slice(45, 100))]
    whole = NaiveBayes("categorical", alpha=0.5).fit(x, y)
    assert np.allclose(sum(halves).predict_proba(x), whole.predict_proba(x))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            lambda: TextClassifier("complement", average=True).fit(TEXTS, LABELS),
            "model 'complement' has no evidence to average by; use one of binary, multinomial, bernoulli, poisson.",
        ),
        (
            lambda: TextClassifier(average=True, alpha=0).fit(TEXTS, LABELS),
            "averaging over sets of tokens needs a prior: use alpha above 0.",
        ),
        (
            lambda: TextClassifier(alpha="loo").partial_fit(TEXTS, LABELS),
            "alpha='loo' is chosen by fit, from all rows at once; call fit first, or give a number.",
        ),
        (
            lambda: TextClassifier(alpha="loo").fit(TEXTS, LABELS, sample_weight=np.ones(len(TEXTS))),
            "alpha='loo' leaves out texts of weight one; omit sample_weight, or give alpha a number.",
        ),
        (
            lambda: NaiveBayes(average=True, estimate="ml").fit(ROWS, LABELS).predict(ROWS),
            "averaging over sets of tokens needs a prior: use another estimate than 'ml'.",
        ),
        (
            lambda: NaiveBayes(alpha="evidence").fit(ROWS, LABELS),
            "alpha is 'evidence'; use a number from 0, 'loo' or None.",
        ),
    ],
)
def test_what_cannot_be_averaged_is_refused(action, message):
    with pytest.raises(DataError) as caught:
        action()
    assert str(caught.value) == message


# -- real texts --------------------------------------------------------------------------------------------------


def part(name, rows):
    """Every so-manieth text of a set, half to learn from and half to be judged on."""
    found = datasets.text(name)
    if found is None:
        pytest.skip(f"{name} is not beside the project")
    texts, labels = found[0], np.array(found[1])
    some = np.linspace(0, len(texts) - 1, rows).astype(int)
    return [texts[i] for i in some[::2]], labels[some[::2]], [texts[i] for i in some[1::2]], labels[some[1::2]]


def test_films_are_judged_better_by_all_sets_than_by_all_words():
    train, labels, test, truth = part("imdb", 4000)
    plain, averaged = (TextClassifier("bernoulli", average=a).fit(train, labels) for a in (False, True))
    assert averaged.score(test, truth) > plain.score(test, truth) + 0.01
    top = sorted(averaged.inclusion_probability_, key=averaged.inclusion_probability_.get)[-60:]
    assert {"worst", "waste", "excellent"} <= set(top)


def test_short_reviews_need_the_strength_chosen():
    train, labels, test, truth = part("rt_polarity", 6000)
    laplace, chosen = (TextClassifier("bernoulli", average=True, alpha=a).fit(train, labels) for a in (1.0, "loo"))
    assert chosen.alpha_ < 1
    assert chosen.score(test, truth) > laplace.score(test, truth) + 0.02
