"""The rules of probability as small functions, and joint tables to condition on and marginalise.

>>> bayes_rule(p_b_given_a=0.9, p_a=0.5, p_b=0.75)
0.6
"""

from priory.probability.joint_table import JointTable
from priory.probability.rules import (
    are_independent,
    bayes_rule,
    complement,
    conditional_probability,
    product_rule,
    sum_rule,
    total_probability,
)

__all__ = [
    "JointTable",
    "are_independent",
    "bayes_rule",
    "complement",
    "conditional_probability",
    "product_rule",
    "sum_rule",
    "total_probability",
]
