"""Texts to tokens: the declared tokenizer, stop words, stems; counting, scoring and encoding many documents."""

from __future__ import annotations

import re
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import text as kernel
from priory.core.statistics import register_record
from priory.errors import DataError, MissingDependencyError, ModelTooLargeError
from priory.text.documents import (
    CONTEXT_DEPENDENT_LETTERS,
    DocumentBatch,
    convert_classes,
    is_ascii_batch,
    iter_document_batches,
    locate_decoding_errors,
    map_batch,
    prepare_document,
    read_documents,
)
from priory.text.normal_forms import READERS, Document, Reader


def load_stop_words(language_or_words: str | Iterable[str] | None) -> frozenset[str] | None:
    """Return the stop words of a language such as "en", or the given words, as a frozenset."""
    if language_or_words is None:
        return None
    if isinstance(language_or_words, str):
        return _load_stop_words_of_language(language_or_words)
    return frozenset(language_or_words)


@lru_cache(maxsize=8)
def _load_stop_words_of_language(language: str) -> frozenset[str]:
    try:
        from stopwordsiso import has_lang, stopwords
    except ImportError:
        raise MissingDependencyError("stop words by language need stopwordsiso: pip install 'priory[text]'.") from None
    if not has_lang(language):
        raise DataError(f"stop_words is {language!r}; use a language code such as 'en', or give the words.")
    return frozenset(stopwords(language))


class Stemmer(Protocol):
    """The part of PyStemmer's interface that is used."""

    def stemWords(self, words: list[str]) -> list[str]:
        """The stem of each word."""


def load_stemmer(language: str | None) -> Stemmer:
    """The Snowball stemmer of a language."""
    try:
        import Stemmer as snowball
    except ImportError:
        raise MissingDependencyError("stem needs PyStemmer: pip install 'priory[text]'.") from None
    if language not in snowball.algorithms():
        raise DataError(f"stem is {language!r}; use one of {', '.join(snowball.algorithms())}.")
    stemmer: Stemmer = snowball.Stemmer(language)
    return stemmer


BYTES_TO_DECODE = 1 << 20
N_CODE_POINTS = 0x33480  # all that are letters, digits, marks or white space come before
INDIC_SCRIPTS = ("Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala")
# Scripts written with spaces between words, by Unicode's blocks. Letters of other blocks go with any script.
SCRIPTS_WITH_SPACES = {
    "Latin": [(0x41, 0x250), (0x250, 0x2B0), (0x1E00, 0x1F00), (0x2C60, 0x2C80), (0xA720, 0xA800), (0xAB30, 0xAB70)],
    "Greek": [(0x370, 0x400), (0x1F00, 0x2000)],
    "Cyrillic": [(0x400, 0x530), (0x1C80, 0x1C90), (0x2DE0, 0x2E00), (0xA640, 0xA6A0)],
    "Armenian": [(0x530, 0x590), (0xFB13, 0xFB18)],
    "Hebrew": [(0x590, 0x600), (0xFB1D, 0xFB50)],
    "Arabic": [(0x600, 0x700), (0x750, 0x780), (0x870, 0x900), (0xFB50, 0xFE00), (0xFE70, 0xFF00)],
    "Syriac": [(0x700, 0x750)],
    "Thaana": [(0x780, 0x7C0)],
    "N'Ko": [(0x7C0, 0x800)],
    "Devanagari": [(0x900, 0x980), (0xA8E0, 0xA900)],
    **{name: [(0x980 + 128 * i, 0xA00 + 128 * i)] for i, name in enumerate(INDIC_SCRIPTS)},
    "Tibetan": [(0xF00, 0x1000)],
    "Georgian": [(0x10A0, 0x1100), (0x1C90, 0x1CC0), (0x2D00, 0x2D30)],
    "Hangul": [(0x1100, 0x1200), (0x3130, 0x3190), (0xA960, 0xA980), (0xAC00, 0xD800), (0xFFA0, 0xFFE0)],
    "Ethiopic": [(0x1200, 0x13A0), (0x2D80, 0x2DE0), (0xAB00, 0xAB30)],
    "Cherokee": [(0x13A0, 0x1400), (0xAB70, 0xABC0)],
    "Mongolian": [(0x1800, 0x18B0)],
}
SCRIPTS_WITHOUT_SPACES = {
    "Han": [(0x3005, 0x3008), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x33480)],
    "Hiragana, Katakana": [(0x3041, 0x30FB), (0x30FC, 0x3100), (0x31F0, 0x3200), (0xFF66, 0xFFA0), (0x1B000, 0x1B170)],
    "Thai, Lao": [(0x0E01, 0x0F00)],
    "Khmer, Myanmar": [(0x1000, 0x10A0), (0x1780, 0x1800), (0xA9E0, 0xAA00), (0xAA60, 0xAA80)],
}
SPACELESS_LETTER_PATTERN = (
    "[" + "".join(f"{chr(a)}-{chr(b - 1)}" for spans in SCRIPTS_WITHOUT_SPACES.values() for a, b in spans) + "]"
)
# Where combining marks are; the tables skip the rest. Variation selectors and enclosing marks belong to symbols.
BLOCKS_WITH_MARKS = (
    *((0x300, 0x2000), (0x20D0, 0x20DD), (0x2C00, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFC00)),
    *((0xFE20, 0xFE30), (0x10000, 0x13000), (0x16A00, 0x17000), (0x1BC00, 0x1C000), (0x1D000, 0x1F000)),
)

