"""Multinomial naive Bayes: rows are bags of counted things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from priory.core.registration import register_estimator, register_record
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import DataError
from priory.naive_bayes.discrete import CountNB, log_shares, score_matrix
from priory.naive_bayes.input_checks import make_count_checker, raise_not_finite, sum_columns


@register_record("Occurrences", axes={"n": "c", "tokens": "cd"})
@dataclass(frozen=True, eq=False)
class Occurrences(Statistics):
    """Rows seen of each class, and how often each thing occurred in them."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "tokens")

    n: Array
    tokens: Array


class TokenNB(CountNB):
    """What the multinomial and its complement remember, and how they score: ``x @ weights``."""

    def _count_records(self, table: Any, n: Array, group: Array, weight: Array | None) -> tuple[Occurrences]:
        with np.errstate(over="ignore", invalid="ignore"):
            tokens = sum_columns(table, group, weight, len(n), self._make_count_checker(table))
        if not np.isfinite(tokens).all():
            raise_not_finite(table)
            column = int(np.argwhere(~np.isfinite(tokens))[0, 1])
            raise DataError(f"the counts of column {column} add up to infinity; scale them.")
        return (Occurrences(n, tokens),)

    def _make_count_checker(self, x: Any) -> Any:
        return make_count_checker(x, type(self).__name__)

    @property
    def feature_count_(self) -> Array:
        """How often each thing occurred in the rows of each class, weighted."""
        return np.asarray(self._fitted_statistics().parts[0].tokens)

    def _log_joint(self, table: Any) -> Array:
        return score_matrix(table, self.feature_log_prob_, self._class_term(), self._make_count_checker(table))

    def _class_term(self) -> Array:
        return self._log_prior()

    @property
    def feature_log_prob_(self) -> Array:
        """The weight of one occurrence, for each class and thing."""
        return np.asarray(self._derive("weights", self._compute_weights, self._is_normalised()))

    def _is_normalised(self) -> bool:
        return False

    def _compute_weights(self, records: tuple[Occurrences], alpha: Any) -> Array:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


@register_estimator(records=(Occurrences,))
class MultinomialNB(TokenNB):
    """Naive Bayes for counts: ``p(token | c) = (occurrences + alpha) / (all occurrences + alpha * tokens)``.

    Parameters
    ----------
    alpha : float, or one for each column
        Virtual occurrences of each token in each class.
    force_alpha : bool
        Whether an alpha below 1e-10 is taken as it is.
    fit_prior : bool
        Whether the class prior is estimated; else it is uniform.
    class_prior : one probability for each class, optional

    Examples
    --------
    >>> model = MultinomialNB().fit([[2, 0], [1, 1]], ["spam", "ham"])
    >>> np.exp(model.feature_log_prob_[1]).round(4).tolist()  # spam: (2 + 1) / (2 + 2), (0 + 1) / (2 + 2)
    [0.75, 0.25]
    """

    def __init__(
        self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _compute_weights(self, records: tuple[Occurrences], alpha: Any) -> Array:
        """log p(token | c)."""
        return log_shares(records[0].tokens + alpha)


@register_estimator(records=(Occurrences,))
class ComplementNB(TokenNB):
    """A class scored by how unlike the rest it is: the weight of a token is minus its log share of the *other* classes.

    Parameters
    ----------
    alpha : float, or one for each column
        Virtual occurrences of each token outside each class.
    force_alpha : bool
        Whether an alpha below 1e-10 is taken as it is.
    fit_prior, class_prior
        As in `MultinomialNB`; they matter where there is one class only.
    norm : bool
        Whether the weights of a class are divided by their sum.

    Examples
    --------
    >>> model = ComplementNB().fit([[2, 0], [1, 1]], ["spam", "ham"])
    >>> np.exp(-model.feature_log_prob_[1]).round(4).tolist()  # all but spam: (1 + 1) / (2 + 2), (1 + 1) / (2 + 2)
    [0.5, 0.5]
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm

    @property
    def feature_all_(self) -> Array:
        """How often each thing occurred in all classes together."""
        return np.asarray(self.feature_count_.sum(axis=0))

    def _is_normalised(self) -> bool:
        return self.norm

    def _compute_weights(self, records: tuple[Occurrences], alpha: Any) -> Array:
        tokens = records[0].tokens
        # a weight must be finite to be added up: without smoothing, never seen is as rare as a float can say
        others = np.maximum(tokens.sum(axis=0) - tokens + alpha, np.finfo(float).tiny)
        logged = log_shares(others)
        if not self.norm:
            return -logged
        total = logged.sum(axis=1, keepdims=True)
        return np.where(total != 0, logged / np.where(total != 0, total, 1.0), 0.0)

    def _class_term(self) -> Array:
        return self._log_prior() if len(self.classes_) == 1 else np.zeros(len(self.classes_))
