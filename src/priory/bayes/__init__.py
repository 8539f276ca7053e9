"""Bayes' rule: the rules of probability, joint tables, and hypothesis spaces, finite or continuous.

>>> bayes_rule(p_b_given_a=0.9, p_a=0.5, p_b=0.75)
0.6
"""

from priory.bayes.continuum import Continuum
from priory.bayes.finite import Hypotheses
from priory.bayes.probability import (
    JointTable,
    are_independent,
    bayes_rule,
    complement,
    conditional_probability,
    product_rule,
    sum_rule,
    total_probability,
)

__all__ = [
    "Continuum",
    "Hypotheses",
    "JointTable",
    "are_independent",
    "bayes_rule",
    "complement",
    "conditional_probability",
    "product_rule",
    "sum_rule",
    "total_probability",
]