Analyzer = Literal["word", "char", "char_wb"]
TokenResultT = TypeVar("TokenResultT")


def estimate_word_count(text: str) -> int:
    """Estimate the number of words of a text, from its spaces, or two letters per word in scripts without spaces.

    >>> estimate_word_count("lunch at noon"), estimate_word_count("送餐很快")
    (3, 3)
    """
    return 1 + text.count(" ") + (0 if text.isascii() else len(re.findall(SPACELESS_LETTER_PATTERN, text)) // 2)


@register_record("Tokens")
@dataclass(frozen=True)
class Tokenizer:
    """How texts are split into tokens.

    A word is a run of letters, combining marks, digits and underscores; a letter of another script ends it. Scripts
    written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are read as characters, each with its marks,
    and pairs of neighbouring characters. Texts are read in the normal form NFC, and words are truncated to 1,024 code
    points. Stop words are removed and words are stemmed before n-grams are formed.

    Parameters
    ----------
    lowercase : bool
        Whether texts are converted to lower case.
    analyzer : "word", "char" or "char_wb"
        Tokens are words, n-grams of characters, or n-grams of characters within words.
    min_token_length : int
        The minimum length of a word, in code points.
    ngram_range : (int, int)
        The minimum and maximum length of n-grams.
    stop_words : frozenset of str, optional
        Words to leave out.
    stem : str, optional
        A language of the Snowball stemmer. Needs PyStemmer.
    extra_tokens : str
        Characters that are tokens by themselves, such as "!?".
    reader : "text", "mail" or "mail_body"
        Texts are read as they are, or as mail (see `priory.text.mail`), where a colon joins a prefix to its word.
    """

    lowercase: bool = True
    analyzer: Analyzer = "word"
    min_token_length: int = 2
    ngram_range: tuple[int, int] = (1, 1)
    stop_words: frozenset[str] | None = None
    stem: str | None = None
    extra_tokens: str = ""
    reader: Reader = "text"

    def __post_init__(self) -> None:
        if self.analyzer not in ("word", "char", "char_wb"):
            raise DataError(f'analyzer is {self.analyzer!r}; use "word", "char" or "char_wb".')
        if not 1 <= self.min_token_length <= kernel.MAX_WORD_LENGTH:
            raise DataError(
                f"min_token_length is {self.min_token_length!r}; use 1 to {kernel.MAX_WORD_LENGTH} code points."
            )
        if len(self.ngram_range) != 2 or not 1 <= self.ngram_range[0] <= self.ngram_range[1] <= 32:
            raise DataError(
                f"ngram_range is {self.ngram_range!r}; give the shortest and the longest, from (1, 1) to (32, 32)."
            )
        if any(c.isspace() or "\ud800" <= c <= "\udfff" for c in self.extra_tokens):
            raise DataError(f"extra_tokens is {self.extra_tokens!r}; white space separates tokens and cannot be one.")
        if self.analyzer != "word" and (self.stop_words or self.stem or self.extra_tokens):
            raise DataError("stop_words, stem and extra_tokens are for words; n-grams of characters do without.")
        if self.reader not in READERS:
            raise DataError(f"reader is {self.reader!r}; use one of {', '.join(map(repr, READERS))}.")
        if self.stem is not None:
            load_stemmer(self.stem)

    def build_rule(self, documents: DocumentBatch) -> kernel.Rule:
        """The rule by which the kernel tokenizes these documents."""
        wide = not is_ascii_batch(documents)
        return _cached_rule(self, wide) if self.stem is None else self._build_stemming_rule(documents, wide)

    def _build_stemming_rule(self, documents: DocumentBatch, wide: bool) -> kernel.Rule:
        """The rule with the stems of all distinct words of the batch."""
        # collect the distinct words of the batch first, because stemming each occurrence would be slow
        surface = kernel.Counter(1)
        plain = replace(self, stem=None, stop_words=None, ngram_range=(1, 1))
        surface.add(documents, _cached_rule(plain, wide), np.zeros(len(documents), dtype=np.int32), None, False)
        words = decode_vocabulary(*surface.result()[:2])
        stems: dict[str, str | None] = dict(zip(words, load_stemmer(self.stem).stemWords(words), strict=True))
        return _build_rule(self, wide, {word: stem for word, stem in stems.items() if stem != word})


@lru_cache(maxsize=32)
def _cached_rule(tokenizer: Tokenizer, wide: bool) -> kernel.Rule:
    return _build_rule(tokenizer, wide, {})


def _build_rule(tokenizer: Tokenizer, wide: bool, stems: dict[str, str | None]) -> kernel.Rule:
    kinds, lowered = _character_tables(tokenizer.lowercase, tokenizer.extra_tokens, tokenizer.reader != "text", wide)
    rewrites = {**stems, **dict.fromkeys(tokenizer.stop_words or ())}
    return kernel.Rule(tokenizer.analyzer, tokenizer.min_token_length, tokenizer.ngram_range, kinds, lowered, rewrites)


def build_character_tables(tokenizer: Tokenizer) -> tuple[Array, Array]:
    """The kind of each code point and its lower case, for exports."""
    return _character_tables(tokenizer.lowercase, tokenizer.extra_tokens, tokenizer.reader != "text", True)


@lru_cache(maxsize=8)
def _character_tables(lowercase: bool, extra_tokens: str, is_mail: bool, wide: bool) -> tuple[Array, Array]:
    """The kind of each code point and its lower case, by Python's rules; ``wide`` includes non-ASCII characters."""
    size = N_CODE_POINTS if wide else 128
    lowered = np.arange(size, dtype="<u4")
    # a string of all code points in order, so that regular expressions classify all of them in one pass
    everything = lowered.tobytes().decode("utf-32-le", "surrogatepass")
    kinds = np.zeros(size, dtype=np.uint8)
    for pattern, kind in ((r"\w+", kernel.WORD), (r"\s+", kernel.SPACE)):
        for run in re.finditer(pattern, everything):
            kinds[run.start() : run.end()] = kind
    is_letter = kinds == kernel.WORD
    for run in re.finditer(r"[\d_]+", everything):
        is_letter[run.start() : run.end()] = False
    if wide:
        kinds[_list_combining_marks()] = kernel.MARK
    for script, spans in enumerate(SCRIPTS_WITH_SPACES.values()):
        for start, end in spans:
            kinds[start:end][is_letter[start:end]] = kernel.LETTER + script
    for start, end in (span for spans in SCRIPTS_WITHOUT_SPACES.values() for span in spans):
        kinds[start:end][is_letter[start:end]] = kernel.SPACELESS
    if lowercase:
        one_by_one = (
            everything.replace(CONTEXT_DEPENDENT_LETTERS[0], "σ").replace(CONTEXT_DEPENDENT_LETTERS[1], "i").lower()
        )
        lowered = np.frombuffer(one_by_one.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    if is_mail:
        kinds[ord(":")] = kernel.JOINER
    kinds[np.isin(lowered, [ord(c) for c in extra_tokens])] = kernel.SINGLE  # after lower-casing, like words
    return kinds, lowered.astype(np.uint32)


@lru_cache(maxsize=1)
def _list_combining_marks() -> list[int]:
    return [c for a, b in BLOCKS_WITH_MARKS for c in range(a, b) if unicodedata.category(chr(c)) in ("Mn", "Mc")]


class TokenIndex:
    """An index of a vocabulary: the column of every token.

    >>> index = TokenIndex.of(["money", "send"])
    >>> encode_documents(["Send money, money!"], index, Tokenizer())[1].tolist()
    [1, 0]
    """

    def __init__(self, arena: Array, ends: Array, analyzer: str = "word") -> None:
        self.ends, self.analyzer = ends, analyzer
        self.kernel = kernel.Index(arena, ends, analyzer == "word")

    @classmethod
    def of(cls, vocabulary: Iterable[str], analyzer: str = "word") -> TokenIndex:
        """Index a fixed dictionary, with columns in the order given."""
        words = list(vocabulary)
        if "" in words or len(set(words)) < len(words):
            raise DataError("a token of the vocabulary is empty or given twice; give each token once.")
        return cls(*encode_vocabulary(words), analyzer)

    def __len__(self) -> int:
        return len(self.ends)

    def find_columns(self, arena: Array, ends: Array) -> Array:
        """The column of each token, or -1; for an index with ``analyzer="whole"``."""
        return self.kernel.find_columns(arena, ends)


def decode_vocabulary(arena: Array, ends: Array) -> list[str]:
    """The tokens of an arena as strings."""
    text = arena.tobytes()
    return [text[start:end].decode() for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]


def is_valid_vocabulary(arena: Array, ends: Array) -> bool:
    """Whether tokens are UTF-8, contiguous, start at character boundaries, and are distinct."""
    return _is_utf8(arena) and kernel.are_tokens_distinct(np.ascontiguousarray(arena), np.ascontiguousarray(ends))


def _is_utf8(arena: Array) -> bool:
    """Whether bytes are UTF-8, checked without a copy of all of them."""
    decoder, memory = getincrementaldecoder("utf-8")(), np.ascontiguousarray(arena).data
    try:
        for start in range(0, len(memory), BYTES_TO_DECODE):
            decoder.decode(memory[start : start + BYTES_TO_DECODE])
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def take_tokens(arena: Array, ends: Array, numbers: Array) -> tuple[Array, Array]:
    """Select tokens by their numbers, in the order given; returns arena and ends."""
    gathered: tuple[Array, Array] = kernel.gather_tokens(
        np.ascontiguousarray(arena), np.ascontiguousarray(ends), np.ascontiguousarray(numbers, dtype=np.int64)
    )
    return gathered


def encode_vocabulary(vocabulary: list[str]) -> tuple[Array, Array]:
    """Encode tokens as an arena (all tokens concatenated in UTF-8) and the end of each."""
    words = [word.encode() for word in vocabulary]
    return np.frombuffer(b"".join(words), dtype=np.uint8), np.cumsum([len(w) for w in words], dtype=np.int64)


def map_document_shards(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    function: Callable[[kernel.Rule, int, DocumentBatch, slice], TokenResultT],
    max_shards: int | None = None,
) -> Iterator[TokenResultT]:
    """Yield ``function(rule, shard, documents, rows)`` for every shard of every batch, in order."""
    for start, batch in iter_document_batches(documents, tokenizer.lowercase, tokenizer.reader):
        with locate_decoding_errors(batch, start):
            rule = tokenizer.build_rule(batch)
        yield from map_batch(batch, start, partial(function, rule), max_shards)


class TokenCounter:
    """Counts tokens incrementally, in any number of calls; the classes are 0 .. groups - 1."""

    def __init__(self, groups: int, tokenizer: Tokenizer, binary: bool = True, max_tokens: int | None = None) -> None:
        self.groups, self.tokenizer, self.binary, self.max_tokens = groups, tokenizer, binary, max_tokens
        self.counters: dict[int, kernel.Counter] = {}

    def add(
        self, documents: Iterable[Document], group: Array, weight: Array | None = None, threads: int | None = None
    ) -> None:
        classes, weights = convert_classes(group, weight)

        def add_shard(rule: kernel.Rule, shard: int, part: DocumentBatch, rows: slice) -> None:
            counter = self.counters.setdefault(shard, kernel.Counter(self.groups, self.max_tokens or 0))
            counter.add(part, rule, classes[rows], None if weights is None else weights[rows], self.binary)

        # Sums of fractional weights depend on their order, which must not depend on the number of threads.
        whole = weights is None or bool((weights == np.rint(weights)).all())
        with self._raise_if_too_large():
            for _ in map_document_shards(documents, self.tokenizer, add_shard, threads if whole else 1):
                pass

    def result(self) -> tuple[Array, Array, Array, float]:
        """Arena, ends, counts (tokens, classes), and an upper bound of the error of any count."""
        with self._raise_if_too_large():
            total = self.counters.pop(0, None) or kernel.Counter(self.groups, self.max_tokens or 0)
            for shard in sorted(self.counters):
                total.merge(self.counters.pop(shard))
            return total.result()

    @contextmanager
    def _raise_if_too_large(self) -> Iterator[None]:
        try:
            yield
        except MemoryError:
            raise ModelTooLargeError(
                f"the counts of {self.groups} classes do not fit into memory; set max_tokens, or hash the tokens."
            ) from None


def score_documents(
    documents: Iterable[Document],
    index: TokenIndex,
    table: Array,
    tokenizer: Tokenizer,
    *,
    binary: bool = True,
    unknown: Array | None = None,
) -> Array:
    """Sum of ``table[token]`` over the known tokens of each document, (documents, columns of the table).

    ``unknown`` is the row for all tokens that are not in the index. They share a slot: ``binary`` adds it once for each
    document.
    """
    rows = np.ascontiguousarray(table, dtype=np.float64)
    slot = None if unknown is None else np.ascontiguousarray(unknown, dtype=np.float64)
    parts = map_document_shards(
        documents, tokenizer, lambda rule, _, part, __: index.kernel.score(part, rule, rows, binary, slot)
    )
    return np.concatenate([np.zeros((0, rows.shape[1])), *parts])


def encode_documents(
    documents: Iterable[Document], index: TokenIndex, tokenizer: Tokenizer, *, unknown: bool = False
) -> tuple[Array, Array, Array]:
    """Encode documents as sparse rows ``(indptr, columns, occurrences)``; ``unknown`` adds a column for the rest."""
    return join_row_parts(
        map_document_shards(documents, tokenizer, lambda rule, _, part, __: index.kernel.encode(part, rule, unknown)),
        np.int32,
    )


def join_row_parts(parts: Iterable[tuple[Array, Array, Array]], dtype: type[np.integer]) -> tuple[Array, Array, Array]:
    """Concatenate sparse rows ``(indptr, columns, occurrences)``; ``dtype`` is the dtype of the columns."""
    found = list(parts)
    # row pointers of the parts, joined via the sizes of the rows
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(ends) for ends, _, _ in found)])
    columns = np.concatenate([np.zeros(0, dtype), *(columns for _, columns, _ in found)])
    return np.cumsum(sizes), columns, np.concatenate([np.zeros(0), *(times for _, _, times in found)])


