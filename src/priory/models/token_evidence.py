"""Tokens as evidence: the lines of a text's ledger, and the strongest tokens of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from priory.bag_of_words.documents import Document
from priory.bag_of_words.models import BagOfWords
from priory.bag_of_words.sparse_counts import make_dense_counts
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import Tokenizer, find_token_spans
from priory.bag_of_words.vocabulary import UNKNOWN_TOKEN
from priory.bag_of_words.weight_tables import WeightTable, take_token_rows
from priory.core.typing import Array, Label
from priory.models.explanation import LedgerLine
from priory.models.ledger_formatting import DECIBANS_PER_NAT


class TokenEvidence(NamedTuple):
    """A token's weight of evidence for a class against all others, in decibans, and its counts in each class."""

    token: str
    decibans: float
    counts: dict[Label, float]


def make_token_lines(
    document: Document, tokenizer: Tokenizer, row_of_token: Mapping[str, int], table: WeightTable, binary: bool
) -> list[LedgerLine]:
    """For each token of a text that has a row in ``table`` (tokens, classes): its evidence, count and positions."""
    found: dict[str, list[tuple[int, int]]] = {}
    for token, start, end in find_token_spans(document, tokenizer):
        name = token if token in row_of_token else UNKNOWN_TOKEN
        if name in row_of_token:
            found.setdefault(name, []).append((start, end))
    weights = take_token_rows(table, np.array([row_of_token[token] for token in found], dtype=np.int64))
    return [
        LedgerLine(token, len(at), tuple((row * (1 if binary else len(at))).tolist()), tuple(at))
        for (token, at), row in zip(found.items(), weights, strict=True)
    ]


def move_absence(lines: Sequence[LedgerLine], constant: Array, shown: Array) -> tuple[list[LedgerLine], Array]:
    """The lines of a Bernoulli text with log p(present | c), and the constant of the tokens that are absent.

    Its weights are log p(present) - log p(absent), and the constant is that of a text without any token. ``shown``
    (lines,) is whether any document has shown the token; one that none has says nothing.
    """
    weights = np.array([line.log_likelihood for line in lines]).reshape(len(lines), len(constant))
    absent = np.where(shown[:, None], -np.logaddexp(0.0, weights), 0.0)
    present = [
        replace(line, log_likelihood=tuple((weight + shift).tolist()))
        for line, weight, shift in zip(lines, weights, absent, strict=True)
    ]
    return present, constant - absent.sum(axis=0)


def find_strongest_tokens(
    words: TokenCounts, bag: BagOfWords, c: int, classes: list[Label], max_tokens: int
) -> list[TokenEvidence]:
    """The tokens with the largest weight times count for class number ``c``, against all other classes pooled."""
    two = _pool_other_classes(words, c)
    table = bag.compute_weights(two).table
    weight = take_token_rows(table, np.arange(len(words))) @ np.array([1.0, -1.0])
    best = np.argsort(-(weight * make_dense_counts(two.counts)[:, 0]), kind="stable")[:max_tokens]
    chosen = words.take_tokens(best)
    return [
        TokenEvidence(token, float(decibans), dict(zip(classes, counts, strict=True)))
        for token, decibans, counts in zip(
            chosen.tokens(), weight[best] * DECIBANS_PER_NAT, make_dense_counts(chosen.counts).tolist(), strict=True
        )
        if decibans > 0
    ]


def _pool_other_classes(words: TokenCounts, c: int) -> TokenCounts:
    """The record of two classes: class number ``c``, and all others pooled."""
    own = words.take_classes(np.array([c]))
    others = words.take_classes(np.flatnonzero(np.arange(len(words.n)) != c)).pool_classes()
    counts = np.column_stack([make_dense_counts(part.counts) for part in (own, others)])
    return replace(words, n=np.append(own.n, others.n), counts=counts)
