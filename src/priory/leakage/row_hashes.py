"""Hashes of rows, equal for equal rows, and MinHash signatures, similar for similar texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from priory.core.content_hash import scramble_bits
from priory.leakage.audit_tables import AuditColumn, AuditData

SIGNIFICANT_DIGITS = 6  # of a typical number; further digits count as rounding
MAX_NUMBERS_SAMPLED = 10_000


@dataclass(frozen=True)
class RowHashes:
    """The hash of every row, (rows,), training rows first, and of the cells of every column, (rows,) each."""

    rows: Array
    columns: tuple[Array, ...]

    @classmethod
    def of(cls, data: AuditData, loose: bool) -> RowHashes:
        parts = [_hash_column(column, data.n_train, loose) for column in data.columns]
        parts += [_hash_texts(map(keep_alphanumerics, texts) if loose else texts) for texts in data.texts.values()]
        salts = np.arange(1, len(parts) + 1, dtype=np.uint64) * GOLDEN_RATIO_64  # equal cells of two columns differ
        columns = tuple(scramble_bits(part + salt) for salt, part in zip(salts, parts, strict=True))
        return cls(np.asarray(sum(columns)), columns)


GOLDEN_RATIO_64 = np.uint64(0x9E3779B97F4A7C15)
UINT64_MASK = (1 << 64) - 1
NON_ALPHANUMERIC_ASCII = bytes(code for code in range(128) if not chr(code).isalnum())


def _hash_column(column: AuditColumn, n_train: int, loose: bool) -> Array:
    if column.numbers is not None:
        numbers = np.where(column.is_missing, np.nan, column.numbers) + 0.0  # one NaN pattern, and no negative zero
        return (np.round(numbers, count_shared_decimals(numbers, n_train)) + 0.0 if loose else numbers).view(np.uint64)
    codes, values = column.codes_and_values
    readings = (str(value) for value in values)
    return np.append(_hash_texts(map(normalize_label, readings) if loose else readings), np.uint64(0))[codes]


def _hash_texts(texts: Iterable[str]) -> Array:
    return np.array([hash(text) & UINT64_MASK for text in texts], dtype=np.uint64)


def normalize_label(label: str) -> str:
    """Normalise case and white space of a label.

    >>> normalize_label("  Hello \\n World")
    'hello world'
    """
    return " ".join(label.casefold().split())


def keep_alphanumerics(text: str) -> str:
    """Return the letters and digits of a text in lower case, without punctuation and white space.

    >>> keep_alphanumerics("It 's -- ``fine'' !") == keep_alphanumerics("It's fine")
    True
    """
    if text.isascii():
        return text.encode().lower().translate(None, NON_ALPHANUMERIC_ASCII).decode() or text
    return re.sub(r"[\W_]+", "", text.casefold()) or text


def count_shared_decimals(numbers: Array, n_train: int) -> int:
    """Return the number of decimals of the coarser table, at most `SIGNIFICANT_DIGITS` significant digits.

    >>> count_shared_decimals(np.array([3.14159, 2.71828, 3.14, 2.72]), 2)
    2
    """
    return min(_count_decimals(side) for side in (numbers[:n_train], numbers[n_train:]) if len(side))


def _count_decimals(numbers: Array) -> int:
    sample = numbers[:: max(1, len(numbers) // MAX_NUMBERS_SAMPLED)]
    sample = np.abs(sample[np.isfinite(sample) & (sample != 0)])
    if not len(sample):
        return SIGNIFICANT_DIGITS
    size = math.ceil(math.log10(float(np.median(sample))) + 1e-9)  # digits before the decimal point
    max_decimals = max(0, SIGNIFICANT_DIGITS - size)
    for decimals in range(max_decimals):
        if (np.abs(sample - np.round(sample, decimals)) <= 1e-9 * sample).all():
            return decimals
    return max_decimals


SHINGLE_BYTES = 9  # about one and a half words in Latin script, three characters of Chinese
MINHASH_BINS = 128
BINS_PER_BAND = 5
MIN_SHINGLE_OVERLAP = 0.8  # minimum Jaccard similarity of near-duplicates
SHINGLE_CHUNK_BYTES = 1 << 22  # bytes hashed at a time
POLYNOMIAL_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse modulo 2^64
POLYNOMIAL_BASE_INVERSE = np.uint64(pow(int(POLYNOMIAL_BASE), -1, 1 << 64))
EMPTY_BIN = np.uint64(0xFFFFFFFFFFFFFFFF)


def cluster_texts(texts: Sequence[str]) -> Array:
    """Return a cluster number for each text; texts linked by a chain of near-duplicates have the same number.

    >>> cluster_texts(["the quick brown fox jumps over the lazy dog today", "something else",
    ...           "The quick brown fox jumps over the lazy dog today!"]).tolist()
    [0, 1, 0]
    """
    documents = [" ".join(text.casefold().split()).encode(errors="replace") for text in texts]
    leader = list(range(len(documents)))  # union-find

    def find_leader(i: int) -> int:
        while leader[i] != i:
            leader[i] = i = leader[leader[i]]  # path halving
        return i

    for i, j in zip(*_find_candidate_pairs(compute_sketches(documents)), strict=True):
        a, b = sorted((find_leader(int(i)), find_leader(int(j))))
        if a != b and _are_near_duplicates(documents[i], documents[j]):
            leader[b] = a
    return np.unique([find_leader(i) for i in range(len(leader))], return_inverse=True)[1]


def compute_sketches(documents: Sequence[bytes]) -> Array:
    """Return the smallest shingle hash of each bin, (documents, bins)."""
    sizes = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
    ends = np.cumsum(sizes)
    sketch = np.full((len(documents), MINHASH_BINS), EMPTY_BIN)
    start = 0
    while start < len(documents):
        stop = int(max(start + 1, np.searchsorted(ends, ends[start] + SHINGLE_CHUNK_BYTES)))
        _fill_sketch(sketch[start:stop], documents[start:stop])
        start = stop
    return _fill_empty_bins(sketch)


def _fill_sketch(sketch: Array, documents: Sequence[bytes]) -> None:
    """Write the smallest hash of each bin to ``sketch``, (documents, bins); the bin is the highest bits of the hash."""
    sizes = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
    hashes, owner = hash_shingles(b"".join(documents), sizes)
    # 57 = 64 - log2(MINHASH_BINS)
    np.minimum.at(sketch.reshape(-1), owner * MINHASH_BINS + (hashes >> np.uint64(57)).astype(np.int64), hashes)


def hash_shingles(text: bytes, sizes: Array) -> tuple[Array, Array]:
    """Return the hash of every shingle and its document, (shingles,) each; a shorter document is a single shingle.

    The hash is a polynomial in the bytes of a shingle: the difference of two prefix sums over the whole text, divided
    by the power of the base at which the shingle starts.
    """
    letters = np.frombuffer(text, dtype=np.uint8).astype(np.uint64) + np.uint64(1)
    # (bytes,): powers of the base, then prefix sums of letter * power, all modulo 2^64
    powers = np.full(len(letters), POLYNOMIAL_BASE)
    np.multiply.accumulate(powers, out=powers)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(letters * powers, dtype=np.uint64)])
    np.multiply.accumulate(np.full(len(letters), POLYNOMIAL_BASE_INVERSE), out=powers)  # inverse powers
    # (documents,): the number of shingles; at, stop (shingles,): first byte of each shingle and the byte after it
    count = np.where(sizes > 0, np.maximum(sizes - SHINGLE_BYTES + 1, 1), 0)
    owner = np.repeat(np.arange(len(sizes)), count)
    begins = np.cumsum(sizes) - sizes
    at = np.arange(len(owner)) + np.repeat(begins - (np.cumsum(count) - count), count)
    stop = np.minimum(at + SHINGLE_BYTES, np.repeat(begins + sizes, count))
    return scramble_bits((sums[stop] - sums[at]) * powers[at]), owner


def _fill_empty_bins(sketch: Array) -> Array:
    """Fill empty bins from the next full bin to the right (cyclically), altered by the distance."""
    full = sketch != EMPTY_BIN
    # (documents, 2 bins): two copies, so that the search to the right wraps around
    twice = np.hstack([full, full])
    place = np.where(twice, np.arange(2 * MINHASH_BINS), 4 * MINHASH_BINS)
    # (documents, bins): position of the nearest full bin at or to the right of each bin
    nearest = np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1][:, :MINHASH_BINS]
    empty = ~full.any(axis=1)
    nearest[empty] = np.arange(MINHASH_BINS)  # a document without shingles stays empty
    distance = (nearest - np.arange(MINHASH_BINS)).astype(np.uint64)
    return np.take_along_axis(sketch, nearest % MINHASH_BINS, axis=1) + distance * POLYNOMIAL_BASE


def _find_candidate_pairs(sketch: Array) -> tuple[Array, Array]:
    """Return pairs of documents, two arrays (pairs,), that agree in a band and in enough of all bins."""
    # borrowed bins are adjacent: a permutation spreads them over the bands
    order = np.random.default_rng(0).permutation(MINHASH_BINS)
    found = []
    not_empty = np.flatnonzero((sketch != EMPTY_BIN).any(axis=1))
    for band in range(MINHASH_BINS // BINS_PER_BAND):
        bins = sketch[:, order[band * BINS_PER_BAND : (band + 1) * BINS_PER_BAND]]
        key = np.zeros(len(sketch), dtype=np.uint64)
        for column in bins.T:
            key = scramble_bits(key + column)
        key = key[not_empty]
        # documents with the same key become neighbours, and neighbours become pairs
        by_key = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[by_key][1:] == key[by_key][:-1])
        found.append(np.stack([not_empty[by_key[same]], not_empty[by_key[same + 1]]]))
    pairs = np.unique(np.hstack(found), axis=1)
    # four standard errors below the overlap of near-duplicates
    min_agreement = MIN_SHINGLE_OVERLAP - 4 * np.sqrt(MIN_SHINGLE_OVERLAP * (1 - MIN_SHINGLE_OVERLAP) / MINHASH_BINS)
    # compare sketches in chunks of pairs, to bound memory
    parts = [
        pairs[:, at : at + SHINGLE_CHUNK_BYTES // MINHASH_BINS]
        for at in range(0, pairs.shape[1], SHINGLE_CHUNK_BYTES // MINHASH_BINS)
    ]
    kept = [part[:, (sketch[part[0]] == sketch[part[1]]).mean(axis=1) >= min_agreement] for part in parts]
    first, second = np.hstack([pairs[:, :0], *kept])
    return first, second


def _are_near_duplicates(a: bytes, b: bytes) -> bool:
    """Whether the exact Jaccard similarity of two texts is at least `MIN_SHINGLE_OVERLAP`."""
    first, second = (np.unique(hash_shingles(text, np.array([len(text)]))[0]) for text in (a, b))
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared >= MIN_SHINGLE_OVERLAP * (len(first) + len(second) - shared)
