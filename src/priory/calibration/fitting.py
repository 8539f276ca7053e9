"""Fit corrections: temperings, members and their shares, each judged by the model without the fold it is judged on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from priory.calibration.code_counts import CodeCounts
from priory.calibration.corrections import (
    BaseRateMember,
    CorrectionRows,
    Corrections,
    GaussianMember,
    LinearMember,
    Member,
    look_up_codes,
    make_constant,
)
from priory.calibration.gaussian_member import MAX_GAUSSIAN_COLUMNS, choose_gaussian
from priory.calibration.lockstep import LockstepProblem, Solution, pad_columns, solve_lockstep
from priory.calibration.pair_choice import choose_pairs, encode_pairs
from priory.calibration.table_encoding import N_LEVELS, make_one_hot
from priory.calibration.tempering import Tempering, fit_tempering
from priory.calibration.voting import fit_shares
from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows, join_columns
from priory.core.typing import Array
from priory.models.evidence_terms import EvidenceTerms

STRENGTHS = tuple(100 * 10 ** (-0.5 * k) for k in range(9))  # from 100 to 0.01
PAIR_STRENGTHS = tuple(1000 * 10 ** (-0.5 * k) for k in range(13))  # from 1,000 to 0.001
INTERCEPT_PENALTY = 0.01  # of a strength: the share of a class is known better than anything else
MAX_REFINED_COLUMNS = 300  # the others keep their tempered evidence
MAX_ROWS_TO_TEMPER = 2500  # a few dozen weights need no more
MIN_MEMBER_SHARE = 1e-3  # members with less are left out


class FitPlan(NamedTuple):
    """Which corrections are fitted."""

    refine: bool  # weights of codes and tokens, beyond tempering
    together: bool  # pairs of columns, and the Gaussian


@dataclass(frozen=True, eq=False)
class FitRows:
    """The rows that corrections are fitted to."""

    rows: CorrectionRows
    counts: CodeCounts
    group: Array  # (rows,)
    weight: Array  # (rows,)
    fold: Array  # (rows,)
    judged: Array  # (folds judged,): the folds that members leave out
    texts: list[EvidenceTerms]  # for each judged fold and for all rows: what texts say without it and without the row
    column_parts: Array  # (columns,): the part of the model that each column is
    text_parts: Array  # (texts,)
    n_parts: int  # columns and texts, without the class prior

    @property
    def n_classes(self) -> int:
        return len(self.counts.class_total)

    @property
    def models(self) -> list[tuple[int, ...]]:
        """The folds that each model leaves out: one each, and none."""
        return [*((int(k),) for k in self.judged), ()]

    @property
    def model_of_row(self) -> Array:
        """(rows,): the model that leaves the row out, or -1."""
        place = np.full(self.counts.folds.shape[0], -1)
        place[self.judged] = np.arange(len(self.judged))
        return place[self.fold]

    def make_terms(self, m: int, rows: Array) -> EvidenceTerms:
        """What all parts say about some rows, without the folds of model ``m`` and without each row's own fold."""
        values = np.zeros((len(rows), self.n_classes, 1 + self.n_parts))
        lengths = np.ones((len(rows), 1 + self.n_parts))
        values[:, :, 0] = self.counts.log_prior(*self.models[m])
        starts = self.counts.encoding.starts
        for fold in np.unique(self.fold[rows]):
            at = np.flatnonzero(self.fold[rows] == fold)
            table = np.pad(self.counts.log_ratios(*self.models[m], int(fold)), ((0, 0), (0, 1)))  # the last is for -1
            codes = self.rows.codes[rows[at]]
            cells = table[:, np.where(codes >= 0, codes + starts[:-1], -1)]  # (classes, rows, columns)
            values[np.ix_(at, np.arange(self.n_classes), 1 + self.column_parts)] = cells.transpose(1, 0, 2)
        if len(self.text_parts):
            values[:, :, 1 + self.text_parts] = self.texts[m].values[rows][:, :, 1:]
            lengths[:, 1 + self.text_parts] = self.texts[m].lengths[rows][:, 1:]
        return EvidenceTerms(values, lengths)


class Centre(NamedTuple):
    """Tempered naive Bayes of every model."""

    temperings: list[Tempering]
    tables: Array  # (models, classes, 1 + codes): the tempered class prior, and the tempered evidence of each code
    text_logits: Array  # (rows, models, classes)
    logits: Array  # (rows, models, logits): of prior, codes and texts


