"""Where a smooth cost is lowest: L-BFGS, told the slope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from priory.core.typing import Array


def minimise_lbfgs(
    cost: Callable[[Array], tuple[float, Array]], initial: Array, max_iter: int, exact: bool = False
) -> Array:
    """``cost`` gives height and slope; ``exact`` goes on until rounding stops it.

    >>> minimise_lbfgs(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 10).round(6).tolist()
    [3.0, 3.0]
    """
    options: dict[str, Any] = {"maxiter": max_iter, "maxcor": 8}
    if exact:
        options |= {"ftol": 1e-12, "gtol": 1e-7}
    found: Any = minimize
    return np.asarray(found(cost, initial, jac=True, method="L-BFGS-B", options=options).x)
