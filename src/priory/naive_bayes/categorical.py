"""Categorical naive Bayes: every column is one of the categories 0, 1, 2, …"""

from __future__ import annotations

from typing import Any

import numpy as np

from priory.core.column_kernels import count_codes, score_by_lookup
from priory.core.registration import register_estimator
from priory.core.sharding import map_shards
from priory.core.typing import Array
from priory.errors import DataError
from priory.families.value_counts import ValueCounts
from priory.naive_bayes.discrete import CountNB, log_shares
from priory.naive_bayes.input_checks import check_finite, make_count_checker, read_matrix, warn_of_fractions

MAX_CATEGORY_CELLS = 1 << 28  # two gigabytes of counts
FREE_CATEGORY_CELLS = 1 << 20  # counts that a model file may ask for, whatever it holds
MAX_CELLS_PER_COUNT = 64  # and beyond them, for each count that is in the file


@register_estimator()
class CategoricalNB(CountNB):
    """Naive Bayes for categories given by number: ``p(k | c) = (count + alpha) / (rows + alpha * categories)``.

    Parameters
    ----------
    alpha : float
        Virtual rows of each category.
    force_alpha : bool
        Whether an alpha below 1e-10 is taken as it is.
    fit_prior : bool
        Whether the class prior is estimated; else it is uniform.
    class_prior : one probability for each class, optional
    min_categories : int, or one for each column, optional
        How many categories there are at least.

    Examples
    --------
    >>> model = CategoricalNB().fit([[0], [0], [2]], ["yes", "yes", "no"])
    >>> np.exp(model.feature_log_prob_[0][1]).round(4).tolist()  # yes: (2 + 1) / (2 + 3), then 1 / 5 twice
    [0.6, 0.2, 0.2]
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def _is_consistent(self) -> bool:
        """Categories are whole numbers, and the table of all of them is in proportion to what was seen."""
        parts = self.statistics_.parts
        if not all(isinstance(p, ValueCounts) and p.values.dtype.kind == "i" and (p.values >= 0).all() for p in parts):
            return False
        if len(parts) != self.n_features_in_:
            return False
        cells = len(self.statistics_.n) * float(self.n_categories_.astype(float).sum())
        if cells > FREE_CATEGORY_CELLS + MAX_CELLS_PER_COUNT * sum(p.counts.size for p in parts):
            raise DataError(
                f"CategoricalNB needs {cells:,.0f} counts for categories that hardly occur; "
                "number the categories from 0."
            )
        return True

    def _read(self, X: Any, reset: bool) -> Array:
        x: Array = read_matrix(self, X, reset)
        if x.dtype.kind == "f":
            check_finite(x)
            warn_of_fractions(x)
        return x

    def _count_records(self, table: Array, n: Array, group: Array, weight: Array | None) -> tuple[ValueCounts, ...]:
        self._check_min_categories()
        widths = _count_categories(table, len(n))
        counts = count_codes(table, widths, group, weight, len(n))
        return tuple(ValueCounts.of(np.arange(c.shape[1]), c) for c in counts)

    def _check_min_categories(self) -> Array:
        """The declared number of categories of each column."""
        least = np.asarray(0 if self.min_categories is None else self.min_categories)
        if least.dtype.kind not in "iu":
            raise DataError(f"'min_categories' should have integral type. Got {least.dtype} instead.")
        if least.shape not in ((), (self.n_features_in_,)):
            wanted = f"({self.n_features_in_},) when an array-like is provided. Got {least.shape} instead."
            raise DataError(f"'min_categories' should have shape {wanted}")
        return np.broadcast_to(least, (self.n_features_in_,))

    @property
    def n_categories_(self) -> Array:
        """How many categories each column has: as declared, or one more than the largest that was seen."""
        shown = [tally.values[-1] + 1 if len(tally.values) else 0 for tally in self._fitted_statistics().parts]
        return np.maximum(shown, self._check_min_categories()).astype(np.int64)

    @property
    def category_count_(self) -> list[Array]:
        """For each column the weight of the rows of each class in each category."""
        return [
            (tally + ValueCounts(np.arange(k), np.zeros((len(tally.counts), k)))).counts
            for tally, k in zip(self._fitted_statistics().parts, self.n_categories_, strict=True)
        ]

    @property
    def feature_log_prob_(self) -> list[Array]:
        """For each column log p(k | c)."""
        return [table[:, :-1] for table in self._log_probability_tables()]

    def _log_probability_tables(self) -> list[Array]:
        """log p(k | c), and one more category, of all that were never seen, which speaks for no class."""
        return list(self._derive("tables", self._compute_tables, self._check_min_categories().tobytes()))

    def _compute_tables(self, records: tuple[ValueCounts, ...], alpha: float) -> list[Array]:
        return [np.pad(log_shares(counts + alpha), ((0, 0), (0, 1))) for counts in self.category_count_]

    def _log_joint(self, table: Array) -> Array:
        tables = self._log_probability_tables()
        unseen = np.array([t.shape[1] - 1 for t in tables])
        counted = make_count_checker(table, type(self).__name__)
        tables[0] = tables[0] + self._log_prior()[:, None]

        def codes(part: slice) -> Array:
            block = counted(table[part])
            return np.minimum(block, unseen, out=np.empty(block.shape, dtype=np.int32), casting="unsafe")

        return score_by_lookup(codes, len(table), tables)

    def _effective_alpha(self) -> Any:
        if np.ndim(self.alpha):
            raise DataError(f"alpha is {self.alpha!r}; categories share one alpha: use a number.")
        return super()._effective_alpha()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.sparse = False
        tags.input_tags.positive_only = True
        return tags


def _count_categories(x: Array, classes: int) -> Array:
    """One more than the largest category of each column."""
    counted = make_count_checker(x, CategoricalNB.__name__)
    largest = np.max(list(map_shards(lambda part: counted(x[part]).max(axis=0), len(x))), axis=0)
    if float(largest.astype(float).sum()) * classes > MAX_CATEGORY_CELLS:
        column = int(largest.argmax())
        remedy = "its counts would not fit in memory: number the categories from 0 (OrdinalEncoder)"
        raise DataError(f"column {column} holds category {largest[column]:.0f}; {remedy}.")
    return largest.astype(np.int64) + 1