def fit_corrections(given: FitRows, plan: FitPlan) -> Corrections:
    """Corrections fitted to rows; shares and strengths see answers to rows left out only."""
    centre = fit_centre(given)
    members, answers = _fit_members(given, plan, centre)
    judged = np.flatnonzero(given.model_of_row >= 0)
    answers = [a[judged] for a in answers]
    shares = fit_shares(answers, given.group[judged], given.weight[judged])
    kept = np.flatnonzero(shares >= MIN_MEMBER_SHARE)
    return Corrections(
        centre.temperings[-1],
        given.counts.encoding,
        tuple(members[k] for k in kept),
        shares[kept] / shares[kept].sum(),
    )


def fit_centre(given: FitRows) -> Centre:
    """The tempering of each model, fitted to rows that it does not leave out."""
    temperings, tables, text_logits, logits = [], [], [], []
    owner = np.repeat(np.arange(len(given.counts.encoding.columns)), np.diff(given.counts.encoding.starts))
    for m, folds in enumerate(given.models):
        rows = np.flatnonzero(~np.isin(given.fold, folds))[:MAX_ROWS_TO_TEMPER]
        terms = given.make_terms(m, rows)
        tempering = fit_tempering(terms, given.group[rows], given.weight[rows], with_information=not folds)
        column_weights = tempering.weights[1 + given.column_parts]
        prior = tempering.weights[0] * given.counts.log_prior(*folds)
        tables.append(np.column_stack([prior, given.counts.log_ratios(*folds) * column_weights[owner]]))
        temperings.append(tempering)
        text_logits.append(temper_texts(tempering, given.texts[m] if given.texts else None, given))
        codes = look_up_codes(tables[-1][:, 1:], given.rows.codes, given.counts.encoding.starts)
        logits.append(to_logits(tables[-1][:, 0] + codes + text_logits[-1]))
    return Centre(temperings, np.stack(tables), np.stack(text_logits, axis=1), np.stack(logits, axis=1))


def temper_texts(tempering: Tempering, terms: EvidenceTerms | None, given: FitRows) -> Array:
    """(rows, classes): the tempered evidence of texts."""
    if terms is None:
        return np.zeros((len(given.group), given.n_classes))
    return weigh_texts(tempering, terms, given.text_parts)


def weigh_texts(tempering: Tempering, terms: EvidenceTerms, text_parts: Array) -> Array:
    """(rows, classes): the evidence of texts by their weights; the first part of ``terms`` is the class prior."""
    weights = tempering.weights[1 + text_parts] * terms.lengths[:, 1:] ** -tempering.exponents[1 + text_parts]
    return np.einsum("nct,nt->nc", terms.relative_to_best[:, :, 1:], weights)


def _fit_members(given: FitRows, plan: FitPlan, centre: Centre) -> tuple[list[Member], list[Array]]:
    """Each member, and its answers to rows left out (rows, classes)."""
    model = given.model_of_row
    prior = np.stack([given.counts.log_prior(*folds) for folds in given.models])
    members: list[Member] = [BaseRateMember(prior[-1])]
    answers = [log_normalise(prior[model])]
    importance = measure_importance(given, centre)
    columns = _fit_columns(given, plan, centre, importance)
    with_tokens = plan.refine and len(given.text_parts) > 0
    members.append(LinearMember(columns.weights, np.zeros((0, 2), dtype=np.int64), with_tokens, plan.refine))
    answers.append(log_normalise(to_classes(columns.solution.left_out)))
    if plan.together and plan.refine and len(given.column_parts) > 1:
        pairs, solution = _fit_pairs(given, columns, importance)
        weights = np.concatenate([columns.weights, to_classes(solution.weights[:, -1])])
        members.append(LinearMember(weights, pairs, with_tokens, plan.refine))
        answers.append(log_normalise(to_classes(solution.left_out)))
    if plan.together and 0 < given.rows.scores.shape[1] <= MAX_GAUSSIAN_COLUMNS:
        member, answer = _fit_gaussian(given, centre)
        members.append(member)
        answers.append(answer)
    return members, answers


class RefinedColumns(NamedTuple):
    """The regression on codes and tokens."""

    problem: LockstepProblem
    solution: Solution
    weights: Array  # (features, classes): those of the centre and what was added to them, for all rows


