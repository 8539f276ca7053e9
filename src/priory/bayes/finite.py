"""Spaces of hypotheses: what they share, and finite ones, a list of hypotheses with priors and likelihoods."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast, final

import numpy as np
from numpy import ndarray as Array

from priory.bayes.description_length import Bits, to_bits, two_part
from priory.bayes.probability import check_distribution
from priory.core.display_table import DisplayTable, format_cell
from priory.core.logspace import log, log_normalise, log_sum_exp, x_log_y
from priory.core.statistics import Statistics
from priory.core.typing import FittedClassifier, Seed
from priory.errors import DataError, KindError, NotLearnedError, PrioryWarning

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


# -- finite spaces -----------------------------------------------------------------------------------------------------

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


@dataclass(frozen=True, eq=False)
class HypothesisStatistics(Statistics):
    """The log likelihood of the observations under each hypothesis.

    An observation that is impossible under a hypothesis is counted rather than added as minus infinity, so that a
    hypothesis that was ruled out comes back, exactly, when that observation is forgotten. Forgetting an observation
    that was never made is detected if outcomes can be counted. Otherwise it is detected only if too many observations,
    or too many impossible ones, would be forgotten, or if the last one differs from the one that was learned.
    """

    count_fields: ClassVar[tuple[str, ...]] = ("n", "impossible_counts", "outcome_counts")

    n: Array  # (): the number of observations
    log_likelihood: Array  # (hypotheses,): over the observations that are possible under each
    impossible_counts: Array  # (hypotheses,): the number of observations that are impossible under each
    outcome_counts: Array  # (outcomes,): how often each outcome was observed; (0,) if outcomes are not listed

    def check_subtraction(self, total: HypothesisStatistics, part: HypothesisStatistics) -> HypothesisStatistics:
        left: HypothesisStatistics = super().check_subtraction(total, part)
        if left.n == 0 and not np.allclose(total.log_likelihood, part.log_likelihood):
            raise NotLearnedError("cannot forget other observations than were learned.")
        return left

    def data_log_likelihood(self) -> Array:
        """Return ``log P(D | h)`` of each hypothesis."""
        return np.asarray(self.log_likelihood + x_log_y(self.impossible_counts, -np.inf))


@final
class Hypotheses(HypothesisSpace, Generic[NameT]):
    """A finite set of hypotheses, each with a prior probability and a likelihood.

    Parameters
    ----------
    prior : mapping {hypothesis: probability}, default=None
        The prior probability of each hypothesis. Without it, all hypotheses are equally probable.
    likelihood : mapping {hypothesis: ...}
        For each hypothesis one of: a table ``{observation: probability}``; a function of the observation that returns
        its probability or density; a fitted classifier with ``predict_proba``, in which case an observation is a pair
        ``(row, label)``.
    outcomes : sequence, default=()
        With functions as likelihoods: the outcomes that can be predicted.
    logs : bool, default=False
        Whether the functions return logarithms.

    Attributes
    ----------
    names : list
        The hypotheses, in the order of the prior.
    log_prior : ndarray of shape (n_hypotheses,)
        The logarithm of the prior.
    likelihood : Likelihood
        The likelihood as declared; ``likelihood.outcomes`` are the outcomes that can be predicted.
    seen : HypothesisStatistics
        The statistics of the observations.
    posterior : dict {hypothesis: probability}
        The probability of each hypothesis given the observations.
    possible : list
        The hypotheses that have not been ruled out.
    evidence, log_evidence : float
        The probability of the observations averaged over the prior, and its logarithm.
    bits : dict {hypothesis: Bits}
        The description length of each hypothesis, and of the observations given it.

    References
    ----------
    .. [1] T. M. Mitchell, "Machine Learning", McGraw-Hill, 1997, chapter 6.
    .. [2] S. Russell and P. Norvig, "Artificial Intelligence: A Modern Approach", chapter "Learning Probabilistic
       Models" (the candy bags).

    Examples
    --------
    There are five kinds of candy bags, with different shares of limes; the first three candies drawn are lime:

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

    seen: HypothesisStatistics

    def __init__(
        self,
        prior: Mapping[NameT, float] | None = None,
        likelihood: Mapping[NameT, Mapping[Any, float] | Callable[[Any], float] | FittedClassifier] | None = None,
        *,
        outcomes: Sequence[Hashable] = (),
        logs: bool = False,
    ) -> None:
        if not likelihood:
            raise DataError("no likelihood: give a table, functions or models, one for each hypothesis.")
        weights = {name: 1 / len(likelihood) for name in likelihood} if prior is None else dict(prior)
        if set(weights) != set(likelihood):
            odd = ", ".join(sorted(map(repr, set(weights) ^ set(likelihood))))
            raise DataError(f"{odd} has a prior or a likelihood but not both: give both for each hypothesis.")
        self.names = list(weights)
        self.likelihood = build_likelihood({name: likelihood[name] for name in self.names}, logs, outcomes)
        self.log_prior = log(check_distribution("the prior", list(weights.values())))
        self.seen = self.observe([])

    # -- learning --------------------------------------------------------------------------------------------------

    def observe(self, observations: Sequence[object]) -> HypothesisStatistics:
        terms = self.likelihood.log_likelihood(observations)  # (observations, hypotheses)
        # (observations, hypotheses); impossible observations are counted instead of summed as -inf
        ruled_out = np.isneginf(terms)
        return HypothesisStatistics(
            np.asarray(float(len(observations))),
            np.where(ruled_out, 0.0, terms).sum(axis=0),
            ruled_out.sum(axis=0).astype(float),
            self.likelihood.outcome_counts(observations),
        )

    def update_many(self, observations: Iterable[object]) -> Self:
        new = list(observations)
        seen_before, possible_before = self.seen, self.possible
        super().update_many(new)
        if not self.possible:
            # all observations are learned, or none
            self.seen = seen_before
            raise DataError(self._format_contradiction(possible_before, new))
        return self

    def _format_contradiction(self, possible: list[NameT], observations: list[object]) -> str:
        """Return the error message, which names the observation that ruled out the last possible hypotheses."""
        columns = [self.names.index(name) for name in possible]
        log_p = self.likelihood.log_likelihood(observations)[:, columns]
        # (observations, possible hypotheses): whether a hypothesis agrees with every observation so far
        consistent = np.logical_and.accumulate(~np.isneginf(log_p))
        i = int(np.argmin(consistent.any(axis=1)))
        last = [name for name, agrees in zip(possible, consistent[i - 1], strict=True) if agrees] if i else possible
        return (
            f"observation {i}: {observations[i]!r} is impossible under every hypothesis that was still possible "
            f"({join_names(last)}); nothing was learned. Give some hypothesis a probability above 0 "
            "for it."
        )

    def has_same_declaration(self, other: Self) -> bool:
        same_names = self.names == other.names and list(self.likelihood.outcomes) == list(other.likelihood.outcomes)
        return same_names and np.array_equal(self.log_prior, other.log_prior)

    # -- tables ----------------------------------------------------------------------------------------------------

    def table(self) -> DisplayTable:
        """Return a table of P(h), P(D | h), their product, P(D) and P(h | D).

        >>> faces = {"fair": {"H": 0.5, "T": 0.5}, "two-headed": {"H": 1}}
        >>> print(Hypotheses({"fair": 0.75, "two-headed": 0.25}, faces).update("H").table())
        after 1 observation: P(D) = 0.625
        h           P(h)  P(D|h)  P(h) P(D|h)  P(h|D)
        fair        0.75     0.5        0.375     0.6
        two-headed  0.25       1         0.25     0.4
        sum            1                0.625       1
        """
        likelihood, joint = np.exp(self.seen.data_log_likelihood()), np.exp(self.log_joint)
        cells = zip(self.names, np.exp(self.log_prior), likelihood, joint, self.posterior.values(), strict=True)
        rows = [(format_cell(name), *(float(x) for x in numbers)) for name, *numbers in cells]
        total = ("sum", 1.0, None, self.evidence, 1.0)
        columns = ("h", "P(h)", "P(D|h)", "P(h) P(D|h)", "P(h|D)")
        title = f"after {count_observations(self.seen.n)}: P(D) = {self.evidence:.4g}"
        return DisplayTable(title, columns, (*shorten_rows(rows), total))

    def steps(self, observations: Sequence[object]) -> DisplayTable:
        """Return a table of the posterior before these observations and after each of them, without learning them."""
        state = self.clone_unfitted()
        steps = [list(state.posterior.values())]
        for observation in observations:
            steps.append(list(state.update(observation).posterior.values()))
        rows = [
            (format_cell(name), *(float(p) for p in chances))
            for name, chances in zip(self.names, np.transpose(steps).tolist(), strict=True)
        ]
        columns = ("h", "prior", *(f"{n + 1}: {format_cell(x)}" for n, x in enumerate(observations)))
        return DisplayTable("P(h | the first observations)", columns, tuple(shorten_rows(rows)))

    def answers(self, given: object = None) -> DisplayTable:
        """Return a table of the predictions and error rates of ML, MAP, the Bayes-optimal vote, and Gibbs.

        >>> label = {"h1": {"+": 1, "-": 0}, "h2": {"-": 1, "+": 0}, "h3": {"-": 1, "+": 0}}
        >>> print(Hypotheses({"h1": 0.4, "h2": 0.3, "h3": 0.3}, label).answers())
        what comes next, after 0 observations
        learner               P(+)    P(-)  answer  P(wrong)
        ML: h1 or h2 or h3  0.3333  0.6667  -            0.4
        MAP: h1                  1       0  +            0.6
        Bayes-optimal vote     0.4     0.6  -            0.4
        Gibbs                  0.4     0.6  -           0.48
        """
        outcomes, votes = list(self.likelihood.outcomes), self.votes(given)  # (outcomes, hypotheses)
        posterior = np.array(list(self.posterior.values()))
        truth = votes @ posterior  # (outcomes,)
        learners = {}
        # tied hypotheses are averaged
        for name, tied in (("ML", self.ml_set()), ("MAP", self.map_set())):
            learners[f"{name}: {_join_tied(tied)}"] = votes[:, [self.names.index(pick) for pick in tied]].mean(axis=1)
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
        return DisplayTable(f"{title}, after {count_observations(self.seen.n)}", columns, tuple(rows))

    def __repr__(self) -> str:
        best, seen = self.map_set(), count_observations(self.seen.n)
        p = self.posterior[best[0]]
        return f"<Hypotheses: {len(self.names)} hypotheses, {seen}, MAP {join_names(best)} with P(h|D) = {p:.4g}>"

    # -- answers ---------------------------------------------------------------------------------------------------

    @property
    def log_joint(self) -> Array:
        """``log P(D, h) = log P(h) + log P(D | h)`` of each hypothesis."""
        return np.asarray(self.log_prior + self.seen.data_log_likelihood())

    @property
    def posterior(self) -> dict[NameT, float]:
        """``P(h | D)``: the probability of each hypothesis given the observations."""
        return dict(zip(self.names, np.exp(log_normalise(self.log_joint)).tolist(), strict=True))

    @property
    def possible(self) -> list[NameT]:
        """The hypotheses not ruled out: the version space, if every hypothesis predicts with certainty."""
        return [name for name, joint in zip(self.names, self.log_joint, strict=True) if joint > -np.inf]

    @property
    def log_evidence(self) -> float:
        return float(log_sum_exp(self.log_joint))

    @property
    def bits(self) -> dict[NameT, Bits]:
        """The two-part code of each hypothesis and the data given it; the MAP hypothesis has the shortest total.

        >>> faces = {"fair": {"H": 0.5, "T": 0.5}, "two-headed": {"H": 1}}
        >>> coin = Hypotheses({"fair": 0.75, "two-headed": 0.25}, faces)
        >>> coin.update_many("HHH").bits["two-headed"]
        Bits(hypothesis=2.0, data=0.0)
        """
        pairs = zip(self.log_prior, self.seen.data_log_likelihood(), strict=True)
        return {name: two_part(*pair) for name, pair in zip(self.names, pairs, strict=True)}

    def ml_set(self) -> list[NameT]:
        """Return every hypothesis under which the observations are most probable."""
        return find_best_names(self.names, self.seen.data_log_likelihood())

    def map_set(self) -> list[NameT]:
        """Return every hypothesis that is most probable given the observations: the brute-force MAP learner."""
        return find_best_names(self.names, self.log_joint)

    def ml(self) -> NameT:
        """Return ``argmax P(D | h)``; a tie raises a warning, and ``ml_set`` returns all tied hypotheses."""
        return choose_first_tied(self.ml_set(), "hypotheses")

    def map(self) -> NameT:
        """Return ``argmax P(h | D)``; a tie raises a warning, and ``map_set`` returns all tied hypotheses."""
        return choose_first_tied(self.map_set(), "hypotheses")

    def bayes_factor(self, first: NameT, second: NameT) -> float:
        """Return how many times as probable the observations are under one hypothesis as under another.

        >>> faces = {"fair": {"H": 0.5, "T": 0.5}, "two-headed": {"H": 1}}
        >>> round(Hypotheses(likelihood=faces).update_many("HHH").bayes_factor("two-headed", "fair"), 6)
        8.0
        """
        logs = dict(zip(self.names, self.seen.data_log_likelihood(), strict=True))
        return float(np.exp(logs[first] - logs[second]))

    def votes(self, given: object = None) -> Array:
        """Return ``P(outcome | h)`` as (outcomes, hypotheses)."""
        outcomes = self.likelihood.outcomes
        if len(outcomes) == 0:
            raise DataError("no outcomes to predict: declare them with Hypotheses(..., outcomes=[...]).")
        observations = list(outcomes) if given is None else [(given, outcome) for outcome in outcomes]
        return np.exp(self.likelihood.log_likelihood(observations))

    def predict_proba(self, given: object = None) -> dict[Hashable, float]:
        """Return ``P(outcome | D) = Σ P(outcome | h) P(h | D)``.

        ``given`` is the row of a ``(row, label)`` observation; the outcomes are then its possible labels.
        """
        mixed = self.votes(given) @ np.array(list(self.posterior.values()))  # (outcomes,)
        return dict(zip(self.likelihood.outcomes, mixed.tolist(), strict=True))

    def draw(self, random_state: Seed = None) -> NameT:
        """Return a hypothesis drawn from the posterior."""
        p = np.array(list(self.posterior.values()))  # (hypotheses,)
        return self.names[int(np.random.default_rng(random_state).choice(len(p), p=p / p.sum()))]

    def gibbs(self, random_state: Seed = None, given: object = None) -> Hashable:
        """Return the most probable outcome under a hypothesis drawn from the posterior; ties are broken at random."""
        rng = np.random.default_rng(random_state)
        p = self.votes(given)[:, self.names.index(self.draw(rng))]  # (outcomes,)
        tied = find_best_names(self.likelihood.outcomes, p)
        return tied[int(rng.integers(len(tied)))]


def _join_tied(names: Sequence[Hashable]) -> str:
    """Join the names of tied hypotheses."""
    return " or ".join(map(format_cell, names)) if len(names) <= 3 else f"{len(names)} that tie"
