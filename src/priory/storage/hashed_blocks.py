"""Bytes in blocks of a mebibyte: read and hashed on all cores."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, TypeVar

from priory.core.sharding import THREADS
from priory.errors import BadModel

ALIGNED = 64
BLOCK = 1 << 20

Chunk = memoryview | bytes
S = TypeVar("S")
T = TypeVar("T")


def padding(size: int) -> bytes:
    """Noughts up to the next multiple of 64."""
    return bytes(-size % ALIGNED)


def digests(chunks: Iterable[Chunk], threads: int = THREADS) -> list[str]:
    """The SHA-256 of each block of the chunks, one after the other.

    >>> [digest[:8] for digest in digests([b"ab", b"c"])]
    ['ba7816bf']
    """
    return _each(_digest, list(_blocks(chunks)), threads)


def _each(function: Callable[[S], T], items: Sequence[S], threads: int = THREADS) -> list[T]:
    """The function of every item, on so many threads."""
    if len(items) < 2 or threads < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def _digest(block: list[memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in block:
        digest.update(piece)
    return digest.hexdigest()


def _blocks(chunks: Iterable[Chunk]) -> Iterator[list[memoryview]]:
    """Pieces of chunks that are a block together."""
    block: list[memoryview] = []
    room = BLOCK
    for chunk in chunks:
        left = memoryview(chunk)
        while len(left):
            block.append(left[:room])
            left, room = left[room:], room - len(block[-1])
            if not room:
                yield block
                block, room = [], BLOCK
    if block:
        yield block


def arrived(file: BinaryIO, start: int, size: int, mapped: bool) -> memoryview:
    """The file in memory, from ``start`` on: its own pages, or pages of its own, which are large where they can be."""
    if mapped:
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY))
    buffer = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        buffer.madvise(mmap.MADV_HUGEPAGE)
    view = memoryview(buffer)

    def read(at: int) -> None:
        stop = min(at + 4 * BLOCK, size)
        while at < stop:
            more = os.preadv(file.fileno(), [view[at:stop]], at)
            if not more:
                raise BadModel("the file became shorter while it was read.")
            at += more

    _each(read, range(start, size, 4 * BLOCK))
    return view
