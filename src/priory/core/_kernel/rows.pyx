# cython: language_level=3, wraparound=False, cdivision=True, freethreading_compatible=True
"""Loops of the corrections of a single row. See `tests/reference_kernels/rows.py`; indices are bounds-checked here."""

import numpy as np

from libc.math cimport exp, fmax, fmin, isfinite, log, pow
from libc.stdint cimport int64_t


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
