"""A continuous space of hypotheses: every proportion θ from 0 to 1, with a Beta prior."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Self, final

import numpy as np
from numpy.typing import ArrayLike

from priory.bayes.description_length import Bits, to_bits
from priory.bayes.hypothesis_space import HypothesisSpace, describe_belief, tabulate_belief
from priory.core.display_table import DisplayTable
from priory.core.logspace import log, x_log_y
from priory.core.typing import Array, Seed
from priory.errors import DataError
from priory.families.bernoulli import Bernoulli, BernoulliStatistics


@final
class Continuum(HypothesisSpace[float]):
    """A continuum of hypotheses about two outcomes: the first has probability θ, the second ``1 - θ``.

    Parameters
    ----------
    outcomes : pair of hashables, default=(1, 0)
        The two outcomes; the first one has probability θ.
    prior : Bernoulli, default=Bernoulli(1, 1)
        The Beta prior of θ, given as a Bernoulli family: ``Bernoulli(a, b)`` means ``θ ~ Beta(a, b)``. The default is
        uniform.

    Attributes
    ----------
    outcomes : tuple of two hashables
        The outcomes as declared.
    prior : Bernoulli
        The prior as declared.
    seen : BernoulliStatistics
        The counts of the observed outcomes.
    posterior : Bernoulli
        The Beta distribution of θ given the observations.
    evidence, log_evidence : float
        The probability of the observations averaged over the prior, and its logarithm.
    bits : Bits
        The description length of the observations, in two parts.

    References
    ----------
    .. [1] T. M. Mitchell, "Machine Learning", McGraw-Hill, 1997, chapter 6.
    .. [2] S. Russell and P. Norvig, "Artificial Intelligence: A Modern Approach", chapter "Learning Probabilistic
       Models" (the candy bags).

    Examples
    --------
    A manufacturer mixes cherry and lime candies in an unknown proportion; seven cherries and three limes were drawn:

    >>> bag = Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3)
    >>> bag.ml(), bag.map(), round(bag.predict_proba()["cherry"], 4)
    (0.7, 0.7, 0.6667)
    >>> round(bag.evidence, 8)  # 7! 3! / 11!
    0.00075758
    >>> bag
    <Continuum: θ = P(cherry) ~ Beta(8, 4) after 10 observations, mean 0.6667, 95 % from 0.3903 to 0.8907>
    """

    seen: BernoulliStatistics

    def __init__(self, outcomes: tuple[Hashable, Hashable] = (1, 0), prior: Bernoulli | None = None) -> None:
        if len(set(outcomes)) != 2:
            raise DataError(f"outcomes {outcomes!r}: give two different ones, the first with probability θ.")
        self.outcomes = tuple(outcomes)
        self.prior = Bernoulli(1.0, 1.0) if prior is None else prior
        self.seen = self.observe([])

    def observe(self, observations: Sequence[object]) -> BernoulliStatistics:
        for i, observation in enumerate(observations):
            if observation not in self.outcomes:
                first, second = self.outcomes
                raise DataError(f"observation {i}: {observation!r} is neither {first!r} nor {second!r}.")
        successes = sum(observation == self.outcomes[0] for observation in observations)
        return BernoulliStatistics(np.asarray(float(len(observations))), np.asarray(float(successes)), np.asarray(0.0))

    def has_same_declaration(self, other: Self) -> bool:
        return (self.outcomes, self.prior.a, self.prior.b) == (other.outcomes, other.prior.a, other.prior.b)

    @property
    def posterior(self) -> Bernoulli:
        """The Beta distribution of θ given the observations."""
        return self.prior + self.seen

    def ml(self) -> float:
        """Return the maximum-likelihood θ: the observed proportion of the first outcome."""
        if self.seen.n == 0:
            raise DataError("no observations: every θ is equally likely; observe something, or use predict_proba().")
        return float(self.prior.ml(self.seen))

    def map(self) -> float:
        """Return the most probable θ given the observations; raise DataError if there is no unique one."""
        if self.map_fault:
            raise DataError(f"there is no single MAP: {self.map_fault}; observe something, or use predict_proba().")
        return float(self.posterior.mode())

    @property
    def map_fault(self) -> str:
        """Why there is no unique MAP value, or "" if there is one."""
        belief = self.posterior
        if not np.isnan(belief.mode()):
            return ""
        is_flat = belief.a == 1 and belief.b == 1
        return "every θ is equally probable" if is_flat else "the density is infinite at θ = 0 and at θ = 1"

    def credible_interval(self, mass: float = 0.95) -> tuple[float, float]:
        """Return the central interval in which θ lies with probability ``mass``, given the observations."""
        low, high = self.posterior.credible_interval(mass)
        return float(low), float(high)

    def table(self) -> DisplayTable:
        """Return a table of the ML and MAP estimates, the posterior mean, and the central 95 % interval.

        >>> print(Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3).table())
        θ = P(cherry) after 10 observations: Beta(8, 4)
        estimate              θ
        ML                  0.7
        MAP                 0.7
        mean             0.6667
        2.5 % quantile   0.3903
        97.5 % quantile  0.8907
        """
        return tabulate_belief(self)

    def __repr__(self) -> str:
        return describe_belief(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def log_density(self, theta: ArrayLike) -> Array:
        """Return the log posterior density at θ."""
        belief, at = self.posterior, np.asarray(theta, dtype=float)
        # the log density of Beta(a, b); x_log_y(0, -inf) = 0
        return np.asarray(x_log_y(belief.a - 1, log(at)) + x_log_y(belief.b - 1, log(1 - at)) - belief.log_normaliser())

    def predict_proba(self, given: object = None) -> dict[Hashable, float]:
        """Return the probability of each outcome: the posterior mean of θ (Laplace's rule under a uniform prior)."""
        mean = float(self.posterior.mean())
        return {self.outcomes[0]: mean, self.outcomes[1]: 1 - mean}

    @property
    def log_evidence(self) -> float:
        return float(self.prior.log_evidence(self.seen))

    @property
    def bits(self) -> Bits:
        """The extra bits for not knowing θ, and the bits of the data given the MAP value of θ; -log2 P(D) in all."""
        successes, failures = self.seen.successes, self.seen.n - self.seen.successes
        theta = self.posterior.mode()  # NaN without observations under some priors; the data then have 0 bits
        data = float(to_bits(x_log_y(successes, log(theta)) + x_log_y(failures, log(1 - theta))))
        return Bits(self.evidence_bits - data, data)

    def draw(self, random_state: Seed = None) -> float:
        """Return a θ drawn from the posterior."""
        return float(self.posterior.draw(np.random.default_rng(random_state), 1)[0])

    def gibbs(self, random_state: Seed = None, given: object = None) -> Hashable:
        return self.outcomes[0] if self.draw(random_state) > 0.5 else self.outcomes[1]  # likelier under θ
