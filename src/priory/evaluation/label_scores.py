"""Scores of several labels for each row: Hamming loss, F1, subset accuracy and log loss; thresholds for F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from priory.core.display_table import DisplayTable

LEAST_PROBABILITY = 1e-15


@dataclass(frozen=True)
class LabelScores:
    """Scores of given labels against true ones; F1 is 0 for a label that is neither given nor true.

    Attributes
    ----------
    hamming : float
        The share of wrong answers over all rows and labels.
    micro_f1, macro_f1 : float
        F1 of all answers together, and the mean F1 of the labels.
    subset_accuracy : float
        The share of rows with exactly the true labels.
    log_loss : float
        Mean of -log p(answer) over all rows and labels.
    by_label : dict of label to F1
    """

    n_rows: int
    hamming: float
    micro_f1: float
    macro_f1: float
    subset_accuracy: float
    log_loss: float
    by_label: dict[str, float]

    @classmethod
    def of(cls, truth: Array, probabilities: Array, thresholds: Array, labels: Sequence[str]) -> LabelScores:
        """Score probabilities (rows, labels) against the truth (rows, labels), given the thresholds (labels,)."""
        given, true = probabilities >= thresholds, truth.astype(bool)
        right, n_given, n_true = (given & true).sum(axis=0), given.sum(axis=0), true.sum(axis=0)
        f1 = 2 * right / np.maximum(n_given + n_true, 1)
        own = np.clip(np.where(true, probabilities, 1 - probabilities), LEAST_PROBABILITY, 1.0)
        return cls(
            len(true),
            float((given != true).mean()),
            float(2 * right.sum() / max(n_given.sum() + n_true.sum(), 1)),
            float(f1.mean()),
            float((given == true).all(axis=1).mean()),
            float(-np.log(own).mean()),
            dict(zip(labels, f1.tolist(), strict=True)),
        )

    def table(self) -> DisplayTable:
        """The scores of all labels together."""
        rows = [
            ("Hamming loss", self.hamming),
            ("micro F1", self.micro_f1),
            ("macro F1", self.macro_f1),
            ("subset accuracy", self.subset_accuracy),
            ("log loss", self.log_loss),
        ]
        return DisplayTable(f"{self.n_rows:,} rows, {len(self.by_label):,} labels", ("score", "value"), tuple(rows))

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def to_dict(self) -> dict[str, object]:
        """The same as values for JSON."""
        return dict(vars(self))


def choose_f1_threshold(truth: Array, probabilities: Array) -> float:
    """The threshold on the probability of a label that maximises F1; 0.5 if no row has the label.

    >>> choose_f1_threshold(np.array([1, 0, 1, 0]), np.array([0.9, 0.2, 0.4, 0.1]))
    0.4
    """
    order = np.argsort(-probabilities, kind="stable")
    right, sorted_p = np.cumsum(truth[order]), probabilities[order]
    # F1 of the first k rows; of equal probabilities only the last k is a threshold
    f1 = 2 * right / (np.arange(1, len(order) + 1) + max(truth.sum(), 1))
    f1[:-1][sorted_p[1:] == sorted_p[:-1]] = -1.0
    return float(sorted_p[int(f1.argmax())]) if len(order) and truth.any() else 0.5
