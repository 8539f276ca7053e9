"""Membership audit: how well an attacker can tell from a model's answers which rows it has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.evaluation.curves import roc_curve
from priory.evaluation.intervals import Interval

FALSE_ALARM_RATE = 0.001
MAX_EXPOSED_ROWS = 5
DECIBANS = 10 / np.log(10)  # for a nat


@dataclass(frozen=True, eq=False)
class MembershipAudit:
    """The attack by a threshold on log p(true class | row): learned rows should not score higher than others.

    Attributes
    ----------
    rows : int
        The number of rows that were audited, each once as a learned row and once as a row that was left out.
    area : Interval
        The area under the ROC curve of the attack; 0.5 is chance, 1 reveals every row.
    caught : float
        The share of learned rows that are recognised at one false alarm in a thousand.
    exposure : array of shape (rows,)
        How much higher the log probability of each row's class is once the row is learned, in nats.
    """

    rows: int
    area: Interval
    caught: float
    exposure: Array

    @classmethod
    def of(cls, inside: Array, outside: Array) -> MembershipAudit:
        """Compare the scores of rows: ``inside`` (models, rows) once they are learned, NaN where a model has not
        learned a row; ``outside`` (rows,) before.

        >>> audit = MembershipAudit.of(np.array([[-0.1, -0.2]]), np.array([-0.3, -0.4]))
        >>> audit.area.value, audit.exposure.round(1).tolist()
        (1.0, [0.2, 0.2])
        """
        learned = np.isfinite(inside)
        scores = np.concatenate([inside[learned], outside])
        is_member = np.concatenate([np.ones(learned.sum()), np.zeros(len(outside))])
        # every row weighs as much as a member as it does as a stranger
        weight = np.concatenate([np.full(learned.sum(), len(outside) / learned.sum()), np.ones(len(outside))])
        limit = np.quantile(outside, 1 - FALSE_ALARM_RATE, method="higher")
        exposure = np.nanmean(np.where(learned, inside, np.nan), axis=0) - outside
        area = roc_curve(is_member, scores, weight).area
        return cls(len(outside), area, float(np.mean(inside[learned] > limit)), exposure)

    def list_exposed(self) -> list[tuple[int, float]]:
        """The numbers of the rows that gain most by being learned, with the gain in decibans."""
        order = np.argsort(-self.exposure, kind="stable")[:MAX_EXPOSED_ROWS]
        return [(int(row), float(DECIBANS * self.exposure[row])) for row in order if self.exposure[row] > 0]

    def as_dict(self) -> dict[str, Any]:
        """The audit as a dictionary for JSON."""
        area = dict(zip(("value", "low", "high"), self.area, strict=True))
        exposed = [{"row": row, "decibans": round(gain, 3)} for row, gain in self.list_exposed()]
        return {"rows": self.rows, "auc": area, "caught_at_0.1_percent": self.caught, "most_exposed": exposed}

    def __str__(self) -> str:
        exposed = ", ".join(f"{row} ({gain:+.1f} dB)" for row, gain in self.list_exposed())
        lines = [
            f"AUC of the attack      {self.area:.3f}; 0.5 is chance",
            f"recognised rows        {self.caught:.2%}, at one false alarm in a thousand",
            f"most exposed rows      {exposed or 'none'}",
        ]
        return "\n".join(lines)
