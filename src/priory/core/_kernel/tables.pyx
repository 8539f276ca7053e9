# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""Loops over the cells of tables. See `tests/reference_kernels/tables.py`; `priory.core.sharding` checks the input."""

import numpy as np

from libc.math cimport fabs, frexp, ldexp, log, rint
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy


def group_sums(const double[:, ::1] x, const int32_t[::1] group, weight, Py_ssize_t groups):
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1], i, j
    cdef double[:, ::1] sums = np.zeros((groups, d))
    cdef const double[::1] w = weight
    cdef bint weighted = weight is not None
    cdef double v
    cdef double* out
    cdef const double* row
    if d == 0:
        return np.asarray(sums)
    with nogil:
        for i in range(n):
            row = &x[i, 0]
            out = &sums[group[i], 0]
            v = w[i] if weighted else 1.0
            for j in range(d):
                out[j] += v * row[j]
    return np.asarray(sums)


def code_counts(const int32_t[:, ::1] codes, const int64_t[::1] starts, const int32_t[::1] group, weight, Py_ssize_t groups):
    cdef Py_ssize_t n = codes.shape[0], d = codes.shape[1], i, j
    cdef double[:, ::1] counts = np.zeros((groups, starts[d]))
    cdef const double[::1] w = weight
    cdef bint weighted = weight is not None
    cdef double v
    cdef int32_t code
    cdef double* out
    if starts[d] == 0:
        return np.asarray(counts)
    with nogil:
        for i in range(n):
            out = &counts[group[i], 0]
            v = w[i] if weighted else 1.0
            for j in range(d):
                code = codes[i, j]
                if code >= 0:
                    out[starts[j] + code] += v
    return np.asarray(counts)


cdef double FAR = 1e130  # clipped here: the square of a larger value, times a precision, might overflow


cdef inline double near(double z) noexcept nogil:
    return FAR if z > FAR else (-FAR if z < -FAR else z)


cdef inline double rounded(double x, int bits) noexcept nogil:
    cdef int exponent
    cdef double mantissa = frexp(x, &exponent)
    cdef double whole = rint(ldexp(mantissa, bits))
    if exponent == 1024 and fabs(whole) == ldexp(1.0, bits):  # beyond the largest double
        whole -= 1.0 if whole > 0 else -1.0
    return ldexp(whole, exponent - bits) + 0.0


cdef inline uint64_t mixed(double key) noexcept nogil:
    cdef uint64_t h
    memcpy(&h, &key, 8)
    h ^= h >> 32
    h *= <uint64_t>0x9E3779B97F4A7C15
    return h ^ (h >> 29)


