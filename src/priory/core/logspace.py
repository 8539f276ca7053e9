"""Log-space arithmetic and the gamma function: every exp/log trick of the library is here.

SciPy's functions are imported when one of them is first called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core._kernel import gamma as kernel

MAX_EXACT_COUNT = 2.0**53  # above it, neighbouring counts are the same float


def ndtr(x: ArrayLike) -> Any:
    """The distribution function of the standard normal distribution."""
    return scipy.special.ndtr(np.asarray(x, dtype=float))


def _call_kernel(function: Callable[[Array], Array], x: ArrayLike) -> Any:
    values = np.asarray(x, dtype=float)
    return function(np.ravel(values)).reshape(values.shape)[()]


def gammaln(x: ArrayLike) -> Any:
    """log Γ(x).

    >>> round(float(gammaln(5.0)), 4)    # log 24
    3.1781
    """
    return _call_kernel(kernel.log_gamma, x)


TABLE_BITS = 9  # of the mantissa: the logarithms of the midpoints of so many intervals are tabulated
MAX_EXACT_FACTORIAL = 20  # the largest whole number whose factorial is a double
LOG_ROOT_TWO_PI = 0.91893853320467274178


@cache
def _tabulate_logs() -> tuple[Array, Array, float]:
    """The midpoints of the intervals of a mantissa in [1/2, 1), their logarithms, and log 2, correctly rounded."""
    from decimal import Decimal, localcontext

    middles = np.arange(2**TABLE_BITS + 0.5, 2 ** (TABLE_BITS + 1)) / 2 ** (TABLE_BITS + 1)
    with localcontext(prec=40):
        return middles, np.array([float(Decimal(m).ln()) for m in middles.tolist()]), float(Decimal(2).ln())


def log_by_table(x: Array) -> Array:
    """Logarithms of positive numbers, the same to the last bit on every machine and in any language.

    The C library's logarithm may differ in the last bit between machines. This one is a sequence of additions,
    multiplications and divisions, each of which IEEE 754 rounds in one way: ``x = m 2^e`` with the middle ``c`` of the
    interval of ``m``, and ``log x = e log 2 + log c + log(1 + r)`` with ``r = (m - c) / c``, by the series up to r^5.

    >>> log_by_table(np.array([1.0, 10.0])).round(6).tolist()
    [0.0, 2.302585]
    """
    middles, logs, log_two = _tabulate_logs()
    mantissa, exponent = np.frexp(x)
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        place = (mantissa * 2 ** (TABLE_BITS + 1)).astype(np.intp) - 2**TABLE_BITS
    middle = middles.take(place, mode="clip")
    r = (mantissa - middle) / middle
    series = r * 0.2
    for coefficient in (0.25, 1 / 3, 0.5, 1.0):
        series = (coefficient - series) * r
    return np.asarray(logs.take(place, mode="clip") + series + exponent * log_two)


def log_factorial(counts: ArrayLike) -> Any:
    """log x! of whole numbers from 0, the same to the last bit everywhere; see `log_by_table`.

    The logarithm of the product, or Stirling's series:
    (x + 1/2) log x - x + log √2π + Σ B_2k / (2k (2k-1) x^(2k-1)).

    >>> round(float(log_factorial(4)), 4)    # log 24
    3.1781
    """
    x = np.asarray(counts, dtype=float)
    far = np.maximum(x, MAX_EXACT_FACTORIAL)  # NaN stays NaN
    s = 1 / (far * far)
    s = 1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))
    stirling = (far + 0.5) * log_by_table(far) - far + LOG_ROOT_TWO_PI + s / far
    near = _tabulate_log_factorials().take(np.nan_to_num(np.minimum(x, MAX_EXACT_FACTORIAL)).astype(np.intp))
    return np.where(x <= MAX_EXACT_FACTORIAL, near, stirling)[()]


@cache
def _tabulate_log_factorials() -> Array:
    return log_by_table(np.array([float(math.factorial(n)) for n in range(MAX_EXACT_FACTORIAL + 1)]))


def find_normal_quantiles(shares: Array) -> Array:
    """Quantiles of the standard normal distribution, (shares,).

    >>> find_normal_quantiles(np.array([0.5, 0.975])).round(2).tolist()
    [0.0, 1.96]
    """
    from statistics import NormalDist  # a slow import, which most predictions do not need

    return np.array([NormalDist().inv_cdf(share) for share in shares.tolist()])


def psi(x: ArrayLike) -> Any:
    """The digamma function, the derivative of log Γ(x), for x >= 0."""
    return _call_kernel(kernel.digamma, x)


def psi_prime(x: ArrayLike) -> Any:
    """The trigamma function, the second derivative of log Γ(x), for x >= 0."""
    return _call_kernel(kernel.trigamma, x)


def betaln(a: ArrayLike, b: ArrayLike) -> Any:
    """log B(a, b); B(0, 0) is infinite."""
    whole = gammaln(np.add(a, b))
    return gammaln(a) + gammaln(b) - np.where(np.isinf(whole), 0.0, whole)


def expit(x: ArrayLike) -> Any:
    """1 / (1 + e^-x), without overflow.

    >>> expit(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    values = np.asarray(x, dtype=float)
    # at most 1, so nothing overflows
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, small) / (1.0 + small)


