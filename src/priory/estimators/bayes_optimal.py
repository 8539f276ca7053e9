"""Classifiers over a space of models: the Bayes-optimal vote of all of them, and the Gibbs draw of one.

    P(y | x, D) = Σ P(y | x, h) P(h | D),        P(h | D) ∝ P(h) P(D | h)

A hypothesis is any scikit-learn classifier. Its likelihood is the probability that it gives to labels that it has not
seen: either out of fold, or with each block of rows predicted from those before it, which is the evidence by the chain
rule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from priory.bayes.description_length import label_log_probabilities
from priory.bayes.probability import check_distribution
from priory.core.estimator_methods import ProbabilisticClassifier
from priory.core.logspace import log, log_normalise
from priory.core.typing import Classifier, MatrixLike, RandomState
from priory.errors import DataError
from priory.estimators.folds import check_any_rows, make_splitter
from priory.estimators.sklearn_compat import BaseComposition, take_table_rows


@dataclass(eq=False, repr=False)
class ModelSpace(ClassifierMixin, ProbabilisticClassifier, BaseComposition):
    """The base of classifiers over a finite space of models: fits the models and their posterior probabilities."""

    estimators: list[tuple[str, Classifier]]
    _: KW_ONLY
    prior: Mapping[str, float] | None = None
    weigh: Literal["score", "evidence"] = "score"
    cv: int | BaseCrossValidator = 5
    random_state: RandomState = None

    _takes_texts = True

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Fit every model, and its posterior probability."""
        names, models = self._check_estimators()
        X, labels = check_any_rows(self, X, y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(labels) < 2:
            raise DataError(
                f"n_samples = {len(labels)}: give at least two rows, so that one can be predicted from the other."
            )
        self.log_likelihood_ = np.zeros(len(models))
        for train, test in self._split_rows(codes):
            train_rows, test_rows = take_table_rows(X, train), take_table_rows(X, test)
            # log likelihood of the labels of the test rows, (test rows,), by a model of the training rows
            for j, model in enumerate(models):
                fitted = clone(model).fit(train_rows, labels[train])
                terms = label_log_probabilities(fitted, test_rows, labels[test], self.classes_, len(train))
                self.log_likelihood_[j] += terms.sum()
        self._update_posterior(names, np.bincount(codes))
        self.models_ = [clone(model).fit(X, labels) for model in models]
        return self

    def _update_posterior(self, names: list[str], class_count: Array) -> None:
        """Set what follows from the likelihoods and the number of rows of each class."""
        self.class_count_, self.class_prior_ = class_count, class_count / class_count.sum()
        prior = {name: 1 / len(names) for name in names} if self.prior is None else self.prior
        # Bayes' rule over models: log P(h) + log P(D | h), (models,)
        log_joint = log(check_distribution("the prior", [prior[name] for name in names])) + self.log_likelihood_
        self.posterior_ = dict(zip(names, np.exp(log_normalise(log_joint)).tolist(), strict=True))

    def _explain_absence(self, method: str) -> str:
        return "its models are weighed by all rows; call fit with all of them, or use priory.NaiveBayes."

    def _check_estimators(self) -> tuple[list[str], list[Classifier]]:
        """Return the names and the models, or raise if they or the parameters cannot be used."""
        for pair in self.estimators:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise DataError(f"estimators holds {pair!r}: give pairs of a name and a classifier.")
        names, models = [name for name, _ in self.estimators], [model for _, model in self.estimators]
        if len(set(names)) < len(names) or not names:
            raise DataError(f"estimators {names}: give at least one, each with a different name.")
        for name, model in self.estimators:
            if not hasattr(model, "predict_proba"):
                raise DataError(f"estimator {name!r} has no predict_proba: wrap it, e.g. in CalibratedClassifierCV.")
        if self.prior is not None and set(self.prior) != set(names):
            raise DataError(
                f"the prior has {sorted(self.prior)}, but the estimators are {sorted(names)}: use the same names."
            )
        if self.weigh not in ("score", "evidence"):
            raise DataError(f"weigh={self.weigh!r}: give 'score' or 'evidence'.")
        return names, models

    def _split_rows(self, codes: Array) -> Iterator[tuple[Array, Array]]:
        """Yield rows to fit on, and other rows to predict."""
        if self.weigh == "evidence":
            yield from split_growing_blocks(codes, check_random_state(self.random_state))
        else:
            yield from make_splitter(self.cv, codes, check_random_state(self.random_state)).split(codes, codes)

    def _predict_each_model(self, X: MatrixLike) -> Array:
        """Return ``P(class | row, model)`` as (models, rows, classes)."""
        check_is_fitted(self)
        return np.stack([model.predict_proba(X) for model in self.models_])

    @abstractmethod
    def _combine_votes(self, votes: Array) -> Array:
        """Combine the votes (models, rows, classes) into probabilities (rows, classes)."""

    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the probability of each class."""
        return self._combine_votes(self._predict_each_model(X))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self._get_params("estimators", deep=deep))

    def set_params(self, **params: Any) -> Self:
        self._set_params("estimators", **params)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inputs = [get_tags(model).input_tags for _, model in self.estimators]
        tags.input_tags.sparse = all(tag.sparse for tag in inputs)
        tags.input_tags.allow_nan = all(tag.allow_nan for tag in inputs)
        return tags


@final
class BayesOptimalClassifier(ModelSpace):
    """A classifier that averages several models, each weighted by its posterior probability.

    With the same models and the same prior, no other classifier is right more often on average.

    Parameters
    ----------
    estimators : list of (str, classifier)
        The models and their names. Every classifier must have ``predict_proba``.
    prior : mapping {name: probability}, default=None
        The prior probability of each model; by default all are equally probable.
    weigh : {"score", "evidence"}, default="score"
        The log likelihood of a model. "score" is the sum of its out-of-fold log probabilities of the labels; "evidence"
        sums over blocks of rows, each predicted from all rows before it, with blocks that double in size.
    cv : int or scikit-learn splitter, default=5
        The folds of "score".
    random_state : int, RandomState or None, default=None
        The seed of the shuffling.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        P(class): the share of the rows of each class.
    class_count_ : ndarray of shape (n_classes,)
        The number of rows learned of each class.
    models_ : list of classifiers
        The models, fitted on all rows.
    log_likelihood_ : ndarray of shape (n_models,)
        The log likelihood of each model.
    posterior_ : dict {name: probability}
        The posterior probability of each model.
    n_features_in_ : int
        The number of columns.

    References
    ----------
    .. [1] T. M. Mitchell, "Machine Learning", McGraw-Hill, 1997, section 6.7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.dummy import DummyClassifier
    >>> space = [("gauss", GaussianNB()), ("base rate", DummyClassifier())]
    >>> vote = BayesOptimalClassifier(space, random_state=0).fit(*load_iris(return_X_y=True))
    >>> {name: round(p, 3) for name, p in vote.posterior_.items()}
    {'gauss': 1.0, 'base rate': 0.0}
    """

    def _combine_votes(self, votes: Array) -> Array:
        # sum over hypotheses h of P(h | D) P(c | row, h)
        return np.einsum("h,hrc->rc", np.array(list(self.posterior_.values())), votes)


@final
class GibbsClassifier(ModelSpace):
    """A classifier that predicts each row with one model, drawn by its posterior probability.

    If the true model is drawn from the prior and every model answers with certainty, the expected error is at most
    twice the error of the Bayes-optimal classifier; if models give probabilities of two classes, at most three times.
    With a fixed ``random_state`` every call makes the same draws.

    Parameters
    ----------
    estimators : list of (str, classifier)
        The models and their names. Every classifier must have ``predict_proba``.
    prior : mapping {name: probability}, default=None
        The prior probability of each model; by default all are equally probable.
    weigh : {"score", "evidence"}, default="score"
        The log likelihood of a model. "score" is the sum of its out-of-fold log probabilities of the labels; "evidence"
        sums over blocks of rows, each predicted from all rows before it, with blocks that double in size.
    cv : int or scikit-learn splitter, default=5
        The folds of "score".
    random_state : int, RandomState or None, default=None
        The seed of the shuffling and of the draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        P(class): the share of the rows of each class.
    class_count_ : ndarray of shape (n_classes,)
        The number of rows learned of each class.
    models_ : list of classifiers
        The models, fitted on all rows.
    log_likelihood_ : ndarray of shape (n_models,)
        The log likelihood of each model.
    posterior_ : dict {name: probability}
        The posterior probability of each model.
    n_features_in_ : int
        The number of columns.

    References
    ----------
    .. [1] T. M. Mitchell, "Machine Learning", McGraw-Hill, 1997, section 6.8.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> models = [("gauss", GaussianNB()), ("base rate", DummyClassifier())]
    >>> GibbsClassifier(models, random_state=0).fit(X, y).predict(X[:3]).tolist()
    [0, 0, 0]
    """

    def _combine_votes(self, votes: Array) -> Array:
        p = np.array(list(self.posterior_.values()))
        drawn = check_random_state(self.random_state).choice(len(p), size=votes.shape[1], p=p / p.sum())  # (rows,)
        # the votes of the drawn model for each row: (rows, classes)
        return np.asarray(votes[drawn, np.arange(votes.shape[1])])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def split_growing_blocks(codes: Array, rng: np.random.RandomState) -> Iterator[tuple[Array, Array]]:
    """Yield blocks of shuffled rows, each with all rows before it; the number of rows doubles with each block.

    The first block follows two rows of each class.

    >>> splits = split_growing_blocks(np.array([0, 1] * 10), np.random.RandomState(0))
    >>> [(len(past), len(block)) for past, block in splits]
    [(4, 4), (8, 8), (16, 4)]
    """
    order = rng.permutation(len(codes))
    rank = np.zeros(len(codes), dtype=int)  # (rows,): the position of each row within its class
    for code in np.unique(codes):
        of_class = order[codes[order] == code]
        rank[of_class] = np.arange(len(of_class))
    order = np.concatenate([order[rank[order] < 2], order[rank[order] >= 2]])  # two rows of each class first
    start = int((rank < 2).sum())
    while start < len(order):
        yield order[:start], order[start : 2 * start]
        start *= 2
