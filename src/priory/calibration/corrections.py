"""Fitted corrections of a model: tempered evidence, ensemble members, and the weights of their pool.

They are fitted to out-of-fold predictions, and are a pure function of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from priory.bag_of_words.token_features import TokenFeatures
from priory.calibration.members import (
    BaseRateMember,
    CorrectionRows,
    GaussianMember,
    LinearMember,
    Member,
    SlopeMember,
)
from priory.calibration.pooling import MemberPool
from priory.calibration.table_encoding import TableEncoding
from priory.calibration.tempering import Tempering
from priory.core.registration import register_record
from priory.core.typing import Array

NO_CODES = TableEncoding(())


@register_record("FittedCorrections")
@dataclass(frozen=True, eq=False)
class Corrections:
    """A tempering and an ensemble of members; without members, the prediction is the tempered model's."""

    tempering: Tempering
    encoding: TableEncoding = NO_CODES
    members: tuple[Member, ...] = ()
    pool: MemberPool | None = None
    tokens: tuple[TokenFeatures, ...] = ()  # the features of each text, if a member uses them

    def find_fault(self) -> str | None:
        if self.members and (self.pool is None or 1 + len(self.pool.exponents) != len(self.members)):
            return "there is not one exponent for each member"
        if self.members and not isinstance(self.members[0], BaseRateMember):
            return "its first member is not the base rate"
        return next((fault for member in self.members if (fault := self._find_fault_of(member))), None)

    def _find_fault_of(self, member: Member) -> str | None:
        columns, codes = len(self.encoding.columns), self.encoding.n_codes
        numbers = sum(column.is_number for column in self.encoding.columns)
        match member:
            case LinearMember():
                if max(member.pairs.max(initial=-1), member.triples.max(initial=-1)) >= columns:
                    return "a pair or a triple is of a column that is not there"
            case SlopeMember():
                if (len(member.weights), len(member.slopes)) != (1 + codes, numbers):
                    return "slopes are of other columns"
            case GaussianMember():
                if (member.gaussian.means.shape[1], member.labels.shape[1]) != (numbers, 1 + codes):
                    return "a Gaussian is of other columns"
        return None

    def fits_model(self, n_classes: int, n_parts: int, columns: Sequence[int]) -> bool:
        """Whether the shapes match a model of this size; ``columns`` has the width of each block, zero for a text."""
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
            case SlopeMember():
                return member.weights.shape[1] == n_classes
            case GaussianMember():
                return len(member.labels) == n_classes

    @property
    def reads_tokens(self) -> bool:
        """Whether a member uses the tokens of texts."""
        return any(isinstance(member, LinearMember) and member.with_tokens for member in self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds of corrections that were fitted."""
        linear = [member for member in self.members if isinstance(member, LinearMember)]
        together = any(isinstance(member, GaussianMember) for member in self.members) or any(
            len(member.pairs) + len(member.triples) for member in linear
        )
        refined = any(member.is_refined for member in linear) or any(
            isinstance(member, SlopeMember) for member in self.members
        )
        return ("tempering", *(["structure"] if together else []), *(["refinement"] if refined else []))

    @property
    def reads_scores(self) -> bool:
        """Whether a member uses the normal scores of numbers."""
        return any(isinstance(member, GaussianMember | SlopeMember) for member in self.members)

    def log_probabilities(self, rows: CorrectionRows) -> Array:
        """(rows, classes): log p(c | x), by the pool of all members."""
        assert self.pool is not None
        return self.pool.mix_answers([member.log_probabilities(rows, self.encoding) for member in self.members])
