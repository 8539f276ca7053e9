"""Compare families by evidence, measure how much the prior matters, and check whether the data fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.display_table import DisplayTable
from priory.families.base import Family

NOT_DRAWN = ("values", "edges")  # parts of the parameters that are known and not random
BeliefFamily = Family[Any, Any, Any, Any]


class PredictiveCheck(NamedTuple):
    """A statistic of the data, the same of drawn data, and the share of draws in which it is at least as large."""

    observed: float
    drawn: Array
    share: float


def bayes_factor(first: BeliefFamily, second: BeliefFamily, x: ArrayLike) -> float:
    """Return how many times as probable the data are under one family as under another, parameters integrated out.

    Compare families of the same kind of values: a density is no probability.

    >>> from priory.families import Bernoulli
    >>> tosses = [1] * 7 + [0] * 3
    >>> round(bayes_factor(Bernoulli(1000, 1000), Bernoulli(1, 1), tosses), 2)    # nearly fair, against anything
    1.29
    """
    logs = [float(np.sum(family.log_evidence(family.observe(x)))) for family in (first, second)]
    return float(np.exp(logs[0] - logs[1]))


def compare_priors(priors: Mapping[str, BeliefFamily], x: ArrayLike, mass: float = 0.95) -> DisplayTable:
    """Return the mean and the credible interval of each parameter under several priors: how much the prior matters.

    >>> from priory.families import Bernoulli
    >>> print(compare_priors({"flat": Bernoulli(1, 1), "fair": Bernoulli(20, 20)}, [1] * 7 + [0] * 3))
    posterior after 10 observations
    prior  parameter    mean  95 % from      to
    flat   θ          0.6667     0.3903  0.8907
    fair   θ            0.54     0.4023  0.6747
    """
    rows = []
    for name, prior in priors.items():
        belief = prior + prior.observe(x)
        low, high = belief.credible_interval(mass)
        numbers = zip(*map(_list_numbers, (belief.mean(), low, high)), strict=True)
        rows += [(name, mean[0], mean[1], low[1], high[1]) for mean, low, high in numbers]
    head = ("prior", "parameter", "mean", f"{100 * mass:g} % from", "to")
    return DisplayTable(f"posterior after {len(np.asarray(x))} observations", head, tuple(rows))


def check_predictions(
    family: BeliefFamily,
    x: ArrayLike,
    statistic: Callable[[Array], float],
    draws: int = 1000,
    random_state: int | np.random.Generator = 0,
) -> PredictiveCheck:
    """Compare a statistic of the data with its distribution under the fitted family: a posterior predictive check.

    Each draw takes parameters from the posterior and as many values from them as there are data. A share near 0 or 1
    means that the family does not produce such data.

    >>> from priory.families import Poisson
    >>> check_predictions(Poisson(), [0, 0, 1, 9, 0, 12, 1, 0, 8, 0], np.var).share
    0.0
    """
    rng, values = np.random.default_rng(random_state), np.asarray(x)
    belief = family + family.observe(x)
    observed = float(statistic(values))
    drawn = np.array([statistic(belief.sample(_draw_one(belief, rng), rng, len(values))) for _ in range(draws)])
    return PredictiveCheck(observed, drawn, float(np.mean(drawn >= observed)))


def _draw_one(belief: BeliefFamily, rng: np.random.Generator) -> Any:
    """Parameters drawn from a belief, without the axis of the draws."""
    drawn = belief.draw(rng, 1)
    if not isinstance(drawn, tuple):
        return drawn[0]
    return type(drawn)(*(part if name in NOT_DRAWN else part[0] for name, part in _name_parts(drawn)))


def _list_numbers(parameters: Any) -> list[tuple[str, float]]:
    """List the random numbers among the parameters, each named by its value or its parameter."""
    values = getattr(parameters, "values", None)
    parts = [(name, np.ravel(part)) for name, part in _name_parts(parameters) if name not in NOT_DRAWN]
    numbers = [(name, i, float(number)) for name, part in parts for i, number in enumerate(part)]
    return [(name if values is None else str(values[i]), number) for name, i, number in numbers]


def _name_parts(parameters: Any) -> list[tuple[str, Any]]:
    """The parameters by their names; a family with one of them calls it θ."""
    named = isinstance(parameters, tuple)
    return list(parameters._asdict().items()) if named else [("θ", parameters)]
