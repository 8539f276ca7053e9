"""Logistic regression on sparse rows by dual coordinate ascent.

    log p(c | x)  =  offset(x)  +  x W  -  log Z,      W ~ N(0, (1 - d d') / strength)

At the optimum ``strength W = (1 - d d') Σ_i weight_i x_i (own class_i - p_i)``: the weights are a sum over the rows.
The dual variables are the probabilities p_i of the rows, called answers here. A pass updates them row by row, each to
the optimum given all others; converged rows are skipped. The prior variance is smaller along the common direction
``d``. The order of the rows is fixed, so that the result is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.solvers import compute_row_losses, make_targets, take_best
from priory.core.logspace import expit, log_normalise
from priory.core.sharding import map_threads
from priory.core.sparse_rows import SparseRows, ascend_answers, pad_to_lane

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
