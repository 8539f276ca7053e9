"""Bayesian learning in one equation: posterior = prior + statistics(data)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priory import families, naive_bayes, plots, storage
    from priory.calibrated import Calibrated
    from priory.classifier import NaiveBayes
    from priory.continuum import Continuum
    from priory.decisions import ABSTAIN, decide
    from priory.discretise import MDLDiscretiser
    from priory.hypotheses import Hypotheses
    from priory.leakage import audit
    from priory.logistic_regression import BayesianLogisticRegression
    from priory.neighbours import bayes_rate
    from priory.onnx_export import to_onnx
    from priory.optimal import BayesOptimalClassifier, GibbsClassifier
    from priory.regression import BayesianLinearRegression
    from priory.reporting import report
    from priory.scores import Scores
    from priory.storage import load, save
    from priory.text import TextClassifier
    from priory.trees import MDLTreeClassifier

__version__ = "0.1.0"

__all__ = [
    "ABSTAIN",
    "BayesOptimalClassifier",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "Calibrated",
    "Continuum",
    "GibbsClassifier",
    "Hypotheses",
    "MDLDiscretiser",
    "MDLTreeClassifier",
    "NaiveBayes",
    "Scores",
    "TextClassifier",
    "audit",
    "bayes_rate",
    "decide",
    "families",
    "load",
    "naive_bayes",
    "plots",
    "report",
    "save",
    "storage",
    "to_onnx",
]

# scikit-learn takes a second to import: only those who ask for an estimator pay for it
_HOME = {
    "ABSTAIN": "decisions",
    "BayesOptimalClassifier": "optimal",
    "BayesianLinearRegression": "regression",
    "BayesianLogisticRegression": "logistic_regression",
    "Calibrated": "calibrated",
    "Continuum": "continuum",
    "GibbsClassifier": "optimal",
    "Hypotheses": "hypotheses",
    "MDLDiscretiser": "discretise",
    "MDLTreeClassifier": "trees",
    "NaiveBayes": "classifier",
    "Scores": "scores",
    "TextClassifier": "text",
    "audit": "leakage",
    "bayes_rate": "neighbours",
    "decide": "decisions",
    "load": "storage",
    "report": "reporting",
    "save": "storage",
    "to_onnx": "onnx_export",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'priory' has no attribute {name!r}")
    module = import_module(f"priory.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
