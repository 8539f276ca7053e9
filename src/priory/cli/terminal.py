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

WIDEST = 100  # columns


def plain(text: str) -> str:
    """Text of unknown origin, fit for a terminal: what does not print is spelt out.

    >>> plain("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def one_line(text: str) -> str:
    return plain(" ".join(text.split("\n")))


def note(text: str) -> None:
    """A line for the person, not for the pipe."""
    click.echo(f"priory: {one_line(text)}", err=True)


def many(count: float, name: str) -> str:
    """So many of a thing.

    >>> many(1, "row"), many(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,.0f} {name}" + ("" if count == 1 else "s")


def heading(text: str) -> str:
    return text if "NO_COLOR" in os.environ else click.style(text, bold=True)


def _width() -> int:
    return min(WIDEST, get_terminal_size((WIDEST, 0)).columns)


def item(name: str, told: list[str]) -> None:
    """A name and what there is to list of it, wrapped to the width of the terminal."""
    text = plain(f"{name}: {', '.join(told)}")
    click.echo(wrap_text(text, _width(), initial_indent="  ", subsequent_indent="    "))


def lines(text: str, indent: str = "  ") -> None:
    """Several lines, each made printable; sentences are wrapped, tables are not."""
    for line in text.splitlines():
        told = f"{indent}{plain(line)}".rstrip()
        click.echo(told if "  " in line else wrap_text(told, _width(), subsequent_indent=indent))


def as_json(answer: Any) -> None:
    """One JSON document; what is NaN or infinite is null there."""
    click.echo(json.dumps(finite(answer), ensure_ascii=False, allow_nan=False, indent=2))


def finite(answer: Any) -> Any:
    """The answer with None for numbers JSON does not know.

    >>> finite({"log loss": [float("inf"), 0.5]})
    {'log loss': [None, 0.5]}
    """
    if isinstance(answer, dict):
        return {str(name): finite(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [finite(value) for value in answer]
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer


def invoke(app: click.Command, arguments: list[str]) -> None:
    """Run a command line; what goes wrong is raised."""
    with app.make_context("priory", list(arguments)) as context:
        app.invoke(context)


def _on_terminal() -> bool:
    """Whether a line that changes can be seen."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """A line on the terminal that says how far things are, once they have taken a second."""

    def __init__(self, total: int | None) -> None:
        self.total, self.done, self.began, self.drawn = total, 0, time.monotonic(), 0.0
        self.on_terminal = _on_terminal()

    def __call__(self, more: int) -> None:
        self.done += more
        now = time.monotonic()
        if self.on_terminal and now - self.began > 1 and now - self.drawn > 0.1:
            self.drawn = now
            share = f"{100 * self.done / self.total:3.0f} %  " if self.total else ""
            speed = self.done / (now - self.began) / 1e6
            sys.stderr.write(f"\r\x1b[K{share}{self.done / 1e6:,.0f} MB read, {speed:,.0f} MB/s")
            sys.stderr.flush()

    def clear(self) -> None:
        if self.drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def progress(paths: list[str]) -> Iterator[Progress]:
    """How much of the files was read; a share of it where their sizes are known."""
    sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]
    shown = Progress(sum(sizes) if len(sizes) == len(paths) else None)
    try:
        yield shown
    finally:
        shown.clear()


@contextmanager
def saying(what: str) -> Iterator[None]:
    """What is being done, on a terminal, while it is."""
    shown = _on_terminal()
    if shown:
        sys.stderr.write(f"\r\x1b[K{what} ...")
        sys.stderr.flush()
    try:
        yield
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
