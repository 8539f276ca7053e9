"""Scores of predicted probabilities, each with a confidence interval and the base rate for comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.display_table import import_pandas
from priory.core.input_guard import check_sample_weight
from priory.core.logspace import expit, log, x_log_y
from priory.errors import DataError
from priory.evaluation import curves, intervals, score_table

if TYPE_CHECKING:
    import pandas as pd

MAX_WORST_CLASSES = 10  # shown in a table
PROBABILITY_ROW_TOLERANCE = 1e-6  # allowed distance of the sum of a row from 1


class BaseRate(NamedTuple):
    """Scores of a model that ignores the columns.

    The accuracy is obtained by always answering the most common class, log loss and Brier score by always predicting
    the class frequencies.
    """

    label: Any
    accuracy: float
    log_loss: float
    brier: float


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of predicted probabilities, given the true classes; create them with :meth:`of`.

    Every score comes with a 95 % confidence interval. The *base rate* is the score of always answering the most common
    class. Fewer than six rows, or rows of which no two have the same class, are too few to judge a model by: the
    verdict says so, and the table has no scores.

    Parameters
    ----------
    classes : tuple of length n_classes
        The classes.
    truth : ndarray of shape (n_rows,)
        The index of each row's true class.
    log_probabilities : ndarray of shape (n_rows, n_classes)
        The logarithms of the predicted probabilities.
    weight : ndarray of shape (n_rows,)
        How many times each row counts.
    positions : ndarray of shape (n_rows,), optional
        If only a subset of the given rows is scored: the position of each scored row among the given ones.
    folds : int, optional
        The number of folds, if the scores are from cross-validation. The models of the folds share most of their
        training rows, so the intervals are widened by the factor of Nadeau and Bengio.

    Attributes
    ----------
    accuracy, log_loss, brier, calibration_error : Interval
        The scores over all rows.
    per_class : tuple of ClassScores
        Precision, recall, F1, ROC area and average precision of each class.
    confusion : ndarray of shape (n_classes, n_classes)
        The number of rows of each true class (row) and answer (column).
    base : BaseRate
        The scores of the base rate.
    gain : dict {score: Interval}
        How much better than the base rate the model is.
    verdict : str
        Whether the model beats the base rate, in one sentence; or that there are too few rows to judge.
    has_enough_rows : bool
        Whether there are enough rows to judge a model by.
    expected_error : Interval
        The share of wrong answers that the probabilities predict.
    certainty : ndarray of shape (n_rows,)
        The probability of each row's answer.
    answer : ndarray of shape (n_rows,)
        The index of each row's most probable class.
    surprise : ndarray of shape (n_rows,)
        ``-log p(truth)`` of each row.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American
       Statistical Association 22, 1927 (intervals of proportions).
    .. [2] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003 (intervals of
       cross-validation).
    .. [3] J. A. Hanley and B. J. McNeil, "The meaning and use of the area under a receiver operating characteristic
       (ROC) curve", Radiology 143, 1982.

    Examples
    --------
    >>> scores = Scores.of(["spam", "ham", "ham"], [[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]], ["ham", "spam"])
    >>> scores.confusion.tolist()  # a row for each true class, a column for each answer
    [[1.0, 1.0], [0.0, 1.0]]
    >>> f"{scores.accuracy:.2f}", round(scores.base.accuracy, 2)
    ('0.67 [0.21, 0.94]', 0.67)
    """

    classes: tuple[Any, ...]
    truth: Array
    log_probabilities: Array
    weight: Array
    positions: Array | None = None
    folds: int | None = None

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        probabilities: ArrayLike,
        classes: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        logs: bool = False,
    ) -> Scores:
        """Return the scores of a row of probabilities for each label, with columns in the order of ``classes``.

        With ``logs`` the probabilities are given as logarithms.
        """
        labels, names, given = np.asarray(y), np.asarray(classes), np.asarray(probabilities, dtype=float)
        if given.shape != (len(labels), len(names)) or not given.size:
            raise DataError(
                f"probabilities have shape {given.shape}, but there are {len(labels)} labels and {len(names)} classes; "
                "give a row for each label and a column for each class."
            )
        p = np.exp(given) if logs else given
        wrong = ~(np.abs(p.sum(axis=1) - 1) <= PROBABILITY_ROW_TOLERANCE) | (p < 0).any(axis=1)  # (rows,), NaN included
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"row {row} of the probabilities is {p[row].tolist()}; give numbers of at least 0 that sum to 1."
            )
        rows = check_sample_weight(weight, len(labels))
        rows = np.ones(len(labels)) if rows is None else rows
        return cls(tuple(names.tolist()), _find_classes(labels, names), given if logs else log(given), rows)

    # -- answers -------------------------------------------------------------------------------------------------

    @cached_property
    def certainty(self) -> Array:
        """The probability of the most probable class of each row."""
        return np.exp(self.log_probabilities.max(axis=1))

    @cached_property
    def answer(self) -> Array:
        """The index of the most probable class of each row."""
        return self.log_probabilities.argmax(axis=1)

    @cached_property
    def surprise(self) -> Array:
        """``-log p(truth)`` of each row: the larger, the worse the mistake."""
        return -self.log_probabilities[np.arange(len(self.truth)), self.truth]

    @cached_property
    def squared_error(self) -> Array:
        """The squared distance of each row's probabilities from the one-hot true class; its mean is the Brier score."""
        return self._squared_error(np.exp(self.log_probabilities))

    @cached_property
    def confusion(self) -> Array:
        """The confusion matrix, (true classes, answers): total weights of rows."""
        return self.count_answers(np.arange(len(self.classes)))

    def count_answers(self, chosen: Array) -> Array:
        """Return the confusion matrix restricted to the classes with the indices ``chosen``."""
        # (classes,): position of each class in the result, -1 if it was not chosen
        k, place = len(chosen), np.full(len(self.classes), -1)
        place[chosen] = np.arange(k)
        truth, answer = place[self.truth], place[self.answer]
        rows = (truth >= 0) & (answer >= 0)
        return np.bincount(truth[rows] * k + answer[rows], self.weight[rows], minlength=k * k).reshape(k, k)

    @cached_property
    def shares(self) -> Array:
        """The share of each class among the rows."""
        return np.bincount(self.truth, self.weight, minlength=len(self.classes)) / self.weight.sum()

    # -- the scores ----------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> float:
        """The effective number of rows: how many equally weighted rows carry as much information."""
        return intervals.effective_sample_size(self.weight)

    @cached_property
    def accuracy(self) -> intervals.Interval:
        """The share of correct answers."""
        return self.measure_share(self.weight[self.answer == self.truth].sum(), self.weight.sum())

    @cached_property
    def log_loss(self) -> intervals.Interval:
        """The mean of ``-log p(truth)``: infinite if a true class was given probability zero."""
        return self._mean_loss(self.surprise, lambda right: float(-log(right)))

    @cached_property
    def brier(self) -> intervals.Interval:
        """The mean squared distance of probabilities from the truth; half of it, by convention, with two classes."""
        return self._mean_loss(self.squared_error, lambda right: (1 - right) ** 2)

    @cached_property
    def calibration_error(self) -> intervals.Interval:
        """The expected calibration error over the bins of :meth:`reliability`."""
        return curves.calibration_error(self.reliability(), self.rows)

    def reliability(self, bins: int = curves.N_RELIABILITY_BINS) -> list[curves.ReliabilityBin]:
        """Return the accuracy among rows of similar certainty, in bins."""
        return curves.compute_reliability_bins(self.certainty, self.answer == self.truth, self.weight, bins)

    @cached_property
    def expected_error(self) -> intervals.Interval:
        """The share of wrong answers that the probabilities predict: the mean of ``1 - max p``.

        It equals the Bayes rate if the probabilities are the true P(class | row); calibration alone is not enough.
        """
        return self._mean_loss(1 - self.certainty)

    def roc(self, label: Hashable) -> curves.Curve:
        """Return the ROC curve of one class against the others."""
        return self._compute_curve(curves.roc_curve, label)

    def precision_recall(self, label: Hashable) -> curves.Curve:
        """Return the precision-recall curve of one class against the others."""
        return self._compute_curve(curves.precision_recall_curve, label)

    @cached_property
    def per_class(self) -> tuple[curves.ClassScores, ...]:
        """The scores of each class against all others."""
        return tuple(curves.score_classes(self, range(len(self.classes))))

    # -- comparison with the base rate ---------------------------------------------------------------------------------

    @cached_property
    def base(self) -> BaseRate:
        """The scores of the base rate."""
        p = self.shares
        brier = np.average(self._squared_error(np.broadcast_to(p, self.log_probabilities.shape)), weights=self.weight)
        label = self.classes[int(p.argmax())]
        return BaseRate(label, float(p.max()), 0.0 - float(x_log_y(p, log(p)).sum()), float(brier))

    @cached_property
    def gain(self) -> dict[str, intervals.Interval]:
        """The improvement over the base rate, as a paired difference over rows; positive is better."""
        # (rows,): paired differences, model minus base rate
        right = (self.answer == self.truth) - 1.0 * (self.truth == self.shares.argmax())
        surprise = -log(self.shares)[self.truth] - self.surprise
        return {"accuracy": self._mean(right), "log_loss": self._mean(surprise)}

    @cached_property
    def too_few_rows(self) -> str:
        """A sentence that explains why there are too few rows to judge a model, or "" if there are enough."""
        return score_table.explain_too_few_rows(self.rows, np.bincount(self.truth[self.weight > 0]))

    @property
    def has_enough_rows(self) -> bool:
        """Whether there are enough rows to judge a model by."""
        return not self.too_few_rows

    @cached_property
    def verdict(self) -> str:
        """One sentence: whether the model beats the base rate by more than chance, or that there are too few rows."""
        return self.too_few_rows or score_table.format_verdict(self)

    # -- output --------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        return score_table.format_scores_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as lists, numbers and strings for JSON; infinite or undefined values become None."""
        return score_table.scores_to_dict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per score: its value, its interval, and the base rate."""
        rows = [
            {"score": n, **getattr(self, n)._asdict(), "base_rate": self.base_score(n)}
            for n in score_table.OVERALL_SCORES
        ]
        return import_pandas().DataFrame(rows).set_index("score")

    def base_score(self, name: str) -> float | None:
        """Return the score of the base rate, or None for a score that it does not have."""
        return getattr(self.base, name, None)

    def worst(self, max_classes: int = MAX_WORST_CLASSES) -> list[curves.ClassScores]:
        """Return all classes, or if there are more than ``max_classes`` the ones with the lowest F1, worst first."""
        if len(self.classes) <= max_classes:
            return list(self.per_class)
        return curves.score_classes(self, curves.find_worst_classes(self, max_classes))

    def __str__(self) -> str:
        return score_table.format_scores(self)

    def __repr__(self) -> str:
        return str(self)

    # -- helpers -------------------------------------------------------------------------------------------------

    @property
    def variance_factor(self) -> float:
        """The factor of Nadeau and Bengio on the variance of a score: 1 + K n_test / n_train, or 1 without folds."""
        return 1.0 if self.folds is None else 1 + self.folds / (self.folds - 1)

    def measure_share(self, part: float, whole: float) -> intervals.Interval:
        """Return ``part / whole`` with its interval; both are weights of rows."""
        per_row = self.rows / self.variance_factor / float(self.weight.sum())
        return intervals.proportion_interval(float(part) * per_row, float(whole) * per_row)

    def _mean(self, values: Array) -> intervals.Interval:
        """Return the mean of values, (rows,), with its interval, which is infinite if there are too few rows."""
        mean = intervals.mean_interval(values, self.weight).widen(math.sqrt(self.variance_factor))
        return mean if self.has_enough_rows else mean._replace(low=-math.inf, high=math.inf)

    def _mean_loss(self, values: Array, if_calibrated: Callable[[float], float] | None = None) -> intervals.Interval:
        """Return the mean of non-negative values, (rows,), with its interval.

        ``if_calibrated`` maps an accuracy to the lowest loss of a calibrated model. The upper bound is at least this
        loss at the lower bound of the accuracy: a few answers that are all certain and correct do not prove a loss of
        zero.
        """
        loss = self._mean(values)
        lowest = max(self.accuracy.low, 1 / len(self.classes))  # a calibrated model is never worse than guessing
        least = 0.0 if if_calibrated is None else if_calibrated(lowest)
        return loss._replace(low=max(0.0, loss.low), high=max(loss.high, least))

    def _squared_error(self, p: Array) -> Array:
        """Return the Brier score of each row of probabilities, (rows, classes)."""
        # |p - one_hot|² = Σ p² - 2 p_truth + 1
        squares = (p**2).sum(axis=1) - 2 * p[np.arange(len(p)), self.truth] + 1
        return squares / 2 if len(self.classes) == 2 else squares

    @cached_property
    def _class_numbers(self) -> dict[Hashable, int]:
        return {label: number for number, label in enumerate(self.classes)}

    def _find_class(self, label: Hashable) -> int:
        if label not in self._class_numbers:
            raise _make_unknown_class_error(label, self.classes)
        return self._class_numbers[label]

    def _compute_curve(self, kind: Callable[[Array, Array, Array], curves.Curve], label: Hashable) -> curves.Curve:
        """Return a curve of one class; with two classes it ranks by log-odds, which do not saturate near 1."""
        c, lp = self._find_class(label), self.log_probabilities
        two = len(self.classes) == 2
        curve = kind(self.truth == c, lp[:, c] - lp[:, 1 - c] if two else lp[:, c], self.weight)
        thresholds = expit(curve.thresholds) if two else np.exp(curve.thresholds)
        return replace(curve, thresholds=np.r_[np.inf, thresholds[1:]])


def _find_classes(labels: Array, classes: Array) -> Array:
    """Return the index of each label among the classes."""
    found, group = np.unique(labels, return_inverse=True)
    place = {label: number for number, label in enumerate(classes.tolist())}
    unknown = next((label for label in found.tolist() if label not in place), None)
    if unknown is not None:
        raise _make_unknown_class_error(unknown, list(place))
    return np.array([place[label] for label in found.tolist()], dtype=np.intp)[group]


def _make_unknown_class_error(label: Hashable, classes: Sequence[Hashable]) -> DataError:
    return DataError(f"no class {label!r}; the probabilities are for {list(classes[:10])}.")
