"""Misclassification costs: one for each true class and answer, and one for abstaining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from priory.core.name_suggestions import suggest_name
from priory.core.typing import Array
from priory.errors import DataError

ABSTAIN_NAME, FALSE_NEGATIVE, FALSE_POSITIVE = "abstain", "fn", "fp"


@dataclass(frozen=True)
class CostTable:
    """Costs for the classes of one model.

    Parameters
    ----------
    mistakes : ndarray of shape (n_classes, n_classes)
        The cost of each answer (column) by the true class (row).
    abstain : ndarray of shape (n_classes,), optional
        The cost of giving no answer by the true class; by default there is always an answer.
    """

    mistakes: Array
    abstain: Array | None = None

    def expect(self, probabilities: Array) -> Array:
        """Return the expected cost of each answer, (rows, answers); abstaining, if allowed, is the last column."""
        answers = self.mistakes if self.abstain is None else np.column_stack([self.mistakes, self.abstain])
        return probabilities @ answers  # (rows, classes) @ (classes, answers)


@dataclass(frozen=True)
class Costs:
    """Costs by class name, as a user gives them.

    Parameters
    ----------
    mistakes : dict of (true class, answer) to cost
        A mistake that is not named costs 1, a right answer 0.
    false_negative, false_positive : float, optional
        With two classes: the cost of a false negative and of a false positive.
    positive : str, optional
        The positive class; by default the rarer one.
    abstain : float, or dict of true class to cost, optional
        The cost of giving no answer; by default there is always an answer.
    """

    mistakes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    false_negative: float | None = None
    false_positive: float | None = None
    positive: str | None = None
    abstain: float | Mapping[str, float] | None = None

    def tabulate(self, classes: Sequence[str], counts: Array) -> CostTable:
        """Return the cost table for these classes; ``counts`` has the number of rows of each.

        >>> Costs(false_negative=10).tabulate(["bad", "good"], np.array([30.0, 70.0])).mistakes.tolist()
        [[0.0, 10.0], [1.0, 0.0]]
        """
        table = 1.0 - np.eye(len(classes))  # (true class, answer): zero-one loss
        if self.false_negative is not None or self.false_positive is not None:
            positive = self.find_positive(classes, counts)
            table[positive, 1 - positive] = 1.0 if self.false_negative is None else self.false_negative
            table[1 - positive, positive] = 1.0 if self.false_positive is None else self.false_positive
        for (truth, answer), cost in self.mistakes.items():
            table[find_class_index(truth, classes), find_class_index(answer, classes)] = cost
        return CostTable(table, self._tabulate_abstaining(classes))

    def find_positive(self, classes: Sequence[str], counts: Array) -> int:
        """Return the index of the positive class: the named one, or the rarer of the two."""
        if len(classes) != 2:
            raise DataError(
                f"fn and fp are for two classes, and the model has {len(classes)}; give costs as TRUE:ANSWER=COST"
            )
        return int(np.argmin(counts)) if self.positive is None else find_class_index(self.positive, classes)

    def _tabulate_abstaining(self, classes: Sequence[str]) -> Array | None:
        if self.abstain is None or isinstance(self.abstain, int | float):
            return None if self.abstain is None else np.full(len(classes), float(self.abstain))
        absent = [label for label in classes if label not in self.abstain]
        if absent:
            raise DataError(f"there is no cost of giving no answer where {absent[0]!r} is true; give one")
        return np.array([self.abstain[label] for label in classes], dtype=float)


def parse_costs(text: str, positive: str | None = None) -> Costs:
    """Parse costs written as ``fn=10,fp=1``, or as ``TRUE:ANSWER=COST`` for any classes, with ``abstain=COST``.

    >>> parse_costs("fn=10,fp=1,abstain=0.5").false_negative
    10.0
    >>> parse_costs("bad:good=10").mistakes
    {('bad', 'good'): 10.0}
    """
    mistakes: dict[tuple[str, str], float] = {}
    named: dict[str, float] = {}
    for pair in text.split(","):
        name, _, number = pair.rpartition("=")  # class names may contain "="
        name = name.strip()
        truth, colon, answer = name.partition(":")
        if name in (FALSE_NEGATIVE, FALSE_POSITIVE, ABSTAIN_NAME):
            named[name] = parse_finite(number, pair, "a cost")
        elif colon:
            mistakes[truth, answer] = parse_finite(number, pair, "a cost")
        else:
            raise DataError(f"{pair!r} is not a cost; write fn=10, fp=1, abstain=0.5 or TRUE:ANSWER=COST")
    return Costs(mistakes, named.get(FALSE_NEGATIVE), named.get(FALSE_POSITIVE), positive, named.get(ABSTAIN_NAME))


def parse_finite(number: str, place: str, meaning: str) -> float:
    """Parse a finite number; ``place`` and ``meaning`` are used in the error message."""
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise DataError(f"{place}: {number.strip()!r} is not {meaning}; give a number")
    return value


def find_class_index(label: str, classes: Sequence[str]) -> int:
    """Return the index of a class; the error for an unknown class lists the known ones."""
    if label not in classes:
        known = ", ".join(map(repr, classes[:10]))
        raise DataError(f"the model has no class {label!r}{suggest_name(label, classes)}; it has {known}")
    return list(classes).index(label)
