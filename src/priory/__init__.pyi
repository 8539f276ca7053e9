"""The public names of the package; each module is imported when one of its names is first used."""

from priory import (
    bayes as bayes,
    families as families,
    naive_bayes as naive_bayes,
    plots as plots,
    storage as storage,
    workflows as workflows,
)
from priory.bayes.continuum import Continuum as Continuum
from priory.bayes.course import inbox as inbox
from priory.bayes.finite import Hypotheses as Hypotheses
from priory.estimators.bayes_optimal import (
    BayesOptimalClassifier as BayesOptimalClassifier,
    GibbsClassifier as GibbsClassifier,
)
from priory.estimators.calibrated import Calibrated as Calibrated
from priory.estimators.dependence import measure_dependence as measure_dependence
from priory.estimators.learning_curve import score_by_rows as score_by_rows
from priory.estimators.mdl_discretiser import MDLDiscretiser as MDLDiscretiser
from priory.estimators.mdl_tree import MDLTreeClassifier as MDLTreeClassifier
from priory.estimators.multi_label import MultiLabelClassifier as MultiLabelClassifier
from priory.estimators.naive_bayes import NaiveBayes as NaiveBayes
from priory.estimators.text_classifier import TextClassifier as TextClassifier
from priory.evaluation.bayes_error import bayes_rate as bayes_rate
from priory.evaluation.decisions import ABSTAIN as ABSTAIN, decide as decide
from priory.evaluation.scores import Scores as Scores
from priory.export.html_report import report as report
from priory.export.onnx import to_onnx as to_onnx
from priory.leakage import audit as audit
from priory.learning.drift_alarm import DriftMonitor as DriftMonitor, find_drift as find_drift
from priory.regression.linear_regression import BayesianLinearRegression as BayesianLinearRegression
from priory.regression.logistic_regression import BayesianLogisticRegression as BayesianLogisticRegression
from priory.regression.sigmoid_unit import SigmoidUnit as SigmoidUnit
from priory.service.client import Client as Client
from priory.storage import load as load, save as save
from priory.tables import exact as exact

__version__: str
__all__: list[str]
