"""Timing: the quickest of several runs, the one that other work on the machine disturbs least."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(action: Callable[[], object], runs: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the quickest run."""
    times = []
    for _ in range(runs):
        start = clock()
        action()
        times.append(clock() - start)
    return min(times)
