"""The vote: members answer together, each with a share that its answers to rows left out have earned.

p(c | x)  =  Σ_m  share_m  p_m(c | x)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.logspace import log_sum_exp
from priory.core.typing import Array

MAX_VOTE_STEPS = 200
MEMBER_ROWS = 0.1  # what every member starts with
NATS_TO_BELIEVE = 5.0  # a gain over the base rate that leaves little room for chance


def mix_answers(answers: Sequence[Array], shares: Array) -> Array:
    """The log of the mixture of members' answers, each (rows, classes), by their shares."""
    if len(answers) == 1:
        return answers[0]
    with np.errstate(divide="ignore"):
        return log_sum_exp(np.stack(answers) + np.log(shares)[:, None, None], axis=0)


def fit_shares(answers: Sequence[Array], group: Array, weight: Array) -> Array:
    """The most probable shares; the first member is the base rate.

    Every member starts with a small part of a row. As long as the others together have not gained some nats over the
    base rate, the rows may be noise: the base rate keeps that part of them.
    """
    own = np.stack([a[np.arange(len(group)), group] for a in answers])  # (members, rows)
    prior_rows = np.full(len(answers), MEMBER_ROWS)
    shares = _maximise_shares(own, weight, prior_rows)
    gain = float(weight @ (log_sum_exp(own + np.log(shares)[:, None], axis=0) - own[0]))
    prior_rows[0] += weight.sum() * np.exp(-max(gain, 0.0) / NATS_TO_BELIEVE)
    return _maximise_shares(own, weight, prior_rows)


def _maximise_shares(own: Array, weight: Array, prior_rows: Array) -> Array:
    """Shares by expectation maximisation, from log probabilities of the rows' own classes (members, rows)."""
    likelihood = np.exp(own - own.max(axis=0))
    shares = np.full(len(own), 1 / len(own))
    for _ in range(MAX_VOTE_STEPS):
        new = shares * (likelihood @ (weight / (shares @ likelihood))) + prior_rows
        new /= new.sum()
        done = np.abs(new - shares).max() < 1e-5
        shares = new
        if done:
            break
    return shares
