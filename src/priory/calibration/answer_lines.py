"""The lines of a ledger: what each column and each set of columns did to a corrected answer.

The lines and the first entry add up to the log odds of the answer. Of a corrected table the first entry is the average
row: the mean log odds of the answers to learned rows. What no column did has a line by name: what missing cells leave
open, and the limit by the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.corrections import CalibratedModel, Corrections, find_column_parts, find_text_parts
from priory.calibration.encoded_rows import EncodedRows
from priory.calibration.logit_terms import LogitParts, look_up_cells, sum_parts
from priory.calibration.members import LinearMember
from priory.core.logspace import log_normalise, log_sum_exp, normalise
from priory.core.sparse_rows import SparseRows
from priory.model.cells import Cells, take_rows
from priory.text.token_features import TokenFeatures

AVERAGE_NAME = "average row"
GAPS_NAME = "missing cells"
MAX_ROWS_TO_COMPLETE = 32  # rows whose lines are made at a time
N_STARTS = 64  # learned rows that answers are compared with
N_STEPS = 32  # of the integral from a start to the row
SMALLEST_NUMBER = 1e-300  # avoids a division by zero
LineSource = tuple[int, ...] | str  # the columns that a line is about, or the name of another line


class AnswerLines(NamedTuple):
    """The first entry of each row's ledger, and its lines."""

    name: str  # of the first entry
    first: Array  # (rows, classes)
    lines: Array  # (rows, classes, lines)
    sources: list[LineSource]


def split_answers(model: CalibratedModel, cells: Sequence[Cells]) -> AnswerLines:
    """Split the log odds of answers; sources of lines are the parts of the model, by their numbers."""
    corrections = model.corrections
    found = weigh_parts(model, cells) if corrections is None or not corrections.members else _split_pool(model, cells)
    shift = model.model.log_prior() - model.model.estimated_log_prior()  # of a declared prior
    return limit_answer_lines(model, found._replace(first=found.first + shift), model.log_probabilities(cells))


def weigh_parts(model: CalibratedModel, cells: Sequence[Cells]) -> AnswerLines:
    """The evidence of each part of naive Bayes, times its weight if the model is tempered."""
    terms = model.model.evidence_terms(cells)
    weights = np.ones(terms.lengths.shape)  # (rows, 1 + parts)
    if model.corrections is not None:
        weights = model.corrections.tempering.answer_weights(terms)
    first = weights[:, :1] * model.model.estimated_log_prior()
    name = "prior" if (weights[:, 0] == 1.0).all() else "prior (tempered)"
    lines = terms.values[:, :, 1:] * weights[:, None, 1:]
    return AnswerLines(name, first, lines, [(part,) for part in range(lines.shape[2])])


class TextAnswers(NamedTuple):
    """Answers to texts, and what the lines of their words are made from."""

    name: str  # of the first entry
    first: Array  # (rows, classes)
    weights: Array  # (rows,): of the evidence of the text
    features: TokenFeatures | None  # the words and pairs that regressions have weights of
    feature_weights: Array  # (features, classes)
    answers: Array  # (rows, classes): log p(c | text), without a limit and by the estimated class prior


def split_text_answers(model: CalibratedModel, cells: Sequence[Cells]) -> TextAnswers:
    """Split answers to texts into a first entry and weights of words."""
    parts, corrections = weigh_parts(model, cells), model.corrections
    weights, answers = np.ones(len(parts.first)), log_normalise(parts.first + parts.lines[:, :, 0])
    if corrections is None:
        return TextAnswers(parts.name, parts.first, weights, None, np.zeros((0, 0)), answers)
    weights = corrections.tempering.part_weights(model.model.evidence_terms(cells).lengths)[:, 1]
    if not corrections.members:
        return TextAnswers(parts.name, parts.first, weights, None, np.zeros((0, 0)), answers)
    [member] = corrections.members  # a regression on the class prior and the words
    assert isinstance(member, LinearMember)
    assert corrections.evidence is not None
    first = member.weigh_codes(corrections.encoding, corrections.evidence)
    features = corrections.tokens[0] if corrections.tokens else None
    answers = corrections.pool_members(model.encode_rows(cells))
    return TextAnswers(parts.name, first.repeat(len(weights), axis=0), weights, features, member.weights[1:], answers)


def finish_text_lines(model: CalibratedModel, found: TextAnswers, row: int, lines: Array) -> AnswerLines:
    """Add the lines that belong to no word to the lines (lines, classes) of one text."""
    first, ends, answers = found.first[row], lines.T[None], found.answers[row : row + 1]
    if model.corrections is not None and model.corrections.members:
        empty = PoolLines(model.corrections, np.zeros((0, 0, 0)), np.ones(1))  # starts from a text without words
        first, ends = empty.split_logits(first, ends, answers)
    shift = model.model.log_prior() - model.model.estimated_log_prior()
    split = AnswerLines(found.name, first[None] + shift, ends, [(k,) for k in range(len(lines))])
    return limit_answer_lines(model, split, model.limit_answers(answers))


