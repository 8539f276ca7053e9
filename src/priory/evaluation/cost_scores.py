"""Mean cost of a model's decisions, compared with simpler decision rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priory.core.typing import Array
from priory.evaluation.costs import CostTable
from priory.evaluation.decision_rules import NO_ANSWER, LeastCost
from priory.evaluation.intervals import Interval, mean_interval
from priory.evaluation.score_table import align_text_columns
from priory.evaluation.scores import Scores


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
