"""Memory and cores of the machine, on every operating system."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

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
