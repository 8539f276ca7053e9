"""Cross-validation by subtraction: each fold is scored by the model of ``total - fold``; and p-values of unusual rows.

How unusual a row is under everything learned is judged by the rows that the model keeps, each left out. A row of none
of the classes is unusual in two ways: its density p(x) is small, and no class is certain. Both are ranked among
left-out rows, the logarithms of the ranks are added (Fisher's method), and the rank of that sum among left-out rows is
the p-value. For rows like those learned it is uniform or larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import log_normalise
from priory.core.sharding import space_evenly
from priory.errors import DataError, StaleModelError
from priory.evaluation.prediction_sets import FoldAnswers
from priory.learning.learned import LabelEncoder, Learned, answer, read_learned_rows, sample_learned_rows
from priory.learning.row_kind import Batch
from priory.model.cells import Cells, RowSample, split_weights, take_rows
from priory.model.model_statistics import ModelStatistics

if TYPE_CHECKING:
    from priory.evaluation.membership import MembershipAudit
    from priory.evaluation.scores import Scores

MAX_JUDGED_ANSWERS = 1 << 25  # rows x classes: fewer rows of more classes are judged
MAX_ROWS_JUDGED = 100_000  # distinct rows of parts that are left out one by one
MAX_ROWS_FOR_TEN_FOLDS = 1000  # rows are judged by ten folds up to here, and by five beyond


def judge_sample(learned: Learned, sample: RowSample, folds: object, positions: Array | None = None) -> Scores:
    """Score each row of a sample by the model without its fold; a row that occurs often is in several folds.

    With very many classes only some rows of each fold are judged; all of them are left out.
    """
    if folds == "auto":
        folds = count_folds(sample)
    if not isinstance(folds, int) or folds < 2:
        raise DataError(f"folds is {folds!r}; use 'auto', a number from 2, or a scikit-learn splitter with X and y.")
    rows, weights, answers = [], [], []
    max_rows = max(1, MAX_JUDGED_ANSWERS // (folds * len(learned.classes)))  # of a fold
    for fold, out in split_folds(sample, folds):
        answers.append(answer_without(learned, count_left_out(learned, out), take_rows(out.blocks, slice(max_rows))))
        rows.append(fold[:max_rows])
        weights.append(out.weight[:max_rows])
    judged, weight = np.concatenate(rows), np.concatenate(weights)
    scores = make_scores(learned, sample.group[judged], np.concatenate(answers), weight)
    return replace(scores, folds=folds, positions=None if positions is None else positions[judged])


def count_folds(sample: RowSample) -> int:
    """Ten folds, or five of many rows."""
    return 10 if len(sample) <= MAX_ROWS_FOR_TEN_FOLDS else 5


def split_folds(sample: RowSample, folds: int) -> Iterator[tuple[Array, RowSample]]:
    """The rows of each fold, by position and as a sample; a row that occurs often is in several folds."""
    for fold_weight in split_weights(sample, folds):
        fold = np.flatnonzero(fold_weight)
        if len(fold):
            # fold_weight (sample rows,): how many copies of each row the fold leaves out
            yield fold, sample.take(fold, fold_weight[fold])


def count_left_out(learned: Learned, out: RowSample) -> ModelStatistics:
    """The statistics of learned rows, to be subtracted."""
    return replace(learned.model().observe(out.blocks, out.group, out.weight), sample=out)


def answer_without_folds(learned: Learned, X: object) -> Iterator[FoldAnswers]:
    """The answers of the models without each fold, to the rows of the fold and to rows X; the models are kept."""
    sample = check_kept_rows(learned)

    def leave_out(_: object) -> list[tuple[Learned, RowSample, Array]]:
        found = []
        for _, out in split_folds(sample, count_folds(sample)):
            rest = subtract_part(learned, count_left_out(learned, out))
            answers = rest.rows.answer(rest, out.blocks)
            found.append((rest, out, answers[np.arange(len(out)), out.group]))
        return found

    cells = learned.rows.read_cells(learned.rows.read(X, "answer", learned.statistics)[1])
    for rest, out, own in learned.statistics.derive("models of folds", leave_out, repr(learned.rows.parameters)):
        yield FoldAnswers(out.group, own, out.weight, rest.rows.answer(rest, cells))


def check_kept_rows(learned: Learned) -> RowSample:
    """The rows that the model keeps; raises if it keeps none."""
    if learned.statistics.sample is None:
        raise StaleModelError("the model keeps no rows to leave out; declare memory above 0, and calibrate='loo'.")
    return learned.statistics.sample


def judge_kept_rows(learned: Learned) -> Scores:
    """Score the rows that the model keeps, each by a model without its fold; computed once for each record."""
    sample = check_kept_rows(learned)
    key, rows = repr(learned.rows.parameters), np.arange(len(sample))
    return learned.statistics.derive("left-out scores", lambda _: judge_sample(learned, sample, "auto", rows), key)


def judge_splits(learned: Learned, batch: Batch, group: Array, splits: Iterable[tuple[Array, Array]]) -> Scores:
    """Score the test rows of each split by the model of its training rows."""
    cells, tested, answers = learned.rows.read_cells(batch), [], []
    model, rows = learned.model(), learned.rows
    for train, test in splits:
        # more than the test rows where a split skips rows, as with time series
        out = np.setdiff1d(np.arange(len(group)), train)
        left_out, own = take_rows(cells, out), group[out]
        part = model.observe(left_out, own, None)
        if learned.statistics.sample is not None:
            # the whole part as its own sample: subtraction removes its rows from the kept ones too
            part = replace(part, sample=rows.sample(left_out, learned.classes, own, None, len(out))[0])
        answers.append(answer_without(learned, part, take_rows(cells, test)))
        tested.append(test)
    judged = np.concatenate(tested)
    scores = make_scores(learned, group[judged], np.concatenate(answers))
    return replace(scores, positions=judged, folds=len(tested) if len(tested) > 1 else None)


def sample_part(learned: Learned, X: object, encode: LabelEncoder) -> RowSample:
    """Sample some learned rows; samples of parts add up to a sample of all."""
    batch, group, weight = read_learned_rows(learned, X, encode)
    if learned.rows.is_calibrated:
        return sample_learned_rows(learned, batch, group, weight)[0]
    cells = learned.rows.read_cells(batch)
    return learned.rows.sample(cells, learned.classes, group, weight, MAX_ROWS_JUDGED)[0]


def judge_parts(learned: Learned, sample: RowSample) -> Scores:
    """Score a sample of learned rows, by folds or, without corrections, by leave-one-out."""
    if learned.rows.is_calibrated:
        return judge_sample(learned, sample, "auto")
    answers = answer_left_out(learned, sample.blocks, sample.group)
    return make_scores(learned, sample.group, answers, sample.weight)


def answer_without(learned: Learned, part: ModelStatistics, cells: Sequence[Cells]) -> Array:
    """(rows, classes): log p(c | x) by the model without ``part``, its corrections derived from the rest."""
    rest = subtract_part(learned, part)
    return rest.rows.answer(rest, cells)


def subtract_part(learned: Learned, part: ModelStatistics) -> Learned:
    """The model without ``part``, its corrections still to be derived."""
    return Learned(learned.rows, learned.statistics - part, unlabelled=learned.unlabelled)


def answer_left_out(learned: Learned, cells: Sequence[Cells], group: Array) -> Array:
    """(rows, classes): leave-one-out log p(c | x) of learned rows, uncorrected."""
    model = learned.model()
    return log_normalise(model.leave_one_out(cells, group), model.leave_one_out_prior(group))


def audit_membership(learned: Learned, sample: RowSample) -> MembershipAudit:
    """Audit whether answers give away which rows of a sample were learned; subtraction makes the other models.

    Without corrections every row is left out exactly, by itself. Corrections are derived again for each of a few folds:
    each model has learned the rows of the other folds, and not its own.
    """
    from priory.evaluation.membership import MembershipAudit  # answers do without it

    model, rows = learned.model(), np.arange(len(sample))
    if not learned.rows.is_calibrated:
        answers = log_normalise(model.log_joint(sample.blocks), model.log_prior())
        left_out = answer_left_out(learned, sample.blocks, sample.group)
        return MembershipAudit.of(answers[None, rows, sample.group], left_out[rows, sample.group])
    folds = count_folds(sample)
    fold = rows % folds  # in the order of the hashes, which is random
    scores = np.empty((folds, len(sample)))
    for f in range(folds):
        out = sample.take(np.flatnonzero(fold == f))
        scores[f] = answer_without(learned, count_left_out(learned, out), sample.blocks)[rows, sample.group]
    is_out = fold == np.arange(folds)[:, None]  # (folds, rows)
    return MembershipAudit.of(np.where(is_out, np.nan, scores), scores[fold, rows])


def make_scores(learned: Learned, group: Array, log_p: Array, weight: Array | None = None) -> Scores:
    """Score log probabilities (rows, classes) against the true classes (rows,)."""
    from priory.evaluation.scores import Scores  # answers do without it

    return Scores.of(learned.classes[group], log_p, learned.classes, weight, logs=True)


# -- how unusual a row is ----------------------------------------------------------------------------------------------


MAX_ROWS_RANKED = 2000  # kept rows that new ones are compared with
MAX_ROWS_SUBTRACTED = 200  # if each is left out by subtraction, which is slower


@dataclass(frozen=True)
class Ranks:
    """Values of left-out rows, sorted, with their cumulative weights."""

    values: Array  # (rows,)
    weights: Array  # (rows,): of this value and all smaller ones

    @classmethod
    def of(cls, values: Array, weight: Array) -> Ranks:
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.cumsum(weight[order]))

    def find_share(self, x: Array) -> Array:
        """(rows,): the share of values up to x, counting x itself: never zero."""
        below = np.append(0.0, self.weights)[np.searchsorted(self.values, x, side="right")]
        return np.asarray((1 + below) / (1 + self.weights[-1]))


@dataclass(frozen=True)
class UsualRows:
    """What is usual: the density, the certainty, and the combination of both among left-out rows."""

    density: Ranks
    certainty: Ranks
    combined: Ranks

    @classmethod
    def of(cls, learned: Learned) -> UsualRows:
        """Leave out the rows that the model keeps, or some of them."""
        scores, sample, model = judge_kept_rows(learned), learned.statistics.sample, learned.model()
        assert sample is not None
        assert scores.positions is not None
        limit = MAX_ROWS_RANKED if model.can_leave_one_out else MAX_ROWS_SUBTRACTED
        some = space_evenly(len(scores.positions), limit)
        rows, weight = scores.positions[some], scores.weight[some]
        values = model.leave_one_out_density(take_rows(sample.blocks, rows), sample.group[rows])
        certainties = scores.log_probabilities[some].max(axis=1)
        density, certainty = Ranks.of(values, weight), Ranks.of(certainties, weight)
        return cls(density, certainty, Ranks.of(combine(density, certainty, values, certainties), weight))


def combine(density: Ranks, certainty: Ranks, values: Array, certainties: Array) -> Array:
    """(rows,): the sum of the log ranks of densities and certainties."""
    return np.asarray(np.log(density.find_share(values)) + np.log(certainty.find_share(certainties)))


def find_p_values(learned: Learned, X: object) -> Array:
    """(rows,): the share of rows like those learned that are at least as unusual."""
    usual = learned.statistics.derive("usual rows", lambda _: UsualRows.of(learned), repr(learned.rows.parameters))
    batch = learned.rows.read(X, "answer", learned.statistics)[1]
    values = learned.model().log_density(learned.rows.read_cells(batch))
    certainties = answer(learned, X, log_normalise).max(axis=1)
    return usual.combined.find_share(combine(usual.density, usual.certainty, values, certainties))
