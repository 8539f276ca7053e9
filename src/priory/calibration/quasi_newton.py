"""Smooth costs of many variables, made small by L-BFGS: the last steps tell how the slope changes along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from priory.core.typing import Array

MAX_KNOWN_STEPS = 8  # steps that are remembered
SUFFICIENT_DECREASE = 1e-4  # of what the slope promises
MAX_HALVINGS = 30

CostFunction = Callable[[Array], tuple[float, Array]]  # the cost of variables, and its slope


def minimise_cost(
    cost: CostFunction,
    start: Array,
    tolerance: float,
    max_steps: int,
    lower: Array | float = -np.inf,
    upper: Array | float = np.inf,
) -> Array:
    """Variables between bounds whose cost is smallest; the search ends when a step saves less than the tolerance.

    The tolerance is a part of the cost, or of one if the cost is less.

    >>> minimise_cost(lambda x: (x @ x - 2 * x.sum(), 2 * x - 2), np.zeros(2), 1e-9, 20, upper=np.array([9, 0.5]))
    array([1. , 0.5])
    """
    at = np.clip(start, lower, upper)
    value, slope = cost(at)
    history: list[tuple[Array, Array]] = []
    for _ in range(max_steps):
        free = ~(((at <= lower) & (slope > 0)) | ((at >= upper) & (slope < 0)))  # not held by a bound
        direction = -_find_newton_step(free * slope, [(free * step, free * change) for step, change in history])
        for halvings in range(MAX_HALVINGS):
            trial = np.clip(at + 0.5**halvings * direction, lower, upper)
            new_value, new_slope = cost(trial)
            if new_value <= value + SUFFICIENT_DECREASE * slope @ (trial - at):
                break
        else:
            return at
        history = [*history[1 - MAX_KNOWN_STEPS :], (trial - at, new_slope - slope)]
        saved, size = value - new_value, max(abs(value), abs(new_value), 1.0)
        at, value, slope = trial, new_value, new_slope
        if saved <= tolerance * size:
            break
    return np.asarray(at)


def _find_newton_step(slope: Array, history: Sequence[tuple[Array, Array]]) -> Array:
    """The slope times about the inverse of the second derivative; before any step, a vector no longer than one."""
    known = [(step, change, 1 / (step @ change)) for step, change in history if step @ change > 0]
    if not known:
        return slope / max(1.0, float(np.linalg.norm(slope)))
    _, change, inverse = known[-1]
    return multiply_inverse_hessian(slope, known, 1 / (inverse * change @ change), np.sum, np.asarray)


def multiply_inverse_hessian(
    gradient: Array,
    history: Sequence[tuple[Array, Array, Array]],
    scale: Array | float,
    per_model: Callable[[Array], Array],
    per_column: Callable[[Array], Array],
) -> Array:
    """The L-BFGS direction of each model: two loops over its history, about a diagonal.

    ``history`` has steps, changes of the gradient along them, and one divided by their product for each model.
    ``per_model`` adds up what belongs to each model, and ``per_column`` repeats what each model has.
    """
    q, along = gradient, []
    for step, change, inverse in reversed(history):
        a = inverse * per_model(step * q)
        q = q - per_column(a) * change
        along.append(a)
    q = q * scale
    for (step, change, inverse), a in zip(history, reversed(along), strict=True):
        b = inverse * per_model(change * q)
        q = q + per_column(a - b) * step
    return q
