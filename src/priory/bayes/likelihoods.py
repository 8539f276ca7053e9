"""Likelihoods P(observation | hypothesis), given as a table, as functions or as fitted models.

All three have one method, ``log_likelihood(observations)``, which returns an array (observations, hypotheses).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, cast, final

import numpy as np

from priory.bayes.probability import check_distribution
from priory.core.logspace import log
from priory.core.typing import Array, FittedClassifier
from priory.errors import DataError, KindError

ProbabilityTable: TypeAlias = Mapping[Any, float]  # {observation: probability}
LikelihoodFunction: TypeAlias = Callable[[Any], float]  # the probability or density of an observation


class Likelihood(ABC):
    """``P(observation | hypothesis)``; ``outcomes`` lists the possible observations, if they are known."""

    outcomes: Sequence[Hashable]

    @abstractmethod
    def log_likelihood(self, observations: Sequence[object]) -> Array:
        """Return the log probability of each observation under each hypothesis, as (observations, hypotheses)."""

    def outcome_counts(self, observations: Sequence[object]) -> Array:
        """Return how often each outcome was observed, (outcomes,); empty if the outcomes are not listed."""
        return np.zeros(0)


@final
class TableLikelihood(Likelihood):
    """``{hypothesis: {observation: probability}}``; an observation missing from a row is impossible."""

    def __init__(self, rows: Mapping[Any, ProbabilityTable]) -> None:
        self.outcomes = list(dict.fromkeys(outcome for row in rows.values() for outcome in row))
        for name, row in rows.items():
            check_distribution(f"P(observation | {name!r})", list(row.values()))
        self._index: dict[object, int] = {outcome: i for i, outcome in enumerate(self.outcomes)}
        # (outcomes, hypotheses)
        self._log = log([[row.get(outcome, 0.0) for row in rows.values()] for outcome in self.outcomes])

    def _find_row(self, i: int, observation: object) -> int:
        try:
            return self._index[observation]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.outcomes))
            raise DataError(
                f"observation {i}: {observation!r} is not in the table of likelihoods; it has {known}."
            ) from None

    def _find_rows(self, observations: Sequence[object]) -> list[int]:
        return [self._find_row(i, observation) for i, observation in enumerate(observations)]

    def log_likelihood(self, observations: Sequence[object]) -> Array:
        return np.asarray(self._log[self._find_rows(observations)])

    def outcome_counts(self, observations: Sequence[object]) -> Array:
        return np.bincount(self._find_rows(observations), minlength=len(self.outcomes)).astype(float)


@final
class FunctionLikelihood(Likelihood):
    """``{hypothesis: function(observation)}``, where the functions return probabilities, densities or their logs."""

    def __init__(self, functions: Mapping[Any, LikelihoodFunction], logs: bool, outcomes: Sequence[Hashable]) -> None:
        self.outcomes = outcomes
        self._functions, self._logs = functions, logs

    def log_likelihood(self, observations: Sequence[object]) -> Array:
        returned = [[float(f(observation)) for f in self._functions.values()] for observation in observations]
        values = np.array(returned, dtype=float).reshape(len(observations), len(self._functions))
        # (observations, hypotheses); a log likelihood may be -inf, a likelihood may be 0
        wrong = np.isnan(values) | np.isposinf(values) if self._logs else ~((values >= 0) & (values < np.inf))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            rule = "a log likelihood is a number below infinity" if self._logs else "a likelihood is finite and >= 0"
            raise DataError(
                f"hypothesis {list(self._functions)[j]!r} gives {values[i, j]:g} for observation {i}: {rule}."
            )
        return values if self._logs else log(values)


@final
class ModelLikelihood(Likelihood):
    """``{hypothesis: fitted classifier}``; an observation is a pair of a row and its label."""

    def __init__(self, models: Mapping[Any, FittedClassifier]) -> None:
        self._models = models
        self.outcomes = list(dict.fromkeys(label for model in models.values() for label in model.classes_))

    def log_likelihood(self, observations: Sequence[object]) -> Array:
        if not observations:
            return np.zeros((0, len(self._models)))
        pairs = cast("Sequence[tuple[object, Hashable]]", observations)
        rows = np.asarray([row for row, _ in pairs])
        columns = []
        for model in self._models.values():
            column_of = {label: j for j, label in enumerate(model.classes_)}
            # (rows, classes + 1): the last column is for labels that the model does not know
            p = np.column_stack([model.predict_proba(rows), np.zeros(len(rows))])
            columns.append(p[np.arange(len(rows)), [column_of.get(label, -1) for _, label in pairs]])
        return log(np.column_stack(columns))


def build_likelihood(likelihoods: Mapping[Any, object], logs: bool, outcomes: Sequence[Hashable]) -> Likelihood:
    """Return the likelihood described by the values of a mapping: rows of a table, functions, or fitted models."""
    values = list(likelihoods.values())
    if all(isinstance(value, Mapping) for value in values):
        return TableLikelihood(cast("Mapping[Any, ProbabilityTable]", likelihoods))
    if all(hasattr(value, "predict_proba") for value in values):
        return ModelLikelihood(cast("Mapping[Any, FittedClassifier]", likelihoods))
    if all(callable(value) for value in values):
        return FunctionLikelihood(cast("Mapping[Any, LikelihoodFunction]", likelihoods), logs, outcomes)
    kinds = ", ".join(sorted({type(value).__name__ for value in values}))
    raise KindError(
        f"likelihood holds {kinds}: give a table of probabilities, a function or a fitted model for each hypothesis."
    )
