"""Terminal output: answers on standard output, notes and progress on standard error, unprintable text escaped."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size

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


def _find_line_width() -> int:
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
    from priory.workflows.callbacks import format_count

    if as_json:
        print_json({"model": model, action: result.n_rows, "rows": result.n_rows_known})
    else:
        click.echo(f"{format_count(result.n_rows, 'row')} {action}; {model} now knows {result.n_rows_known:,.0f}")


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
    from priory.cli.progress import StatusLine

    sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]
    line = StatusLine(sum(sizes) if len(sizes) == len(paths) else None, print_note, is_quiet())
    try:
        yield workflows.Callbacks(line.show_progress, line.print_note, line.show_activity)
    finally:
        line.clear()
