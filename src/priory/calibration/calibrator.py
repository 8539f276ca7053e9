"""Fit corrections: members and their pool, each judged by the model without the fold it is judged on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeCounts, RowFolds, assign_folds, choose_pairs, encode_cells
from priory.calibration.corrections import (
    CalibratableModel,
    Corrections,
    count_terms_per_row,
    find_column_parts,
    find_text_parts,
    step_tempering,
)
from priory.calibration.encoded_rows import EncodedRows, GapCompletion, look_up_codes
from priory.calibration.logit_terms import to_classes, to_logits
from priory.calibration.members import NO_PAIRS, LinearMember, Member, make_constant
from priory.calibration.number_members import MAX_GAUSSIAN_COLUMNS, GaussianMember, SlopeMember, choose_gaussian
from priory.calibration.solvers import LockstepProblem, Solution, solve_lockstep
from priory.calibration.table_encoding import N_LEVELS, TableEncoding, make_one_hot
from priory.calibration.tempering import (
    Centre,
    FitRows,
    fit_centre,
    fit_one_exponent,
    fit_pool,
    fit_tempering,
    measure_importance,
)
from priory.calibration.text_refinement import (
    NO_FINER_TOKENS,
    OTHER_TEXTS,
    FinerTokens,
    Reach,
    collect_text_terms,
    refine_texts,
)
from priory.calibration.tree_member import fit_trees
from priory.core.logspace import log_normalise
from priory.core.sharding import limit_blas_threads, space_evenly
from priory.core.sparse_rows import SparseRows, join_columns, pad_columns
from priory.model.cells import Cells, take_rows
from priory.model.open_model import RowEvidence

STRENGTHS = tuple(100 * 10 ** (-0.5 * k) for k in range(9))  # from 100 to 0.01
STRENGTHS_OF_PAIRS = tuple(1000 * 10 ** (-0.5 * k) for k in range(13))  # from 1,000 to 0.001
INTERCEPT_PENALTY = 0.01  # relative to other weights: class shares are estimated best
MAX_REFINED_COLUMNS = 300  # the others are only tempered
MIN_ROWS_OF_CELL = 2  # cells of pairs with fewer rows get no weight


def fit_corrections(given: FitRows) -> Corrections:
    """Fit corrections to rows; exponents and strengths are chosen by out-of-fold predictions only."""
    centre = fit_centre(given)
    members, answers = _fit_members(given, centre)
    judged = np.flatnonzero(given.model_of_row >= 0)
    pool = fit_pool([a[judged] for a in answers], given.group[judged], given.weight[judged])
    kept = np.flatnonzero(pool.exponents)
    used = tuple(members[k] for k in kept)
    pool = replace(pool, exponents=pool.exponents[kept])
    return Corrections(centre.temperings[-1], given.counts.encoding, centre.evidence, used, pool)


def _fit_members(given: FitRows, centre: Centre) -> tuple[list[Member], list[Array]]:
    """Return the members, and the out-of-fold log probabilities (rows, classes) of the base rate and of each."""
    prior = np.stack([given.counts.log_prior(*folds) for folds in given.models])
    found: list[tuple[Member, Array]] = []
    importance = measure_importance(given, centre)
    columns = _fit_columns(given, centre, importance)
    with_tokens = len(given.text_parts) > 0
    found.append((LinearMember(columns.weights, NO_PAIRS, with_tokens), columns.solution.answers))
    n_columns = len(given.rows.varied)
    if n_columns > 1:
        pairs, added, solution = _fit_pairs(given, columns, importance)
        if np.isfinite(solution.strength):  # an infinite strength means that pairs gained nothing
            weights = np.concatenate([columns.weights, added])
            found.append((LinearMember(weights, pairs, with_tokens), solution.answers))
    if 0 < n_columns <= MAX_REFINED_COLUMNS:
        found.append(_fit_slopes(given, centre, of_scores=True))
        if len(given.varied_numbers):
            found.append(_fit_slopes(given, centre, of_scores=False))
    if n_columns:
        trees = fit_trees(given, centre.text_logits)
        found += [] if trees is None else [trees]
    is_enough = given.weight.sum() >= MIN_ROWS_FOR_GAUSSIAN
    if is_enough and 0 < len(given.varied_numbers) <= MAX_GAUSSIAN_COLUMNS:
        found.append(_fit_gaussian(given, centre))
    base = log_normalise(prior[given.model_of_row])
    return [member for member, _ in found], [base, *(answers for _, answers in found)]


class RefinedColumns(NamedTuple):
    """The regression on codes and tokens."""

    problem: LockstepProblem
    solution: Solution
    weights: Array  # (features, classes): of all codes and tokens, from the regression of all rows


def _fit_columns(given: FitRows, centre: Centre, importance: Array) -> RefinedColumns:
    """Fit a regression on tokens and on the codes of the most important columns, centred on tempered naive Bayes."""
    encoding, varied = given.counts.encoding, given.rows.varied
    ranked = np.argsort(-importance[:, varied], axis=1, kind="stable")[:, :MAX_REFINED_COLUMNS]
    codes, places = _encode_columns(given, varied[np.unique(ranked)])
    features = join_columns([make_constant(len(given.group)), codes, *given.rows.tokens])
    problem = _make_problem(given, features, centre.logits)
    solution = solve_lockstep(problem, STRENGTHS, _make_penalty(features.width))
    # Put the weights (features, classes) of the chosen codes and of the tokens into the table of all codes.
    added = to_classes(solution.weights[:, -1])
    n_tokens = features.width - 1 - len(places)
    weights = np.zeros((1 + encoding.n_weighed + n_tokens, given.n_classes))
    weights[np.append(0, 1 + places)] = added[: 1 + len(places)]
    weights[1 + encoding.n_weighed :] = added[1 + len(places) :]
    return RefinedColumns(problem, solution, weights)


def _encode_columns(given: FitRows, columns: Array) -> tuple[SparseRows, Array]:
    """Return one-hot codes of some columns, but for rare labels, and the places of these codes among all but these."""
    encoding = given.counts.encoding
    starts = np.concatenate([[0], np.cumsum(np.diff(encoding.starts)[columns])]).astype(np.int64)
    places = np.flatnonzero(np.isin(encoding.column_of_code, columns))
    weighed = np.flatnonzero(~encoding.is_rare[places])
    codes = make_one_hot(given.rows.codes[:, columns], starts).take_columns(weighed)
    return codes, (np.cumsum(~encoding.is_rare) - 1)[places[weighed]]


def _make_problem(given: FitRows, features: SparseRows, logits: Array) -> LockstepProblem:
    """Return a regression on features with the offset ``logits`` (rows, models, logits)."""
    offset = pad_columns(logits.reshape(len(logits), -1))
    return LockstepProblem(
        features, given.group, given.weight, given.model_of_row, given.n_classes, len(given.judged), offset
    )


def _fit_pairs(given: FitRows, columns: RefinedColumns, importance: Array) -> tuple[Array, Array, Solution]:
    """Choose pairs of columns; return them, the weights of their cells, and the solution on top of the columns'."""
    levels, logits, varied = given.rows.levels, columns.solution.logits, given.rows.varied
    pairs, penalty = choose_pairs(levels[:, varied], logits, columns.problem, importance[:, varied])
    pairs = varied[pairs]
    every_cell, cells = encode_cells(levels, pairs), N_LEVELS**2
    shared = np.flatnonzero(np.bincount(every_cell.indices, minlength=every_cell.width) >= MIN_ROWS_OF_CELL)
    problem = _make_problem(given, every_cell.take_columns(shared), logits)
    solution = solve_lockstep(problem, STRENGTHS_OF_PAIRS, penalty[shared // cells])
    weights = np.zeros((len(pairs) * cells, given.n_classes))  # zero for cells with too few rows
    weights[shared] = to_classes(solution.weights[:, -1])
    kept = np.isfinite(penalty[:, -1])  # chosen by the model of all rows
    return pairs[kept], weights[np.repeat(kept, cells)], solution


def _fit_slopes(given: FitRows, centre: Centre, of_scores: bool) -> tuple[SlopeMember, Array]:
    """Fit a regression on labels and numbers, with the tempered evidence of texts as offset."""
    encoding = given.counts.encoding
    codes, places = _encode_columns(given, given.rows.varied[~encoding.is_number[given.rows.varied]])
    numbers = (given.rows.scores if of_scores else given.rows.standardised)[:, given.varied_numbers]
    features = join_columns([make_constant(len(given.group)), codes, SparseRows.from_dense(numbers.astype(np.float32))])
    problem = _make_problem(given, features, to_logits(centre.text_logits))
    solution = solve_lockstep(problem, STRENGTHS, _make_penalty(features.width))
    added = to_classes(solution.weights[:, -1])
    weights = np.zeros((1 + encoding.n_weighed, given.n_classes))
    slopes = np.zeros((encoding.n_numbers, given.n_classes))
    weights[np.append(0, 1 + places)] = added[: 1 + len(places)]
    slopes[given.varied_numbers] = added[1 + len(places) :]
    return SlopeMember(weights, slopes, of_scores), solution.answers


def _fit_gaussian(given: FitRows, centre: Centre) -> tuple[GaussianMember, Array]:
    """Fit the Gaussian of all numbers, with the tempered evidence of labels and texts."""
    encoding = given.counts.encoding
    tables = centre.tables.copy()  # (models, classes, 1 + codes), without the codes of numbers
    tables[:, :, 1 + np.flatnonzero(encoding.is_number[encoding.column_of_code])] = 0.0
    rows, model = np.arange(len(given.group)), given.model_of_row
    base = centre.text_logits[rows, model].copy()  # (rows, classes): out-of-fold logits of texts, prior and labels
    for m in range(len(given.judged)):
        at = np.flatnonzero(model == m)
        base[at] += tables[m, :, 0] + look_up_codes(tables[m, :, 1:], given.rows.codes[at], encoding.starts)
    numbers = given.varied_numbers
    chosen = choose_gaussian(given.rows.scores[:, numbers], given.group, given.weight, model, base)
    return GaussianMember(
        chosen.gaussian.place_columns(numbers, encoding.n_numbers), chosen.temperature
    ), chosen.left_out


def _make_penalty(features: int) -> Array:
    """(features, 1): the relative penalty of each weight; the first feature is the intercept."""
    penalty = np.ones((features, 1))
    penalty[0] = INTERCEPT_PENALTY
    return penalty


CALIBRATION_FOLDS, FOLDS_OF_FEW_ROWS = 5, 10
MAX_ROWS_FOR_MORE_FOLDS, MAX_PARTS_FOR_MORE_FOLDS = 500, 300
MIN_ROWS_TO_CALIBRATE, MIN_ROWS_TO_TEMPER = 15, 4  # with fewer, one exponent tempers; or naive Bayes answers as it is
MIN_ROWS_FOR_GAUSSIAN = 50  # with fewer, its shrinkage cannot be chosen
MIN_TEXTS_OF_CLASS = 250  # kept rows for each class: with fewer, corrections of texts are fitted with the counts of all
MAX_CLASSES_TO_CALIBRATE = 20_000  # with more, even the predictions for fifty rows take too much memory
# About as many rows are left out in turn; of very many, one fold is enough.
ENOUGH_JUDGED_ROWS, MAX_ROWS_FOR_ALL_FOLDS = 3_000, 5_000
# With more classes a model is only tempered: a class has too few rows to fit weights of codes or tokens.
MAX_CLASSES_TO_REFINE, MAX_CLASSES_TO_REFINE_TEXTS = 64, 1000
MAX_TERMS_TO_CALIBRATE, MAX_TERMS_TO_TEMPER = 1 << 24, 1 << 21  # numbers in the evidence terms of the rows used
MAX_SHARE_AT_ONCE = 0.1  # of all rows: up to this share, rows are left out together
MAX_BATCH_ROWS_TO_TEMPER = 512  # rows of a batch that the tempering learns from


@dataclass(frozen=True)
class Calibrator:
    """Fit corrections to at most ``max_rows`` rows."""

    max_rows: int
    # only for models of a single text:
    refine: bool = True  # whether a regression on its words is fitted
    finer: FinerTokens = NO_FINER_TOKENS  # what that regression may weigh besides words
    reach: Reach = OTHER_TEXTS  # how far it goes from naive Bayes
    keeps_rows: bool = True  # whether rows are kept with the corrections, to complete others

    def reads_sample_alone(self, model: CalibratableModel, weight: Array | None) -> bool:
        """Whether corrections are a function of the rows they are fitted to, but for the evidence of all rows."""
        is_enough = weight is None or weight.sum() >= MIN_ROWS_TO_CALIBRATE
        if model.take_texts()[1] and weight is not None:
            is_enough &= len(weight) >= MIN_TEXTS_OF_CLASS * len(model.classes)
        return is_enough and not _has_many_classes(model)

    def fit(
        self,
        model: CalibratableModel,
        cells: Sequence[Cells],
        group: Array,
        weight: Array | None,
        n_rows: float | None = None,
    ) -> Corrections | None:
        """Return corrections fitted to rows that the model has learned, or None if there are too few.

        They are a sample of about ``n_rows`` rows, unless they are all.
        """
        if len(model.classes) > MAX_CLASSES_TO_CALIBRATE:
            return None
        every = np.ones(len(group)) if weight is None else weight.astype(float)
        if self.reads_sample_alone(model, every):
            own_n = np.bincount(group, every, len(model.classes)).astype(float)
            is_all = np.array_equal(own_n, model.statistics.n)
            model = model if is_all else model.learn_sample_alone(cells, group, weight, own_n)
        # A row that is alone in its class is not judged: the model without it does not know the class.
        is_alone = every >= model.statistics.n[group]
        n_judged = every[~is_alone].sum()
        if n_judged < MIN_ROWS_TO_CALIBRATE or _has_many_classes(model) or _has_text_alone(model):
            every = np.where(is_alone, 0.0, every)
        present = np.flatnonzero(every > 0)
        used = present[self._choose_rows(model, len(present))]
        some, own, counts = take_rows(cells, used), group[used], every[used]
        if n_judged < MIN_ROWS_TO_TEMPER or len(np.unique(own)) < 2:
            return None
        order, judged = _assign_folds(some, own, counts, model.n_parts, is_alone[used])
        with limit_blas_threads():  # the problems are small: threads would wait for each other
            ordered = take_rows(some, order.rows), own[order.rows]
            corrections = self._fit_ordered(model, *ordered, order, judged, n_rows)
        if corrections.reads_tokens and not corrections.tokens:
            corrections = replace(corrections, tokens=model.choose_token_features())
        if corrections.encoding.columns and corrections.members:
            _, first = np.unique(order.rows, return_index=True)  # in canonical order, each row once
            rows = order.rows[np.sort(first)]
            kept = take_rows(some, rows)
            gaps = GapCompletion.of(corrections.encoding, kept, counts[rows], self.keeps_rows)
            return replace(corrections, gaps=gaps)
        return corrections

    def _fit_ordered(
        self,
        model: CalibratableModel,
        cells: Sequence[Cells],
        group: Array,
        order: RowFolds,
        judged: Array,
        n_rows: float | None,
    ) -> Corrections:
        """Fit corrections to rows in canonical order."""
        if order.weight.sum() < MIN_ROWS_TO_CALIBRATE:
            return _fit_one_exponent(model, cells, group, order)
        if _has_many_classes(model):
            few = order.weight.sum() <= MAX_SHARE_AT_ONCE * model.statistics.n.sum()
            return _fit_tempering_alone(model, cells, group, order._replace(fold=0 * order.fold) if few else order)
        if _has_text_alone(model):
            if self.refine:
                return refine_texts(model, cells, group, order, judged, self.finer, self.reach)
            return _fit_tempering_alone(model, cells, group, order)
        return fit_corrections(_collect_rows(model, cells, group, order, judged, n_rows))

    def _choose_rows(self, model: CalibratableModel, n_rows: int) -> Array:
        """Return the positions of the rows to fit to, evenly spaced if there are too many."""
        max_terms = MAX_TERMS_TO_TEMPER if _has_many_classes(model) else MAX_TERMS_TO_CALIBRATE
        return space_evenly(n_rows, min(self.max_rows, max_terms // count_terms_per_row(model)))

    def update(
        self,
        model: CalibratableModel,
        corrections: Corrections,
        cells: Sequence[Cells],
        group: Array,
        weight: Array | None,
    ) -> Corrections:
        """Return corrections whose tempering is updated by a batch that the model has not learned yet.

        Only the weights of the class prior and of the texts are updated. The members, which correct columns, stay.
        """
        texts, blocks = model.take_texts()
        tempers_columns = not corrections.members and model.n_parts > len(blocks)
        if not blocks or tempers_columns or len(corrections.tempering.weights) != 1 + model.n_parts:
            return corrections
        max_rows = max(1, MAX_TERMS_TO_TEMPER // count_terms_per_row(model))
        used = space_evenly(len(group), min(MAX_BATCH_ROWS_TO_TEMPER, max_rows))
        terms = texts.evidence_terms(take_rows([cells[b] for b in blocks], used))
        counts = np.ones(len(used)) if weight is None else weight[used]
        parts, belief = np.append(0, 1 + find_text_parts(model)), corrections.tempering
        # values (classes, 1 + texts), lengths (1 + texts,): one Fisher step for each row
        for values, lengths, own, count in zip(
            terms.values, terms.lengths, group[used].tolist(), counts.tolist(), strict=True
        ):
            belief = step_tempering(belief, RowEvidence(parts, values, lengths), own, count)
        return replace(corrections, tempering=belief)


def _assign_folds(
    cells: Sequence[Cells], group: Array, weight: Array, n_parts: int, is_alone: Array
) -> tuple[RowFolds, Array]:
    """Return the rows in folds, and the folds used for validation; rows alone in their class have another fold."""
    few = weight.sum() <= MAX_ROWS_FOR_MORE_FOLDS and n_parts <= MAX_PARTS_FOR_MORE_FOLDS
    folds = FOLDS_OF_FEW_ROWS if few else CALIBRATION_FOLDS
    order, judged = assign_folds(cells, group, weight, folds), np.zeros(1, dtype=np.int64)
    if len(group) <= MAX_ROWS_FOR_ALL_FOLDS:
        own = np.unique(order.fold[~is_alone[order.rows]])  # a fold may be empty
        judged = own[: -(-folds * ENOUGH_JUDGED_ROWS // len(order.rows))]
    return order._replace(fold=np.where(is_alone[order.rows], folds, order.fold)), judged


def _has_text_alone(model: CalibratableModel) -> bool:
    """Whether each row is a single text."""
    return model.n_parts == 1 and not any(map(len, find_column_parts(model)))


def _has_many_classes(model: CalibratableModel) -> bool:
    """Whether a model has so many classes that it is only tempered."""
    most = MAX_CLASSES_TO_REFINE_TEXTS if _has_text_alone(model) else MAX_CLASSES_TO_REFINE
    return len(model.classes) > most


def _fit_tempering_alone(
    model: CalibratableModel, cells: Sequence[Cells], group: Array, order: RowFolds
) -> Corrections:
    """Fit a tempering and nothing else: it has too few weights to need nested folds."""
    terms = collect_text_terms(model, cells, group, order.weight, order.fold, [-1])[0]
    return Corrections(fit_tempering(terms, group, order.weight))


def _fit_one_exponent(model: CalibratableModel, cells: Sequence[Cells], group: Array, order: RowFolds) -> Corrections:
    """Fit one exponent of all evidence but the class prior."""
    terms = collect_text_terms(model, cells, group, order.weight, order.fold, [-1])[0]
    return Corrections(fit_one_exponent(terms, group, order.weight))


def _collect_rows(
    model: CalibratableModel, cells: Sequence[Cells], group: Array, order: RowFolds, judged: Array, n_rows: float | None
) -> FitRows:
    """Return learned rows with their out-of-fold scores."""
    weight, fold = order.weight, order.fold
    encoding = TableEncoding.of(cells, weight, n_rows)
    no_texts, features = np.zeros((len(group), len(model.classes))), model.choose_token_features()
    rows = EncodedRows(encoding, cells, lambda: model.encode_tokens(features, cells), no_texts)
    counts = CodeCounts.of(encoding, rows.codes, group, weight, fold, (int(fold.max()) + 1, len(model.classes)))
    texts, blocks = model.take_texts()
    terms = []
    if blocks:
        documents = [cells[b] for b in blocks]
        terms = collect_text_terms(texts, documents, group, weight, fold, [*judged.tolist(), -1])
    column_parts = np.concatenate([*find_column_parts(model), np.zeros(0, dtype=np.int64)]).astype(np.int64)
    return FitRows(
        rows, counts, group, weight, fold, judged, terms, column_parts, find_text_parts(model), model.n_parts
    )
