"""Corrections: what a model learns about itself from its answers to rows that it had not learned.

A *member* is a model of how columns go together (not at all; independent given the class, tempered; each depending on
another one) with or without a refinement. The members vote, each with a share that its out-of-fold answers have earned:

    p(c | x)  =  Σ_m  share_m  p_m(c | x)

Corrections are fitted to rows, so they are not part of the statistics: when rows are forgotten they are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from priory.calibration.aode import PairCounts
from priory.calibration.feature_encoding import TableEncoding
from priory.calibration.refinement import choose_refinement
from priory.calibration.tempering import Tempering, choose_tempering
from priory.core.logspace import log_normalise, log_sum_exp
from priory.core.optimize import minimise_lbfgs
from priory.core.registration import register_record
from priory.core.typing import Array
from priory.models.cells import Cells
from priory.models.evidence_terms import EvidenceTerms

MAX_REFINEMENT = 1e100  # far above any fitted correction: sums of corrections stay finite
LOG_PROBABILITY_TOLERANCE = 1e-6  # how far rounding may lift the logarithm of a probability above zero
MIN_MEMBER_SHARE = 1e-3  # members with less are left out


CentreName = Literal["base", "naive", "aode"]  # the class prior; tempered naive Bayes; tempered one-dependence
FeatureName = Literal["", "columns", "pairs"]  # of a refinement; "" for none


class CorrectionRows(NamedTuple):
    """Rows as corrections see them."""

    terms: EvidenceTerms  # what each part of the model says; for a learned row, from the model without it
    cells: list[Cells]
    encoding: TableEncoding | None
    tokens: Callable[[], list[csr_array]]  # the tokens of texts, as sparse rows

    def codes(self) -> Array:
        """(rows, columns): each cell as one of a few codes."""
        assert self.encoding is not None
        return self.encoding.codes(self.cells)

    def features(self, include_pairs: bool) -> csr_array:
        """(rows, features): what a refinement is fitted to."""
        assert self.encoding is not None
        columns = [self.encoding.features(self.cells, include_pairs)] if len(self.encoding.sizes) else []
        return hstack([*columns, *self.tokens()], format="csr")


class MemberSpec(NamedTuple):
    """What a member is made of."""

    centre: CentreName
    features: FeatureName = ""


@register_record("Voice")
@dataclass(frozen=True, eq=False)
class StackMember:
    """A fitted member: its centre, and its refinement (features, classes) if it has one."""

    centre: CentreName
    features: FeatureName
    corrections: Array | None

    def find_fault(self) -> str | None:
        if (self.corrections is None) != (not self.features):
            return "it has a refinement without features, or features without a refinement"
        if self.corrections is not None and np.abs(self.corrections).max(initial=0.0) > MAX_REFINEMENT:
            return "a correction is too large"
        return None


@register_record(
    "Honest",
    axes={"answers": "rc", "truth": "r", "weight": "r"},
    dtypes={"truth": ""},
    finite=False,
)
@dataclass(frozen=True, eq=False)
class OutOfFoldAnswers:
    """Answers to rows by corrections that were not fitted to them."""

    answers: Array  # (rows, classes): log probabilities
    truth: Array  # (rows,): class numbers
    weight: Array  # (rows,)

    def find_fault(self) -> str | None:
        if self.truth.dtype.kind not in "iu" or not np.isin(self.truth, np.arange(self.answers.shape[1])).all():
            return "a row is of no class"
        if np.isnan(self.answers).any() or self.answers.max(initial=0.0) > LOG_PROBABILITY_TOLERANCE:
            return "an answer is not the logarithm of a probability"
        return None if ((self.weight >= 0) & (self.weight < np.inf)).all() else "a weight is negative or not finite"


@register_record("Corrections", former_names={"voices": "members", "honest": "out_of_fold"})
@dataclass(frozen=True, eq=False)
class Corrections:
    """A tempering, and the members that vote."""

    tempering: Tempering
    members: tuple[StackMember, ...] = ()
    shares: Array | None = None
    pairs: PairCounts | None = None
    pairs_tempering: Tempering | None = None
    encoding: TableEncoding | None = None
    out_of_fold: OutOfFoldAnswers | None = None

    def find_fault(self) -> str | None:
        if self.members and (self.shares is None or not _are_shares(self.shares, len(self.members))):
            return "there is not one share for each member"
        refined = any(member.corrections is not None for member in self.members)
        if (refined or self.pairs is not None) and self.encoding is None:
            return "it does not say how cells become features"
        if any(member.centre == "aode" for member in self.members) and (
            self.pairs is None or self.pairs_tempering is None or len(self.pairs_tempering.weights) != 1
        ):
            return "pairs of values were not counted"
        sizes = self.encoding.sizes if self.encoding is not None else ()
        if self.pairs is not None and not np.array_equal(self.pairs.sizes, sizes):
            return "pairs were counted of other values"
        return None

    def fits_model(self, n_classes: int, n_parts: int, columns: Sequence[int], n_tokens: int) -> bool:
        """Whether these corrections are for a model of this size.

        ``columns`` are the numbers of columns of each block, zero for a text; ``n_tokens`` those of all texts.
        """
        temperings = len(self.tempering.weights) == 1 + n_parts
        encoded = self.encoding is None or [len(block) for block in self.encoding.blocks] == list(columns)
        pairs = self.pairs is None or len(self.pairs.n) == n_classes
        judged = self.out_of_fold is None or self.out_of_fold.answers.shape[1] == n_classes
        return (
            temperings
            and encoded
            and pairs
            and judged
            and all(
                member.corrections is None
                or member.corrections.shape == (self._count_features(member.features == "pairs") + n_tokens, n_classes)
                for member in self.members
            )
        )

    def _count_features(self, include_pairs: bool) -> int:
        """The number of features that the encoding makes of a row."""
        return 0 if self.encoding is None else self.encoding.count_features(include_pairs)

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds of corrections there are."""
        refined = any(member.corrections is not None for member in self.members)
        found = ("tempering", "structure" if self.pairs is not None else "", "refinement" if refined else "")
        return tuple(name for name in found if name)

    def log_probabilities(self, rows: CorrectionRows) -> Array:
        """(rows, classes): log p(c | x)."""
        if not self.members or self.shares is None:
            return log_normalise(self.tempering.logits(rows.terms))
        answers, features = [], cache(rows.features)
        for member in self.members:
            logits = self._centre_logits(member.centre, rows)
            if member.corrections is not None:
                logits = logits + features(member.features == "pairs") @ member.corrections
            answers.append(log_normalise(logits))
        return mix_answers(answers, self.shares)

    def _centre_logits(self, name: str, rows: CorrectionRows) -> Array:
        if name == "base":
            return np.asarray(rows.terms.values[:, :, 0])
        if name == "naive":
            return self.tempering.logits(rows.terms)
        assert self.pairs is not None
        assert self.pairs_tempering is not None
        return self.pairs_tempering.logits(make_single_term(self.pairs.log_joint(rows.codes())))


