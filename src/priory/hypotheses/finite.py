"""A finite space of hypotheses: Bayes' rule over a handful of explanations, each with a prior.

Five kinds of bags of candies; the first three drawn are lime:

>>> share = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}
>>> bags = Hypotheses(
...     prior={"h1": 0.1, "h2": 0.2, "h3": 0.4, "h4": 0.2, "h5": 0.1},
...     likelihood={h: {"lime": p, "cherry": 1 - p} for h, p in share.items()},
... ).update_many(["lime"] * 3)
>>> {h: round(p, 3) for h, p in bags.posterior.items()}
{'h1': 0.0, 'h2': 0.013, 'h3': 0.211, 'h4': 0.355, 'h5': 0.421}
>>> bags.map(), round(bags.predict_proba()["lime"], 3), bags.predict()
('h5', 0.796, 'lime')
>>> bags.forget("lime").map()
'h4'
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np

from priory.core.logspace import log, log_normalise, log_sum_exp, x_log_y
from priory.core.probability import check_distribution
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import DataError, NotLearnedError
from priory.hypotheses.base import HypothesisSpace, Seed, choose_first_tied, find_best_names
from priory.hypotheses.description_length import Bits, two_part
from priory.hypotheses.likelihoods import HypothesisName, Outcome, build_likelihood


@dataclass(frozen=True, eq=False)
class HypothesisStatistics(Statistics):
    """What was seen, as it bears on each hypothesis.

    An observation that a hypothesis calls impossible is counted, not added as minus infinity: what was ruled out comes
    back, exactly, when the observation that did it is forgotten. Forgetting what was never seen is noticed where
    outcomes can be counted; elsewhere only if too many would go, too many impossible ones, or the wrong one last.
    """

    count_fields: ClassVar[tuple[str, ...]] = ("n", "impossible", "tally")

    n: Array  # observations
    log_likelihood: Array  # for each hypothesis, of the observations it holds possible
    impossible_counts: Array  # for each hypothesis, the observations it holds impossible
    outcome_counts: Array  # of each outcome, where outcomes can be counted

    def check_subtraction(self, total: HypothesisStatistics, part: HypothesisStatistics) -> HypothesisStatistics:
        left: HypothesisStatistics = super().check_subtraction(total, part)
        if left.n == 0 and not np.allclose(total.log_likelihood, part.log_likelihood):
            raise NotLearnedError("cannot forget other observations than were learned.")
        return left

    def data_log_likelihood(self) -> Array:
        """``log P(D | h)`` of each hypothesis."""
        return np.asarray(self.log_likelihood + x_log_y(self.impossible_counts, -np.inf))


@final
class Hypotheses(HypothesisSpace):
    """A prior ``{hypothesis: probability}`` and a likelihood for each hypothesis.

    The likelihood is a table ``{hypothesis: {observation: p}}``, a function of the observation for each hypothesis
    (``logs=True`` if it gives logarithms), or a fitted model with ``predict_proba`` for each; what is observed then is
    a pair ``(row, label)``. Without a prior all hypotheses are equally probable. ``outcomes`` lists what functions can
    be asked to predict.
    """

    def __init__(
        self,
        prior: Mapping[HypothesisName, float] | None = None,
        likelihood: Mapping[HypothesisName, Any] | None = None,
        *,
        outcomes: Sequence[Outcome] = (),
        logs: bool = False,
    ) -> None:
        if not likelihood:
            raise DataError("no likelihood: give a table, functions or models, one for each hypothesis.")
        given = {name: 1 / len(likelihood) for name in likelihood} if prior is None else dict(prior)
        if set(given) != set(likelihood):
            odd = ", ".join(sorted(map(repr, set(given) ^ set(likelihood))))
            raise DataError(f"{odd} has a prior or a likelihood but not both: give both for each hypothesis.")
        self.names = list(given)
        self.likelihood = build_likelihood({name: likelihood[name] for name in self.names}, logs, outcomes)
        self.log_prior = log(check_distribution("the prior", list(given.values())))
        self.seen = self.observe([])

    # -- learning --------------------------------------------------------------------------------------------------

    def observe(self, observations: Sequence[Any]) -> HypothesisStatistics:
        terms = self.likelihood.log_likelihood(observations)
        ruled_out = np.isneginf(terms)
        return HypothesisStatistics(
            np.asarray(float(len(observations))),
            np.where(ruled_out, 0.0, terms).sum(axis=0),
            ruled_out.sum(axis=0).astype(float),
            self.likelihood.outcome_counts(observations),
        )

    def update_many(self, observations: Any) -> Self:
        given = list(observations)
        before, left = self.seen, self.possible
        super().update_many(given)
        if not self.possible:
            self.seen = before
            raise DataError(self._format_contradiction(left, given))
        return self

    def _format_contradiction(self, left: list[HypothesisName], observations: list[Any]) -> str:
        """Which observation left no hypothesis standing."""
        column = [self.names.index(name) for name in left]
        standing = np.logical_and.accumulate(~np.isneginf(self.likelihood.log_likelihood(observations)[:, column]))
        i = int(np.argmin(standing.any(axis=1)))
        before = [name for name, stands in zip(left, standing[i - 1], strict=True) if stands] if i else left
        names = ", ".join(map(repr, before[:5])) + (", ..." if len(before) > 5 else "")
        return (
            f"observation {i}: {observations[i]!r} is impossible under all that was still possible ({names}); "
            "nothing was learned. Give some hypothesis a probability above 0 for it."
        )

    def clone_unfitted(self) -> Self:
        blank = copy.copy(self)
        blank.seen = self.observe([])
        return blank

    def has_same_declaration(self, other: Self) -> bool:
        alike = self.names == other.names and list(self.likelihood.outcomes) == list(other.likelihood.outcomes)
        return alike and np.array_equal(self.log_prior, other.log_prior)

    # -- answers ---------------------------------------------------------------------------------------------------

    @property
    def log_joint(self) -> Array:
        """``log P(D, h) = log P(h) + log P(D | h)``."""
        return np.asarray(self.log_prior + self.seen.data_log_likelihood())

    @property
    def posterior(self) -> dict[HypothesisName, float]:
        """``P(h | D)``."""
        return dict(zip(self.names, np.exp(log_normalise(self.log_joint)).tolist(), strict=True))

    @property
    def possible(self) -> list[HypothesisName]:
        """The hypotheses not ruled out: the version space, if each hypothesis is certain of what it says."""
        return [name for name, joint in zip(self.names, self.log_joint, strict=True) if joint > -np.inf]

    @property
    def log_evidence(self) -> float:
        return float(log_sum_exp(self.log_joint))

    @property
    def bits(self) -> dict[HypothesisName, Bits]:
        """Bits to name each hypothesis, and of the data under it. The shortest total is the MAP hypothesis.

        >>> faces = {"fair": {"H": 0.5, "T": 0.5}, "two-headed": {"H": 1}}
        >>> coin = Hypotheses({"fair": 0.75, "two-headed": 0.25}, faces)
        >>> coin.update_many("HHH").bits["two-headed"]
        Bits(hypothesis=2.0, data=0.0)
        """
        pairs = zip(self.log_prior, self.seen.data_log_likelihood(), strict=True)
        return {name: two_part(*pair) for name, pair in zip(self.names, pairs, strict=True)}

    def ml_set(self) -> list[HypothesisName]:
        """Every hypothesis under which the data are most probable."""
        return find_best_names(self.names, self.seen.data_log_likelihood())

    def map_set(self) -> list[HypothesisName]:
        """Every hypothesis that is most probable: the brute-force MAP learner."""
        return find_best_names(self.names, self.log_joint)

    def ml(self) -> HypothesisName:
        """``argmax P(D | h)``; a tie is warned of, and ``ml_set`` has all of it."""
        return choose_first_tied(self.ml_set(), "hypotheses")

    def map(self) -> HypothesisName:
        """``argmax P(h | D)``; a tie is warned of, and ``map_set`` has all of it."""
        return choose_first_tied(self.map_set(), "hypotheses")

    def votes(self, given: Any = None) -> Array:
        """``P(outcome | h)``: a row for each outcome, a column for each hypothesis."""
        outcomes = self.likelihood.outcomes
        if len(outcomes) == 0:
            raise DataError("nothing to choose from: declare Hypotheses(..., outcomes=[...]) to predict.")
        asked = list(outcomes) if given is None else [(given, outcome) for outcome in outcomes]
        return np.exp(self.likelihood.log_likelihood(asked))

    def predict_proba(self, given: Any = None) -> dict[Outcome, float]:
        """``P(outcome | D) = Σ P(outcome | h) P(h | D)``; ``given`` is the row of a ``(row, label)`` observation."""
        mixed = self.votes(given) @ np.array(list(self.posterior.values()))
        return dict(zip(self.likelihood.outcomes, mixed.tolist(), strict=True))

    def draw(self, random_state: Seed = None) -> HypothesisName:
        """A hypothesis drawn from the posterior."""
        chance = np.array(list(self.posterior.values()))
        return self.names[int(np.random.default_rng(random_state).choice(len(chance), p=chance / chance.sum()))]

    def gibbs(self, random_state: Seed = None, given: Any = None) -> Outcome:
        """What a hypothesis drawn from the posterior holds most probable; a tie is drawn, too."""
        rng = np.random.default_rng(random_state)
        held = self.votes(given)[:, self.names.index(self.draw(rng))]
        tied = find_best_names(self.likelihood.outcomes, held)
        return tied[int(rng.integers(len(tied)))]
