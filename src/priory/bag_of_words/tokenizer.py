"""Text to tokens: the declared tokenizer, and what is done with the tokens of many documents at once.

The default tokens are those of scikit-learn's ``CountVectorizer()``, in every script. Documents are ``str`` or UTF-8
``bytes``, in any iterable; they are read in batches, split over the threads by size, and never copied.

>>> [token for token, _, _ in spans("It's a PRIORY, after all!", Tokens(extra="!"))]
['it', 'priory', 'after', 'all', '!']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal, TypeVar

import numpy as np

from priory._kernel import text as kernel
from priory._kernel import text_reference as reference
from priory.bag_of_words.documents import (
    CONTEXT,
    Batch,
    Document,
    all_ascii,
    batches,
    grouped,
    located,
    over,
    prepared,
    same_number,
)
from priory.core.typing import Array
from priory.errors import DataError, PrioryError, TooLarge

ALL = 0x110000  # code points
LETTERS = {"Lo", "Lm", "Mn", "Mc", "Nl"}  # and marks, by Unicode's categories
WITHOUT_SPACES = {  # scripts written without spaces between words
    "Han": [(0x3005, 0x3008), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x33480)],
    "Hiragana, Katakana": [(0x3041, 0x30FB), (0x30FC, 0x3100), (0x31F0, 0x3200), (0xFF66, 0xFFA0), (0x1B000, 0x1B170)],
    "Thai, Lao": [(0x0E01, 0x0F00)],
    "Khmer, Myanmar": [(0x1000, 0x10A0), (0x1780, 0x1800), (0xA9E0, 0xAA00), (0xAA60, 0xAA80)],
}
SCRIPT = "[" + "".join(f"{chr(a)}-{chr(b - 1)}" for spans in WITHOUT_SPACES.values() for a, b in spans) + "]"

T = TypeVar("T")


def words_in(text: str) -> int:
    """About how many words a text has: by its spaces, and two letters to a word where a script has none.

    >>> words_in("lunch at noon"), words_in("送餐很快")
    (3, 3)
    """
    return 1 + text.count(" ") + (0 if text.isascii() else len(re.findall(SCRIPT, text)) // 2)


@dataclass(frozen=True)
class Tokens:
    """What a token is, declared before any text is seen.

    A word is a run of letters, digits and underscores of at least ``least`` code points; a word longer than 1,024 code
    points is told from others by its first 1,024. ``stop_words`` are left out and words are stemmed before n-grams are
    made. ``unit="char"`` and ``"char_wb"`` give n-grams of characters, the latter inside of words only.
    """

    lowercase: bool = True
    unit: Literal["word", "char", "char_wb"] = "word"
    least: int = 2
    ngrams: tuple[int, int] = (1, 1)
    stop_words: frozenset[str] | None = None
    stem: str | None = None  # a language of Snowball: needs PyStemmer
    extra: str = ""  # characters that are tokens of their own
    cjk: bool = False  # runs of scripts without spaces become pairs of characters

    def __post_init__(self) -> None:
        if self.unit not in ("word", "char", "char_wb"):
            raise DataError(f'unit={self.unit!r}: choose "word", "char" or "char_wb".')
        if not 1 <= self.least <= reference.LONGEST:
            raise DataError(f"least={self.least!r}: the shortest word has 1 to {reference.LONGEST} code points.")
        if len(self.ngrams) != 2 or not 1 <= self.ngrams[0] <= self.ngrams[1] <= 32:
            raise DataError(f"ngrams={self.ngrams!r}: give the shortest and the longest, from (1, 1) to (32, 32).")
        if any(c.isspace() or "\ud800" <= c <= "\udfff" for c in self.extra):
            raise DataError(f"extra={self.extra!r}: white space parts tokens and cannot be one.")
        if self.unit != "word" and (self.stop_words or self.stem or self.extra or self.cjk):
            raise DataError("stop_words, stem, extra and cjk are for words; n-grams of characters have none of them.")
        if self.stem is not None:
            _stemmer(self.stem)

    def rule(self, documents: Batch) -> kernel.Rule:
        """The tables by which these documents are read."""
        wide = not all_ascii(documents)
        return _rule(self, wide) if self.stem is None else self._stemming(documents, wide)

    def _stemming(self, documents: Batch, wide: bool) -> kernel.Rule:
        """Each distinct word of the batch is stemmed once."""
        surface = kernel.Counter(1)
        plain = replace(self, stem=None, stop_words=None, ngrams=(1, 1))
        surface.add(documents, _rule(plain, wide), np.zeros(len(documents), dtype=np.int32), None, False)
        words = reference.spelt(*surface.result()[:2])
        stems: dict[str, str | None] = dict(zip(words, _stemmer(self.stem).stemWords(words), strict=True))
        return _new_rule(self, wide, {word: stem for word, stem in stems.items() if stem != word})


def _stemmer(language: str | None) -> Any:
    try:
        import Stemmer
    except ImportError:
        raise PrioryError("stem needs PyStemmer: pip install priory[text].") from None
    if language not in Stemmer.algorithms():
        raise DataError(f"stem={language!r}: choose one of {', '.join(Stemmer.algorithms())}.")
    return Stemmer.Stemmer(language)


@lru_cache(maxsize=32)
def _rule(tokens: Tokens, wide: bool) -> kernel.Rule:
    return _new_rule(tokens, wide, {})


def _new_rule(tokens: Tokens, wide: bool, stems: dict[str, str | None]) -> kernel.Rule:
    kinds, lowered = _tables(tokens.lowercase, tokens.extra, tokens.cjk, wide)
    rewrites = {**stems, **dict.fromkeys(tokens.stop_words or ())}
    return kernel.Rule(tokens.unit, tokens.least, tokens.ngrams, kinds, lowered, rewrites)


@lru_cache(maxsize=8)
def _tables(lowercase: bool, extra: str, cjk: bool, wide: bool) -> tuple[Array, Array]:
    """What each code point is, by Python's own rules, and its lower case; of ASCII alone where that is enough."""
    size = ALL if wide else 128
    lowered = np.arange(size, dtype="<u4")
    everything = lowered.tobytes().decode("utf-32-le", "surrogatepass")
    kinds = np.zeros(size, dtype=np.uint8)
    for pattern, kind in ((r"\w+", reference.WORD), (r"\s+", reference.SPACE)):
        for run in re.finditer(pattern, everything):
            kinds[run.start() : run.end()] = kind
    if cjk and wide:
        for start, end in (span for spans in WITHOUT_SPACES.values() for span in spans):
            letters = [c for c in range(start, end) if unicodedata.category(chr(c)) in LETTERS]
            kinds[letters] = reference.SCRIPT
    kinds[[ord(c) for c in extra if ord(c) < size]] = reference.SINGLE
    if lowercase:
        one_by_one = everything.replace(CONTEXT[0], "σ").replace(CONTEXT[1], "i").lower()
        lowered = np.frombuffer(one_by_one.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return kinds, lowered.astype(np.uint32)


class Index:
    """The column of every token of a vocabulary, for looking up.

    >>> index = Index.of(["money", "send"])
    >>> encode(["Send money, money!"], index, Tokens())[1].tolist()
    [1, 0]
    """

    def __init__(self, arena: Array, ends: Array, unit: str = "word") -> None:
        self.ends, self.unit = ends, unit
        self.kernel = kernel.Index(arena, ends, unit == "word")

    @classmethod
    def of(cls, vocabulary: Iterable[str], unit: str = "word") -> Index:
        """A fixed dictionary, its columns in the order given."""
        words = list(vocabulary)
        if "" in words or len(set(words)) < len(words):
            raise DataError("a token of the vocabulary is empty or given twice; give each token once.")
        return cls(*packed(words), unit)

    def __len__(self) -> int:
        return len(self.ends)

    def places(self, arena: Array, ends: Array) -> Array:
        """The column of each of these tokens, or -1; for an index of ``unit="whole"``."""
        return self.kernel.places(arena, ends)


def spelt(arena: Array, ends: Array) -> list[str]:
    """The tokens of an arena as strings."""
    return reference.spelt(arena, ends)


def distinct(arena: Array, ends: Array) -> bool:
    """Whether the tokens are one after the other, none begins inside of a character, and none is there twice."""
    return kernel.distinct(np.ascontiguousarray(arena), np.ascontiguousarray(ends))


def taken(arena: Array, ends: Array, numbers: Array) -> tuple[Array, Array]:
    """The arena and the ends of these tokens alone, in this order."""
    starts = np.concatenate([[0], ends[:-1]])[numbers] if len(ends) else np.zeros(0, dtype=np.int64)
    sizes = ends[numbers] - starts
    stops = np.cumsum(sizes, dtype=np.int64)
    return arena[np.repeat(starts - (stops - sizes), sizes) + np.arange(sizes.sum())], stops


def packed(vocabulary: list[str]) -> tuple[Array, Array]:
    """Strings one after the other in UTF-8, and where each ends."""
    words = [word.encode() for word in vocabulary]
    return np.frombuffer(b"".join(words), dtype=np.uint8), np.cumsum([len(w) for w in words], dtype=np.int64)


def each(
    documents: Iterable[Document],
    tokens: Tokens,
    function: Callable[[kernel.Rule, int, Batch, slice], T],
    shards: int | None = None,
) -> Iterator[T]:
    """``function(rule, shard, documents, rows)`` for every shard of every batch, in order."""
    for start, batch in batches(documents, tokens.lowercase):
        with located(batch, start):
            rule = tokens.rule(batch)
        yield from over(batch, start, partial(function, rule), shards)


class Counting:
    """Tokens counted as documents come, in as many calls as it takes; the classes are 0 .. groups-1."""

    def __init__(self, groups: int, tokens: Tokens, once: bool = True, most: int | None = None) -> None:
        self.groups, self.tokens, self.once, self.most = groups, tokens, once, most
        self.counters: dict[int, kernel.Counter] = {}

    def add(
        self, documents: Iterable[Document], group: Array, weight: Array | None = None, threads: int | None = None
    ) -> None:
        classes, weights = grouped(group, self.groups, weight)

        def add(rule: kernel.Rule, shard: int, part: Batch, rows: slice) -> int:
            same_number(max(rows.stop, len(classes)), classes)
            counter = self.counters.setdefault(shard, kernel.Counter(self.groups, self.most or 0))
            counter.add(part, rule, classes[rows], None if weights is None else weights[rows], self.once)
            return len(part)

        # Sums of fractions depend on their order, and the order must not depend on the number of threads.
        whole = weights is None or bool((weights == np.rint(weights)).all())
        with self._in_memory():
            same_number(sum(each(documents, self.tokens, add, threads if whole else 1)), classes)

    def result(self) -> tuple[Array, Array, Array, float]:
        """The tokens one after the other, where each ends, their counts for each class, and how much any may lack."""
        with self._in_memory():
            total = self.counters.pop(0, None) or kernel.Counter(self.groups, self.most or 0)
            for shard in sorted(self.counters):
                total.merge(self.counters.pop(shard))
            return total.result()

    @contextmanager
    def _in_memory(self) -> Iterator[None]:
        try:
            yield
        except MemoryError:
            raise TooLarge(
                f"the counts of {self.groups} classes do not fit into memory; set most, or hash the tokens."
            ) from None


def score(
    documents: Iterable[Document],
    index: Index,
    table: Array,
    tokens: Tokens,
    *,
    once: bool = True,
    unknown: Array | None = None,
) -> Array:
    """The sum of ``table[token]`` over the known tokens of each document: (documents, columns of the table).

    ``unknown`` is the row of all tokens that are not in the index. They share a slot: ``once`` adds it once a document.
    """
    rows = np.ascontiguousarray(table, dtype=np.float64)
    slot = None if unknown is None else np.ascontiguousarray(unknown, dtype=np.float64)
    parts = each(documents, tokens, lambda rule, _, part, __: index.kernel.score(part, rule, rows, once, slot))
    return np.concatenate([np.zeros((0, rows.shape[1])), *parts])


def encode(
    documents: Iterable[Document], index: Index, tokens: Tokens, *, unknown: bool = False
) -> tuple[Array, Array, Array]:
    """The documents as sparse rows: ``(indptr, columns, occurrences)``; ``unknown`` adds a last column for the rest."""
    parts = list(each(documents, tokens, lambda rule, _, part, __: index.kernel.encode(part, rule, unknown)))
    sizes = [np.diff(ends) for ends, _, _ in parts]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]) if sizes else np.zeros(1)
    columns = np.concatenate([np.zeros(0, dtype=np.int32), *(columns for _, columns, _ in parts)])
    return indptr.astype(np.int64), columns, np.concatenate([np.zeros(0), *(counts for _, _, counts in parts)])


