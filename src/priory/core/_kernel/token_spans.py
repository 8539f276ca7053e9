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

# Kinds of code points. LETTER + i is a letter of script i; digits and the underscore belong to the word around them.
SEPARATOR, WORD, SINGLE, SPACELESS, SPACE, MARK, JOINER, LETTER = range(8)
MAX_CLUSTER_LENGTH = 32  # code points of a character with its marks; a mark beyond that begins the next

StrOrBytes = str | bytes


class Rule:
    """The declared tokenizer: ``kinds`` and ``lowered`` of each code point; those beyond them are separators."""

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
        return int(self.kinds[ord(character)]) if ord(character) < len(self.kinds) else SEPARATOR

    def lower(self, character: str) -> str:
        return chr(self.lowered[ord(character)]) if ord(character) < len(self.lowered) else character


def lowercase_text(document: StrOrBytes, rule: Rule, number: int = 0) -> str:
    """Lower-case a text character by character; context-dependent letters must be lowered before."""
    try:
        text = decode_document(document)
    except UnicodeError as error:
        raise UnicodeError(number, error.start) from None  # type: ignore[attr-defined]  # a decoding error has it
    return "".join(map(rule.lower, text))


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
    """Yield words of one script, single-character tokens, and the characters and pairs of scripts without spaces."""
    for kind, start, end in iter_runs(text, rule):
        if kind == SPACELESS:
            edges = list(iter_clusters(text, start, end, rule))
            for i, (a, b) in enumerate(pairwise(edges)):
                if i:
                    yield text[edges[i - 1] : b], edges[i - 1], b
                yield text[a:b], a, b
        elif kind == SINGLE or (kind != SEPARATOR and end - start >= rule.min_token_length):
            yield text[start : min(end, start + MAX_WORD_LENGTH)], start, end


def iter_runs(text: str, rule: Rule) -> Iterator[tuple[int, int, int]]:
    """Yield runs of characters: (kind, start, end). A letter of another script ends a word."""
    run, start = SEPARATOR, 0
    for at, character in enumerate(text):
        kind = rule.kind(character)
        extended = extend_run(run, kind)
        if extended is None:
            yield run, start, at
            run, start = {MARK: WORD, JOINER: WORD, SPACE: SEPARATOR}.get(kind, kind), at
        else:
            run = extended
    yield run, start, len(text)


def extend_run(run: int, kind: int) -> int | None:
    """The kind of a run after one more character; None if the character begins another run."""
    is_word = run == WORD or run >= LETTER
    if kind == MARK:
        return run if is_word or run == SPACELESS else None
    if kind == JOINER:
        return WORD if is_word else None  # letters of any script may follow
    if kind == WORD:
        return run if is_word else None
    if kind >= LETTER:
        return kind if run in (WORD, kind) else None
    return kind if kind == run and kind != SINGLE else None


def iter_clusters(text: str, start: int, end: int, rule: Rule) -> Iterator[int]:
    """Yield where each character with its marks begins, then the end."""
    first = start - MAX_CLUSTER_LENGTH
    for at in range(start, end):
        if rule.kind(text[at]) != MARK or at - first >= MAX_CLUSTER_LENGTH:
            first = at
            yield at
    yield end


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
