"""Sparse rows: the record of the same rows in a dense table, bit for bit, and never the whole table in memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from priory import naive_bayes
from priory.core.content_hash import hash_content
from priory.errors import DataError, NotLearnedError, PrioryError
from priory.naive_bayes import array_rows

CONTAINERS = [
    *(sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix, sparse.coo_array, sparse.coo_matrix),
    *(sparse.lil_array, sparse.dok_matrix),
]
MODELS = [
    naive_bayes.GaussianNB(),
    naive_bayes.GaussianNB(priors=[0.2, 0.3, 0.5]),
    naive_bayes.MultinomialNB(),
    naive_bayes.ComplementNB(),
]


def make_counts(rows=300, columns=7, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=rows)
    return rng.poisson(0.3 + 0.4 * ((y[:, None] + np.arange(columns)) % 3)).astype(float), y


def describe(model):
    return repr(model).replace("\n", "")


def copy_of(model):
    return type(model)(**model.get_params())


def record_of(model):
    return hash_content(model.statistics_)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(array_rows, "MAX_DENSE_CELLS", 50)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("model", MODELS, ids=describe)
def test_sparse_rows_are_the_dense_rows(model, container):
    x, y = make_counts()
    dense, thin = copy_of(model).fit(x, y), copy_of(model).fit(container(x), y)
    assert record_of(thin) == record_of(dense)
    new = make_counts(seed=1)[0]
    for method in ("predict_joint_log_proba", "predict_log_proba", "predict_proba"):
        np.testing.assert_allclose(getattr(thin, method)(container(new)), getattr(dense, method)(new), rtol=1e-11)
    np.testing.assert_array_equal(thin.predict(container(new)), dense.predict(new))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
@pytest.mark.parametrize("model", MODELS, ids=describe)
def test_numbers_of_any_type(model, dtype):
    x, y = make_counts()
    x = x.astype(dtype)
    dense, thin = copy_of(model).fit(x, y), copy_of(model).fit(sparse.csr_array(x), y)
    assert record_of(thin) == record_of(dense)
    proba = thin.predict_proba(sparse.csr_array(x))
    assert proba.dtype == dense.predict_proba(x).dtype
    np.testing.assert_allclose(proba, dense.predict_proba(x), rtol=1e-6)


@pytest.mark.parametrize("weights", ["whole", "few", "many", "some zero"])
@pytest.mark.parametrize("model", [naive_bayes.GaussianNB(), naive_bayes.MultinomialNB()], ids=describe)
def test_weights_batches_and_forgetting(model, weights):
    x, y = make_counts()
    rng = np.random.default_rng(0)
    weight = {
        "whole": rng.integers(1, 4, len(y)),
        "few": rng.choice([0.1, 0.7], len(y)),
        "many": rng.random(len(y)),
        "some zero": rng.integers(0, 2, len(y)) * rng.random(len(y)),
    }[weights]
    if type(model) is naive_bayes.GaussianNB:
        x = x * rng.normal(size=x.shape)
    z = sparse.csr_array(x)
    dense, thin = copy_of(model), copy_of(model)
    for part in (slice(0, 120), slice(120, 125), slice(125, 300)):
        dense.partial_fit(x[part], y[part], classes=[0, 1, 2], sample_weight=weight[part])
        thin.partial_fit(z[part], y[part], classes=[0, 1, 2], sample_weight=weight[part])
    assert record_of(thin) == record_of(dense)
    dense = copy_of(model).fit(x, y, sample_weight=weight)
    once = copy_of(model).fit(z, y, sample_weight=weight)
    assert record_of(once) == record_of(dense)
    once.forget(z[:100], y[:100], sample_weight=weight[:100])
    dense.forget(x[:100], y[:100], sample_weight=weight[:100])
    assert record_of(once) == record_of(dense)


def test_rows_without_a_stored_cell_and_cells_stored_as_zero():
    x, y = np.array([[0, 0], [3, 0], [0, 0], [0, 5]]), [0, 0, 1, 1]
    stored = sparse.csr_array((np.array([3, 0, 5]), np.array([0, 1, 1]), np.array([0, 0, 1, 2, 3])), shape=(4, 2))
    for cls in (naive_bayes.GaussianNB, naive_bayes.MultinomialNB):
        dense, thin = cls().fit(x, y), cls().fit(stored, y)
        assert record_of(thin) == record_of(dense)
        np.testing.assert_allclose(thin.predict_proba(stored), dense.predict_proba(x), rtol=1e-12)
        empty = sparse.csr_array((3, 2))
        np.testing.assert_allclose(thin.predict_proba(empty), dense.predict_proba(np.zeros((3, 2))), rtol=1e-12)


def test_a_wide_matrix_is_never_dense():
    """A dense table of these 100,000 rows would take 8 GB."""
    rng = np.random.default_rng(0)
    rows, columns, cells = 100_000, 10_000, 200_000
    where = rng.integers(rows, size=cells), rng.integers(columns, size=cells)
    x = sparse.csr_array((rng.integers(1, 5, cells).astype(float), where), shape=(rows, columns))
    y = rng.integers(2, size=rows)
    tracemalloc.start()
    naive_bayes.GaussianNB().fit(x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_dense_blocks_are_small(monkeypatch):
    blocks = []

    def keep_shapes(x):
        for block in split(x):
            blocks.append(block.shape)
            yield block

    split = array_rows.split_sparse_rows
    monkeypatch.setattr(array_rows, "split_sparse_rows", keep_shapes)
    x, y = make_counts()
    naive_bayes.GaussianNB().fit(sparse.csr_array(x), y).predict(sparse.csr_array(x))
    assert sum(rows for rows, _ in blocks) == 300
    assert max(rows * columns for rows, columns in blocks) <= 50


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("cls", [naive_bayes.GaussianNB, naive_bayes.MultinomialNB])
def test_cells_that_cannot_be_used_are_named(cls, bad):
    x, y = make_counts(rows=6)
    model = cls().fit(sparse.csr_array(x), y)
    x[4, 2] = bad
    for use in (lambda: cls().fit(sparse.csr_array(x), y), lambda: model.predict(sparse.csr_array(x))):
        with pytest.raises(DataError, match="row 4, column 2"):
            use()


def test_a_row_that_was_not_learned_is_named():
    x, y = make_counts()
    model = naive_bayes.GaussianNB().fit(sparse.csr_array(x), y)
    before = record_of(model)
    other = x[:3].copy()
    other[1, 3] = 1000
    with pytest.raises(NotLearnedError, match="row 1"):
        model.forget(sparse.csr_array(other), y[:3])
    assert record_of(model) == before


@pytest.mark.parametrize("name", ["CategoricalNB", "GaussianBayes"])
def test_models_of_dense_cells_say_so_in_one_line(name):
    with pytest.raises(PrioryError) as caught:
        getattr(naive_bayes, name)().fit(sparse.csr_array(np.eye(4)), [0, 1, 0, 1])
    assert "dense data is required. Use '.toarray()'" in str(caught.value)
    assert "\n" not in str(caught.value)
