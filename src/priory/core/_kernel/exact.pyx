# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""Exact sums, compiled. See `tests/reference_kernels/exact.py` for a readable version; `priory.core.exact_sums` checks the input.

The arithmetic is in C headers: `exact_limbs.h` in integers, `exact_runs.h` in doubles that are integers,
`exact_ratios.h` for rounded results.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

cdef extern from "fenv.h" nogil:
    ctypedef struct fenv_t:
        pass
    const fenv_t* FE_DFL_ENV
    int fegetenv(fenv_t*)
    int fesetenv(const fenv_t*)

cdef extern from "exact_runs.h" nogil:
    enum: MIN_RUN_ROWS

    ctypedef struct Window:
        int64_t* limbs
        int64_t cells
        int base
        int width
        int failed

    ctypedef struct Column:
        pass

    ctypedef struct Block:
        pass

    ctypedef struct Table:
        const char* data
        int64_t row_stride
        int64_t column_stride
        char type

    ctypedef struct Summation:
        Table table
        int64_t columns_count
        Column* columns
        Block* blocks
        int squares
        Window first
        Window second
        double* counts
        int64_t infinite
        const char* ahead
        const char* ahead_end

    int window_reserve(Window*, int, int)
    void carry_limbs(int64_t*, int64_t, int)
    void find_window(const int64_t*, int64_t, int, int*, int*)
    int64_t count_blocks(int64_t)
    void start_columns(Summation*, int64_t)
    void add_class(Summation*, const int32_t*, int64_t, int64_t)
    void add_weighted_rows(Summation*, const int32_t*, const double*, int64_t)

cdef extern from "exact_ratios.h" nogil:
    ctypedef struct Number:
        pass

    ctypedef struct Whole:
        pass

    void read_limbs(const int64_t*, int, int, Whole*)
    Number read_count(double)
    double divide_whole(const Whole*, Number, int, int64_t, int64_t*)
    double divide_spread(Number, const Whole*, const Whole*, int64_t)

cdef enum:
    CHUNK_BYTES = 3 << 16  # rows sorted by class at a time: two chunks fit into an L2 cache
    MIN_CHUNK_ROWS = 512
    ROWS_PER_CLASS = 64  # minimum average of a chunk, for runs to pay off


cdef Table make_table(x):
    cdef Table table
    interface = x.__array_interface__
    table.data = <const char*><size_t>interface["data"][0]
    table.row_stride, table.column_stride = x.strides
    table.type = ord("q" if x.dtype == np.int64 else "i" if x.dtype == np.int32 else x.dtype.char)
    return table


cdef object take_limbs(Window* window):
    """The limbs of a window, normalised and trimmed, and its base."""
    cdef int64_t cells = window.cells
    with nogil:
        if window.width:
            window_reserve(window, window.base, window.base + window.width + 1)
    if window.failed:
        raise MemoryError
    if not window.width or not cells:
        return np.zeros((cells, 0), dtype=np.int64), 0
    return trim_limbs(<int64_t[:cells, :window.width]>window.limbs, window.base)


cdef void add_rows(Summation* s, const int32_t* group, int64_t n, int64_t groups) noexcept nogil:
    """Add all rows, class by class within chunks that fit into the cache."""
    cdef int64_t chunk = CHUNK_BYTES // (8 * s.columns_count), start = 0, i, c, rows
    cdef int64_t* ends = <int64_t*>malloc((groups + 1) * sizeof(int64_t))
    chunk = max(chunk, MIN_CHUNK_ROWS, ROWS_PER_CLASS * groups)
    cdef bint dense = s.table.row_stride > 0 and 0 < s.table.column_stride <= 8
    cdef int32_t* order = <int32_t*>malloc(chunk * sizeof(int32_t))
    s.first.failed = order == NULL or ends == NULL
    while start < n and s.infinite < 0 and not s.first.failed and not s.second.failed:
        rows = n - start if n - start < chunk else chunk
        memset(ends, 0, (groups + 1) * sizeof(int64_t))
        for i in range(rows):
            ends[group[start + i] + 1] += 1
        for c in range(groups):
            ends[c + 1] += ends[c]
        for i in range(rows):
            c = group[start + i]
            order[ends[c]] = <int32_t>i
            ends[c] += 1
        if dense:
            s.ahead = s.table.data + rows * s.table.row_stride
            s.ahead_end = s.ahead + (chunk if n - start - rows > chunk else n - start - rows) * s.table.row_stride
        i = 0
        for c in range(groups):
            if ends[c] > i:
                add_class(s, order + i, ends[c] - i, c)
            i = ends[c]
        s.table.data += rows * s.table.row_stride
        start += rows
    free(order)
    free(ends)


