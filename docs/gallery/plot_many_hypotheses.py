"""
Fifty-five hypotheses
=====================

With many hypotheses the most probable ones are named, the others are grey.
"""

import numpy as np

from priory import Hypotheses, plots

shares = [f"{i / 54:.2f}" for i in range(55)]
bags = Hypotheses(None, {share: {"lime": float(share), "cherry": 1 - float(share)} for share in shares})
draws = ["lime" if u < 0.7 else "cherry" for u in np.random.default_rng(0).random(40)]
curves = plots.posterior_curves(bags, draws)

# %%
bars = plots.posterior_bars(bags, draws[:7])
