"""Tables of an evaluation for decisions: costs, lift and thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from priory.errors import DataError
from priory.evaluation.cost_scores import CostScores, compute_cost_scores
from priory.evaluation.costs import Costs, find_class_index
from priory.evaluation.ranking_tables import (
    LiftRow,
    ThresholdRow,
    compute_lift,
    compute_thresholds,
    format_lift,
    format_thresholds,
)
from priory.evaluation.scores import Scores
from priory.workflows.class_files import read_costs

if TYPE_CHECKING:
    from priory.workflows.evaluation import Evaluation
    from priory.workflows.model_files import PathLike


@dataclass(frozen=True)
class DecisionTables:
    """Mean costs of decisions, and lift and thresholds for one class."""

    positive: str = ""
    costs: CostScores | None = None
    lift: list[LiftRow] = field(default_factory=list)
    thresholds: list[ThresholdRow] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """Everything for JSON."""
        return {
            "positive": self.positive or None,
            "costs": None if self.costs is None else self.costs.to_dict(),
            "lift": [row._asdict() for row in self.lift],
            "thresholds": [row._asdict() for row in self.thresholds],
        }

    def list_blocks(self) -> list[str]:
        """The tables as text."""
        blocks = [] if self.costs is None else [str(self.costs)]
        if blocks and self.positive:
            blocks[0] += f"\nThe positive class is {self.positive}."
        if self.thresholds:
            blocks.append(format_thresholds(self.thresholds, self.positive))
        return [*blocks, format_lift(self.lift, self.positive)] if self.lift else blocks


def tabulate_decisions(
    evaluation: Evaluation,
    costs: Costs | PathLike | None = None,
    positive: str | None = None,
    *,
    lift: bool = False,
    thresholds: bool = False,
) -> DecisionTables:
    """Tabulate mean costs, if ``costs`` are given, and lift and thresholds of the ``positive`` class.

    The positive class is by default the rarer of two; with more classes it has to be named.
    """
    scores = evaluation.scores
    if costs is None and not lift and not thresholds:
        return DecisionTables()
    if not isinstance(scores, Scores):
        raise DataError("the model predicts a number; costs, lift and thresholds are for models of classes")
    classes = [str(label) for label in scores.classes]
    given = costs if costs is None or isinstance(costs, Costs) else read_costs(costs)
    table = None if given is None else given.tabulate(classes, scores.shares)
    names_positive = given is not None and (given.false_negative is not None or given.false_positive is not None)
    label = _find_positive_class(classes, scores, positive) if lift or thresholds or names_positive else ""
    return DecisionTables(
        label,
        None if table is None else compute_cost_scores(scores, table),
        compute_lift(scores, label) if lift else [],
        compute_thresholds(scores, label, table) if thresholds else [],
    )


def _find_positive_class(classes: list[str], scores: Scores, positive: str | None) -> str:
    if positive is not None:
        return classes[find_class_index(positive, classes)]
    if len(classes) > 2:
        raise DataError(f"of {len(classes)} classes one has to be the positive one; name it")
    return classes[int(np.argmin(scores.shares))]
