"""What a model's probabilities are worth: each score with its interval, and always beside the base rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from priory.core.logspace import log, x_log_y
from priory.core.sample_weight import check_sample_weight
from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation import curves
from priory.evaluation import score_table as scorecard
from priory.evaluation.curves import Curve
from priory.evaluation.intervals import Interval, effective_sample_size, mean_interval, proportion_interval
from priory.evaluation.reliability import (
    N_RELIABILITY_BINS,
    ReliabilityBin,
    calibration_error,
    compute_reliability_bins,
)
from priory.models.explanation import format_value, import_pandas

MAX_WORST_CLASSES = 10  # classes shown
PROBABILITY_ROW_TOLERANCE = 1e-6  # rows of probabilities sum to one up to this


class BaseRate(NamedTuple):
    """What is reached without looking: always the commonest class, or always the shares of the classes."""

    label: Any
    accuracy: float
    log_loss: float
    brier: float


class ClassScores(NamedTuple):
    """One class against all others."""

    label: Any
    rows: float
    precision: Interval
    recall: Interval
    f1: Interval
    roc_area: Interval
    average_precision: Interval


@dataclass(frozen=True, eq=False)
class Scores:
    """Probabilities judged by what was true.

    >>> scores = Scores.of(["spam", "ham", "ham"], [[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]], ["ham", "spam"])
    >>> scores.confusion.tolist()  # a row for each true class, a column for each answer
    [[1.0, 1.0], [0.0, 1.0]]
    >>> f"{scores.accuracy:.2f}", round(scores.base.accuracy, 2)
    ('0.67 [0.21, 0.94]', 0.67)
    """

    classes: tuple[Any, ...]
    truth: Array  # the place of each row's label among the classes
    log_probabilities: Array
    weight: Array

    @classmethod
    def of(
        cls, y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, weight: Any = None, *, logs: bool = False
    ) -> Scores:
        """Judge, for each label, a row of probabilities (``logs``: of their logarithms) in the order of ``classes``."""
        labels, names, given = np.asarray(y), np.asarray(classes), np.asarray(probabilities, dtype=float)
        if given.shape != (len(labels), len(names)) or not given.size:
            raise DataError(
                f"probabilities have shape {given.shape}, but there are {len(labels)} labels and {len(names)} classes; "
                "give a row for each label and a column for each class."
            )
        p = np.exp(given) if logs else given
        wrong = ~(np.abs(p.sum(axis=1) - 1) <= PROBABILITY_ROW_TOLERANCE) | (p < 0).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(f"row {row} of the probabilities is {p[row].tolist()}; give numbers from 0 that sum to 1.")
        rows = check_sample_weight(weight, len(labels))
        rows = np.ones(len(labels)) if rows is None else rows
        return cls(tuple(names.tolist()), _find_classes(labels, names), given if logs else log(given), rows)

    # -- what was answered ---------------------------------------------------------------------------------------

    @cached_property
    def certainty(self) -> Array:
        """The probability of the most probable class of each row."""
        return np.exp(self.log_probabilities.max(axis=1))

    @cached_property
    def answer(self) -> Array:
        """The place of the most probable class of each row."""
        return self.log_probabilities.argmax(axis=1)

    @cached_property
    def surprise(self) -> Array:
        """-ln p(truth) of each row: the larger, the worse the mistake."""
        return -self.log_probabilities[np.arange(len(self.truth)), self.truth]

    @cached_property
    def confusion(self) -> Array:
        """For each true class (row) and each answer (column) the weight of the rows."""
        k = len(self.classes)
        return np.bincount(self.truth * k + self.answer, self.weight, minlength=k * k).reshape(k, k)

    @cached_property
    def shares(self) -> Array:
        """The share of each class among the rows."""
        return np.bincount(self.truth, self.weight, minlength=len(self.classes)) / self.weight.sum()

    # -- the scores ----------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> float:
        """How many rows of equal weight know as much."""
        return effective_sample_size(self.weight)

    @cached_property
    def accuracy(self) -> Interval:
        """The share of the answers that is right."""
        return self._proportion(np.trace(self.confusion), self.weight.sum())

    @cached_property
    def log_loss(self) -> Interval:
        """The mean of -ln p(truth): infinite if the truth was once called impossible."""
        return self._mean_loss(self.surprise)

    @cached_property
    def brier(self) -> Interval:
        """The mean squared distance of the probabilities from the truth; with two classes half of it, by custom."""
        return self._mean_loss(self._squared_error(np.exp(self.log_probabilities)))

    @cached_property
    def calibration_error(self) -> Interval:
        """How far certainty and success lie apart, on average over the bins of :meth:`compute_reliability_bins`."""
        return calibration_error(self.reliability(), self.rows)

    def reliability(self, bins: int = N_RELIABILITY_BINS) -> list[ReliabilityBin]:
        """How often the answers are right among rows of about the same certainty."""
        return compute_reliability_bins(self.certainty, self.answer == self.truth, self.weight, bins)

    @cached_property
    def bayes_rate(self) -> Interval:
        """The error of the best classifier if the probabilities are the true ones: the mean of 1 - max p."""
        return self._mean_loss(1 - self.certainty)

    def roc(self, label: Any) -> Curve:
        """The share of a class that is found against the share of the others that is taken for it."""
        return self._compute_curve(curves.roc_curve, label)

    def precision_recall(self, label: Any) -> Curve:
        """The share of the answers that is right against the share of a class that is found."""
        return self._compute_curve(curves.precision_recall_curve, label)

    @cached_property
    def per_class(self) -> tuple[ClassScores, ...]:
        """Each class against all others."""
        answered, true, both = self.confusion.sum(axis=0), self.confusion.sum(axis=1), np.diag(self.confusion)
        return tuple(
            ClassScores(
                label,
                float(true[c]),
                self._proportion(both[c], answered[c]),
                self._proportion(both[c], true[c]),
                _f1_from_jaccard(self._proportion(both[c], answered[c] + true[c] - both[c])),
                self.roc(label).area,
                self.precision_recall(label).area,
            )
            for c, label in enumerate(self.classes)
        )

    # -- beside the base rate ------------------------------------------------------------------------------------

    @cached_property
    def base(self) -> BaseRate:
        """The scores of always the same answer."""
        p = self.shares
        brier = np.average(self._squared_error(np.broadcast_to(p, self.log_probabilities.shape)), weights=self.weight)
        label = self.classes[int(p.argmax())]
        return BaseRate(label, float(p.max()), 0.0 - float(x_log_y(p, log(p)).sum()), float(brier))

    @cached_property
    def gain(self) -> dict[str, Interval]:
        """By how much the model is better than the base rate, row by row: above nought is better."""
        right = (self.answer == self.truth) - 1.0 * (self.truth == self.shares.argmax())
        surprise = -log(self.shares)[self.truth] - self.surprise
        return {"accuracy": mean_interval(right, self.weight), "log_loss": mean_interval(surprise, self.weight)}

    @cached_property
    def verdict(self) -> str:
        """One sentence: whether the model beats the base rate, beyond what chance explains."""
        base = f"always answering {format_value(self.base.label)}: {self.base.accuracy:.1%} right"
        match self.gain["accuracy"].low > 0, self.gain["log_loss"].low > 0:
            case True, True:
                return f"Beats the base rate ({base}), in accuracy and in log loss."
            case True, False:
                return f"Right more often than the base rate ({base}), but its probabilities are no better."
            case False, True:
                return f"Right no more often than the base rate ({base}), but its probabilities say more."
            case _:
                return f"Does not beat the base rate ({base}): it may not be worth using."

    # -- for people and programs ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, numbers and strings for JSON; what is infinite or undefined is None."""
        return scorecard.scores_to_dict(self)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each score, its interval, and the base rate."""
        rows = [
            {"score": n, **getattr(self, n)._asdict(), "base_rate": self.beside(n)} for n in scorecard.OVERALL_SCORES
        ]
        return import_pandas().DataFrame(rows).set_index("score")

    def beside(self, name: str) -> float | None:
        """The score that the base rate has, where it has one."""
        return getattr(self.base, name, None)

    def worst(self, max_classes: int = MAX_WORST_CLASSES) -> list[ClassScores]:
        """All classes in their order, or the ``most`` of lowest F1, the worst first, if there are more."""
        if len(self.per_class) <= max_classes:
            return list(self.per_class)
        return sorted(self.per_class, key=lambda one: -1.0 if math.isnan(one.f1.value) else one.f1.value)[:max_classes]

    def __str__(self) -> str:
        return scorecard.format_scores(self)

    # -- arithmetic ----------------------------------------------------------------------------------------------

    def _proportion(self, part: float, whole: float) -> Interval:
        per_row = self.rows / float(self.weight.sum())
        return proportion_interval(float(part) * per_row, float(whole) * per_row)

    def _mean_loss(self, values: Array) -> Interval:
        loss = mean_interval(values, self.weight)
        return loss._replace(low=max(0.0, loss.low))

    def _squared_error(self, p: Array) -> Array:
        squares = (p**2).sum(axis=1) - 2 * p[np.arange(len(p)), self.truth] + 1
        return squares / 2 if len(self.classes) == 2 else squares

    def _compute_curve(self, kind: Callable[[Array, Array, Array], Curve], label: Any) -> Curve:
        """A curve of one class. Of two, the log-odds are the score: they tell apart what rounds to certainty."""
        c, lp = _find_class(label, self.classes), self.log_probabilities
        two = len(self.classes) == 2
        curve = kind(self.truth == c, lp[:, c] - lp[:, 1 - c] if two else lp[:, c], self.weight)
        thresholds = expit(curve.thresholds) if two else np.exp(curve.thresholds)
        return replace(curve, thresholds=np.r_[np.inf, thresholds[1:]])


def _find_classes(labels: Array, classes: Array) -> Array:
    """The place of each label among the classes."""
    found, group = np.unique(labels, return_inverse=True)
    names = classes.tolist()
    return np.array([_find_class(label, names) for label in found.tolist()], dtype=np.intp)[group]


def _find_class(label: Any, classes: Sequence[Any]) -> int:
    if label not in classes:
        raise DataError(f"no class {label!r}; the probabilities are of {list(classes[:10])}.")
    return classes.index(label)


def _f1_from_jaccard(jaccard: Interval) -> Interval:
    """F1 grows with the share j of hits among all rows that are of the class or were taken for it: 2j / (1 + j)."""
    return Interval(*(2 * j / (1 + j) for j in jaccard))
