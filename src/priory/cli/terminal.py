"""What a person sees: notes and progress on standard error, answers on standard output, nothing unprintable."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Any

import click
from click.formatting import wrap_text

MAX_LINE_WIDTH = 100  # columns


def escape_unprintable(text: str) -> str:
    """Text of unknown origin, fit for a terminal: what does not print is spelt out.

    >>> escape_unprintable("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def format_one_line(text: str) -> str:
    return escape_unprintable(" ".join(text.split("\n")))


def print_note(text: str) -> None:
    """A line for the person, not for the pipe."""
    click.echo(f"priory: {format_one_line(text)}", err=True)


def format_count(count: float, name: str) -> str:
    """So many of a thing.

    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,.0f} {name}" + ("" if count == 1 else "s")


def format_heading(text: str) -> str:
    return text if "NO_COLOR" in os.environ else click.style(text, bold=True)


def _find_line_width() -> int:
    return min(MAX_LINE_WIDTH, get_terminal_size((MAX_LINE_WIDTH, 0)).columns)


def print_item(name: str, entries: list[str]) -> None:
    """A name and what there is to list of it, wrapped to the width of the terminal."""
    text = escape_unprintable(f"{name}: {', '.join(entries)}")
    click.echo(wrap_text(text, _find_line_width(), initial_indent="  ", subsequent_indent="    "))


def print_lines(text: str, indent: str = "  ") -> None:
    """Several lines, each made printable; sentences are wrapped, tables are not."""
    for line in text.splitlines():
        told = f"{indent}{escape_unprintable(line)}".rstrip()
        click.echo(told if "  " in line else wrap_text(told, _find_line_width(), subsequent_indent=indent))


def print_json(answer: Any) -> None:
    """One JSON document; what is NaN or infinite is null there."""
    click.echo(json.dumps(replace_non_finite(answer), ensure_ascii=False, allow_nan=False, indent=2))


def replace_non_finite(answer: Any) -> Any:
    """The answer with None for numbers JSON does not know.

    >>> replace_non_finite({"log loss": [float("inf"), 0.5]})
    {'log loss': [None, 0.5]}
    """
    if isinstance(answer, dict):
        return {str(name): replace_non_finite(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [replace_non_finite(value) for value in answer]
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer


def invoke_command(app: click.Command, arguments: list[str]) -> None:
    """Run a command line; what goes wrong is raised."""
    with app.make_context("priory", list(arguments)) as context:
        app.invoke(context)


def _is_on_terminal() -> bool:
    """Whether a line that changes can be seen."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class ProgressLine:
    """A line on the terminal that says how far things are, once they have taken a second."""

    def __init__(self, total: int | None) -> None:
        self.total, self.bytes_read, self.start_time, self.last_drawn = total, 0, time.monotonic(), 0.0
        self.is_on_terminal = _is_on_terminal()

    def __call__(self, n_bytes: int) -> None:
        self.bytes_read += n_bytes
        now = time.monotonic()
        if self.is_on_terminal and now - self.start_time > 1 and now - self.last_drawn > 0.1:
            self.last_drawn = now
            share = f"{100 * self.bytes_read / self.total:3.0f} %  " if self.total else ""
            speed = self.bytes_read / (now - self.start_time) / 1e6
            sys.stderr.write(f"\r\x1b[K{share}{self.bytes_read / 1e6:,.0f} MB read, {speed:,.0f} MB/s")
            sys.stderr.flush()

    def clear(self) -> None:
        if self.last_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def show_progress(paths: list[str]) -> Iterator[ProgressLine]:
    """How much of the files was read; a share of it where their sizes are known."""
    sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]
    shown = ProgressLine(sum(sizes) if len(sizes) == len(paths) else None)
    try:
        yield shown
    finally:
        shown.clear()


@contextmanager
def show_activity(activity: str) -> Iterator[None]:
    """What is being done, on a terminal, while it is."""
    shown = _is_on_terminal()
    if shown:
        sys.stderr.write(f"\r\x1b[K{activity} ...")
        sys.stderr.flush()
    try:
        yield
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
