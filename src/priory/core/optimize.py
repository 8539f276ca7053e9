"""Minimise a smooth function with L-BFGS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from priory.core.typing import Array


def minimise_lbfgs(
    cost: Callable[[Array], tuple[float, Array]], initial: Array, max_iter: int, exact: bool = False
) -> Array:
    """Return the point where ``cost`` is lowest; ``cost`` returns its value and its gradient.

    With ``exact`` the search goes on until it is limited by rounding.


    >>> minimise_lbfgs(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 10).round(6).tolist()
    [3.0, 3.0]
    """
    ftol, gtol = (1e-12, 1e-7) if exact else (2.220446049250313e-09, 1e-5)  # the latter are SciPy's defaults
    options = {"maxiter": max_iter, "maxcor": 8, "ftol": ftol, "gtol": gtol}
    return np.asarray(minimize(cost, initial, jac=True, method="L-BFGS-B", options=options).x)  # type: ignore[call-overload]
