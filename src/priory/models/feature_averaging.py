"""Bayesian model averaging over all 2^d sets of features, at the cost of one model.

A set S contains the columns that depend on the class. Its posterior probability is a product over the columns, so the
sum over all sets is a product too:

    Σ_S p(S | data) Π_{j∈S} p(x_j | c) Π_{j∉S} p(x_j)  =  Π_j ( r_j p(x_j | c) + (1 - r_j) p(x_j) )

where r_j, the probability that column j depends on the class, compares the evidence of the column with separate classes
and with pooled classes. Both are functions of the statistics, so forgetting rows updates them.
"""

from __future__ import annotations

import numpy as np

from priory.core.special_functions import expit
from priory.core.typing import Array
from priory.families.base import AnyFamily
from priory.models.cells import CellData
from priory.models.records import BlockRecord, pool_records

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
