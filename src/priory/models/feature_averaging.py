"""The Bayes-optimal naive Bayes: averaging over all 2^d sets of features, at the cost of one model.

A set S says which columns depend on the class. Given the data its probability is a product over the columns, so the sum
over all sets is a product too:

    Σ_S p(S | data) Π_{j∈S} p(x_j | c) Π_{j∉S} p(x_j)  =  Π_j ( r_j p(x_j | c) + (1 - r_j) p(x_j) )

where r_j, the probability that column j matters, weighs the evidence of the column with the classes apart against that
with the classes together. Both come from the record (the second from its sum over classes), so both forget with it.
"""

from __future__ import annotations

import numpy as np

from priory.core.special_functions import expit
from priory.core.typing import Array
from priory.families.base import AnyFamily
from priory.models.cells import CellData
from priory.models.records import BlockRecord, pool_records

INCLUSION_TOLERANCE = 1e-12  # nearer to 0 or 1 than this, a column is simply out or in


def column_inclusion(family: AnyFamily, statistics: BlockRecord, prior: float = 0.5) -> Array:
    """The probability that each column depends on the class."""
    together = family.evidence(pool_records(statistics))
    with np.errstate(invalid="ignore"):
        apart = family.evidence(statistics) - together
    return np.asarray(expit(np.nan_to_num(apart, nan=0.0, posinf=1e9, neginf=-1e9) + np.log(prior) - np.log1p(-prior)))


def averaged_terms(family: AnyFamily, statistics: BlockRecord, x: CellData, estimate: str, inclusion: Array) -> Array:
    """Terms (rows, classes, columns): each column as far as it matters."""
    return family.averaged_log_likelihood(statistics, pool_records(statistics), x, estimate, inclusion)
