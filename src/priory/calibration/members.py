"""Members, each one way to answer: regressions and the Gaussian of all numbers; and the geometric pool of members.

    p(c | x)  =  share  Π_m p_m(c | x)^exponent_m / Z  +  (1 - share) p(c),      Σ_m exponent_m = 1

A geometric mean lets a member that is sure of itself decide, and never makes the pool surer than its members. Exponents
and share are fitted to answers to rows left out. The base rate is the fallback.

A member answers from what a table encoding makes of a row, from the tempered evidence of its codes, which follows the
counts of all rows, and from what it has fitted to the kept rows. The evidence of texts and of rare labels is in every
member: kept rows are too few to weigh a rare label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence
from priory.calibration.encoded_rows import EncodedRows
from priory.calibration.logit_terms import (
    CellTable,
    CodeTable,
    LogitParts,
    LogitTerm,
    TokenWeightTable,
    split_codes,
    split_pairs,
)
from priory.calibration.table_encoding import N_LEVELS, TableEncoding
from priory.core.sparse_rows import SparseRows, pad_columns
from priory.core.statistics import register_record

MAX_LOGIT_WEIGHT = 1e6  # far above any fitted weight; sums of weights stay finite


class Member(ABC):
    """One way to answer. Members are registered records; they are checked, and list the terms of their logits."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """The kinds of corrections that it brings."""

    @property
    def reads_tokens(self) -> bool:
        """Whether it uses the tokens of texts."""
        return False

    @abstractmethod
    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        """Describe why it cannot answer rows of this encoding; None if it can."""

    @abstractmethod
    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        """List the terms of its logits, without the tempered evidence of texts."""

    @abstractmethod
    def split_logits(self, rows: EncodedRows) -> LogitParts:
        """Split its logits into columns, texts and sets of columns, without the tempered evidence of texts."""


@register_record("MemberPool", axes={"exponents": "b"})
@dataclass(frozen=True, eq=False)
class MemberPool:
    """The exponent of each member, and their share against the base rate."""

    exponents: Array  # (members,)
    share: float  # of the pooled members; the base rate has the rest

    def find_fault(self) -> str | None:
        if not ((self.exponents >= 0).all() and np.isclose(self.exponents.sum(), 1.0)):
            return "its exponents do not add up to one"
        return None if 0 <= self.share <= 1 else "its share is not from 0 to 1"

    def mix_base_rate(self, pooled: Array, base: Array) -> Array:
        """(rows, classes): the mixed log probabilities, from the pooled ones and the base rate."""
        with np.errstate(divide="ignore"):
            return np.logaddexp(pooled + np.log(self.share), base + np.log(1 - self.share))


# -- regressions -------------------------------------------------------------------------------------------------------


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
        features = 1 + encoding.n_weighed + (n_tokens if self.with_tokens else 0) + len(self.pairs) * N_LEVELS**2
        return None if self.weights.shape == (features, n_classes) else "there is not one weight for each feature"

    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        # the weights of codes, of the tokens of all texts, and of the cells of pairs follow each other
        tokens, cells = 1 + encoding.n_weighed, len(self.weights) - len(self.pairs) * N_LEVELS**2
        terms: list[LogitTerm] = [CodeTable(self.weigh_codes(encoding, evidence))]
        terms += [TokenWeightTable(self.weights[tokens:cells])] if self.with_tokens else []
        return terms + ([CellTable(self.pairs, self.weights[cells:])] if len(self.pairs) else [])

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        parts = split_codes(rows, self.weigh_codes(rows.encoding, rows.evidence))
        start = 1 + rows.encoding.n_weighed
        for t, tokens in enumerate(rows.tokens if self.with_tokens else ()):
            weights = pad_columns(self.weights[start : start + tokens.width])
            parts.texts[:, :, t] = tokens.multiply(weights)[:, : self.weights.shape[1]]
            start += tokens.width
        return parts.add(split_pairs(rows, self.pairs, self.weights[start:])) if len(self.pairs) else parts

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return evidence.temper_codes(encoding) + encoding.place_weights(self.weights[: 1 + encoding.n_weighed])
