"""Solvers: bounded minimisation by projected L-BFGS, and logistic regression in lock-step, or by dual ascent.

In lock-step all folds are solved at once. Dual coordinate ascent is for the sparse rows of texts:

    log p(c | x)  =  offset(x)  +  x W  -  log Z,      W ~ N(0, (1 - d d') / strength)

At the optimum ``strength W = (1 - d d') Σ_i weight_i x_i (own class_i - p_i)``: the weights are a sum over the rows.
The dual variables are the probabilities p_i of the rows, called answers here. A pass updates them row by row, each to
the optimum given all others; converged rows are skipped. The prior variance is smaller along the common direction
``d``. The order of the rows is fixed, so that the result is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import expit, log_normalise
from priory.core.sharding import map_threads
from priory.core.sparse_rows import SparseRows, ascend_answers, compute_log_losses, pad_columns, pad_to_lane

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


STEPS_PER_STRENGTH = 8
HISTORY = 6  # steps that L-BFGS keeps
CONVERGED = 3e-4  # relative decrease of the cost, predicted for the next step, below which it stops
TOLERATED_RISE = 1.001  # of the out-of-fold loss; above it the search for a strength ends

FitT = TypeVar("FitT")


class Solution(NamedTuple):
    """The models fitted with the best strength."""

    weights: Array  # (features, models, logits); the last model is fitted to all rows
    logits: Array  # (rows, models, logits)
    left_out: Array  # (rows, logits): out-of-fold
    loss: float  # the mean out-of-fold log loss
    strength: float

    @property
    def answers(self) -> Array:
        """(rows, classes): the out-of-fold log probabilities."""
        logits = self.left_out.astype(float)
        return log_normalise(np.pad(logits, ((0, 0), (1, 0))) if logits.shape[1] == 1 else logits)


class Pass(NamedTuple):
    """The results of one pass over the rows."""

    logits: Array  # (rows, models x logits, padded)
    losses: Array  # (models,)
    gradient: Array  # (features, models x logits, padded)


@dataclass(frozen=True, eq=False)
class LockstepProblem:
    """Features, classes and folds of the rows; rows with a negative fold are never left out."""

    rows: SparseRows
    group: Array  # (rows,)
    weight: Array  # (rows,)
    fold: Array  # (rows,)
    n_classes: int
    n_folds: int
    offset: Array  # (rows, models x logits, padded)

    @property
    def n_logits(self) -> int:
        """One for each class; for two classes, only the second."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the weights: (features, models, logits)."""
        return self.rows.width, self.n_folds + 1, self.n_logits

    @cached_property
    def training_weight(self) -> Array:
        """(rows, models): the weight of each row in each model, zero where its fold is left out."""
        weight = np.repeat(self.weight[:, None], self.n_folds + 1, axis=1)
        judged = np.flatnonzero(self.fold >= 0)
        weight[judged, self.fold[judged]] = 0.0
        return weight.astype(np.float32)

    @cached_property
    def curvature(self) -> Array:
        """(features, models x logits, padded): the diagonal of the Fisher information at the base rate."""
        share = (self.weight @ make_targets(self.group, self.n_logits)) / self.weight.sum()
        spread = np.maximum(share * (1 - share), 1e-3).astype(np.float32)
        # Σ_rows weight p (1 - p) x², with p the share of the class
        per_row = (self.training_weight[:, :, None] * spread).reshape(len(self.group), -1)
        squared = self.rows.transposed
        if squared.data is not None:
            squared = SparseRows(squared.ends, squared.indices, squared.data**2, squared.width)
        return squared.multiply(pad_columns(per_row))

    def evaluate(self, weights: Array) -> Pass:
        """Return losses and gradients of all models at padded weights (features, models x logits)."""
        logits = self.rows.multiply(weights)
        logits += self.offset
        losses, wrong = compute_log_losses(logits, self.group, self.training_weight, self.n_logits)
        totals = np.einsum("nm,nm->m", losses, self.training_weight, dtype=np.float64)
        return Pass(logits, totals, self.rows.transposed.multiply(wrong))

    def compute_residuals(self, logits: Array) -> tuple[Array, Array]:
        """Return the weighted residuals p - y, and their variance if p is true.

        Both have the shape of ``logits``: (rows, models x logits, padded).
        """
        wrong = compute_log_losses(logits, self.group, self.training_weight, self.n_logits)[1]
        weight = pad_columns(np.repeat(self.training_weight, self.n_logits, axis=1))
        size = np.abs(wrong)  # the weight times p, or times 1 - p
        return wrong, size - size * size / np.maximum(weight, 1e-30)

    def split_models(self, logits: Array) -> Array:
        """Reshape padded columns to (rows, models, logits)."""
        _, models, n_logits = self.shape
        return logits[:, : models * n_logits].reshape(len(logits), models, n_logits)

    def take_left_out(self, logits: Array) -> Array:
        """(rows, logits): from the model without the row's fold, or the model of all rows if it has no fold."""
        model = np.where(self.fold >= 0, self.fold, self.n_folds)
        return np.asarray(self.split_models(logits)[np.arange(len(model)), model])

    def judge(self, left_out: Array) -> float:
        """Return the mean log loss of out-of-fold logits (rows, logits)."""
        judged = np.flatnonzero(self.fold >= 0)
        losses = compute_row_losses(left_out[judged], self.group[judged])
        return float(np.average(losses, weights=self.weight[judged]))