def limit_answer_lines(model: CalibratedModel, found: AnswerLines, answers: Array) -> AnswerLines:
    """Add the line of the limit by the number of rows, if there is one; ``answers`` are (rows, classes)."""
    if model.succession is None:
        return found
    limited = model.succession.limit_answer_lines(found.lines, found.first, answers)
    if not limited[:, :, -1].any():
        return found._replace(lines=limited[:, :, :-1])
    return found._replace(lines=limited, sources=[*found.sources, model.succession.name])


def _split_pool(model: CalibratedModel, cells: Sequence[Cells]) -> AnswerLines:
    """The lines of a pool of members, the parts of the model first and in their order."""
    assert model.corrections is not None
    pool = PoolLines.of(model.corrections)
    rows, texts, log_prior = model.encode_rows(cells), model.weigh_texts(cells), model.model.estimated_log_prior()
    first, lines, sets = pool.split_rows(rows, texts)
    first, left = np.repeat(first[None], len(rows), axis=0), np.zeros((len(rows), len(log_prior)))
    for at, gaps in model.corrections.find_gaps(rows, MAX_ROWS_TO_COMPLETE):
        first[at], lines[at], left[at] = pool.split_gaps(rows.take_rows(at), gaps, texts[at], log_prior)
    # columns of codes and texts become parts of the model
    part = np.concatenate([*find_column_parts(model.model), find_text_parts(model.model)]).astype(np.int64)
    placed = np.zeros((*first.shape, model.model.n_parts))
    placed[:, :, part] = lines[:, :, : len(part)]
    sources: list[LineSource] = [(k,) for k in range(model.model.n_parts)]
    sources += [tuple(part[list(columns)].tolist()) for columns in sets]
    lines = np.concatenate([placed, lines[:, :, len(part) :], left[:, :, None]], axis=2)
    return AnswerLines(AVERAGE_NAME, first, lines, [*sources, GAPS_NAME])


def add_members(corrections: Corrections, rows: EncodedRows, texts: Array) -> tuple[LogitParts, Array]:
    """The parts of the pooled logits, and the same as lines (rows, classes, lines) of columns, texts and sets."""
    assert corrections.pool is not None
    parts = sum_parts([member.split_logits(rows) for member in corrections.members], corrections.pool.exponents)
    sets = [added[:, :, None] for added in parts.sets.values()]
    return parts, np.concatenate([parts.columns, parts.texts + texts, *sets], axis=2)


