"""Corrections, fitted to a model's answers to rows that it had not learned, and a model together with them.

Corrections are a tempering, members that answer in other ways than naive Bayes, and the pool of their answers. They are
a pure function of the rows. What a model answers is limited by the number of its rows (Laplace's rule of succession).
Had it been right about all n rows, the odds that it is right about the next would be n + 1 : 1, so the classes that are
not the likeliest have 1 / (n + 1) of its probability together, each its share by the base rate:

    p(d | x)  =  max(p_model(d | x), p(d) / (1 - p(c)) / (n + 1)) / Z,      d other than c, the likeliest class

Corrections of single rows are the same predictions, without the overhead of NumPy tables: codes, levels and weights are
looked up in lists and dictionaries that are made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence, count_learned_codes
from priory.calibration.encoded_rows import MAX_ROWS_AT_ONCE, EncodedRow, EncodedRows, GapCompletion, RowCodes
from priory.calibration.logit_terms import LogitTerm, sum_terms
from priory.calibration.members import Member, MemberPool
from priory.calibration.table_encoding import TableEncoding
from priory.core._kernel import rows as kernel
from priory.core.logspace import log, log_normalise, log_normalise_row, log_sum_exp
from priory.core.sparse_rows import SparseRows
from priory.core.statistics import register_record
from priory.model.cells import Cells, take_rows
from priory.model.model_statistics import MIN_RELATIVE_LOG_LIKELIHOOD, EvidenceTerms
from priory.model.open_model import RowEvidence
from priory.text.token_features import TokenFeatures

if TYPE_CHECKING:
    from priory.model.document_model import DocumentModel
    from priory.model.table_model import Model

ROUNDING = 1e-9  # nats; less is a rounding error
MAX_WEIGHT, MAX_EXPONENT = 1e6, 100.0  # far above fitted values; weighted log likelihoods stay finite


@dataclass(frozen=True, eq=False)
class Succession:
    """The bound on the probabilities of a model that has learned ``n_rows`` rows."""

    n_rows: float  # the sum of weights, if rows are weighted or have decayed
    log_prior: Array  # (classes,): the log of the base rate

    @cached_property
    def _base(self) -> Array:
        """(classes,): log p(c)."""
        return log_normalise(self.log_prior)

    @cached_property
    def _rivals(self) -> Array:
        """(classes,): the log of n + 1 times the probability of all other classes."""
        return log(-np.expm1(self._base)) + np.log1p(self.n_rows)

    def limit(self, log_probabilities: Array) -> Array:
        """(..., classes): log p(c | x) within the bound."""
        least = self.find_least(log_probabilities)
        if (log_probabilities >= least).all():
            return log_probabilities
        return log_normalise(np.maximum(log_probabilities, least))

    def find_least(self, log_probabilities: Array) -> Array:
        """(..., classes): the lower bound on each log probability, given the likeliest class; -inf for that class."""
        best = log_probabilities.argmax(axis=-1)[..., None]
        is_best = log_probabilities == log_probabilities.max(axis=-1, keepdims=True)
        return np.where(is_best, -np.inf, self._base - self._rivals[best])

    @property
    def name(self) -> str:
        """The name of its line in a ledger."""
        return f"limit of {self.n_rows:,.6g} row{'' if self.n_rows == 1 else 's'}"

    def limit_answer_lines(self, lines: Array, log_prior: Array, answers: Array) -> Array:
        """(rows, classes, lines + 1): the lines of ledgers, bounded like the answers, and their remainder.

        No line, and no sum of lines, exceeds the largest possible log odds. The remainder is the difference between the
        answers (rows, classes) and the sum of the log prior (classes,) and the lines (rows, classes, lines).
        """
        longest = -self.find_least(answers)[:, :, None]
        own = lines[np.arange(len(lines)), answers.argmax(axis=1)][:, None]  # (rows, 1, lines): of the likeliest class
        with np.errstate(invalid="ignore"):  # inf - inf: impossible in both classes, no evidence
            apart = np.clip(np.nan_to_num(lines - own, nan=0.0, posinf=np.inf, neginf=-np.inf), -longest, longest)
        # shrink all lines of a class alike if their sum exceeds the bound
        total = np.abs(apart.sum(axis=2, keepdims=True))
        apart *= np.minimum(1.0, longest / np.maximum(total, ROUNDING))
        lines = np.where(np.isfinite(own), own, 0.0) + apart
        # the remainder, centred over the classes that are possible
        possible = np.isfinite(answers) & np.isfinite(log_prior)
        missing = np.where(possible, answers, 0.0) - np.where(possible, log_prior, 0.0) - lines.sum(axis=2)
        missing -= np.where(possible, missing, 0.0).sum(axis=1, keepdims=True) / possible.sum(axis=1, keepdims=True)
        missing[~possible | (np.abs(missing) < ROUNDING)] = 0.0
        return np.concatenate([lines, missing[:, :, None]], axis=2)


NO_CODES = TableEncoding(())


@register_record("PartWeights", axes={"weights": "b", "exponents": "b", "precision": "q"})
@dataclass(frozen=True, eq=False)
class Tempering:
    """A Gaussian posterior of weights and exponents: their means, and the precision of each."""

    weights: Array  # (parts,)
    exponents: Array  # (parts,)
    precision: Array  # (2 parts,): of the weights, then of the exponents

    def find_fault(self) -> str | None:
        if len(self.precision) != 2 * len(self.weights):
            return "it does not have one precision for each weight and exponent"
        if self.weights.min(initial=0.0) < 0:
            return "a weight is negative"
        if np.abs(self.weights).max(initial=0.0) > MAX_WEIGHT or np.abs(self.exponents).max(initial=0.0) > MAX_EXPONENT:
            return "a weight or an exponent is too large"
        return "a precision is not positive" if (self.precision <= 0).any() else None

    @classmethod
    def prior(cls, parts: int, strength: float = 10.0) -> Tempering:
        """Return the prior: weights about one with precision ``strength``, exponents about zero with precision one."""
        return cls(np.ones(parts), np.zeros(parts), np.repeat([strength, 1.0], parts))

    def logits(self, terms: EvidenceTerms) -> Array:
        """(rows, classes): log p(c | x), up to a constant of each row."""
        return np.einsum("ncb,nb->nc", terms.relative_to_best, self.part_weights(terms.lengths))

    def weigh_texts(self, terms: EvidenceTerms, text_parts: Array) -> Array:
        """(rows, classes, texts): the weighted evidence of texts; the first part of ``terms`` is the class prior."""
        weights = self.weights[1 + text_parts] * terms.lengths[:, 1:] ** -self.exponents[1 + text_parts]
        return np.asarray(terms.relative_to_best[:, :, 1:] * weights[:, None])

    def answer_weights(self, terms: EvidenceTerms) -> Array:
        """(rows, parts): the weight of each part in an answer, which is the class prior itself without any evidence."""
        weights = self.part_weights(terms.lengths)
        weights[~terms.values[:, :, 1:].any(axis=(1, 2)), 0] = 1.0
        return weights

    def place_parts(self, parts: Array, size: int) -> Tempering:
        """Return the tempering of ``size`` parts, in which these are ``parts`` and the others have no weight."""
        weights, exponents, precision = np.zeros(size), np.zeros(size), np.ones((2, size))
        weights[parts], exponents[parts], precision[:, parts] = (
            self.weights,
            self.exponents,
            self.precision.reshape(2, -1),
        )
        return Tempering(weights, exponents, precision.ravel())

    def part_weights(self, lengths: Array) -> Array:
        """(rows, parts): the weight of each part in each row, weight times length to the minus exponent."""
        return np.asarray(self.weights * lengths**-self.exponents)


@register_record("FittedCorrections")
@dataclass(frozen=True, eq=False)
class Corrections:
    """A tempering and an ensemble of members; without members, the prediction is the tempered model's."""

    tempering: Tempering
    encoding: TableEncoding = NO_CODES
    evidence: CodeEvidence | None = None  # what members are centred on, from the counts of all rows
    members: tuple[Member, ...] = ()
    pool: MemberPool | None = None
    tokens: tuple[TokenFeatures, ...] = ()  # the features of each text, if a member uses them
    gaps: GapCompletion | None = None  # of columns that were never missing; None for texts alone

    def find_fault(self) -> str | None:
        if not self.members:
            return None
        if self.pool is None or len(self.pool.exponents) != len(self.members):
            return "there is not one exponent for each member"
        if self.evidence is None:
            return "there is no evidence that its members are centred on"
        size = len(self.evidence.log_prior), sum(map(len, self.tokens))
        misfits = [member.find_misfit(self.encoding, *size) for member in self.members]
        misfits += [self.evidence.find_misfit(self.encoding)]
        misfits += [] if self.gaps is None else [self.gaps.find_misfit(self.encoding)]
        return next((fault for fault in misfits if fault), None)

    def fits_model(self, n_classes: int, n_parts: int, columns: Sequence[int]) -> bool:
        """Whether the shapes match a model of this size; ``columns`` has the width of each block, zero for a text."""
        if self.reads_tokens and len(self.tokens) != list(columns).count(0):
            return False
        if len(self.tempering.weights) != 1 + n_parts:
            return False
        widths = [len(block) for block in self.encoding.blocks]
        return self.evidence is None or (widths == list(columns) and len(self.evidence.log_prior) == n_classes)

    def follow_counts(self, model: CalibratableModel) -> Corrections:
        """Return the same corrections with the evidence of all rows that a model has learned."""
        if self.evidence is None:
            return self
        if not self.encoding.columns:
            return replace(self, evidence=replace(self.evidence, log_prior=model.estimated_log_prior()))
        n, encoding = model.statistics.n, self.encoding.replace_rare(model.count_values)
        total, is_counted = count_learned_codes(encoding, model, len(n))
        evidence = self.evidence.move_codes(self.encoding, encoding).follow_counts(encoding, total, is_counted, n)
        return replace(self, encoding=encoding, evidence=evidence)

    @property
    def reads_tokens(self) -> bool:
        """Whether a member uses the tokens of texts."""
        return any(member.reads_tokens for member in self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds of corrections that were fitted."""
        found = {kind for member in self.members for kind in member.kinds}
        return ("tempering", *sorted(found, reverse=True))

    def log_probabilities(self, rows: EncodedRows, log_prior: Array) -> Array:
        """(rows, classes): log p(c | x), by the pool of all members; ``log_prior`` is the answer if all is missing."""
        answers = self.pool_members(rows)
        for at, gaps in self.find_gaps(rows, MAX_ROWS_AT_ONCE):
            answers[at] = self._answer_gaps(rows.take_rows(at), gaps, log_prior)
        return answers

    @cached_property
    def terms(self) -> tuple[LogitTerm, ...]:
        """The pooled logits as a sum of terms, without the tempered evidence of texts."""
        assert self.pool is not None
        assert self.evidence is not None
        pairs = zip(self.members, self.pool.exponents.tolist(), strict=True)
        return sum_terms([t.scale(e) for member, e in pairs for t in member.list_terms(self.encoding, self.evidence)])

    def pool_members(self, rows: EncodedRows) -> Array:
        """(rows, classes): log p(c | x), where gaps are read as missing."""
        assert self.pool is not None
        assert self.evidence is not None
        logits = rows.text_logits * self.pool.exponents.sum()
        for term in self.terms:
            term.add_rows(rows, logits)
        return self.pool.mix_base_rate(log_normalise(logits), log_normalise(self.evidence.log_prior))

    def find_gaps(self, rows: EncodedRows, at_once: int) -> Iterator[tuple[Array, Array]]:
        """Yield the rows with gaps that are completed, some at a time, and their gaps (rows, columns + texts)."""
        if self.gaps is not None:
            gaps = self.gaps.find_gaps(rows)
            found = np.flatnonzero(gaps[:, : len(self.encoding.columns)].any(axis=1))  # a missing text alone is no gap
            for start in range(0, len(found), at_once):
                at = found[start : start + at_once]
                yield at, gaps[at]

    def complete_rows(self, rows: EncodedRows, gaps: Array) -> tuple[EncodedRows, Array]:
        """Return rows completed by their nearest rows, one after the other, and the log shares (rows, nearest)."""
        assert self.gaps is not None
        if not len(self.gaps.weight):
            return rows, np.zeros((len(rows), 1))
        nearest = self.gaps.find_nearest(rows, gaps, self._kept_ranks)
        copies = np.repeat(np.arange(len(rows)), nearest.shape[1])
        weights = self.gaps.weight[nearest]
        completed = rows.take_rows(copies, self.gaps.complete_cells(rows, gaps, nearest))
        return completed, np.log(weights / weights.sum(axis=1, keepdims=True))

    def _answer_gaps(self, rows: EncodedRows, gaps: Array, log_prior: Array) -> Array:
        """(rows, classes): log p(c | x) of rows with gaps."""
        assert self.gaps is not None
        assert self.evidence is not None
        completed, log_shares = self.complete_rows(rows, gaps)
        # (rows, nearest, classes)
        pooled = self.pool_members(completed).reshape(*log_shares.shape, -1)
        mean = log_sum_exp(pooled + log_shares[:, :, None], axis=1)
        tempered = rows.look_up(self.evidence.temper_cells(self.encoding, log_prior)) + rows.text_logits
        exponent = self.gaps.weigh_tempered(rows, gaps)
        return log_normalise((1 - exponent) * mean + exponent * tempered)

    @cached_property
    def _kept_ranks(self) -> Array:
        assert self.gaps is not None
        return self.encoding.rank_cells(self.gaps.list_blocks(self.encoding))


PREDICTION_CHUNK_CELLS = 1 << 20  # terms computed at a time


CalibratableModel: TypeAlias = "Model | DocumentModel"


@dataclass(frozen=True)
class CalibratedModel:
    """A model with its corrections, or None for plain naive Bayes.

    With ``is_limited``, probabilities are bounded by the rule of succession (see `succession`).
    """

    model: CalibratableModel
    corrections: Corrections | None
    is_limited: bool = True

    @property
    def succession(self) -> Succession | None:
        """The bound on the probabilities by the number of rows learned, or None."""
        n_rows = float(self.model.statistics.n.sum())
        return Succession(n_rows, self.model.estimated_log_prior()) if self.is_limited else None

    def log_probabilities(self, cells: Sequence[Cells]) -> Array:
        """(rows, classes): log p(c | x) after all corrections.

        Corrections and the limit use the estimated class prior. A declared prior replaces it afterwards.
        """
        rows = len(cells[0])
        # Chunks of rows bound the memory of the evidence terms (rows, classes, 1 + parts).
        step = max(1, PREDICTION_CHUNK_CELLS // count_terms_per_row(self.model))
        answers = np.empty((rows, len(self.model.classes)))
        for start in range(0, rows, step):
            part = slice(start, start + step)
            answers[part] = self._log_probabilities(take_rows(cells, part))
        return self.limit_answers(answers)

    def limit_answers(self, answers: Array) -> Array:
        """(rows, classes): log p(c | x) within the limit, and by the declared class prior."""
        prior, estimated = self.model.log_prior(), self.model.estimated_log_prior()
        if self.succession is not None:
            answers = self.succession.limit(log_normalise(answers, estimated))
        return log_normalise(answers + (prior - estimated), prior)

    def _log_probabilities(self, cells: Sequence[Cells]) -> Array:
        if self.corrections is None:
            return self.model.evidence_terms(cells).log_joint
        if not self.corrections.members:
            terms = self.model.evidence_terms(cells)
            weights = self.corrections.tempering.answer_weights(terms)
            return log_normalise(np.einsum("ncb,nb->nc", terms.relative_to_best, weights))
        return self.corrections.log_probabilities(self.encode_rows(cells), self.model.estimated_log_prior())

    def encode_rows(self, cells: Sequence[Cells]) -> EncodedRows:
        """Return rows as the input of members."""
        corrections = self.corrections
        assert corrections is not None
        tokens = partial(self.model.encode_tokens, corrections.tokens, cells)
        text_logits = self.weigh_texts(cells).sum(axis=2)
        return EncodedRows(corrections.encoding, cells, tokens, text_logits, corrections.evidence)

    def weigh_texts(self, cells: Sequence[Cells]) -> Array:
        """(rows, classes, texts): the tempered evidence of each text."""
        texts, blocks = self.model.take_texts()
        if not blocks:
            return np.zeros((len(cells[0]), len(self.model.classes), 0))
        assert self.corrections is not None
        terms = texts.evidence_terms([cells[b] for b in blocks])
        return self.corrections.tempering.weigh_texts(terms, find_text_parts(self.model))


def count_terms_per_row(model: CalibratableModel) -> int:
    """Return the number of evidence terms of a row: one per class for the prior and for each part."""
    return len(model.classes) * (1 + model.n_parts)


def find_column_parts(model: CalibratableModel) -> list[Array]:
    """Return the part indices of the columns of each block; none for texts."""
    texts = set(model.take_texts()[1])
    return [parts[:0] if b in texts else parts for b, parts in enumerate(model.find_parts())]


def find_text_parts(model: CalibratableModel) -> Array:
    """Return the indices of the parts that are texts."""
    parts, texts = model.find_parts(), model.take_texts()[1]
    return np.array([parts[b][0] for b in texts], dtype=np.int64)


# -- single rows -------------------------------------------------------------------------------------------------------


ONE_MEMBER = np.ones(1)


class RowCorrections:
    """Corrections with their weights laid out for single rows."""

    def __init__(self, corrections: Corrections, columns: Sequence[RowCodes] = ()) -> None:
        self.corrections = corrections
        encoding, evidence = corrections.encoding, corrections.evidence
        self.columns = columns or [RowCodes(column) for column in encoding.columns]
        gaps, varied = corrections.gaps, [j for j, column in enumerate(encoding.columns) if column.n_codes > 2]
        self.varied = [] if gaps is None else varied
        self.completed = [] if gaps is None else [j for j in varied if gaps.is_completed[j]]  # whose gaps are completed
        if evidence is not None:
            token_widths = [len(known) for known in corrections.tokens]
            self.opened = [term.open(encoding, token_widths) for term in corrections.terms]
            self.base = evidence.log_prior

    def update_tempering(self, tempering: Tempering) -> None:
        """Replace the tempering."""
        self.corrections = replace(self.corrections, tempering=tempering)

    def has_gap(self, cells: Sequence[Any]) -> bool:
        """Whether a cell is missing in a column whose gaps are completed, or in all columns that vary."""
        if any(cells[j] is None or cells[j] != cells[j] for j in self.completed):
            return True
        return bool(self.varied) and all(cells[j] is None or cells[j] != cells[j] for j in self.varied)

    def complete_row(
        self, cells: Sequence[Cells], evidence: RowEvidence | None, tokens: Sequence[Array], log_prior: Array
    ) -> Array:
        """(classes,): log p(c | x) of a row with gaps; ``cells`` are the blocks of a table of one row."""
        corrections = self.corrections
        no_texts = np.zeros(len(log_prior))
        logits = no_texts if evidence is None else weigh_evidence(corrections.tempering, evidence.take_texts())
        features = [
            make_token_row(chosen, len(known)) for chosen, known in zip(tokens, corrections.tokens, strict=True)
        ]
        rows = EncodedRows(corrections.encoding, cells, lambda: features, logits[None], corrections.evidence)
        return np.asarray(corrections.log_probabilities(rows, log_prior)[0])

    def log_probabilities(self, cells: Sequence[Any], evidence: RowEvidence | None, tokens: Sequence[Array]) -> Array:
        """(classes,): log p(c | x), given the cells of the columns that have codes.

        ``evidence`` has the log likelihoods of the class prior and the texts; it is needed if there are texts.
        ``tokens`` are the feature indices of each text.
        """
        tempering, pool = self.corrections.tempering, self.corrections.pool
        if pool is None:
            assert evidence is not None
            if not evidence.values[:, 1:].any():
                return log_normalise_row(evidence.values[:, 0])  # the class prior itself
            return log_normalise_row(weigh_evidence(tempering, evidence))
        row = EncodedRow(self.columns, cells, tokens)
        logits = np.zeros((2, len(self.base)))  # of the base rate, and of the pooled members
        logits[0] = self.base
        for add_logits in self.opened:
            add_logits(row, logits[1])
        if evidence is not None:
            logits[1] += weigh_evidence(tempering, evidence.take_texts())
        kernel.mix_members(logits, ONE_MEMBER, pool.share, answer := np.empty(logits.shape[1]))
        return answer


def make_token_row(chosen: Array, width: int) -> SparseRows:
    """A sparse row of unit length, with the token features of one text."""
    values = np.full(len(chosen), 1 / sqrt(max(len(chosen), 1)), dtype=np.float32)
    return SparseRows(np.array([0, len(chosen)]), chosen.astype(np.int32), values, width)


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
