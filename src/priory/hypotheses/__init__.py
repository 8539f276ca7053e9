"""Hypothesis spaces: maximum likelihood, MAP, Bayes-optimal and Gibbs predictions, and description length."""

from priory.hypotheses.continuum import Continuum
from priory.hypotheses.finite import Hypotheses

__all__ = ["Continuum", "Hypotheses"]
