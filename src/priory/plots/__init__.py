"""Figures: every function returns a matplotlib figure, to be saved with ``figure.savefig("bags.png")``.

They need matplotlib: ``pip install 'priory[plots]'``.
"""

from priory.plots.evaluation import (
    confusion_matrix,
    evidence_bars,
    learning_curve,
    reliability_diagram,
    roc_curves,
    score_histogram,
)
from priory.plots.hypotheses import belief, belief_curve, next_outcome_curve, posterior_curves, version_space
from priory.plots.regression import class_probability, posterior_lines, predictive_band, prior_lines

__all__ = [
    "belief",
    "belief_curve",
    "class_probability",
    "confusion_matrix",
    "evidence_bars",
    "learning_curve",
    "next_outcome_curve",
    "posterior_curves",
    "posterior_lines",
    "predictive_band",
    "prior_lines",
    "reliability_diagram",
    "roc_curves",
    "score_histogram",
    "version_space",
]