def make_targets(group: Array, n_logits: int) -> Array:
    """(rows, logits): the one-hot class of each row; for two classes, whether it is the second."""
    return (group[:, None] == np.arange(n_logits) + (n_logits == 1)).astype(np.float32)


def compute_row_losses(logits: Array, group: Array) -> Array:
    """(rows,): the log loss of logits (rows, logits)."""
    logits, weight = np.ascontiguousarray(logits, dtype=np.float32), np.ones((len(group), 1), np.float32)
    return compute_log_losses(logits, group, weight, logits.shape[1])[0][:, 0]


def solve_lockstep(problem: LockstepProblem, strengths: Sequence[float], penalty: Array) -> Solution:
    """Fit all models with each strength in turn; return the solution with the smallest out-of-fold loss.

    ``penalty`` (features, models or 1) multiplies the strength; where it is infinite, weights stay zero. The offset
    alone, without weights, is the first candidate.
    """
    search = LockstepSearch(problem, penalty)

    def fit_strengths() -> Iterator[tuple[float, Solution]]:
        for strength in (np.inf, *strengths):
            if np.isfinite(strength):
                search.descend(np.float32(strength))
            left_out = problem.take_left_out(search.now.logits)
            loss = problem.judge(left_out)
            yield loss, Solution(search.weights, problem.split_models(search.now.logits), left_out, loss, strength)

    return take_best(fit_strengths())


def take_best(candidates: Iterator[tuple[float, FitT]]) -> FitT:
    """Return the fit with the smallest out-of-fold loss, from strong to weak penalties until the loss rises.

    Each candidate is a loss and a fit, computed when it is asked for.
    """
    best_loss, best = next(candidates)
    for loss, fit in candidates:
        if loss < best_loss:
            best_loss, best = loss, fit
        elif loss > best_loss * TOLERATED_RISE:
            break
    return best


