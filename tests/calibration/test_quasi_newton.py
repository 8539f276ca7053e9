"""Costs made small between bounds, beside SciPy's L-BFGS-B."""

import numpy as np
import pytest
from scipy.optimize import minimize

from priory.calibration.solvers import minimise_cost


def make_regression(seed, width=6, rows=80):
    """The cost of a logistic regression with a small penalty."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width)) * np.geomspace(1, 5, width)
    sign = np.where(rng.random(rows) < 1 / (1 + np.exp(-x @ rng.normal(size=width))), 1.0, -1.0)

    def cost(w):
        margin = sign * (x @ w)
        wrong = 1 / (1 + np.exp(margin))
        return float(np.logaddexp(0, -margin).sum() + 0.05 * w @ w), 0.1 * w - x.T @ (sign * wrong)

    return cost


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, np.inf), (-0.1, 0.2)])
def test_the_smallest_cost_between_bounds_is_that_of_scipy(seed, bounds):
    cost = make_regression(seed)
    start = np.full(6, 0.1)
    found = minimise_cost(cost, start, 1e-12, 200, *bounds)
    options = {"ftol": 1e-14, "gtol": 1e-10}
    expected = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=[bounds] * 6, options=options)
    assert cost(found)[0] <= expected.fun + 1e-8
    assert np.allclose(found, expected.x, atol=1e-4)
    assert (found >= bounds[0]).all()
    assert (found <= bounds[1]).all()


def test_a_curved_valley_is_followed_to_its_end():
    def cost(x):  # by Rosenbrock
        across = x[1] - x[0] ** 2
        slope = np.array([-400 * x[0] * across - 2 * (1 - x[0]), 200 * across])
        return float(100 * across**2 + (1 - x[0]) ** 2), slope

    assert np.allclose(minimise_cost(cost, np.array([-1.2, 1.0]), 1e-15, 200), 1.0, atol=1e-4)


def test_a_search_that_cannot_go_on_ends_where_it_is():
    start = np.array([0.5, 2.0])
    assert minimise_cost(lambda x: (0.0, np.zeros(2)), start, 1e-9, 10).tolist() == [0.5, 2.0]
    assert minimise_cost(lambda x: (float(x.sum()), np.ones(2)), start, 1e-9, 10, lower=start).tolist() == [0.5, 2.0]
