"""The same numbers as scikit-learn, on 1,000 random problems: dense and sparse, weights, batches, priors, alphas."""

from dataclasses import dataclass

import numpy as np
import pytest
import sklearn.naive_bayes as theirs
from numpy.testing import assert_allclose
from scipy import sparse

import priory.naive_bayes as ours

CLASSES = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]
PROBLEMS = 200  # of each


@dataclass
class Problem:
    X: object
    y: np.ndarray
    unseen: object
    parameters: dict
    weight: np.ndarray | None
    batches: int


def counts(rng, rows, columns):
    return rng.poisson(rng.gamma(1.0, 2.0, columns), (rows, columns))


def numbers(rng, rows, columns):
    """Columns whose variances are within a factor of 1000: where they are not, scikit-learn blurs them."""
    while True:
        X = rng.normal(rng.normal(0, 30, columns), rng.uniform(0.3, 3, columns), (rows, columns))
        if np.ptp(np.log10(X.var(axis=0))) < 3:
            return X


def prior(rng, classes):
    kind = rng.integers(3)
    if kind == 0:
        return {"fit_prior": bool(rng.integers(2))}
    return {"class_prior": rng.dirichlet(np.ones(classes))} if kind == 1 else {}


def problem(name, seed):
    rng = np.random.default_rng(seed)
    rows, columns, classes = int(rng.integers(8, 60)), int(rng.integers(1, 9)), int(rng.integers(1, 5))
    draw = numbers if name == "GaussianNB" else counts
    X = draw(rng, 2 * rows, columns)
    y = np.append(np.arange(classes), rng.integers(0, classes, rows - classes))
    if rng.integers(2):
        y = np.array(["ham", "spam", "urgent", "other"])[y]
    single = rng.uniform(0.1, 3, rows).astype(np.float32)  # the precision that weights are kept in
    weight = [None, rng.integers(1, 4, rows).astype(float), single.astype(float)][rng.integers(3)]
    batches = int(rng.choice([1, 1, 2, 5]))
    if name == "GaussianNB":
        # scikit-learn's smoothing knows no weights and only the last batch
        exact = weight is not None or batches > 1
        parameters = {"var_smoothing": 0.0 if exact else float(rng.choice([1e-9, 1e-6, 0.1]))}
        if exact:  # then no variance may be nought
            y = rng.permutation(np.resize(np.unique(y), rows))
        if rng.integers(2):
            parameters["priors"] = rng.dirichlet(np.ones(len(np.unique(y))))
    else:
        alpha = [1.0, 0.5, 1e-3, 10.0][rng.integers(4)]
        if name in ("MultinomialNB", "ComplementNB") and rng.integers(3) == 0:
            alpha = rng.uniform(0.1, 2, columns)
        parameters = {"alpha": alpha, **prior(rng, len(np.unique(y)))}
    if name == "BernoulliNB":
        parameters["binarize"] = float(rng.choice([0.0, 1.0, 1.5]))
    if name == "ComplementNB":
        parameters["norm"] = bool(rng.integers(2)) and columns > 1
    if name == "CategoricalNB":
        X = np.minimum(X, 6)
        parameters["min_categories"] = 7
    if name in ("MultinomialNB", "ComplementNB", "BernoulliNB") and rng.integers(2):
        X = [sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, sparse.csc_array][rng.integers(4)](X.astype(float))
        X = X if X.format in ("csr", "csc") else X.tocsr()
    return Problem(X[:rows], y, X[rows:], parameters, weight, batches)


def fitted(estimator, problem):
    if problem.batches == 1:
        return estimator.fit(problem.X, problem.y, problem.weight)
    for part in np.array_split(np.arange(len(problem.y)), problem.batches):
        weight = None if problem.weight is None else problem.weight[part]
        estimator.partial_fit(problem.X[part], problem.y[part], classes=np.unique(problem.y), sample_weight=weight)
    return estimator


def assert_agree(name, seed):
    given = problem(name, seed)
    reference = fitted(getattr(theirs, name)(**given.parameters), given)
    model = fitted(getattr(ours, name)(**given.parameters), given)
    joint = reference.predict_joint_log_proba(given.unseen)
    assert np.isfinite(joint).all()
    near = {"rtol": 1e-9, "atol": 1e-9 * max(1.0, float(np.abs(joint).max())), "err_msg": f"{name}, seed {seed}"}
    assert_allclose(model.predict_joint_log_proba(given.unseen), joint, **near)
    assert_allclose(model.predict_log_proba(given.unseen), reference.predict_log_proba(given.unseen), **near)
    assert_allclose(model.predict_proba(given.unseen), reference.predict_proba(given.unseen), atol=near["atol"])
    assert_allclose(model.class_count_, reference.class_count_, rtol=1e-12)
    for attribute in ("theta_", "var_", "class_prior_", "feature_count_", "feature_all_", "class_log_prior_"):
        if hasattr(reference, attribute):
            assert_allclose(getattr(model, attribute), getattr(reference, attribute), rtol=1e-9, atol=1e-12)
    for attribute in ("feature_log_prob_", "category_count_"):
        if hasattr(reference, attribute):
            for mine, other in zip(getattr(model, attribute), getattr(reference, attribute), strict=True):
                assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(4))
@pytest.mark.parametrize("name", CLASSES)
def test_the_numbers_are_scikit_learns(name, batch):
    step = PROBLEMS // 4
    for seed in range(batch * step, (batch + 1) * step):
        assert_agree(name, seed)
