"""Figures: every function returns a matplotlib figure, which ``figure.savefig("bags.png")`` saves.

They need matplotlib: ``pip install 'priory[plots]'``.
"""

from priory.plots.classifier_plots import class_densities, decision_regions, nomogram, word_probabilities
from priory.plots.evaluation_plots import (
    confusion_matrix,
    dependence_map,
    evidence_bars,
    expected_costs,
    learning_curve,
    reliability_diagram,
    roc_curves,
    score_histogram,
)
from priory.plots.hypothesis_plots import (
    belief,
    belief_curve,
    description_lengths,
    fitted_family,
    likelihood_curve,
    mosaic,
    next_outcome_curve,
    parameter_growth,
    posterior_bars,
    posterior_curves,
    version_space,
)
from priory.plots.regression_plots import (
    belief_plane,
    class_probability,
    error_per_step,
    posterior_lines,
    predictive_band,
    prior_lines,
)

__all__ = [
    "belief",
    "belief_curve",
    "belief_plane",
    "class_densities",
    "class_probability",
    "confusion_matrix",
    "decision_regions",
    "dependence_map",
    "description_lengths",
    "error_per_step",
    "evidence_bars",
    "expected_costs",
    "fitted_family",
    "learning_curve",
    "likelihood_curve",
    "mosaic",
    "next_outcome_curve",
    "nomogram",
    "parameter_growth",
    "posterior_bars",
    "posterior_curves",
    "posterior_lines",
    "predictive_band",
    "prior_lines",
    "reliability_diagram",
    "roc_curves",
    "score_histogram",
    "version_space",
    "word_probabilities",
]
