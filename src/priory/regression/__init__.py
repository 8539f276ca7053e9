"""Bayesian linear and logistic regression.

The estimators are imported on first use: they need scikit-learn, and the other modules of this folder do not.
"""

from priory.core.lazy_imports import attach_stub

__getattr__, __dir__ = attach_stub(__name__)
