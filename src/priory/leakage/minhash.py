"""Near-duplicate texts in time near linear in their length: shingles, MinHash, and buckets of bands (LSH).

A text is the set of its runs of `SIZE` bytes. Their hashes fall into `BINS` bins, and the smallest of each bin is kept
(one-permutation MinHash; an empty bin borrows from its right neighbour): two texts agree in a bin about as often as
their sets overlap. Texts that agree in a whole band of `BAND` bins are compared, first by their bins, then exactly. A
pair that shares `ALIKE` of its shingles meets in a band with probability 1 - (1 - ALIKE^BAND)^(BINS / BAND) = 0.99995.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.typing import Array
from priory.leakage.row_hashes import mixed

SIZE = 9  # bytes of a shingle: a word and a half of Latin script, three signs of Han
BINS = 128
BAND = 5
ALIKE = 0.8  # of the shingles of both texts are shared by near-duplicates
CHUNK = 1 << 22  # bytes hashed at a time
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse modulo 2^64
INVERSE = np.uint64(pow(int(BASE), -1, 1 << 64))
NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)


def clusters(texts: Sequence[str]) -> Array:
    """A number for each text; texts have the same one if they are near-duplicates, or linked by some.

    >>> clusters(["the quick brown fox jumps over the lazy dog today", "something else",
    ...           "The quick brown fox jumps over the lazy dog today!"]).tolist()
    [0, 1, 0]
    """
    documents = [" ".join(text.casefold().split()).encode(errors="replace") for text in texts]
    leader = list(range(len(documents)))

    def led(i: int) -> int:
        while leader[i] != i:
            leader[i] = i = leader[leader[i]]
        return i

    for i, j in zip(*_candidates(sketches(documents)), strict=True):
        a, b = sorted((led(int(i)), led(int(j))))
        if a != b and _alike(documents[i], documents[j]):
            leader[b] = a
    return np.unique([led(i) for i in range(len(leader))], return_inverse=True)[1]


def sketches(documents: Sequence[bytes]) -> Array:
    """(documents, BINS): the smallest shingle hash of each bin."""
    sizes = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
    ends = np.cumsum(sizes)
    sketch = np.full((len(documents), BINS), NOTHING)
    start = 0
    while start < len(documents):
        stop = int(max(start + 1, np.searchsorted(ends, ends[start] + CHUNK)))
        _fill(sketch[start:stop], documents[start:stop])
        start = stop
    return _lent(sketch)


def _fill(sketch: Array, documents: Sequence[bytes]) -> None:
    """Every shingle's hash into the bin it falls into, where it stays if it is the smallest."""
    sizes = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
    hashes, owner = shingles(b"".join(documents), sizes)
    np.minimum.at(sketch.reshape(-1), owner * BINS + (hashes >> np.uint64(57)).astype(np.int64), hashes)


def shingles(text: bytes, sizes: Array) -> tuple[Array, Array]:
    """The hash of every shingle and the document it is of; a document shorter than a shingle is one.

    A shingle is a polynomial of its bytes: the difference of two sums over the whole text, put back to where it starts.
    """
    letters = np.frombuffer(text, dtype=np.uint8).astype(np.uint64) + np.uint64(1)
    powers = np.full(len(letters), BASE)
    np.multiply.accumulate(powers, out=powers)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(letters * powers, dtype=np.uint64)])
    np.multiply.accumulate(np.full(len(letters), INVERSE), out=powers)
    count = np.where(sizes > 0, np.maximum(sizes - SIZE + 1, 1), 0)
    owner = np.repeat(np.arange(len(sizes)), count)
    begins = np.cumsum(sizes) - sizes
    at = np.arange(len(owner)) + np.repeat(begins - (np.cumsum(count) - count), count)
    stop = np.minimum(at + SIZE, np.repeat(begins + sizes, count))
    return mixed((sums[stop] - sums[at]) * powers[at]), owner


def _lent(sketch: Array) -> Array:
    """Empty bins filled from the next full one to the right, marked by the distance."""
    full = sketch != NOTHING
    twice = np.hstack([full, full])
    place = np.where(twice, np.arange(2 * BINS), 4 * BINS)
    nearest = np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1][:, :BINS]
    empty = ~full.any(axis=1)
    nearest[empty] = np.arange(BINS)
    distance = (nearest - np.arange(BINS)).astype(np.uint64)
    return np.take_along_axis(sketch, nearest % BINS, axis=1) + distance * BASE


def _candidates(sketch: Array) -> tuple[Array, Array]:
    """Pairs that agree in a band, and in about as many bins as near-duplicates do."""
    order = np.random.default_rng(0).permutation(BINS)  # lent bins stand side by side: spread them over the bands
    found = []
    told = np.flatnonzero((sketch != NOTHING).any(axis=1))
    for band in range(BINS // BAND):
        bins = sketch[:, order[band * BAND : (band + 1) * BAND]]
        key = np.zeros(len(sketch), dtype=np.uint64)
        for column in bins.T:
            key = mixed(key + column)
        key = key[told]
        by_key = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[by_key][1:] == key[by_key][:-1])
        found.append(np.stack([told[by_key[same]], told[by_key[same + 1]]]))
    pairs = np.unique(np.hstack(found), axis=1)
    least = ALIKE - 4 * np.sqrt(ALIKE * (1 - ALIKE) / BINS)
    parts = [pairs[:, at : at + CHUNK // BINS] for at in range(0, pairs.shape[1], CHUNK // BINS)]
    kept = [part[:, (sketch[part[0]] == sketch[part[1]]).mean(axis=1) >= least] for part in parts]
    first, second = np.hstack([pairs[:, :0], *kept])
    return first, second


def _alike(a: bytes, b: bytes) -> bool:
    """Whether two texts share `ALIKE` of their shingles, counted exactly."""
    first, second = (np.unique(shingles(text, np.array([len(text)]))[0]) for text in (a, b))
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared >= ALIKE * (len(first) + len(second) - shared)
