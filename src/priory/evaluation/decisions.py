"""Decisions: the answer with the lowest expected cost, or no answer at all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation.costs import CostTable
from priory.evaluation.decision_rules import NO_ANSWER, LeastCost


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
