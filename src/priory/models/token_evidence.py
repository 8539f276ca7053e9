"""Tokens as evidence: the lines of a text's ledger, and the strongest tokens of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from priory.bag_of_words.documents import Document
from priory.bag_of_words.models import BagOfWords
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import Tokenizer, find_token_spans
from priory.bag_of_words.vocabulary import UNKNOWN_TOKEN
from priory.core.typing import Array, Label
from priory.models.explanation import LedgerLine
from priory.models.ledger_formatting import DECIBANS_PER_NAT


class TokenEvidence(NamedTuple):
    """A token's weight of evidence for a class against all others, in decibans, and its counts in each class."""

    token: str
    decibans: float
    counts: dict[Label, float]


def make_token_lines(
    document: Document, tokenizer: Tokenizer, row_of_token: Mapping[str, int], table: Array, binary: bool
) -> list[LedgerLine]:
    """For each token of a text that has a row in ``table`` (tokens, classes): its evidence, count and positions."""
    found: dict[str, list[tuple[int, int]]] = {}
    for token, start, end in find_token_spans(document, tokenizer):
        name = token if token in row_of_token else UNKNOWN_TOKEN
        if name in row_of_token:
            found.setdefault(name, []).append((start, end))
    return [
        LedgerLine(token, len(at), tuple((table[row_of_token[token]] * (1 if binary else len(at))).tolist()), tuple(at))
        for token, at in found.items()
    ]


def move_absence(lines: Sequence[LedgerLine], constant: Array, counts: Array) -> tuple[list[LedgerLine], Array]:
    """The lines of a Bernoulli text with log p(present | c), and the constant of the tokens that are absent.

    Its weights are log p(present) - log p(absent), and the constant is that of a text without any token. ``counts``
    (lines, classes) are the documents that show each token; one that no document has shown says nothing.
    """
    weights = np.array([line.log_likelihood for line in lines]).reshape(counts.shape)
    absent = np.where(counts.any(axis=1, keepdims=True), -np.logaddexp(0.0, weights), 0.0)
    present = [
        replace(line, log_likelihood=tuple((weight + shift).tolist()))
        for line, weight, shift in zip(lines, weights, absent, strict=True)
    ]
    return present, constant - absent.sum(axis=0)


def find_strongest_tokens(
    words: TokenCounts, bag: BagOfWords, c: int, classes: list[Label], max_tokens: int
) -> list[TokenEvidence]:
    """The tokens with the largest weight times count for class number ``c``, against all other classes pooled."""
    table = bag.compute_weights(_pool_other_classes(words, c)).table
    weight = table[:, 0] - table[:, 1]
    best = np.argsort(-(weight * words.counts[:, c]), kind="stable")[:max_tokens]
    return [
        TokenEvidence(
            token, float(weight[j] * DECIBANS_PER_NAT), dict(zip(classes, words.counts[j].tolist(), strict=True))
        )
        for token, j in zip(words.take_tokens(best).tokens(), best, strict=True)
        if weight[j] > 0
    ]


def _pool_other_classes(words: TokenCounts, c: int) -> TokenCounts:
    """The record of two classes: class number ``c``, and all others pooled."""
    others = np.arange(words.counts.shape[1]) != c
    counts = np.column_stack([words.counts[:, c], words.counts[:, others].sum(axis=1)])
    return TokenCounts(np.array([words.n[c], words.n[others].sum()]), words.arena, words.ends, counts)
