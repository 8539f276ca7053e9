"""Bytes in blocks of a mebibyte: read and hashed on all cores."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from priory.counting import THREADS
from priory.errors import BadModel

ALIGNED = 64
BLOCK = 1 << 20

Chunk = memoryview | bytes


def padding(size: int) -> bytes:
    """Noughts up to the next multiple of 64."""
    return bytes(-size % ALIGNED)


def digests(chunks: Iterable[Chunk]) -> list[str]:
    """The SHA-256 of each block of the chunks, one after the other.

    >>> [digest[:8] for digest in digests([b"ab", b"c"])]
    ['ba7816bf']
    """
    blocks = list(_blocks(chunks))
    if len(blocks) == 1 or THREADS == 1:
        return [_digest(block) for block in blocks]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(_digest, blocks))


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
    while start < size:  # a read gives two gigabytes at most
        more = os.preadv(file.fileno(), [view[start:]], start)
        if not more:
            raise BadModel("the file became shorter while it was read.")
        start += more
    return view
