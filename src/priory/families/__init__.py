"""Likelihoods with their conjugate priors, one for each module, all behind one interface (`base.Family`)."""

from priory.families.base import Family
from priory.families.bernoulli import Bernoulli
from priory.families.binomial import Binomial
from priory.families.categorical import Categorical
from priory.families.gamma import Gamma
from priory.families.gaussian import Gaussian
from priory.families.histogram import Histogram
from priory.families.model_checks import bayes_factor, check_predictions, compare_priors
from priory.families.multinomial import Multinomial
from priory.families.poisson import Poisson
from priory.families.text import Text

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Family",
    "Gamma",
    "Gaussian",
    "Histogram",
    "Multinomial",
    "Poisson",
    "Text",
    "bayes_factor",
    "check_predictions",
    "compare_priors",
]
