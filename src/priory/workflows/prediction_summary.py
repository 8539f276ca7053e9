"""Totals over predicted rows: answers, certainty, cost, and drift of the classes since training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from priory.core.typing import Array
from priory.evaluation.decision_rules import NO_ANSWER
from priory.workflows.callbacks import format_count

MAX_CLASSES_SUMMARISED = 5
MIN_DRIFT = 0.1  # of the probability of a class, on average over all rows
MIN_DRIFT_DEVIATIONS = 4.0  # beyond what chance explains


@dataclass
class PredictionSummary:
    """Sums over predicted rows.

    Attributes
    ----------
    classes : sequence of str
    training_shares : ndarray of shape (n_classes,)
        The share of each class among the rows that the model has learned.
    n_rows, n_abstained : int
        The number of rows, and of those without an answer.
    answer_counts : ndarray of shape (n_classes,)
        The number of rows with each answer.
    total_probability : ndarray of shape (n_classes,)
        The sum of each class's probability over all rows.
    total_certainty : float
        The sum of the probability of the answer, over all rows that have one.
    total_cost : float
        The expected cost of all answers, where costs were given.
    """

    classes: Sequence[str]
    training_shares: Array
    n_rows: int = 0
    n_abstained: int = 0
    answer_counts: Array = field(init=False)
    total_probability: Array = field(init=False)
    total_certainty: float = 0.0
    total_cost: float | None = None

    def __post_init__(self) -> None:
        self.answer_counts, self.total_probability = np.zeros(len(self.classes)), np.zeros(len(self.classes))

    def add(self, probabilities: Array, answers: Array, cost: Array | None) -> None:
        """Add rows: probabilities of shape (rows, classes), answers of shape (rows,), and expected costs (rows,)."""
        has_answer = answers != NO_ANSWER
        self.n_rows += len(answers)
        self.n_abstained += int((~has_answer).sum())
        self.answer_counts += np.bincount(answers[has_answer], minlength=len(self.classes))
        self.total_probability += probabilities.sum(axis=0)
        self.total_certainty += float(probabilities[has_answer, answers[has_answer]].sum())
        if cost is not None:
            self.total_cost = (self.total_cost or 0.0) + float(cost.sum())

    @property
    def mean_certainty(self) -> float:
        """The probability of the answer, on average over the rows that have one; NaN if none has."""
        n_answered = self.n_rows - self.n_abstained
        return self.total_certainty / n_answered if n_answered else float("nan")

    def find_drift(self) -> list[tuple[str, float, float]]:
        """The classes whose share has changed since training: their share now, and in training.

        The share now is the mean probability. A change counts if it exceeds a tenth and four standard deviations.
        """
        if not self.n_rows:
            return []
        now, then = self.total_probability / self.n_rows, self.training_shares
        chance = np.sqrt(then * (1 - then) / self.n_rows)
        differs = np.abs(now - then) > np.maximum(MIN_DRIFT, MIN_DRIFT_DEVIATIONS * chance)
        order = np.argsort(-np.abs(now - then), kind="stable")
        return [(self.classes[c], float(now[c]), float(then[c])) for c in order if differs[c]]

    def describe(self) -> list[str]:
        """The summary in one line, and one more if there is drift."""
        order = np.argsort(-self.answer_counts, kind="stable")
        answered = [c for c in order if self.answer_counts[c]]
        shares = [f"{self.classes[c]} {self.answer_counts[c] / self.n_rows:.1%}" for c in answered]
        more = len(shares) - MAX_CLASSES_SUMMARISED
        listed = shares[:MAX_CLASSES_SUMMARISED] + ([f"{more} more classes"] if more > 0 else [])
        parts = [f"{format_count(self.n_rows, 'row')}: {', '.join(listed) or 'no answer'}"]
        if answered:
            parts.append(f"mean probability of the answer {self.mean_certainty:.1%}")
        if self.n_abstained:
            parts.append(f"{self.n_abstained:,} without an answer ({self.n_abstained / self.n_rows:.1%})")
        if self.total_cost is not None:
            parts.append(f"expected cost {self.total_cost:,.2f}")
        drift = [f"{label} {now:.1%} (in training {then:.1%})" for label, now, then in self.find_drift()]
        lines = [f"drift: the classes are not as in training: {', '.join(drift[:MAX_CLASSES_SUMMARISED])}"]
        return ["; ".join(parts), *(lines if drift else [])]

    def as_dict(self) -> dict[str, object]:
        """The summary for JSON."""
        return {
            "rows": self.n_rows,
            "answers": dict(zip(self.classes, self.answer_counts.astype(int).tolist(), strict=True)),
            "abstained": self.n_abstained,
            "mean_certainty": self.mean_certainty,
            "expected_cost": self.total_cost,
            "drift": [{"class": label, "share": now, "in_training": then} for label, now, then in self.find_drift()],
        }
