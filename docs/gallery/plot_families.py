"""
Families fitted to data
=======================

The maximum-likelihood curve of a family, and what it predicts, over the histogram of the data.
"""

import numpy as np
from sklearn.datasets import load_iris

from priory import plots
from priory.families import Bernoulli, Gamma, Gaussian, Poisson

gaussian = plots.fitted_family(Gaussian, load_iris().data[:, 0])

# %%
rng = np.random.default_rng(0)
poisson = plots.fitted_family(Poisson, rng.poisson(3.0, 60))

# %%
bernoulli = plots.fitted_family(Bernoulli(1, 1), [1] * 7 + [0] * 3)

# %%
gamma = plots.fitted_family(Gamma, rng.gamma(2.0, 2.0, 80))
