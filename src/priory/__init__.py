"""Bayesian learning in one equation: posterior = prior + statistics(data)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priory import bayes, families, naive_bayes, plots, storage, workflows
    from priory.bayes.continuum import Continuum
    from priory.bayes.course import inbox
    from priory.bayes.finite import Hypotheses
    from priory.estimators.bayes_optimal import BayesOptimalClassifier, GibbsClassifier
    from priory.estimators.calibrated import Calibrated
    from priory.estimators.dependence import measure_dependence
    from priory.estimators.learning_curve import score_by_rows
    from priory.estimators.mdl_discretiser import MDLDiscretiser
    from priory.estimators.mdl_tree import MDLTreeClassifier
    from priory.estimators.multi_label import MultiLabelClassifier
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier
    from priory.evaluation.bayes_error import bayes_rate
    from priory.evaluation.decisions import ABSTAIN, decide
    from priory.evaluation.scores import Scores
    from priory.export.html_report import report
    from priory.export.onnx import to_onnx
    from priory.leakage import audit
    from priory.learning.drift_alarm import DriftMonitor, find_drift
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.regression.logistic_regression import BayesianLogisticRegression
    from priory.regression.sigmoid_unit import SigmoidUnit
    from priory.service.client import AsyncClient, Client
    from priory.storage import load, save

__version__ = "0.2.0"  # the only place: pyproject.toml reads it from here

__all__ = [
    "ABSTAIN",
    "AsyncClient",
    "BayesOptimalClassifier",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "Calibrated",
    "Client",
    "Continuum",
    "DriftMonitor",
    "GibbsClassifier",
    "Hypotheses",
    "MDLDiscretiser",
    "MDLTreeClassifier",
    "MultiLabelClassifier",
    "NaiveBayes",
    "Scores",
    "SigmoidUnit",
    "TextClassifier",
    "audit",
    "bayes",
    "bayes_rate",
    "decide",
    "families",
    "find_drift",
    "inbox",
    "load",
    "measure_dependence",
    "naive_bayes",
    "plots",
    "report",
    "save",
    "score_by_rows",
    "storage",
    "to_onnx",
    "workflows",
]

# Public name -> module. Modules are imported on first use, because importing scikit-learn takes a second.
_HOME = {
    "ABSTAIN": "evaluation.decisions",
    "AsyncClient": "service.client",
    "BayesOptimalClassifier": "estimators.bayes_optimal",
    "BayesianLinearRegression": "regression.linear_regression",
    "BayesianLogisticRegression": "regression.logistic_regression",
    "Calibrated": "estimators.calibrated",
    "Client": "service.client",
    "Continuum": "bayes.continuum",
    "DriftMonitor": "learning.drift_alarm",
    "GibbsClassifier": "estimators.bayes_optimal",
    "Hypotheses": "bayes.finite",
    "MDLDiscretiser": "estimators.mdl_discretiser",
    "MDLTreeClassifier": "estimators.mdl_tree",
    "MultiLabelClassifier": "estimators.multi_label",
    "NaiveBayes": "estimators.naive_bayes",
    "Scores": "evaluation.scores",
    "SigmoidUnit": "regression.sigmoid_unit",
    "TextClassifier": "estimators.text_classifier",
    "audit": "leakage",
    "bayes_rate": "evaluation.bayes_error",
    "decide": "evaluation.decisions",
    "find_drift": "learning.drift_alarm",
    "inbox": "bayes.course",
    "load": "storage",
    "measure_dependence": "estimators.dependence",
    "report": "export.html_report",
    "save": "storage",
    "score_by_rows": "estimators.learning_curve",
    "to_onnx": "export.onnx",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'priory' has no attribute {name!r}")
    module = import_module(f"priory.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