class Centres(NamedTuple):
    """The centres that refinements start from: their answers to learned rows, in sample and out of fold."""

    tempering: Tempering
    answers: dict[str, Array]
    out_of_fold: dict[str, Array]
    pairs: PairCounts | None = None
    pairs_tempering: Tempering | None = None


def fit_corrections(
    rows: CorrectionRows, group: Array, weight: Array, fold: Array, member_specs: Sequence[MemberSpec]
) -> Corrections:
    """Corrections fitted to rows that the model has learned; rows whose fold is negative are never judged."""
    centres = _fit_centres(rows, group, weight, fold, any(spec.centre == "aode" for spec in member_specs))
    members, answers = _fit_members(rows, group, weight, fold, member_specs, centres)
    judged = np.flatnonzero(fold >= 0)
    answers, truth, weight = [a[judged] for a in answers], group[judged], weight[judged]
    shares = fit_member_shares(answers, truth, weight)
    kept = np.flatnonzero(shares >= MIN_MEMBER_SHARE)
    shares = shares[kept] / shares[kept].sum()
    members = [members[k] for k in kept]
    vote = mix_answers([answers[k] for k in kept], shares)
    uses_pairs = any(member.centre == "aode" for member in members)
    return Corrections(
        centres.tempering,
        tuple(members),
        shares,
        centres.pairs if uses_pairs else None,
        centres.pairs_tempering if uses_pairs else None,
        rows.encoding,
        OutOfFoldAnswers(log_normalise(vote), truth, weight),
    )


