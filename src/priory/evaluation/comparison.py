"""Compare two models on the same rows, or groups of rows under one model: differences of scores, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy
from numpy import ndarray as Array

from priory.errors import DataError
from priory.evaluation.decisions import NO_ANSWER, CostTable, LeastCost
from priory.evaluation.intervals import Interval, mean_interval
from priory.evaluation.score_table import align_text_columns
from priory.evaluation.scores import Scores

COMPARED_SCORES = ("accuracy", "log_loss", "brier")


@dataclass(frozen=True)
class Comparison:
    """Scores of the first model minus scores of the second.

    The first model is better where accuracy is positive, and where log loss or Brier score is negative.

    Attributes
    ----------
    accuracy, log_loss, brier : Interval
        The difference with a 95 % interval. The comparison is paired, so rows that are hard for both models do not
        widen the interval.
    """

    accuracy: Interval
    log_loss: Interval
    brier: Interval

    def describe(self, first: str, second: str) -> str:
        """Say in one sentence which model is better."""
        better = {
            "in accuracy": _find_better(self.accuracy, first, second),
            "in log loss": _find_better(self.log_loss, second, first),
        }
        decided = [f"{name} is better {where}" for where, name in better.items() if name]
        undecided = " and ".join(where for where, name in better.items() if not name)
        parts = [*decided, *([f"the difference {undecided} may be chance"] if undecided else [])]
        return f"{first} and {second}: {'; '.join(parts)}."


def compare_scores(first: Scores, second: Scores) -> Comparison:
    """Return the difference between the scores of two models on the same rows.

    >>> good = Scores.of(["a", "b"] * 20, [[0.9, 0.1], [0.2, 0.8]] * 20, ["a", "b"])
    >>> guess = Scores.of(["a", "b"] * 20, [[0.5, 0.5], [0.6, 0.4]] * 20, ["a", "b"])
    >>> f"{compare_scores(good, guess).accuracy:.2f}"
    '0.50 [0.34, 0.66]'
    """
    if first.classes != second.classes or not np.array_equal(first.truth, second.truth):
        raise DataError("the models were judged on different rows or classes; judge both on the same rows")
    pairs = zip(_measure_rows(first).values(), _measure_rows(second).values(), strict=True)
    # cross-validated models share training rows, so their scores vary more than independent ones
    widening = math.sqrt(first.variance_factor)
    return Comparison(*(mean_interval(a - b, first.weight).widen(widening) for a, b in pairs))


def format_comparison(scores: Mapping[str, Scores]) -> str:
    """Format a table of several models on the same rows, each compared with the first."""
    first, *others = scores
    rows = [("model", "accuracy", "log loss", "Brier score", "log loss, difference to the first")]
    for name, one in scores.items():
        difference = "" if name == first else f"{compare_scores(one, scores[first]).log_loss:+.3f}"
        scored = (f"{one.accuracy.value:.1%}", f"{one.log_loss.value:.3f}", f"{one.brier.value:.3f}")
        rows.append((name, *scored, difference))
    sentences = [compare_scores(scores[first], scores[other]).describe(first, other) for other in others]
    return "\n".join([*align_text_columns(rows), "", *sentences])


def format_curve(curve: Mapping[int, Scores]) -> str:
    """Format a table of the scores of models by the number of rows that they learned."""
    rows = [("rows learned", "accuracy", "log loss", "rows judged")]
    for n_rows, scores in curve.items():
        rows.append((f"{n_rows:,}", f"{scores.accuracy:.1%}", f"{scores.log_loss:.3f}", f"{len(scores.truth):,}"))
    return "\n".join(align_text_columns(rows))


def _measure_rows(scores: Scores) -> dict[str, Array]:
    """Return each score per row, (rows,); its mean over the rows is the score."""
    measured = (scores.answer == scores.truth) * 1.0, scores.surprise, scores.squared_error
    return dict(zip(COMPARED_SCORES, measured, strict=True))


def _find_better(difference: Interval, if_positive: str, if_negative: str) -> str:
    if difference.low > 0:
        return if_positive
    return if_negative if difference.high < 0 else ""


MAX_GROUPS_SHOWN = 20
MAX_CHANCE = 0.01  # significance level of the test for equal accuracy


@dataclass(frozen=True, eq=False)
class GroupScores:
    """Scores of each group of rows, largest group first.

    Attributes
    ----------
    column : str
        The column that defines the groups.
    scores : dict of str to Scores
    chance : float
        The p-value of a chi-squared test for equal accuracy in all groups; 1 if there are fewer than two groups.
    """

    column: str
    scores: dict[str, Scores]
    chance: float

    @property
    def verdict(self) -> str:
        """One sentence: whether the accuracy differs between groups by more than chance."""
        if len(self.scores) < 2:
            return "There is one group only."
        if self.chance >= MAX_CHANCE:
            return "The model is about equally right for all groups: the differences may be chance."
        low, high = (pick(self.scores, key=lambda name: self.scores[name].accuracy.value) for pick in (min, max))
        return (
            f"The model is not equally right for all groups: {self.scores[low].accuracy.value:.1%} for {low!r}, "
            f"{self.scores[high].accuracy.value:.1%} for {high!r} (by chance with probability {self.chance:.2g})."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the scores as a dictionary for JSON."""
        groups = {
            name: {"rows": len(one.truth), "accuracy": one.accuracy._asdict(), "log_loss": one.log_loss._asdict()}
            for name, one in self.scores.items()
        }
        return {"column": self.column, "groups": groups, "chance": self.chance, "verdict": self.verdict}

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [(self.column, "rows", "accuracy", "95 % interval", "log loss", "calibration")]
        for name, one in list(self.scores.items())[:MAX_GROUPS_SHOWN]:
            interval = f"{one.accuracy.low:.1%} to {one.accuracy.high:.1%}"
            gap = f"{float(one.certainty.mean() - one.accuracy.value):+.1%}"
            rows.append(
                (name, f"{len(one.truth)}", f"{one.accuracy.value:.1%}", interval, f"{one.log_loss.value:.3f}", gap)
            )
        more = len(self.scores) - MAX_GROUPS_SHOWN
        note = "calibration: mean certainty minus accuracy; above zero the model claims too much."
        return "\n".join(
            [*align_text_columns(rows), *([f"and {more} more groups"] if more > 0 else []), note, self.verdict]
        )

    def __repr__(self) -> str:
        return str(self)


