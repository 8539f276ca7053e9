"""Corrections of one row at a time: the same answers as `Corrections`, without tables of one row.

What a row needs of the corrections is looked up in lists and dictionaries that are made once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from math import isnan

import numpy as np

from priory.calibration.corrections import BaseRateMember, Corrections, GaussianMember, LinearMember
from priory.calibration.table_encoding import MISSING_LEVEL, N_LEVELS, VALUE_BITS, ColumnCodes
from priory.calibration.tempering import MAX_EXPONENT, MAX_WEIGHT, Tempering
from priory.core.column_kernels import round_number_to_bits
from priory.core.logspace import log_normalise_row, log_sum_exp
from priory.core.typing import Array
from priory.models.evidence_terms import MIN_RELATIVE_LOG_LIKELIHOOD
from priory.models.open_model import RowEvidence


class RowCodes:
    """The codes of one column, for single cells."""

    def __init__(self, codes: ColumnCodes) -> None:
        self.missing = codes.n_codes - 1
        self.edges = codes.edges_or_labels.tolist() if codes.is_number else []
        self.code_of_label = {} if codes.is_number else {v: k for k, v in enumerate(codes.edges_or_labels.tolist())}
        self.is_number = codes.is_number
        self.levels = [*codes.levels.tolist(), MISSING_LEVEL, -1]  # the last is that of code -1
        self.knots, self.scores = codes.knots, codes.scores

    def encode(self, cell: object) -> int:
        """The code of a cell, as `ColumnCodes.encode_column` has it."""
        if cell is None:
            return self.missing
        if not self.is_number:
            return self.code_of_label.get(cell, -1)
        assert isinstance(cell, float)
        return self.missing if isnan(cell) else bisect_right(self.edges, round_number_to_bits(cell, VALUE_BITS))

    def normal_score(self, cell: float) -> float:
        """A number as a quantile of a standard normal distribution; a missing one is in the middle."""
        return 0.0 if len(self.knots) < 2 or isnan(cell) else float(np.interp(cell, self.knots, self.scores))


class RowCorrections:
    """Corrections, laid out for single rows."""

    def __init__(self, corrections: Corrections) -> None:
        self.corrections = corrections
        self.columns = [RowCodes(column) for column in corrections.encoding.columns]
        self.starts = corrections.encoding.starts.tolist()
        self.n_codes, self.n_tokens = corrections.encoding.n_codes, sum(map(len, corrections.tokens))
        self.has_gaussian = any(isinstance(member, GaussianMember) for member in corrections.members)
        if corrections.shares is not None:
            with np.errstate(divide="ignore"):
                self.log_shares = np.log(corrections.shares)[:, None]

    def update_tempering(self, tempering: Tempering) -> None:
        """Use another tempering."""
        self.corrections = replace(self.corrections, tempering=tempering)

    def log_probabilities(self, cells: Sequence[object], evidence: RowEvidence, tokens: Sequence[Array]) -> Array:
        """(classes,): log p(c | x), given the cells that have codes, column by column.

        ``tokens`` are the numbers of the tokens of each text that corrections give a weight to.
        """
        tempering = self.corrections.tempering
        if not self.corrections.members:
            return log_normalise_row(weigh_evidence(tempering, evidence))
        codes = [column.encode(cell) for column, cell in zip(self.columns, cells, strict=True)]
        text_logits = weigh_evidence(tempering, evidence.take_texts())
        features, values = self._list_features(codes, tokens)
        answers = []
        for member in self.corrections.members:
            match member:
                case BaseRateMember():
                    logits = member.log_share
                case LinearMember():
                    logits = self._score_linear(member, codes, features, values) + text_logits
                case GaussianMember():
                    logits = self._score_gaussian(member, features, cells) + text_logits
            answers.append(log_normalise_row(logits))
        return answers[0] if len(answers) == 1 else log_sum_exp(np.stack(answers) + self.log_shares, axis=0)

    def _list_features(self, codes: list[int], tokens: Sequence[Array]) -> tuple[Array, Array]:
        """The features of a row before those of pairs, the codes first, and their values."""
        numbers = [0, *(1 + start + code for start, code in zip(self.starts, codes, strict=False) if code >= 0)]
        features, values = np.array(numbers), np.ones(len(numbers))
        start = 1 + self.n_codes
        for chosen, known in zip(tokens, self.corrections.tokens, strict=False):
            features = np.append(features, start + chosen)
            values = np.append(values, np.full(len(chosen), 1 / np.sqrt(max(len(chosen), 1))))
            start += len(known)
        return features, values

    def _score_linear(self, member: LinearMember, codes: list[int], features: Array, values: Array) -> Array:
        known = slice(None) if member.with_tokens else slice(self._count_codes(codes))
        logits = values[known] @ member.weights[features[known]]
        if len(member.pairs):
            levels = np.array([column.levels[code] for column, code in zip(self.columns, codes, strict=True)])
            first, second = levels[member.pairs[:, 0]], levels[member.pairs[:, 1]]
            start = 1 + self.n_codes + (self.n_tokens if member.with_tokens else 0)
            places = start + np.arange(len(first)) * N_LEVELS**2 + first * N_LEVELS + second
            logits = logits + member.weights[places[(first >= 0) & (second >= 0)]].sum(axis=0)
        return np.asarray(logits)

    def _score_gaussian(self, member: GaussianMember, features: Array, cells: Sequence[object]) -> Array:
        coded = features[features <= self.n_codes]  # (the constant is the class prior, and each code its evidence)
        numbers = [
            column.normal_score(cell if isinstance(cell, float) else np.nan)
            for column, cell in zip(self.columns, cells, strict=True)
            if column.is_number
        ]
        gaussian = member.gaussian
        away = (gaussian.roots @ (np.array(numbers) - gaussian.means)[:, :, None])[:, :, 0]
        density = gaussian.constants - 0.5 * (away * away).sum(axis=1)
        return np.asarray(member.labels[:, coded].sum(axis=1) + member.temperature * density)

    @staticmethod
    def _count_codes(codes: list[int]) -> int:
        """The number of features that are the constant or a code."""
        return 1 + sum(code >= 0 for code in codes)


def weigh_evidence(tempering: Tempering, evidence: RowEvidence) -> Array:
    """(classes,): the evidence of each part by its weight."""
    parts = evidence.parts
    weights = tempering.weights[parts] * evidence.lengths ** -tempering.exponents[parts]
    return np.asarray(subtract_best(evidence.values) @ weights)


def subtract_best(values: Array) -> Array:
    """(classes, parts): each part less its value for its best class, bounded below."""
    best = values.max(axis=0)
    return np.maximum(values - np.where(np.isfinite(best), best, 0.0), MIN_RELATIVE_LOG_LIKELIHOOD)


def step_tempering(tempering: Tempering, evidence: RowEvidence, group: int) -> Tempering:
    """The tempering after one more row, judged by a model that has not learned it: one damped Fisher step.

    What a row says about the weights and exponents is added to the precision of the belief, and the step is the slope
    of the row's log loss divided by it: the more rows a belief rests on, the less one of them moves it.
    """
    parts, values = evidence.parts, subtract_best(evidence.values)
    shrink = evidence.lengths ** -tempering.exponents[parts]
    answer = np.exp(log_normalise_row(values @ (tempering.weights[parts] * shrink)))  # (classes,)
    values = values * shrink
    logs = -np.log(evidence.lengths) * tempering.weights[parts]  # of a value with respect to its exponent
    expected = answer @ values
    slope = expected - values[group]
    spread = answer @ (values * values) - expected * expected
    size = len(tempering.weights)
    precision = tempering.precision.copy()
    precision[parts] += spread
    precision[size + parts] += spread * logs**2
    weights, exponents = tempering.weights.copy(), tempering.exponents.copy()
    weights[parts] -= slope / precision[parts]
    exponents[parts] -= slope * logs / precision[size + parts]
    lowest = np.where(np.arange(size) == 0, -MAX_WEIGHT, 0.0)  # the class prior alone may have any weight
    return Tempering(
        np.clip(weights, lowest, MAX_WEIGHT), np.clip(exponents, -MAX_EXPONENT, MAX_EXPONENT), precision
    )
