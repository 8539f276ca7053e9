"""What the machine has: memory and cores, on every operating system."""

from __future__ import annotations

import os
from contextlib import suppress


def total_memory_bytes() -> int | None:
    """The size of the machine's memory, or None if it cannot be found out; then nothing is checked against it."""
    if hasattr(os, "sysconf"):  # Windows has none
        with suppress(ValueError, OSError):  # a system may not know these names
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _ask_psutil()


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
