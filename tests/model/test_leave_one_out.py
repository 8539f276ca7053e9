"""Honest scores by subtraction: the closed forms give what plain subtraction gives."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory as pr
from priory.families import Categorical, Histogram
from priory.model import table_model as folds

NaiveBayes = partial(pr.NaiveBayes, calibrate=False)  # the statistics alone


def terms(model, table, y):
    rows, batch = model.learned_.rows.read(table, "answer")
    cells = rows.read_cells(batch)
    return model.learned_.model().leave_one_out_terms(cells, np.asarray(y))


@pytest.mark.parametrize("family", [Histogram, Histogram(alpha=0.7), Histogram(bits=4), Categorical, Categorical(0.3)])
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), min_size=3, max_size=60),
    st.sampled_from([1, 1e-3, 7919]),
)
@settings(max_examples=40, deadline=None)
def test_counted_values_less_one_row_in_closed_form(family, cells, scale):
    x = np.array([value for value, _ in cells]) * scale
    y = np.array([label for _, label in cells])
    table = [{"x": v if v else None} for v in (x.tolist() if "Hist" in repr(family) else map(str, x))]
    y = np.unique(y, return_inverse=True)[1]
    if not np.any(x) or len(np.unique(y)) < 2 or np.bincount(y).max() < 2:
        return
    model = NaiveBayes(family).fit(table, y)
    quick = terms(model, table, y)
    with pytest.MonkeyPatch.context() as plain:
        plain.setattr(folds, "_leave_out_in_closed_form", lambda *_: None)
        assert np.allclose(quick, terms(model, table, y), atol=1e-9)


def test_many_values_are_cut_in_many_ways():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 150), rng.lognormal(1, 2, 150), np.round(rng.normal(5, 3, 100)), [np.nan] * 5])
    y = np.concatenate([np.zeros(150), np.ones(150), rng.integers(0, 2, 105)]).astype(int)
    model = NaiveBayes("histogram").fit(x[:, None], y)
    quick = terms(model, x[:, None], y)
    with pytest.MonkeyPatch.context() as plain:
        plain.setattr(folds, "_leave_out_in_closed_form", lambda *_: None)
        assert np.allclose(quick, terms(model, x[:, None], y), atol=1e-9)
