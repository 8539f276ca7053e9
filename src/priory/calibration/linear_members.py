"""Linear members: regressions on codes, tokens and pairs of columns, or on numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence
from priory.calibration.logit_parts import LogitParts, add_columns, split_codes, split_pairs
from priory.calibration.logit_terms import CellTable, CodeTable, LogitTerm, Slopes, TokenWeightTable
from priory.calibration.members import MAX_LOGIT_WEIGHT, EncodedRows, Member
from priory.calibration.solvers import pad_columns
from priory.calibration.table_encoding import N_LEVELS, TableEncoding
from priory.core.sparse_rows import SparseRows
from priory.core.statistics import register_record

NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


def make_constant(rows: int) -> SparseRows:
    """(rows, 1): the constant feature of the intercept."""
    return SparseRows(np.arange(rows + 1, dtype=np.int64), np.zeros(rows, np.int32), None, 1)


def find_largest_weight_fault(*weights: Array) -> str | None:
    """Describe weights that are too large; None if there are none."""
    largest = max(np.abs(table).max(initial=0.0) for table in weights)
    return "a weight is too large" if largest > MAX_LOGIT_WEIGHT else None


@register_record("LinearMember", dtypes={"pairs": "i8"}, axes={"weights": "vc", "pairs": "rk"})
@dataclass(frozen=True, eq=False)
class LinearMember(Member):
    """A logistic regression on codes, optional tokens, and pairs of columns, on tempered naive Bayes.

    Its weights are added to the tempered evidence of the class prior, of codes and of texts.
    """

    weights: Array  # (features, classes)
    pairs: Array  # (pairs, 2): columns
    with_tokens: bool

    @property
    def reads_tokens(self) -> bool:
        return self.with_tokens

    @property
    def kinds(self) -> tuple[str, ...]:
        together = ["structure"] if len(self.pairs) else []
        return (*together, *(["refinement"] if self.weights.any() else []))

    def find_fault(self) -> str | None:
        if self.pairs.shape[1:] != (2,) or self.pairs.min(initial=0) < 0:
            return "a pair is not two columns"
        return find_largest_weight_fault(self.weights)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        if self.pairs.max(initial=-1) >= len(encoding.columns):
            return "a pair is of a column that is not there"
        features = 1 + encoding.n_codes + (n_tokens if self.with_tokens else 0) + len(self.pairs) * N_LEVELS**2
        return None if self.weights.shape == (features, n_classes) else "there is not one weight for each feature"

    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        # the weights of codes, of the tokens of all texts, and of the cells of pairs follow each other
        tokens, cells = 1 + encoding.n_codes, len(self.weights) - len(self.pairs) * N_LEVELS**2
        terms: list[LogitTerm] = [CodeTable(self.weigh_codes(encoding, evidence))]
        terms += [TokenWeightTable(self.weights[tokens:cells])] if self.with_tokens else []
        return terms + ([CellTable(self.pairs, self.weights[cells:])] if len(self.pairs) else [])

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        parts = split_codes(rows, self.weigh_codes(rows.encoding, rows.evidence))
        start = 1 + rows.encoding.n_codes
        for t, tokens in enumerate(rows.tokens if self.with_tokens else ()):
            weights = pad_columns(self.weights[start : start + tokens.width])
            parts.texts[:, :, t] = tokens.multiply(weights)[:, : self.weights.shape[1]]
            start += tokens.width
        return parts.add(split_pairs(rows, self.pairs, self.weights[start:])) if len(self.pairs) else parts

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return evidence.temper_codes(encoding) + self.weights[: 1 + encoding.n_codes]


@register_record("SlopeMember", axes={"weights": "vc", "slopes": "dc"})
@dataclass(frozen=True, eq=False)
class SlopeMember(Member):
    """A logistic regression on labels and on numbers, as normal scores or standardised, centred on zero."""

    weights: Array  # (1 + codes, classes): the intercept, and the weight of each label
    slopes: Array  # (numbers, classes)
    of_scores: bool  # whether numbers are normal scores; else they are standardised

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("refinement",)

    def find_fault(self) -> str | None:
        return find_largest_weight_fault(self.weights, self.slopes)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        fits = (self.weights.shape, len(self.slopes)) == ((1 + encoding.n_codes, n_classes), encoding.n_numbers)
        return None if fits else "slopes are of other columns"

    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        return [CodeTable(self.weights), Slopes(self.slopes, self.of_scores)]

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        added = (rows.scores if self.of_scores else rows.standardised)[
            :, None, :
        ] * self.slopes.T  # (rows, classes, numbers); their mean is zero
        return add_columns(split_codes(rows, self.weights), np.flatnonzero(rows.encoding.is_number), added)
