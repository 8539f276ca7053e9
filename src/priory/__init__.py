"""Bayesian learning in one equation: posterior = prior + statistics(data)."""

from priory.core.lazy_imports import attach_stub

__version__ = "0.2.0"  # the only place: pyproject.toml reads it from here

__getattr__, __dir__ = attach_stub(__name__)
