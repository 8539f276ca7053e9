"""What the machine has: memory and cores, on every operating system."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

CONTAINER_LIMIT, PROCESS_LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/proc/self/limits")  # on Linux


def total_memory_bytes() -> int | None:
    """The size of the machine's memory, or None if it cannot be found out; then nothing is checked against it."""
    if hasattr(os, "sysconf"):  # Windows has none
        with suppress(ValueError, OSError):  # a system may not know these names
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _ask_psutil()


def find_memory_limit() -> int | None:
    """The memory that this process may use: what there is, and what the system allows; None if it is not known."""
    machine = total_memory_bytes()
    return None if machine is None else min(machine, *_list_limits())


def _list_limits() -> list[int]:
    """The limits that a container, or whoever started the process, has set."""
    limits = [sys.maxsize]
    with suppress(OSError, ValueError):  # no such file, or "max"
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
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