def score_groups(scores: Scores, groups: Sequence[str] | Array, column: str) -> GroupScores:
    """Return the scores of each group; ``groups`` has one entry per scored row.

    >>> scores = Scores.of(["a", "b"] * 50, [[0.9, 0.1]] * 100, ["a", "b"])
    >>> found = score_groups(scores, ["x", "y"] * 50, "side")
    >>> {name: one.accuracy.value for name, one in found.scores.items()}, found.chance < 1e-6
    ({'x': 1.0, 'y': 0.0}, True)
    """
    names, codes, counts = np.unique(
        np.asarray(groups, dtype=object).astype(str), return_inverse=True, return_counts=True
    )
    parts = {str(names[g]): take_scored_rows(scores, codes == g) for g in np.argsort(-counts, kind="stable")}
    # (groups, 2): the number of right and of wrong answers
    right = np.array([[(one.answer == one.truth).sum(), (one.answer != one.truth).sum()] for one in parts.values()])
    # the test needs two groups, and at least one right and one wrong answer
    tested = len(parts) > 1 and bool((right.sum(axis=0) > 0).all())
    return GroupScores(
        column, parts, float(scipy.stats.chi2_contingency(right, correction=False).pvalue) if tested else 1.0
    )


def take_scored_rows(scores: Scores, rows: Array) -> Scores:
    """Return the scores of a subset of the rows."""
    return replace(
        scores,
        truth=scores.truth[rows],
        log_probabilities=scores.log_probabilities[rows],
        weight=scores.weight[rows],
        positions=None if scores.positions is None else scores.positions[rows],
    )


THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class ThresholdRow(NamedTuple):
    """One row of a threshold table: every row at or above the threshold is predicted as the class."""

    threshold: float
    share: float  # of all rows
    precision: float
    recall: float
    cost: float | None  # mean over all rows


