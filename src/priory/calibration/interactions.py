"""Choose pairs and triples of columns by the residuals that they explain.

A set of columns has a cell for each combination of their levels. Its score is, summed over the cells, the squared sum
of the residuals minus its expectation under chance, in units of that expectation. The model of each fold chooses for
itself, without the rows left out.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from priory.calibration.lockstep import LockstepProblem, pad_columns
from priory.calibration.table_encoding import make_one_hot
from priory.core.sparse_rows import SparseRows, score_column_sets
from priory.core.typing import Array

MAX_CHOSEN = 48  # pairs, and as many triples
MAX_SCORED = 1200  # candidate pairs, and as many triples
MAX_PRODUCTS = 5e7  # rows x sets of columns x logits of all models, for one pass
CHANCE_PART = 0.3  # of the standard deviation of a score under chance; smaller scores count as equal


def encode_cells(levels: Array, sets: Array, n_levels: int) -> SparseRows:
    """(rows, sets x cells): one-hot cells of each set of columns; none if a label is unknown."""
    # (rows, sets): the levels of a set's columns, read as the digits of one number
    cells, known = levels[:, sets[:, 0]], levels[:, sets[:, 0]] >= 0
    for column in sets.T[1:]:
        cells = cells * n_levels + levels[:, column]
        known &= levels[:, column] >= 0
    return make_one_hot(np.where(known, cells, -1), np.arange(len(sets) + 1) * n_levels ** sets.shape[1])


def choose_sets(
    order: int, levels: Array, n_levels: int, logits: Array, problem: LockstepProblem, importance: Array
) -> tuple[Array, Array]:
    """Return sets of ``order`` columns (sets, order), and the penalty of their weights (sets, models).

    The penalty falls with the score: 1 for the best set of a model, infinite for a set that it has not chosen.
    ``logits`` (rows, models, logits) are the current predictions. ``importance`` (models, columns) ranks the columns
    from which candidates are made.
    """
    room = MAX_PRODUCTS / (len(levels) * logits.shape[1] * logits.shape[2])
    sets, possible = _list_sets(order, importance, int(np.clip(room, 16, MAX_SCORED)))
    scores = np.where(possible, _score_sets(sets, levels, n_levels, logits, problem), -np.inf)
    top = np.argsort(-scores, axis=1, kind="stable")[:, : int(np.clip(room, 8, MAX_CHOSEN))]
    chosen = np.zeros(scores.shape, dtype=bool)  # (models, sets)
    np.put_along_axis(chosen, top, True, axis=1)
    chosen &= possible
    chance = CHANCE_PART * np.sqrt(2 * n_levels**order * problem.n_logits)
    above = np.maximum(scores, 0.0) + chance
    penalty = np.where(chosen, above.max(axis=1, keepdims=True) / above, np.inf)
    kept = chosen.any(axis=0)
    return sets[kept], penalty[:, kept].T


def _list_sets(order: int, importance: Array, limit: int) -> tuple[Array, Array]:
    """Return about ``limit`` sets of the most important columns of each model, and whose they are (models, sets)."""
    n_models, columns = importance.shape
    # the number of columns that have no more than ``limit`` sets
    width = max(n for n in range(order, columns + 1) if n == order or comb(n, order) <= limit)
    ranked = np.argsort(-importance, axis=1, kind="stable")[:, :width]
    candidate = np.zeros((n_models, columns), dtype=bool)
    np.put_along_axis(candidate, ranked, True, axis=1)
    sets = np.array(list(combinations(np.flatnonzero(candidate.any(axis=0)), order)), dtype=np.int64)
    possible = np.asarray(candidate[:, sets].all(axis=2))
    wanted = possible.any(axis=0)
    return sets[wanted], possible[:, wanted]


def _score_sets(sets: Array, levels: Array, n_levels: int, logits: Array, problem: LockstepProblem) -> Array:
    """(models, sets): how far the squared residuals in the cells of each set exceed chance."""
    wrong, chance = problem.compute_residuals(pad_columns(logits.reshape(len(logits), -1)))
    scores = score_column_sets(levels, sets, n_levels, wrong, chance)
    return np.asarray(problem.split_models(scores).sum(axis=2).T, dtype=float)
