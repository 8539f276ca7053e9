"""What every hypothesis space can do: learn, forget, merge, and answer with one hypothesis or with all of them.

    posterior = prior + statistics(data)

The prior and the likelihood are declared; ``seen`` is the record of what was observed, and everything a space says is
computed from the two when it is asked.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import DataError, NotLearnedError, PrioryWarning
from priory.hypotheses.description_length import to_bits

Seed = int | np.random.Generator | None

POSTERIOR_TIE_TOLERANCE = (
    1e-12  # log probabilities nearer than this, relatively, differ by the order of a sum and nothing else
)


class HypothesisSpace(ABC):
    """A space of hypotheses with a prior, and the record of what was seen."""

    seen: Any

    # -- learning --------------------------------------------------------------------------------------------------

    @abstractmethod
    def observe(self, observations: Sequence[Any]) -> Statistics:
        """The statistics of some observations."""

    @abstractmethod
    def clone_unfitted(self) -> Self:
        """The same space before anything was seen."""

    def update(self, observation: Any) -> Self:
        """Learn one observation."""
        return self.update_many([observation])

    def update_many(self, observations: Iterable[Any]) -> Self:
        """Learn several; all of them or, on an error, none."""
        self.seen = self.seen + self.observe(list(observations))
        return self

    def forget(self, observation: Any) -> Self:
        """As if this observation had never been made."""
        return self.forget_many([observation])

    def forget_many(self, observations: Iterable[Any]) -> Self:
        """As if none of these had been made; an error if one of them was not."""
        given = list(observations)
        try:
            self.seen = self.seen - self.observe(given)
        except NotLearnedError as error:
            raise NotLearnedError(f"cannot forget {given!r}: not all of it was observed.", error.index) from None
        return self

    def __add__(self, other: Self) -> Self:
        """This space after what both have seen: the prior counts once."""
        if not self.has_same_declaration(other):
            raise DataError("cannot merge two spaces with different hypotheses or priors: declare both alike.")
        both = copy.copy(self)
        both.seen = self.seen + other.seen
        if both.log_evidence == -np.inf:
            raise DataError("cannot merge: each hypothesis is ruled out by what one of the two spaces has seen.")
        return both

    @abstractmethod
    def has_same_declaration(self, other: Self) -> bool:
        """Whether the other space has the same hypotheses and prior, so that the two records can be added."""

    # -- answers ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def posterior(self) -> Any:
        """What is believed after what was seen."""

    @abstractmethod
    def ml(self) -> Any:
        """The hypothesis that makes what was seen most probable."""

    @abstractmethod
    def map(self) -> Any:
        """The most probable hypothesis after what was seen."""

    @abstractmethod
    def predict_proba(self, given: Any = None) -> dict[Any, float]:
        """The probability of each outcome: the vote of all hypotheses, weighed by the posterior."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """Log probability of everything seen, whatever the hypothesis: ``log P(D)``."""

    @property
    @abstractmethod
    def bits(self) -> Any:
        """Description length: of a hypothesis, and of what was seen under it."""

    @abstractmethod
    def gibbs(self, random_state: Seed = None, given: Any = None) -> Any:
        """The classification by one hypothesis drawn from the posterior."""

    @property
    def evidence(self) -> float:
        """``P(D)``."""
        return float(np.exp(self.log_evidence))

    @property
    def evidence_bits(self) -> float:
        """``-log2 P(D)``: what was seen, sent without naming a hypothesis."""
        return float(to_bits(self.log_evidence))

    def predict(self, given: Any = None) -> Any:
        """The Bayes-optimal classification: the outcome with the largest vote."""
        votes = self.predict_proba(given)
        return choose_first_tied(find_best_names(list(votes), np.array(list(votes.values()))), "outcomes")


def find_best_names(names: Sequence[Any], scores: Array) -> list[Any]:
    """Every name with the largest score, up to rounding."""
    top = float(np.max(scores))
    near = top if np.isinf(top) else top - POSTERIOR_TIE_TOLERANCE * max(1.0, abs(top))
    return [name for name, score in zip(names, scores, strict=True) if score >= near]


def choose_first_tied(tied: Sequence[Any], noun: str) -> Any:
    """The first of the best; a tie is said aloud."""
    if len(tied) > 1:
        names = ", ".join(map(repr, tied[:5])) + (", ..." if len(tied) > 5 else "")
        warnings.warn(f"{len(tied)} {noun} tie ({names}): answering the first.", PrioryWarning, stacklevel=3)
    return tied[0]
