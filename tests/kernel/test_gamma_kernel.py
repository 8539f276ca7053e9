"""The gamma function and its derivatives, compiled, against SciPy's."""

import numpy as np
import pytest

from priory._kernel import gamma, gamma_reference
from priory.core.special_functions import betaln, expit, gammaln, log_factorial

X = np.concatenate([np.logspace(-12, 15, 500), np.arange(1.0, 300.0), [0.0, np.inf, np.nan]])


@pytest.mark.parametrize("name", ["log_gamma", "digamma", "trigamma"])
def test_the_compiled_function_is_its_twin(name):
    found, expected = getattr(gamma, name)(X), getattr(gamma_reference, name)(X)
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-13, equal_nan=True)


def test_shapes_and_scalars_are_kept():
    assert gammaln(np.ones((2, 0, 3))).shape == (2, 0, 3)
    assert np.allclose(gammaln(np.full((2, 3), 3.0).T), np.full((3, 2), np.log(2)), rtol=1e-14)
    assert isinstance(gammaln(4), float)
    assert np.isclose(betaln(2.0, 3), -np.log(12))
    assert betaln(0.0, 0.0) == np.inf


def test_a_probability_of_any_log_odds():
    assert expit([-1e4, -40.0, 0.0, 1e4]).tolist() == [0.0, np.exp(-40.0), 0.5, 1.0]


def test_sums_of_log_factorials_do_not_depend_on_the_c_library():
    special = pytest.importorskip("scipy.special")
    counts = np.arange(300.0)
    assert np.array_equal(log_factorial(counts), special.gammaln(counts + 1))
