"""The vote: members answer together, each with a share that its answers to rows left out have earned.

p(c | x)  =  Σ_m  share_m  p_m(c | x)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.logspace import log_sum_exp
from priory.core.typing import Array

MAX_VOTE_STEPS = 200


def mix_answers(answers: Sequence[Array], shares: Array) -> Array:
    """The log of the mixture of members' answers, each (rows, classes), by their shares."""
    if len(answers) == 1:
        return answers[0]
    with np.errstate(divide="ignore"):
        return log_sum_exp(np.stack(answers) + np.log(shares)[:, None, None], axis=0)


def fit_shares(answers: Sequence[Array], group: Array, weight: Array, prior_rows: Array) -> Array:
    """The most probable shares, by expectation maximisation; ``prior_rows`` count as rows that a member got right."""
    own = np.stack([a[np.arange(len(group)), group] for a in answers])  # (members, rows)
    likelihood = np.exp(own - own.max(axis=0))
    shares = np.full(len(answers), 1 / len(answers))
    for _ in range(MAX_VOTE_STEPS):
        new = shares * (likelihood @ (weight / (shares @ likelihood))) + prior_rows
        new /= new.sum()
        done = np.abs(new - shares).max() < 1e-5
        shares = new
        if done:
            break
    return shares


def cross_vote(answers: Sequence[Array], group: Array, weight: Array, fold: Array, prior_rows: Array) -> Array:
    """(rows, classes): the vote on each fold, with shares that were fitted to the other folds."""
    voted = np.empty(answers[0].shape)
    for k in np.unique(fold):
        out = fold == k
        shares = fit_shares([a[~out] for a in answers], group[~out], weight[~out], prior_rows)
        voted[out] = mix_answers([a[out] for a in answers], shares)
    return voted
