"""Options that several commands share, and what they mean to the readers."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from priory.sources import ReadOptions
    from priory.sources.column_types import ColumnOptions

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

FORMAT_CHOICES = ("csv", "tsv", "jsonl", "parquet", "arrow", "text", "mail")
TEXT_MODELS = ("binary", "multinomial", "bernoulli", "poisson", "complement")
FILE_PATH_TYPE = click.Path(readable=False)  # the shell completes it; whoever opens it says what is wrong


class SectionedOption(click.Option):
    """An option that belongs to a section of the help; ``make_help`` is called only if the help is shown."""

    def __init__(
        self, *names: Any, section: str = "Options", make_help: Callable[[], str] | None = None, **given: Any
    ) -> None:
        super().__init__(*names, **given)
        self.section = section
        self._make_help = make_help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self._make_help is not None:
            self.help = self._make_help()
        return super().get_help_record(ctx)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Without the range, which the help says in words."""
        return {name: told for name, told in super().get_help_extra(ctx).items() if name != "range"}


class SectionedCommand(click.Command):
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


class OrderedGroup(click.Group):
    """Commands in the order one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


sectioned_command = partial(click.command, cls=SectionedCommand)


def make_section(name: str, *options: tuple[tuple[str, ...], dict[str, Any]]) -> Callable[[CommandT], CommandT]:
    """Several options as one decorator, shown together in this order."""
    made = [click.option(*names, cls=SectionedOption, section=name, **given) for names, given in options]
    return combine_decorators(*made)


def combine_decorators(*decorators: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Several decorators as one."""
    return lambda function: reduce(lambda done, decorator: decorator(done), reversed(decorators), function)


def define_option(*names: str, **given: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, given


add_reading_options = make_section(
    "How files are read",
    define_option(
        "--format",
        type=click.Choice(FORMAT_CHOICES),
        metavar="FORMAT",
        help=f"{', '.join(FORMAT_CHOICES)}; else found out.",
    ),
    define_option("--delimiter", metavar="C", help="Between the cells of a CSV; else found in the header."),
    define_option("--encoding", default="utf-8", metavar="NAME", help="Of texts; utf-8, or 'auto' to go by the BOM."),
    define_option(
        "--errors", type=click.Choice(["strict", "replace"]), default="strict", help="At bytes that are no text."
    ),
    define_option(
        "--ragged", type=click.Choice(["error", "pad", "skip"]), default="error", help="At rows of another length."
    ),
    define_option("--no-quotes", is_flag=True, help="Quotation marks in a CSV are text like any other."),
    define_option(
        "--skip-bad", type=click.IntRange(0), default=0, metavar="N", help="Leave out up to N bad lines of JSON."
    ),
    define_option("--keep-going", is_flag=True, help="Leave out files that may not be read."),
)


def describe_column_types() -> str:
    from priory.sources.column_types import list_column_types

    return f"One of {', '.join(list_column_types())}."


add_column_options = make_section(
    "What the columns are",
    define_option("--target", metavar="COLUMN", help="The column to be learned."),
    define_option("--type", "types", multiple=True, metavar="COLUMN=TYPE", make_help=describe_column_types),
    define_option("--text", metavar="A,B", help="Columns that are texts."),
    define_option("--ignore", multiple=True, metavar="A,B", help="Columns to leave out."),
    define_option("--missing", multiple=True, metavar="A,B", help="Cells that mean nothing, such as NA or ?."),
    define_option("--skip-unlabelled", is_flag=True, help="Leave out rows without a label."),
    define_option("--labels-as-text", is_flag=True, help="Even if the labels look like numbers to predict."),
)

add_learning_options = make_section(
    "How it is learned",
    define_option(
        "--refine/--no-refine",
        default=None,
        help="Correct naive Bayes by a logistic regression; else tables where it helps, texts not.",
    ),
    define_option(
        "--average", is_flag=True, help="Average over all sets of columns or words: each counts as it matters."
    ),
    define_option(
        "--alpha", type=float, metavar="A", help="Virtual examples of each value or word; else as fits (texts: 1)."
    ),
    define_option(
        "--model", type=click.Choice(TEXT_MODELS), metavar="NAME", help=f"Texts: {', '.join(TEXT_MODELS)}; else binary."
    ),
    define_option(
        "--ngrams", type=click.IntRange(1, 5), default=1, metavar="N", help="Texts: runs of up to N words (1 to 5)."
    ),
    define_option("--most", type=click.IntRange(1), metavar="N", help="Texts: keep no more than N different words."),
    define_option(
        "--sample",
        type=click.IntRange(50),
        default=5000,
        metavar="N",
        help="Correct and judge it by N rows drawn from all; else 5000.",
    ),
)

model_argument = click.argument("model", type=FILE_PATH_TYPE, metavar="MODEL")
files_argument = click.argument("paths", nargs=-1, required=True, type=FILE_PATH_TYPE, metavar="FILE...")
json_option = click.option("--json", "json_", is_flag=True, help="Answer in JSON.")
force_option = click.option("--force", is_flag=True, help="Replace a file that is there.")


def pop_read_options(given: dict[str, Any]) -> ReadOptions:
    """The options of `add_reading_options`, taken out of what a command was given."""
    from priory.sources import BadRowPolicy, ReadOptions
    from priory.sources.byte_streams import Decoding

    delimiter = given.pop("delimiter")
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or not delimiter.isascii():
            raise click.BadParameter(f"{delimiter!r} is not one ASCII character.", param_hint="--delimiter")
    return ReadOptions(
        given.pop("format"),
        delimiter,
        Decoding(given.pop("encoding"), given.pop("errors")),
        BadRowPolicy(given.pop("ragged"), given.pop("skip_bad"), not given.pop("no_quotes")),
        given.pop("keep_going"),
    )


def pop_column_options(given: dict[str, Any]) -> ColumnOptions:
    """The options of `add_column_options`, taken out of what a command was given."""
    from priory.sources.column_types import ColumnOptions

    types = dict(_parse_column_type(pair) for pair in given.pop("types"))
    types |= dict.fromkeys(_split_names(given.pop("text")), "text")
    ignore = given.pop("ignore")
    return ColumnOptions(
        given.pop("target"),
        types,
        tuple(name for item in ignore for name in (item.split(",") if item else [""])),
        frozenset(value for item in given.pop("missing") for value in item.split(",")),
        given.pop("skip_unlabelled"),
        given.pop("labels_as_text"),
    )


def _split_names(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _parse_column_type(text: str) -> tuple[str, str]:
    from priory.sources.column_types import list_column_types

    name, _, kind = text.rpartition("=")
    if not name or kind not in list_column_types():
        raise click.BadParameter(
            f"{text!r} is not COLUMN=TYPE; a type is one of {', '.join(list_column_types())}.", param_hint="--type"
        )
    return name, kind


def check_output_path(path: str | None, inputs: list[str], force: bool) -> str | None:
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
