"""Refinement: logistic regression whose prior is centred on a model that is already there.

    logits(x)  =  model(x)  +  x~ D,      D ~ N(0, 1 / strength)

The rows correct the model where it is wrong; elsewhere it answers as before. A model's answer to a row it has learned
depends on the label of that row, so ``model(x)`` must be its leave-one-out answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert
from scipy.sparse import csr_array

from priory.core.logspace import log_normalise
from priory.core.optimize import minimise_lbfgs
from priory.core.typing import Array

REFINEMENT_PRIOR_STRENGTHS = (300.0, 30.0, 3.0, 0.3, 0.03, 0.003)
MAX_REFINEMENT_STEPS = 100  # of L-BFGS
MAX_SEARCH_STEPS = 40  # of L-BFGS while strengths are compared, each starting where the last one ended


class Refinement(NamedTuple):
    """Fitted corrections, and their out-of-fold answers."""

    corrections: Array  # (features, classes)
    strength: float
    out_of_fold: Array  # (rows, classes): log probabilities by corrections that were not fitted to the row


def fit_refinement(
    x: csr_array,
    base_logits: Array,
    group: Array,
    weight: Array,
    strength: float,
    start: Array | None = None,
    max_steps: int = MAX_REFINEMENT_STEPS,
) -> Array:
    """The most probable corrections (features, classes): one convex problem, solved by L-BFGS on the cross-entropy."""
    rows, transposed = np.arange(len(group)), x.T.tocsr()
    # (classes, classes - 1): contrasts, because adding the same to all classes changes nothing
    contrasts = np.asarray(helmert(base_logits.shape[1]).T)
    shape = (x.shape[1], contrasts.shape[1])

    def cost(flat: Array) -> tuple[float, Array]:
        d = flat.reshape(shape)
        answer = log_normalise(base_logits + (x @ d) @ contrasts.T)
        wrong = np.exp(answer)
        wrong[rows, group] -= 1
        slope = transposed @ ((wrong * weight[:, None]) @ contrasts) + strength * d
        return float(0.5 * strength * (d * d).sum() - weight @ answer[rows, group]), slope.ravel()

    first = np.zeros(shape) if start is None else start @ contrasts
    best = minimise_lbfgs(cost, first.ravel(), max_steps)
    return np.asarray(best.reshape(shape) @ contrasts.T)


def choose_refinement(x: csr_array, base_logits: Array, group: Array, weight: Array, fold: Array) -> Refinement:
    """Corrections with the prior strength of the best out-of-fold log loss, tried from strong to weak until it worsens.

    Rows whose fold is negative are never judged: with many rows, some are enough to choose by.
    """
    features, used = x.shape[1], np.unique(x.indices)
    x = x[:, used]  # nothing can be learned about a feature that no row has
    rows, folds = np.flatnonzero(fold >= 0), np.unique(fold[fold >= 0])
    starts: dict[int, Array | None] = dict.fromkeys(folds.tolist())
    best: tuple[float, float, Array] | None = None
    for strength in REFINEMENT_PRIOR_STRENGTHS:
        answers = np.full(base_logits.shape, np.nan)
        for k in folds.tolist():
            out = fold == k
            d = fit_refinement(
                x[~out], base_logits[~out], group[~out], weight[~out], strength, starts[k], MAX_SEARCH_STEPS
            )
            starts[k] = d
            answers[out] = log_normalise(base_logits[out] + x[out] @ d)
        loss = -float(weight[rows] @ answers[rows, group[rows]])
        if best is None or loss < best[0]:
            best = (loss, strength, answers)
        else:
            break
    assert best is not None
    corrections = np.zeros((features, base_logits.shape[1]))
    corrections[used] = fit_refinement(x, base_logits, group, weight, best[1], starts[int(folds[-1])])
    return Refinement(corrections, best[1], best[2])
