"""The gamma function and its derivatives, compiled, against SciPy's."""

import numpy as np
import pytest

from priory.core._kernel import gamma
from priory.core.logspace import betaln, expit, gammaln, log_by_table, log_factorial
from reference_kernels import gamma as gamma_reference

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


def test_log_factorials_are_the_logarithms_of_factorials():
    counts = np.concatenate([np.arange(3000.0), np.logspace(4, 15, 200).round()])
    assert np.allclose(log_factorial(counts), gamma_reference.log_gamma(counts + 1), rtol=1e-15, atol=1e-15)
    assert np.isnan(log_factorial([np.nan])).all()


def test_logarithms_by_table_are_logarithms():
    x = np.concatenate([np.logspace(-300, 300, 5001), 1 + np.logspace(-15, 0, 200), [5e-324, np.nan]])
    assert np.allclose(log_by_table(x), np.log(x), rtol=1e-15, atol=4e-15, equal_nan=True)
    assert log_by_table(np.array([0.5, 1.0, 2.0])).tolist() == [-np.log(2), 0.0, np.log(2)]
