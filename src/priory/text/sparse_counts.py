"""Sparse counts of tokens by class, for texts of many classes: most tokens occur in few classes.

With up to `MAX_DENSE_CLASSES` classes, counts are an array (tokens, classes); with more they are `SparseCounts`. The
number of classes alone determines which, so that equal records have equal bytes. Both can be summed, added, scaled and
indexed in the same way; the functions of this module cover the operations that differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
from numpy import ndarray as Array

from priory.core.sharding import check_memory
from priory.core.sparse_rows import sum_entries_by_class
from priory.core.statistics import Statistics, register_record, subtract_counts
from priory.errors import NotLearnedError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


MAX_DENSE_CLASSES = 64
TABLES_IN_MEMORY = 3  # at once, each (tokens, classes): the counts, the weights, and an intermediate


@register_record(
    "SparseCounts", axes={"ends": "v", "classes": "b", "values": "b"}, dtypes={"ends": "i8", "classes": "i4"}
)
@dataclass(frozen=True, eq=False)
class SparseCounts(Statistics):
    """The positive counts, token by token (CSR format).

    >>> counts = SparseCounts.from_csr(make_csr(np.array([[0.0, 2.0], [1.0, 0.0]]), (2, 2)))
    >>> (counts + counts).sum(axis=1).tolist(), counts[np.array([0, 1]), np.array([1, 1])].tolist()
    ([4.0, 2.0], [2.0, 0.0])
    """

    count_fields: ClassVar[tuple[str, ...]] = ("values",)

    ends: Array  # (tokens,): where the entries of each token end
    classes: Array  # (entries,): the class of each, increasing within a token
    values: Array  # (entries,): positive
    n_classes: int

    @classmethod
    def from_csr(cls, matrix: csr_array) -> SparseCounts:
        """Convert a sparse array (tokens, classes), which may have explicit zeros and unsorted entries."""
        matrix.eliminate_zeros()
        matrix.sort_indices()
        ends = matrix.indptr[1:].astype(np.int64)
        return cls(ends, matrix.indices.astype(np.int32), matrix.data.astype(float), matrix.shape[1])

    @property
    def csr(self) -> csr_array:
        """The counts as a SciPy array."""
        return self.derive("csr", SparseCounts._make_csr)

    def _make_csr(self) -> csr_array:
        indptr = np.append(0, self.ends)
        return make_csr((self.values, self.classes, indptr), self.shape)

    @property
    def tokens(self) -> Array:
        """The token of each entry, (entries,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.ends, prepend=0))

    @property
    def cell_numbers(self) -> Array:
        """The flat index of each entry in (tokens, classes), (entries,)."""
        return self.derive("cells", lambda counts: counts.tokens * counts.n_classes + counts.classes)

    def find_entries(self, tokens: Array, classes: Array) -> tuple[Array, Array]:
        """For each cell the position of its entry, and whether it has one."""
        # flat indices of the cells, found by bisection among the sorted flat indices of the entries
        numbers = tokens * np.int64(self.n_classes) + classes
        place = np.minimum(np.searchsorted(self.cell_numbers, numbers), max(len(self.values) - 1, 0))
        found = self.cell_numbers[place] == numbers if len(self.values) else np.zeros(len(numbers), dtype=bool)
        return place, found

    def replace_values(self, values: Array) -> SparseCounts:
        """Replace the counts of the entries, dropping zeros."""
        kept = values != 0
        sizes = np.bincount(self.tokens[kept], minlength=len(self))
        return SparseCounts(np.cumsum(sizes), self.classes[kept], values[kept], self.n_classes)

    def find_fault(self) -> str | None:
        sizes = np.diff(self.ends, prepend=0)
        if (sizes < 0).any() or (self.ends[-1] if len(self.ends) else 0) != len(self.values):
            return "the tokens do not follow one another"
        if not (self.values > 0).all() or not ((self.classes >= 0) & (self.classes < self.n_classes)).all():
            return "a count is not positive, or of a class that is not there"
        return None if (np.diff(self.cell_numbers, prepend=-1) > 0).all() else "the classes of a token are not sorted"

    # -- as an array -----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ends), self.n_classes

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, cells: tuple[Array, Array]) -> Array: ...
    @overload
    def __getitem__(self, cells: Array) -> SparseCounts: ...
    def __getitem__(self, cells: Array | tuple[Array, Array]) -> Array | SparseCounts:
        """Counts of single cells, given by tokens and classes; or the counts of some tokens."""
        if isinstance(cells, tuple):
            place, found = self.find_entries(*cells)
            return np.where(found, np.append(self.values, 0.0)[place], 0.0)
        return SparseCounts.from_csr(self.csr[cells])

    def sum(self, axis: int | None = None) -> Array:
        if axis == 0:
            return np.bincount(self.classes, self.values, self.n_classes).astype(float)
        return np.bincount(self.tokens, self.values, len(self)).astype(float) if axis == 1 else self.values.sum()

    def any(self, axis: int) -> Array:
        """Whether each token (``axis=1``) or class has any counts."""
        return np.bincount(self.tokens if axis == 1 else self.classes, minlength=self.shape[1 - axis]) > 0

    def max(self, axis: int, initial: float) -> Array:
        """Largest count of each class (``axis=0``) or token."""
        largest = np.full(self.shape[1 - axis], initial)
        np.maximum.at(largest, self.classes if axis == 0 else self.tokens, self.values)
        return largest

    def min(self, initial: float) -> float:
        """Smallest count."""
        return float(self.values.min(initial=initial))

    # -- as a record -----------------------------------------------------------------------------------------------

    def __add__(self, other: SparseCounts) -> SparseCounts:
        return SparseCounts.from_csr(self.csr + other.csr)

    def __mul__(self, weight: float) -> SparseCounts:
        return self.replace_values(self.values * weight)

    __rmul__ = __mul__


