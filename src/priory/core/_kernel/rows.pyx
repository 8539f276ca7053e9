# cython: language_level=3, wraparound=False, cdivision=True, freethreading_compatible=True
"""Loops over the cells of a single row: its corrections, its hash, and whether it can be forgotten.

See `tests/reference_kernels/rows.py`; indices are bounds-checked here.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, floor, fmax, fmin, frexp, isfinite, ldexp, log, pow, rint
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy


def add_weights(const double[:, ::1] weights, const int64_t[::1] places, Py_ssize_t start, double factor,
                double[::1] out):
    cdef Py_ssize_t k, c
    for k in range(places.shape[0]):
        for c in range(out.shape[0]):
            out[c] += factor * weights[start + places[k], c]


def add_cells(const double[:, ::1] weights, const int64_t[::1] levels, const int64_t[:, ::1] sets,
              Py_ssize_t n_levels, Py_ssize_t start, double[::1] out):
    cdef Py_ssize_t s, k, c, cell
    for s in range(sets.shape[0]):
        cell = s
        for k in range(sets.shape[1]):
            if levels[sets[s, k]] < 0:
                cell = -1
                break
            cell = cell * n_levels + levels[sets[s, k]]
        if cell >= 0:
            for c in range(out.shape[0]):
                out[c] += weights[start + cell, c]


def weigh_parts(const double[:, :] values, const int64_t[::1] parts, const double[::1] lengths,
                const double[::1] weights, const double[::1] exponents, double lowest, double[::1] out):
    cdef double[:, ::1] relative = shrink_parts(values, parts, lengths, exponents, lowest)
    cdef Py_ssize_t p, c
    for p in range(parts.shape[0]):
        for c in range(out.shape[0]):
            out[c] += weights[parts[p]] * relative[c, p]


def step_parts(const double[:, :] values, const int64_t[::1] parts, const double[::1] lengths, Py_ssize_t group,
               double count, double lowest, double max_weight, double max_exponent, double[::1] weights,
               double[::1] exponents, double[::1] precision):
    cdef double[:, ::1] relative = shrink_parts(values, parts, lengths, exponents, lowest)
    cdef double[::1] logits = np.zeros(values.shape[0])
    cdef Py_ssize_t size = weights.shape[0], part, p, c
    cdef double total, probability, expected, spread, slope, along
    for c in range(values.shape[0]):
        for p in range(parts.shape[0]):
            logits[c] += weights[parts[p]] * relative[c, p]
    total = log_total(logits)
    for p in range(parts.shape[0]):
        part = parts[p]
        expected = spread = 0.0
        for c in range(values.shape[0]):
            probability = exp(logits[c] - total)
            expected += probability * relative[c, p]
            spread += probability * relative[c, p] * relative[c, p]
        spread = count * (spread - expected * expected)
        slope = count * (expected - relative[group, p])
        along = -log(lengths[p]) * weights[part]
        precision[part] += spread
        precision[size + part] += spread * along * along
        weights[part] = fmin(fmax(weights[part] - slope / precision[part], 0.0), max_weight)
        exponents[part] = fmin(fmax(exponents[part] - slope * along / precision[size + part], -max_exponent), max_exponent)


def mix_members(const double[:, ::1] logits, const double[::1] exponents, double share, double[::1] out):
    cdef Py_ssize_t classes = out.shape[0], m, c
    cdef double base = log_total(logits[0]), total
    for c in range(classes):
        out[c] = 0.0
    for m in range(exponents.shape[0]):
        total = log_total(logits[m + 1])
        for c in range(classes):
            out[c] += exponents[m] * (logits[m + 1, c] - total)
    total = log_total(out)
    for c in range(classes):
        out[c] = log(share * exp(out[c] - total) + (1 - share) * exp(logits[0, c] - base))


cdef double[:, ::1] shrink_parts(const double[:, :] values, const int64_t[::1] parts, const double[::1] lengths,
                                 const double[::1] exponents, double lowest):
    """Evidence relative to the best class times a power of the part's length, (classes, parts)."""
    cdef double[:, ::1] found = np.empty((values.shape[0], parts.shape[0]))
    cdef Py_ssize_t p, c
    cdef double best, shrink
    for p in range(parts.shape[0]):
        best = values[0, p]
        for c in range(1, values.shape[0]):
            best = fmax(values[c, p], best)
        if not isfinite(best):
            best = 0.0
        shrink = pow(lengths[p], -exponents[parts[p]])
        for c in range(values.shape[0]):
            found[c, p] = shrink * fmax(values[c, p] - best, lowest)
    return found


cdef double log_total(const double[::1] logits):
    """Log-sum-exp."""
    cdef Py_ssize_t c
    cdef double top = logits[0], total = 0.0
    for c in range(1, logits.shape[0]):
        top = logits[c] if logits[c] > top else top
    for c in range(logits.shape[0]):
        total += exp(logits[c] - top)
    return top + log(total)


def hash_numbers(const double[::1] x, const uint64_t[::1] keys):
    cdef uint64_t total = 0, h
    cdef Py_ssize_t j
    cdef double cell
    for j in range(x.shape[0]):
        if x[j] == x[j]:
            cell = x[j] + 0.0  # no negative zero
            memcpy(&h, &cell, 8)
            h ^= keys[j]
            h = (h ^ (h >> 32)) * <uint64_t>0xBF58476D1CE4E5B9
            h = (h ^ (h >> 32)) * <uint64_t>0x94D049BB133111EB
            total += h ^ (h >> 32)
    return total


