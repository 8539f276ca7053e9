"""
Error of the sigmoid unit
=========================

The cross-entropy before each step of the rule, and after the last.
"""

import numpy as np

from priory import SigmoidUnit, plots

rng = np.random.default_rng(0)
x = rng.normal(size=(60, 1))
d = (x[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
figure = plots.error_per_step(SigmoidUnit(eta=0.05, steps=30).fit(x, d))
