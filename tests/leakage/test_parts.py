"""What the audit is made of: votes, bins, corrections for many tests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory as pr
from priory.leakage import Finding, Severity, finders
from priory.leakage.audit_tables import BinnedNaiveBayes, bin_cells
from priory.leakage.findings import (
    Suspicion,
    adjust_p_values,
    confirm_suspicions,
    measure_association,
    measure_presence_association,
)


def test_votes_without_a_row_are_those_of_the_other_rows():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=60)
    bins = [(rng.integers(4, size=60), 4), (rng.integers(2, size=60), 2)]
    votes = BinnedNaiveBayes.of(bins, group, 3)
    share = np.bincount(group, minlength=3) / 60
    for i in range(60):
        others = np.arange(60) != i
        expected = np.log(share)
        for codes, size in bins:
            counts = np.zeros((3, size))
            np.add.at(counts, (group[others], codes[others]), 1)
            expected = expected + np.log1p(counts[:, codes[i]] / share)
        assert np.allclose(votes.log_joint[i], expected)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_a_column_alone_answers_as_its_votes_do(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(rng.integers(2, 5), size=40)
    votes = BinnedNaiveBayes.of([(rng.integers(5, size=40), 5)], group, 5)
    joint = votes.log_joint.copy()
    own = joint[np.arange(40), group]
    joint[np.arange(40), group] = -np.inf
    assert np.array_equal(votes.mark_correct_by_column(0), own > joint.max(axis=1))


def test_votes_without_rows_are_those_of_a_refit():
    rng = np.random.default_rng(0)
    group, codes = rng.integers(2, size=80), rng.integers(6, size=100)
    votes = BinnedNaiveBayes.of([(codes, 6)], group, 2)
    gone = np.arange(0, 80, 3)
    kept = np.setdiff1d(np.arange(80), gone)
    refit = BinnedNaiveBayes.of([(np.concatenate([codes[kept], codes[80:]]), 6)], group[kept], 2)
    new = slice(80, 100)
    assert np.array_equal(
        votes.remove_rows(gone).predict_classes(new), refit.predict_classes(slice(len(kept), len(kept) + 20))
    )


def test_bins_are_of_equal_content_and_the_first_is_for_what_is_missing():
    x = np.append(np.random.default_rng(0).normal(size=10_000), np.nan)
    bins, size = bin_cells(x, len(x))
    assert bins[-1] == 0
    counts = np.bincount(bins, minlength=size)[1:]
    assert counts[counts > 0].min() > 300


def test_holm_is_the_step_down_of_the_book():
    p = np.random.default_rng(0).random(20) ** 3
    order = np.argsort(p)
    expected = np.empty(20)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, (20 - rank) * p[i])
        expected[i] = min(running, 1.0)
    assert np.allclose(adjust_p_values(p), expected)


def test_suspicions_that_do_not_hold_are_dropped():
    made = Finding(Severity.HIGH, "x", "what", "do")
    found = confirm_suspicions(
        [Suspicion(0.004, lambda: made), Suspicion(0.5, lambda: made), Suspicion(None, lambda: made)]
    )
    assert [f.p for f in found] == [0.008, None]
    assert found.tests == 2


def test_tests_are_those_of_scipy():
    from scipy.stats import chi2_contingency

    counts = np.random.default_rng(0).integers(20, 60, size=(3, 5))
    assert measure_association(counts)[1] == pytest.approx(chi2_contingency(counts, correction=False).pvalue)
    total = counts.sum(axis=1)
    _, p = measure_presence_association(counts.T, total)
    pair = np.stack([counts[:, 2], total - counts[:, 2]], axis=1)
    assert p[2] == pytest.approx(chi2_contingency(pair, correction=False).pvalue)


FINDER = """
from priory.leakage.findings import Finding, Severity, Suspicion


def find(data):
    yield Suspicion(None, lambda: Finding(Severity.LOW, "toy", "a toy was found.", "Put it away."))
"""


def test_a_finder_is_one_file_in_the_folder_of_finders(tmp_path, monkeypatch):
    (tmp_path / "toy_finder.py").write_text(FINDER)
    monkeypatch.setattr(finders, "__path__", [*finders.__path__, str(tmp_path)])
    found = pr.audit([{"x": i % 7} for i in range(50)])
    assert "a toy was found." in [finding.what for finding in found]
