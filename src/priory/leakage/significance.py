"""Significance tests and confidence intervals of the audit.

>>> round(binomial_tail(9, 10, 0.5), 4)      # nine or ten heads of ten
0.0107
>>> [round(bound, 3) for bound in clopper_pearson_interval(9, 10)]
[0.555, 0.997]
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincinv, chdtrc, rel_entr

from priory.core.typing import Array
from priory.evaluation.curves import roc_curve

MIN_EXPECTED_COUNT = 5.0  # per cell, for the chi-square approximation
RARE_CLASS_SHARE = 0.05  # of all rows; smaller classes are pooled


def binomial_tail(successes: float, trials: float, p: float) -> float:
    """Return P(X >= successes) of a binomial X; fractions are interpolated smoothly."""
    return 1.0 if successes <= 0 else float(betainc(successes, max(trials - successes, 0.0) + 1, p))


def clopper_pearson_interval(successes: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a proportion (Clopper and Pearson)."""
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return low, high


def mcnemar_p_value(correct: Array, other_correct: Array) -> float:
    """McNemar's exact one-sided test of the hypothesis that the first predictions are no better than the second."""
    only, other_only = int((correct & ~other_correct).sum()), int((other_correct & ~correct).sum())
    return binomial_tail(only, only + other_only, 0.5)


def measure_association(counts: Array) -> tuple[float, float]:
    """Return the mutual information of a contingency table, in bits, and the p-value of independence.

    Rare rows are pooled, and neighbouring columns are joined until the expected count of each cell is at least
    `MIN_EXPECTED_COUNT`.
    """
    table = np.asarray(counts, dtype=float)
    rows, n = table.sum(axis=1), table.sum()
    rare = rows < RARE_CLASS_SHARE * n  # (rows,)
    table = np.vstack([table[~rare], table[rare].sum(axis=0)])
    table = table[table.any(axis=1)]
    if len(table) < 2:
        return 0.0, 1.0
    # the smallest column sum for which every expected count is large enough
    needed = MIN_EXPECTED_COUNT * n / table.sum(axis=1).min()
    columns = table.sum(axis=0)
    # (columns,): the joined column of each column
    part = np.minimum((np.cumsum(columns) - columns) // needed, max(n // needed - 1, 0))
    table = np.add.reduceat(table, np.flatnonzero(np.diff(part, prepend=-1)), axis=1)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    if not freedom:
        return 0.0, 1.0
    pearson = float(((table - expected) ** 2 / expected).sum())
    return float(rel_entr(table, expected).sum()) / (n * np.log(2)), float(chdtrc(freedom, pearson))


def measure_presence_association(present_counts: Array, class_totals: Array) -> tuple[Array, Array]:
    """Return mutual information (bits) and p-values of many binary features, (features,) each.

    ``present_counts`` (features, classes) is the number of rows of each class in which each feature is present. Classes
    with too few rows for a feature are left out of its sum and of its degrees of freedom.
    """
    share = present_counts.sum(axis=1, keepdims=True) / max(class_totals.sum(), 1)
    enough = np.minimum(share, 1 - share) * class_totals >= MIN_EXPECTED_COUNT
    # (present or absent, features, classes)
    observed = np.stack([present_counts, class_totals - present_counts])
    expected = np.stack([share * class_totals, (1 - share) * class_totals])
    with np.errstate(divide="ignore", invalid="ignore"):
        pearson = np.where(enough, (observed - expected) ** 2 / expected, 0.0).sum(axis=(0, 2))
    # (features,): classes used; with all of them, one degree of freedom is lost
    classes = enough.sum(axis=1)
    p = np.where(classes > 1, chdtrc(np.maximum(classes - (classes == len(class_totals)), 1), pearson), 1.0)
    return rel_entr(observed, expected).sum(axis=(0, 2)) / (np.log(2) * max(class_totals.sum(), 1)), p


def auc_with_error(score: Array, positive: Array) -> tuple[float, float]:
    """Return the area under the ROC curve, and its standard error under independence (Mann-Whitney)."""
    m, n = float(positive.sum()), float((~positive).sum())
    area = roc_curve(positive, score, np.ones(len(score))).area.value
    return area, float(np.sqrt((m + n + 1) / (12 * m * n)))
