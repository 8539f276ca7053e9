import numpy as np

def compute_log_factorials(x: np.ndarray) -> np.ndarray:
    """log x! of whole numbers, from nothing but the logarithm: a C library's own log Γ may differ in the last bit."""

def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of log Γ, for x from zero."""

def log_gamma(x: np.ndarray) -> np.ndarray:
    """log Γ(x)."""

def trigamma(x: np.ndarray) -> np.ndarray:
    """The second derivative of log Γ, for x from zero."""