cdef class SupportGuard:
    cdef double low, high
    cdef bint whole
    cdef double[::1] n, outside, total, margin

    def __init__(self, double low, double high, bint whole, n, outside, total=None):
        self.low, self.high, self.whole = low, high, whole
        self.n, self.outside = np.array(n, dtype=float), np.array(outside, dtype=float)
        self.total = np.full(len(n), np.inf) if total is None else np.array(total, dtype=float)
        self.margin = np.zeros(len(n))
        cdef Py_ssize_t j
        for j in range(self.total.shape[0]):
            self.margin[j] = sum_rounding(self.total[j])

    cdef inline bint has(self, double x) noexcept:
        return self.low <= x <= self.high and (not self.whole or floor(x) == x)

    def allows(self, const double[::1] x):
        cdef Py_ssize_t j
        cdef double left
        for j in range(x.shape[0]):
            if x[j] != x[j]:
                continue
            if not self.has(x[j]):
                if self.outside[j] < 1:
                    return False
                continue
            left = self.total[j] - x[j]
            if self.n[j] <= 1 or left < self.margin[j] or self.high * (self.n[j] - 1) < left < INFINITY:
                return False
        return True

    def count(self, const double[::1] x, int rows):
        cdef Py_ssize_t j
        for j in range(x.shape[0]):
            if x[j] != x[j]:
                continue
            if not self.has(x[j]):
                self.outside[j] += rows
                continue
            self.n[j] += rows
            self.total[j] += rows * x[j]
            self.margin[j] = fmax(self.margin[j], sum_rounding(self.total[j]))


cdef double LEFT = 1e-9  # of the largest sum so far: less may be a rounding error


cdef inline double sum_rounding(double total) noexcept:
    """Bound of the rounding errors of a sum of whole numbers: none up to 2^53."""
    return LEFT * total if 9007199254740992.0 < total and isfinite(total) else 0.0


cdef class MomentsGuard:
    cdef double[::1] unit, n, mean, spread, top

    def __init__(self, unit, n, mean, spread):
        self.unit, self.n, self.mean = (np.array(field, dtype=float) for field in (unit, n, mean))
        self.spread, self.top = np.array(spread, dtype=float), np.array(spread, dtype=float)

    def allows(self, const double[::1] x):
        cdef Py_ssize_t j
        cdef double away
        for j in range(x.shape[0]):
            if x[j] != x[j]:
                continue
            away = x[j] / self.unit[j] - self.mean[j]
            # a number equal to the mean leaves the spread as it is: in a constant column, none
            if self.n[j] <= 1 or not (self.spread[j] >= 0 if away == 0 else
                                      self.spread[j] - away * away * self.n[j] / (self.n[j] - 1) > LEFT * self.top[j]):
                return False
        return True

    def count(self, const double[::1] x, int rows):
        cdef Py_ssize_t j
        cdef double away, n
        for j in range(x.shape[0]):
            if x[j] != x[j]:
                continue
            # Welford's update, with rows = -1 backwards
            n, away = self.n[j] + rows, x[j] / self.unit[j] - self.mean[j]
            self.spread[j] += rows * away * away * self.n[j] / n
            self.mean[j] += rows * away / n
            self.n[j] = n
            if not self.spread[j] <= self.top[j]:
                self.top[j] = self.spread[j]  # NaN too: then nothing is allowed


cdef class RoundedGuard:
    cdef int bits
    cdef list values, counts
    cdef dict since

    def __init__(self, list values, list counts, int bits):
        self.values, self.counts, self.bits, self.since = values, counts, bits, {}

    def allows(self, const double[::1] x):
        cdef Py_ssize_t j
        for j in range(x.shape[0]):
            if x[j] == x[j] and self.left(j, rounded(x[j], self.bits)) < 1:
                return False
        return True

    def count(self, const double[::1] x, int rows):
        cdef Py_ssize_t j
        cdef double value
        for j in range(x.shape[0]):
            if x[j] == x[j]:
                value = rounded(x[j], self.bits)
                self.since[j, value] = self.since.get((j, value), 0) + rows

    cdef double left(self, Py_ssize_t column, double value) except? -1:
        """The rows that have a value, with those that came and went since."""
        cdef const double[::1] values = self.values[column], counts
        cdef Py_ssize_t low = 0, high = values.shape[0], middle
        cdef double since = self.since.get((column, value), 0)
        while low < high:
            middle = (low + high) // 2
            if values[middle] < value:
                low = middle + 1
            else:
                high = middle
        if low == values.shape[0] or values[low] != value:
            return since
        counts = self.counts[column]
        return counts[low] + since


cdef inline double rounded(double x, int bits) noexcept nogil:
    """`priory.core.column_kernels.round_to_bits` of one number."""
    cdef int exponent
    cdef double mantissa = frexp(x, &exponent)
    cdef double whole = rint(ldexp(mantissa, bits))
    if exponent == 1024 and fabs(whole) == ldexp(1.0, bits):  # beyond the largest double
        whole -= 1.0 if whole > 0 else -1.0
    return ldexp(whole, exponent - bits) + 0.0
