"""A sparse matrix with invalid index arrays is refused: SciPy would read or write out of bounds, or abort."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse

import priory as pr
from priory import naive_bayes as nb
from priory.errors import DataError, PrioryError

GOOD = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0], [0.0, 6.0, 0.0]])
LABELS = [0, 1, 0, 1]
CLASSIFIERS = [nb.MultinomialNB, nb.BernoulliNB, nb.ComplementNB]


def break_matrix(form="csr", **arrays):
    """A sparse matrix with some of its index arrays replaced."""
    matrix = sparse.csr_array(GOOD).asformat(form)
    for name, values in arrays.items():
        setattr(matrix, name, np.array(values))
    return matrix


BROKEN = [
    (break_matrix(indptr=[0, 2, 1, 5, 6]), "indptr must be a non-decreasing sequence"),
    (break_matrix(indptr=[0, 2, 3, 5, 99]), "Last value of index pointer should be less than the size of index"),
    (break_matrix(indptr=[1, 2, 3, 5, 6]), "index pointer should start with 0"),
    (break_matrix(indptr=[0, 2, 6]), "index pointer size 3 should be 5"),
    (break_matrix(indptr=[0, -7, 3, 5, 6]), "indptr must be a non-decreasing sequence"),
    (break_matrix(indices=[0, 2, 1, 0, 2, 99]), "indices must be < 3"),
    (break_matrix(indices=[0, 2, 1, 0, 2, -1]), "indices must be >= 0"),
    (break_matrix("csc", indptr=[0, 2, 1, 6]), "indptr must be a non-decreasing sequence"),
    (break_matrix("csc", indices=[0, 2, 1, 3, 0, 99]), "indices must be < 4"),
    (break_matrix("bsr", indices=[0, 2, 1, 0, 2, 99]), ""),
    (break_matrix("coo", row=[0, 0, 1, 2, 2, 99]), "row indices must be 0 .. 3, one for each value"),
    (break_matrix("coo", col=[0, 2, 1, 0, 2, -1]), "column indices must be 0 .. 2, one for each value"),
]


@pytest.mark.parametrize(("matrix", "problem"), BROKEN, ids=[f"{m.format} {p[:30]}" for m, p in BROKEN])
@pytest.mark.parametrize("kind", [*CLASSIFIERS, nb.GaussianNB, pr.BayesianLinearRegression])
def test_a_broken_matrix_is_refused(kind, matrix, problem):
    with pytest.raises(DataError) as caught:
        kind().fit(matrix, LABELS)
    assert str(caught.value).startswith(f"X is not a valid sparse matrix: {problem}")
    assert str(caught.value).endswith("; build it again.")


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_fitted_model_refuses_a_broken_matrix(kind):
    model = kind().fit(GOOD, LABELS)
    for ask in (model.predict_proba, lambda X: model.forget(X, LABELS), lambda X: model.partial_fit(X, LABELS)):
        with pytest.raises(DataError, match="X is not a valid sparse matrix: indptr must be a non-decreasing sequence"):
            ask(break_matrix(indptr=[0, 2, 1, 5, 6]))


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", CLASSIFIERS[:3])
def test_every_valid_format_is_read(kind, form):
    matrix = sparse.csr_array(GOOD).asformat(form)
    found = kind().fit(matrix, LABELS).predict_proba(matrix)
    np.testing.assert_allclose(found, kind().fit(GOOD, LABELS).predict_proba(GOOD), rtol=1e-12)


def test_the_given_matrix_is_not_changed():
    matrix = break_matrix(data=np.ones(9), indices=[0, 2, 1, 0, 2, 1, 0, 0, 0])  # longer than needed
    arrays = matrix.data, matrix.indices, matrix.indptr
    nb.MultinomialNB().fit(matrix, LABELS)
    assert all(now is before for now, before in zip((matrix.data, matrix.indices, matrix.indptr), arrays, strict=True))


@pytest.mark.slow
def test_the_process_survives():
    code = """
        import numpy as np
        from scipy import sparse
        from priory import naive_bayes as nb
        from priory.errors import DataError

        matrix = sparse.csr_array(np.eye(50))
        matrix.indptr = np.r_[0, np.random.default_rng(0).integers(-10**6, 10**6, 49), 50]
        matrix.has_canonical_format = False
        try:
            nb.MultinomialNB().fit(matrix, np.arange(50) % 2)
        except DataError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "X is not a valid sparse matrix: indptr must be a non-decreasing sequence; build it again.\n"


def test_tables_of_columns_refuse_sparse_matrices():
    with pytest.raises(PrioryError, match="X is a sparse matrix; a table of columns is dense"):
        pr.NaiveBayes().fit(break_matrix(indptr=[0, 2, 1, 5, 6]), LABELS)
