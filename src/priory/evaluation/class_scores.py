"""One-versus-rest scores of each class: precision, recall, F1, ROC area, average precision."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from priory.core.typing import Array
from priory.evaluation.intervals import UNKNOWN_SHARE, Interval

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores


class ClassScores(NamedTuple):
    """One-versus-rest scores of one class."""

    label: Any
    rows: float
    precision: Interval
    recall: Interval
    f1: Interval
    roc_area: Interval
    average_precision: Interval


class RowsByClass(NamedTuple):
    """Total weight of the rows by class; each array is (classes,)."""

    answered: Array  # predicted as this class
    true: Array  # of this class
    both: Array  # true positives

    @classmethod
    def of(cls, scores: Scores) -> RowsByClass:
        k, right = len(scores.classes), scores.answer == scores.truth
        return cls(
            np.bincount(scores.answer, scores.weight, minlength=k),
            np.bincount(scores.truth, scores.weight, minlength=k),
            np.bincount(scores.truth[right], scores.weight[right], minlength=k),
        )

    @property
    def either(self) -> Array:
        return self.answered + self.true - self.both


def score_classes(scores: Scores, chosen: Iterable[int]) -> list[ClassScores]:
    """Return the scores of the classes with these indices."""
    rows = RowsByClass.of(scores)
    either = rows.either
    return [
        ClassScores(
            scores.classes[c],
            float(rows.true[c]),
            scores.measure_share(rows.both[c], rows.answered[c]),  # precision
            scores.measure_share(rows.both[c], rows.true[c]),  # recall
            _f1_from_jaccard(scores.measure_share(rows.both[c], either[c])),
            *_measure_areas(scores, scores.classes[c], rows.true[c]),
        )
        for c in chosen
    ]


def find_worst_classes(scores: Scores, max_classes: int) -> list[int]:
    """Return the indices of the classes with the lowest F1, worst first; classes without rows or answers come last."""
    rows = RowsByClass.of(scores)
    # (classes,): intersection over union of true and predicted rows, infinite where both are empty
    jaccard = np.divide(rows.both, rows.either, out=np.full(len(rows.both), np.inf), where=rows.either > 0)
    numbers: list[int] = np.argsort(jaccard, kind="stable")[:max_classes].tolist()  # F1 has the same order
    return numbers


def _measure_areas(scores: Scores, label: Hashable, rows: float) -> tuple[Interval, Interval]:
    """Return the areas under the ROC and precision-recall curves; NaN for a class without rows."""
    if rows == 0:
        return UNKNOWN_SHARE, UNKNOWN_SHARE
    return scores.roc(label).area, scores.precision_recall(label).area


def _f1_from_jaccard(jaccard: Interval) -> Interval:
    """Return F1 = 2j / (1 + j) from the Jaccard index j; the function increases, so it maps the bounds too."""
    return Interval(*(2 * j / (1 + j) for j in jaccard))
