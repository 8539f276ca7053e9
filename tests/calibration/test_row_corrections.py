"""Corrections of single rows: a step of the tempering, by numbers and by arrays."""

import numpy as np
import pytest

from priory.calibration import corrections
from priory.calibration.corrections import Tempering, step_tempering, weigh_evidence
from priory.core.logspace import log_normalise_row
from priory.model.open_model import RowEvidence
from reference_kernels import rows as rows_reference


def make_evidence(rng, classes, parts):
    lengths = np.append(1.0, rng.uniform(0.1, 3.0, parts - 1))
    return RowEvidence(np.arange(parts), -rng.gamma(2.0, 3.0, (classes, parts)), lengths)


@pytest.mark.parametrize(("classes", "parts"), [(2, 2), (3, 4), (1, 2)])
def test_a_step_is_the_same_by_the_compiled_loop_and_by_its_twin(monkeypatch, classes, parts):
    rng = np.random.default_rng(0)
    compiled = readable = Tempering.prior(parts)
    for _ in range(20):
        evidence, group = make_evidence(rng, classes, parts), int(rng.integers(classes))
        count = float(rng.integers(1, 4))
        compiled = step_tempering(compiled, evidence, group, count)
        with monkeypatch.context() as patched:
            patched.setattr(corrections, "kernel", rows_reference)
            readable = step_tempering(readable, evidence, group, count)
        for name in ("weights", "exponents", "precision"):
            np.testing.assert_allclose(getattr(compiled, name), getattr(readable, name), rtol=1e-10)
    assert compiled.find_fault() is None


def test_steps_along_a_stream_come_near_the_best_weight():
    """Evidence that says everything twice deserves half its weight."""
    rng = np.random.default_rng(1)
    tempering, losses = Tempering.prior(2), {"before": 0.0, "after": 0.0}
    for _ in range(2000):
        logit = rng.normal(0.0, 2.0)
        group = int(rng.random() < 1 / (1 + np.exp(-logit)))
        evidence = RowEvidence(np.arange(2), np.array([[0.0, 0.0], [0.0, 2 * logit]]), np.ones(2))
        for name, belief in (("before", Tempering.prior(2)), ("after", tempering)):
            losses[name] -= log_normalise_row(weigh_evidence(belief, evidence))[group]
        tempering = step_tempering(tempering, evidence, group)
    assert tempering.weights[1] == pytest.approx(0.5, abs=0.08)
    assert losses["after"] < losses["before"]
