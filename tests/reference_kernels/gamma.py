"""The readable twin of `gamma`: what each loop means, by SciPy."""

from __future__ import annotations

import numpy as np


def log_gamma(x: np.ndarray) -> np.ndarray:
    """log Γ(x)."""
    import scipy

    return np.asarray(scipy.special.gammaln(x))


def compute_log_factorials(x: np.ndarray) -> np.ndarray:
    """log x! of whole numbers, from nothing but the logarithm: a C library's own log Γ may differ in the last bit."""
    import scipy

    return np.asarray(scipy.special.gammaln(x + 1))


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of log Γ, for x from zero."""
    import scipy

    return np.asarray(scipy.special.psi(x))


def trigamma(x: np.ndarray) -> np.ndarray:
    """The second derivative of log Γ, for x from zero."""
    import scipy

    return np.asarray(scipy.special.polygamma(1, x))
