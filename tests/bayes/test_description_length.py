"""Code lengths: two-part, mixture and prequential codes, and how they bound one another."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.bayes.description_length import (
    label_bits,
    label_log_probabilities,
    mixture,
    prequential,
    to_bits,
    two_part,
)
from priory.families.bernoulli import Bernoulli
from priory.families.gaussian import Gaussian
from priory.families.poisson import Poisson


def test_certainty_is_free_and_the_impossible_has_no_code():
    assert to_bits([0.0, -math.inf]).tolist() == [0.0, math.inf]
    assert math.copysign(1, float(to_bits(0.0))) == 1


@pytest.mark.parametrize(
    ("family", "values"),
    [
        (Bernoulli(2.0, 0.5), [1, 1, 0, 1, 0]),
        (Poisson(2.0, 1.5), [0, 3, 1, 7]),
        (Gaussian(location=1.0, strength=0.5, shape=2.0, scale=3.0), [0.3, -2.0, 8.5, 1.1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_prequential_code_is_the_mixture_code(family, values):
    assert prequential(family, values) == pytest.approx(mixture(family, values))
    assert prequential(family, values[::-1]) == pytest.approx(mixture(family, values))


@given(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=30))
def test_no_two_part_code_over_a_grid_beats_the_mixture_of_that_grid(x):
    theta = np.linspace(0.05, 0.95, 19)
    log_likelihood = np.log(theta) * sum(x) + np.log(1 - theta) * (len(x) - sum(x))
    shortest = min(two_part(-math.log(19), value).total for value in log_likelihood)
    assert float(to_bits(np.logaddexp.reduce(log_likelihood - math.log(19)))) <= shortest + 1e-9


@given(st.lists(st.integers(0, 6), min_size=2, max_size=5))
def test_label_bits_are_the_prequential_bits_in_any_order(counts):
    labels = [c for c, n in enumerate(counts) for _ in range(n)]
    seen, total, k = np.zeros(len(counts)), 0.0, len(counts)
    for label in np.random.default_rng(0).permutation(labels).astype(int):
        total -= math.log2((seen[label] + 1 / k) / (seen.sum() + 1))
        seen[label] += 1
    assert float(label_bits(counts)) == pytest.approx(total, abs=1e-9)


class Majority:
    """Believes that every row has the commonest label."""

    def fit(self, x, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.proba = counts / counts.sum()
        return self

    def predict_proba(self, x):
        return np.tile(self.proba, (len(x), 1))


def test_a_label_that_a_model_rules_out_costs_finitely_many_bits():
    model = Majority().fit(None, ["a", "a"])
    # after "aa" a model gives a: 1, taken for two rows and half a row more for each class
    found = label_log_probabilities(model, np.zeros((2, 1)), np.array(["a", "b"]), np.array(["a", "b"]), 2)
    assert np.exp(found) == pytest.approx([2.5 / 3, 0.5 / 3])
