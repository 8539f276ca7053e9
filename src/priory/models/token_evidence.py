"""What tokens tell: the lines of a text's ledger, and the tokens that speak most for a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from priory.bag_of_words.documents import Document
from priory.bag_of_words.models import Bag
from priory.bag_of_words.token_counts import Words
from priory.bag_of_words.tokenizer import Tokens, spans
from priory.bag_of_words.vocabulary import UNKNOWN
from priory.core.typing import Array
from priory.models.explanation import DECIBAN, Line


class Evidence(NamedTuple):
    """What a token says of a class: its weight in decibans, against all other classes, and its counts."""

    token: str
    decibans: float
    counts: dict[Any, float]


def token_lines(document: Document, tokens: Tokens, place: Mapping[str, int], table: Array, once: bool) -> list[Line]:
    """For each token of a text that has a row in the table: what it says, how often, and where it stands."""
    found: dict[str, list[tuple[int, int]]] = {}
    for token, start, end in spans(document, tokens):
        name = token if token in place else UNKNOWN
        if name in place:
            found.setdefault(name, []).append((start, end))
    return [
        Line(token, len(at), tuple((table[place[token]] * (1 if once else len(at))).tolist()), tuple(at))
        for token, at in found.items()
    ]


def strongest(words: Words, bag: Bag, c: int, classes: list[Any], most: int) -> list[Evidence]:
    """The tokens that speak most for class ``c`` against all others together: often seen there, and telling."""
    table = bag.weights(_against(words, c)).table
    weight = table[:, 0] - table[:, 1]
    best = np.argsort(-(weight * words.counts[:, c]), kind="stable")[:most]
    return [
        Evidence(token, float(weight[j] * DECIBAN), dict(zip(classes, words.counts[j].tolist(), strict=True)))
        for token, j in zip(words.taken(best).tokens(), best, strict=True)
        if weight[j] > 0
    ]


def _against(words: Words, c: int) -> Words:
    """The record of class ``c`` beside all other classes together."""
    others = np.arange(words.counts.shape[1]) != c
    counts = np.column_stack([words.counts[:, c], words.counts[:, others].sum(axis=1)])
    return Words(np.array([words.n[c], words.n[others].sum()]), words.arena, words.ends, counts)