@dataclass(frozen=True)
class PoolLines:
    """What each part of the pooled logits did to the answers.

    The base rate has a share in the answers, so that a part does the less, the surer the others are. So all parts are
    moved from their values in a learned row to their values in this row, at the same pace, and each has what it adds to
    the answer on the way (Aumann-Shapley values), on average over some learned rows.
    """

    corrections: Corrections
    starts: Array  # (learned rows, classes, lines); none if no rows are kept, which start at the average row
    shares: Array  # (learned rows,)

    @classmethod
    def of(cls, corrections: Corrections) -> PoolLines:
        """Start from the first of the kept rows, without texts."""
        gaps, evidence = corrections.gaps, corrections.evidence
        assert evidence is not None
        if gaps is None or not len(gaps.weight):
            return cls(corrections, np.zeros((0, 0, 0)), np.ones(1))
        cells = take_rows(gaps.list_blocks(corrections.encoding), slice(0, N_STARTS))
        weight, n_classes = gaps.weight[:N_STARTS], len(evidence.log_prior)
        rows = EncodedRows(
            corrections.encoding,
            cells,
            lambda: [make_empty_rows(len(weight), len(known)) for known in corrections.tokens],
            np.zeros((len(weight), n_classes)),
            evidence,
        )
        _, lines = add_members(corrections, rows, np.zeros((len(weight), n_classes, rows.n_texts)))
        return cls(corrections, lines, weight / weight.sum())

    def split_rows(self, rows: EncodedRows, texts: Array) -> tuple[Array, Array, list[tuple[int, ...]]]:
        """The log probabilities of the average row (classes,), the lines (rows, classes, lines), and sets of columns.

        ``texts`` (rows, classes, texts) is their tempered evidence. Lines and average are centred over the classes.
        """
        parts, ends = add_members(self.corrections, rows, texts)
        first, lines = self.split_logits(parts.base, ends, self.corrections.pool_members(rows))
        return first, lines, list(parts.sets)

    def split_logits(self, base: Array, ends: Array, answers: Array) -> tuple[Array, Array]:
        """The log probabilities of the average row (classes,), and the lines (rows, classes, lines) up to the answers.

        ``base`` (classes,) and ``ends`` (rows, classes, lines) add up to the logits of the pool.
        """
        starts = self.starts if len(self.starts) else np.zeros((1, *ends.shape[1:]))
        first = self.shares @ self._mix(base + starts.sum(axis=2))[0]
        lines = np.empty(ends.shape)
        for at in range(0, len(ends), MAX_ROWS_TO_COMPLETE):
            chunk = slice(at, at + MAX_ROWS_TO_COMPLETE)
            lines[chunk] = self._integrate(base, starts, ends[chunk])
        # what rounding and the steps of the integral leave, by the size of the lines
        left, size = answers - first - lines.sum(axis=2), np.abs(lines)
        lines += left[:, :, None] * size / np.maximum(size.sum(axis=2, keepdims=True), SMALLEST_NUMBER)
        return first - first.mean(), lines - lines.mean(axis=1, keepdims=True)

    def _mix(self, logits: Array) -> tuple[Array, Array, Array]:
        """(..., classes) each: log p(c | x), the pool's part of it, and p(c | x) by the pool alone."""
        assert self.corrections.pool is not None
        assert self.corrections.evidence is not None
        share, pooled = self.corrections.pool.share, normalise(logits)
        mixed = np.maximum(
            share * pooled + (1 - share) * normalise(self.corrections.evidence.log_prior), SMALLEST_NUMBER
        )
        return np.log(mixed), share * pooled / mixed, pooled

    def _integrate(self, base: Array, starts: Array, ends: Array) -> Array:
        """(rows, classes, lines): the integral of the derivative of the answer along each part, from starts to ends."""
        begin, end = base + starts.sum(axis=2), base + ends.sum(axis=2)
        own = np.zeros((len(ends), *begin.shape))
        others = np.zeros((*own.shape, own.shape[2]))
        # d log p(c) / d logit(d) is part(c) (1[c = d] - pooled(d))
        for step in range(N_STEPS):
            _, part, pooled = self._mix(begin + (step + 0.5) / N_STEPS * (end[:, None] - begin))
            own += part
            others += part[..., None] * pooled[:, :, None]
        own *= self.shares[:, None] / N_STEPS
        others *= self.shares[:, None, None] / N_STEPS
        moved = own.sum(axis=1)[:, :, None] * ends - np.einsum("nkc,kcl->ncl", own, starts)
        pulled = np.einsum("ncd,ndl->ncl", others.sum(axis=1), ends)
        pulled -= np.einsum("nkcd,kdl->ncl", others, starts)
        return np.asarray(moved - pulled)

    def split_gaps(self, rows: EncodedRows, gaps: Array, texts: Array, log_prior: Array) -> tuple[Array, Array, Array]:
        """First entries, lines, and what is left (rows, classes), of rows with gaps.

        The log of the mean probability of a class is the mean of its log probabilities, weighted by each completed
        row's share of that mean, plus what is left.
        """
        corrections = self.corrections
        assert corrections.gaps is not None
        assert corrections.evidence is not None
        completed, log_shares = corrections.complete_rows(rows, gaps)
        first, lines, _ = self.split_rows(completed, np.repeat(texts, log_shares.shape[1], axis=0))
        # (rows, copies, classes): log p(c | completed row) and its share
        pooled = log_normalise(first + lines.sum(axis=2)).reshape(*log_shares.shape, -1) + log_shares[:, :, None]
        mean = log_sum_exp(pooled, axis=1)
        share = np.exp(pooled - mean[:, None])
        lines = np.einsum("nkc,nkcl->ncl", share, lines.reshape(*share.shape, -1))
        left = mean - first - lines.sum(axis=2)
        # the same for tempered naive Bayes, to which a missing cell is no evidence
        exponent = corrections.gaps.weigh_tempered(rows, gaps)
        tempered = look_up_cells(rows, corrections.evidence.temper_codes(corrections.encoding))
        own = np.concatenate([tempered, texts], axis=2)
        lines *= 1 - exponent[:, :, None]
        lines[:, :, : own.shape[2]] += exponent[:, :, None] * own
        left = (1 - exponent) * (left - left.mean(axis=1, keepdims=True))
        return (1 - exponent) * first + exponent * log_prior, lines, left


def make_empty_rows(rows: int, width: int) -> SparseRows:
    """Sparse rows without entries."""
    return SparseRows(np.zeros(rows + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), width)
