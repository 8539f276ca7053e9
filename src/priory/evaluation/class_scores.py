"""The scores of each class against all others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from priory.core.typing import Array
from priory.evaluation.intervals import UNKNOWN_SHARE, Interval

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores


class ClassScores(NamedTuple):
    """The scores of one class against all others."""

    label: Any
    rows: float
    precision: Interval
    recall: Interval
    f1: Interval
    roc_area: Interval
    average_precision: Interval


class RowsByClass(NamedTuple):
    """The weight of rows by class: (classes,) each."""

    answered: Array  # rows with this answer
    true: Array  # rows of this class
    both: Array

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
    """The scores of some classes, given by their numbers."""
    rows = RowsByClass.of(scores)
    either = rows.either
    return [
        ClassScores(
            scores.classes[c],
            float(rows.true[c]),
            scores.measure_share(rows.both[c], rows.answered[c]),
            scores.measure_share(rows.both[c], rows.true[c]),
            _f1_from_jaccard(scores.measure_share(rows.both[c], either[c])),
            *_measure_areas(scores, scores.classes[c], rows.true[c]),
        )
        for c in chosen
    ]


def find_worst_classes(scores: Scores, max_classes: int) -> list[int]:
    """The numbers of the classes of lowest F1, the worst first; classes without rows and answers come last."""
    rows = RowsByClass.of(scores)
    jaccard = np.divide(rows.both, rows.either, out=np.full(len(rows.both), np.inf), where=rows.either > 0)
    numbers: list[int] = np.argsort(jaccard, kind="stable")[:max_classes].tolist()  # F1 rises with it
    return numbers


def _measure_areas(scores: Scores, label: Hashable, rows: float) -> tuple[Interval, Interval]:
    """The areas under the curves of a class; nothing is known of a class without rows."""
    if rows == 0:
        return UNKNOWN_SHARE, UNKNOWN_SHARE
    return scores.roc(label).area, scores.precision_recall(label).area


def _f1_from_jaccard(jaccard: Interval) -> Interval:
    """Return F1 = 2j / (1 + j) from j, the share of hits among rows that are or were predicted as the class."""
    return Interval(*(2 * j / (1 + j) for j in jaccard))
