"""Bayesian linear and logistic regression.

The estimators are imported on first use: they need scikit-learn, and the other modules of this folder do not.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from priory.regression.linear_posterior import NormalInverseGamma
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.regression.logistic_regression import BayesianLogisticRegression

__all__ = ["BayesianLinearRegression", "BayesianLogisticRegression", "NormalInverseGamma"]

_HOME = {
    "BayesianLinearRegression": "linear_regression",
    "BayesianLogisticRegression": "logistic_regression",
    "NormalInverseGamma": "linear_posterior",
}


def __getattr__(name: str) -> type:
    if name not in _HOME:
        raise AttributeError(f"module 'priory.regression' has no attribute {name!r}")
    return getattr(import_module(f"priory.regression.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
