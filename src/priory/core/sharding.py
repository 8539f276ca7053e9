"""Rows in shards on several threads, and the memory and cores that a process may use.

Rows are cut into shards of a fixed size, the shards are processed on threads, and their results are added in order: the
number of threads changes no bit of the result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy import ndarray as Array

from priory.errors import ModelTooLargeError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


CONTAINER_LIMIT, PROCESS_LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/proc/self/limits")  # on Linux


def total_memory_bytes() -> int | None:
    """Physical memory in bytes; None if it cannot be determined."""
    if hasattr(os, "sysconf"):  # not on Windows
        with suppress(ValueError, OSError):  # the names may be unknown to the system
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _ask_psutil()


def find_memory_limit() -> int | None:
    """The memory that this process may use, in bytes: physical memory or a lower limit; None if unknown."""
    machine = total_memory_bytes()
    return None if machine is None else min(machine, *_list_limits())


def exceeds_memory(needed: int) -> bool:
    """Whether so many bytes are more than this process may use."""
    available = find_memory_limit()
    return available is not None and needed > available


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Raise ModelTooLargeError if ``what`` needs more bytes than this process may use."""
    if exceeds_memory(needed):
        needed_gib, available_gib = needed / 2**30, (find_memory_limit() or 0) / 2**30
        raise ModelTooLargeError(
            f"{what} need about {needed_gib:,.0f} GiB, and this machine has {available_gib:,.0f}; {remedy}."
        )


def _list_limits() -> list[int]:
    """Memory limits set by a container or by ulimit."""
    limits = [sys.maxsize]
    with suppress(OSError, ValueError):  # the file does not exist, or contains "max"
        limits.append(int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    with suppress(OSError):
        lines = [line.split() for line in PROCESS_LIMITS.read_text(encoding="ascii").splitlines()]
        limits += [int(words[3]) for words in lines if words[:3] == ["Max", "address", "space"] and words[3].isdigit()]
    return limits


def _ask_psutil() -> int | None:
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.virtual_memory().total)


def n_usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_blas_threads() -> AbstractContextManager[object]:
    """Return a context in which BLAS uses a single thread.

    Meant for many small products: BLAS synchronises its threads after each one, which is slow on a busy machine.
    Measured on two busy cores, the products of a 1,000,000 x 50 table take 4.5 s with BLAS's threads and 0.15 s with
    one BLAS thread in each of ours.
    """
    context: AbstractContextManager[object] = _threadpool_controller().limit(limits=1, user_api="blas")
    return context


@cache
def _threadpool_controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


ROWS_PER_SHARD = 1 << 15
MAX_SCORES_PER_SHARD = 1 << 20
N_THREADS = n_usable_cores()
_has_one_core: ContextVar[bool] = ContextVar("_has_one_core", default=False)

ItemT = TypeVar("ItemT")
ShardResultT = TypeVar("ShardResultT")


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Start no threads in this context, for tasks that already run on every core."""
    before = _has_one_core.set(True)
    try:
        yield
    finally:
        _has_one_core.reset(before)


def choose_threads() -> int:
    """Number of threads to use: one for each core, or one inside `use_one_thread`."""
    return 1 if _has_one_core.get() else N_THREADS


def split_rows(rows: int) -> Iterator[slice]:
    """Yield the row range of each shard.

    >>> [(s.start, s.stop) for s in split_rows(ROWS_PER_SHARD + 1)]
    [(0, 32768), (32768, 32769)]
    """
    return (slice(start, min(start + ROWS_PER_SHARD, rows)) for start in range(0, max(rows, 1), ROWS_PER_SHARD))


def map_threads(function: Callable[[ItemT], ShardResultT], items: Sequence[ItemT]) -> Iterator[ShardResultT]:
    """Yield ``function(item)`` for every item, in order, computed on all cores; holds one result per core at most."""
    threads = choose_threads()
    if len(items) == 1 or threads == 1:
        yield from map(function, items)
        return
    from concurrent.futures import ThreadPoolExecutor  # it imports logging, and small models need no threads

    with ThreadPoolExecutor(threads) as pool:
        # in groups of one item per thread, to bound the memory that finished results take
        for start in range(0, len(items), threads):
            yield from pool.map(function, items[start : start + threads])


def map_shards(function: Callable[[slice], ShardResultT], rows: int) -> Iterator[ShardResultT]:
    """Yield ``function(shard)`` for every shard of the rows, in order."""
    return map_threads(function, list(split_rows(rows)))


def sum_shards(parts: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the sum of the shards' results, element by element; the first result is modified in place."""
    results = iter(parts)
    total = next(results)
    for part in results:
        for sums, more in zip(total, part, strict=True):
            sums += more
    return total


def take_float_rows(x: Array | ColumnSubset, part: slice) -> Array:
    """Return the rows of one shard as contiguous float64."""
    return np.ascontiguousarray(x[part], dtype=np.float64)


class ColumnSubset:
    """A view of some columns of a table, copied one shard at a time."""

    def __init__(self, x: Array, columns: Array) -> None:
        self._x, self._columns = x, columns
        self.shape = (len(x), len(columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> Array:
        return np.take(self._x[part], self._columns, axis=1)


def take_weights(weight: Array | None, part: slice) -> Array | None:
    """Return the weights of one shard as contiguous float64, or None if the rows have no weights."""
    return None if weight is None else np.ascontiguousarray(weight[part], dtype=np.float64)


def score_shards(function: Callable[[slice], Array], rows: int, groups: int) -> Array:
    """Return scores (rows, groups), computed shard by shard; with many groups a shard has fewer rows."""
    scores = np.empty((rows, groups))
    step = min(ROWS_PER_SHARD, max(1, MAX_SCORES_PER_SHARD // max(groups, 1)))

    def score(part: slice) -> None:
        scores[part] = function(part)

    # the threads write to disjoint rows
    for _ in map_threads(score, [slice(start, min(start + step, rows)) for start in range(0, max(rows, 1), step)]):
        pass
    return scores


def space_evenly(rows: int, max_rows: int) -> Array:
    """Return at most ``max_rows`` row numbers, evenly spaced from first to last.

    >>> space_evenly(10, 4).tolist(), space_evenly(3, 100).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.unique(np.linspace(0, rows - 1, min(rows, max_rows)).astype(int))
