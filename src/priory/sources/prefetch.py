"""Read ahead: run an iterator on its own thread, a few items ahead of its consumer."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

from priory.errors import DataError

StreamItemT = TypeVar("StreamItemT")


def peek_first(items: Iterator[StreamItemT]) -> tuple[StreamItemT, Iterator[StreamItemT]]:
    """The first item, and an iterator over all items including the first."""
    for first in items:
        return first, itertools.chain([first], items)
    raise DataError("there are no rows to learn from; give labelled rows")


def read_ahead(items: Iterator[StreamItemT], depth: int = 4) -> Iterator[StreamItemT]:
    """Yield the same items, with the next ``depth`` computed in advance. Errors are raised in the consumer."""
    ready: queue.Queue[tuple[StreamItemT | None, BaseException | None, bool]] = queue.Queue(depth)
    stopped = threading.Event()

    def put_item(item: StreamItemT | None, error: BaseException | None, last: bool) -> None:
        while not stopped.is_set():
            try:
                return ready.put((item, error, last), timeout=0.1)
            except queue.Full:
                continue

    def run() -> None:
        try:
            for item in items:
                put_item(item, None, False)
                if stopped.is_set():
                    return
            put_item(None, None, True)
        except BaseException as error:
            put_item(None, error, True)

    reader = threading.Thread(target=run, daemon=True)
    reader.start()
    try:
        while True:
            item, error, last = ready.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]  # only the end is None
    finally:
        stopped.set()
        reader.join(timeout=1.0)
