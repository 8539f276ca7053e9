"""The basic formulas of probability: complement, product rule, sum rule, independence, total probability, Bayes' rule.

Each function checks that its arguments are in [0, 1] and do not contradict one another.
"""

from __future__ import annotations

from collections.abc import Sequence

from priory.errors import DataError

PROBABILITY_TOLERANCE = 1e-9  # allowed rounding error in typed probabilities


def complement(p_a: float) -> float:
    """Return ``P(not A) = 1 - P(A)``.

    >>> complement(0.25)
    0.75
    """
    return 1.0 - check_probability("P(A)", p_a)


def product_rule(p_a_given_b: float, p_b: float) -> float:
    """Return ``P(A ∧ B) = P(A | B) P(B)``.

    >>> product_rule(0.5, 0.5)
    0.25
    """
    return check_probability("P(A|B)", p_a_given_b) * check_probability("P(B)", p_b)


def conditional_probability(p_both: float, p_b: float) -> float:
    """Return ``P(A | B) = P(A ∧ B) / P(B)``.

    >>> conditional_probability(0.12, 0.2)  # of cavity, given toothache
    0.6
    """
    both, b = check_probability("P(A∧B)", p_both), check_probability("P(B)", p_b)
    if b == 0:
        raise DataError("P(B) = 0: P(A|B) is not defined, because B cannot happen.")
    if both > b + PROBABILITY_TOLERANCE:
        raise DataError(f"P(A∧B) = {both:g} is more than P(B) = {b:g}: A and B cannot be likelier than B.")
    return min(both / b, 1.0)  # rounding may exceed 1


def are_independent(p_a: float, p_b: float, p_both: float) -> bool:
    """Return whether ``P(A ∧ B) = P(A) P(B)``.

    >>> are_independent(0.5, 0.5, 0.25), are_independent(0.2, 0.2, 0.12)
    (True, False)
    """
    a, b, both = check_probability("P(A)", p_a), check_probability("P(B)", p_b), check_probability("P(A∧B)", p_both)
    return abs(a * b - both) <= PROBABILITY_TOLERANCE


def sum_rule(p_a: float, p_b: float, p_both: float) -> float:
    """Return ``P(A ∨ B) = P(A) + P(B) - P(A ∧ B)``.

    >>> sum_rule(0.5, 0.5, 0.25)
    0.75
    """
    a, b, both = check_probability("P(A)", p_a), check_probability("P(B)", p_b), check_probability("P(A∧B)", p_both)
    # monotonicity: P(A ∧ B) <= min(P(A), P(B))
    if both > min(a, b) + PROBABILITY_TOLERANCE:
        raise DataError(
            f"P(A∧B) = {both:g} is more than P(A) = {a:g} or P(B) = {b:g}: "
            "A and B together cannot be likelier than either."
        )
    return check_probability("P(A∨B)", a + b - both)


def total_probability(p_b_given: Sequence[float], p_causes: Sequence[float]) -> float:
    """Return ``P(B) = Σ P(B | A_i) P(A_i)`` over causes of which exactly one holds.

    The probability that the first candy is lime, over five kinds of bags:

    >>> total_probability([0, 0.25, 0.5, 0.75, 1], [0.1, 0.2, 0.4, 0.2, 0.1])
    0.5
    """
    if len(p_b_given) != len(p_causes):
        raise DataError(f"{len(p_b_given)} values of P(B|A) for {len(p_causes)} causes: give one for each cause.")
    check_distribution("P(A)", p_causes)
    return sum(product_rule(p, cause) for p, cause in zip(p_b_given, p_causes, strict=True))


def bayes_rule(p_b_given_a: float, p_a: float, p_b: float) -> float:
    """Return ``P(A | B) = P(B | A) P(A) / P(B)``.

    80 % of the students of a course (1 % of all people) and 10 % of all people are in the library. What share of the
    people in the library are students of the course?

    >>> round(bayes_rule(0.8, 0.01, 0.1), 10)
    0.08
    """
    both, b = product_rule(p_b_given_a, p_a), check_probability("P(B)", p_b)
    if b == 0:
        raise DataError("P(B) = 0: P(A|B) is not defined, because B cannot happen.")
    if both > b + PROBABILITY_TOLERANCE:
        raise DataError(f"P(B|A) P(A) = {both:g} is more than P(B) = {b:g}: the three contradict one another.")
    return min(both / b, 1.0)


def check_probability(name: str, p: float) -> float:
    """Return ``p`` clipped to [0, 1], or raise if it is not a probability."""
    if not -PROBABILITY_TOLERANCE <= p <= 1 + PROBABILITY_TOLERANCE:
        raise DataError(f"{name} = {p:g} is not a probability: give a number from 0 to 1.")
    return min(max(p, 0.0), 1.0)  # remove rounding errors


def check_distribution(name: str, p: Sequence[float]) -> Sequence[float]:
    """Return ``p``, or raise if it does not sum to one."""
    total = sum(check_probability(name, value) for value in p)
    if abs(total - 1) > PROBABILITY_TOLERANCE:
        raise DataError(f"{name} sums to {total:g}, not 1: give the probability of every case.")
    return p
