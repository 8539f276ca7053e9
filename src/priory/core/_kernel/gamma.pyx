# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""The logarithm of the gamma function and its derivatives. See `tests/reference_kernels/gamma.py`."""

import numpy as np

from libc.math cimport INFINITY, NAN, lgamma, log

cdef double FAR = 10.0  # above it, the asymptotic series is accurate to the last bit


def log_gamma(const double[::1] x):
    return map_cells(lgamma, x)


def digamma(const double[::1] x):
    return map_cells(one_digamma, x)


def trigamma(const double[::1] x):
    return map_cells(one_trigamma, x)


cdef object map_cells(double (*function)(double) noexcept nogil, const double[::1] x):
    cdef double[::1] out = np.empty(x.shape[0])
    cdef Py_ssize_t i
    with nogil:
        for i in range(x.shape[0]):
            out[i] = function(x[i])
    return np.asarray(out)


cdef double one_digamma(double x) noexcept nogil:
    """By ψ(x) = ψ(x + 1) - 1/x until the series holds: log x - 1/2x - Σ B_2k / (2k x^2k)."""
    cdef double below = 0.0, s
    if not x > 0:
        return -INFINITY if x == 0 else NAN
    while x < FAR:
        below += 1 / x
        x += 1
    s = 1 / (x * x)
    s *= 1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12)))))
    return log(x) - 0.5 / x - s - below


cdef double one_trigamma(double x) noexcept nogil:
    """By ψ'(x) = ψ'(x + 1) + 1/x² until the series holds: 1/x + 1/2x² + Σ B_2k / x^(2k+1)."""
    cdef double below = 0.0, s
    if not x > 0:
        return INFINITY if x == 0 else NAN
    while x < FAR:
        below += 1 / (x * x)
        x += 1
    s = 1 / (x * x)
    s *= 1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * (691.0 / 2730 - s * 7 / 6)))))
    return (1 + 0.5 / x + s) / x + below
