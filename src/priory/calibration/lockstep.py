"""Logistic regression for every fold and for all rows, solved in lock-step.

The K models that each leave out one fold, and the one that leaves out nothing, are fitted together: their weights lie
side by side, and one pass over the rows gives the gradients of all of them and the answers to the rows left out.

    log p(c | x)  =  offset(x)  +  x W  -  log Z,      W ~ N(0, 1 / strength)

Strengths go from strong to weak, until the rows left out are judged worse. Each starts where the last one ended, and
with what was found about the curvature: a penalty adds to it what is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from priory.calibration.quasi_newton import SUFFICIENT_DECREASE, multiply_inverse_hessian
from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows, compute_log_losses, pad_to_lane
from priory.core.typing import Array

STEPS_PER_STRENGTH = 8
HISTORY = 6  # pairs of steps and changes of the gradient that L-BFGS remembers
CONVERGED = 3e-4  # of the losses, that the next step would save
TOLERATED_RISE = 1.001  # of the loss on rows left out, before the search for a strength ends


class Solution(NamedTuple):
    """What was fitted with the best strength."""

    weights: Array  # (features, models, logits): the last model is that of all rows
    logits: Array  # (rows, models, logits)
    left_out: Array  # (rows, logits): of each row by the model without its fold
    loss: float  # of the rows left out, per unit of weight
    strength: float

    @property
    def answers(self) -> Array:
        """(rows, classes): log probabilities of each row by the model without its fold."""
        logits = self.left_out.astype(float)
        return log_normalise(np.pad(logits, ((0, 0), (1, 0))) if logits.shape[1] == 1 else logits)


class Pass(NamedTuple):
    """One pass over the rows."""

    logits: Array  # (rows, models x logits, padded)
    losses: Array  # (models,)
    gradient: Array  # (features, models x logits, padded)


@dataclass(frozen=True, eq=False)
class LockstepProblem:
    """Rows with their classes and folds; rows of a negative fold are never left out."""

    rows: SparseRows
    group: Array  # (rows,)
    weight: Array  # (rows,)
    fold: Array  # (rows,)
    n_classes: int
    n_folds: int
    offset: Array  # (rows, models x logits, padded)

    @property
    def n_logits(self) -> int:
        """Two classes need one logit, that of the second class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the weights: features, models, logits."""
        return self.rows.width, self.n_folds + 1, self.n_logits

    @cached_property
    def training_weight(self) -> Array:
        """(rows, models): the weight of each row in each model, zero where its fold is left out."""
        weight = np.repeat(self.weight[:, None], self.n_folds + 1, axis=1)
        judged = np.flatnonzero(self.fold >= 0)
        weight[judged, self.fold[judged]] = 0.0
        return weight.astype(np.float32)

    @cached_property
    def targets(self) -> Array:
        """(rows, logits): one for the row's own class."""
        if self.n_logits == 1:
            return (self.group == 1).astype(np.float32)[:, None]
        return np.eye(self.n_classes, dtype=np.float32)[self.group]

    @cached_property
    def curvature(self) -> Array:
        """(features, models x logits, padded): the diagonal of the information if every answer were the base rate."""
        share = (self.weight @ self.targets) / self.weight.sum()
        spread = np.maximum(share * (1 - share), 1e-3).astype(np.float32)
        per_row = (self.training_weight[:, :, None] * spread).reshape(len(self.group), -1)
        squared = self.rows.transposed
        if squared.data is not None:
            squared = SparseRows(squared.ends, squared.indices, squared.data**2, squared.width)
        return squared.multiply(pad_columns(per_row))

    def evaluate(self, weights: Array) -> Pass:
        """Losses and gradients of all models at padded weights (features, models x logits)."""
        logits = self.rows.multiply(weights)
        logits += self.offset
        losses, wrong = compute_log_losses(logits, self.group, self.training_weight, self.n_logits)
        totals = np.einsum("nm,nm->m", losses, self.training_weight, dtype=np.float64)
        return Pass(logits, totals, self.rows.transposed.multiply(wrong))

    def compute_residuals(self, logits: Array) -> tuple[Array, Array]:
        """How far answers are from the classes, and the variance of that if they are right: each row by its weight.

        Both are (rows, models x logits, padded), as ``logits`` are.
        """
        wrong = compute_log_losses(logits, self.group, self.training_weight, self.n_logits)[1]
        weight = pad_columns(np.repeat(self.training_weight, self.n_logits, axis=1))
        size = np.abs(wrong)  # the weight times p, or times 1 - p
        return wrong, size - size * size / np.maximum(weight, 1e-30)

    def split_models(self, logits: Array) -> Array:
        """(rows, models, logits) of padded columns."""
        _, models, n_logits = self.shape
        return logits[:, : models * n_logits].reshape(len(logits), models, n_logits)

    def take_left_out(self, logits: Array) -> Array:
        """(rows, logits): of each row by the model without its fold; by the one of all rows if it has none."""
        model = np.where(self.fold >= 0, self.fold, self.n_folds)
        return np.asarray(self.split_models(logits)[np.arange(len(model)), model])

    def judge(self, logits: Array) -> float:
        """The mean loss of the rows left out."""
        judged = np.flatnonzero(self.fold >= 0)
        left_out = np.ascontiguousarray(self.take_left_out(logits)[judged], dtype=np.float32)
        losses = compute_log_losses(left_out, self.group[judged], np.ones((len(judged), 1), np.float32), self.n_logits)[
            0
        ]
        return float(np.average(losses[:, 0], weights=self.weight[judged]))


