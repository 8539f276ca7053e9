"""Refinement: logistic regression whose prior is centred on a model that is already there.

    logits(x)  =  model(x)  +  x~ D,      D ~ N(0, 1 / strength)

The rows correct the model where it is wrong; where they say nothing it answers as before. What the model says of a row
it has learned has seen the row's label, so it must be asked without that row: leave-one-out.
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
MAX_REFINEMENT_STEPS, MAX_SEARCH_STEPS = (
    100,
    40,
)  # of L-BFGS: for good, and while strengths are compared from one to the next


class Refinement(NamedTuple):
    """The corrections D (features, classes), and what is said of each row by corrections not fitted to that row."""

    corrections: Array
    strength: float
    out_of_fold: Array


def fit_refinement(
    x: csr_array,
    base_logits: Array,
    group: Array,
    weight: Array,
    strength: float,
    start: Array | None = None,
    max_steps: int = MAX_REFINEMENT_STEPS,
) -> Array:
    """The most probable corrections: one convex problem, solved by L-BFGS on the cross-entropy."""
    rows, turned = np.arange(len(group)), x.T.tocsr()
    spread = np.asarray(
        helmert(base_logits.shape[1]).T
    )  # differences between the classes: no correction is there twice
    shape = (x.shape[1], spread.shape[1])

    def cost(flat: Array) -> tuple[float, Array]:
        d = flat.reshape(shape)
        answer = log_normalise(base_logits + (x @ d) @ spread.T)
        wrong = np.exp(answer)
        wrong[rows, group] -= 1
        slope = turned @ ((wrong * weight[:, None]) @ spread) + strength * d
        return float(0.5 * strength * (d * d).sum() - weight @ answer[rows, group]), slope.ravel()

    first = np.zeros(shape) if start is None else start @ spread
    best = minimise_lbfgs(cost, first.ravel(), max_steps)
    return np.asarray(best.reshape(shape) @ spread.T)


def choose_refinement(x: csr_array, base_logits: Array, group: Array, weight: Array, fold: Array) -> Refinement:
    """Corrections of the strength that judges rows of another fold best, from strong to weak until that gets worse.

    Rows of a fold below nought are never judged: of many rows, a part is enough to choose by.
    """
    features, shown = x.shape[1], np.unique(x.indices)
    x = x[:, shown]  # of what no row shows, nothing can be learned
    rows, folds = np.flatnonzero(fold >= 0), np.unique(fold[fold >= 0])
    starts: dict[int, Array | None] = dict.fromkeys(folds.tolist())
    best: tuple[float, float, Array] | None = None
    for strength in REFINEMENT_PRIOR_STRENGTHS:
        honest = np.full(base_logits.shape, np.nan)
        for k in folds.tolist():
            out = fold == k
            d = fit_refinement(
                x[~out], base_logits[~out], group[~out], weight[~out], strength, starts[k], MAX_SEARCH_STEPS
            )
            starts[k] = d
            honest[out] = log_normalise(base_logits[out] + x[out] @ d)
        loss = -float(weight[rows] @ honest[rows, group[rows]])
        if best is None or loss < best[0]:
            best = (loss, strength, honest)
        else:
            break
    assert best is not None
    corrections = np.zeros((features, base_logits.shape[1]))
    corrections[shown] = fit_refinement(x, base_logits, group, weight, best[1], starts[int(folds[-1])])
    return Refinement(corrections, best[1], best[2])
