"""Read and hash files in blocks of one mebibyte, on all cores."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, TypeVar

from priory.core.sharding import N_THREADS
from priory.errors import ModelFileError

ALIGNMENT_BYTES = 64  # a cache line
HASH_BLOCK_BYTES = 1 << 20  # hashed independently, on several threads

FileBytes = memoryview | bytes
BlockItemT = TypeVar("BlockItemT")
BlockResultT = TypeVar("BlockResultT")


def make_padding(size: int) -> bytes:
    """Return the zero bytes that pad ``size`` bytes to a multiple of 64."""
    return bytes(-size % ALIGNMENT_BYTES)


def hash_blocks(chunks: Iterable[FileBytes], threads: int = N_THREADS) -> list[str]:
    """Return the SHA-256 of each block of the concatenated chunks.

    >>> [digest[:8] for digest in hash_blocks([b"ab", b"c"])]
    ['ba7816bf']
    """
    return _map_threaded(_hash_block, list(_split_blocks(chunks)), threads)


def _map_threaded(
    function: Callable[[BlockItemT], BlockResultT], items: Sequence[BlockItemT], threads: int = N_THREADS
) -> list[BlockResultT]:
    """Apply a function to every item, on this number of threads."""
    if len(items) < 2 or threads < 2:  # starting threads would cost more
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def _hash_block(block: list[memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in block:
        digest.update(piece)
    return digest.hexdigest()


def _split_blocks(chunks: Iterable[FileBytes]) -> Iterator[list[memoryview]]:
    """Regroup the chunks into blocks, without copying: each block is a list of views."""
    block: list[memoryview] = []
    room = HASH_BLOCK_BYTES
    for chunk in chunks:
        left = memoryview(chunk)
        while len(left):
            block.append(left[:room])
            left, room = left[room:], room - len(block[-1])
            if not room:
                yield block
                block, room = [], HASH_BLOCK_BYTES
    if block:
        yield block


def read_into_memory(file: BinaryIO, start: int, size: int, mapped: bool) -> memoryview:
    """Return the file from ``start`` on: memory-mapped, or read in parallel (into huge pages where available)."""
    if mapped:
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY))  # writable, private to the process
    if not hasattr(os, "preadv"):  # Windows
        return _read_sequentially(file, start, size)
    buffer = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        buffer.madvise(mmap.MADV_HUGEPAGE)
    view = memoryview(buffer)  # indexed by the offset in the file; what precedes `start` stays zero

    def read(at: int) -> None:
        stop = min(at + 4 * HASH_BLOCK_BYTES, size)
        while at < stop:
            # may read less than requested
            more = os.preadv(file.fileno(), [view[at:stop]], at)
            if not more:
                raise ModelFileError("the file became shorter while it was read.")
            at += more

    _map_threaded(read, range(start, size, 4 * HASH_BLOCK_BYTES))
    return view


def _read_sequentially(file: BinaryIO, start: int, size: int) -> memoryview:
    """Return the file from ``start`` on, read by one thread."""
    file.seek(start)
    content = bytes(start) + file.read(size - start)
    if len(content) < size:
        raise ModelFileError("the file became shorter while it was read.")
    return memoryview(bytearray(content))
