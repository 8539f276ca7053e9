"""Lift and threshold tables of one class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from priory.evaluation.costs import CostTable
from priory.evaluation.score_table import align_text_columns
from priory.evaluation.scores import Scores

LIFT_SHARES = tuple(step / 10 for step in range(1, 11))
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class LiftRow(NamedTuple):
    """One row of a lift table: the rows with the highest probability of a class."""

    share: float  # of all rows
    lowest: float  # the lowest probability among these rows
    precision: float  # the share of these rows that belong to the class
    gain: float  # the share of the class that these rows contain (recall)
    lift: float  # precision divided by the share of the class among all rows


class ThresholdRow(NamedTuple):
    """One row of a threshold table: every row at or above the threshold is predicted as the class."""

    threshold: float
    share: float  # of all rows
    precision: float
    recall: float
    cost: float | None  # mean over all rows


def compute_lift(scores: Scores, label: str, shares: Sequence[float] = LIFT_SHARES) -> list[LiftRow]:
    """Return the lift table of a class: precision, gain and lift among its most probable rows.

    >>> scores = Scores.of(["a", "b", "b", "a"], [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.6, 0.4]], ["a", "b"])
    >>> [(row.gain, row.lift) for row in compute_lift(scores, "a", [0.25, 0.5])]
    [(0.5, 2.0), (1.0, 2.0)]
    """
    index = [str(name) for name in scores.classes].index(label)
    p = np.exp(scores.log_probabilities[:, index])
    order = np.argsort(-p, kind="stable")
    # (rows,): cumulative weight of all rows and of rows of the class, by falling probability
    weight = np.cumsum(scores.weight[order])
    hits = np.cumsum((scores.weight * (scores.truth == index))[order])
    found = []
    for share in shares:
        # the first position where the share is reached; the tolerance absorbs rounding of the cumulative sum
        last = min(int(np.searchsorted(weight, share * weight[-1] * (1 - 1e-12))), len(order) - 1)
        precision, base = hits[last] / weight[last], hits[-1] / weight[-1]
        gain, lift = (hits[last] / hits[-1], precision / base) if hits[-1] else (np.nan, np.nan)
        found.append(LiftRow(weight[last] / weight[-1], p[order[last]], precision, gain, lift))
    return [LiftRow(*map(float, row)) for row in found]


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


def format_lift(rows: Sequence[LiftRow], label: str) -> str:
    """Format the lift table as text."""
    cells: list[tuple[str, ...]] = [("rows", "from probability", "precision", "gain", "lift")]
    for row in rows:
        shares = (f"{share:.1%}" for share in (row.precision, row.gain))
        cells.append((f"{row.share:.0%}", f"{row.lowest:.3f}", *shares, f"{row.lift:.2f}"))
    title = (
        f"The most probable rows of {label!r}: how many of them are (precision), and how many of all they are (gain)"
    )
    return "\n".join([title, *align_text_columns(cells)])


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
