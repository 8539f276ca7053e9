"""Tokenization in plain Python, used where the position of each token in a text is needed.

A *rule* is the declared tokenizer with a kind for every code point. A *piece* is a word, or a run of characters, with
its position in the text; a *token* is a piece, or several words joined by a space. The compiled module `text` produces
the same tokens, and tests compare the two.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise

import numpy as np

MAX_WORD_LENGTH = 1024  # in code points; longer words are truncated (the longest in a dozen real collections has 304)
MAX_TOKEN_BYTES = (1 << 24) - 1  # bytes of a token
TOTAL_MEMORY_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 33
MAX_COUNTER_BYTES = TOTAL_MEMORY_BYTES // 4  # limit for counts: growing them needs a copy

SEPARATOR, WORD, SINGLE, SCRIPT, SPACE = range(5)  # kinds of code points

StrOrBytes = str | bytes


class Rule:
    """The declared tokenizer: ``kinds`` and ``lowered`` give the kind and the lower case of each code point."""

    def __init__(
        self,
        analyzer: str,
        min_token_length: int,
        ngram_range: tuple[int, int],
        kinds: np.ndarray,
        lowered: np.ndarray,
        rewrites: Mapping[str, str | None] | None = None,
    ) -> None:
        self.analyzer, self.min_token_length, self.ngram_range = analyzer, min_token_length, ngram_range
        self.kinds, self.lowered, self.rewrites = kinds, lowered, rewrites or {}

    def kind(self, character: str) -> int:
        return int(self.kinds[ord(character)])


def lowercase_text(document: StrOrBytes, rule: Rule, number: int = 0) -> str:
    """Lower-case a text character by character; context-dependent letters must be lowered before."""
    try:
        text = decode_document(document)
    except UnicodeError as error:
        raise UnicodeError(number, error.start) from None  # type: ignore[attr-defined]  # a decoding error has it
    return "".join(chr(rule.lowered[ord(c)]) for c in text)


def decode_document(document: StrOrBytes) -> str:
    """Decode a document; raises UnicodeError for invalid text."""
    text = document.decode() if isinstance(document, bytes) else document
    text.encode()
    return text


def iter_pieces(text: str, rule: Rule) -> Iterator[tuple[str, int, int]]:
    """Yield the pieces of a lower-case text: (piece, start, end)."""
    if rule.analyzer == "word":
        return iter_words(text, rule)
    return iter_char_wb_ngrams(text, rule) if rule.analyzer == "char_wb" else iter_char_ngrams(text, rule)


def iter_words(text: str, rule: Rule) -> Iterator[tuple[str, int, int]]:
    """Yield runs of word characters, single-character tokens, and pairs of characters of scripts without spaces."""
    at = 0
    for kind, run in groupby(text, rule.kind):
        word = "".join(run)
        end = at + len(word)
        if kind == WORD and len(word) >= rule.min_token_length:
            yield word[:MAX_WORD_LENGTH], at, end
        elif kind == SINGLE or (kind == SCRIPT and len(word) == 1):
            yield from ((c, at + i, at + i + 1) for i, c in enumerate(word))
        elif kind == SCRIPT:
            yield from ((word[i : i + 2], at + i, at + i + 2) for i in range(len(word) - 1))
        at = end


def iter_char_ngrams(text: str, rule: Rule) -> Iterator[tuple[str, int, int]]:
    """Yield n-grams of characters; two or more white spaces count as one space."""
    characters: list[tuple[str, int, int]] = []
    at = 0
    for space, group in groupby(text, lambda c: rule.kind(c) == SPACE):
        run = "".join(group)
        if space and len(run) > 1:
            characters.append((" ", at, at + len(run)))
        else:
            characters.extend((c, at + i, at + i + 1) for i, c in enumerate(run))
        at += len(run)
    low, high = rule.ngram_range
    for n in range(low, high + 1):
        for i in range(len(characters) - n + 1):
            yield "".join(c for c, _, _ in characters[i : i + n]), characters[i][1], characters[i + n - 1][2]


def iter_char_wb_ngrams(text: str, rule: Rule) -> Iterator[tuple[str, int, int]]:
    """Yield n-grams of characters of each word padded with spaces; a word shorter than n counts once, whole."""
    at = 0
    for space, group in groupby(text, lambda c: rule.kind(c) == SPACE):
        run = "".join(group)
        word, end = f" {run} ", at + len(run)
        low, high = rule.ngram_range
        for n in range(low, high + 1) if not space else ():
            for i in range(max(len(word) - n, 0) + 1):
                yield word[i : i + n], max(at + i - 1, at), min(at + i - 1 + n, end)
            if n >= len(word):
                break
        at = end


def iter_token_spans(text: str, rule: Rule) -> Iterator[tuple[str, int, int]]:
    """Yield the tokens of a lower-case text, each with its start and end."""
    if rule.analyzer != "word":
        yield from iter_pieces(text, rule)
        return
    # replace words by their stems and drop stop words (None) before forming n-grams
    kept = [(rule.rewrites.get(word, word), start, end) for word, start, end in iter_pieces(text, rule)]
    sequence = [(word, start, end) for word, start, end in kept if word]
    low, high = rule.ngram_range
    for n in range(low, high + 1):
        for i in range(len(sequence) - n + 1):
            gram = sequence[i : i + n]
            yield " ".join(word for word, _, _ in gram), gram[0][1], gram[-1][2]


def decode_tokens(arena: np.ndarray, ends: np.ndarray) -> list[str]:
    """The tokens as strings."""
    text = arena.tobytes()
    return [text[start:end].decode() for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]


def are_tokens_distinct(arena: np.ndarray, ends: np.ndarray) -> bool:
    """Whether tokens are contiguous, start at character boundaries, and are distinct."""
    text, stops = arena.tobytes(), [0, *ends.tolist()]
    if stops[-1] != len(text) or not all(0 < b - a < MAX_TOKEN_BYTES for a, b in pairwise(stops)):
        return False
    if any(text[a] & 0xC0 == 0x80 for a in stops[:-1]):
        return False
    return len({text[a:b] for a, b in pairwise(stops)}) == len(ends)
