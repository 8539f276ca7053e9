"""Bayesian learning in one equation: posterior = prior + statistics(data)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priory import families, naive_bayes
    from priory.classifier import NaiveBayes
    from priory.continuum import Continuum
    from priory.discretise import MDLDiscretiser
    from priory.hypotheses import Hypotheses
    from priory.optimal import BayesOptimalClassifier, GibbsClassifier
    from priory.trees import MDLTreeClassifier

__version__ = "0.1.0"

__all__ = [
    "BayesOptimalClassifier",
    "Continuum",
    "GibbsClassifier",
    "Hypotheses",
    "MDLDiscretiser",
    "MDLTreeClassifier",
    "NaiveBayes",
    "families",
    "naive_bayes",
]

# scikit-learn takes a second to import: only those who ask for an estimator pay for it
_HOME = {
    "BayesOptimalClassifier": "priory.optimal",
    "Continuum": "priory.continuum",
    "GibbsClassifier": "priory.optimal",
    "Hypotheses": "priory.hypotheses",
    "MDLDiscretiser": "priory.discretise",
    "MDLTreeClassifier": "priory.trees",
    "NaiveBayes": "priory.classifier",
    "families": "priory",
    "naive_bayes": "priory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'priory' has no attribute {name!r}")
    if _HOME[name] == "priory":
        return import_module(f"priory.{name}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
