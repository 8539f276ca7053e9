"""Logistic regression on sparse rows by dual coordinate ascent.

    log p(c | x)  =  offset(x)  +  x W  -  log Z,      W ~ N(0, (1 - d d') / strength)

At the optimum ``strength W = (1 - d d') Σ_i weight_i x_i (own class_i - p_i)``: the weights are a sum over the rows,
each with the answer that it has found so far, less what it has in the common direction ``d``. A pass takes the rows one
by one, and moves each answer to where it agrees with its own logits. Rows that have come to rest are left alone. The
order of the rows is given, so equal rows give equal weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from priory.calibration.lockstep import TOLERATED_RISE
from priory.core.logspace import log_normalise
from priory.core.sharding import map_threads
from priory.core.sparse_rows import SparseRows, ascend_answers, compute_log_losses, pad_to_lane
from priory.core.special_functions import expit
from priory.core.typing import Array

PASSES_PER_STRENGTH = 4  # the weights of all rows get as many as those that were judged
PASSES_PER_VISIT = 4  # in one of so many passes all rows are visited
REST = 1e-2  # answers that move less are left alone


@dataclass(frozen=True, eq=False)
class TokenRegression:
    """Rows with their classes, and the logits that they start from."""

    rows: SparseRows
    group: Array  # (rows,)
    weight: Array  # (rows,)
    offset: Array  # (rows, logits), float32
    common: Array  # (features,), float32: the direction d that weights are held back from; its length is below one
    learned: Array  # (rows learned,): positions; the others are judged

    @property
    def n_logits(self) -> int:
        """One for each class; two classes need that of the second only."""
        return self.offset.shape[1]

    @property
    def width(self) -> int:
        """The number of columns of the weights."""
        return 1 if self.n_logits == 1 else pad_to_lane(self.n_logits)

    @cached_property
    def common_parts(self) -> Array:
        """(rows,): how far each row goes in the common direction."""
        return self.rows.multiply_columns(self.common[:, None])[:, 0]

    @cached_property
    def own_class(self) -> Array:
        """(rows, logits): one for the row's own class."""
        if self.n_logits == 1:
            return (self.group == 1).astype(np.float32)[:, None]
        return np.eye(self.n_logits, dtype=np.float32)[self.group]

    def judge(self, logits: Array, rows: Array) -> Array:
        """(rows,): the log loss of some rows."""
        alone = np.ones((len(rows), 1), np.float32)
        return compute_log_losses(np.ascontiguousarray(logits), self.group[rows], alone, self.n_logits)[0][:, 0]


class DualAscent:
    """The weights of a regression, and the answers that they are made of."""

    def __init__(self, problem: TokenRegression) -> None:
        self.problem, self.strength = problem, np.inf
        self.answers = problem.own_class.copy()
        self.sums: Array = np.zeros((problem.rows.width, problem.width), np.float32)  # over the rows, as they are
        self.shift: Array = np.zeros(problem.width, np.float32)  # over what they have in common

    @property
    def weights(self) -> Array:
        """(features, logits): without what all rows have in common."""
        return self.sums - self.problem.common[:, None] * self.shift

    def start_from(self, answers: Array, strength: float) -> None:
        """Begin with these answers (rows, logits), and the weights that follow from them."""
        learned = np.zeros((len(answers), 1), np.float32)
        learned[self.problem.learned, 0] = self.problem.weight[self.problem.learned]
        self.answers, self.strength = np.ascontiguousarray(answers, dtype=np.float32), strength
        pull = (self.problem.own_class - self.answers) * (learned / np.float32(strength))
        self.sums[:, : self.problem.n_logits] = self.problem.rows.multiply_transposed(pull)
        self.shift[: self.problem.n_logits] = self.problem.common_parts @ pull

    def ascend(self, strength: float, passes: int, rest: float) -> None:
        """Some passes with this strength, from where the last ones ended."""
        self._change_strength(strength)
        rows, moved = self.problem.learned.astype(np.int32), np.ones(len(self.answers), np.float32)
        moving = rows
        for number in range(passes):
            if number % PASSES_PER_VISIT == 0:
                moving = rows  # those at rest may have been disturbed by others
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
        """Weights for another strength: both they and the answers move half of the way, in logarithms."""
        if np.isfinite(self.strength):
            half = np.float32(np.sqrt(strength / self.strength))
            own = self.problem.own_class
            self.answers = own - half * (own - self.answers)
            self.sums /= half
            self.shift /= half
        self.strength = strength


class StrengthSearch(NamedTuple):
    """The best strength, and the answers to rows left out under it."""

    strength: float  # infinite if the offset alone was best
    left_out: Array  # (rows, logits): zero for rows that were never left out
    losses: Array  # (rows,): of the rows left out
    answers: Array  # (rows, logits): where a regression of all rows may start


def search_strength(
    problems: Sequence[TokenRegression], judged: Sequence[Array], strengths: Sequence[float]
) -> StrengthSearch:
    """The strength under which rows left out are judged best; each problem leaves out the rows ``judged``."""
    searches = [DualAscent(problem) for problem in problems]
    parts = list(zip(problems, judged, strict=True))
    left_out = [(problem.rows.take_rows(rows), problem.offset[rows]) for problem, rows in parts]

    def judge(logits: list[Array]) -> StrengthSearch:
        found, answers = np.zeros(problems[0].offset.shape, np.float32), searches[0].answers.copy()
        losses = np.zeros(len(found))
        for (problem, rows), values in zip(parts, logits, strict=True):
            found[rows], losses[rows] = values, problem.judge(values, rows)
        answers[judged[0]] = compute_probabilities(logits[0])
        return StrengthSearch(np.inf, found, losses, answers)

    def step(k: int) -> Array:
        searches[k].ascend(strength, PASSES_PER_STRENGTH, REST)
        rows, offset = left_out[k]
        return np.asarray(rows.multiply_columns(searches[k].weights)[:, : offset.shape[1]] + offset)

    weight = problems[0].weight
    best = judge([offset for _, offset in left_out])
    for strength in strengths:
        found = judge(list(map_threads(step, range(len(problems)))))._replace(strength=strength)
        if weight @ found.losses < weight @ best.losses:
            best = found
        elif weight @ found.losses > TOLERATED_RISE * (weight @ best.losses):
            break
    return best


def solve_regression(problem: TokenRegression, found: StrengthSearch) -> Array:
    """(features, logits): the weights for the strength that was found; zero for an infinite one."""
    search = DualAscent(problem)
    if np.isfinite(found.strength):
        search.start_from(found.answers, found.strength)
        search.ascend(found.strength, PASSES_PER_STRENGTH, REST)
    return search.weights[:, : problem.n_logits]


def compute_probabilities(logits: Array) -> Array:
    """(rows, logits): the probability of each class, or of the second of two."""
    if logits.shape[1] == 1:
        return np.asarray(expit(logits))
    return np.exp(log_normalise(logits.astype(float)))