def find_token_spans(document: Document, tokenizer: Tokenizer) -> list[tuple[str, int, int]]:
    """The tokens of one document, each with its start and end in code points of the original text.

    >>> find_token_spans("Cheap flights to Rome", Tokenizer(ngram_range=(1, 2), stop_words=frozenset({"to", "cheap"})))
    [('flights', 6, 13), ('rome', 17, 21), ('flights rome', 6, 21)]
    """
    [document] = read_documents([document], tokenizer.reader)
    ready = prepare_document(document, 0, tokenizer.lowercase)
    text, whole = (str(one) if isinstance(one, str) else one.decode() for one in (ready, document))
    with locate_decoding_errors([ready], 0):
        rule = tokenizer.build_rule([ready])
        found = kernel.find_pieces(text, rule)
    if tokenizer.analyzer == "word":
        found = _join_words(found, rule.rewrites, tokenizer.ngram_range)
    if text == whole:
        return found
    # Letters may be composed, or become two in lower case: map each to the position of its cluster.
    starts, ends = _locate_clusters(whole, tokenizer.lowercase)
    return [(token, starts[start], ends[end - 1]) for token, start, end in found]


def _join_words(
    words: Sequence[tuple[str, int, int]], rewrites: Mapping[str, str | None], ngram_range: tuple[int, int]
) -> list[tuple[str, int, int]]:
    """N-grams of words, after words are replaced by their stems and stop words (None) are dropped."""
    stems = [(rewrites.get(word, word), start, end) for word, start, end in words]
    kept = [(stem, start, end) for stem, start, end in stems if stem]
    grams = [kept[i : i + n] for n in range(ngram_range[0], ngram_range[1] + 1) for i in range(len(kept) - n + 1)]
    return [(" ".join(word for word, _, _ in gram), gram[0][1], gram[-1][2]) for gram in grams]


def _locate_clusters(text: str, lowercase: bool) -> tuple[list[int], list[int]]:
    """For each code point of the prepared text: start and end, in the given one, of the letter with its marks."""
    starts, ends = [], []
    vowels_and_finals = "\u1160-\u11ff"  # of Hangul
    pattern = f"(?s).[{''.join(map(chr, _list_combining_marks()))}{vowels_and_finals}]*"
    for cluster in re.finditer(pattern, text):
        prepared = unicodedata.normalize("NFC", cluster[0])
        size = len(prepared.lower() if lowercase else prepared)
        starts += [cluster.start()] * size
        ends += [cluster.end()] * size
    return starts, ends
