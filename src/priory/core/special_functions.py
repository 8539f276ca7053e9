"""Special functions: compiled ones for predictions, and SciPy's, which are imported when first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from priory._kernel import gamma as kernel
from priory.core.typing import Array

MAX_EXACT_COUNT = 2.0**53  # above it, neighbouring counts are the same float


def _call_later(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(scipy.special, name)(*arguments, **options)

    return call


betaincinv = _call_later("betaincinv")
gammainc = _call_later("gammainc")
gammainccinv = _call_later("gammainccinv")
gammaincinv = _call_later("gammaincinv")
multigammaln = _call_later("multigammaln")
ndtr = _call_later("ndtr")
ndtri = _call_later("ndtri")
stdtrit = _call_later("stdtrit")


def _call_kernel(function: Callable[[Array], Array], x: ArrayLike) -> Any:
    values = np.asarray(x, dtype=float)
    return function(np.ravel(values)).reshape(values.shape)[()]


def gammaln(x: ArrayLike) -> Any:
    """log Γ(x).

    >>> round(float(gammaln(5.0)), 4)    # log 24
    3.1781
    """
    return _call_kernel(kernel.log_gamma, x)


def log_factorial(counts: ArrayLike) -> Any:
    """log x! of whole numbers, the same to the last bit everywhere, so that rows can be forgotten exactly.

    >>> round(float(log_factorial(4)), 4)    # log 24
    3.1781
    """
    return _call_kernel(kernel.compute_log_factorials, counts)


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