class LockstepSearch:
    """L-BFGS for all models at once; each model has its own step length, reduced where the cost did not fall.

    All tables are (features, models x logits, padded), like the weights.
    """

    def __init__(self, problem: LockstepProblem, penalty: Array) -> None:
        features, models, n_logits = problem.shape
        self.problem = problem
        wide = np.repeat(np.broadcast_to(penalty, (features, models)), n_logits, axis=1)
        self.free = pad_columns(np.isfinite(wide))
        self.penalty = pad_columns(np.where(np.isfinite(wide), wide, 0.0))
        self.at: Array = np.zeros(self.free.shape, dtype=np.float32)
        self.now = problem.evaluate(self.at)
        self.history: list[tuple[Array, Array]] = []  # steps, and changes of the unpenalised gradient

    @property
    def weights(self) -> Array:
        """(features, models, logits): the current weights."""
        return self.problem.split_models(self.at).copy()

    def descend(self, strength: np.float32) -> None:
        """Take up to ``STEPS_PER_STRENGTH`` steps towards the optimum of this strength."""
        _, models, n_logits = self.problem.shape
        width = models * n_logits
        # the initial inverse Hessian, a diagonal; zero where weights are fixed at zero
        scale = self.free / (self.problem.curvature + strength * self.penalty + 1e-6)
        length = np.ones(models, dtype=np.float32)  # of the next step of each model

        ones = np.ones(len(self.at), dtype=np.float32)

        def per_model(table: Array) -> Array:
            """(models,): the sum over the features and logits of each model."""
            return np.asarray((ones @ table)[:width].reshape(models, n_logits).sum(axis=1))

        def per_column(value: Array) -> Array:
            """(models x logits, padded): the value of each model, repeated for its logits."""
            wide = np.zeros(self.at.shape[1], dtype=np.float32)
            wide[:width] = np.repeat(value, n_logits)
            return wide

        def penalised(at: Array, given: Pass) -> tuple[Array, Array]:
            """The cost of each model (models,) and its gradient, with the penalty."""
            pull = strength * self.penalty * at
            return given.losses + 0.5 * per_model(pull * at), given.gradient + pull

        def remember(step: Array, bend: Array) -> tuple[Array, Array, Array]:
            """A step, the change of the penalised gradient along it, and 1 / (step . change) of each model."""
            # a model without positive curvature along the step gets zero, which leaves the step out
            change = bend + strength * self.penalty * step
            product = per_model(step * change)
            return step, change, np.where(product > 1e-12, 1 / np.maximum(product, 1e-12), 0).astype(np.float32)

        history = [remember(*pair) for pair in self.history]
        cost, gradient = penalised(self.at, self.now)
        for _ in range(STEPS_PER_STRENGTH):
            direction = -multiply_inverse_hessian(gradient, history, scale, per_model, per_column)
            slope = per_model(direction * gradient)
            # the predicted decrease of all models together
            if -slope.sum() < CONVERGED * cost.sum():
                break
            trial = self.at + per_column(length) * direction
            then = self.problem.evaluate(trial)
            new_cost, new_gradient = penalised(trial, then)
            good = new_cost <= cost + SUFFICIENT_DECREASE * length * slope
            if not good.all():  # keep the old point of the models that did not improve
                column = per_column(good.astype(np.float32)).astype(bool)
                trial = np.where(column, trial, self.at)
                new_gradient = np.where(column, new_gradient, gradient)
                new_cost = np.where(good, new_cost, cost)
                then = Pass(*map(np.where, (column, good, column), then, self.now))
            # the history has the gradients without penalty, so that it is valid for other strengths
            pair = trial - self.at, then.gradient - self.now.gradient
            self.history = [*self.history[1 - HISTORY :], pair]
            history = [*history[1 - HISTORY :], remember(*pair)]
            self.at, self.now, cost, gradient = trial, then, new_cost, new_gradient
            length = np.where(good, 1, length * 0.25).astype(np.float32)


# -- dual coordinate ascent on sparse rows -----------------------------------------------------------------------------


PASSES_PER_STRENGTH = 4  # for each strength tried, and for the final fit
PASSES_PER_VISIT = 4  # every so many passes all rows are visited, converged or not
REST = 1e-2  # rows whose probabilities change by less are skipped


@dataclass(frozen=True, eq=False)
class TokenRegression:
    """A logistic regression on sparse rows, with an offset for the logits of each row."""

    rows: SparseRows
    group: Array  # (rows,)
    weight: Array  # (rows,)
    offset: Array  # (rows, logits), float32
    common: Array  # (features,), float32: the direction d, with a norm below one
    learned: Array  # (training rows,): positions; the other rows are for validation

    @property
    def n_logits(self) -> int:
        """One for each class; for two classes, only the second."""
        return self.offset.shape[1]

    @property
    def width(self) -> int:
        """The number of columns of the weights, padded to SIMD lanes."""
        return 1 if self.n_logits == 1 else pad_to_lane(self.n_logits)

    @cached_property
    def common_parts(self) -> Array:
        """(rows,): x d, the projection of each row on the common direction."""
        return self.rows.multiply_columns(self.common[:, None])[:, 0]

    @cached_property
    def own_class(self) -> Array:
        """(rows, logits): the one-hot class of each row."""
        return make_targets(self.group, self.n_logits)


