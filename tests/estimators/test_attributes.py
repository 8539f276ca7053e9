"""Attributes of estimators: `dir`, `hasattr` and so completion in notebooks work, however a model was fitted."""

import copy

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import priory
from priory import naive_bayes
from priory.errors import DataError, StaleModelError

RNG = np.random.default_rng(0)
LABELS = np.where(np.arange(80) % 2, "a", "b")
NUMBERS = RNG.normal(size=(80, 3)) + (LABELS == "a")[:, None]
COUNTS = np.abs(NUMBERS).round()
TEXTS = [f"word{i % 5} {'cash' if label == 'a' else 'lunch'} x{i % 7}y" for i, label in enumerate(LABELS)]
DIR_IS_FILTERED = "__dir__" in vars(BaseEstimator)  # newer versions of scikit-learn leave out what cannot be had
SPACE = [("gaussian", GaussianNB()), ("logistic", LogisticRegression())]


def text_models():
    yield from (priory.TextClassifier(model) for model in ("binary", "multinomial", "bernoulli"))
    yield priory.TextClassifier(buckets=16)
    yield from (priory.TextClassifier(alpha=alpha) for alpha in ("evidence", 0))
    yield priory.TextClassifier(refine=True)
    yield from (priory.TextClassifier(buckets=64), priory.TextClassifier(buckets=64, calibrate=False))
    yield from (priory.TextClassifier(vocabulary=["cash"], unknown=True), priory.TextClassifier(max_tokens=9))
    yield from (priory.TextClassifier(unlabelled=True), priory.MultiLabelClassifier())


def number_models():
    yield from (priory.NaiveBayes(), priory.NaiveBayes(calibrate=False))
    yield from (priory.BayesianLogisticRegression(method=method) for method in ("laplace", "map", "ml"))
    yield from (priory.BayesOptimalClassifier(SPACE), priory.GibbsClassifier(SPACE), priory.Calibrated(GaussianNB()))
    yield from (priory.MDLTreeClassifier(), priory.MDLDiscretiser(), priory.SigmoidUnit(), priory.NaiveBayes.textbook())


def count_models():
    yield from (priory.NaiveBayes("categorical", alpha=1.0), priory.NaiveBayes("categorical", estimate="ml"))
    yield from (getattr(naive_bayes, name)() for name in naive_bayes.__all__)


MODELS = [
    *((model, TEXTS, LABELS) for model in text_models()),
    *((model, NUMBERS, LABELS) for model in number_models()),
    *((model, COUNTS, LABELS) for model in count_models()),
    (priory.BayesianLinearRegression(), NUMBERS, NUMBERS.sum(axis=1)),
]


def states(model, X, y):
    """The model before it is fitted, after, and after each of the ways in which it can change."""
    yield "new", model
    fitted = copy.deepcopy(model).fit(X, y)
    yield "fitted", fitted
    if hasattr(fitted, "forget"):
        yield "forgotten", copy.deepcopy(fitted).forget(X[:3], y[:3])
        yield "emptied", copy.deepcopy(fitted).forget(X, y)
        yield "learned", copy.deepcopy(fitted).partial_fit(X[:3], y[:3])
        yield "merged", fitted.merge(copy.deepcopy(fitted))
    if hasattr(fitted, "decay"):
        yield "decayed", copy.deepcopy(fitted).decay(0.5)
    if "alpha" in fitted.get_params():
        yield "declared wrongly", copy.deepcopy(fitted).set_params(alpha=-1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "X", "y"), MODELS, ids=[repr(model).replace("\n", "") for model, *_ in MODELS])
def test_dir_works_and_every_name_in_it_can_be_had_or_is_an_attribute_error(model, X, y):
    for state, one in states(model, X, y):
        for name in {*dir(one), *object.__dir__(one)}:
            if not name.startswith("_"):
                try:
                    getattr(one, name)
                except AttributeError:
                    assert name not in dir(one) or not DIR_IS_FILTERED, (state, name)


def test_every_exported_estimator_is_tried():
    exported = [getattr(module, name) for module in (priory, naive_bayes) for name in module.__all__]
    estimators = {one for one in exported if isinstance(one, type) and hasattr(one, "get_params")}
    assert estimators == {type(model) for model, *_ in MODELS}


def test_an_attribute_that_a_model_lacks_is_still_explained():
    hashed = priory.TextClassifier(buckets=64).fit(TEXTS, LABELS)
    assert not hasattr(hashed, "vocabulary_")
    message = "a hashed model keeps no words; leave out buckets to have them."
    for error in (AttributeError, StaleModelError, DataError):
        with pytest.raises(error) as raised:
            _ = hashed.vocabulary_
        assert str(raised.value) == message
