"""The terminal: answers on standard output, notes and progress on standard error, nothing unprintable."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import click
from click.formatting import wrap_text

from priory import workflows

MAX_LINE_WIDTH = 100  # columns
QUIET_KEY = "priory.quiet"  # in the context of a command


def escape_unprintable(text: str) -> str:
    """Escape unprintable characters, so that untrusted text is safe on a terminal.

    >>> escape_unprintable("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def format_one_line(text: str) -> str:
    return escape_unprintable(" ".join(text.split("\n")))


def is_quiet() -> bool:
    """Whether the command has --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET_KEY))


def print_note(text: str) -> None:
    """Print a note on standard error, unless the command has --quiet."""
    if is_quiet():
        return
    click.echo(f"priory: {format_one_line(text)}", err=True)


def format_heading(text: str) -> str:
    return text if "NO_COLOR" in os.environ else click.style(text, bold=True)


def print_heading(text: str, rest: str = "") -> None:
    """Print a heading, and what follows it on the same line."""
    click.echo(format_heading(text) + rest)


def _find_line_width() -> int:
    from shutil import get_terminal_size  # it imports all compressions

    return min(MAX_LINE_WIDTH, get_terminal_size((MAX_LINE_WIDTH, 0)).columns)


def print_item(name: str, entries: list[str]) -> None:
    """Print a name and a list of entries, wrapped to the width of the terminal."""
    text = escape_unprintable(f"{name}: {', '.join(entries)}")
    click.echo(wrap_text(text, _find_line_width(), initial_indent="  ", subsequent_indent="    "))


def print_lines(text: str, indent: str = "  ") -> None:
    """Print several lines, each made printable; sentences are wrapped, tables are not."""
    for line in text.splitlines():
        printable = f"{indent}{escape_unprintable(line)}".rstrip()
        click.echo(printable if "  " in line else wrap_text(printable, _find_line_width(), subsequent_indent=indent))


def list_evidence(lines: Sequence[tuple[str, float]]) -> list[str]:
    """Words or columns with their decibans.

    >>> list_evidence([("outlook", math.inf), ("wind", 0.55)])
    ['outlook +inf (rules out all others)', 'wind +0.6']
    """
    return [f"{name} {decibans:+.1f}{' (rules out all others)' * math.isinf(decibans)}" for name, decibans in lines]


def print_evidence(evidence: Mapping[str, Sequence[tuple[str, float]]]) -> None:
    """Print the strongest words or columns of each class."""
    print_heading("strongest evidence for each class, in decibans (+10 is ten to one)")
    for name, lines in evidence.items():
        print_item(name, list_evidence(lines))


def print_json(answer: object) -> None:
    """Print one JSON document, with null for numbers that are NaN or infinite."""
    click.echo(json.dumps(replace_non_finite(answer), ensure_ascii=False, allow_nan=False, indent=2))


def replace_non_finite(answer: object) -> object:
    """The answer with None for numbers that JSON does not have.

    >>> replace_non_finite({"log loss": [float("inf"), 0.5]})
    {'log loss': [None, 0.5]}
    """
    if isinstance(answer, dict):
        return {str(name): replace_non_finite(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [replace_non_finite(value) for value in answer]
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer


def print_update(action: str, model: str, result: workflows.UpdateResult, as_json: bool) -> None:
    """Print how many rows were learned or forgotten, and how many the model knows now."""
    from priory.workflows.model_files import format_count

    counter = None if result.issued is None else result.issued.receipt["counter"]
    if as_json:
        known = {"model": model, action: result.n_rows, "rows": result.n_rows_known}
        print_json(known if counter is None else known | {"counter": counter})
    else:
        line = f"{format_count(result.n_rows, 'row')} {action}; {model} now knows {result.n_rows_known:,.0f}"
        click.echo(line if counter is None else f"{line}; receipt {counter} written")


def invoke_command(app: click.Command, arguments: list[str]) -> None:
    """Run a command line; errors are raised."""
    with app.make_context("priory", list(arguments), obj=list(arguments)) as context:
        app.invoke(context)


def format_command_line() -> str:
    """The running command as a line for the shell."""
    context = click.get_current_context()
    return shlex.join(["priory", *context.find_root().obj]) if context.find_root().obj else ""


@contextmanager
def watch_workflow(paths: tuple[str, ...] = ()) -> Iterator[workflows.Callbacks]:
    """Callbacks that print notes and keep a status line while the files are read."""

    sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]
    line = StatusLine(sum(sizes) if len(sizes) == len(paths) else None, print_note, is_quiet())
    try:
        yield workflows.Callbacks(line.show_progress, line.print_note, line.show_activity)
    finally:
        line.clear()


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
        self.is_drawn = self.is_on_terminal
        sys.stderr.write(CLEAR_LINE + text if self.is_on_terminal else f"priory: {text}\n")
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
