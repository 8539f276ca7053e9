"""Corrections: what rows that the model judged without having learned them teach it about itself.

A *voice* is a model of how columns go together (none at all; one by one, tempered; each depending on another) with or
without a refinement. The voices vote, and a voice weighs as much as its honest answers deserve:

    p(c | x)  =  Σ_v  share_v  p_v(c | x)

Corrections are fitted to rows, so they are no part of the statistics: when rows are forgotten they are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from priory.calibration import refinement, tempering
from priory.calibration.aode import PairCounts
from priory.calibration.feature_encoding import TableEncoding
from priory.calibration.tempering import EvidenceTerms, Tempering
from priory.core.logspace import log_normalise, log_sum_exp
from priory.core.optimize import minimise_lbfgs
from priory.core.registration import register_record
from priory.core.typing import Array


class CorrectionRows(NamedTuple):
    """Rows as corrections see them."""

    terms: EvidenceTerms  # what each part of the model says; of a row it has learned, without that row
    cells: list[Any]
    encoding: TableEncoding | None
    tokens: Callable[[], list[csr_array]]  # the tokens of texts, as sparse rows

    def codes(self) -> tuple[Array, Array]:
        """Each cell as one of a few values, and how many values each column has."""
        assert self.encoding is not None
        return self.encoding.codes(self.cells), self.encoding.sizes

    def features(self, include_pairs: bool) -> csr_array:
        """What a refinement is fitted to."""
        assert self.encoding is not None
        columns = [self.encoding.features(self.cells, include_pairs)] if len(self.encoding.sizes) else []
        return hstack([*columns, *self.tokens()], format="csr")


class MemberSpec(NamedTuple):
    """What a voice is made of."""

    centre: str  # "base": the class prior; "naive": tempered naive Bayes; "aode": tempered one-dependence
    features: str = ""  # of its refinement: none, "columns" or "pairs"


@register_record("Voice")
@dataclass(frozen=True, eq=False)
class StackMember:
    """One model, and its refinement D (features, classes) if it has one."""

    centre: str
    features: str
    corrections: Array | None


@register_record("Honest", finite=False)
@dataclass(frozen=True, eq=False)
class OutOfFoldAnswers:
    """What was said of rows by corrections that were not fitted to them: log probabilities, the truth, row weights."""

    answers: Array
    truth: Array
    weight: Array


@register_record("Corrections", former_names={"voices": "members", "honest": "out_of_fold"})
@dataclass(frozen=True, eq=False)
class Corrections:
    """A tempering, and the voices that vote."""

    tempering: Tempering
    members: tuple[StackMember, ...] = ()
    shares: Array | None = None
    pairs: PairCounts | None = None
    pairs_tempering: Tempering | None = None
    encoding: TableEncoding | None = None
    out_of_fold: OutOfFoldAnswers | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What there is besides the statistics."""
        refined = any(voice.corrections is not None for voice in self.members)
        found = ("tempering", "structure" if self.pairs is not None else "", "refinement" if refined else "")
        return tuple(name for name in found if name)

    def log_probabilities(self, rows: CorrectionRows) -> Array:
        """log p(c | x) of each row."""
        if not self.members or self.shares is None:
            return log_normalise(self.tempering.logits(rows.terms))
        spoken, features = [], cache(rows.features)
        for voice, share in zip(self.members, self.shares, strict=True):
            if share > 0:
                logits = self._base_logits(voice.centre, rows)
                if voice.corrections is not None:
                    logits = logits + features(voice.features == "pairs") @ voice.corrections
                spoken.append(log_normalise(logits) + np.log(share))
        return spoken[0] if len(spoken) == 1 else log_sum_exp(np.stack(spoken), axis=0)

    def _base_logits(self, name: str, rows: CorrectionRows) -> Array:
        if name == "base":
            return np.asarray(rows.terms.values[:, :, 0])
        if name == "naive":
            return self.tempering.logits(rows.terms)
        assert self.pairs is not None
        assert self.pairs_tempering is not None
        return self.pairs_tempering.logits(make_single_term(self.pairs.log_joint(rows.codes()[0])))


def fit_corrections(
    rows: CorrectionRows, group: Array, weight: Array, fold: Array, member_specs: Sequence[MemberSpec]
) -> Corrections:
    """Corrections from rows the model has learned; voices nobody would listen to are left out."""
    tempered = tempering.choose_tempering(rows.terms, group, weight, fold)
    naive = tempered.tempering.logits(rows.terms)
    centres = {"base": np.asarray(rows.terms.values[:, :, 0]), "naive": log_normalise(naive)}
    honest = {"base": log_normalise(centres["base"]), "naive": tempered.out_of_fold}
    pairs = pairs_tempering = None
    if any(kind.centre == "aode" for kind in member_specs):
        codes, sizes = rows.codes()
        pairs = PairCounts.of(codes, sizes, group, centres["base"].shape[1], weight)
        alone = make_single_term(pairs.log_joint(codes, group))
        pairs_tempering, honest["aode"] = tempering.choose_tempering(alone, group, weight, fold)
        centres["aode"] = log_normalise(pairs_tempering.logits(alone))
    voices, answers, features = [], [], cache(rows.features)
    for kind in member_specs:
        if not kind.features:
            voices.append(StackMember(kind.centre, "", None))
            answers.append(honest[kind.centre])
            continue
        x = features(kind.features == "pairs")
        found = refinement.choose_refinement(x, centres[kind.centre], group, weight, fold)
        voices.append(StackMember(kind.centre, kind.features, found.corrections))
        answers.append(found.out_of_fold)
    judged = np.flatnonzero(fold >= 0)
    answers, group, weight = [a[judged] for a in answers], group[judged], weight[judged]
    shares = fit_member_shares(answers, group, weight)
    heard = shares >= MIN_MEMBER_SHARE
    shares = np.where(heard, shares, 0.0) / shares[heard].sum()
    vote = log_sum_exp(np.stack([a + np.log(s) for a, s in zip(answers, shares, strict=True) if s > 0]), axis=0)
    needed = any(v.centre == "aode" for v, s in zip(voices, shares, strict=True) if s > 0)
    return Corrections(
        tempered.tempering,
        tuple(voice for voice, s in zip(voices, shares, strict=True) if s > 0),
        shares[heard],
        pairs if needed else None,
        pairs_tempering if needed else None,
        rows.encoding,
        OutOfFoldAnswers(log_normalise(vote), group, weight),
    )


MIN_MEMBER_SHARE = 1e-3  # a share not worth the asking


def make_single_term(joint: Array) -> EvidenceTerms:
    """One part that says it all."""
    return EvidenceTerms(joint[:, :, None], np.ones((len(joint), 1)))


def fit_member_shares(answers: Sequence[Array], group: Array, weight: Array) -> Array:
    """The shares under which the vote has the best honest log score; a Dirichlet prior worth one row keeps all in."""
    if len(answers) == 1:
        return np.ones(1)
    own = np.exp(np.stack([a[np.arange(len(group)), group] for a in answers], axis=1))

    def cost(u: Array) -> tuple[float, Array]:
        share = np.exp(log_normalise(u[None])[0])
        mixed = np.maximum(own @ share, 1e-300)
        pull = share * ((own / mixed[:, None]).T @ weight) - share * weight.sum()
        prior = 1 / len(share) - share
        return float(-weight @ np.log(mixed) - log_normalise(u[None]).mean()), -(pull + prior)

    best = minimise_lbfgs(cost, np.zeros(len(answers)), 1000, exact=True)
    return np.asarray(np.exp(log_normalise(best[None])[0]))