def sum_powers(x, const int32_t[::1] group, weight, Py_ssize_t groups, bint squares=True):
    cdef int64_t n = x.shape[0], d = x.shape[1]
    cdef double[:, ::1] counts = np.zeros((groups, d))
    cdef const double[::1] weights = weight
    cdef Summation s
    cdef fenv_t environment
    memset(&s, 0, sizeof(Summation))
    s.table, s.columns_count, s.squares, s.infinite = make_table(x), d, squares, -1
    s.first.cells = s.second.cells = groups * d
    if n and d:
        s.counts = &counts[0, 0]
        with nogil:
            fegetenv(&environment)
            fesetenv(FE_DFL_ENV)  # rounding to nearest, and no flushing of small numbers to zero
            if weights is not None:
                add_weighted_rows(&s, &group[0], &weights[0], n)
            else:
                s.columns = <Column*>calloc(d, sizeof(Column))
                s.blocks = <Block*>calloc(count_blocks(d), sizeof(Block))
                s.first.failed = s.columns == NULL or s.blocks == NULL
                if not s.first.failed:
                    if n >= MIN_RUN_ROWS:
                        start_columns(&s, n)
                    add_rows(&s, &group[0], n, groups)
                free(s.columns)
                free(s.blocks)
            fesetenv(&environment)
    try:
        if s.infinite >= 0:
            raise OverflowError(s.infinite)
        return np.asarray(counts), take_limbs(&s.first), take_limbs(&s.second)
    finally:
        free(s.first.limbs)
        free(s.second.limbs)


cdef object trim_limbs(int64_t[:, ::1] limbs, int base):
    """Propagate carries (in place) and trim to the smallest window; the last limb must have room for a sign."""
    cdef int low = 0, top = 0, width = limbs.shape[1], size
    cdef int64_t cells = limbs.shape[0], cell
    cdef int64_t[:, ::1] out
    if cells and width:
        with nogil:
            carry_limbs(&limbs[0, 0], cells, width)
            find_window(&limbs[0, 0], cells, width, &low, &top)
    size = top - low
    trimmed = np.empty((cells, size), dtype=np.int64)
    if not size:
        return trimmed, 0
    out = trimmed
    with nogil:
        for cell in range(cells):
            memcpy(&out[cell, 0], &limbs[cell, low], size * sizeof(int64_t))
            if top < width:  # the limbs left out repeat the sign bit of the last one
                out[cell, size - 1] = <int32_t>out[cell, size - 1]
    return trimmed, base + low


def combine(const int64_t[:, ::1] a, int a_base, const int64_t[:, ::1] b, int b_base, int sign):
    cdef int a_width = a.shape[1], b_width = b.shape[1], base, top, j
    cdef int64_t cells = a.shape[0], cell
    cdef int64_t[:, ::1] sums
    base = min(a_base if a_width else b_base, b_base if b_width else a_base)
    top = max(a_base + a_width if a_width else base, b_base + b_width if b_width else base)
    sums = np.zeros((cells, top - base + 1), dtype=np.int64)
    with nogil:
        for cell in range(cells):
            for j in range(a_width):
                sums[cell, a_base - base + j] = a[cell, j]
            for j in range(b_width):
                sums[cell, b_base - base + j] += sign * b[cell, j]
    return trim_limbs(sums, base)


def divide(const int64_t[:, ::1] limbs, int base, const double[::1] n, const int64_t[::1] exponent):
    cdef int width = limbs.shape[1]
    cdef int64_t cell
    cdef double[::1] out = np.empty(limbs.shape[0])
    cdef Whole whole
    with nogil:
        for cell in range(limbs.shape[0]):
            read_limbs(&limbs[cell, 0] if width else NULL, width, base, &whole)
            out[cell] = divide_whole(&whole, read_count(n[cell]), 1, exponent[cell], NULL)
    return np.asarray(out)


def split(const int64_t[:, ::1] limbs, int base):
    cdef int width = limbs.shape[1]
    cdef int64_t cell
    cdef double[::1] mantissa = np.empty(limbs.shape[0])
    cdef int64_t[::1] exponent = np.empty(limbs.shape[0], dtype=np.int64)
    cdef Whole whole
    with nogil:
        for cell in range(limbs.shape[0]):
            read_limbs(&limbs[cell, 0] if width else NULL, width, base, &whole)
            mantissa[cell] = divide_whole(&whole, read_count(1.0), 0, 0, &exponent[cell])
    return np.asarray(mantissa), np.asarray(exponent)


def variances(const double[::1] n, const int64_t[:, ::1] first, int first_base, const int64_t[:, ::1] second,
              int second_base, const int64_t[::1] exponent):
    cdef int first_width = first.shape[1], second_width = second.shape[1]
    cdef int64_t cell
    cdef double[::1] out = np.empty(n.shape[0])
    cdef Whole x, y
    with nogil:
        for cell in range(n.shape[0]):
            read_limbs(&first[cell, 0] if first_width else NULL, first_width, first_base, &x)
            read_limbs(&second[cell, 0] if second_width else NULL, second_width, second_base, &y)
            out[cell] = divide_spread(read_count(n[cell]), &x, &y, exponent[cell])
    return np.asarray(out)
