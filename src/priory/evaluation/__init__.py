"""Evaluation of probabilities: scores with intervals, curves, reliability, decisions and the Bayes error rate."""

from priory.evaluation.bayes_error import bayes_rate
from priory.evaluation.decisions import ABSTAIN, decide
from priory.evaluation.scores import Scores

__all__ = ["ABSTAIN", "Scores", "bayes_rate", "decide"]
