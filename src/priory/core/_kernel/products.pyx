# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""Exact sums of products. See `tests/reference_kernels/products.py` for a readable version; `priory.core.exact_products` calls them."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset


cdef struct Cell:  # sign * (limb[0] + limb[1] 2^32 + ...) * 2^(32 place)
    int64_t sign
    int64_t place
    uint64_t limb[6]


def flushes_denormals():
    cdef volatile double smallest = 5e-324
    cdef volatile double one = 1.0
    return smallest * one == 0.0


def cut_digits(const double[:, ::1] z, const int64_t[::1] order, const double[::1] limit, const double[:, ::1] unit,
               const int64_t[::1] columns, double[:, ::1] digits):
    cdef Py_ssize_t n = z.shape[0], p = z.shape[1], levels = unit.shape[0], width = digits.shape[1], i, j, level
    cdef uint8_t[::1] fits = np.ones(n, dtype=np.uint8)
    cdef double[::1] left = np.empty(p)
    cdef double[:, ::1] magic = np.multiply(unit, 1.5 * 2.0**52)  # adding and subtracting it rounds to the unit
    cdef double[:, ::1] inverse = np.divide(1.0, unit)
    cdef double d
    cdef double* rest
    cdef double* out
    cdef const double* row
    cdef const double* m
    cdef const double* inv
    cdef const double* most
    cdef const int64_t* at
    cdef int bad
    if n == 0 or p == 0:
        return np.asarray(fits).view(bool)
    with nogil:
        rest, most, at = &left[0], &limit[0], &order[0]
        for i in range(n):
            row = &z[i, 0]
            bad = 0
            for j in range(p):
                rest[j] = row[at[j]]
            for j in range(p):
                bad |= not (fabs(rest[j]) <= most[j])  # true for NaN
            if not bad and width:
                out = &digits[i, 0]
                for level in range(levels):
                    m, inv = &magic[level, 0], &inverse[level, 0]
                    for j in range(columns[level]):
                        d = (rest[j] + m[j]) - m[j]
                        rest[j] -= d
                        out[j] = d * inv[j]
                    out += columns[level]
            if not bad:
                for j in range(p):
                    bad |= rest[j] != 0.0
            if bad:
                fits[i] = 0
                if width:
                    memset(&digits[i, 0], 0, width * sizeof(double))
    return np.asarray(fits).view(bool)


def place_sums(const int64_t[:, ::1] sums, const int64_t[::1] column, const int64_t[::1] exponent, Py_ssize_t p,
               int64_t[:, ::1] limbs, int64_t base):
    cdef Py_ssize_t width = sums.shape[0], a, b, i, j
    cdef int64_t v, sign, at
    cdef uint64_t size
    cdef int shift
    cdef int64_t* out
    with nogil:
        for a in range(width):
            i = column[a]
            for b in range(width):
                j, v = column[b], sums[a, b]
                if i > j or v == 0:
                    continue
                at = exponent[a] + exponent[b] - 32 * base
                shift, sign = at & 31, 1 if v > 0 else -1
                size = <uint64_t>(v if v > 0 else -v)
                out = &limbs[find_pair(i, j, p), at >> 5]
                out[0] += sign * <int64_t>((size << shift) & 0xFFFFFFFFULL)
                out[1] += sign * <int64_t>((size >> (32 - shift)) & 0xFFFFFFFFULL)
                if shift:
                    out[2] += sign * <int64_t>(size >> (64 - shift))


def find_limb_range(const double[:, ::1] z):
    cdef Py_ssize_t n = z.shape[0], p = z.shape[1], i, j
    cdef int64_t low = 1000, high = -1000
    cdef uint64_t bits
    cdef int e
    cdef bint finite = True
    with nogil:
        for i in range(n):
            for j in range(p):
                memcpy(&bits, &z[i, j], 8)
                if bits << 1 == 0:
                    continue
                e = (bits >> 52) & 0x7FF
                if e == 0x7FF:
                    finite = False
                e = (e if e else 1) - 1075
                low, high = min(low, e >> 5), max(high, e >> 5)
    return finite, (low if low <= high else 0), (high if low <= high else 0)


def add_rows(const double[:, ::1] z, weight, int64_t[:, ::1] limbs, int64_t base):
    cdef Py_ssize_t n = z.shape[0], p = z.shape[1], i, j, k
    cdef const double[::1] w = weight
    cdef bint weighted = weight is not None
    cdef uint8_t[::1] room = np.empty(2 * p * sizeof(Cell) + 1, dtype=np.uint8)
    cdef Cell* right = <Cell*>&room[0]
    cdef Cell* left
    cdef Cell factor
    if n == 0 or p == 0:
        return
    with nogil:
        left = right + p if weighted else right
        for i in range(n):
            for j in range(p):
                read_cell(z[i, j], &right[j])
            if weighted:
                read_cell(w[i], &factor)
                for j in range(p):
                    multiply_cells(&factor, &right[j], &left[j])
            for j in range(p):
                if left[j].sign == 0:
                    continue
                for k in range(j, p):
                    if right[k].sign != 0:
                        if weighted:
                            add_long_product(&left[j], &right[k], &limbs[find_pair(j, k, p), 0], base)
                        else:
                            add_product(&left[j], &right[k], &limbs[find_pair(j, k, p), 0], base)


