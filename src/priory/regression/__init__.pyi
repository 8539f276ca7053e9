"""The public names of the package; each module is imported when one of its names is first used."""

from priory.regression.linear_posterior import NormalInverseGamma as NormalInverseGamma
from priory.regression.linear_regression import BayesianLinearRegression as BayesianLinearRegression
from priory.regression.logistic_regression import BayesianLogisticRegression as BayesianLogisticRegression

__all__: list[str]
