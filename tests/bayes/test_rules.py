"""Product, sum, total probability, Bayes' rule: the book's numbers, and what contradicts itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.bayes.probability import bayes_rule, product_rule, sum_rule, total_probability
from priory.errors import DataError

chance = st.floats(0, 1)


@given(chance, chance, chance)
def test_bayes_rule_inverts_total_probability(prior, if_true, if_false):
    evidence = total_probability([if_true, if_false], [prior, 1 - prior])
    if evidence > 1e-6:
        posterior = bayes_rule(if_true, prior, evidence)
        assert product_rule(posterior, evidence) == pytest.approx(product_rule(if_true, prior), abs=1e-9)


@given(chance, chance)
def test_independent_events_follow_the_sum_rule(a, b):
    assert sum_rule(a, b, a * b) == pytest.approx(1 - (1 - a) * (1 - b))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: product_rule(1.5, 0.5), "P(A|B) = 1.5 is not a probability: give a number from 0 to 1."),
        (lambda: product_rule(float("nan"), 0.5), "P(A|B) = nan is not a probability: give a number from 0 to 1."),
        (
            lambda: sum_rule(0.2, 0.5, 0.3),
            "P(A∧B) = 0.3 is more than P(A) = 0.2 or P(B) = 0.5: A and B together cannot be likelier than either.",
        ),
        (lambda: sum_rule(0.9, 0.8, 0.1), "P(A∨B) = 1.6 is not a probability: give a number from 0 to 1."),
        (lambda: total_probability([0.1], [0.5, 0.5]), "1 values of P(B|A) for 2 causes: give one for each cause."),
        (
            lambda: total_probability([0.1, 0.2], [0.5, 0.4]),
            "P(A) sums to 0.9, not 1: give the probability of every case.",
        ),
        (lambda: bayes_rule(0.8, 0.5, 0.0), "P(B) = 0: P(A|B) is not defined, because B cannot happen."),
        (
            lambda: bayes_rule(0.8, 0.5, 0.1),
            "P(A∧B) = 0.4 is more than P(B) = 0.1: A and B cannot be likelier than B.",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(call, message):
    with pytest.raises(DataError) as error:
        call()
    assert str(error.value) == message
