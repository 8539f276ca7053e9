"""Bounded minimisation by projected L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from priory.core.typing import Array

MAX_KNOWN_STEPS = 8  # steps that L-BFGS keeps
SUFFICIENT_DECREASE = 1e-4  # Armijo condition: share of the decrease that the gradient predicts
MAX_HALVINGS = 30

CostFunction = Callable[[Array], tuple[float, Array]]  # returns the cost and its gradient


def minimise_cost(
    cost: CostFunction,
    start: Array,
    tolerance: float,
    max_steps: int,
    lower: Array | float = -np.inf,
    upper: Array | float = np.inf,
) -> Array:
    """Minimise a smooth cost between bounds; stop when a step decreases it by less than the tolerance.

    The tolerance is relative to the cost, or to one if the cost is smaller.

    >>> minimise_cost(lambda x: (x @ x - 2 * x.sum(), 2 * x - 2), np.zeros(2), 1e-9, 20, upper=np.array([9, 0.5]))
    array([1. , 0.5])
    """
    at = np.clip(start, lower, upper)
    value, slope = cost(at)
    history: list[tuple[Array, Array]] = []
    for _ in range(max_steps):
        # L-BFGS in the space of the variables that no bound holds, then a line search with projected steps
        free = ~(((at <= lower) & (slope > 0)) | ((at >= upper) & (slope < 0)))
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
    """Return the L-BFGS approximation of inverse Hessian times slope; without history, a vector of norm at most one."""
    known = [(step, change, 1 / (step @ change)) for step, change in history if step @ change > 0]
    if not known:
        return slope / max(1.0, float(np.linalg.norm(slope)))
    # the usual initial scale, step . change / change . change of the last step
    _, change, inverse = known[-1]
    return multiply_inverse_hessian(slope, known, 1 / (inverse * change @ change), np.sum, np.asarray)


def multiply_inverse_hessian(
    gradient: Array,
    history: Sequence[tuple[Array, Array, Array]],
    scale: Array | float,
    per_model: Callable[[Array], Array],
    per_column: Callable[[Array], Array],
) -> Array:
    """Return inverse Hessian times gradient of each model, by the two-loop recursion of L-BFGS.

    ``history`` has steps, changes of the gradient, and 1 / (step . change) of each model; ``scale`` is the initial
    inverse Hessian, a diagonal. ``per_model`` sums over the variables of each model, and ``per_column`` repeats the
    value of each model for its variables. The models are independent problems.
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
