"""The geometric pool of the members, with the base rate as a fallback.

    p(c | x)  =  share  Π_m p_m(c | x)^exponent_m / Z  +  (1 - share) p(c),      Σ_m exponent_m = 1

A geometric mean lets a member that is sure of itself decide, and never makes the pool surer than its members. Exponents
and share are fitted to answers to rows left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from priory.calibration.solvers import minimise_cost
from priory.core.logspace import log_normalise, normalise
from priory.core.statistics import register_record

EXPONENT_PRECISION = 0.1  # of the Gaussian prior of the log exponents
MIN_EXPONENT = 1e-3  # members with less are dropped
MAX_EXPONENT_STEPS, TOLERANCE = 200, 1e-9
MAX_SHARE_STEPS = 200
PRIOR_ROWS = 0.1  # pseudo-counts of the pool and of the base rate
# Of the gain over the base rate, in nats, the charge is put down to chance; the rest is the more credible, the larger
# it is against the scale.
CHARGE, SCALE = 4.0, 2.0


@register_record("MemberPool", axes={"exponents": "b"})
@dataclass(frozen=True, eq=False)
class MemberPool:
    """The exponent of each member, and their share against the base rate."""

    exponents: Array  # (members,)
    share: float  # of the pooled members; the base rate has the rest

    def find_fault(self) -> str | None:
        if not ((self.exponents >= 0).all() and np.isclose(self.exponents.sum(), 1.0)):
            return "its exponents do not add up to one"
        return None if 0 <= self.share <= 1 else "its share is not from 0 to 1"

    def mix_base_rate(self, pooled: Array, base: Array) -> Array:
        """(rows, classes): the mixed log probabilities, from the pooled ones and the base rate."""
        with np.errstate(divide="ignore"):
            return np.logaddexp(pooled + np.log(self.share), base + np.log(1 - self.share))


def pool_answers(answers: Array, exponents: Array) -> Array:
    """(rows, classes): the geometric mean of members' log probabilities (members, rows, classes)."""
    return log_normalise(np.tensordot(exponents, answers, axes=1))


def fit_pool(answers: Sequence[Array], group: Array, weight: Array) -> MemberPool:
    """Fit the pool to the log probabilities (rows, classes) of the base rate and of each member."""
    rows, others = np.arange(len(group)), np.stack(answers[1:])
    exponents = _fit_exponents(others, group, weight)
    exponents = np.where(exponents < MIN_EXPONENT, 0.0, exponents)
    exponents /= exponents.sum()
    pooled = pool_answers(others, exponents)
    return MemberPool(exponents, fit_share(pooled[rows, group], answers[0][rows, group], weight))


def _fit_exponents(answers: Array, group: Array, weight: Array) -> Array:
    """(members,): the MAP exponents, with a Gaussian prior of their logs."""
    rows = np.arange(len(group))

    def cost(log_exponents: Array) -> tuple[float, Array]:
        exponents = normalise(log_exponents)
        pooled = pool_answers(answers, exponents)
        # wrong (rows, classes) is p - y; slope (members,) is the gradient with respect to the exponents
        wrong = np.exp(pooled)
        wrong[rows, group] -= 1
        slope = np.einsum("nc,mnc->m", wrong * weight[:, None], answers)
        loss = EXPONENT_PRECISION / 2 * log_exponents @ log_exponents - weight @ pooled[rows, group]
        return float(loss), EXPONENT_PRECISION * log_exponents + exponents * (slope - exponents @ slope)

    return normalise(minimise_cost(cost, np.zeros(len(answers)), TOLERANCE, MAX_EXPONENT_STEPS))


def fit_share(pooled: Array, base: Array, weight: Array) -> float:
    """Fit the share of the pool by expectation maximisation, from the log probabilities of the true classes.

    While the pool has gained only a few nats over the base rate, the rows may be noise: the base rate then gets
    pseudo-counts for up to all of the rows.
    """
    gain = np.exp(np.clip(pooled - base, -700, 700))
    base_rows = PRIOR_ROWS
    for _ in range(2):  # the second time with pseudo-counts for the rows that may be noise
        share = 0.5
        for _ in range(MAX_SHARE_STEPS):
            # E step: the expected number of rows that the pool explains; M step: the new share
            own = float(weight @ (share * gain / (share * gain + 1 - share)))
            new = (own + PRIOR_ROWS) / (weight.sum() + base_rows + PRIOR_ROWS)
            done, share = abs(new - share) < 1e-5, new
            if done:
                break
        nats = float(weight @ np.log(share * gain + 1 - share))
        base_rows = PRIOR_ROWS + weight.sum() * np.exp(-max(nats - CHARGE, 0.0) / SCALE)
    return share
