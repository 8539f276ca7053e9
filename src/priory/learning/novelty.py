"""How unusual a row is under everything learned: p-values from the rows that the model keeps, each left out.

A row of none of the classes is unusual in two ways: its density p(x) is small, and no class is certain. Both are ranked
among left-out rows, the logarithms of the ranks are added (Fisher's method), and the rank of that sum among left-out
rows is the p-value. For rows like those learned it is uniform or larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import log_normalise
from priory.core.sharding import space_evenly
from priory.learning.learned import Learned, answer
from priory.learning.left_out_scores import judge_kept_rows
from priory.model.cells import take_rows

MAX_ROWS_RANKED = 2000  # kept rows that new ones are compared with
MAX_ROWS_SUBTRACTED = 200  # if each is left out by subtraction, which is slower


@dataclass(frozen=True)
class Ranks:
    """Values of left-out rows, sorted, with their cumulative weights."""

    values: Array  # (rows,)
    weights: Array  # (rows,): of this value and all smaller ones

    @classmethod
    def of(cls, values: Array, weight: Array) -> Ranks:
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.cumsum(weight[order]))

    def find_share(self, x: Array) -> Array:
        """(rows,): the share of values up to x, counting x itself: never zero."""
        below = np.append(0.0, self.weights)[np.searchsorted(self.values, x, side="right")]
        return np.asarray((1 + below) / (1 + self.weights[-1]))


@dataclass(frozen=True)
class UsualRows:
    """What is usual: the density, the certainty, and the combination of both among left-out rows."""

    density: Ranks
    certainty: Ranks
    combined: Ranks

    @classmethod
    def of(cls, learned: Learned) -> UsualRows:
        """Leave out the rows that the model keeps, or some of them."""
        scores, sample, model = judge_kept_rows(learned), learned.statistics.sample, learned.model()
        assert sample is not None
        assert scores.positions is not None
        limit = MAX_ROWS_RANKED if model.can_leave_one_out else MAX_ROWS_SUBTRACTED
        some = space_evenly(len(scores.positions), limit)
        rows, weight = scores.positions[some], scores.weight[some]
        values = model.leave_one_out_density(take_rows(sample.blocks, rows), sample.group[rows])
        certainties = scores.log_probabilities[some].max(axis=1)
        density, certainty = Ranks.of(values, weight), Ranks.of(certainties, weight)
        return cls(density, certainty, Ranks.of(combine(density, certainty, values, certainties), weight))


def combine(density: Ranks, certainty: Ranks, values: Array, certainties: Array) -> Array:
    """(rows,): the sum of the log ranks of densities and certainties."""
    return np.asarray(np.log(density.find_share(values)) + np.log(certainty.find_share(certainties)))


def find_p_values(learned: Learned, X: object) -> Array:
    """(rows,): the share of rows like those learned that are at least as unusual."""
    usual = learned.statistics.derive("usual rows", lambda _: UsualRows.of(learned), repr(learned.rows.parameters))
    batch = learned.rows.read(X, "answer", learned.statistics)[1]
    values = learned.model().log_density(learned.rows.read_cells(batch))
    certainties = answer(learned, X, log_normalise).max(axis=1)
    return usual.combined.find_share(combine(usual.density, usual.certainty, values, certainties))