def spans(document: Document, tokens: Tokens) -> list[tuple[str, int, int]]:
    """The tokens of one document, each with its start and end in code points of the original text.

    >>> spans("Cheap flights to Rome", Tokens(ngrams=(1, 2), stop_words=frozenset({"to", "cheap"})))
    [('flights', 6, 13), ('rome', 17, 21), ('flights rome', 6, 21)]
    """
    ready = prepared(document, 0, tokens.lowercase)
    with located([ready], 0):
        rewrites = tokens.rule([ready]).rewrites
        text = reference.text_of(ready)
    whole = reference.text_of(document)
    kinds, lowered = _tables(tokens.lowercase, tokens.extra, tokens.cjk, True)
    rule = reference.Rule(tokens.unit, tokens.least, tokens.ngrams, kinds, lowered, rewrites)
    found = reference.spans(reference.folded(text, rule), rule)
    if len(text) == len(whole):
        return list(found)
    # One letter became two: where each letter of the lowered text stood before.
    stood = [i for i, c in enumerate(whole) for _ in c.lower()]
    return [(token, stood[start], stood[end - 1] + 1) for token, start, end in found]


def count_hashed(
    documents: Iterable[Document],
    group: Array,
    groups: int,
    tokens: Tokens,
    buckets: int,
    salt: int,
    weight: Array | None = None,
    *,
    once: bool = True,
) -> Array:
    """Counts (buckets, classes) of tokens hashed with the model's salt. They merge by addition.

    Tokens that share a bucket are one token: ``once`` counts the bucket once a document.
    """
    hashed = kernel.Buckets(buckets, salt)
    classes, weights = grouped(group, groups, weight)

    def add(rule: kernel.Rule, _: int, part: Batch, rows: slice) -> tuple[int, Array]:
        same_number(max(rows.stop, len(classes)), classes)
        return len(part), hashed.count(
            part, rule, classes[rows], None if weights is None else weights[rows], groups, once
        )

    total, read = np.zeros((buckets, groups)), 0
    for documents_read, counts in each(documents, tokens, add):
        total += counts
        read += documents_read
    same_number(read, classes)
    return total


def score_hashed(documents: Iterable[Document], table: Array, tokens: Tokens, salt: int, *, once: bool = True) -> Array:
    """The sum of ``table[bucket]`` over the tokens of each document."""
    rows = np.ascontiguousarray(table, dtype=np.float64)
    hashed = kernel.Buckets(len(rows), salt)
    parts = each(documents, tokens, lambda rule, _, part, __: hashed.score(part, rule, rows, once))
    return np.concatenate([np.zeros((0, rows.shape[1])), *parts])
