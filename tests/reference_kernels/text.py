"""The readable twin of `priory.core._kernel.text`: what counting and looking up tokens mean."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np

MAX_WORD_LENGTH = 1024  # in code points; longer words are truncated (the longest in a dozen real collections has 304)
MAX_TOKEN_BYTES = (1 << 24) - 1  # bytes of a token

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


def find_pieces(document: str, rule: Rule) -> list[tuple[str, int, int]]:
    """The pieces of a document, before stop words and stems."""
    return list(iter_pieces(lowercase_text(document, rule), rule))


def list_tokens(document: StrOrBytes, rule: Rule, number: int = 0) -> list[str]:
    return [token for token, _, _ in iter_token_spans(lowercase_text(document, rule, number), rule)]


class Counter:
    """Counts of tokens for each class; with ``max_tokens``, the rarest are dropped while counting (lossy counting)."""

    def __init__(self, groups: int, max_tokens: int = 0) -> None:
        self.groups, self.max_tokens = groups, max_tokens
        self.counts: dict[str, np.ndarray] = {}
        self.max_dropped: dict[str, float] = {}  # how much of a token may have been dropped before it was met again
        self.missed = 0.0

    def add(
        self, documents: Sequence[StrOrBytes], rule: Rule, group: np.ndarray, weight: np.ndarray | None, once: bool
    ) -> None:
        for i, document in enumerate(documents):
            for token, times in Tally(list_tokens(document, rule, i)).items():
                if token not in self.counts:
                    self.counts[token] = np.zeros(self.groups)
                    self.max_dropped[token] = self.missed
                self.counts[token][group[i]] += (1 if once else times) * (1.0 if weight is None else weight[i])
            if self.max_tokens and len(self.counts) > self.max_tokens:
                self.prune(self.max_tokens, self.max_tokens // 2)

    def prune(self, max_tokens: int, n_kept: int) -> None:
        """Nothing that is dropped was seen more than ``missed`` times: its count and what was dropped before."""
        upper = {t: float(c.sum()) + self.max_dropped[t] for t, c in self.counts.items() if c.any()}
        if len(upper) > max_tokens:
            self.missed = max(self.missed, sorted(upper.values())[len(upper) - n_kept - 1])
            self.counts = {t: self.counts[t] for t, u in upper.items() if u > self.missed}

    def merge(self, other: Counter) -> None:
        for token, counts in other.counts.items():
            self.counts[token] = self.counts.get(token, 0.0) + counts
        self.missed += other.missed
        self.max_dropped = dict.fromkeys(self.counts, self.missed)

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """The sorted tokens one after the other, where each ends, their counts, and a bound on their errors."""
        if self.max_tokens:
            self.prune(self.max_tokens, self.max_tokens)
        found = sorted(((t.encode(), c) for t, c in self.counts.items() if c.any()), key=itemgetter(0))
        shown, counts = [token for token, _ in found], [counts for _, counts in found]
        arena = np.frombuffer(b"".join(shown), dtype=np.uint8)
        ends = np.cumsum([len(token) for token in shown], dtype=np.int64)
        return arena, ends, np.array(counts).reshape(-1, self.groups), self.missed


class Index:
    """The column of each token. ``split`` says that a space parts the words of an n-gram: nothing to a dictionary."""

    def __init__(self, arena: np.ndarray, ends: np.ndarray, split: bool) -> None:
        self.columns = {token: i for i, token in enumerate(decode_tokens(arena, ends))}
        if len(self.columns) != len(ends) or "" in self.columns:
            raise ValueError("a token is empty or in the vocabulary twice")
        self.size, self.split = len(ends), split

    def find_columns(self, arena: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The column of each of these tokens; -1 where it is not there."""
        return np.array([self.columns.get(token, -1) for token in decode_tokens(arena, ends)], dtype=np.int64)

    def count_row(self, document: StrOrBytes, rule: Rule, number: int) -> Tally[int]:
        """How often the document shows each column; unknown tokens are one more column."""
        return Tally(self.columns.get(token, self.size) for token in list_tokens(document, rule, number))

    def score(
        self, documents: Sequence[StrOrBytes], rule: Rule, table: np.ndarray, once: bool, unknown: np.ndarray | None
    ) -> np.ndarray:
        """The sum of the table's rows over the tokens of each document."""
        rows = np.vstack([table, np.zeros(table.shape[1]) if unknown is None else unknown])
        scores = np.zeros((len(documents), table.shape[1]))
        for i, document in enumerate(documents):
            for column, times in self.count_row(document, rule, i).items():
                scores[i] += rows[column] * (1 if once else times)
        return scores

    def encode(
        self, documents: Sequence[StrOrBytes], rule: Rule, unknown: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (column, count): where each document's row ends, and its columns and counts one after the other."""
        rows = [self.count_row(document, rule, i) for i, document in enumerate(documents)]
        pairs = [[(c, n) for c, n in row.items() if unknown or c < self.size] for row in rows]
        ends = np.cumsum([0, *map(len, pairs)], dtype=np.int64)
        flat = np.array([pair for row in pairs for pair in row], dtype=float).reshape(-1, 2)
        return ends, flat[:, 0].astype(np.int32), flat[:, 1].copy()


class BagReader:
    """Documents as sparse rows of their tokens, which are numbered as they are met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def read(self, documents: Sequence[StrOrBytes], rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (number, count): where each document's row ends, and its numbers and counts one after the other."""
        rows = [Tally(list_tokens(document, rule, i)) for i, document in enumerate(documents)]
        numbers = [self.numbers.setdefault(token, len(self.numbers)) for row in rows for token in row]
        counts = [times for row in rows for times in row.values()]
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return ends, np.array(numbers, dtype=np.int32), np.array(counts, dtype=float)

    def merge(self, other: BagReader) -> np.ndarray:
        """Add the tokens that another reader met; the number here of each of its numbers."""
        numbers = [self.numbers.setdefault(token, len(self.numbers)) for token in other.numbers]
        return np.array(numbers, dtype=np.int64)

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tokens one after the other, where each ends, and which of them each number is, -1 if none."""
        words = sorted(token.encode() for token in self.numbers)
        ends, place = np.cumsum([len(word) for word in words], dtype=np.int64), {w: i for i, w in enumerate(words)}
        tokens = np.array([place[token.encode()] for token in self.numbers], dtype=np.int64)
        return np.frombuffer(b"".join(words), dtype=np.uint8), ends, tokens


def sort_tokens(arena: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Numbers that sort the tokens by their bytes."""
    words = [token.encode() for token in decode_tokens(arena, ends)]
    return np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)


