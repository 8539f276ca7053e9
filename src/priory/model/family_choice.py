"""Choose the family of each column by evidence, and average over sets of columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priory.core.logspace import expit
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.families.base import AnyFamily
from priory.families.value_counts import ValueCounts
from priory.model.cells import CellData

BlockRecord = Statistics | tuple[ValueCounts, ...]


def take_columns(record: BlockRecord, columns: Array) -> BlockRecord:
    """Select columns of the block."""
    return tuple(record[int(j)] for j in columns) if isinstance(record, tuple) else record.take_columns(columns)


def place_columns(record: BlockRecord, other: BlockRecord, places: Array) -> BlockRecord:
    """Replace the columns at ``places`` by the columns of another record of the same family."""
    if not isinstance(record, tuple):
        assert not isinstance(other, tuple)
        return record.place_columns(other, places)
    assert isinstance(other, tuple)
    columns = list(record)
    for place, counts in zip(places.tolist(), other, strict=True):
        columns[place] = counts
    return tuple(columns)


def pool_records(record: BlockRecord) -> BlockRecord:
    """Pool all classes into one."""
    return tuple(counts.pool_classes() for counts in record) if isinstance(record, tuple) else record.pool_classes()


def find_filled(record: BlockRecord) -> Array:
    """Whether each column has at least one learned cell, (columns,)."""
    if isinstance(record, tuple):
        return np.array([len(counts.values) > 0 for counts in record], dtype=bool)
    return record.find_filled_columns()


INCLUSION_TOLERANCE = 1e-12  # closer to 0 or 1 than this, a column is excluded or included


def column_inclusion(family: AnyFamily, statistics: BlockRecord, prior: float = 0.5) -> Array:
    """Probability that each column depends on the class, (columns,)."""
    together = family.evidence(pool_records(statistics))
    with np.errstate(invalid="ignore"):
        apart = family.evidence(statistics) - together
    # posterior log-odds = log Bayes factor + prior log-odds; NaN (-inf in both cases) is no evidence either way
    return np.asarray(expit(np.nan_to_num(apart, nan=0.0, posinf=1e9, neginf=-1e9) + np.log(prior) - np.log1p(-prior)))


def averaged_terms(family: AnyFamily, statistics: BlockRecord, x: CellData, estimate: str, inclusion: Array) -> Array:
    """Log-likelihood terms (rows, classes, columns), averaged over including and excluding each column."""
    return family.averaged_log_likelihood(statistics, pool_records(statistics), x, estimate, inclusion)


EVIDENCE_TIE_TOLERANCE = 1e-6  # nats


class FamilyChoice(NamedTuple):
    """Columns of one block and their best family; ``inclusion`` is the probability that each depends on the class."""

    block: int
    positions: Array  # (columns,): within the block
    family: AnyFamily
    statistics: BlockRecord
    inclusion: Array | None = None

    def log_likelihood(self, x: CellData, estimate: str) -> Array:
        """log p(x_j | c), (rows, classes, columns)."""
        if self.inclusion is None:
            return self.family.log_likelihood(self.statistics, x, estimate)
        return averaged_terms(self.family, self.statistics, x, estimate, self.inclusion)

    def score(self, x: CellData, estimate: str) -> Array:
        """Log-likelihoods summed over the columns, (rows, classes)."""
        if self.inclusion is None:
            return self.family.score(self.statistics, x, estimate)
        pooled = pool_records(self.statistics)
        return self.family.averaged_score(self.statistics, pooled, x, estimate, self.inclusion)


def argmax_evidence(evidence: Array) -> Array:
    """Index of the best along the first axis; ties, up to rounding, go to the first (the simplest family)."""
    defined = np.nan_to_num(evidence, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.argmax(defined >= defined.max(axis=0) - EVIDENCE_TIE_TOLERANCE, axis=0)
