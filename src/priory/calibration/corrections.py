"""Corrections: what a model learns about itself from its answers to rows that it had not learned.

Members vote: the base rate; a regression on the codes of columns and the tokens of texts, centred on tempered naive
Bayes; the same with pairs of columns; and a Gaussian of all numbers. Corrections are a function of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from priory.bag_of_words.token_features import TokenFeatures
from priory.calibration.gaussian_member import ScoreGaussian
from priory.calibration.pair_choice import encode_pairs
from priory.calibration.table_encoding import N_LEVELS, TableEncoding, make_one_hot
from priory.calibration.tempering import Tempering
from priory.calibration.voting import mix_answers
from priory.core.logspace import log_normalise
from priory.core.registration import register_record
from priory.core.sparse_rows import SparseRows, join_columns, pad_to_lane
from priory.core.typing import Array
from priory.models.cells import Cells

MAX_LOGIT_WEIGHT = 1e6  # far above any fitted weight: sums of weights stay finite
NO_CODES = TableEncoding(())


class CorrectionRows(NamedTuple):
    """Rows as members see them."""

    codes: Array  # (rows, columns)
    levels: Array  # (rows, columns)
    scores: Array  # (rows, columns of numbers): normal scores
    text_logits: Array  # (rows, classes): the tempered evidence of texts
    tokens: Callable[[], list[scipy.sparse.csr_array]]  # the tokens of texts, as sparse rows


def make_constant(rows: int) -> SparseRows:
    """(rows, 1): a one for every row."""
    return SparseRows(np.arange(rows + 1, dtype=np.int64), np.zeros(rows, np.int32), None, 1)


def make_features(rows: CorrectionRows, starts: Array, pairs: Array, with_tokens: bool) -> SparseRows:
    """(rows, features): a one for every row, the codes of columns, the tokens of texts, the cells of pairs."""
    parts = [make_constant(len(rows.codes)), make_one_hot(rows.codes, starts)]
    if with_tokens:
        parts += [SparseRows.from_csr(tokens) for tokens in rows.tokens()]
    if len(pairs):
        parts.append(encode_pairs(rows.levels, pairs))
    return join_columns(parts)


@register_record("BaseRate", axes={"log_share": "c"})
@dataclass(frozen=True, eq=False)
class BaseRateMember:
    """The share of each class, whatever the row."""

    log_share: Array  # (classes,)

    def log_probabilities(self, rows: CorrectionRows, encoding: TableEncoding) -> Array:
        return np.repeat(log_normalise(self.log_share[None]), len(rows.codes), axis=0)


@register_record("LinearMember", dtypes={"pairs": "i8"}, axes={"weights": "vc", "pairs": "rk"})
@dataclass(frozen=True, eq=False)
class LinearMember:
    """A regression on codes, tokens if there are any, and pairs of columns."""

    weights: Array  # (features, classes)
    pairs: Array  # (pairs, 2): columns
    with_tokens: bool
    is_refined: bool  # beyond its centre, tempered naive Bayes

    def find_fault(self) -> str | None:
        if self.pairs.shape[1:] != (2,) or self.pairs.min(initial=0) < 0:
            return "a pair is not two columns"
        return "a weight is too large" if np.abs(self.weights).max(initial=0.0) > MAX_LOGIT_WEIGHT else None

    def count_features(self, encoding: TableEncoding, n_tokens: int) -> int:
        return 1 + encoding.n_codes + (n_tokens if self.with_tokens else 0) + len(self.pairs) * N_LEVELS**2

    def log_probabilities(self, rows: CorrectionRows, encoding: TableEncoding) -> Array:
        classes = self.weights.shape[1]
        dense = np.zeros((len(self.weights), pad_to_lane(classes)), dtype=np.float32)
        dense[:, :classes] = self.weights
        features = make_features(rows, encoding.starts, self.pairs, self.with_tokens)
        return log_normalise(features.multiply(dense)[:, :classes] + rows.text_logits)


@register_record("GaussianMember", axes={"labels": "cv"})
@dataclass(frozen=True, eq=False)
class GaussianMember:
    """A Gaussian of all numbers, the class prior, and the tempered evidence of labels."""

    gaussian: ScoreGaussian
    temperature: float
    labels: Array  # (classes, 1 + codes): the class prior, and the evidence of each code

    def find_fault(self) -> str | None:
        if len(self.labels) != len(self.gaussian.constants):
            return "labels and numbers are of different classes"
        return None if 0 <= self.temperature < np.inf else "its temperature is not a number from zero"

    def log_probabilities(self, rows: CorrectionRows, encoding: TableEncoding) -> Array:
        base = self.labels[:, 0] + look_up_codes(self.labels[:, 1:], rows.codes, encoding.starts) + rows.text_logits
        return log_normalise(base + self.temperature * self.gaussian.log_densities(rows.scores))


Member = BaseRateMember | LinearMember | GaussianMember


@register_record("FittedCorrections")
@dataclass(frozen=True, eq=False)
class Corrections:
    """A tempering, and the members that vote; without members the tempered model answers."""

    tempering: Tempering
    encoding: TableEncoding = NO_CODES
    members: tuple[Member, ...] = ()
    shares: Array | None = None
    tokens: tuple[TokenFeatures, ...] = ()  # of each text, where a member reads them

    def find_fault(self) -> str | None:
        if self.members and (self.shares is None or not _are_shares(self.shares, len(self.members))):
            return "there is not one share for each member"
        columns = len(self.encoding.columns)
        numbers = sum(column.is_number for column in self.encoding.columns)
        for member in self.members:
            if isinstance(member, LinearMember) and member.pairs.max(initial=-1) >= columns:
                return "a pair is of a column that is not there"
            if isinstance(member, GaussianMember) and (
                member.gaussian.means.shape[1] != numbers or member.labels.shape[1] != 1 + self.encoding.n_codes
            ):
                return "a Gaussian is of other columns"
        return None

    def fits_model(self, n_classes: int, n_parts: int, columns: Sequence[int]) -> bool:
        """Whether these corrections are for a model of this size.

        ``columns`` are the numbers of columns of each block, zero for a text.
        """
        n_texts, n_tokens = list(columns).count(0), sum(map(len, self.tokens))
        if self.reads_tokens and len(self.tokens) != n_texts:
            return False
        if len(self.tempering.weights) != 1 + n_parts:
            return False
        if not self.members:
            return True
        return [len(block) for block in self.encoding.blocks] == list(columns) and all(
            self._fits_member(member, n_classes, n_tokens) for member in self.members
        )

    def _fits_member(self, member: Member, n_classes: int, n_tokens: int) -> bool:
        match member:
            case BaseRateMember():
                return len(member.log_share) == n_classes
            case LinearMember():
                return member.weights.shape == (member.count_features(self.encoding, n_tokens), n_classes)
            case GaussianMember():
                return len(member.labels) == n_classes

    @property
    def reads_tokens(self) -> bool:
        """Whether a member reads the tokens of texts."""
        return any(isinstance(member, LinearMember) and member.with_tokens for member in self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds of corrections there are."""
        linear = [member for member in self.members if isinstance(member, LinearMember)]
        together = any(isinstance(member, GaussianMember) for member in self.members) or any(
            len(member.pairs) for member in linear
        )
        refined = any(member.is_refined for member in linear)
        return ("tempering", *(["structure"] if together else []), *(["refinement"] if refined else []))

    def make_rows(
        self, cells: Sequence[Cells], text_logits: Array, tokens: Callable[[], list[scipy.sparse.csr_array]]
    ) -> CorrectionRows:
        """Cells as members see them."""
        codes = self.encoding.encode(cells)
        has_gaussian = any(isinstance(member, GaussianMember) for member in self.members)
        scores = self.encoding.normal_scores(cells) if has_gaussian else np.zeros((len(codes), 0))
        return CorrectionRows(codes, self.encoding.encode_levels(codes), scores, text_logits, tokens)

    def log_probabilities(self, rows: CorrectionRows) -> Array:
        """(rows, classes): log p(c | x), by vote."""
        assert self.shares is not None
        return mix_answers([member.log_probabilities(rows, self.encoding) for member in self.members], self.shares)


def look_up_codes(table: Array, codes: Array, starts: Array) -> Array:
    """(rows, classes): the sums over the columns of ``table`` (classes, all codes); code -1 adds nothing."""
    dense = np.zeros((table.shape[1], pad_to_lane(len(table))), dtype=np.float32)
    dense[:, : len(table)] = table.T
    return np.asarray(make_one_hot(codes, starts).multiply(dense)[:, : len(table)], dtype=float)


def _are_shares(shares: Array, members: int) -> bool:
    """Whether there is one positive share for each member, and they add up to one."""
    return shares.shape == (members,) and bool((shares > 0).all()) and bool(np.isclose(shares.sum(), 1.0))
