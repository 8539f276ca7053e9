"""Corrections of single rows: the same predictions as `Corrections`, without the overhead of NumPy tables.

Codes, levels and weights are looked up in lists and dictionaries that are made once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from priory.calibration.corrections import Corrections
from priory.calibration.members import BaseRateMember, GaussianMember, LinearMember, Member, SlopeMember
from priory.calibration.table_encoding import N_LEVELS, N_TRIPLE_LEVELS, VALUE_BITS, ColumnCodes
from priory.calibration.tempering import MAX_EXPONENT, MAX_WEIGHT, Tempering
from priory.core._kernel import rows as kernel
from priory.core.column_kernels import round_number_to_bits
from priory.core.logspace import log_normalise_row
from priory.core.typing import Array
from priory.model.ledger import MIN_RELATIVE_LOG_LIKELIHOOD
from priory.model.open_model import RowEvidence


class RowCodes:
    """The codes of one column, as lists and dictionaries for single cells."""

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
        """Return the code of a cell, like `ColumnCodes.encode_column`; None and NaN are missing."""
        if cell is None or cell != cell:
            return self.missing
        if not self.is_number:
            return self.code_of_label.get(cell, -1)
        return bisect_right(self.edges, round_number_to_bits(cell, VALUE_BITS))

    def normal_score(self, cell: float) -> float:
        """Return a number as a quantile of the standard normal distribution; 0 if missing."""
        knots, scores = self.knots, self.scores
        if len(knots) < 2 or cell != cell:
            return 0.0
        place = bisect_right(knots, cell)
        if place == 0 or place == len(knots):
            return scores[0] if place == 0 else scores[-1]
        share = (cell - knots[place - 1]) / (knots[place] - knots[place - 1])
        return scores[place - 1] + share * (scores[place] - scores[place - 1])


class RowMember:
    """A regression for single rows: contiguous weights, and the offsets of tokens, pairs and triples."""

    def __init__(self, member: LinearMember, start: int, n_tokens: Sequence[int]) -> None:
        self.weights = np.ascontiguousarray(member.weights, dtype=float)
        self.pairs, self.triples = (np.ascontiguousarray(sets) for sets in (member.pairs, member.triples))
        starts = [start, *(start + np.cumsum(n_tokens if member.with_tokens else [])).tolist()]
        self.text_starts, self.pair_start = starts[:-1], starts[-1]
        self.triple_start = self.pair_start + len(member.pairs) * N_LEVELS**2

    def add_tokens_and_sets(self, tokens: Sequence[Array], levels: Array, triple_levels: Array, logits: Array) -> None:
        """Add the weights of tokens, and of the cells of pairs and triples, to logits (classes,)."""
        for start, chosen in zip(self.text_starts, tokens, strict=False):
            # token features are binary, in rows of norm one
            kernel.add_weights(self.weights, chosen, start, 1 / sqrt(max(len(chosen), 1)), logits)
        if len(self.pairs):
            kernel.add_cells(self.weights, levels, self.pairs, N_LEVELS, self.pair_start, logits)
        if len(self.triples):
            kernel.add_cells(self.weights, triple_levels, self.triples, N_TRIPLE_LEVELS, self.triple_start, logits)


class RowCorrections:
    """Corrections with their weights laid out for single rows."""

    def __init__(self, corrections: Corrections) -> None:
        self.corrections = corrections
        self.columns = [RowCodes(column) for column in corrections.encoding.columns]
        self.starts = (1 + corrections.encoding.starts[:-1]).tolist()
        self.n_codes = corrections.encoding.n_codes
        if corrections.members:
            # (1 + codes, members x classes): one lookup of a code gives the weights of all members
            self.code_weights = np.hstack([self._weigh_codes(member) for member in corrections.members])
            self.scored = [
                (m, member)
                for m, member in enumerate(corrections.members)
                if isinstance(member, GaussianMember | SlopeMember)
            ]
            self.linear = [
                (m, RowMember(member, 1 + self.n_codes, [len(known) for known in corrections.tokens]))
                for m, member in enumerate(corrections.members)
                if isinstance(member, LinearMember) and (member.with_tokens or len(member.pairs) + len(member.triples))
            ]
            self.reads_pairs = any(len(member.pairs) for _, member in self.linear)
            self.reads_triples = any(len(member.triples) for _, member in self.linear)

    def _weigh_codes(self, member: Member) -> Array:
        """(1 + codes, classes): the intercept of a member, and its weight of each code."""
        match member:
            case BaseRateMember():
                return np.concatenate([member.log_share[None], np.zeros((self.n_codes, len(member.log_share)))])
            case LinearMember() | SlopeMember():
                return member.weights[: 1 + self.n_codes]
            case GaussianMember():
                return member.labels.T

    def update_tempering(self, tempering: Tempering) -> None:
        """Replace the tempering."""
        self.corrections = replace(self.corrections, tempering=tempering)

    def log_probabilities(self, cells: Sequence[Any], evidence: RowEvidence | None, tokens: Sequence[Array]) -> Array:
        """(classes,): log p(c | x), given the cells of the columns that have codes.

        ``evidence`` has the log likelihoods of the class prior and the texts; it is needed if there are texts.
        ``tokens`` are the feature indices of each text.
        """
        tempering, pool = self.corrections.tempering, self.corrections.pool
        if pool is None:
            assert evidence is not None
            return log_normalise_row(weigh_evidence(tempering, evidence))
        codes = [column.encode(cell) for column, cell in zip(self.columns, cells, strict=True)]
        features = [0, *(start + code for start, code in zip(self.starts, codes, strict=True) if code >= 0)]
        flat = np.zeros(self.code_weights.shape[1])
        kernel.add_weights(self.code_weights, np.array(features), 0, 1.0, flat)
        logits = flat.reshape(1 + len(pool.exponents), -1)  # (members, classes)
        levels, triple_levels = self._find_levels(codes)
        for m, linear in self.linear:
            linear.add_tokens_and_sets(tokens, levels, triple_levels, logits[m])
        if self.scored:
            scores = self._find_normal_scores(cells)
            for m, scored in self.scored:
                logits[m] += _score_numbers(scored, scores)
        if evidence is not None:
            logits[1:] += weigh_evidence(tempering, evidence.take_texts())  # all members but the base rate
        kernel.mix_members(logits, pool.exponents, pool.share, answer := np.empty(logits.shape[1]))
        return answer

    def _find_levels(self, codes: list[int]) -> tuple[Array, Array]:
        """(columns,) each: the levels of a row's cells for pairs and for triples; empty if not used."""
        pairs = [column.levels[code] for column, code in zip(self.columns, codes, strict=True) if self.reads_pairs]
        triples = [
            column.triple_levels[code] for column, code in zip(self.columns, codes, strict=True) if self.reads_triples
        ]
        return np.array(pairs, dtype=np.int64), np.array(triples, dtype=np.int64)

    def _find_normal_scores(self, cells: Sequence[Any]) -> Array:
        """(numbers,): the normal scores of a row."""
        numbers = ((column, cell) for column, cell in zip(self.columns, cells, strict=True) if column.is_number)
        return np.array([column.normal_score(cell) for column, cell in numbers])