def transform_sums(const int64_t[:, ::1] limbs, const int64_t[:, ::1] index, const double[:, ::1] factor):
    cdef Py_ssize_t p = 0, width = index.shape[0], size = limbs.shape[1], i, j, a, b, k
    cdef int64_t low, high, carry, sign
    cdef uint8_t[::1] room = np.empty(3 * width * sizeof(Cell) + 1, dtype=np.uint8)
    cdef Cell* cells = <Cell*>&room[0]
    cdef Cell both
    cdef uint64_t[:, ::1] sizes = np.empty((limbs.shape[0], size), dtype=np.uint64)
    cdef int64_t[::1] signs = np.empty(limbs.shape[0], dtype=np.int64)
    cdef int64_t[:, ::1] sums
    cdef int64_t* out
    while p * (p + 1) // 2 < limbs.shape[0]:
        p += 1
    _, low, high = find_limb_range(factor)
    sums = np.zeros((width * (width + 1) // 2, size + 2 * (high - low) + 7), dtype=np.int64)
    if size == 0 or width == 0:
        return np.asarray(sums), 2 * low
    with nogil:
        for k in range(limbs.shape[0]):  # signs and magnitudes
            signs[k] = sign = -1 if limbs[k, size - 1] < 0 else 1
            carry = 0
            for j in range(size):
                carry += sign * limbs[k, j]
                sizes[k, j] = carry & 0xFFFFFFFFULL
                carry >>= 32
        for i in range(width):
            for a in range(3):
                read_cell(factor[i, a], &cells[3 * i + a])
        for i in range(width):
            for j in range(i, width):
                out = &sums[find_pair(i, j, width), 0]
                for a in range(3):
                    if cells[3 * i + a].sign == 0:
                        continue
                    for b in range(3):
                        if cells[3 * j + b].sign == 0:
                            continue
                        multiply_cells(&cells[3 * i + a], &cells[3 * j + b], &both)
                        k = find_pair(min(index[i, a], index[j, b]), max(index[i, a], index[j, b]), p)
                        add_multiple(&sizes[k, 0], size, signs[k], &both, out + (both.place - 2 * low))
    return np.asarray(sums), 2 * low


cdef inline void add_multiple(const uint64_t* sizes, Py_ssize_t size, int64_t sign, const Cell* factor,
                              int64_t* out) noexcept nogil:
    cdef uint64_t m
    cdef Py_ssize_t i, j
    sign *= factor.sign
    for i in range(6):
        if factor.limb[i]:
            for j in range(size):
                m = factor.limb[i] * sizes[j]
                out[i + j] += sign * <int64_t>(m & 0xFFFFFFFFULL)
                out[i + j + 1] += sign * <int64_t>(m >> 32)


cdef inline Py_ssize_t find_pair(Py_ssize_t i, Py_ssize_t j, Py_ssize_t p) noexcept nogil:
    return i * p - i * (i - 1) // 2 + j - i


cdef inline void read_cell(double x, Cell* cell) noexcept nogil:
    cdef uint64_t bits, size
    cdef int e, shift
    memcpy(&bits, &x, 8)
    size = bits & 0xFFFFFFFFFFFFFULL
    e = (bits >> 52) & 0x7FF
    if e:
        size |= 0x10000000000000ULL
    else:
        e = 1
    e -= 1075  # the value is size * 2^e
    cell.sign = 0 if size == 0 else (-1 if bits >> 63 else 1)
    cell.place = e >> 5
    shift = e & 31
    cell.limb[0] = (size << shift) & 0xFFFFFFFFULL
    cell.limb[1] = (size >> (32 - shift)) & 0xFFFFFFFFULL
    cell.limb[2] = size >> (64 - shift) if shift else 0
    cell.limb[3] = cell.limb[4] = cell.limb[5] = 0


cdef inline void multiply_cells(const Cell* a, const Cell* b, Cell* out) noexcept nogil:
    """Product of two cells of three limbs, with carries propagated."""
    cdef uint64_t t[6]
    cdef uint64_t carry = 0
    cdef int k
    multiply_limbs(a, b, t)
    out.sign, out.place = a.sign * b.sign, a.place + b.place
    for k in range(6):
        carry += t[k]
        out.limb[k] = carry & 0xFFFFFFFFULL
        carry >>= 32


cdef inline void multiply_limbs(const Cell* a, const Cell* b, uint64_t* t) noexcept nogil:
    """Product of two cells of three limbs: six limbs, each a sum of at most six parts below 2^32."""
    cdef uint64_t m
    cdef int i, j
    for i in range(6):
        t[i] = 0
    for i in range(3):
        for j in range(3):
            m = a.limb[i] * b.limb[j]
            t[i + j] += m & 0xFFFFFFFFULL
            t[i + j + 1] += m >> 32


cdef inline void add_product(const Cell* a, const Cell* b, int64_t* limbs, int64_t base) noexcept nogil:
    cdef uint64_t t[6]
    cdef int64_t sign = a.sign * b.sign
    cdef int64_t* out = limbs + (a.place + b.place - base)
    cdef int k
    multiply_limbs(a, b, t)
    for k in range(6):
        out[k] += sign * <int64_t>t[k]


cdef inline void add_long_product(const Cell* a, const Cell* b, int64_t* limbs, int64_t base) noexcept nogil:
    """Add the product of a cell of six limbs and a cell of three."""
    cdef uint64_t t[9]
    cdef uint64_t m
    cdef int64_t sign = a.sign * b.sign
    cdef int64_t* out = limbs + (a.place + b.place - base)
    cdef int i, j, k
    for k in range(9):
        t[k] = 0
    for i in range(6):
        for j in range(3):
            m = a.limb[i] * b.limb[j]
            t[i + j] += m & 0xFFFFFFFFULL
            t[i + j + 1] += m >> 32
    for k in range(9):
        out[k] += sign * <int64_t>t[k]