LOG_TWO_PI = float(np.log(2 * np.pi))


def log_sum_exp(log_terms: ArrayLike, axis: int = -1) -> Array:
    """Return the log of a sum whose terms are given as logarithms, without overflow or underflow.

    >>> float(log_sum_exp([-120, -121]))
    -119.68673831248178
    >>> float(log_sum_exp([-np.inf, -np.inf]))
    -inf
    """
    terms = np.asarray(log_terms, dtype=float)
    top = np.max(terms, axis=axis, keepdims=True)
    # a slice of -inf only: avoid -inf - (-inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(terms - top), axis=axis, keepdims=True)) + top
    return np.asarray(np.squeeze(total, axis=axis))


def log_normalise(log_joint: ArrayLike, fallback: ArrayLike | None = None) -> Array:
    """Normalise each row: log p(c, x) becomes log p(c | x).

    The largest term is subtracted *before* the log of the sum, so that rows near -1e17 still sum to one. A row in
    which every class is impossible becomes ``fallback`` (usually the log prior), or uniform without one.

    >>> np.exp(log_normalise([[-1e17, -1e17]])).tolist()
    [[0.5, 0.5]]
    >>> np.exp(log_normalise([[-np.inf, -np.inf]], fallback=np.log([0.9, 0.1]))).round(3).tolist()
    [[0.9, 0.1]]
    """
    joint = _subtract_row_max(log_joint, fallback)
    joint -= np.log(np.exp(joint).sum(axis=0))
    return np.moveaxis(joint, 0, -1)


def normalise(log_joint: ArrayLike, fallback: ArrayLike | None = None) -> Array:
    """Return p(c | x) from log p(c, x): each row of probabilities sums to one. See `log_normalise` for ``fallback``.

    >>> normalise([[-120.0, -121.0]]).round(4).tolist()
    [[0.7311, 0.2689]]
    """
    joint = _subtract_row_max(log_joint, fallback)
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=0)
    return np.moveaxis(joint, 0, -1)


def log_normalise_row(log_joint: Array, fallback: Callable[[], Array] | None = None) -> Array:
    """`log_normalise` of one row (classes,); ``fallback()`` is the result if every class is impossible.

    >>> np.exp(log_normalise_row(np.array([-120.0, -121.0]))).round(4).tolist()
    [0.7311, 0.2689]
    """
    top = log_joint.max()
    if top == -np.inf:
        log_joint = np.zeros(len(log_joint)) if fallback is None else fallback()
        top = log_joint.max()
    relative = log_joint - top
    return np.asarray(relative - math.log(np.exp(relative).sum()))


def _subtract_row_max(log_joint: ArrayLike, fallback: ArrayLike | None) -> Array:
    """Subtract the largest term of each row, and return the result with the classes as the first axis."""
    # (classes, ...rows): reducing over the first axis is twice as fast as over the last
    joint = np.array(np.moveaxis(np.asarray(log_joint, dtype=float), -1, 0), order="C")
    top = joint.max(axis=0)
    if not np.isfinite(top).all():
        ruled_out = np.isneginf(top)  # rows in which every class is impossible
        prior = np.broadcast_to(0.0 if fallback is None else fallback, np.shape(log_joint))
        joint[:, ruled_out] = np.moveaxis(prior, -1, 0)[:, ruled_out]
        top = joint.max(axis=0)
    joint -= top
    return joint


def log(x: ArrayLike) -> Array:
    """Return the logarithm, with ``log 0 = -inf`` and no warning: probability zero is a valid input."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def log_or_zero(x: ArrayLike) -> Array:
    """Return the logarithm, and zero where ``x`` is not positive.

    >>> log_or_zero([0.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    return np.asarray(np.log(np.where(np.asarray(x) > 0, x, 1.0)))


def x_log_y(x: ArrayLike, log_y: ArrayLike) -> Array:
    """Return ``x * log y`` with the convention ``0 * -inf = 0``.

    >>> x_log_y([0, 2], [-np.inf, -1.0]).tolist()
    [0.0, -2.0]
    """
    x, log_y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(log_y, dtype=float))
    product: Array = np.multiply(x, log_y, out=np.zeros(x.shape), where=x != 0)
    return product
