"""Counters and histograms in the text format of Prometheus."""

from __future__ import annotations

import mmap
import os
import shutil
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
LabelSet = tuple[tuple[str, str], ...]
HELP = {
    "priory_changes_waiting": "Changes that wait to be written.",
    "priory_disk_free_bytes": "Free space on the disk of the data folder.",
    "priory_journal_bytes": "Size of the journal with its log.",
    "priory_models": "Models that are served.",
    "priory_prediction_batches_total": "Batches in which predictions were computed.",
    "priory_request_seconds": "Time from the first byte of a request to the last byte of its answer.",
    "priory_requests_total": "Requests by route and status.",
    "priory_model_requests_total": "Requests by model and outcome: ok, refused (4xx) or failed (5xx).",
    "priory_rows_total": "Rows that were predicted, learned or forgotten.",
    "priory_stage_seconds": "Time of each stage of a request: queue, model, journal.",
    "process_cpu_seconds_total": "Processor time of the process.",
    "process_open_fds": "Open file descriptors.",
    "process_resident_memory_bytes": "Resident memory of the process.",
    "process_start_time_seconds": "Start of the process, in seconds since 1970.",
}
MAX_LABELLED_MODELS = 100  # further models are counted as "other"
MAX_CLASSES_COUNTED = 20  # of the answers of a model in an hour; further classes are counted as "other"


class Metrics:
    """Counters, histograms and gauges of the service, by labels such as route, stage or operation."""

    max_hours = 48  # of traffic

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[str, dict[LabelSet, float]] = defaultdict(lambda: defaultdict(float))
        # one count for each bucket, one for +Inf, and the sum of seconds
        self._histograms: dict[str, dict[LabelSet, list[float]]] = defaultdict(
            lambda: defaultdict(lambda: [0.0] * (len(BUCKETS) + 2))
        )
        self._gauges: dict[str, Callable[[], float]] = {}
        self._models: set[str] = set()
        self._traffic: dict[tuple[int, str], Counter[tuple[str, str]]] = {}  # by hour and model

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        with self._lock:
            self._counters[name][tuple(sorted(labels.items()))] += amount

    def count_model(self, model: str, outcome: str) -> None:
        """Count a request of a model; only so many models have a label of their own."""
        with self._lock:
            if model not in self._models and len(self._models) >= MAX_LABELLED_MODELS:
                model = "other"
            self._models.add(model)
        self.count("priory_model_requests_total", model=model, outcome=outcome)
        self.count_traffic(model, "request", ["all", outcome])

    def count_traffic(self, model: str, kind: str, names: Iterable[str]) -> None:
        """Count requests (all, and by outcome) or answers (by class) in the current hour; old hours are dropped."""
        hour = int(time.time()) // 3600
        with self._lock:
            if (hour, model) not in self._traffic:
                self._traffic = {key: known for key, known in self._traffic.items() if key[0] > hour - self.max_hours}
            counts = self._traffic.setdefault((hour, model), Counter())
            for name in names:
                is_counted = (kind, name) in counts or len(counts) < MAX_CLASSES_COUNTED
                counts[kind, name if is_counted else "other"] += 1

    def list_traffic(self, model: str) -> list[tuple[float, Counter[tuple[str, str]]]]:
        """The start of each hour with requests of a model, the latest first, and what was counted in it."""
        with self._lock:
            own = {hour: Counter(counts) for (hour, name), counts in self._traffic.items() if name == model}
        return [(3600.0 * hour, own[hour]) for hour in sorted(own, reverse=True)]

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to a histogram."""
        with self._lock:
            counts = self._histograms[name][tuple(sorted(labels.items()))]
            counts[bisect_left(BUCKETS, seconds)] += 1
            counts[-1] += seconds

    def observe_stage(self, stage: str, seconds: float) -> None:
        self.observe("priory_stage_seconds", seconds, stage=stage)

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add a gauge, whose value is read when the metrics are formatted."""
        self._gauges[name] = read

    def format(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        lines = []
        with self._lock:
            for name, values in sorted(self._counters.items()):
                lines += _format_header(name, "counter")
                lines += [f"{name}{_format_labels(own)} {value:g}" for own, value in sorted(values.items())]
            for name, found in sorted(self._histograms.items()):
                lines += _format_header(name, "histogram")
                for own, counts in sorted(found.items()):
                    lines += _format_histogram(name, own, counts)
        for name, read in sorted(self._gauges.items()):
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [*_format_header(name, kind), f"{name} {read():.17g}"]
        return "\n".join(lines) + "\n"


def _format_header(name: str, kind: str) -> list[str]:
    return [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind}"]


def watch_process(metrics: Metrics, folder: Path) -> None:
    """Add gauges of this process, the journal and the disk, with the names that other exporters use."""
    start = time.time()
    metrics.watch("process_start_time_seconds", lambda: start)
    metrics.watch("process_cpu_seconds_total", time.process_time)
    if Path("/proc/self/statm").exists():
        pages = Path("/proc/self/statm")
        metrics.watch("process_resident_memory_bytes", lambda: int(pages.read_text().split()[1]) * mmap.PAGESIZE)
        metrics.watch("process_open_fds", lambda: len(os.listdir("/proc/self/fd")))
    metrics.watch("priory_disk_free_bytes", lambda: shutil.disk_usage(folder).free)
    metrics.watch("priory_journal_bytes", lambda: sum(p.stat().st_size for p in folder.glob("journal.sqlite*")))


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
