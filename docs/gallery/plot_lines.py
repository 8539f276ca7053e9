"""
Beliefs about lines
===================

Lines drawn from the prior and from the posterior, and the belief in the plane of intercept and slope.
"""

import numpy as np

from priory import BayesianLinearRegression, plots
from priory.regression import NormalInverseGamma

prior = NormalInverseGamma.isotropic(columns=1, strength=1.0, shape=3.0, scale=1.0)
model = BayesianLinearRegression(prior=prior)
grid = np.linspace(-3, 3, 50)
before = plots.prior_lines(model, grid)

# %%
rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, size=(12, 1))
y = 1.0 + 0.5 * x[:, 0] + 0.3 * rng.normal(size=12)
model.fit(x, y)
after = plots.posterior_lines(model, grid, x, y)

# %%
plane_before = plots.belief_plane(prior, "before the data")

# %%
plane_after = plots.belief_plane(model.posterior_, "after twelve rows")

# %%
band = plots.predictive_band(model, grid, x, y)
