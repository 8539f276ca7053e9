"""Rules that turn probabilities into answers: the least expected cost, or a threshold for each class."""

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
    """The answer to each row as the index of a class, `NO_ANSWER` for none, and its expected cost if costs decide."""

    answers: Array  # (rows,)
    cost: Array | None = None  # (rows,)


class DecisionRule(ABC):
    """How an answer is chosen."""

    @abstractmethod
    def choose(self, probabilities: Array) -> Choices:
        """The answers to rows of probabilities, (rows, classes)."""


@final
@dataclass(frozen=True)
class LeastCost(DecisionRule):
    """The answer of least expected cost, which may be none (Chow's rule); of equal ones the first."""

    costs: CostTable

    def choose(self, probabilities: Array) -> Choices:
        expected = self.costs.expect(probabilities)
        chosen = expected.argmin(axis=1)
        answers = np.where(chosen < len(self.costs.mistakes), chosen, NO_ANSWER)
        return Choices(answers, expected[np.arange(len(expected)), chosen])


@final
@dataclass(frozen=True)
class Thresholds(DecisionRule):
    """The class that exceeds its threshold by the largest factor; a class below its threshold is never the answer.

    Where no class reaches its threshold, the most probable class without a threshold is the answer, and there is none
    if every class has one. So a threshold for one of two classes is where the answer changes from the other to it, and
    the same threshold for all classes leaves rows without an answer unless one class is that probable.
    """

    by_class: Array = field(default_factory=lambda: np.zeros(0))  # (classes,), NaN for a class without a threshold

    def choose(self, probabilities: Array) -> Choices:
        limits = np.broadcast_to(self.by_class, probabilities.shape[1:]) if len(self.by_class) else np.full(1, np.nan)
        factors = probabilities / np.maximum(limits, np.finfo(float).tiny)
        # those that reach a threshold first (their factor is at least 1), then those without one (at most 1)
        scores = np.where(np.isnan(limits), probabilities, np.where(factors >= 1, 1 + factors, -np.inf))
        return Choices(np.where(np.isneginf(scores.max(axis=1)), NO_ANSWER, scores.argmax(axis=1)))


def make_thresholds(thresholds: float | Mapping[str, float] | None, classes: Sequence[str]) -> Thresholds:
    """The rule for one threshold for all classes, or thresholds by the names of classes.

    >>> make_thresholds({"bad": 0.2}, ["bad", "good"]).choose(np.array([[0.3, 0.7], [0.1, 0.9]])).answers.tolist()
    [0, 1]
    """
    if thresholds is None:
        return Thresholds()
    named = dict.fromkeys(classes, thresholds) if isinstance(thresholds, int | float) else thresholds
    limits = np.full(len(classes), np.nan)
    for label, limit in named.items():
        if not 0 <= limit <= 1:
            raise DataError(f"the threshold {limit} is not allowed; use a number from 0 to 1")
        limits[find_class_index(label, classes)] = limit
    return Thresholds(limits)
