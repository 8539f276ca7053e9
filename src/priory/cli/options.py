"""Options that several commands share, and what they mean to the readers."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from priory.sources import Asked
    from priory.sources.column_types import Said

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow", "text", "mail")
TYPES = ("numeric", "label", "text", "bernoulli", "categorical", "gamma", "gaussian", "histogram", "poisson")
BAGS = ("binary", "multinomial", "bernoulli", "poisson", "complement")
FILE = click.Path(readable=False)  # the shell completes it; whoever opens it says what is wrong


class Option(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *names: Any, section: str = "Options", **given: Any) -> None:
        super().__init__(*names, **given)
        self.section = section

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Without the range, which the help says in words."""
        return {name: told for name, told in super().get_help_extra(ctx).items() if name != "range"}


class Command(click.Command):
    """A command whose help has its options in sections, its own first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            told = option.get_help_record(ctx)
            if told is not None and isinstance(option, click.Option):
                sections.setdefault(getattr(option, "section", "Options"), []).append(told)
        for name, listed in sections.items():
            with formatter.section(name):
                formatter.write_dl(listed)


class Commands(click.Group):
    """Commands in the order one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


command = partial(click.command, cls=Command)


def section(name: str, *options: tuple[tuple[str, ...], dict[str, Any]]) -> Callable[[F], F]:
    """Several options as one decorator, shown together in this order."""
    made = [click.option(*names, cls=Option, section=name, **given) for names, given in options]
    return combined(*made)


def combined(*decorators: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several decorators as one."""
    return lambda function: reduce(lambda done, decorator: decorator(done), reversed(decorators), function)


def option(*names: str, **given: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, given


reading = section(
    "How files are read",
    option("--format", type=click.Choice(FORMATS), metavar="FORMAT", help=f"{', '.join(FORMATS)}; else found out."),
    option("--delimiter", metavar="C", help="Between the cells of a CSV; else found in the header."),
    option("--encoding", default="utf-8", metavar="NAME", help="Of texts; utf-8, or 'auto' to go by the BOM."),
    option("--errors", type=click.Choice(["strict", "replace"]), default="strict", help="At bytes that are no text."),
    option("--ragged", type=click.Choice(["error", "pad", "skip"]), default="error", help="At rows of another length."),
    option("--no-quotes", is_flag=True, help="Quotation marks in a CSV are text like any other."),
    option("--skip-bad", type=click.IntRange(0), default=0, metavar="N", help="Leave out up to N bad lines of JSON."),
    option("--keep-going", is_flag=True, help="Leave out files that may not be read."),
)

columns = section(
    "What the columns are",
    option("--target", metavar="COLUMN", help="The column to be learned."),
    option("--type", "types", multiple=True, metavar="COLUMN=TYPE", help=f"One of {', '.join(TYPES)}."),
    option("--text", metavar="A,B", help="Columns that are texts."),
    option("--ignore", multiple=True, metavar="A,B", help="Columns to leave out."),
    option("--missing", multiple=True, metavar="A,B", help="Cells that mean nothing, such as NA or ?."),
    option("--skip-unlabelled", is_flag=True, help="Leave out rows without a label."),
    option("--labels-as-text", is_flag=True, help="Even if the labels look like numbers to predict."),
)

how_to_learn = section(
    "How it is learned",
    option(
        "--refine/--no-refine",
        default=None,
        help="Correct naive Bayes by a logistic regression; else tables where it helps, texts not.",
    ),
    option("--average", is_flag=True, help="Average over all sets of columns or words: each counts as it matters."),
    option("--alpha", type=float, metavar="A", help="Virtual examples of each value or word; else as fits (texts: 1)."),
    option("--model", type=click.Choice(BAGS), metavar="NAME", help=f"Texts: {', '.join(BAGS)}; else binary."),
    option(
        "--ngrams", type=click.IntRange(1, 5), default=1, metavar="N", help="Texts: runs of up to N words (1 to 5)."
    ),
    option("--most", type=click.IntRange(1), metavar="N", help="Texts: keep no more than N different words."),
    option(
        "--sample",
        type=click.IntRange(50),
        default=5000,
        metavar="N",
        help="Correct and judge it by N rows drawn from all; else 5000.",
    ),
)

model_argument = click.argument("model", type=FILE, metavar="MODEL")
files_argument = click.argument("paths", nargs=-1, required=True, type=FILE, metavar="FILE...")
json_option = click.option("--json", "json_", is_flag=True, help="Answer in JSON.")
force_option = click.option("--force", is_flag=True, help="Replace a file that is there.")


def asked(given: dict[str, Any]) -> Asked:
    """The options of `reading`, taken out of what a command was given."""
    from priory.sources import Asked, Faults
    from priory.sources.byte_streams import Decoding

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
    from priory.sources.column_types import Said

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
