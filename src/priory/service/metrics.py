"""Counters and histograms in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
LabelSet = tuple[tuple[str, str], ...]


class Metrics:
    """Counters, histograms and gauges of the service, by labels such as route, stage or operation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[tuple[str, LabelSet], float] = defaultdict(float)
        self._histograms: dict[tuple[str, LabelSet], list[float]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        with self._lock:
            self._counters[name, tuple(sorted(labels.items()))] += amount

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to a histogram."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            # one count for each bucket, one for +Inf, and the sum of seconds
            counts = self._histograms.setdefault(key, [0.0] * (len(BUCKETS) + 2))
            counts[bisect_left(BUCKETS, seconds)] += 1
            counts[-1] += seconds

    def observe_stage(self, stage: str, seconds: float) -> None:
        self.observe("priory_stage_seconds", seconds, stage=stage)

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add a gauge, whose value is read when the metrics are formatted."""
        self._gauges[name] = read

    def format(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        with self._lock:
            counters = dict(self._counters)
            histograms = {key: list(counts) for key, counts in self._histograms.items()}
        lines = []
        for name in sorted({name for name, _ in counters}):
            lines.append(f"# TYPE {name} counter")
            lines += [
                f"{name}{_format_labels(own)} {value:g}" for (n, own), value in sorted(counters.items()) if n == name
            ]
        for name in sorted({name for name, _ in histograms}):
            lines.append(f"# TYPE {name} histogram")
            for (other, own), counts in sorted(histograms.items()):
                lines += _format_histogram(name, own, counts) if other == name else []
        for name, read in sorted(self._gauges.items()):
            lines += [f"# TYPE {name} gauge", f"{name} {read():g}"]
        return "\n".join(lines) + "\n"


def _format_histogram(name: str, labels: LabelSet, counts: list[float]) -> list[str]:
    lines, total = [], 0.0
    for bound, number in zip([*map(str, BUCKETS), "+Inf"], counts[:-1], strict=True):
        total += number
        lines.append(f"{name}_bucket{_format_labels((*labels, ('le', bound)))} {total:g}")
    own = _format_labels(labels)
    return [*lines, f"{name}_sum{own} {counts[-1]:.9g}", f"{name}_count{own} {total:g}"]


def _format_labels(labels: LabelSet) -> str:
    escape: Mapping[int, str] = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{name}="{value.translate(escape)}"' for name, value in labels) + "}" if labels else ""
