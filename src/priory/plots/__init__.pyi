"""The public names of the package; each module is imported when one of its names is first used."""

from priory.plots.classifier_plots import (
    class_densities as class_densities,
    decision_regions as decision_regions,
    nomogram as nomogram,
    word_probabilities as word_probabilities,
)
from priory.plots.evaluation_plots import (
    confusion_matrix as confusion_matrix,
    dependence_map as dependence_map,
    evidence_bars as evidence_bars,
    expected_costs as expected_costs,
    learning_curve as learning_curve,
    reliability_diagram as reliability_diagram,
    roc_curves as roc_curves,
    score_histogram as score_histogram,
)
from priory.plots.hypothesis_plots import (
    belief as belief,
    belief_curve as belief_curve,
    description_lengths as description_lengths,
    fitted_family as fitted_family,
    likelihood_curve as likelihood_curve,
    mosaic as mosaic,
    next_outcome_curve as next_outcome_curve,
    parameter_growth as parameter_growth,
    posterior_bars as posterior_bars,
    posterior_curves as posterior_curves,
    version_space as version_space,
)
from priory.plots.regression_plots import (
    belief_plane as belief_plane,
    class_probability as class_probability,
    error_per_step as error_per_step,
    posterior_lines as posterior_lines,
    predictive_band as predictive_band,
    prior_lines as prior_lines,
)

__all__: list[str]
