"""Decision rules: lowest expected cost, or a probability threshold for each class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation.costs import CostTable, find_class_index

NO_ANSWER = -1


class Choices(NamedTuple):
    """The chosen class index of each row (or `NO_ANSWER`), and its expected cost if the rule has costs."""

    answers: Array  # (rows,)
    cost: Array | None = None  # (rows,)


class DecisionRule(ABC):
    """Chooses an answer from class probabilities."""

    @abstractmethod
    def choose(self, probabilities: Array) -> Choices:
        """Return the answer for each row of probabilities, (rows, classes)."""


@final
@dataclass(frozen=True)
class LeastCost(DecisionRule):
    """Choose the answer with the lowest expected cost, or abstain (Chow's rule); ties go to the first."""

    costs: CostTable

    def choose(self, probabilities: Array) -> Choices:
        expected = self.costs.expect(probabilities)  # (rows, answers)
        chosen = expected.argmin(axis=1)
        # the column after the last class is abstaining
        answers = np.where(chosen < len(self.costs.mistakes), chosen, NO_ANSWER)
        return Choices(answers, expected[np.arange(len(expected)), chosen])


@final
@dataclass(frozen=True)
class Thresholds(DecisionRule):
    """Choose the class that exceeds its threshold by the largest factor, and never a class below its threshold.

    If no class reaches its threshold, the most probable class without a threshold is chosen, or `NO_ANSWER` if every
    class has one. With two classes, a threshold for one of them is the probability at which the answer changes. The
    same threshold for all classes means: abstain unless one class is at least that probable.
    """

    by_class: Array = field(default_factory=lambda: np.zeros(0))  # (classes,), NaN for a class without a threshold

    def choose(self, probabilities: Array) -> Choices:
        limits = np.broadcast_to(self.by_class, probabilities.shape[1:]) if len(self.by_class) else np.full(1, np.nan)
        factors = probabilities / np.maximum(limits, np.finfo(float).tiny)
        # (rows, classes): above 1 for classes that reach their threshold, at most 1 for classes without a threshold
        scores = np.where(np.isnan(limits), probabilities, np.where(factors >= 1, 1 + factors, -np.inf))
        return Choices(np.where(np.isneginf(scores.max(axis=1)), NO_ANSWER, scores.argmax(axis=1)))


def make_thresholds(thresholds: float | Mapping[str, float] | None, classes: Sequence[str]) -> Thresholds:
    """Make the rule from one threshold for all classes, or from thresholds by class name.

    >>> make_thresholds({"bad": 0.2}, ["bad", "good"]).choose(np.array([[0.3, 0.7], [0.1, 0.9]])).answers.tolist()
    [0, 1]
    """
    if thresholds is None:
        return Thresholds()
    named = dict.fromkeys(classes, thresholds) if isinstance(thresholds, int | float) else thresholds
    limits = np.full(len(classes), np.nan)  # NaN: no threshold
    for label, limit in named.items():
        if not 0 <= limit <= 1:
            raise DataError(f"the threshold {limit} is not allowed; use a number from 0 to 1")
        limits[find_class_index(label, classes)] = limit
    return Thresholds(limits)