CountTable = Array | SparseCounts  # (tokens, classes)


def make_csr(cells: Any, shape: tuple[int, int]) -> csr_array:
    """Make a SciPy array; imported here, because SciPy is slow to import and models of few classes do not use it."""
    import scipy

    return scipy.sparse.csr_array(cells, shape=shape)


def is_kept_sparse(n_classes: int) -> bool:
    """Whether counts of this number of classes are stored as `SparseCounts`."""
    return n_classes > MAX_DENSE_CLASSES


def make_count_table(matrix: csr_array) -> CountTable:
    """Convert a sparse array (tokens, classes) to the format for its number of classes."""
    return SparseCounts.from_csr(matrix) if is_kept_sparse(matrix.shape[1]) else np.asarray(matrix.toarray())


def make_empty_table(n_tokens: int, n_classes: int) -> CountTable:
    """Make a table of zeros."""
    if not is_kept_sparse(n_classes):
        return np.zeros((n_tokens, n_classes))
    return SparseCounts(np.zeros(n_tokens, np.int64), np.zeros(0, np.int32), np.zeros(0), n_classes)


def count_entries_by_class(
    indptr: Array, ids: Array, values: Array | None, group: Array, weight: Array | None, shape: tuple[int, int]
) -> CountTable:
    """Sum of the entries of each token over the documents of each class, (tokens, classes).

    ``indptr``, ``ids`` and ``values`` are documents as sparse rows, with values of one by default; ``group`` and
    ``weight`` are the class and the weight of each document.
    """
    n_documents, (n_tokens, n_classes) = len(group), shape
    if not is_kept_sparse(n_classes):
        return sum_entries_by_class(indptr, ids, values, group, weight, shape)
    entries = np.ones(len(ids)) if values is None else values, ids, indptr
    own_classes = np.ones(n_documents) if weight is None else weight, group, np.arange(n_documents + 1)
    # (tokens, documents) @ (documents, classes), where a row of the latter has the document's weight at its class
    rows = make_csr(entries, (n_documents, n_tokens))
    classes = make_csr(own_classes, (n_documents, n_classes))
    return SparseCounts.from_csr((rows.T @ classes).tocsr())


def spread_tokens(counts: CountTable, rows: Array, n_tokens: int) -> CountTable:
    """Expand counts to more tokens: token i moves to ``rows[i]``."""
    if isinstance(counts, SparseCounts):
        place = counts.tokens
        cells = counts.values, (np.asarray(rows)[place], counts.classes)
        return SparseCounts.from_csr(make_csr(cells, (n_tokens, counts.n_classes)))
    wide = np.zeros((n_tokens, counts.shape[1]))
    wide[rows] = counts
    return wide


def move_classes(counts: CountTable, index: Array, n_classes: int) -> CountTable:
    """Renumber the classes: class ``i`` becomes ``index[i]``; classes with a negative index are dropped."""
    if not isinstance(counts, SparseCounts) and not is_kept_sparse(n_classes):
        wide = np.zeros((len(counts), n_classes))
        wide[:, index[index >= 0]] = counts[:, index >= 0]
        return wide
    if isinstance(counts, SparseCounts):
        tokens, classes, values = counts.tokens, index[counts.classes], counts.values
    else:
        tokens, classes = np.nonzero(counts)
        classes, values = index[classes], counts[tokens, classes]
    kept = classes >= 0
    return make_count_table(make_csr((values[kept], (tokens[kept], classes[kept])), (len(counts), n_classes)))


def subtract_tables(total: CountTable, part: CountTable, missed: float, n: Array) -> CountTable:
    """Return ``total - part``, or raise NotLearnedError; counts are zero for a class without documents.

    Up to ``missed`` occurrences of ``part`` may have been dropped before. ``n`` (classes,) is the number of remaining
    documents.
    """
    if not isinstance(part, SparseCounts):
        assert not isinstance(total, SparseCounts)
        return np.where(n == 0, 0.0, subtract_counts(total, _bound_counts(total, part, missed)))
    assert isinstance(total, SparseCounts)
    entry, found = total.find_entries(part.tokens, part.classes)
    values = np.append(total.values, 0.0)
    # the learned count of each entry of the part; the appended zero if there is none
    there = values[np.where(found, entry, -1)]
    try:
        left = subtract_counts(there, _bound_counts(there, part.values, missed))
    except NotLearnedError as error:
        [i] = error.index
        raise NotLearnedError(str(error), (int(part.tokens[i]), int(part.classes[i]))) from None
    values[entry[found]] = left[found]
    return total.replace_values(np.where(n[total.classes] == 0, 0.0, values[:-1]))


def _bound_counts(total: Array, part: Array, missed: float) -> Array:
    """Limit the counts of a part to the total where the difference is at most ``missed``."""
    return np.where(part <= total + missed, np.minimum(part, total), part)


def make_dense_counts(counts: CountTable) -> Array:
    """Convert counts to a dense array; raises ModelTooLargeError if it does not fit into memory."""
    if not isinstance(counts, SparseCounts):
        return counts
    check_dense_size(*counts.shape)
    return np.asarray(counts.csr.toarray())


def check_dense_size(n_tokens: int, n_classes: int) -> None:
    """Raise ModelTooLargeError if tables (tokens, classes) do not fit into memory."""
    what = f"tables of {n_tokens:,} tokens and {n_classes:,} classes"
    check_memory(TABLES_IN_MEMORY * 8 * n_tokens * n_classes, what, "use fewer classes or tokens, and alpha above 0")
