"""Corrections of one row at a time: the same answers as `Corrections`, without tables of one row.

What a row needs of the corrections is looked up in lists and dictionaries that are made once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from math import log as log_number
from typing import Any

import numpy as np

from priory.calibration.corrections import Corrections
from priory.calibration.members import BaseRateMember, GaussianMember, LinearMember, Member, SlopeMember
from priory.calibration.table_encoding import N_LEVELS, N_TRIPLE_LEVELS, VALUE_BITS, ColumnCodes
from priory.calibration.tempering import MAX_EXPONENT, MAX_WEIGHT, Tempering
from priory.core.column_kernels import round_number_to_bits
from priory.core.logspace import log, log_normalise_row
from priory.core.typing import Array
from priory.models.evidence_terms import MIN_RELATIVE_LOG_LIKELIHOOD
from priory.models.open_model import RowEvidence

MAX_VALUES_FOR_PYTHON = 40  # classes x parts; arrays are quicker for more


class RowCodes:
    """The codes of one column, for single cells."""

    def __init__(self, codes: ColumnCodes) -> None:
        self.missing = codes.n_codes - 1
        self.edges = codes.edges_or_labels.tolist() if codes.is_number else []
        self.code_of_label = {} if codes.is_number else {v: k for k, v in enumerate(codes.edges_or_labels.tolist())}
        self.is_number = codes.is_number
        self.levels, self.triple_levels = (
            [*codes.coarsen_levels(n - 1).tolist(), n - 1, -1]  # of codes, of a missing cell, and of code -1
            for n in (N_LEVELS, N_TRIPLE_LEVELS)
        )
        self.knots, self.scores = codes.knots.tolist(), codes.scores.tolist()

    def encode(self, cell: Any) -> int:
        """The code of a cell, as `ColumnCodes.encode_column` has it; None and NaN are missing."""
        if cell is None or cell != cell:
            return self.missing
        if not self.is_number:
            return self.code_of_label.get(cell, -1)
        return bisect_right(self.edges, round_number_to_bits(cell, VALUE_BITS))

    def normal_score(self, cell: float) -> float:
        """A number as a quantile of a standard normal distribution; a missing one is in the middle."""
        knots, scores = self.knots, self.scores
        if len(knots) < 2 or cell != cell:
            return 0.0
        place = bisect_right(knots, cell)
        if place == 0 or place == len(knots):
            return scores[0] if place == 0 else scores[-1]
        share = (cell - knots[place - 1]) / (knots[place] - knots[place - 1])
        return scores[place - 1] + share * (scores[place] - scores[place - 1])


class RowCorrections:
    """Corrections, laid out for single rows."""

    def __init__(self, corrections: Corrections) -> None:
        self.corrections = corrections
        self.columns = [RowCodes(column) for column in corrections.encoding.columns]
        self.starts = (1 + corrections.encoding.starts[:-1]).tolist()
        self.n_codes = corrections.encoding.n_codes
        if corrections.members:
            self.code_weights = np.stack([self._weigh_codes(member) for member in corrections.members], axis=1)
            self.scored = [
                (m, member)
                for m, member in enumerate(corrections.members)
                if isinstance(member, GaussianMember | SlopeMember)
            ]
            self.linear = [
                (m, member)
                for m, member in enumerate(corrections.members)
                if isinstance(member, LinearMember) and (member.with_tokens or len(member.pairs) + len(member.triples))
            ]
            self.has_text = np.array([[not isinstance(m, BaseRateMember)] for m in corrections.members], dtype=float)

    def _weigh_codes(self, member: Member) -> Array:
        """(1 + codes, classes): what a member adds for every row, and for each code."""
        match member:
            case BaseRateMember():
                return np.concatenate([member.log_share[None], np.zeros((self.n_codes, len(member.log_share)))])
            case LinearMember() | SlopeMember():
                return member.weights[: 1 + self.n_codes]
            case GaussianMember():
                return member.labels.T

    def update_tempering(self, tempering: Tempering) -> None:
        """Use another tempering."""
        self.corrections = replace(self.corrections, tempering=tempering)

    def log_probabilities(self, cells: Sequence[Any], evidence: RowEvidence | None, tokens: Sequence[Array]) -> Array:
        """(classes,): log p(c | x), given the cells that have codes, column by column.

        ``evidence`` is what the class prior and the texts say, needed where there are texts; ``tokens`` are the numbers
        of the tokens of each text that corrections give a weight to.
        """
        tempering, pool = self.corrections.tempering, self.corrections.pool
        if pool is None:
            assert evidence is not None
            return log_normalise_row(weigh_evidence(tempering, evidence))
        codes = [column.encode(cell) for column, cell in zip(self.columns, cells, strict=True)]
        features = [0, *(start + code for start, code in zip(self.starts, codes, strict=True) if code >= 0)]
        logits = self.code_weights[features].sum(axis=0)  # (members, classes)
        for m, member in self.linear:
            logits[m] += self._score_tokens_and_sets(member, codes, tokens)
        if self.scored:
            scores = self._find_normal_scores(cells)
            for m, scored in self.scored:
                logits[m] += _score_numbers(scored, scores)
        if evidence is not None:
            logits += self.has_text * weigh_evidence(tempering, evidence.take_texts())
        answers = logits - logits.max(axis=1, keepdims=True)
        answers -= log(np.exp(answers).sum(axis=1, keepdims=True))
        return pool.mix_row(answers)

    def _score_tokens_and_sets(self, member: LinearMember, codes: list[int], tokens: Sequence[Array]) -> Array:
        """(classes,): what the tokens of texts, and the cells of pairs and triples of columns, add."""
        start, logits = 1 + self.n_codes, np.zeros(member.weights.shape[1])
        for chosen, known in zip(tokens, self.corrections.tokens, strict=False) if member.with_tokens else ():
            logits += member.weights[start + chosen].sum(axis=0) / np.sqrt(max(len(chosen), 1))
            start += len(known)
        if len(member.pairs):
            levels = np.array([column.levels[code] for column, code in zip(self.columns, codes, strict=True)])
            logits += member.weights[start + _find_cells(levels, member.pairs, N_LEVELS)].sum(axis=0)
            start += len(member.pairs) * N_LEVELS**2
        if len(member.triples):
            levels = np.array([column.triple_levels[code] for column, code in zip(self.columns, codes, strict=True)])
            logits += member.weights[start + _find_cells(levels, member.triples, N_TRIPLE_LEVELS)].sum(axis=0)
        return logits

    def _find_normal_scores(self, cells: Sequence[Any]) -> Array:
        """(numbers,): the numbers of a row as normal scores."""
        numbers = ((column, cell) for column, cell in zip(self.columns, cells, strict=True) if column.is_number)
        return np.array([column.normal_score(cell) for column, cell in numbers])


def _find_cells(levels: Array, sets: Array, n_levels: int) -> Array:
    """The number of the cell of each set of columns, as `encode_cells` has them; none where a label is new."""
    own = levels[sets]  # (sets, columns of a set)
    cells = np.arange(len(sets))
    for column in own.T:
        cells = cells * n_levels + column
    return np.asarray(cells[(own >= 0).all(axis=1)])


def _score_numbers(member: GaussianMember | SlopeMember, scores: Array) -> Array:
    """(classes,): what the numbers of a row, as normal scores, say together."""
    if isinstance(member, SlopeMember):
        return np.asarray(scores @ member.slopes)
    gaussian = member.gaussian
    away = (gaussian.roots @ (scores - gaussian.means)[:, :, None])[:, :, 0]
    return np.asarray(member.temperature * (gaussian.constants - 0.5 * (away * away).sum(axis=1)))


def weigh_evidence(tempering: Tempering, evidence: RowEvidence) -> Array:
    """(classes,): the evidence of each part by its weight."""
    parts = evidence.parts
    weights = tempering.weights[parts] * evidence.lengths ** -tempering.exponents[parts]
    return np.asarray(subtract_best(evidence.values) @ weights)


def subtract_best(values: Array) -> Array:
    """(classes, parts): each part less its value for its best class, bounded below."""
    best = values.max(axis=0)
    if not np.isfinite(best).all():
        best = np.where(np.isfinite(best), best, 0.0)
    return np.maximum(values - best, MIN_RELATIVE_LOG_LIKELIHOOD)


def step_tempering(tempering: Tempering, evidence: RowEvidence, group: int, count: float = 1.0) -> Tempering:
    """The tempering after one more row, judged by a model that has not learned it: one damped Fisher step.

    What a row says about the weights and exponents is added to the precision of the belief, and the step is the slope
    of the row's log loss divided by it: the more rows a belief rests on, the less one of them moves it. The row occurs
    ``count`` times.
    """
    if evidence.values.size <= MAX_VALUES_FOR_PYTHON:
        return _step_few_values(tempering, evidence, group, count)
    parts, size = evidence.parts, len(tempering.weights)
    weights, exponents, precision = tempering.weights.copy(), tempering.exponents.copy(), tempering.precision.copy()
    own_weights = weights[parts]
    values = subtract_best(evidence.values) * evidence.lengths ** -exponents[parts]  # (classes, parts)
    logits = values @ own_weights
    answer = np.exp(logits - logits.max())
    answer /= answer.sum()
    logs = -np.log(evidence.lengths) * own_weights  # the slope of a weighted value along its exponent, by the value
    expected = answer @ values
    slope = count * (expected - values[group])
    spread = count * (answer @ (values * values) - expected * expected)
    precision[parts] += spread
    precision[size + parts] += spread * logs**2
    weights[parts] = own_weights - slope / precision[parts]
    exponents[parts] -= slope * logs / precision[size + parts]
    weights[1:] = np.maximum(weights[1:], 0.0)  # the class prior alone may have any weight
    return Tempering(
        np.minimum(np.maximum(weights, -MAX_WEIGHT), MAX_WEIGHT),
        np.minimum(np.maximum(exponents, -MAX_EXPONENT), MAX_EXPONENT),
        precision,
    )


def _step_few_values(tempering: Tempering, evidence: RowEvidence, group: int, count: float) -> Tempering:
    """The same step number by number: of few numbers, quicker than with arrays."""
    weights, exponents = tempering.weights.tolist(), tempering.exponents.tolist()
    precision, size = tempering.precision.tolist(), len(weights)
    parts, lengths = evidence.parts.tolist(), evidence.lengths.tolist()
    shrink = [length ** -exponents[part] for part, length in zip(parts, lengths, strict=True)]
    values = [[x * s for x, s in zip(row, shrink, strict=True)] for row in subtract_best(evidence.values).tolist()]
    logits = [sum(weights[part] * x for part, x in zip(parts, row, strict=True)) for row in values]
    top = max(logits)
    answer = [exp(logit - top) for logit in logits]
    total = sum(answer)
    for place, (part, length) in enumerate(zip(parts, lengths, strict=True)):
        column = [row[place] for row in values]
        expected = sum(p * x for p, x in zip(answer, column, strict=True)) / total
        spread = sum(p * x * x for p, x in zip(answer, column, strict=True)) / total - expected * expected
        spread, slope = count * spread, count * (expected - column[group])
        logs = -log_number(length) * weights[part]
        precision[part] += spread
        precision[size + part] += spread * logs * logs
        weight = weights[part] - slope / precision[part]
        weights[part] = min(max(weight, 0.0 if part else -MAX_WEIGHT), MAX_WEIGHT)
        exponents[part] = min(max(exponents[part] - slope * logs / precision[size + part], -MAX_EXPONENT), MAX_EXPONENT)
    return Tempering(np.array(weights), np.array(exponents), np.array(precision))