def value_counts(const double[::1] x, const int32_t[::1] group, weight, Py_ssize_t groups, int bits):
    """Hash table with open addressing: a slot holds the index of its value; the table doubles before it is half full."""
    cdef Py_ssize_t n = x.shape[0], i, c, slot, place, size = 1024, capacity = 512, found = 0
    cdef const double[::1] w = weight
    cdef bint weighted = weight is not None
    cdef int64_t[::1] slots = np.full(size, -1, dtype=np.int64)
    cdef double[::1] values = np.empty(capacity)
    cdef double[:, ::1] counts = np.zeros((capacity, groups))
    cdef double v, key
    i = 0
    while True:
        with nogil:
            while i < n and found < capacity:
                key = x[i]
                if key == key:
                    key = rounded(key, bits)
                    slot = mixed(key) & (size - 1)
                    while slots[slot] >= 0 and values[slots[slot]] != key:
                        slot = (slot + 1) & (size - 1)
                    place = slots[slot]
                    if place < 0:
                        place = found
                        slots[slot] = place
                        values[place] = key
                        found += 1
                    counts[place, group[i]] += w[i] if weighted else 1.0
                i += 1
        if i == n:
            break
        size, capacity = 2 * size, 2 * capacity
        slots = np.full(size, -1, dtype=np.int64)
        values = np.concatenate([values, np.empty(found)])
        counts = np.concatenate([counts, np.zeros((found, groups))])
        for place in range(found):
            slot = mixed(values[place]) & (size - 1)
            while slots[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            slots[slot] = place
    order = np.argsort(np.asarray(values[:found]))
    return np.asarray(values)[:found][order], np.ascontiguousarray(np.asarray(counts)[:found][order].T)


cdef inline double squares(const double* x, const double* centre, const double* precision, Py_ssize_t d) noexcept nogil:
    """Sum of ``precision * (x - centre)^2``, in four independent partial sums for instruction-level parallelism."""
    cdef double a = 0.0, b = 0.0, e = 0.0, f = 0.0, z
    cdef Py_ssize_t j = 0
    while j + 4 <= d:
        z = x[j] - centre[j]
        a += precision[j] * z * z
        z = x[j + 1] - centre[j + 1]
        b += precision[j + 1] * z * z
        z = x[j + 2] - centre[j + 2]
        e += precision[j + 2] * z * z
        z = x[j + 3] - centre[j + 3]
        f += precision[j + 3] * z * z
        j += 4
    while j < d:
        z = x[j] - centre[j]
        a += precision[j] * z * z
        j += 1
    return (a + b) + (e + f)


def quadratic(const double[:, ::1] x, const double[::1] inverse_unit, const double[:, ::1] centre,
              const double[:, ::1] precision, const double[:, ::1] constant):
    """Rows of ordinary numbers take a branch-free loop; rows with a missing or extreme cell are summed cell by cell."""
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1], groups = centre.shape[0], i, j, c
    cdef double[:, ::1] scores = np.zeros((n, groups))
    cdef double[::1] row = np.empty(d)
    cdef double[::1] height = np.asarray(constant).sum(axis=1)
    cdef double total, z
    cdef bint plain
    if d == 0:
        return np.asarray(scores)
    with nogil:
        for i in range(n):
            plain = True
            for j in range(d):
                row[j] = x[i, j] * inverse_unit[j]
                plain = plain & (-FAR / 2 < row[j]) & (row[j] < FAR / 2)
            for c in range(groups):
                if plain:
                    scores[i, c] = height[c] - 0.5 * squares(&row[0], &centre[c, 0], &precision[c, 0], d)
                    continue
                total = 0.0
                for j in range(d):
                    z = near(row[j] - centre[c, j])
                    z = constant[c, j] - 0.5 * precision[c, j] * z * z
                    total += z if z == z else 0.0
                scores[i, c] = total
    return np.asarray(scores)


def student(const double[:, ::1] x, const double[::1] inverse_unit, const double[:, ::1] centre,
            const double[:, ::1] precision, const double[:, ::1] power, const double[:, ::1] constant):
    """Multiply factors with the same power and take one logarithm of the product, because logarithms dominate the cost."""
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1], groups = centre.shape[0], i, j, c
    cdef double[:, ::1] scores = np.zeros((n, groups))
    cdef double total, z, factor, product, exponent
    with nogil:
        for i in range(n):
            for c in range(groups):
                total, product, exponent = 0.0, 1.0, 0.0
                for j in range(d):
                    z = near(x[i, j] * inverse_unit[j] - centre[c, j])
                    if z == z:
                        total += constant[c, j]
                        factor = 1.0 + precision[c, j] * z * z
                        if power[c, j] != exponent or product > 1e100 or factor > 1e100:
                            total -= exponent * log(product)
                            product, exponent = 1.0, power[c, j]
                        if factor > 1e100:
                            total -= exponent * log(factor)
                        else:
                            product *= factor
                scores[i, c] = total - exponent * log(product)
    return np.asarray(scores)


def lookup(const int32_t[:, ::1] codes, const int64_t[::1] starts, const double[:, ::1] table):
    cdef Py_ssize_t n = codes.shape[0], d = codes.shape[1], groups = table.shape[1], i, j, c
    cdef double[:, ::1] scores = np.zeros((n, groups))
    cdef const double* cell
    cdef double* out
    cdef int32_t code
    with nogil:
        for i in range(n):
            out = &scores[i, 0]
            for j in range(d):
                code = codes[i, j]
                if code >= 0:
                    cell = &table[starts[j] + code, 0]
                    for c in range(groups):
                        out[c] += cell[c]
    return np.asarray(scores)
