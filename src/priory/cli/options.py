"""Options that several commands share, and the workflow options they become."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import click

from priory.cli.sections import SectionedOption, combine_decorators, define_option, make_section

if TYPE_CHECKING:
    from priory.sources import ReadOptions
    from priory.sources.column_types import ColumnOptions
    from priory.workflows import TrainingOptions

FORMAT_CHOICES = ("csv", "tsv", "jsonl", "parquet", "arrow", "text", "mail", "sqlite", "duckdb", "excel")
TEXT_MODELS = ("binary", "multinomial", "bernoulli", "poisson", "complement")
FILE_PATH_TYPE = click.Path(readable=False)  # for shell completion; checked when the file is opened


add_reading_options = make_section(
    "Reading files",
    define_option(
        "--format",
        type=click.Choice(FORMAT_CHOICES),
        metavar="FORMAT",
        help=f"One of {', '.join(FORMAT_CHOICES)}. By default detected.",
    ),
    define_option("--delimiter", metavar="C", help="The character between the cells of a CSV. By default detected."),
    define_option(
        "--encoding",
        default="utf-8",
        metavar="NAME",
        help="The encoding of text; utf-8 by default, 'auto' uses the byte-order mark.",
    ),
    define_option(
        "--errors",
        type=click.Choice(["strict", "replace"]),
        default="strict",
        help="Bytes that are not valid text: stop (default), or replace them.",
    ),
    define_option(
        "--ragged",
        type=click.Choice(["error", "pad", "skip"]),
        default="error",
        help="Rows with more or fewer cells than the header: stop (default), pad or cut, or skip.",
    ),
    define_option("--table", metavar="NAME", help="Which table of a database, or which sheet of a workbook."),
    define_option("--no-header", is_flag=True, help="A CSV without a header: the columns are called c1, c2 and so on."),
    define_option("--no-quotes", is_flag=True, help="Treat quotation marks in a CSV as ordinary characters."),
    define_option(
        "--skip-bad", type=click.IntRange(0), default=0, metavar="N", help="Skip up to N invalid lines of JSON."
    ),
    define_option("--keep-going", is_flag=True, help="Skip documents that cannot be opened."),
)


def describe_column_types() -> str:
    from priory.sources.column_types import list_column_types

    types = list_column_types()
    return f"What a column holds: {', '.join(types[:4])}, or a family: {', '.join(types[4:])}."


add_column_options = make_section(
    "Columns",
    define_option("--target", metavar="COLUMN", help="The column to predict. A model remembers it."),
    define_option(
        "--type",
        "--types",
        "types",
        multiple=True,
        metavar="COLUMN=TYPE",
        make_help=describe_column_types,
    ),
    define_option("--text", metavar="A,B", help="Columns that hold texts."),
    define_option("--columns", metavar="A,B", help="The columns to learn from. By default all but the target."),
    define_option("--ignore", multiple=True, metavar="A,B", help="Columns to leave out."),
    define_option("--keep-ids", is_flag=True, help="Keep columns that look like identifiers of rows."),
    define_option("--missing", multiple=True, metavar="A,B", help="Cells that count as missing, such as NA or ?."),
    define_option("--skip-unlabelled", is_flag=True, help="Skip rows without a label."),
    define_option(
        "--coerce", is_flag=True, help="Read cells that are not numbers, in columns of numbers, as missing; counted."
    ),
    define_option(
        "--classes",
        "--labels-as-text",
        "labels_as_text",
        is_flag=True,
        help="Take every value of the target for a class, even if it looks like a number to predict.",
    ),
)

add_learning_options = make_section(
    "Learning",
    define_option(
        "--refine/--no-refine",
        default=None,
        help="Correct naive Bayes with a logistic regression. By default where it helps.",
    ),
    define_option(
        "--average",
        is_flag=True,
        help="Average over all subsets of columns or words, so that each counts as much as it matters.",
    ),
    define_option(
        "--alpha",
        type=float,
        metavar="A",
        help="Smoothing: virtual examples of each value or word. By default 1 for texts; tables choose by the data.",
    ),
    define_option(
        "--model",
        type=click.Choice(TEXT_MODELS),
        metavar="NAME",
        help=f"Texts: how words count: {', '.join(TEXT_MODELS)}. By default binary.",
    ),
    define_option(
        "--ngrams",
        type=click.IntRange(1, 5),
        default=1,
        metavar="N",
        help="Texts: also count runs of up to N words (1 to 5, by default 1).",
    ),
    define_option("--max-words", type=click.IntRange(1), metavar="N", help="Texts: keep at most N different words."),
    define_option(
        "--memory",
        type=click.IntRange(0),
        metavar="N",
        help="Keep a fair sample of N rows in the model, to correct it again whenever it learns or forgets. By default "
        "5000; 0 keeps none.",
    ),
    define_option(
        "--sample",
        type=click.IntRange(50),
        default=5000,
        metavar="N",
        help="Score and audit with N rows drawn at random. By default 5000.",
    ),
)

model_argument = click.argument("model", type=FILE_PATH_TYPE, metavar="MODEL")
files_argument = click.argument("paths", nargs=-1, required=True, type=FILE_PATH_TYPE, metavar="FILE...")
json_option = click.option("--json", "json_", is_flag=True, help="Print JSON.")
force_option = click.option("--force", is_flag=True, help="Replace an existing file.")


refresh_option = click.option(
    "--refresh",
    "refresh_from",
    multiple=True,
    type=FILE_PATH_TYPE,
    metavar="FILE",
    help="Rows that the model has learned, to fit its corrections to again; may be repeated.",
)
add_update_options = combine_decorators(
    model_argument,
    files_argument,
    refresh_option,
    click.option(
        "--wait",
        cls=SectionedOption,
        type=click.FloatRange(0),
        metavar="SECONDS",
        help="How long to wait while another process changes MODEL. By default as long as it takes.",
    ),
    json_option,
    add_column_options,
    add_reading_options,
)


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
        has_header=not given.pop("no_header"),
        table=given.pop("table"),
    )


def pop_column_options(given: dict[str, Any]) -> ColumnOptions:
    """The options of `add_column_options`, taken out of what a command was given."""
    from priory.sources.column_types import ColumnOptions

    types = dict(_parse_column_type(pair) for text in given.pop("types") for pair in _split_column_types(text))
    types |= dict.fromkeys(_split_names(given.pop("text")), "text")
    ignore = given.pop("ignore")
    return ColumnOptions(
        given.pop("target"),
        types,
        tuple(name for item in ignore for name in (item.split(",") if item else [""])),
        frozenset(value for item in given.pop("missing") for value in item.split(",")),
        given.pop("skip_unlabelled"),
        given.pop("labels_as_text"),
        given.pop("coerce"),
        given.pop("keep_ids"),
        tuple(_split_names(given.pop("columns"))),
    )


def pop_training_options(given: dict[str, Any]) -> TrainingOptions:
    """The options of `add_learning_options`, and how much is learned, taken out of what a command was given."""
    from priory.workflows import TrainingOptions

    if given["plain"] and given["refine"]:
        raise click.UsageError("--plain and --refine exclude each other; use one of them")
    if given["m"] is not None and not given["textbook"]:
        raise click.UsageError("--m is the m-estimate of --textbook; use both, or --alpha")
    for name in ("refine", "average", "alpha", "model", "max_words"):
        if given["textbook"] and given[name]:
            raise click.UsageError(f"--textbook and --{name.replace('_', '-')} exclude each other; use one of them")
    alpha = given["alpha"]
    if alpha is not None and not 0 <= alpha < float("inf"):
        raise click.BadParameter(f"{alpha} is not allowed; use a number that is 0 or more.", param_hint="--alpha")
    return TrainingOptions(
        given.pop("plain"),
        not given.pop("no_audit"),
        given.pop("refine"),
        given.pop("average"),
        given.pop("alpha"),
        given.pop("model"),
        given.pop("ngrams"),
        given.pop("max_words"),
        given.pop("memory"),
        given.pop("sample"),
        given.pop("textbook"),
        _parse_virtual_examples(given.pop("m")),
    )


def _parse_virtual_examples(text: str | None) -> float | Literal["laplace"]:
    if text is None or text == "laplace":
        return "laplace" if text else 0.0
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number nor 'laplace'.", param_hint="--m") from None


class UpdateOptions(TypedDict):
    """What `learn` and `forget` take besides the model and the files."""

    columns: ColumnOptions
    read: ReadOptions
    refresh_from: tuple[str, ...]
    wait: float | None
    key: str | None


def pop_update_options(given: dict[str, Any]) -> UpdateOptions:
    """The options of `add_update_options`, taken out of what a command was given."""
    return {
        "columns": pop_column_options(given),
        "read": pop_read_options(given),
        "refresh_from": given.pop("refresh_from"),
        "wait": given.pop("wait"),
        "key": get_required_key(),
    }


def get_required_key() -> str | None:
    """The key that models must be signed with, if ``--require-signature`` gave one."""
    key: str | None = click.get_current_context().find_root().params.get("require_signature")
    return key


def _split_names(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _split_column_types(text: str) -> list[str]:
    """The declarations in ``a=label,b=numeric``; a comma may also be part of a name."""
    parts = text.split(",")
    return parts if all("=" in part for part in parts) else [text]


def _parse_column_type(text: str) -> tuple[str, str]:
    from priory.sources.column_types import list_column_types

    name, _, kind = text.rpartition("=")
    if not name or kind not in list_column_types():
        raise click.BadParameter(
            f"{text!r} is not COLUMN=TYPE; a type is one of {', '.join(list_column_types())}.", param_hint="--type"
        )
    return name, kind


def check_output_path(path: str | None, inputs: tuple[str, ...], force: bool) -> str | None:
    """The path, if it may be written; None for standard output. Inputs are never overwritten."""
    if path is None or path == "-":
        return None
    target = Path(path)
    for given in inputs:
        if given != "-" and os.path.exists(given) and target.exists() and os.path.samefile(given, path):
            raise FileExistsError(17, "is an input, which is never overwritten; give another file", path)
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "no such folder; create it first", str(target.parent))
    if target.exists() and target.is_file() and not force:
        raise FileExistsError(17, "already exists; use --force to replace it", path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; give a file", path)
    return path
