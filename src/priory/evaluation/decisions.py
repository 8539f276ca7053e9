"""What to answer when mistakes differ in what they cost, and when to answer nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array
from priory.errors import DataError


class Abstain(Enum):
    """No answer: let a person look."""

    ABSTAIN = "abstain"

    def __repr__(self) -> str:
        return self.name


ABSTAIN = Abstain.ABSTAIN


@dataclass(frozen=True, eq=False)
class Decisions:
    """An answer for each row, :data:`ABSTAIN` among them, and what it is expected to cost.

    What it costs to withhold an answer is ``reject``, and nan if that was not said.
    """

    labels: list[Any]
    cost: Array

    @property
    def abstained(self) -> Array:
        """Which rows were given no answer."""
        return np.array([label is ABSTAIN for label in self.labels])


def decide(
    probabilities: ArrayLike,
    classes: Sequence[Any] | Array,
    *,
    cost: ArrayLike | None = None,
    reject: float | None = None,
    certainty: float | None = None,
) -> Decisions:
    """The answer of least expected cost for each row of probabilities.

    ``cost[i][j]`` is what it costs to answer the j-th class when the i-th is true; without it every mistake costs 1.
    An answer is withheld where it is expected to cost more than ``reject``, the cost of asking a person (Chow's rule),
    or where no class has a probability of at least ``certainty``.

    A rare cancer occurs in 0.2 % of people: never to look for it is right 99.8 % of the time. But if missing one costs
    as much as a thousand needless checks, even a risk of 1 in 200 is worth the check:

    >>> miss = [[0, 1], [1000, 0]]  # rows: healthy, ill; columns: let go, check
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
        raise DataError(f"probabilities have shape {p.shape}; give rows of {k}, one for each class.")
    costs = 1.0 - np.eye(k) if cost is None else np.asarray(cost, dtype=float)
    if costs.shape != (k, k) or not np.isfinite(costs).all():
        raise DataError(f"cost has shape {costs.shape}; give a finite number for each true class (row) and answer.")
    expected = p @ costs
    least = expected.min(axis=1)
    withheld = (p.max(axis=1) < (certainty or 0)) | (least > (np.inf if reject is None else reject))
    answers = zip(withheld, expected.argmin(axis=1), strict=True)
    labels = [ABSTAIN if doubt else names[j] for doubt, j in answers]
    return Decisions(labels, np.where(withheld, np.nan if reject is None else reject, least))
