"""The lines of a ledger: what each column and each set of columns did to a corrected answer.

The lines and the first entry add up to the log odds of the answer. Of a corrected table the first entry is the average
row: the log odds without the lines of the members, which are zero on average over the learned rows. What no column did
has a line by name: the share of the base rate in the pool, what missing cells leave open, and the limit by the number
of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from priory.calibration.corrections import CalibratedModel, Corrections, find_column_parts, find_text_parts
from priory.calibration.linear_members import LinearMember
from priory.calibration.logit_parts import look_up_cells, sum_parts
from priory.calibration.members import EncodedRows
from priory.core.logspace import log_normalise, log_sum_exp
from priory.core.typing import Array
from priory.model.cells import Cells
from priory.text.token_features import TokenFeatures

AVERAGE_NAME = "average row"
SHARE_NAME = "share of the base rate"
GAPS_NAME = "missing cells"
MAX_ROWS_TO_COMPLETE = 32  # rows with gaps whose lines are made at a time
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
    return limit_lines(model, found._replace(first=found.first + shift), model.log_probabilities(cells))


def weigh_parts(model: CalibratedModel, cells: Sequence[Cells]) -> AnswerLines:
    """The evidence of each part of naive Bayes, times its weight if the model is tempered."""
    terms = model.model.evidence_terms(cells)
    weights = np.ones(terms.lengths.shape)  # (rows, 1 + parts)
    if model.corrections is not None:
        weights = model.corrections.tempering.part_weights(terms.lengths)
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
    """Complete the lines (lines, classes) of one text by those of no word."""
    first = found.first[row : row + 1]
    sources: list[LineSource] = [(k,) for k in range(len(lines))]
    if model.corrections is not None and model.corrections.members:
        share = found.answers[row] - log_normalise(first + lines.sum(axis=0))[0]
        lines, sources = np.concatenate([lines, share[None] - share.mean()]), [*sources, SHARE_NAME]
    declared, estimated = model.model.log_prior(), model.model.estimated_log_prior()
    split = AnswerLines(found.name, first + (declared - estimated), lines.T[None], sources)
    return limit_lines(model, split, model.limit_answers(found.answers[row : row + 1]))


def limit_lines(model: CalibratedModel, found: AnswerLines, answers: Array) -> AnswerLines:
    """Add the line of the limit by the number of rows, if there is one; ``answers`` are (rows, classes)."""
    if model.succession is None:
        return found
    limited = model.succession.limit_lines(found.lines, found.first, answers)
    if not limited[:, :, -1].any():
        return found._replace(lines=limited[:, :, :-1])
    return found._replace(lines=limited, sources=[*found.sources, model.succession.name])


def _split_pool(model: CalibratedModel, cells: Sequence[Cells]) -> AnswerLines:
    """The lines of a pool of members, with those of the parts of the model in their order."""
    assert model.corrections is not None
    rows, texts, log_prior = model.encode_rows(cells), model.weigh_texts(cells), model.model.estimated_log_prior()
    first, lines, sets = _split_members(model.corrections, rows, texts)
    first, left = np.repeat(first[None], len(rows), axis=0), np.zeros((len(rows), len(log_prior)))
    for at, gaps in model.corrections.find_gaps(rows, MAX_ROWS_TO_COMPLETE):
        some = rows.take_rows(at)
        first[at], lines[at], left[at] = _split_completed(model.corrections, some, gaps, texts[at], log_prior)
    # columns of codes and texts become parts of the model
    part = np.concatenate([*find_column_parts(model.model), find_text_parts(model.model)]).astype(np.int64)
    placed = np.zeros((*first.shape, model.model.n_parts))
    placed[:, :, part] = lines[:, :, : len(part)]
    sources: list[LineSource] = [(k,) for k in range(model.model.n_parts)]
    sources += [tuple(part[list(columns)].tolist()) for columns in sets]
    lines = np.concatenate([placed, lines[:, :, len(part) :], left[:, :, None]], axis=2)
    return AnswerLines(AVERAGE_NAME, first, lines, [*sources, SHARE_NAME, GAPS_NAME])


def _split_members(
    corrections: Corrections, rows: EncodedRows, texts: Array
) -> tuple[Array, Array, list[tuple[int, ...]]]:
    """The log odds of the average row (classes,), the lines (rows, classes, lines), and the sets of columns.

    Lines are of columns, of texts with their tempered evidence (rows, classes, texts), of sets of columns, and of the
    share of the base rate. They are centred over the classes.
    """
    assert corrections.pool is not None
    parts = sum_parts([member.split_logits(rows) for member in corrections.members], corrections.pool.exponents)
    sets = [added[:, :, None] for added in parts.sets.values()]
    lines = np.concatenate([parts.columns, parts.texts + texts, *sets], axis=2)
    pooled = log_normalise(parts.base + lines.sum(axis=2))
    share = corrections.pool_members(rows) - pooled
    lines = np.concatenate([lines, share[:, :, None]], axis=2)
    return parts.base - parts.base.mean(), lines - lines.mean(axis=1, keepdims=True), list(parts.sets)


def _split_completed(
    corrections: Corrections, rows: EncodedRows, gaps: Array, texts: Array, log_prior: Array
) -> tuple[Array, Array, Array]:
    """First entries, lines, and what is left (rows, classes), of rows with gaps.

    The log of the mean probability of a class is the mean of its log probabilities, weighted by each completed row's
    share of that mean, plus what is left.
    """
    assert corrections.gaps is not None
    assert corrections.evidence is not None
    completed, log_shares = corrections.complete_rows(rows, gaps)
    n_copies = log_shares.shape[1]
    first, lines, _ = _split_members(corrections, completed, np.repeat(texts, n_copies, axis=0))
    # (rows, copies, classes): log p(c | completed row) and its share
    pooled = log_normalise(first + lines.sum(axis=2)).reshape(*log_shares.shape, -1) + log_shares[:, :, None]
    mean = log_sum_exp(pooled, axis=1)
    share = np.exp(pooled - mean[:, None])
    lines = np.einsum("nkc,nkcl->ncl", share, lines.reshape(*share.shape, -1))
    left = mean - first - lines.sum(axis=2)
    # the same for tempered naive Bayes, to which a missing cell is no evidence
    exponent = corrections.gaps.weigh_tempered(gaps)
    tempered = look_up_cells(rows, corrections.evidence.temper_codes(corrections.encoding))
    lines *= 1 - exponent[:, :, None]
    lines[:, :, : tempered.shape[2]] += exponent[:, :, None] * tempered
    lines[:, :, tempered.shape[2] :][:, :, : texts.shape[2]] += exponent[:, :, None] * texts
    left = (1 - exponent) * (left - left.mean(axis=1, keepdims=True))
    return (1 - exponent) * first + exponent * log_prior, lines, left
