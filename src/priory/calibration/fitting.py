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
    OutOfFoldAnswers,
    make_features,
)
from priory.calibration.gaussian_member import MAX_GAUSSIAN_COLUMNS, choose_gaussian
from priory.calibration.lockstep import LockstepProblem, Solution, pad_columns, solve_lockstep
from priory.calibration.pair_choice import choose_pairs, encode_pairs
from priory.calibration.table_encoding import N_LEVELS
from priory.calibration.tempering import Tempering, fit_tempering
from priory.calibration.voting import cross_vote, fit_shares, mix_answers
from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows, join_columns
from priory.core.typing import Array
from priory.models.evidence_terms import EvidenceTerms

STRENGTHS = tuple(100 * 10 ** (-0.5 * k) for k in range(9))  # from 100 to 0.01
PAIR_STRENGTHS = tuple(1000 * 10 ** (-0.5 * k) for k in range(13))  # from 1,000 to 0.001
INTERCEPT_PENALTY = 0.01  # of a strength: the share of a class is known better than anything else
MAX_ROWS_TO_TEMPER = 2500  # a few dozen weights need no more
BASE_RATE_ROWS = 2.0  # the vote counts as many rows for the base rate before it has seen any
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


def fit_corrections(given: FitRows, plan: FitPlan) -> Corrections:
    """Corrections fitted to rows; shares and strengths see answers to rows left out only."""
    centre = fit_centre(given)
    members, answers = _fit_members(given, plan, centre)
    judged = np.flatnonzero(given.model_of_row >= 0)
    answers = [a[judged] for a in answers]
    group, weight, fold = given.group[judged], given.weight[judged], given.fold[judged]
    prior_rows = np.full(len(members), 1 / len(members))
    prior_rows[0] += BASE_RATE_ROWS
    shares = fit_shares(answers, group, weight, prior_rows)
    if len(given.judged) > 1:
        voted = cross_vote(answers, group, weight, fold, prior_rows)
    else:
        voted = mix_answers(answers, shares)
    kept = np.flatnonzero(shares >= MIN_MEMBER_SHARE)
    return Corrections(
        centre.temperings[-1],
        given.counts.encoding,
        tuple(members[k] for k in kept),
        shares[kept] / shares[kept].sum(),
        out_of_fold=OutOfFoldAnswers(log_normalise(voted), group, weight),
    )


def fit_centre(given: FitRows) -> Centre:
    """The tempering of each model, fitted to rows that it does not leave out."""
    temperings, tables, text_logits = [], [], []
    owner = np.repeat(np.arange(len(given.counts.encoding.columns)), np.diff(given.counts.encoding.starts))
    for m, folds in enumerate(given.models):
        rows = np.flatnonzero(~np.isin(given.fold, folds))[:MAX_ROWS_TO_TEMPER]
        tempering = fit_tempering(given.make_terms(m, rows), given.group[rows], given.weight[rows])
        column_weights = tempering.weights[1 + given.column_parts]
        prior = tempering.weights[0] * given.counts.log_prior(*folds)
        tables.append(np.column_stack([prior, given.counts.log_ratios(*folds) * column_weights[owner]]))
        temperings.append(tempering)
        text_logits.append(temper_texts(tempering, given.texts[m] if given.texts else None, given))
    return Centre(temperings, np.stack(tables), np.stack(text_logits, axis=1))


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
    with_tokens = plan.refine and len(given.text_parts) > 0
    no_pairs = np.zeros((0, 2), dtype=np.int64)
    features = make_features(given.rows, given.counts.encoding.starts, no_pairs, with_tokens)
    problem = _make_problem(given, features, centre.text_logits)
    weights = np.zeros((features.width, len(given.models), given.n_classes))
    weights[: centre.tables.shape[2]] = centre.tables.transpose(2, 0, 1)
    start = to_logits(weights)
    solution = solve_lockstep(problem, start, STRENGTHS if plan.refine else (), make_penalty(features.width))
    members.append(LinearMember(to_classes(solution.weights[:, -1]), no_pairs, with_tokens, plan.refine))
    answers.append(log_normalise(to_classes(solution.left_out)))
    columns = len(given.column_parts)
    if plan.together and plan.refine and columns > 1:
        pairs, paired = _fit_pairs(given, centre, problem, features, solution)
        members.append(LinearMember(to_classes(paired.weights[:, -1]), pairs, with_tokens, plan.refine))
        answers.append(log_normalise(to_classes(paired.left_out)))
    numbers = given.rows.scores.shape[1]
    if plan.together and 0 < numbers <= MAX_GAUSSIAN_COLUMNS:
        member, answer = _fit_gaussian(given, centre)
        members.append(member)
        answers.append(answer)
    return members, answers


def _make_problem(given: FitRows, features: SparseRows, text_logits: Array) -> LockstepProblem:
    offset = pad_columns(to_logits(text_logits).reshape(len(text_logits), -1)) if len(given.text_parts) else None
    return LockstepProblem(
        features, given.group, given.weight, given.model_of_row, given.n_classes, len(given.judged), offset
    )


def _fit_pairs(
    given: FitRows, centre: Centre, problem: LockstepProblem, features: SparseRows, columns: Solution
) -> tuple[Array, Solution]:
    """The chosen pairs, and the regression with them, centred on that without them."""
    importance = measure_importance(given, centre)
    pairs, chosen = choose_pairs(given.rows.levels, columns.logits, problem, importance)
    both = join_columns([features, encode_pairs(given.rows.levels, pairs)])
    n_cells = len(pairs) * N_LEVELS**2
    start = np.concatenate([columns.weights, np.zeros((n_cells, *columns.weights.shape[1:]))])
    allowed = np.concatenate(
        [np.ones((features.width, chosen.shape[1]), dtype=bool), np.repeat(chosen, N_LEVELS**2, axis=0)]
    )
    wider = _make_problem(given, both, centre.text_logits)
    return pairs, solve_lockstep(wider, start, PAIR_STRENGTHS, make_penalty(both.width), allowed)


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
    padded = np.pad(tables, ((0, 0), (0, 0), (0, 1)))
    for m in range(len(given.judged)):
        at = np.flatnonzero(model == m)
        codes = given.rows.codes[at]
        cells = np.where(codes >= 0, 1 + codes + encoding.starts[:-1], -1)
        base[at] += tables[m, :, 0] + padded[m][:, cells].sum(axis=2).T
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
