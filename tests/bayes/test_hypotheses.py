"""Hypothesis spaces: the candy bags, the vote against the best, forgetting what was ruled out, MDL = MAP."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from priory.bayes.continuum import Continuum
from priory.bayes.finite import Hypotheses
from priory.bayes.probability import bayes_rule
from priory.errors import DataError, KindError, NotLearnedError, PrioryWarning
from priory.families.bernoulli import Bernoulli
from priory.families.categorical import Categorical
from worked_examples import WORKED_EXAMPLES

SHARE = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}
PRIOR = dict(zip(SHARE, [0.1, 0.2, 0.4, 0.2, 0.1], strict=True))


def candy_bags():
    return Hypotheses(PRIOR, {h: {"lime": p, "cherry": 1 - p} for h, p in SHARE.items()})


def interval(low, high):
    """The concept "low <= x <= high", as the likelihood of a labelled point."""
    return lambda example: float((low <= example[0] <= high) == (example[1] == "+"))


# -- the book ----------------------------------------------------------------------------------------------------------


def test_candy_bags_to_the_printed_digit():
    bags = candy_bags()
    assert bags.predict_proba()["lime"] == pytest.approx(0.5)
    for printed in ([0, 0.1, 0.4, 0.3, 0.2], [0, 0.038, 0.308, 0.346, 0.308], [0, 0.013, 0.211, 0.355, 0.421]):
        assert [round(p, 3) for p in bags.update("lime").posterior.values()] == printed
    assert round(bags.predict_proba()["lime"], 1) == 0.8


def test_candy_bags_of_the_book():
    example = WORKED_EXAMPLES["candy_bags"]
    bags = candy_bags()
    for expected in example["expect"]:
        assert list(bags.posterior.values()) == pytest.approx([float(p) for p in expected["posterior"]], abs=1e-14)
        assert bags.predict_proba()["lime"] == pytest.approx(float(expected["P(next=lime)"]), abs=1e-14)
        bags.update("lime")


def test_bayes_optimal_differs_from_map():
    example = WORKED_EXAMPLES["bayes_optimal_vs_map"]
    space = Hypotheses(example["posterior"], {h: {"+": p, "-": 1 - p} for h, p in example["P(+|h)"].items()})
    assert space.map() == example["expect"]["map"]
    assert space.votes()[:, space.names.index(space.map())].tolist() == [1, 0]  # the MAP hypothesis says +
    assert space.predict_proba() == pytest.approx(example["expect"]["bayes_optimal"])
    assert space.predict() == example["expect"]["bayes_optimal_prediction"]


def test_mdl_equals_map_in_bits():
    expect = WORKED_EXAMPLES["mdl_equals_map"]
    length = {h: code.total for h, code in candy_bags().update_many(["lime"] * 3).bits.items()}
    assert length == pytest.approx(expect["expect_bits"], abs=1e-12)
    assert min(length, key=length.get) == expect["shortest"] == candy_bags().update_many(["lime"] * 3).map()


def test_seven_cherries_and_three_limes():
    example = WORKED_EXAMPLES["bernoulli_ml"]
    bag = Continuum(("cherry", "lime"))
    bag.update_many(["cherry"] * example["cherries"] + ["lime"] * example["limes"])
    assert bag.ml() == pytest.approx(example["expect"]["theta_ML"])
    assert bag.map() == pytest.approx(bag.ml())  # under a flat prior the two are one


def test_bayes_rule_of_the_library():
    example = WORKED_EXAMPLES["bayes_rule_course"]
    course = bayes_rule(example["P(library|course)"], example["P(course)"], example["P(library)"])
    assert course == pytest.approx(example["expect"]["P(course|library)"])


def test_ml_ignores_the_prior_that_map_obeys():
    bags = candy_bags().update_many(["lime", "lime", "cherry"])
    assert (bags.ml(), bags.map()) == ("h4", "h3")


# -- laws --------------------------------------------------------------------------------------------------------------

candies = st.lists(st.sampled_from(["lime", "cherry"]), max_size=12)


def possible(observations):
    return Hypotheses(
        {"few": 0.3, "half": 0.3, "most": 0.3, "all": 0.1},
        {h: {"lime": p, "cherry": 1 - p} for h, p in {"few": 0.2, "half": 0.5, "most": 0.7, "all": 1.0}.items()},
    ).update_many(observations)


@given(candies, candies)
def test_forgetting_equals_never_having_seen_it_even_what_ruled_a_hypothesis_out(kept, gone):
    space = possible(kept + gone).forget_many(gone)
    assert space.posterior == pytest.approx(possible(kept).posterior, abs=1e-12)
    assert space.possible == possible(kept).possible


@given(candies, candies)
def test_merging_two_spaces_counts_the_prior_once(a, b):
    assert (possible(a) + possible(b)).posterior == pytest.approx(possible(a + b).posterior, abs=1e-12)


@given(candies, st.floats(0.1, 1))
def test_fading_weakens_the_evidence_and_revives_nothing(observations, weight):
    space = possible(observations)
    ruled_in, odds = space.possible, space.log_joint[0] - space.log_joint[1]
    prior_odds = space.log_prior[0] - space.log_prior[1]
    space.seen = weight * space.seen
    assert space.possible == ruled_in
    assert space.log_joint[0] - space.log_joint[1] == pytest.approx(weight * (odds - prior_odds) + prior_odds, abs=1e-9)


@given(candies)
def test_evidence_is_the_product_of_the_predictions(observations):
    space, log_product = possible([]), 0.0
    for observation in observations:
        log_product += math.log(space.predict_proba()[observation])
        space.update(observation)
    assert space.log_evidence == pytest.approx(log_product, abs=1e-9)
    assert space.evidence == pytest.approx(2**-space.evidence_bits)


@given(candies)
def test_the_shortest_description_is_the_most_probable_hypothesis(observations):
    space = possible(observations)
    shortest = min(code.total for code in space.bits.values())
    assert {h for h, code in space.bits.items() if code.total <= shortest + 1e-9} >= set(space.map_set())


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=8))
def test_gibbs_errs_at_most_twice_as_often_as_the_vote_for_any_posterior(weights):
    """Certain hypotheses, target drawn from the posterior: 1 - Σ p² is at most 2 (1 - max p)."""
    p = np.array(weights) / sum(weights)
    assert 1 - (p**2).sum() <= 2 * (1 - p.max()) + 1e-12


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=2, max_size=8))
def test_with_two_outcomes_gibbs_errs_at_most_three_times_as_often_as_the_vote(hypotheses):
    weights, lime = np.array(hypotheses).T
    prior = dict(enumerate((weights / weights.sum()).tolist()))
    space = Hypotheses(prior, {h: {"lime": p, "cherry": 1 - p} for h, p in enumerate(lime.tolist())})
    *_, (*_, vote), (*_, gibbs) = space.answers().rows
    assert vote - 1e-12 <= gibbs <= 3 * vote + 1e-12


@settings(max_examples=50)
@given(st.lists(st.booleans(), max_size=20), st.floats(1, 5), st.floats(1, 5))
def test_the_continuum_agrees_with_a_fine_grid_of_hypotheses(observations, a, b):
    theta = (np.arange(2000) + 0.5) / 2000
    weight = stats.beta.pdf(theta, a, b)
    grid = Hypotheses(
        dict(enumerate((weight / weight.sum()).tolist())), {i: {True: t, False: 1 - t} for i, t in enumerate(theta)}
    ).update_many(observations)
    line = Continuum((True, False), Bernoulli(a, b)).update_many(observations)
    assert grid.log_evidence == pytest.approx(line.log_evidence, abs=1e-3)
    assert grid.predict_proba()[True] == pytest.approx(line.predict_proba()[True], abs=1e-3)


def test_the_posterior_of_the_continuum_is_scipys_beta():
    line = Continuum().update_many([1, 1, 0])
    theta = np.linspace(0.01, 0.99, 9)
    assert np.exp(line.log_density(theta)) == pytest.approx(stats.beta(3, 2).pdf(theta))
    assert line.bits.total == pytest.approx(math.log2(12))
    assert line.map() == pytest.approx(2 / 3)


@pytest.mark.parametrize(("a", "b", "best"), [(0.5, 2, 0), (1, 2, 0), (2, 1, 1), (2, 0.5, 1), (1, 0.5, 1)])
def test_the_map_of_the_continuum_may_be_at_an_end(a, b, best):
    assert Continuum(prior=Bernoulli(a, b)).map() == best


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (1, 1, "every θ is equally probable"),
        (0.5, 0.5, "the density is infinite at θ = 0 and at θ = 1"),
        (0.9, 0.3, "the density is infinite at θ = 0 and at θ = 1"),
    ],
)
def test_some_beliefs_about_the_continuum_have_no_single_map(a, b, why):
    space = Continuum(prior=Bernoulli(a, b))
    with pytest.raises(DataError) as error:
        space.map()
    assert str(error.value) == f"there is no single MAP: {why}; observe something, or use predict_proba()."
    assert space.bits == (0, 0)
    assert f"there is no single MAP: {why}" in str(space.table())
    assert space.update(1).map() == 1


def test_the_continuum_shows_its_belief():
    bag = Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3)
    low, high = bag.credible_interval(0.9)
    assert stats.beta(8, 4).cdf([low, high]) == pytest.approx([0.05, 0.95])
    shown = dict(bag.table().rows)
    assert shown["97.5 % quantile"] == pytest.approx(stats.beta(8, 4).ppf(0.975))
    assert shown["mean"] == pytest.approx(2 / 3)
    assert repr(bag).startswith("<Continuum: θ = P(cherry) ~ Beta(8, 4) after 10 observations, mean 0.6667, 95 % from")
    assert "Beta(8, 4)" in bag._repr_html_()


FLAVOURS = ("lime", "cherry", "lemon")  # not sorted
ALPHAS = st.lists(st.floats(0.1, 10), min_size=3, max_size=3)
CANDIES = st.lists(st.sampled_from(FLAVOURS), max_size=20)


@settings(max_examples=50)
@given(CANDIES, ALPHAS)
def test_several_outcomes_learned_in_a_batch_one_by_one_or_apart_give_the_same_belief(candies, alpha):
    batch, single, half = (Continuum(FLAVOURS, Categorical(alpha)) for _ in range(3))
    batch.update_many(candies)
    for candy in candies:
        single.update(candy)
    merged = half.update_many(candies[::2]) + half.clone_unfitted().update_many(candies[1::2])
    for other in (single, merged, single.clone_unfitted().update_many([*candies, "lime"]).forget("lime")):
        assert other.alpha.tolist() == batch.alpha.tolist()
        assert other.log_evidence == batch.log_evidence
        assert repr(other) == repr(batch)


@settings(max_examples=50)
@given(CANDIES, ALPHAS)
def test_several_outcomes_agree_with_scipy_and_with_the_categorical_family(candies, alpha):
    bag = Continuum(FLAVOURS, Categorical(alpha)).update_many(candies)
    counts = np.array([candies.count(flavour) for flavour in FLAVOURS])
    belief = stats.dirichlet(alpha + counts)
    assert list(bag.mean().values()) == pytest.approx(belief.mean())
    assert bag.predict_proba() == bag.mean()
    assert bag.log_density([0.2, 0.5, 0.3]) == pytest.approx(belief.logpdf([0.2, 0.5, 0.3]))
    low, high = bag.credible_interval(0.9)
    for flavour, a in zip(FLAVOURS, alpha + counts, strict=True):
        marginal = stats.beta(a, sum(alpha) + len(candies) - a)
        assert (low[flavour], high[flavour]) == pytest.approx(marginal.interval(0.9), abs=1e-12)
    family = Categorical(alpha, values=FLAVOURS)
    seen = family.observe(np.array(candies, dtype=str))
    assert bag.log_evidence == pytest.approx(float(family.log_evidence(seen)))
    assert bag.bits.total == pytest.approx(bag.evidence_bits)
    if candies:
        assert bag.ml() == pytest.approx(dict(zip(FLAVOURS, counts / len(candies), strict=True)))


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["cherry", "lime"]), min_size=1, max_size=20), st.floats(1.1, 5), st.floats(1.1, 5))
def test_a_dirichlet_prior_of_two_outcomes_is_a_beta_prior(candies, a, b):
    beta = Continuum(("cherry", "lime"), Bernoulli(a, b)).update_many(candies)
    both = Continuum(("cherry", "lime"), Categorical([a, b])).update_many(candies)
    for ask in (Continuum.ml, Continuum.map, Continuum.mean):
        assert both_shares(ask(beta)) == pytest.approx(ask(both), abs=1e-12)
    assert beta.predict_proba() == pytest.approx(both.predict_proba())
    assert beta.alpha.tolist() == both.alpha.tolist()
    assert beta.log_evidence == pytest.approx(both.log_evidence)
    assert beta.bits == pytest.approx(both.bits)
    assert beta.log_density(0.3) == pytest.approx(both.log_density([0.3, 0.7]))
    for end, ends in zip(beta.credible_interval(), both.credible_interval(), strict=True):
        assert end == pytest.approx(ends["cherry"])


def both_shares(theta):
    return {"cherry": theta, "lime": 1 - theta}


def test_several_outcomes_are_shown_and_drawn():
    die = Continuum(range(1, 7)).update_many([6] * 50 + [1])
    assert die.predict() == die.gibbs(0) == 6
    assert sum(die.draw(0).values()) == pytest.approx(1)
    rows = {row[0]: row[1:] for row in die.table().rows}
    assert list(rows) == ["1", "2", "3", "4", "5", "6"]
    assert rows["6"][:3] == pytest.approx((50 / 51, 50 / 51, 51 / 57))
    assert rows["2"][3:] == pytest.approx(stats.beta(1, 56).interval(0.95))
    assert repr(die).startswith(
        "<Continuum: θ ~ Dirichlet(2, 1, 1, 1, 1, ...) after 51 observations, mean 1 0.03509, 2 "
    )
    assert {row[1:3] for row in die.clone_unfitted().table().rows} == {(None, None)}


def test_a_thousand_limes_do_not_underflow():
    bags = candy_bags().update_many(["lime"] * 5000 + ["cherry"] * 5000)
    assert sum(bags.posterior.values()) == pytest.approx(1)
    assert bags.map() == "h3"
    assert bags.evidence == 0.0
    assert bags.evidence_bits == pytest.approx(10_000, abs=2)


# -- the other likelihoods ---------------------------------------------------------------------------------------------


def test_functions_give_densities_or_their_logarithms():
    normal = {mean: stats.norm(mean, 1) for mean in (0.0, 1.0, 100.0)}
    plain = Hypotheses(likelihood={m: d.pdf for m, d in normal.items()}).update_many([0.9, 1.2])
    logs = Hypotheses(likelihood={m: d.logpdf for m, d in normal.items()}, logs=True).update_many([0.9, 1.2])
    assert plain.map() == logs.map() == 1.0
    assert plain.posterior == pytest.approx(logs.posterior)
    assert (plain.possible, logs.possible) == ([0.0, 1.0], [0.0, 1.0, 100.0])  # a density underflows, its logarithm not


def test_version_space_the_consistent_hypotheses_share_the_posterior_equally():
    concepts = {(low, high): interval(low, high) for low in range(10) for high in range(low, 10)}
    space = Hypotheses(likelihood=concepts, outcomes=["+", "-"]).update_many([(3, "+"), (5, "+"), (8, "-")])
    assert space.possible == [(low, high) for low in range(4) for high in (5, 6, 7)]
    assert set(np.round(list(space.posterior.values()), 12)) == {0, round(1 / 12, 12)}
    assert space.map_set() == space.ml_set() == space.possible
    assert space.predict_proba(given=6)["+"] == pytest.approx(2 / 3)
    assert (space.predict(given=4), space.predict(given=0)) == ("+", "-")
    assert all(space.draw(seed) in space.possible for seed in range(20))


def test_fitted_models_vote_on_labels():
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    tree = pytest.importorskip("sklearn.tree")
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(x[:, 0] > 0, "yes", "no")
    models = {"gauss": naive_bayes.GaussianNB().fit(x, y), "stump": tree.DecisionTreeClassifier(max_depth=1).fit(x, y)}
    space = Hypotheses(likelihood=models).update_many(zip(x[:10], y[:10], strict=True))
    log_score = np.log(models["gauss"].predict_proba(x[:10]))[range(10), (y[:10] == "yes").astype(int)].sum()
    assert space.seen.log_likelihood[0] == pytest.approx(log_score)
    assert space.predict(given=np.array([2.0, 0.0])) == "yes"
    assert sum(space.predict_proba(given=x[0]).values()) == pytest.approx(1)


def test_gibbs_draws_hypotheses_as_often_as_they_are_probable():
    bags, rng = candy_bags().update_many(["lime"] * 3), np.random.default_rng(0)
    drawn = [bags.draw(rng) for _ in range(2000)]
    for h, p in bags.posterior.items():
        assert drawn.count(h) / 2000 == pytest.approx(p, abs=4 * math.sqrt(0.25 / 2000))
    assert bags.gibbs(1) == bags.gibbs(1)
    assert {bags.gibbs(rng) for _ in range(50)} == {"lime", "cherry"}  # h3 and h2 are drawn, too
    assert Continuum().update_many([1] * 50).gibbs(0) == 1


# -- in the open -------------------------------------------------------------------------------------------------------


def test_the_observation_that_rules_out_everything_is_named_and_not_learned():
    bags = Hypotheses({"h1": 0.5, "h5": 0.5}, {"h1": {"cherry": 1}, "h5": {"lime": 1}}).update("lime")
    with pytest.raises(DataError) as error:
        bags.update_many(["lime", "cherry"])
    assert str(error.value) == (
        "observation 1: 'cherry' is impossible under every hypothesis that was still possible ('h5'); "
        "nothing was learned. Give some hypothesis a probability above 0 for it."
    )
    assert bags.seen.n == 1
    assert bags.map() == "h5"


def test_ties_are_warned_of():
    with pytest.warns(PrioryWarning) as caught:
        assert Hypotheses(likelihood={"a": {"x": 1}, "b": {"x": 1}}).map() == "a"
    assert str(caught[0].message) == "2 hypotheses tie ('a', 'b'): answering the first."
    with pytest.warns(PrioryWarning, match="2 outcomes tie"):
        candy_bags().predict()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: candy_bags().update("lemon"),
            DataError,
            "observation 0: 'lemon' is not in the table of likelihoods; it has 'lime', 'cherry'.",
        ),
        (
            lambda: candy_bags().update(["lime"]),
            DataError,
            "observation 0: ['lime'] is not in the table of likelihoods; it has 'lime', 'cherry'.",
        ),
        (
            lambda: candy_bags().update("lime").forget("cherry"),
            NotLearnedError,
            "cannot forget ['cherry']: not all of it was observed.",
        ),
        (
            lambda: possible(["lime", "lime"]).forget("cherry"),
            NotLearnedError,
            "cannot forget ['cherry']: not all of it was observed.",
        ),
        (
            lambda: Hypotheses(likelihood={0: stats.norm(0).pdf, 1: stats.norm(1).pdf}).update(0.9).forget(1.2),
            NotLearnedError,
            "cannot forget [1.2]: not all of it was observed.",
        ),
        (
            lambda: Continuum(("cherry", "lime")).update("cherry").forget("lime"),
            NotLearnedError,
            "cannot forget ['lime']: not all of it was observed.",
        ),
        (
            lambda: Hypotheses({"a": 0.5, "b": 0.4}, {"a": {"x": 1}, "b": {"x": 1}}),
            DataError,
            "the prior sums to 0.9, not 1: give the probability of every case.",
        ),
        (
            lambda: Hypotheses({"a": 1.0}, {"a": {"x": 0.5}}),
            DataError,
            "P(observation | 'a') sums to 0.5, not 1: give the probability of every case.",
        ),
        (
            lambda: Hypotheses({"a": 1.0}, {"b": {"x": 1}}),
            DataError,
            "'a', 'b' has a prior or a likelihood but not both: give both for each hypothesis.",
        ),
        (
            lambda: Hypotheses({"a": 1.0}),
            DataError,
            "no likelihood: give a table, functions or models, one for each hypothesis.",
        ),
        (
            lambda: Hypotheses(likelihood={"a": 3}),
            KindError,
            "likelihood holds int: give a table of probabilities, a function or a fitted model for each hypothesis.",
        ),
        (
            lambda: Hypotheses(likelihood={"a": lambda x: -x}).update(0.5),
            DataError,
            "hypothesis 'a' gives -0.5 for observation 0: a likelihood is finite and >= 0.",
        ),
        (
            lambda: Hypotheses(likelihood={"a": lambda x: math.nan}, logs=True).update(0.5),
            DataError,
            "hypothesis 'a' gives nan for observation 0: a log likelihood is a number below infinity.",
        ),
        (
            lambda: Hypotheses(likelihood={"a": lambda x: 1.0}).predict(),
            DataError,
            "no outcomes to predict: declare them with Hypotheses(..., outcomes=[...]).",
        ),
        (
            lambda: candy_bags() + possible([]),
            DataError,
            "cannot merge spaces with different hypotheses or priors: declare both in the same way.",
        ),
        (
            lambda: (
                Hypotheses(likelihood={"a": {"x": 1}, "b": {"y": 1}}).update("x")
                + Hypotheses(likelihood={"a": {"x": 1}, "b": {"y": 1}}).update("y")
            ),
            DataError,
            "cannot merge: the observations of the two spaces together rule out every hypothesis.",
        ),
        (
            lambda: Continuum(("x", "x")),
            DataError,
            "outcomes ('x', 'x'): give two or more different ones.",
        ),
        (
            lambda: Continuum(("cherry", "lime")).update("lemon"),
            DataError,
            "observation 0: 'lemon' is none of 'cherry', 'lime'.",
        ),
        (
            lambda: Continuum(("win", "draw", "loss")).update("won"),
            DataError,
            "observation 0: 'won' is none of 'win', 'draw', 'loss'.",
        ),
        (
            lambda: Continuum(("win", "draw", "loss"), Bernoulli(1, 1)),
            DataError,
            "a Bernoulli prior is for two outcomes, not 3: give Categorical(alpha).",
        ),
        (
            lambda: Continuum((1, "draw", None)),
            DataError,
            "outcomes (1, 'draw', None): under a Dirichlet prior, give all strings or all numbers.",
        ),
        (
            lambda: Continuum((1, 2, 3), Categorical(1.0, values=[1, 2])),
            DataError,
            "outcomes (1, 2, 3): the values of the prior are [1, 2]; give the same ones, no NaN.",
        ),
        (
            lambda: Continuum((1, 2, 3)).update(1) + Continuum((1, 2, 3), Categorical(2.0)).update(1),
            DataError,
            "cannot merge spaces with different hypotheses or priors: declare both in the same way.",
        ),
        (
            lambda: Continuum(("win", "draw", "loss")).update("win").forget("loss"),
            NotLearnedError,
            "cannot forget ['loss']: not all of it was observed.",
        ),
        (
            lambda: Continuum((1, 2, 3)).map(),
            DataError,
            "there is no single MAP: every θ is equally probable; observe something, or use predict_proba().",
        ),
        (
            lambda: Continuum((1, 2, 3), Categorical(0.5)).map(),
            DataError,
            "there is no single MAP: the density is infinite where an outcome has probability 0; "
            "observe something, or use predict_proba().",
        ),
        (
            lambda: Continuum().ml(),
            DataError,
            "no observations: every θ is equally likely; observe something, or use predict_proba().",
        ),
    ],
)
def test_errors_say_what_was_given_where_and_what_to_do(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
