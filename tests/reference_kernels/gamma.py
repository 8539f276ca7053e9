"""The readable twin of `gamma`: what each loop means, by SciPy."""

from __future__ import annotations

import numpy as np


def log_gamma(x: np.ndarray) -> np.ndarray:
    """log Γ(x)."""
    import scipy

    return np.asarray(scipy.special.gammaln(x))


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of log Γ, for x from zero."""
    import scipy

    return np.asarray(scipy.special.psi(x))


def trigamma(x: np.ndarray) -> np.ndarray:
    """The second derivative of log Γ, for x from zero."""
    import scipy

    return np.asarray(scipy.special.polygamma(1, x))
