"""Classifiers over a space of models: the Bayes-optimal vote of all, and Gibbs' draw of one.

    P(y | x, D) = Σ P(y | x, h) P(h | D),        P(h | D) ∝ P(h) P(D | h)

A hypothesis is any scikit-learn classifier. What it says about labels it has not seen is its likelihood: out of fold,
or each block of rows from those before it, which is the evidence by the chain rule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import assert_all_finite, check_random_state, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from priory.core.logspace import log, log_normalise
from priory.core.probability import check_distribution
from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.sklearn_compat import BaseComposition, take_table_rows
from priory.hypotheses.description_length import label_log_probabilities


class ModelSpace(ClassifierMixin, BaseComposition):
    """A finite space of classifiers with a prior (uniform without one), weighed by what they say of unseen labels.

    ``weigh="score"`` adds up the log score out of ``cv`` folds; ``weigh="evidence"`` that of blocks of rows, each
    predicted from all rows before it, the blocks doubling in size. ``posterior_`` is the probability of each model.
    """

    classes_: Array
    models_: list[Any]
    log_likelihood_: Array
    posterior_: dict[str, float]

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        prior: Mapping[str, float] | None = None,
        weigh: Literal["score", "evidence"] = "score",
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.prior = prior
        self.weigh = weigh
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        names, models = self._check_estimators()
        validate_data(self, X, skip_check_array=True)
        X, labels = indexable(X, column_or_1d(y, warn=True))
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(labels) < 2:
            raise DataError(f"n_samples = {len(labels)}: give at least two rows, to predict one from another.")
        self.log_likelihood_ = np.zeros(len(models))
        for train, test in self._split_rows(codes):
            seen, new = take_table_rows(X, train), take_table_rows(X, test)
            for j, model in enumerate(models):
                fitted = clone(model).fit(seen, labels[train])
                terms = label_log_probabilities(fitted, new, labels[test], self.classes_, len(train))
                self.log_likelihood_[j] += terms.sum()
        prior = {name: 1 / len(names) for name in names} if self.prior is None else self.prior
        log_joint = log(check_distribution("the prior", [prior[name] for name in names])) + self.log_likelihood_
        self.posterior_ = dict(zip(names, np.exp(log_normalise(log_joint)).tolist(), strict=True))
        self.models_ = [clone(model).fit(X, labels) for model in models]
        return self

    def _check_estimators(self) -> tuple[list[str], list[Any]]:
        names, models = [name for name, _ in self.estimators], [model for _, model in self.estimators]
        if len(set(names)) < len(names) or not names:
            raise DataError(f"estimators {names}: give at least one, each with a name of its own.")
        for name, model in self.estimators:
            if not hasattr(model, "predict_proba"):
                raise DataError(f"estimator {name!r} has no predict_proba: wrap it, e.g. in CalibratedClassifierCV.")
        if self.prior is not None and set(self.prior) != set(names):
            raise DataError(
                f"the prior is about {sorted(self.prior)}, the estimators are {sorted(names)}: name the same."
            )
        if self.weigh not in ("score", "evidence"):
            raise DataError(f"weigh={self.weigh!r}: give 'score' or 'evidence'.")
        return names, models

    def _split_rows(self, codes: Array) -> Iterator[tuple[Array, Array]]:
        """Rows to fit on, and rows to predict that were not among them."""
        if self.weigh == "evidence":
            yield from split_growing_blocks(codes, check_random_state(self.random_state))
        elif isinstance(self.cv, int):
            fewest = int(np.bincount(codes).min())
            kind, folds = (StratifiedKFold, fewest) if fewest > 1 else (KFold, len(codes))
            seed = check_random_state(self.random_state)
            yield from kind(min(self.cv, folds), shuffle=True, random_state=seed).split(codes, codes)
        else:
            yield from check_cv(self.cv, codes, classifier=True).split(codes, codes)

    def _predict_each_model(self, X: Any) -> Array:
        """``P(class | row, model)``: models by rows by classes."""
        check_is_fitted(self)
        return np.stack([model.predict_proba(X) for model in self.models_])

    @abstractmethod
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class."""

    def predict(self, X: Any) -> Array:
        check_is_fitted(self)
        most = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self._get_params("estimators", deep=deep))

    def set_params(self, **params: Any) -> Self:
        self._set_params("estimators", **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inputs = [get_tags(model).input_tags for _, model in self.estimators]
        tags.input_tags.sparse = all(tag.sparse for tag in inputs)
        tags.input_tags.allow_nan = all(tag.allow_nan for tag in inputs)
        return tags


@final
class BayesOptimalClassifier(ModelSpace):
    """The vote of all models, each weighed by its posterior probability.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.dummy import DummyClassifier
    >>> space = [("gauss", GaussianNB()), ("base rate", DummyClassifier())]
    >>> vote = BayesOptimalClassifier(space, random_state=0).fit(*load_iris(return_X_y=True))
    >>> {name: round(p, 3) for name, p in vote.posterior_.items()}
    {'gauss': 1.0, 'base rate': 0.0}
    """

    def predict_proba(self, X: Any) -> Array:
        votes = self._predict_each_model(X)
        return np.einsum("h,hrc->rc", np.array(list(self.posterior_.values())), votes)


@final
class GibbsClassifier(ModelSpace):
    """For each row one model, drawn by its posterior probability, answers alone.

    If the truth is one of the hypotheses, drawn as the prior says, its expected error is at most twice that of the
    Bayes-optimal vote. ``random_state`` fixes the draws; without it each prediction draws anew.
    """

    def predict_proba(self, X: Any) -> Array:
        votes = self._predict_each_model(X)
        chance = np.array(list(self.posterior_.values()))
        drawn = check_random_state(self.random_state).choice(len(chance), size=votes.shape[1], p=chance / chance.sum())
        return np.asarray(votes[drawn, np.arange(votes.shape[1])])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def split_growing_blocks(codes: Array, rng: np.random.RandomState) -> Iterator[tuple[Array, Array]]:
    """Blocks of shuffled rows, each after all rows before it and as many as they; every class comes early on.

    >>> [(len(past), len(block)) for past, block in split_growing_blocks(np.array([0, 1] * 10), np.random.RandomState(0))]
    [(4, 4), (8, 8), (16, 4)]
    """
    order = rng.permutation(len(codes))
    turn = np.zeros(len(codes), dtype=int)  # the how-manieth of its class a row is
    for code in np.unique(codes):
        of_class = order[codes[order] == code]
        turn[of_class] = np.arange(len(of_class))
    order = np.concatenate([order[turn[order] < 2], order[turn[order] >= 2]])  # two rows of each class first
    start = int((turn < 2).sum())
    while start < len(order):
        yield order[:start], order[start : 2 * start]
        start *= 2
