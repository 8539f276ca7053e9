"""Show progress: a line that is redrawn on a terminal, or a line every ten seconds in a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

CLEAR_LINE = "\r\x1b[K"
SECONDS_BEFORE_PROGRESS = 2.0  # shorter work shows no progress
SECONDS_BETWEEN_DRAWINGS, SECONDS_BETWEEN_LOG_LINES = 0.1, 10.0


class StatusLine:
    """How much was read, as a percentage with an estimate of the time that is left, or what is being done."""

    def __init__(self, n_bytes_in_all: int | None, notify: Callable[[str], None], is_quiet: bool = False) -> None:
        self.n_bytes_in_all, self.n_bytes_read, self.notify = n_bytes_in_all, 0, notify
        self.start_time = self.time_shown = time.monotonic()
        self.is_quiet, self.is_on_terminal, self.is_drawn = is_quiet, is_on_terminal(), False

    def show_progress(self, n_bytes: int) -> None:
        """Count bytes that were read, and show how many once that has taken two seconds."""
        self.n_bytes_read += n_bytes
        now = time.monotonic()
        between = SECONDS_BETWEEN_DRAWINGS if self.is_on_terminal else SECONDS_BETWEEN_LOG_LINES
        if now - self.start_time > SECONDS_BEFORE_PROGRESS and now - self.time_shown > between:
            self.time_shown = now
            self._show(format_progress(self.n_bytes_read, self.n_bytes_in_all, now - self.start_time))

    @contextmanager
    def show_activity(self, activity: str) -> Iterator[None]:
        """Show what is being done while it is being done; in a log, a line each ten seconds."""
        finished, start = Event(), time.monotonic()

        def repeat() -> None:
            while not finished.wait(SECONDS_BETWEEN_LOG_LINES):
                self._show(f"{activity}, {format_seconds(time.monotonic() - start)} so far")

        if self.is_on_terminal:
            self._show(f"{activity} ...")
        thread = Thread(target=repeat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            finished.set()
            thread.join()
            self.clear()

    def print_note(self, text: str) -> None:
        self.clear()
        self.notify(text)

    def clear(self) -> None:
        if self.is_drawn:
            sys.stderr.write(CLEAR_LINE)
            sys.stderr.flush()
            self.is_drawn = False

    def _show(self, text: str) -> None:
        if self.is_quiet:
            return
        if self.is_on_terminal:
            self.is_drawn = True
            sys.stderr.write(CLEAR_LINE + text)
            sys.stderr.flush()
        else:
            sys.stderr.write(f"priory: {text}\n")
            sys.stderr.flush()


def is_on_terminal() -> bool:
    """Whether standard error is a terminal that can redraw a line."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def format_progress(n_bytes: int, n_bytes_in_all: int | None, seconds: float) -> str:
    """How much was read in these seconds, how fast, and how long the rest will take.

    >>> format_progress(250_000_000, 1_000_000_000, 5.0)
    '25 %, 250 MB read, 50 MB/s, about 15 s left'
    >>> format_progress(250_000_000, None, 5.0)
    '250 MB read, 50 MB/s'
    """
    speed = f"{n_bytes / 1e6:,.0f} MB read, {n_bytes / seconds / 1e6:,.0f} MB/s"
    if not n_bytes_in_all or not n_bytes:
        return speed
    share = min(n_bytes / n_bytes_in_all, 1.0)
    return f"{share:.0%}, {speed}, about {format_seconds(seconds / share - seconds)} left".replace("%", " %", 1)


def format_seconds(seconds: float) -> str:
    """Format a duration.

    >>> format_seconds(15.2), format_seconds(200)
    ('15 s', '3 min 20 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
