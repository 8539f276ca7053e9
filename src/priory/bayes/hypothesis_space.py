"""What all spaces of hypotheses share: updates by Bayes' rule, predictions, and their tables."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np
from numpy import ndarray as Array

from priory.bayes.description_length import to_bits
from priory.core.display_table import DisplayTable, format_cell
from priory.core.statistics import Statistics
from priory.core.typing import Seed
from priory.errors import DataError, NotLearnedError, PrioryWarning

if TYPE_CHECKING:
    from priory.bayes.continuum import Continuum
    from priory.bayes.finite import Hypotheses


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
    return _join_first([repr(name) for name in names])


def _join_first(texts: Sequence[str]) -> str:
    more = ", ..." if len(texts) > MAX_NAMES_IN_MESSAGE else ""
    return ", ".join(texts[:MAX_NAMES_IN_MESSAGE]) + more


MAX_HYPOTHESES_SHOWN = 60


def tabulate_posterior(space: Hypotheses[Any]) -> DisplayTable:
    """Tabulate P(h), P(D | h), their product, and P(h | D); the sum of the products is P(D)."""
    likelihood, joint = np.exp(space.seen.data_log_likelihood()), np.exp(space.log_joint)
    cells = zip(space.names, np.exp(space.log_prior), likelihood, joint, space.posterior.values(), strict=True)
    rows = [(format_cell(name), *(float(x) for x in numbers)) for name, *numbers in cells]
    total = ("sum", 1.0, None, space.evidence, 1.0)
    columns = ("h", "P(h)", "P(D|h)", "P(h) P(D|h)", "P(h|D)")
    title = f"after {_count(space.seen.n, 'observation')}: P(D) = {space.evidence:.4g}"
    return DisplayTable(title, columns, (*_shorten(rows), total))


def tabulate_steps(space: Hypotheses[Any], observations: Sequence[object]) -> DisplayTable:
    """Tabulate the posterior of every hypothesis (rows) before and after each observation (columns)."""
    state = space.clone_unfitted()
    steps = [list(state.posterior.values())]
    for observation in observations:
        steps.append(list(state.update(observation).posterior.values()))
    rows = [
        (format_cell(name), *(float(p) for p in chances))
        for name, chances in zip(space.names, np.transpose(steps).tolist(), strict=True)
    ]
    columns = ("h", "prior", *(f"{n + 1}: {format_cell(x)}" for n, x in enumerate(observations)))
    return DisplayTable("P(h | the first observations)", columns, tuple(_shorten(rows)))


def summarise_answers(space: Hypotheses[Any], given: object = None) -> DisplayTable:
    """Tabulate the predictions of ML, MAP, the Bayes-optimal vote, and Gibbs (a hypothesis drawn at random).

    The last column is the expected error rate of each, under the posterior predictive distribution.
    """
    outcomes, votes = list(space.likelihood.outcomes), space.votes(given)  # (outcomes, hypotheses)
    posterior = np.array(list(space.posterior.values()))
    truth = votes @ posterior  # (outcomes,)
    learners = {}
    # tied hypotheses are averaged
    for name, tied in (("ML", space.ml_set()), ("MAP", space.map_set())):
        learners[f"{name}: {_join_tied(tied)}"] = votes[:, [space.names.index(pick) for pick in tied]].mean(axis=1)
    learners["Bayes-optimal vote"] = truth
    rows: list[tuple[object, ...]] = []
    for name, p in learners.items():
        best = find_best_names(outcomes, p)
        right = np.mean([truth[outcomes.index(outcome)] for outcome in best])
        rows.append((name, *p.tolist(), " or ".join(map(format_cell, best)), float(1 - right)))
    # Gibbs predicts the most probable outcome of the drawn hypothesis; ties are broken at random
    best_of_each = votes >= votes.max(axis=0)  # (outcomes, hypotheses)
    drawn = (best_of_each / best_of_each.sum(axis=0)) @ posterior  # (outcomes,)
    likeliest = " or ".join(map(format_cell, find_best_names(outcomes, drawn)))
    rows.append(("Gibbs", *drawn.tolist(), likeliest, float(1 - drawn @ truth)))
    columns = ("learner", *(f"P({format_cell(outcome)})" for outcome in outcomes), "answer", "P(wrong)")
    title = "what comes next" if given is None else f"the label of {format_cell(given)}"
    return DisplayTable(f"{title}, after {_count(space.seen.n, 'observation')}", columns, tuple(rows))


def describe_space(space: Hypotheses[Any]) -> str:
    """Describe the space in one line."""
    best = space.map_set()
    p = space.posterior[best[0]]
    named = join_names(best)
    return (
        f"<Hypotheses: {len(space.names)} hypotheses, {_count(space.seen.n, 'observation')}, "
        f"MAP {named} with P(h|D) = {p:.4g}>"
    )


def tabulate_belief(space: Continuum) -> DisplayTable:
    """Tabulate the ML and MAP estimates of θ, its mean and central 95 % interval; undefined values are empty."""
    low, high = space.credible_interval()
    estimates = {
        "ML": space.ml() if space.seen.n > 0 else None,
        "MAP": None if space.map_fault else space.map(),
        "mean": space.mean(),
        "2.5 % quantile": low,
        "97.5 % quantile": high,
    }
    title = f"{_name_theta(space)} after {_count(space.seen.n, 'observation')}: {_name_posterior(space)}"
    note = f"there is no single MAP: {space.map_fault}" if space.map_fault else ""
    if space.has_beta_prior:
        return DisplayTable(title, ("estimate", "θ"), tuple(estimates.items()), note)
    rows: list[tuple[object, ...]] = [
        (format_cell(outcome), *(theta and theta[outcome] for theta in estimates.values()))
        for outcome in space.outcomes
    ]
    return DisplayTable(title, ("outcome", *estimates), tuple(_shorten(rows)), note)


def describe_belief(space: Continuum) -> str:
    """Describe the posterior in one line."""
    if space.has_beta_prior:
        low, high = space.credible_interval()
        mean = f"{space.mean():.4g}, 95 % from {low:.4g} to {high:.4g}"
    else:
        mean = _join_first([f"{format_cell(outcome)} {p:.4g}" for outcome, p in space.mean().items()])
    seen = _count(space.seen.n, "observation")
    return f"<Continuum: {_name_theta(space)} ~ {_name_posterior(space)} after {seen}, mean {mean}>"


def _name_theta(space: Continuum) -> str:
    return f"θ = P({format_cell(space.outcomes[0])})" if space.has_beta_prior else "θ"


def _name_posterior(space: Continuum) -> str:
    return f"{'Beta' if space.has_beta_prior else 'Dirichlet'}({_join_first([f'{a:g}' for a in space.alpha])})"


def _join_tied(names: Sequence[Hashable]) -> str:
    """Join the names of tied hypotheses."""
    return " or ".join(map(format_cell, names)) if len(names) <= 3 else f"{len(names)} that tie"


def _count(n: object, noun: str) -> str:
    number = int(np.asarray(n))
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _shorten(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    if len(rows) <= MAX_HYPOTHESES_SHOWN:
        return rows
    more: tuple[object, ...] = (f"and {len(rows) - MAX_HYPOTHESES_SHOWN} more", *(None for _ in rows[0][1:]))
    return [*rows[:MAX_HYPOTHESES_SHOWN], more]
