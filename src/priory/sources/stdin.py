"""Standard input, copied to a temporary file, so that errors can be located in a second pass."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from tempfile import TemporaryFile
from threading import Lock
from typing import IO
from weakref import finalize

from priory.errors import DataError

MAX_KEPT_BYTES = 1 << 28


class RereadableStream:
    """A stream that can be read again, if it is short enough and there is room for a copy."""

    def __init__(self, source: IO[bytes]) -> None:
        self.source, self.size, self.lock = source, 0, Lock()
        self.copy: IO[bytes] | None = None
        with suppress(OSError):
            self.copy = TemporaryFile()  # noqa: SIM115 - closed with this object
            finalize(self, self.copy.close)

    def blocks(self, size: int) -> Iterator[bytes]:
        """The stream from the beginning: what was read before, then the rest."""
        position = 0
        while block := self._read_at(position, size):
            position += len(block)
            yield block

    def _read_at(self, position: int, size: int) -> bytes:
        with self.lock:  # Arrow may still be reading
            if position < self.size:
                if self.copy is None:
                    raise DataError("-: is too long to be read again; save it to a file")
                self.copy.seek(position)
                return self.copy.read(size)
            block = self.source.read(size)
            self.size += len(block)
            self._keep_block(block)
            return block

    def _keep_block(self, block: bytes) -> None:
        if self.copy is not None and self.size <= MAX_KEPT_BYTES:
            with suppress(OSError):
                self.copy.seek(0, os.SEEK_END)
                self.copy.write(block)
                self.copy.flush()
                return
        self.copy = None


_get_cached_stream = lru_cache(1)(RereadableStream)


def get_standard_input() -> RereadableStream:
    """The standard input of this process."""
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("-: standard input is closed; give a file")
    return _get_cached_stream(sys.stdin.buffer)
