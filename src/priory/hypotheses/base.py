"""Base class of hypothesis spaces: learn, forget, merge, and predict with one hypothesis or with all of them.

    posterior = prior + statistics(data)

Prior and likelihood are declared; ``seen`` holds the sufficient statistics of the observations. Every answer is
computed from them on request.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, Self, TypeVar

import numpy as np

from priory.core.statistics import Statistics
from priory.core.typing import Array, Seed
from priory.errors import DataError, NotLearnedError, PrioryWarning
from priory.hypotheses.description_length import to_bits

# Log probabilities with a smaller relative difference are tied: they differ by rounding only.
POSTERIOR_TIE_TOLERANCE = 1e-12
MAX_NAMES_IN_MESSAGE = 5

HypothesisT = TypeVar("HypothesisT")
NameT = TypeVar("NameT", bound=Hashable)


class HypothesisSpace(ABC, Generic[HypothesisT]):
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

    @property
    @abstractmethod
    def posterior(self) -> object:
        """The distribution over the hypotheses given the observations."""

    @abstractmethod
    def ml(self) -> HypothesisT:
        """Return the maximum-likelihood hypothesis: the one that makes the observations most probable."""

    @abstractmethod
    def map(self) -> HypothesisT:
        """Return the maximum a posteriori (MAP) hypothesis: the most probable one given the observations."""

    @abstractmethod
    def predict_proba(self, given: object = None) -> Mapping[Hashable, float]:
        """Return the probability of each outcome: the vote of all hypotheses, weighted by the posterior."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """Log probability of all observations, averaged over the prior: ``log P(D)``."""

    @property
    @abstractmethod
    def bits(self) -> object:
        """Description length in bits of a hypothesis, and of the observations given the hypothesis."""

    @abstractmethod
    def gibbs(self, random_state: Seed = None, given: object = None) -> Hashable:
        """Return the outcome predicted by one hypothesis drawn from the posterior."""

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
    more = ", ..." if len(names) > MAX_NAMES_IN_MESSAGE else ""
    return ", ".join(map(repr, names[:MAX_NAMES_IN_MESSAGE])) + more
