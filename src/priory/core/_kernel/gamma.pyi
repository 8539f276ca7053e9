import numpy as np

def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of log Γ, for x >= 0."""

def log_gamma(x: np.ndarray) -> np.ndarray:
    """log Γ(x)."""

def trigamma(x: np.ndarray) -> np.ndarray:
    """The second derivative of log Γ, for x >= 0."""
