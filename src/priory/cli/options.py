"""Options that several commands share, and what they mean to the readers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from priory.sources import Asked
    from priory.sources.kinds import Said

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow", "text", "mail")
TYPES = ("numeric", "label", "text", "bernoulli", "categorical", "gamma", "gaussian", "histogram", "poisson")


def reading(command: F) -> F:
    """How files are read."""
    for option in reversed(
        [
            click.option("--format", type=click.Choice(FORMATS), help="What the files are; else found out."),
            click.option("--delimiter", help="Between the cells of a CSV; else found in the header."),
            click.option("--encoding", default="utf-8", show_default=True, help="Of texts; 'auto' goes by the BOM."),
            click.option("--errors", type=click.Choice(["strict", "replace"]), default="strict", help="At bad bytes."),
            click.option("--ragged", type=click.Choice(["error", "pad", "skip"]), default="error", help="Uneven rows."),
            click.option("--no-quotes", is_flag=True, help="Quotation marks in a CSV are text like any other."),
            click.option("--skip-bad", type=click.IntRange(0), default=0, metavar="N", help="Leave out N bad lines."),
            click.option("--keep-going", is_flag=True, help="Leave out files that may not be read."),
        ]
    ):
        command = option(command)
    return command


def columns(command: F) -> F:
    """What the columns are."""
    for option in reversed(
        [
            click.option("--target", metavar="COLUMN", help="The column to be learned."),
            click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE", help=f"One of {', '.join(TYPES)}."),
            click.option("--text", metavar="A,B", help="Columns that are texts."),
            click.option("--ignore", multiple=True, metavar="A,B", help="Columns to leave out."),
            click.option("--missing", multiple=True, metavar="A,B", help="Cells that mean nothing, such as NA or ?."),
            click.option("--skip-unlabelled", is_flag=True, help="Leave out rows without a label."),
            click.option("--labels-as-text", is_flag=True, help="Even if the labels look like numbers to predict."),
        ]
    ):
        command = option(command)
    return command


json_option = click.option("--json", "json_", is_flag=True, help="Answer in JSON.")
force_option = click.option("--force", is_flag=True, help="Replace a file that is there.")


def asked(given: dict[str, Any]) -> Asked:
    """The options of `reading`, taken out of what a command was given."""
    from priory.sources import Asked, Faults
    from priory.sources.streams import Decoding

    delimiter = given.pop("delimiter")
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or not delimiter.isascii():
            raise click.BadParameter(f"{delimiter!r} is not one ASCII character.", param_hint="--delimiter")
    return Asked(
        given.pop("format"),
        delimiter,
        Decoding(given.pop("encoding"), given.pop("errors")),
        Faults(given.pop("ragged"), given.pop("skip_bad"), not given.pop("no_quotes")),
        given.pop("keep_going"),
    )


def said(given: dict[str, Any]) -> Said:
    """The options of `columns`, taken out of what a command was given."""
    from priory.sources.kinds import Said

    types = dict(_pair(pair) for pair in given.pop("types"))
    types |= dict.fromkeys(_listed(given.pop("text")), "text")
    ignore = given.pop("ignore")
    return Said(
        given.pop("target"),
        types,
        tuple(name for item in ignore for name in (item.split(",") if item else [""])),
        frozenset(value for item in given.pop("missing") for value in item.split(",")),
        given.pop("skip_unlabelled"),
        given.pop("labels_as_text"),
    )


def _listed(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _pair(text: str) -> tuple[str, str]:
    name, _, kind = text.rpartition("=")
    if not name or kind not in TYPES:
        raise click.BadParameter(
            f"{text!r} is not COLUMN=TYPE; a type is one of {', '.join(TYPES)}.", param_hint="--type"
        )
    return name, kind


def output(path: str | None, inputs: list[str], force: bool) -> str | None:
    """A path that may be written: not an input, not there unless forced, in a folder that is there."""
    if path is None or path == "-":
        return None
    target = Path(path)
    for given in inputs:
        if given != "-" and os.path.exists(given) and target.exists() and os.path.samefile(given, path):
            raise FileExistsError(17, "is an input; it is never overwritten: name another file", path)
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "there is no such folder; make it first", str(target.parent))
    if target.exists() and target.is_file() and not force:
        raise FileExistsError(17, "is there already; use --force to replace it", path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; name a file", path)
    return path
