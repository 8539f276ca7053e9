"""Fit the members of a correction and their pool, all validated on out-of-fold predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from priory.calibration.corrections import Corrections
from priory.calibration.gaussian_member import MAX_GAUSSIAN_COLUMNS, choose_gaussian
from priory.calibration.interactions import choose_sets, encode_cells
from priory.calibration.lockstep import LockstepProblem, Solution, pad_columns, solve_lockstep
from priory.calibration.members import (
    NO_PAIRS,
    NO_TRIPLES,
    BaseRateMember,
    GaussianMember,
    LinearMember,
    Member,
    SlopeMember,
    look_up_codes,
    make_constant,
)
from priory.calibration.pooling import fit_pool
from priory.calibration.table_encoding import N_LEVELS, N_TRIPLE_LEVELS, make_one_hot
from priory.calibration.tempered_centre import (
    Centre,
    FitRows,
    fit_centre,
    measure_importance,
    to_classes,
    to_logits,
)
from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows, join_columns
from priory.core.typing import Array

STRENGTHS = tuple(100 * 10 ** (-0.5 * k) for k in range(9))  # from 100 to 0.01
STRENGTHS_OF_SETS = tuple(1000 * 10 ** (-0.5 * k) for k in range(13))  # from 1,000 to 0.001
INTERCEPT_PENALTY = 0.01  # relative to other weights: class shares are estimated best
MAX_REFINED_COLUMNS = 300  # the others are only tempered
MIN_ROWS_OF_CELL = 2  # cells of pairs and triples with fewer rows get no weight


class FitPlan(NamedTuple):
    """Which corrections are fitted."""

    refine: bool  # regressions on codes, tokens and normal scores
    together: bool  # pairs and triples of columns, and the Gaussian of all numbers


def fit_corrections(given: FitRows, plan: FitPlan) -> Corrections:
    """Fit corrections to rows; exponents and strengths are chosen by out-of-fold predictions only."""
    centre = fit_centre(given)
    members, answers = _fit_members(given, plan, centre)
    judged = np.flatnonzero(given.model_of_row >= 0)
    pool = fit_pool([a[judged] for a in answers], given.group[judged], given.weight[judged])
    kept = np.flatnonzero(pool.exponents)
    used = (members[0], *(members[1 + k] for k in kept))
    pool = replace(pool, exponents=pool.exponents[kept])
    return Corrections(centre.temperings[-1], given.counts.encoding, used, pool)


def _fit_members(given: FitRows, plan: FitPlan, centre: Centre) -> tuple[list[Member], list[Array]]:
    """Return the members, and the out-of-fold log probabilities (rows, classes) of each."""
    prior = np.stack([given.counts.log_prior(*folds) for folds in given.models])
    found: list[tuple[Member, Array]] = [(BaseRateMember(prior[-1]), log_normalise(prior[given.model_of_row]))]
    importance = measure_importance(given, centre)
    columns = _fit_columns(given, plan, centre, importance)
    with_tokens = plan.refine and len(given.text_parts) > 0
    found.append((LinearMember(columns.weights, NO_PAIRS, with_tokens, plan.refine), columns.solution.answers))
    n_columns = len(given.column_parts)
    if plan.refine and plan.together:
        sets, weights, logits = {2: NO_PAIRS, 3: NO_TRIPLES}, columns.weights, columns.solution.logits
        for order in range(2, min(3, n_columns) + 1):
            chosen, added, solution = _fit_sets(order, given, columns.problem, logits, importance)
            # An infinite strength means that the sets gained nothing. Triples start from the logits of pairs.
            if np.isfinite(solution.strength):
                sets[order], weights, logits = chosen, np.concatenate([weights, added]), solution.logits
                found.append((LinearMember(weights, sets[2], with_tokens, True, sets[3]), solution.answers))
    if plan.refine and 0 < n_columns <= MAX_REFINED_COLUMNS:
        found.append(_fit_slopes(given, centre))
    if plan.together and 0 < given.rows.scores.shape[1] <= MAX_GAUSSIAN_COLUMNS:
        found.append(_fit_gaussian(given, centre))
    return [member for member, _ in found], [answers for _, answers in found]


class RefinedColumns(NamedTuple):
    """The regression on codes and tokens."""

    problem: LockstepProblem
    solution: Solution
    weights: Array  # (features, classes): the centre plus the regression of all rows


def _fit_columns(given: FitRows, plan: FitPlan, centre: Centre, importance: Array) -> RefinedColumns:
    """Fit a regression on tokens and on the codes of the most important columns, centred on tempered naive Bayes."""
    encoding = given.counts.encoding
    ranked = np.argsort(-importance, axis=1, kind="stable")[:, :MAX_REFINED_COLUMNS]
    chosen = np.unique(ranked)
    starts = np.concatenate([[0], np.cumsum(np.diff(encoding.starts)[chosen])]).astype(np.int64)
    parts = [make_constant(len(given.group)), make_one_hot(given.rows.codes[:, chosen], starts)]
    if plan.refine:
        parts += given.rows.tokens()
    features = join_columns(parts)
    problem = _make_problem(given, features, centre.logits)
    solution = solve_lockstep(problem, STRENGTHS if plan.refine else (), _make_penalty(features.width))
    # Add the weights (features, classes) of the chosen codes and of the tokens to the table of all codes.
    added = to_classes(solution.weights[:, -1])
    n_tokens = features.width - 1 - int(starts[-1])
    weights = np.concatenate([centre.tables[-1].T, np.zeros((n_tokens if plan.refine else 0, given.n_classes))])
    owner = np.repeat(np.arange(len(encoding.columns)), np.diff(encoding.starts))
    weights[np.concatenate([[0], 1 + np.flatnonzero(np.isin(owner, chosen))])] += added[: 1 + int(starts[-1])]
    weights[1 + encoding.n_codes :] += added[1 + int(starts[-1]) :]
    return RefinedColumns(problem, solution, weights)


def _make_problem(given: FitRows, features: SparseRows, logits: Array) -> LockstepProblem:
    """Return a regression on features with the offset ``logits`` (rows, models, logits)."""
    offset = pad_columns(logits.reshape(len(logits), -1))
    return LockstepProblem(
        features, given.group, given.weight, given.model_of_row, given.n_classes, len(given.judged), offset
    )


def _fit_sets(
    order: int, given: FitRows, problem: LockstepProblem, logits: Array, importance: Array
) -> tuple[Array, Array, Solution]:
    """Choose pairs or triples of columns; return them, the weights of their cells, and the solution.

    The regression on cells has the offset ``logits`` (rows, models, logits).
    """
    levels, n_levels = (given.rows.levels, N_LEVELS) if order == 2 else (given.rows.triple_levels, N_TRIPLE_LEVELS)
    sets, penalty = choose_sets(order, levels, n_levels, logits, problem, importance)
    every_cell = encode_cells(levels, sets, n_levels)
    shared = np.flatnonzero(np.bincount(every_cell.indices, minlength=every_cell.width) >= MIN_ROWS_OF_CELL)
    cells = n_levels**order
    problem = _make_problem(given, every_cell.take_columns(shared), logits)
    solution = solve_lockstep(problem, STRENGTHS_OF_SETS, penalty[shared // cells])
    weights = np.zeros((len(sets) * cells, given.n_classes))  # zero for cells with too few rows
    weights[shared] = to_classes(solution.weights[:, -1])
    kept = np.isfinite(penalty[:, -1])  # chosen by the model of all rows
    return sets[kept], weights[np.repeat(kept, cells)], solution


def _fit_slopes(given: FitRows, centre: Centre) -> tuple[SlopeMember, Array]:
    """Fit a regression on labels and normal scores, with the tempered evidence of texts as offset."""
    encoding = given.counts.encoding
    is_number = [column.is_number for column in encoding.columns]
    labels = np.where(is_number, -1, given.rows.codes)
    parts = [make_constant(len(given.group)), make_one_hot(labels, encoding.starts)]
    features = join_columns([*parts, SparseRows.from_dense(given.rows.scores.astype(np.float32))])
    problem = _make_problem(given, features, to_logits(centre.text_logits))
    solution = solve_lockstep(problem, STRENGTHS, _make_penalty(features.width))
    weights = to_classes(solution.weights[:, -1])
    codes = 1 + encoding.n_codes
    return SlopeMember(weights[:codes], weights[codes:]), solution.answers


def _fit_gaussian(given: FitRows, centre: Centre) -> tuple[GaussianMember, Array]:
    """Fit the Gaussian of all numbers, with the tempered evidence of labels and texts."""
    encoding = given.counts.encoding
    tables = centre.tables.copy()  # (models, classes, 1 + codes), without the codes of numbers
    for column, start in zip(encoding.columns, encoding.starts, strict=False):
        if column.is_number:
            tables[:, :, 1 + start : 1 + start + column.n_codes] = 0.0
    rows, model = np.arange(len(given.group)), given.model_of_row
    base = centre.text_logits[rows, model].copy()  # (rows, classes): out-of-fold logits of texts, prior and labels
    for m in range(len(given.judged)):
        at = np.flatnonzero(model == m)
        base[at] += tables[m, :, 0] + look_up_codes(tables[m, :, 1:], given.rows.codes[at], encoding.starts)
    chosen = choose_gaussian(given.rows.scores, given.group, given.weight, model, base)
    return GaussianMember(chosen.gaussian, chosen.temperature, tables[-1]), chosen.left_out


def _make_penalty(features: int) -> Array:
    """(features, 1): the relative penalty of each weight; the first feature is the intercept."""
    penalty = np.ones((features, 1))
    penalty[0] = INTERCEPT_PENALTY
    return penalty
