"""Decisions: the answer with the lowest expected cost, by a threshold for each class, or none at all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.errors import DataError, suggest_name

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
    abstain : float, optional
        The cost of giving no answer; by default there is always an answer.
    """

    mistakes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    false_negative: float | None = None
    false_positive: float | None = None
    positive: str | None = None
    abstain: float | None = None

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
        return CostTable(table, None if self.abstain is None else np.full(len(classes), float(self.abstain)))

    def find_positive(self, classes: Sequence[str], counts: Array) -> int:
        """Return the index of the positive class: the named one, or the rarer of the two."""
        if len(classes) != 2:
            raise DataError(
                f"fn and fp are for two classes, and the model has {len(classes)}; give costs as TRUE:ANSWER=COST"
            )
        return int(np.argmin(counts)) if self.positive is None else find_class_index(self.positive, classes)


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


NO_ANSWER = -1


class Choices(NamedTuple):
    """The chosen class index of each row (or `NO_ANSWER`), and its expected cost if the rule has costs."""

    answers: Array  # (rows,)
    cost: Array | None = None  # (rows,)


@dataclass(frozen=True)
class LeastCost:
    """Choose the answer with the lowest expected cost, or abstain (Chow's rule); ties go to the first."""

    costs: CostTable

    def choose(self, probabilities: Array) -> Choices:
        """Return the answer for each row of probabilities, (rows, classes)."""
        expected = self.costs.expect(probabilities)  # (rows, answers)
        chosen = expected.argmin(axis=1)
        # the column after the last class is abstaining
        answers = np.where(chosen < len(self.costs.mistakes), chosen, NO_ANSWER)
        return Choices(answers, expected[np.arange(len(expected)), chosen])


@dataclass(frozen=True)
class Thresholds:
    """Choose the class that exceeds its threshold by the largest factor, and never a class below its threshold.

    If no class reaches its threshold, the most probable class without a threshold is chosen, or `NO_ANSWER` if every
    class has one. With two classes, a threshold for one of them is the probability at which the answer changes. The
    same threshold for all classes means: abstain unless one class is at least that probable.
    """

    by_class: Array = field(default_factory=lambda: np.zeros(0))  # (classes,), NaN for a class without a threshold

    def choose(self, probabilities: Array) -> Choices:
        """Return the answer for each row of probabilities, (rows, classes)."""
        limits = np.broadcast_to(self.by_class, probabilities.shape[1:]) if len(self.by_class) else np.full(1, np.nan)
        factors = probabilities / np.maximum(limits, np.finfo(float).tiny)
        # (rows, classes): above 1 for classes that reach their threshold, at most 1 for classes without a threshold
        scores = np.where(np.isnan(limits), probabilities, np.where(factors >= 1, 1 + factors, -np.inf))
        return Choices(np.where(np.isneginf(scores.max(axis=1)), NO_ANSWER, scores.argmax(axis=1)))


DecisionRule = LeastCost | Thresholds  # chooses answers from the probabilities of classes


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


class Abstain(Enum):
    """The type of `ABSTAIN`, the decision to give no answer."""

    ABSTAIN = "abstain"

    def __repr__(self) -> str:
        return self.name


ABSTAIN = Abstain.ABSTAIN


@dataclass(frozen=True, eq=False)
class Decisions:
    """The answer for each row, which may be :data:`ABSTAIN`, and its expected cost.

    The cost of abstaining is ``reject``, or NaN if that was not given.
    """

    labels: list[Any]
    cost: Array  # (rows,)

    @property
    def abstained(self) -> Array:
        """Whether the decision was to abstain, (rows,)."""
        return np.array([label is ABSTAIN for label in self.labels])


def decide(
    probabilities: ArrayLike,
    classes: Sequence[Hashable] | Array,
    *,
    cost: ArrayLike | None = None,
    reject: float | None = None,
    certainty: float | None = None,
) -> Decisions:
    """Return the answer with the lowest expected cost for each row of probabilities.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes)
        The probability of each class.
    classes : sequence of length n_classes
        The classes, in the order of the columns.
    cost : array-like of shape (n_classes, n_classes), default=None
        ``cost[i][j]`` is the cost of answering class j when class i is true. By default every mistake costs 1.
    reject : float, default=None
        The cost of asking a person: no answer is given where every answer has a higher expected cost (Chow's rule).
    certainty : float, default=None
        No answer is given where no class has at least this probability.

    Returns
    -------
    Decisions
        The answers, :data:`ABSTAIN` among them, and their expected costs.

    References
    ----------
    .. [1] C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information Theory
       16(1), 1970.

    Examples
    --------
    A rare cancer occurs in 0.2 % of people: a test that never reports it is right 99.8 % of the time. But if missing a
    case costs as much as a thousand unnecessary examinations, even a risk of 1 in 200 justifies one:

    >>> miss = [[0, 1], [1000, 0]]  # rows: healthy, ill; columns: dismiss, examine
    >>> risk = [[0.995, 0.005], [0.9995, 0.0005]]
    >>> decide(risk, ["healthy", "ill"]).labels
    ['healthy', 'healthy']
    >>> chosen = decide(risk, ["healthy", "ill"], cost=miss)
    >>> chosen.labels, chosen.cost.round(3).tolist()
    (['ill', 'healthy'], [0.995, 0.5])
    >>> decide([[0.6, 0.4], [0.99, 0.01]], ["healthy", "ill"], certainty=0.9).labels
    [ABSTAIN, 'healthy']
    """
    p, names = np.asarray(probabilities, dtype=float), np.asarray(classes).tolist()
    k = len(names)
    if p.ndim != 2 or p.shape[1] != k:
        raise DataError(f"probabilities have shape {p.shape}; give one row of {k} probabilities per case.")
    costs = 1.0 - np.eye(k) if cost is None else np.asarray(cost, dtype=float)
    if costs.shape != (k, k) or not np.isfinite(costs).all():
        raise DataError(f"cost has shape {costs.shape}; give a finite number for each true class (row) and answer.")
    choices = LeastCost(CostTable(costs, None if reject is None else np.full(k, float(reject)))).choose(p)
    assert choices.cost is not None  # LeastCost always sets it
    unsure = p.max(axis=1) < (certainty or 0)  # (rows,)
    answers = np.where(unsure, NO_ANSWER, choices.answers)
    labels = [ABSTAIN if j == NO_ANSWER else names[j] for j in answers]
    return Decisions(labels, np.where(unsure, np.nan if reject is None else reject, choices.cost))
