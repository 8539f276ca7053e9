"""Bayesian learning in one equation: posterior = prior + statistics(data)."""

from typing import Any

__version__ = "0.1.0"

__all__ = ["NaiveBayes", "families"]


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import: only those who ask for an estimator pay for it
    if name == "NaiveBayes":
        from priory.classifier import NaiveBayes

        return NaiveBayes
    raise AttributeError(f"module 'priory' has no attribute {name!r}")
