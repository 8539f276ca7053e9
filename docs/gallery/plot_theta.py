"""
The likelihood of θ
===================

Seven cherries and three limes: the likelihood, and the belief about the share of cherries.
"""

from priory import Continuum, plots

bag = Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3)
likelihood = plots.likelihood_curve(bag)

# %%
# Prior and posterior.
belief = plots.belief(bag)

# %%
# The belief while candies are drawn.
curve = plots.belief_curve(bag, ["cherry", "cherry", "lime", "cherry", "lime"] * 4)