class DualAscent:
    """The dual variables (answers) of a regression, and the weights that they determine."""

    def __init__(self, problem: TokenRegression) -> None:
        self.problem, self.strength = problem, np.inf
        self.answers = problem.own_class.copy()
        # over the training rows: Σ weight x (own class - answer) / strength, and the same sum with x d in place of x
        self.sums: Array = np.zeros((problem.rows.width, problem.width), np.float32)
        self.shift: Array = np.zeros(problem.width, np.float32)

    @property
    def weights(self) -> Array:
        """(features, logits): the primal weights, (1 - d d') sums."""
        return self.sums - self.problem.common[:, None] * self.shift

    def start_from(self, answers: Array, strength: float) -> None:
        """Start from answers (rows, logits), and compute the weights that they determine."""
        learned = np.zeros((len(answers), 1), np.float32)  # the training weight of each row
        learned[self.problem.learned, 0] = self.problem.weight[self.problem.learned]
        self.answers, self.strength = np.ascontiguousarray(answers, dtype=np.float32), strength
        pull = (self.problem.own_class - self.answers) * (learned / np.float32(strength))
        self.sums[:, : self.problem.n_logits] = self.problem.rows.multiply_transposed(pull)
        self.shift[: self.problem.n_logits] = self.problem.common_parts @ pull

    def ascend(self, strength: float, passes: int, rest: float) -> None:
        """Run some passes with this strength, starting from the current answers."""
        self._change_strength(strength)
        rows, moved = self.problem.learned.astype(np.int32), np.ones(len(self.answers), np.float32)
        moving = rows
        for number in range(passes):
            if number % PASSES_PER_VISIT == 0:
                moving = rows  # updates of other rows may have moved the optimum of converged ones
            if len(moving):
                ascend_answers(
                    self.problem.rows,
                    self.problem.common_parts,
                    self.problem.offset,
                    self.problem.group,
                    self.problem.weight,
                    strength,
                    moving,
                    self.answers,
                    self.sums,
                    self.shift,
                    moved,
                )
            moving = moving[moved[moving] > rest]

    def _change_strength(self, strength: float) -> None:
        """Rescale to another strength: half of the change (in logs) goes to the weights, half to the residuals."""
        if np.isfinite(self.strength):
            half = np.float32(np.sqrt(strength / self.strength))
            own = self.problem.own_class
            self.answers = own - half * (own - self.answers)
            self.sums /= half
            self.shift /= half
        self.strength = strength


class StrengthSearch(NamedTuple):
    """The best strength, and the out-of-fold predictions with it."""

    strength: float  # infinite if the offset alone was best
    left_out: Array  # (rows, logits): out-of-fold logits; zero for rows that no fold leaves out
    losses: Array  # (rows,): the log loss of left_out
    answers: Array  # (rows, logits): the starting point of a regression on all rows


def search_strength(
    problems: Sequence[TokenRegression], judged: Sequence[Array], strengths: Sequence[float]
) -> StrengthSearch:
    """Return the strength with the smallest out-of-fold loss; each problem leaves out its rows ``judged``."""
    searches = [DualAscent(problem) for problem in problems]
    parts = list(zip(problems, judged, strict=True))
    left_out = [(problem.rows.take_rows(rows), problem.offset[rows]) for problem, rows in parts]

    def judge(logits: list[Array], strength: float) -> tuple[float, StrengthSearch]:
        found, answers = np.zeros(problems[0].offset.shape, np.float32), searches[0].answers.copy()
        losses = np.zeros(len(found))
        for (problem, rows), values in zip(parts, logits, strict=True):
            found[rows], losses[rows] = values, compute_row_losses(values, problem.group[rows])
        # a regression of all rows starts from the first fold's answers, completed by its predictions
        answers[judged[0]] = compute_probabilities(logits[0])
        return float(problems[0].weight @ losses), StrengthSearch(strength, found, losses, answers)

    def step(k: int, strength: float) -> Array:
        searches[k].ascend(strength, PASSES_PER_STRENGTH, REST)
        rows, offset = left_out[k]
        return np.asarray(rows.multiply_columns(searches[k].weights)[:, : offset.shape[1]] + offset)

    def fit_strengths() -> Iterator[tuple[float, StrengthSearch]]:
        yield judge([offset for _, offset in left_out], np.inf)
        for strength in strengths:
            yield judge(list(map_threads(partial(step, strength=strength), range(len(problems)))), strength)

    return take_best(fit_strengths())


def solve_regression(problem: TokenRegression, found: StrengthSearch) -> Array:
    """(features, logits): the weights of the best strength; zero if it is infinite."""
    search = DualAscent(problem)
    if np.isfinite(found.strength):
        search.start_from(found.answers, found.strength)
        search.ascend(found.strength, PASSES_PER_STRENGTH, REST)
    return search.weights[:, : problem.n_logits]


def compute_probabilities(logits: Array) -> Array:
    """(rows, logits): the probability of each class; for two classes, of the second."""
    if logits.shape[1] == 1:
        return np.asarray(expit(logits))
    return np.exp(log_normalise(logits.astype(float)))