def pad_columns(table: Array) -> Array:
    """The table with columns of zeros up to a width that `SparseRows.multiply` takes."""
    wide = np.zeros((len(table), pad_to_lane(table.shape[1])), dtype=np.float32)
    wide[:, : table.shape[1]] = table
    return wide


def solve_lockstep(problem: LockstepProblem, strengths: Sequence[float], penalty: Array) -> Solution:
    """Fit all models with each strength in turn, and return those whose answers to rows left out were best.

    ``penalty`` (features, models, or one for all of them) multiplies the strength; where it is infinite, weights stay
    zero. The offset alone is the first candidate.
    """
    search = LockstepSearch(problem, penalty)
    best = Solution(search.weights, search.now.logits, search.now.logits, problem.judge(search.now.logits), np.inf)
    for strength in strengths:
        search.descend(np.float32(strength))
        loss = problem.judge(search.now.logits)
        if loss < best.loss:
            best = Solution(search.weights, search.now.logits, search.now.logits, loss, strength)
        elif loss > best.loss * TOLERATED_RISE:
            break
    return best._replace(logits=problem.split_models(best.logits), left_out=problem.take_left_out(best.logits))


class LockstepSearch:
    """L-BFGS for all models at once: each has its own step length, and those that do not improve try a shorter one."""

    def __init__(self, problem: LockstepProblem, penalty: Array) -> None:
        features, models, n_logits = problem.shape
        self.problem = problem
        wide = np.repeat(np.broadcast_to(penalty, (features, models)), n_logits, axis=1)
        self.free = pad_columns(np.isfinite(wide))
        self.penalty = pad_columns(np.where(np.isfinite(wide), wide, 0.0))
        self.at: Array = np.zeros(self.free.shape, dtype=np.float32)
        self.now = problem.evaluate(self.at)
        self.history: list[tuple[Array, Array]] = []  # steps, and the changes of the losses' gradient along them

    @property
    def weights(self) -> Array:
        """(features, models, logits): where the search is."""
        return self.problem.split_models(self.at).copy()

    def descend(self, strength: np.float32) -> None:
        """Some steps towards the optimum of this strength."""
        _, models, n_logits = self.problem.shape
        width = models * n_logits
        scale = self.free / (self.problem.curvature + strength * self.penalty + 1e-6)
        length = np.ones(models, dtype=np.float32)

        ones = np.ones(len(self.at), dtype=np.float32)

        def per_model(table: Array) -> Array:
            return np.asarray((ones @ table)[:width].reshape(models, n_logits).sum(axis=1))

        def per_column(value: Array) -> Array:
            wide = np.zeros(self.at.shape[1], dtype=np.float32)
            wide[:width] = np.repeat(value, n_logits)
            return wide

        def penalised(at: Array, given: Pass) -> tuple[Array, Array]:
            pull = strength * self.penalty * at
            return given.losses + 0.5 * per_model(pull * at), given.gradient + pull

        def remember(step: Array, bend: Array) -> tuple[Array, Array, Array]:
            """A step, the change of the penalised gradient along it, and 1 / (step . change)."""
            change = bend + strength * self.penalty * step
            product = per_model(step * change)
            return step, change, np.where(product > 1e-12, 1 / np.maximum(product, 1e-12), 0).astype(np.float32)

        history = [remember(*pair) for pair in self.history]
        cost, gradient = penalised(self.at, self.now)
        for _ in range(STEPS_PER_STRENGTH):
            direction = -multiply_inverse_hessian(gradient, history, scale, per_model, per_column)
            slope = per_model(direction * gradient)
            if -slope.sum() < CONVERGED * cost.sum():
                break
            trial = self.at + per_column(length) * direction
            then = self.problem.evaluate(trial)
            new_cost, new_gradient = penalised(trial, then)
            good = new_cost <= cost + SUFFICIENT_DECREASE * length * slope
            if not good.all():  # models that did not improve stay where they are
                column = per_column(good.astype(np.float32)).astype(bool)
                trial = np.where(column, trial, self.at)
                new_gradient = np.where(column, new_gradient, gradient)
                new_cost = np.where(good, new_cost, cost)
                then = Pass(
                    np.where(column, then.logits, self.now.logits),
                    np.where(good, then.losses, self.now.losses),
                    np.where(column, then.gradient, self.now.gradient),
                )
            pair = trial - self.at, then.gradient - self.now.gradient
            self.history = [*self.history[1 - HISTORY :], pair]
            history = [*history[1 - HISTORY :], remember(*pair)]
            self.at, self.now, cost, gradient = trial, then, new_cost, new_gradient
            length = np.where(good, 1, length * 0.25).astype(np.float32)