def _fit_centres(rows: CorrectionRows, group: Array, weight: Array, fold: Array, with_pairs: bool) -> Centres:
    chosen = choose_tempering(rows.terms, group, weight, fold)
    prior = np.asarray(rows.terms.values[:, :, 0])
    answers = {"base": prior, "naive": log_normalise(chosen.tempering.logits(rows.terms))}
    out_of_fold = {"base": log_normalise(prior), "naive": chosen.out_of_fold}
    if not with_pairs:
        return Centres(chosen.tempering, answers, out_of_fold)
    assert rows.encoding is not None
    codes = rows.codes()
    pairs = PairCounts.of(codes, rows.encoding.sizes, group, prior.shape[1], weight)
    term = make_single_term(pairs.log_joint(codes, group))
    pairs_tempering, out_of_fold["aode"] = choose_tempering(term, group, weight, fold)
    answers["aode"] = log_normalise(pairs_tempering.logits(term))
    return Centres(chosen.tempering, answers, out_of_fold, pairs, pairs_tempering)


def _fit_members(
    rows: CorrectionRows,
    group: Array,
    weight: Array,
    fold: Array,
    member_specs: Sequence[MemberSpec],
    centres: Centres,
) -> tuple[list[StackMember], list[Array]]:
    """Each member, and its out-of-fold answers (rows, classes)."""
    members, answers, features = [], [], cache(rows.features)
    for spec in member_specs:
        if not spec.features:
            members.append(StackMember(spec.centre, "", None))
            answers.append(centres.out_of_fold[spec.centre])
            continue
        x = features(spec.features == "pairs")
        refinement = choose_refinement(x, centres.answers[spec.centre], group, weight, fold)
        members.append(StackMember(spec.centre, spec.features, refinement.corrections))
        answers.append(refinement.out_of_fold)
    return members, answers


def _are_shares(shares: Array, members: int) -> bool:
    """Whether there is one positive share for each member, and they add up to one."""
    return shares.shape == (members,) and bool((shares > 0).all()) and bool(np.isclose(shares.sum(), 1.0))


def make_single_term(joint: Array) -> EvidenceTerms:
    """log p(c, x) (rows, classes) as evidence of one part."""
    return EvidenceTerms(joint[:, :, None], np.ones((len(joint), 1)))


def mix_answers(answers: Sequence[Array], shares: Array) -> Array:
    """The log of the mixture of members' answers, each (rows, classes), by their shares."""
    if len(answers) == 1:
        return answers[0]
    return log_sum_exp(np.stack(answers) + np.log(shares)[:, None, None], axis=0)


def fit_member_shares(answers: Sequence[Array], group: Array, weight: Array) -> Array:
    """The shares with the best log score of the vote; a Dirichlet prior worth one row keeps every member in."""
    if len(answers) == 1:
        return np.ones(1)
    own = np.exp(np.stack([a[np.arange(len(group)), group] for a in answers], axis=1))  # (rows, members)

    def cost(u: Array) -> tuple[float, Array]:
        share = np.exp(log_normalise(u[None])[0])
        mixed = np.maximum(own @ share, 1e-300)
        pull = share * ((own / mixed[:, None]).T @ weight) - share * weight.sum()
        prior = 1 / len(share) - share
        return float(-weight @ np.log(mixed) - log_normalise(u[None]).mean()), -(pull + prior)

    best = minimise_lbfgs(cost, np.zeros(len(answers)), 1000, exact=True)
    return np.asarray(np.exp(log_normalise(best[None])[0]))
