"""The pool: members answer together, and the base rate keeps what they have not earned.

    p(c | x)  =  share  Π_m p_m(c | x)^exponent_m / Z  +  (1 - share) p(c),      exponent_m >= 0

Exponents and share are fitted to answers to rows left out. An exponent is the weight of a member as a tempering has one
for each part: members that say the same share their weight, and together they may be surer than any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from priory.calibration.tempering import MAX_WEIGHT, fit_tempering
from priory.core.logspace import log, log_normalise, log_sum_exp
from priory.core.registration import register_record
from priory.core.typing import Array
from priory.models.evidence_terms import EvidenceTerms

MIN_EXPONENT = 1e-3  # members with less are left out
MAX_SHARE_STEPS = 200
PRIOR_ROWS = 0.1  # what the base rate and the others start with
NATS_TO_BELIEVE = 5.0  # a gain over the base rate that leaves little room for chance


@register_record("MemberPool", axes={"exponents": "b"})
@dataclass(frozen=True, eq=False)
class MemberPool:
    """How much each member counts; the first is the base rate."""

    exponents: Array  # (members,)
    share: float  # of the pool; the rest is that of the base rate

    def find_fault(self) -> str | None:
        if not ((self.exponents[1:] >= 0).all() and (np.abs(self.exponents) <= MAX_WEIGHT).all()):
            return "an exponent is negative, or too large"
        return None if 0 <= self.share <= 1 else "its share is not from 0 to 1"

    def take(self, members: Array) -> MemberPool:
        """The pool of some members."""
        return MemberPool(self.exponents[members], self.share)

    def mix_answers(self, answers: Sequence[Array]) -> Array:
        """(rows, classes): the log probabilities of all members together, from those of each."""
        pooled = log_normalise(np.tensordot(self.exponents, np.stack(answers), axes=1))
        with np.errstate(divide="ignore"):
            logs = np.log([self.share, 1 - self.share])
        return np.asarray(log_sum_exp(np.stack([pooled + logs[0], answers[0] + logs[1]]), axis=0))

    def mix_row(self, answers: Array) -> Array:
        """(classes,): `mix_answers` for one row, from the log probabilities (members, classes)."""
        pooled = self.exponents @ answers
        pooled = np.exp(pooled - pooled.max())
        return log(self.share * pooled / pooled.sum() + (1 - self.share) * np.exp(answers[0]))


def fit_pool(answers: Sequence[Array], group: Array, weight: Array) -> MemberPool:
    """The most probable pool of members' log probabilities (rows, classes), of which the first is the base rate.

    As long as the pool has not gained some nats over the base rate, the rows may be noise: the base rate keeps that
    part of them.
    """
    rows = np.arange(len(group))
    terms = EvidenceTerms(np.stack(answers, axis=2), np.ones((len(group), len(answers))))
    exponents = fit_tempering(terms, group, weight, with_information=False).weights
    exponents[1:][exponents[1:] < MIN_EXPONENT] = 0.0
    pooled = MemberPool(exponents, 1.0).mix_answers(answers)
    return MemberPool(exponents, fit_share(pooled[rows, group], answers[0][rows, group], weight))


def fit_share(pooled: Array, base: Array, weight: Array) -> float:
    """The share of the pool by expectation maximisation, from log probabilities of the rows' own classes."""
    gain = np.exp(np.clip(pooled - base, -700, 700))
    base_rows = PRIOR_ROWS
    for _ in range(2):  # with the rows that may be noise once it is known how many they are
        share = 0.5
        for _ in range(MAX_SHARE_STEPS):
            own = float(weight @ (share * gain / (share * gain + 1 - share)))
            new = (own + PRIOR_ROWS) / (weight.sum() + base_rows + PRIOR_ROWS)
            done, share = abs(new - share) < 1e-5, new
            if done:
                break
        nats = float(weight @ np.log(share * gain + 1 - share))
        base_rows = PRIOR_ROWS + weight.sum() * np.exp(-max(nats, 0.0) / NATS_TO_BELIEVE)
    return share