def are_tokens_sorted(arena: np.ndarray, ends: np.ndarray) -> bool:
    """Whether the tokens are strictly increasing by their bytes."""
    return all(a.encode() < b.encode() for a, b in pairwise(decode_tokens(arena, ends)))


def gather_tokens(arena: np.ndarray, ends: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens with these numbers, in the order given."""
    words = [token.encode() for token in decode_tokens(arena, ends)]
    chosen = [words[number] for number in numbers]
    return np.frombuffer(b"".join(chosen), dtype=np.uint8), np.cumsum([len(word) for word in chosen], dtype=np.int64)


class TokenHasher:
    """Tokens hashed into ``size`` buckets; the salt alone decides which."""

    def __init__(self, size: int, salt: int) -> None:
        self.size, self.seeds = size, derive_seeds(salt)

    def count_row(self, document: StrOrBytes, rule: Rule, number: int) -> Tally[int]:
        return Tally(self.find_bucket(token, rule) for token in list_tokens(document, rule, number))

    def find_bucket(self, token: str, rule: Rule) -> int:
        _, b, c = self.seeds
        first, *rest = token.split(" ") if rule.analyzer == "word" else [token]
        h = hash_word(first.encode(), self.seeds)
        for word in rest:
            h = fold_product(h ^ b, hash_word(word.encode(), self.seeds) ^ c)
        return h % self.size

    def count(
        self,
        documents: Sequence[StrOrBytes],
        rule: Rule,
        group: np.ndarray,
        weight: np.ndarray | None,
        groups: int,
        once: bool,
    ) -> np.ndarray:
        """How often each class showed each bucket."""
        counts = np.zeros((self.size, groups))
        for i, document in enumerate(documents):
            for bucket, times in self.count_row(document, rule, i).items():
                counts[bucket, group[i]] += (1 if once else times) * (1.0 if weight is None else weight[i])
        return counts

    def score(self, documents: Sequence[StrOrBytes], rule: Rule, table: np.ndarray, once: bool) -> np.ndarray:
        """The sum of the table's rows over the buckets of each document."""
        scores = np.zeros((len(documents), table.shape[1]))
        for i, document in enumerate(documents):
            for bucket, times in self.count_row(document, rule, i).items():
                scores[i] += table[bucket] * (1 if once else times)
        return scores

    def encode(self, documents: Sequence[StrOrBytes], rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (bucket, count), each in order: where each document's row ends, and its buckets and counts."""
        rows = [sorted(self.count_row(document, rule, i).items()) for i, document in enumerate(documents)]
        buckets = np.array([bucket for row in rows for bucket, _ in row], dtype=np.int64)
        counts = np.array([times for row in rows for _, times in row], dtype=float)
        return np.cumsum([0, *map(len, rows)], dtype=np.int64), buckets, counts


class OpenCounter:
    """Counts of tokens (tokens, classes) that go on changing, and scores from them as they are."""

    def __init__(self, groups: int, arena: np.ndarray, ends: np.ndarray, counts: np.ndarray, split: bool) -> None:
        self.groups = groups
        self.counts = {token: row.copy() for token, row in zip(decode_tokens(arena, ends), counts, strict=True)}
        self.numbers = {token: number for number, token in enumerate(self.counts)}
        self.first_nodes = np.arange(len(self.counts))  # the numbers of the tokens that were there from the start

    @property
    def n_used(self) -> int:
        """The number of tokens that some class has a count of."""
        return sum(bool(row.any()) for row in self.counts.values())

    @property
    def totals(self) -> np.ndarray:
        """(classes,): the counts of all tokens."""
        return np.asarray(sum(self.counts.values(), np.zeros(self.groups)))

    def learn(self, document: StrOrBytes, rule: Rule, group: int, once: bool) -> None:
        """Add the tokens of a document to the counts of its class."""
        for token, times in Tally(list_tokens(document, rule)).items():
            self.numbers.setdefault(token, len(self.numbers))
            self.counts.setdefault(token, np.zeros(self.groups))[group] += 1 if once else times

    def forget(self, document: StrOrBytes, rule: Rule, group: int, once: bool) -> bool:
        """Take the tokens of a document away, and return True; False, and nothing changed, if they are not there."""
        left = {}
        for token, times in Tally(list_tokens(document, rule)).items():
            if token not in self.counts or self.counts[token][group] < (1 if once else times):
                return False
            left[token] = self.counts[token][group] - (1 if once else times)
        for token, count in left.items():
            self.counts[token][group] = count
        return True

    def score(
        self, document: StrOrBytes, rule: Rule, once: bool, alpha: float, complement: bool
    ) -> tuple[np.ndarray, float]:
        """The sum of log(count + alpha) over the tokens in use, for each class, and the number of tokens in the sum."""
        scores, length = np.zeros(self.groups), 0.0
        for token, times in Tally(list_tokens(document, rule)).items():
            row = self.counts.get(token, np.zeros(self.groups))
            if row.any():
                x = 1 if once else times
                scores += x * np.log((row.sum() - row if complement else row) + alpha)
                length += x
        return scores, length

    def find(self, document: StrOrBytes, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the tokens of a document that are known, each once, and how often it shows them."""
        known = {t: n for t, n in Tally(list_tokens(document, rule)).items() if t in self.numbers}
        return np.array([self.numbers[t] for t in known], dtype=np.int64), np.array([*known.values()], dtype=float)


class SparseOpenCounter(OpenCounter):
    """An `OpenCounter` of counts above zero, where there are many classes; those of a token end at ``entry_ends``."""

    def __init__(
        self,
        n_classes: int,
        arena: np.ndarray,
        ends: np.ndarray,
        entry_ends: np.ndarray,
        classes: np.ndarray,
        values: np.ndarray,
        split: bool,
    ) -> None:
        counts = np.zeros((len(ends), n_classes))
        counts[np.repeat(np.arange(len(ends)), np.diff(entry_ends, prepend=0)), classes] = values
        super().__init__(n_classes, arena, ends, counts, split)


UINT64_MAX = (1 << 64) - 1


def fold_product(a: int, b: int) -> int:
    """Both halves of the product of two 64-bit words, one laid over the other."""
    return (a * b & UINT64_MAX) ^ (a * b >> 64)


def hash_word(word: bytes, seeds: tuple[int, int, int]) -> int:
    """Sixteen bytes at a time, then the length."""
    a, b, c = seeds
    h = 0
    for at in range(0, max(len(word), 1), 16):
        head, tail = (int.from_bytes(word[i : i + 8], "little") for i in (at, at + 8))
        h = fold_product(head ^ a ^ h, tail ^ b)
    return fold_product(h ^ len(word), c)


def derive_seeds(salt: int) -> tuple[int, int, int]:
    """Three odd words from one (splitmix64)."""
    seeds = []
    for _ in range(3):
        salt = salt + 0x9E3779B97F4A7C15 & UINT64_MAX
        z = (salt ^ salt >> 30) * 0xBF58476D1CE4E5B9 & UINT64_MAX
        z = (z ^ z >> 27) * 0x94D049BB133111EB & UINT64_MAX
        seeds.append((z ^ z >> 31) | 1)
    return seeds[0], seeds[1], seeds[2]
