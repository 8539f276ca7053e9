"""What all spaces of hypotheses share: updates by Bayes' rule, predictions, and their tables."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Self, TypeVar

import numpy as np
from numpy import ndarray as Array

from priory.bayes.description_length import to_bits
from priory.core.display_table import DisplayTable
from priory.core.statistics import Statistics
from priory.errors import DataError, NotLearnedError, PrioryWarning

# Log probabilities with a smaller relative difference are tied: they differ by rounding only.
POSTERIOR_TIE_TOLERANCE = 1e-12
MAX_NAMES_IN_MESSAGE = 5

NameT = TypeVar("NameT", bound=Hashable)


class HypothesisSpace(ABC):
    """A space of hypotheses with a prior, and the statistics of the observations."""

    seen: Statistics

    # -- learning --------------------------------------------------------------------------------------------------

    @abstractmethod
    def observe(self, observations: Sequence[object]) -> Statistics:
        """Return the statistics of some observations, without learning them."""

    def clone_unfitted(self) -> Self:
        """Return the same space without observations."""
        blank = copy.copy(self)
        blank.seen = self.observe([])
        return blank

    def update(self, observation: object) -> Self:
        """Learn one observation."""
        return self.update_many([observation])

    def update_many(self, observations: Iterable[object]) -> Self:
        """Learn several observations: all of them or, on an error, none."""
        self.seen = self.seen + self.observe(list(observations))
        return self

    def forget(self, observation: object) -> Self:
        """Forget one observation, as if it had never been made."""
        return self.forget_many([observation])

    def forget_many(self, observations: Iterable[object]) -> Self:
        """Forget several observations, as if they had never been made; raise NotLearnedError if one of them was not."""
        forgotten = list(observations)
        try:
            self.seen = self.seen - self.observe(forgotten)
        except NotLearnedError as error:
            message = f"cannot forget {forgotten!r}: not all of it was observed."
            raise NotLearnedError(message, error.index) from None
        return self

    def __add__(self, other: Self) -> Self:
        """Return the space with the observations of both; the prior counts once."""
        if not self.has_same_declaration(other):
            raise DataError("cannot merge spaces with different hypotheses or priors: declare both in the same way.")
        # statistics are immutable, so a shallow copy is enough
        both = copy.copy(self)
        both.seen = self.seen + other.seen
        if both.log_evidence == -np.inf:
            raise DataError("cannot merge: the observations of the two spaces together rule out every hypothesis.")
        return both

    @abstractmethod
    def has_same_declaration(self, other: Self) -> bool:
        """Return whether the other space has the same hypotheses and prior, so that the two can be merged."""

    # -- answers ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def predict_proba(self, given: object = None) -> Mapping[Hashable, float]:
        """Return the probability of each outcome: the vote of all hypotheses, weighted by the posterior."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """Log probability of all observations, averaged over the prior: ``log P(D)``."""

    @abstractmethod
    def table(self) -> DisplayTable:
        """Return a table of what is believed now."""

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def evidence(self) -> float:
        """``P(D)``: probability of all observations, averaged over the prior."""
        return float(np.exp(self.log_evidence))

    @property
    def evidence_bits(self) -> float:
        """``-log2 P(D)``: description length of the observations without naming a hypothesis."""
        return float(to_bits(self.log_evidence))

    def predict(self, given: object = None) -> Hashable:
        """Return the Bayes-optimal prediction: the outcome with the largest vote."""
        votes = self.predict_proba(given)
        return choose_first_tied(find_best_names(list(votes), np.array(list(votes.values()))), "outcomes")


def find_best_names(names: Sequence[NameT], scores: Array) -> list[NameT]:
    """Return every name with the largest score, up to rounding."""
    top = float(np.max(scores))
    threshold = top if np.isinf(top) else top - POSTERIOR_TIE_TOLERANCE * max(1.0, abs(top))  # inf - inf would be NaN
    return [name for name, score in zip(names, scores, strict=True) if score >= threshold]


def choose_first_tied(tied: Sequence[NameT], noun: str) -> NameT:
    """Return the first of the best; warn if there are several."""
    if len(tied) > 1:
        message = f"{len(tied)} {noun} tie ({join_names(tied)}): answering the first."
        warnings.warn(message, PrioryWarning, stacklevel=3)
    return tied[0]


def join_names(names: Sequence[Hashable]) -> str:
    """Return the first few names, separated by commas."""
    return join_first([repr(name) for name in names])


def join_first(texts: Sequence[str]) -> str:
    """Join the first few texts by commas."""
    more = ", ..." if len(texts) > MAX_NAMES_IN_MESSAGE else ""
    return ", ".join(texts[:MAX_NAMES_IN_MESSAGE]) + more


MAX_HYPOTHESES_SHOWN = 60


def count_observations(n: object) -> str:
    """Format a number of observations."""
    number = int(np.asarray(n))
    return f"{number:,} observation{'' if number == 1 else 's'}"


def shorten_rows(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Keep the first rows of a long table, and tell how many more there are."""
    if len(rows) <= MAX_HYPOTHESES_SHOWN:
        return rows
    more: tuple[object, ...] = (f"and {len(rows) - MAX_HYPOTHESES_SHOWN} more", *(None for _ in rows[0][1:]))
    return [*rows[:MAX_HYPOTHESES_SHOWN], more]
