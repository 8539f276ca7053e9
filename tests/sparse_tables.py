"""Sparse rows as SciPy has them, to compare with."""

from scipy.sparse import csr_array

from priory.core.sparse_rows import SparseRows


def to_csr(rows: SparseRows) -> csr_array:
    return csr_array((rows.values, rows.indices, rows.ends), shape=(rows.n_rows, rows.width))