def _fit_columns(given: FitRows, plan: FitPlan, centre: Centre, importance: Array) -> RefinedColumns:
    """What codes and tokens add to the centre; where there are many columns, the codes of the most important ones."""
    encoding = given.counts.encoding
    ranked = np.argsort(-importance, axis=1, kind="stable")[:, :MAX_REFINED_COLUMNS]
    chosen = np.unique(ranked)
    starts = np.concatenate([[0], np.cumsum(np.diff(encoding.starts)[chosen])]).astype(np.int64)
    parts = [make_constant(len(given.group)), make_one_hot(given.rows.codes[:, chosen], starts)]
    if plan.refine:
        parts += [SparseRows.from_csr(tokens) for tokens in given.rows.tokens()]
    features = join_columns(parts)
    problem = _make_problem(given, features, centre.logits)
    solution = solve_lockstep(problem, STRENGTHS if plan.refine else (), make_penalty(features.width))
    added = to_classes(solution.weights[:, -1])
    n_tokens = features.width - 1 - int(starts[-1])
    weights = np.concatenate([centre.tables[-1].T, np.zeros((n_tokens if plan.refine else 0, given.n_classes))])
    owner = np.repeat(np.arange(len(encoding.columns)), np.diff(encoding.starts))
    weights[np.concatenate([[0], 1 + np.flatnonzero(np.isin(owner, chosen))])] += added[: 1 + int(starts[-1])]
    weights[1 + encoding.n_codes :] += added[1 + int(starts[-1]) :]
    return RefinedColumns(problem, solution, weights)


def _make_problem(given: FitRows, features: SparseRows, logits: Array) -> LockstepProblem:
    """A regression on features that starts from logits (rows, models, logits)."""
    offset = pad_columns(logits.reshape(len(logits), -1))
    return LockstepProblem(
        features, given.group, given.weight, given.model_of_row, given.n_classes, len(given.judged), offset
    )


def _fit_pairs(given: FitRows, columns: RefinedColumns, importance: Array) -> tuple[Array, Solution]:
    """The chosen pairs of columns, and what they add to the columns one by one."""
    logits = columns.solution.logits
    pairs, chosen = choose_pairs(given.rows.levels, logits, columns.problem, importance)
    features = encode_pairs(given.rows.levels, pairs)
    allowed = np.repeat(chosen, N_LEVELS**2, axis=0)
    problem = _make_problem(given, features, logits)
    return pairs, solve_lockstep(problem, PAIR_STRENGTHS, np.ones(features.width), allowed)


def measure_importance(given: FitRows, centre: Centre) -> Array:
    """(models, columns): how much evidence each column gives on average, tempered."""
    starts = given.counts.encoding.starts
    found = []
    for m, folds in enumerate(given.models):
        counts = given.counts.without(*folds)[0]
        found.append(np.add.reduceat((counts * centre.tables[m][:, 1:]).sum(axis=0), starts[:-1]))
    return np.stack(found)


def _fit_gaussian(given: FitRows, centre: Centre) -> tuple[GaussianMember, Array]:
    """The Gaussian of all numbers, with the tempered evidence of labels and texts."""
    encoding = given.counts.encoding
    tables = centre.tables.copy()
    for column, start in zip(encoding.columns, encoding.starts, strict=False):
        if column.is_number:
            tables[:, :, 1 + start : 1 + start + column.n_codes] = 0.0
    rows, model = np.arange(len(given.group)), given.model_of_row
    base = centre.text_logits[rows, model].copy()
    for m in range(len(given.judged)):
        at = np.flatnonzero(model == m)
        base[at] += tables[m, :, 0] + look_up_codes(tables[m, :, 1:], given.rows.codes[at], encoding.starts)
    chosen = choose_gaussian(given.rows.scores, given.group, given.weight, model, base)
    return GaussianMember(chosen.gaussian, chosen.temperature, tables[-1]), chosen.left_out


def make_penalty(features: int) -> Array:
    """(features,): how strongly each weight is held to its centre; the first is the intercept."""
    penalty = np.ones(features)
    penalty[0] = INTERCEPT_PENALTY
    return penalty


def to_logits(weights: Array) -> Array:
    """(..., classes) as (..., logits): with two classes, the second less the first."""
    return weights[..., 1:] - weights[..., :1] if weights.shape[-1] == 2 else weights


def to_classes(logits: Array) -> Array:
    """(..., logits) as (..., classes)."""
    wide = np.asarray(logits, dtype=float)
    return np.concatenate([np.zeros_like(wide), wide], axis=-1) if wide.shape[-1] == 1 else wide
