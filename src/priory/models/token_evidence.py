"""Evidence of tokens: the ledger lines of a text, and the strongest tokens of a class."""

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
    """A token with its weight of evidence for a class against all others, in decibans, and its counts per class."""

    token: str
    decibans: float
    counts: dict[Label, float]


def make_token_lines(
    document: Document, tokenizer: Tokenizer, row_of_token: Mapping[str, int], table: WeightTable, binary: bool
) -> list[LedgerLine]:
    """Make a line for each token of a text that has a row in ``table`` (tokens, classes)."""
    found: dict[str, list[tuple[int, int]]] = {}
    for token, start, end in find_token_spans(document, tokenizer):
        name = token if token in row_of_token else UNKNOWN_TOKEN
        if name in row_of_token:
            found.setdefault(name, []).append((start, end))
    # (lines, classes); a multinomial model adds the weight once for each occurrence
    weights = take_token_rows(table, np.array([row_of_token[token] for token in found], dtype=np.int64))
    return [
        LedgerLine(token, len(at), tuple((row * (1 if binary else len(at))).tolist()), tuple(at))
        for (token, at), row in zip(found.items(), weights, strict=True)
    ]


def move_absence(lines: Sequence[LedgerLine], constant: Array, shown: Array) -> tuple[list[LedgerLine], Array]:
    """Convert the lines of a Bernoulli text to log p(present | c), and the constant to the absent tokens only.

    Before, weights are log p(present) - log p(absent), and ``constant`` (classes,) is the score of a text without any
    token. ``shown`` (lines,) is whether any learned document contains the token; other tokens have weight zero.
    """
    # (lines, classes): the log-odds w = log p - log(1 - p), so log(1 - p) = -log(1 + e^w) and log p = w + log(1 - p)
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
    """The tokens with the largest weight times count for class ``c``, against all other classes pooled."""
    two = _pool_other_classes(words, c)
    table = bag.compute_weights(two).table
    # (tokens,): log-odds of class c against the others; ranked by weight times occurrences in class c
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
    """Counts of two classes: class ``c``, and all other classes pooled."""
    own = words.take_classes(np.array([c]))
    others = words.take_classes(np.flatnonzero(np.arange(len(words.n)) != c)).pool_classes()
    # (tokens, 2)
    counts = np.column_stack([make_dense_counts(part.counts) for part in (own, others)])
    return replace(words, n=np.append(own.n, others.n), counts=counts)
