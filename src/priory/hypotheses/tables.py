"""Tables of a hypothesis space: prior × likelihood = joint, P(D), posterior, and the predictions of the learners."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from priory.core.display_table import DisplayTable, format_cell
from priory.hypotheses.base import find_best_names, join_names

if TYPE_CHECKING:
    from priory.hypotheses.continuum import Continuum
    from priory.hypotheses.finite import Hypotheses

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
    rows = (
        ("ML", space.ml() if space.seen.n > 0 else None),
        ("MAP", None if space.map_fault else space.map()),
        ("mean", float(space.posterior.mean())),
        ("2.5 % quantile", low),
        ("97.5 % quantile", high),
    )
    title = f"θ = P({format_cell(space.outcomes[0])}) after {_count(space.seen.n, 'observation')}: {_name_beta(space)}"
    note = f"there is no single MAP: {space.map_fault}" if space.map_fault else ""
    return DisplayTable(title, ("estimate", "θ"), rows, note)


def describe_belief(space: Continuum) -> str:
    """Describe the posterior in one line."""
    low, high = space.credible_interval()
    return (
        f"<Continuum: θ = P({format_cell(space.outcomes[0])}) ~ {_name_beta(space)} after "
        f"{_count(space.seen.n, 'observation')}, mean {float(space.posterior.mean()):.4g}, "
        f"95 % from {low:.4g} to {high:.4g}>"
    )


def _name_beta(space: Continuum) -> str:
    return f"Beta({float(space.posterior.a):g}, {float(space.posterior.b):g})"


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
