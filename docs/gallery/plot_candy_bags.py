"""
Candy bags
==========

The posterior of five kinds of bags while limes are drawn, and what comes next.
"""

from priory import Hypotheses, plots

share_of_lime = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}
bags = Hypotheses(
    prior={"h1": 0.1, "h2": 0.2, "h3": 0.4, "h4": 0.2, "h5": 0.1},
    likelihood={h: {"lime": p, "cherry": 1 - p} for h, p in share_of_lime.items()},
)
bars = plots.posterior_bars(bags, ["lime"] * 5)

# %%
# The same as curves, for ten limes.
curves = plots.posterior_curves(bags, ["lime"] * 10)

# %%
# The probability that the next candy is lime: the vote of all bags.
next_lime = plots.next_outcome_curve(bags, ["lime"] * 10, "lime")