def compute_thresholds(
    scores: Scores, label: str, costs: CostTable | None = None, thresholds: Sequence[float] = THRESHOLDS
) -> list[ThresholdRow]:
    """Return share, precision and recall at each threshold, and with two classes the mean cost."""
    index = [str(name) for name in scores.classes].index(label)
    p, true = np.exp(scores.log_probabilities[:, index]), scores.truth == index
    weight = scores.weight / scores.weight.sum()
    found = []
    for threshold in thresholds:
        taken = p >= threshold
        share, hits, of_class = (float(weight[rows].sum()) for rows in (taken, taken & true, true))
        cost = None
        if costs is not None and len(scores.classes) == 2:
            answer = np.where(taken, index, 1 - index)
            cost = float(weight @ costs.mistakes[scores.truth, answer])
        precision, recall = (hits / n if n else float("nan") for n in (share, of_class))
        found.append(ThresholdRow(threshold, share, precision, recall, cost))
    return found


def format_thresholds(rows: Sequence[ThresholdRow], label: str) -> str:
    """Format the threshold table as text, with the lowest cost marked."""
    costs = [row.cost for row in rows if row.cost is not None]
    cells: list[tuple[str, ...]] = [("threshold", "rows", "precision", "recall", *(("mean cost", "") if costs else ()))]
    for row in rows:
        least = "least" if row.cost is not None and row.cost == min(costs) else ""
        money = (f"{row.cost:.4f}", least) if row.cost is not None else ()
        precision = "undefined" if np.isnan(row.precision) else f"{row.precision:.1%}"
        cells.append((f"{row.threshold:g}", f"{row.share:.1%}", precision, f"{row.recall:.1%}", *money))
    title = f"Answering {label!r} where its probability is at least the threshold"
    return "\n".join([title, *align_text_columns(cells)])


class CostScores(NamedTuple):
    """Mean cost per row under three decision rules."""

    least_cost: Interval  # the answer with the lowest expected cost
    most_probable: Interval
    constant: Interval  # the best constant answer
    constant_answer: str
    abstained: float  # share of rows for which abstaining has the lowest expected cost

    def to_dict(self) -> dict[str, object]:
        """Return the scores as a dictionary for JSON."""
        intervals = {name: getattr(self, name)._asdict() for name in ("least_cost", "most_probable", "constant")}
        return {**intervals, "constant_answer": self.constant_answer, "abstained": self.abstained}

    def __str__(self) -> str:
        rows = [("mean cost of a row", "cost", "95 % interval")]
        for title, cost in (
            ("by least expected cost", self.least_cost),
            ("by the most probable class", self.most_probable),
            (f"always {self.constant_answer}", self.constant),
        ):
            rows.append((title, f"{cost.value:.4f}", f"{cost.low:.4f} to {cost.high:.4f}"))
        lines = align_text_columns(rows)
        return "\n".join([*lines, f"{self.abstained:.1%} of the rows get no answer"] if self.abstained else lines)


def compute_cost_scores(scores: Scores, costs: CostTable) -> CostScores:
    """Return the mean cost of the answers, given the true classes (not the model's probabilities).

    >>> scores = Scores.of(["ill", "well"], [[0.3, 0.7], [0.1, 0.9]], ["ill", "well"])
    >>> found = compute_cost_scores(scores, CostTable(np.array([[0.0, 10.0], [1.0, 0.0]])))
    >>> found.least_cost.value, found.most_probable.value
    (0.5, 5.0)
    """
    answers = LeastCost(costs).choose(np.exp(scores.log_probabilities)).answers
    # the mean cost of giving the same answer for every row, one for each class
    constants = [_measure_mean_cost(scores, costs, np.full(len(answers), c)) for c in range(len(scores.classes))]
    best = int(np.argmin([cost.value for cost in constants]))
    return CostScores(
        _measure_mean_cost(scores, costs, answers),
        _measure_mean_cost(scores, costs, scores.answer),
        constants[best],
        str(scores.classes[best]),
        float(np.average(answers == NO_ANSWER, weights=scores.weight)),
    )


def _measure_mean_cost(scores: Scores, costs: CostTable, answers: Array) -> Interval:
    """Return the mean cost of answers, (rows,), which may include `NO_ANSWER`."""
    each = costs.mistakes[scores.truth, answers]  # (rows,); the index NO_ANSWER is replaced below
    if costs.abstain is not None:
        each = np.where(answers == NO_ANSWER, costs.abstain[scores.truth], each)
    return mean_interval(each, scores.weight)
