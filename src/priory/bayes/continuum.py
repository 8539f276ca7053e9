"""A continuous space of hypotheses: the probabilities of two or more outcomes, with a Beta or Dirichlet prior."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.bayes.description_length import Bits, to_bits
from priory.bayes.finite import HypothesisSpace, count_observations, join_first, join_names, shorten_rows
from priory.core.display_table import DisplayTable, format_cell
from priory.core.logspace import log, x_log_y
from priory.core.typing import Seed
from priory.core.value_counts import ValueCounts
from priory.errors import DataError
from priory.families.base import Family
from priory.families.bernoulli import Bernoulli, BernoulliStatistics
from priory.families.categorical import Categorical, ValueProbabilities

# The number θ under a Beta prior, the probability of each outcome under a Dirichlet prior.
Theta = Any


@final
class Continuum(HypothesisSpace):
    """A continuum of hypotheses about the probabilities θ of two or more outcomes.

    Under a Beta prior there are two outcomes, the first with probability θ and the second with ``1 - θ``, and estimates
    of θ are numbers. Under a Dirichlet prior, θ holds the probability of each outcome, and estimates are dicts.

    Parameters
    ----------
    outcomes : sequence of hashables, default=(1, 0)
        Two or more different outcomes. Under a Dirichlet prior, all strings or all numbers.
    prior : Bernoulli or Categorical, optional
        ``Bernoulli(a, b)`` means ``θ ~ Beta(a, b)``, and ``Categorical(alpha)`` means ``θ ~ Dirichlet(alpha)``, with
        one alpha for all outcomes, or one for each in their order. The default is uniform: ``Bernoulli(1, 1)`` for two
        outcomes, ``Categorical(1.0)`` for more.

    Attributes
    ----------
    outcomes : tuple of hashables
        The outcomes as declared.
    prior : Bernoulli or Categorical
        The prior; a Categorical one has the outcomes as its values.
    seen : BernoulliStatistics or ValueCounts
        The counts of the observed outcomes.
    posterior : Bernoulli or Categorical
        The Beta or Dirichlet distribution of θ given the observations.
    alpha : array of shape (outcomes,)
        The parameters of the posterior, in the order of the outcomes.
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

    Three flavours have a Dirichlet prior, and each estimate is a dict:

    >>> flavours = Continuum(("cherry", "lime", "lemon")).update_many(["cherry"] * 5 + ["lime"] * 3 + ["lemon"])
    >>> flavours
    <Continuum: θ ~ Dirichlet(6, 4, 2) after 9 observations, mean cherry 0.5, lime 0.3333, lemon 0.1667>
    >>> {outcome: round(p, 4) for outcome, p in flavours.map().items()}
    {'cherry': 0.5556, 'lime': 0.3333, 'lemon': 0.1111}
    """

    prior: Family[Any, Any, Any, Any]
    seen: BernoulliStatistics | ValueCounts

    def __init__(self, outcomes: Sequence[Hashable] = (1, 0), prior: Bernoulli | Categorical | None = None) -> None:
        self.outcomes = tuple(outcomes)
        if len(set(self.outcomes)) != len(self.outcomes) or len(self.outcomes) < 2:
            raise DataError(f"outcomes {outcomes!r}: give two or more different ones.")
        if prior is None:
            prior = Bernoulli(1.0, 1.0) if len(self.outcomes) == 2 else Categorical(1.0)
        self.prior = _declare_outcomes(prior, self.outcomes)
        self.seen = self.observe([])

    @property
    def has_beta_prior(self) -> bool:
        """Whether θ is one number: the family counts 1 and 0, not labels."""
        return self.prior.column_kind == "number"

    def observe(self, observations: Sequence[object]) -> BernoulliStatistics | ValueCounts:
        for i, observation in enumerate(observations):
            if observation not in self.outcomes:
                raise DataError(f"observation {i}: {observation!r} is none of {join_names(self.outcomes)}.")
        codes = np.array([self.outcomes.index(observation) for observation in observations], dtype=int)
        # the values that the family counts: 1 and 0, or the outcomes
        values = np.array([1.0, 0.0]) if self.has_beta_prior else np.asarray(self.outcomes)
        return self.prior.observe(values[codes])

    def has_same_declaration(self, other: Self) -> bool:
        is_alike = (self.outcomes, type(self.prior)) == (other.outcomes, type(other.prior))
        return is_alike and np.array_equal(self.clone_unfitted().alpha, other.clone_unfitted().alpha)

    @property
    def posterior(self) -> Any:
        """The Beta or Dirichlet distribution of θ given the observations."""
        return self.prior + self.seen

    @property
    def alpha(self) -> Array:
        """The parameters of the posterior, in the order of the outcomes."""
        belief = self.posterior
        if self.has_beta_prior:
            return np.array([belief.a, belief.b], dtype=float)
        return self._list_shares(ValueProbabilities(belief.values, belief.alpha))

    def _list_shares(self, parameters: Any) -> Array:
        """Return the probability of each outcome (outcomes,) from the parameters of the family."""
        if self.has_beta_prior:
            return np.append(parameters, 1 - parameters)
        shares = dict(zip(parameters.values.tolist(), np.ravel(parameters.probabilities).tolist(), strict=True))
        return np.array([shares.get(outcome, 0.0) for outcome in self.outcomes])  # ML omits what was never observed

    def _get_theta(self, parameters: Any) -> Theta:
        shares = self._list_shares(parameters).tolist()
        return shares[0] if self.has_beta_prior else dict(zip(self.outcomes, shares, strict=True))

    def ml(self) -> Theta:
        """Return the maximum-likelihood θ: the observed proportions."""
        if self.seen.n == 0:
            raise DataError("no observations: every θ is equally likely; observe something, or use predict_proba().")
        return self._get_theta(self.prior.ml(self.seen))

    def map(self) -> Theta:
        """Return the most probable θ given the observations; raise DataError if there is no unique one."""
        if self.map_fault:
            raise DataError(f"there is no single MAP: {self.map_fault}; observe something, or use predict_proba().")
        return self._get_theta(self.posterior.mode())

    def mean(self) -> Theta:
        """Return the posterior mean of θ."""
        return self._get_theta(self.posterior.mean())

    @property
    def map_fault(self) -> str:
        """Why there is no unique MAP value, or "" if there is one."""
        if not np.isnan(self._list_shares(self.posterior.mode())).any():
            return ""
        if (self.alpha == 1).all():
            return "every θ is equally probable"
        places = "at θ = 0 and at θ = 1" if self.has_beta_prior else "where an outcome has probability 0"
        return f"the density is infinite {places}"

    def credible_interval(self, mass: float = 0.95) -> tuple[Theta, Theta]:
        """Return the ends of the central interval in which θ lies with probability ``mass``, given the observations.

        Under a Dirichlet prior there is one interval for each outcome, from the Beta marginal of its probability.
        """
        low, high = self.posterior.credible_interval(mass)
        return self._get_theta(low), self._get_theta(high)

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
        >>> print(Continuum(("win", "draw", "loss")).update_many(["win"] * 4 + ["loss"] * 2).table())
        θ after 6 observations: Dirichlet(5, 1, 3)
        outcome      ML     MAP    mean  2.5 % quantile  97.5 % quantile
        win      0.6667  0.6667  0.5556          0.2449            0.843
        draw          0       0  0.1111         0.00316           0.3694
        loss     0.3333  0.3333  0.3333         0.08523           0.6509
        """
        low, high = self.credible_interval()
        estimates = {
            "ML": self.ml() if self.seen.n > 0 else None,
            "MAP": None if self.map_fault else self.map(),
            "mean": self.mean(),
            "2.5 % quantile": low,
            "97.5 % quantile": high,
        }
        title = f"{self._name_theta()} after {count_observations(self.seen.n)}: {self._name_posterior()}"
        note = f"there is no single MAP: {self.map_fault}" if self.map_fault else ""
        if self.has_beta_prior:
            return DisplayTable(title, ("estimate", "θ"), tuple(estimates.items()), note)
        rows: list[tuple[object, ...]] = [
            (format_cell(outcome), *(theta and theta[outcome] for theta in estimates.values()))
            for outcome in self.outcomes
        ]
        return DisplayTable(title, ("outcome", *estimates), tuple(shorten_rows(rows)), note)

    def __repr__(self) -> str:
        if self.has_beta_prior:
            low, high = self.credible_interval()
            mean = f"{self.mean():.4g}, 95 % from {low:.4g} to {high:.4g}"
        else:
            mean = join_first([f"{format_cell(outcome)} {p:.4g}" for outcome, p in self.mean().items()])
        seen = count_observations(self.seen.n)
        return f"<Continuum: {self._name_theta()} ~ {self._name_posterior()} after {seen}, mean {mean}>"

    def _name_theta(self) -> str:
        return f"θ = P({format_cell(self.outcomes[0])})" if self.has_beta_prior else "θ"

    def _name_posterior(self) -> str:
        return f"{'Beta' if self.has_beta_prior else 'Dirichlet'}({join_first([f'{a:g}' for a in self.alpha])})"

    def log_density(self, theta: ArrayLike) -> Array:
        """Return the log posterior density at θ: numbers, or under a Dirichlet prior an array (..., outcomes)."""
        at = np.asarray(theta, dtype=float)
        shares = np.stack([at, 1 - at], axis=-1) if self.has_beta_prior else at
        # the log density of Dirichlet(alpha); x_log_y(0, -inf) = 0
        return np.asarray(x_log_y(self.alpha - 1, log(shares)).sum(axis=-1) - self.posterior.log_normaliser())

    def predict_proba(self, given: object = None) -> dict[Hashable, float]:
        """Return the probability of each outcome: the posterior mean of θ (Laplace's rule under a uniform prior)."""
        return dict(zip(self.outcomes, self._list_shares(self.posterior.mean()).tolist(), strict=True))

    @property
    def log_evidence(self) -> float:
        return float(self.prior.log_evidence(self.seen))

    @property
    def bits(self) -> Bits:
        """The extra bits for not knowing θ, and the bits of the data given the MAP value of θ; -log2 P(D) in all."""
        # both NaN without observations under some priors; the data then have 0 bits
        observed, best = (self._list_shares(p) for p in (self.prior.ml(self.seen), self.posterior.mode()))
        data = float(self.seen.n * to_bits(x_log_y(np.nan_to_num(observed), log(best)).sum()))
        return Bits(self.evidence_bits - data, data)

    def draw(self, random_state: Seed = None) -> Theta:
        """Return a θ drawn from the posterior."""
        return self._get_theta(self.posterior.draw(np.random.default_rng(random_state), 1))

    def gibbs(self, random_state: Seed = None) -> Hashable:
        """Return the most probable outcome under a θ drawn from the posterior."""
        shares = self._list_shares(self.posterior.draw(np.random.default_rng(random_state), 1))
        return self.outcomes[int(np.argmax(shares))]


def _declare_outcomes(prior: Any, outcomes: tuple[Hashable, ...]) -> Any:
    """Return the prior for these outcomes; raise DataError if it does not fit them."""
    if prior.column_kind == "number":
        if len(outcomes) > 2:
            raise DataError(f"a Bernoulli prior is for two outcomes, not {len(outcomes)}: give Categorical(alpha).")
        return prior
    if not any(all(isinstance(outcome, kind) for outcome in outcomes) for kind in (str, Real)):
        raise DataError(f"outcomes {outcomes!r}: under a Dirichlet prior, give all strings or all numbers.")
    declared = replace(prior, values=outcomes) if prior.values is None else prior
    if set(values := np.asarray(declared.values).tolist()) != set(outcomes):  # a NaN differs from itself
        raise DataError(f"outcomes {outcomes!r}: the values of the prior are {values!r}; give the same ones, no NaN.")
    return declared
