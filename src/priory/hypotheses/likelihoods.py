"""How probable an observation is under each hypothesis: a table, a function each, or a fitted model each.

Peers behind one question, ``log_likelihood(observations)``: a row for each observation, a column for each hypothesis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, final

import numpy as np

from priory.core.logspace import log
from priory.core.probability import check_distribution
from priory.core.typing import Array
from priory.errors import DataError, KindError

HypothesisName = Hashable
Outcome = Any


class Likelihood(ABC):
    """``P(observation | hypothesis)``. ``outcomes`` is what can be observed next, where it is known."""

    outcomes: Sequence[Outcome]

    @abstractmethod
    def log_likelihood(self, observations: Sequence[Any]) -> Array:
        """Log probability of each observation (rows) under each hypothesis (columns)."""

    def outcome_counts(self, observations: Sequence[Any]) -> Array:
        """How often each outcome was seen, where outcomes can be counted; the record then knows what it has seen."""
        return np.zeros(0)


@final
class TableLikelihood(Likelihood):
    """``{hypothesis: {observation: probability}}``; what a row leaves out is impossible under it."""

    def __init__(self, rows: Mapping[HypothesisName, Mapping[Hashable, float]]) -> None:
        self.outcomes = list(dict.fromkeys(outcome for row in rows.values() for outcome in row))
        for name, row in rows.items():
            check_distribution(f"P(observation | {name!r})", list(row.values()))
        self._index = {outcome: i for i, outcome in enumerate(self.outcomes)}
        self._log = log([[row.get(outcome, 0.0) for row in rows.values()] for outcome in self.outcomes])

    def _find_row(self, i: int, observation: Any) -> int:
        try:
            return self._index[observation]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.outcomes))
            raise DataError(
                f"observation {i}: {observation!r} is not in the table of likelihoods; it has {known}."
            ) from None

    def _find_rows(self, observations: Sequence[Any]) -> list[int]:
        return [self._find_row(i, observation) for i, observation in enumerate(observations)]

    def log_likelihood(self, observations: Sequence[Any]) -> Array:
        return np.asarray(self._log[self._find_rows(observations)])

    def outcome_counts(self, observations: Sequence[Any]) -> Array:
        return np.bincount(self._find_rows(observations), minlength=len(self.outcomes)).astype(float)


@final
class FunctionLikelihood(Likelihood):
    """``{hypothesis: function(observation) -> probability or density}``, or their logarithms."""

    def __init__(
        self, functions: Mapping[HypothesisName, Callable[[Any], float]], logs: bool, outcomes: Sequence[Outcome]
    ) -> None:
        self.outcomes = outcomes
        self._functions, self._logs = functions, logs

    def log_likelihood(self, observations: Sequence[Any]) -> Array:
        said = [[float(f(observation)) for f in self._functions.values()] for observation in observations]
        values = np.array(said, dtype=float).reshape(len(observations), len(self._functions))
        wrong = np.isnan(values) | np.isposinf(values) if self._logs else ~((values >= 0) & (values < np.inf))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            must = "a log likelihood is a number below infinity" if self._logs else "a likelihood is finite and >= 0"
            raise DataError(
                f"hypothesis {list(self._functions)[j]!r} gives {values[i, j]:g} for observation {i}: {must}."
            )
        return values if self._logs else log(values)


@final
class ModelLikelihood(Likelihood):
    """``{hypothesis: fitted model with predict_proba}``; an observation is a pair of a row and its label."""

    def __init__(self, models: Mapping[HypothesisName, Any]) -> None:
        self._models = models
        self.outcomes = list(dict.fromkeys(label for model in models.values() for label in model.classes_))

    def log_likelihood(self, observations: Sequence[Any]) -> Array:
        if not observations:
            return np.zeros((0, len(self._models)))
        rows = np.asarray([row for row, _ in observations])
        columns = []
        for model in self._models.values():
            place = {label: j for j, label in enumerate(model.classes_)}
            said = np.column_stack([model.predict_proba(rows), np.zeros(len(rows))])  # the last: labels unknown to it
            columns.append(said[np.arange(len(rows)), [place.get(label, -1) for _, label in observations]])
        return log(np.column_stack(columns))


def build_likelihood(likelihoods: Mapping[HypothesisName, Any], logs: bool, outcomes: Sequence[Outcome]) -> Likelihood:
    """The likelihood that ``given`` describes: its values are rows of a table, functions, or fitted models."""
    values = list(likelihoods.values())
    if all(isinstance(value, Mapping) for value in values):
        return TableLikelihood(likelihoods)
    if all(hasattr(value, "predict_proba") for value in values):
        return ModelLikelihood(likelihoods)
    if all(callable(value) for value in values):
        return FunctionLikelihood(likelihoods, logs, outcomes)
    kinds = ", ".join(sorted({type(value).__name__ for value in values}))
    raise KindError(f"likelihood holds {kinds}: give a table of probabilities, a function or a fitted model for each.")