def _score_numbers(member: GaussianMember | SlopeMember, scores: Array) -> Array:
    """(classes,): the logits of a row's normal scores (numbers,)."""
    if isinstance(member, SlopeMember):
        return np.asarray(scores @ member.slopes)
    gaussian = member.gaussian
    # (classes, numbers): the whitened distance from each mean
    away = (gaussian.roots @ (scores - gaussian.means)[:, :, None])[:, :, 0]
    return np.asarray(member.temperature * (gaussian.constants - 0.5 * (away * away).sum(axis=1)))


def weigh_evidence(tempering: Tempering, evidence: RowEvidence) -> Array:
    """(classes,): the sum of the weighted log likelihoods of the parts."""
    logits = np.zeros(len(evidence.values))
    kernel.weigh_parts(
        evidence.values,
        evidence.parts,
        evidence.lengths,
        tempering.weights,
        tempering.exponents,
        MIN_RELATIVE_LOG_LIKELIHOOD,
        logits,
    )
    return logits


def step_tempering(tempering: Tempering, evidence: RowEvidence, group: int, count: float = 1.0) -> Tempering:
    """Return the tempering after one more row, by one damped Fisher scoring step.

    ``evidence`` comes from a model that has not learned the row. The row's Fisher information about weights and
    exponents is added to the precision, and the step is the gradient of its log loss divided by the precision: the more
    rows were learned, the smaller the step. The row occurs ``count`` times.
    """
    stepped = Tempering(tempering.weights.copy(), tempering.exponents.copy(), tempering.precision.copy())
    kernel.step_parts(
        evidence.values,
        evidence.parts,
        evidence.lengths,
        group,
        count,
        MIN_RELATIVE_LOG_LIKELIHOOD,
        MAX_WEIGHT,
        MAX_EXPONENT,
        stepped.weights,
        stepped.exponents,
        stepped.precision,
    )
    return stepped
