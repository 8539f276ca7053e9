"""Choice of the family of each column, by evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priory.core.typing import Array
from priory.families.base import AnyFamily
from priory.models.cells import CellData
from priory.models.feature_averaging import averaged_terms
from priory.models.records import BlockRecord, pool_records

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
