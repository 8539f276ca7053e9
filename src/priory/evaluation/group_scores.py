"""Scores by group of rows, with a test for equal accuracy in all groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from priory.core.typing import Array
from priory.evaluation.score_table import align_text_columns
from priory.evaluation.scores import Scores

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
