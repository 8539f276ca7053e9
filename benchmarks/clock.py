"""Timing: the quickest of several runs, the one that other work on the machine disturbs least."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(action: Callable[[], object], runs: int) -> float:
    """Seconds of the quickest run."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)
