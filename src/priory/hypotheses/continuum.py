"""A continuous space of hypotheses: every share θ from 0 to 1, with a Beta prior.

A manufacturer mixes cherry and lime as it likes; seven cherries and three limes were drawn:

>>> bag = Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3)
>>> bag.ml(), bag.map(), round(bag.predict_proba()["cherry"], 4)
(0.7, 0.7, 0.6667)
>>> round(bag.evidence, 8)  # 7! 3! / 11!
0.00075758
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import Any, Self, final

import numpy as np

from priory.core.logspace import log, x_log_y
from priory.errors import DataError
from priory.families.bernoulli import Bernoulli, BernoulliStatistics
from priory.hypotheses.base import HypothesisSpace, Seed
from priory.hypotheses.description_length import Bits, to_bits


@final
class Continuum(HypothesisSpace):
    """Hypotheses ``h_θ``: the first outcome has probability θ, the second ``1 - θ``, and ``θ ~ prior``."""

    def __init__(self, outcomes: tuple[Hashable, Hashable] = (1, 0), prior: Bernoulli | None = None) -> None:
        if len(set(outcomes)) != 2:
            raise DataError(f"outcomes {outcomes!r}: give two different ones, the first with probability θ.")
        self.outcomes = tuple(outcomes)
        self.prior = Bernoulli(1.0, 1.0) if prior is None else prior
        self.seen: BernoulliStatistics = self.observe([])

    def observe(self, observations: Sequence[Any]) -> BernoulliStatistics:
        for i, observation in enumerate(observations):
            if observation not in self.outcomes:
                first, second = self.outcomes
                raise DataError(f"observation {i}: {observation!r} is neither {first!r} nor {second!r}.")
        yes = sum(observation == self.outcomes[0] for observation in observations)
        return BernoulliStatistics(np.asarray(float(len(observations))), np.asarray(float(yes)), np.asarray(0.0))

    def clone_unfitted(self) -> Self:
        blank = copy.copy(self)
        blank.seen = self.observe([])
        return blank

    def has_same_declaration(self, other: Self) -> bool:
        return (self.outcomes, self.prior.a, self.prior.b) == (other.outcomes, other.prior.a, other.prior.b)

    @property
    def posterior(self) -> Bernoulli:
        """The Beta belief about θ after what was seen."""
        return self.prior + self.seen

    def ml(self) -> float:
        """The share among what was seen."""
        if self.seen.n == 0:
            raise DataError(
                "nothing was observed: every θ explains nothing equally well. Observe something, or ask map()."
            )
        return float(self.prior.ml(self.seen))

    def map(self) -> float:
        """The most probable θ."""
        return float(self.posterior.mode())

    def log_density(self, theta: Any) -> Any:
        """Log posterior density at θ."""
        belief, at = self.posterior, np.asarray(theta, dtype=float)
        return x_log_y(belief.a - 1, log(at)) + x_log_y(belief.b - 1, log(1 - at)) - belief.log_normaliser()

    def predict_proba(self, given: Any = None) -> dict[Hashable, float]:
        """The integral of θ over the posterior: Laplace's rule of succession under a flat prior."""
        share = float(self.posterior.mean())
        return {self.outcomes[0]: share, self.outcomes[1]: 1 - share}

    @property
    def log_evidence(self) -> float:
        return float(self.prior.log_evidence(self.seen))

    @property
    def bits(self) -> Bits:
        """The data under the MAP hypothesis, and what it costs not to have known θ; in all, ``-log2 P(D)``."""
        yes, no = self.seen.successes, self.seen.n - self.seen.successes
        known = float(to_bits(x_log_y(yes, log(self.map())) + x_log_y(no, log(1 - self.map()))))
        return Bits(self.evidence_bits - known, known)

    def draw(self, random_state: Seed = None) -> float:
        """A θ drawn from the posterior."""
        return float(self.posterior.draw(np.random.default_rng(random_state), 1)[0])

    def gibbs(self, random_state: Seed = None, given: Any = None) -> Hashable:
        return self.outcomes[0] if self.draw(random_state) > 0.5 else self.outcomes[1]
