"""``priory train``: files in, a model out, and what a person wants to know of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priory.cli.options import (
    FILE_PATH_TYPE,
    add_column_options,
    add_learning_options,
    add_reading_options,
    check_output_path,
    files_argument,
    force_option,
    json_option,
    pop_column_options,
    pop_read_options,
    sectioned_command,
)
from priory.cli.terminal import (
    escape_unprintable,
    format_count,
    format_heading,
    print_item,
    print_json,
    print_lines,
    print_note,
    show_activity,
    show_progress,
)

if TYPE_CHECKING:
    from priory.sources import FileRows

MAX_CLASSES_SHOWN, MAX_COLUMNS_SHOWN, MAX_WORDS_SHOWN = 10, 12, 6  # shown


@sectioned_command(
    short_help="Learn a model from files.", epilog="Example: priory train mail.csv --target label --report mail.html"
)
@files_argument
@click.option(
    "-o", "--out", type=FILE_PATH_TYPE, metavar="MODEL", help="The model file; else the name of the data with .priory."
)
@click.option("--report", "report_", type=FILE_PATH_TYPE, metavar="HTML", help="Also write a report.")
@click.option("--plain", "plain_", is_flag=True, help="Statistics only: no corrections, no scores, no audit.")
@click.option("--no-audit", is_flag=True, help="Do not look for leakage.")
@force_option
@json_option
@add_column_options
@add_learning_options
@add_reading_options
def train(paths: tuple[str, ...], **given: Any) -> None:
    """Learn a model from FILEs and write it.

    FILEs are CSV, TSV, JSON lines, Parquet or Arrow, packed by gzip or zstd or not; folders of them; a folder of texts
    with a folder for each class; mboxes, maildirs; patterns; or - for standard input. They may be larger than memory.
    """
    how, what = pop_read_options(given), pop_column_options(given)
    _check_options(given)
    inputs = list(paths)
    place = check_output_path(given["out"] or _make_model_path(inputs[0]), inputs, given["force"])
    if place is None:
        raise click.UsageError("a model is written to a file; use -o model.priory")
    report = check_output_path(given["report_"], inputs, given["force"])
    from priory.sources import open_files
    from priory.workflows.train import TrainingResult, train_model

    with show_progress(inputs) as told:
        rows = open_files(inputs, how, told)
        done: TrainingResult = train_model(rows, what, given)
    from priory.storage import save

    with show_activity("writing the model"):
        save(done.model, place)
    if report:
        with show_activity("writing the report"):
            done.report().save(report)
    _print_repairs(rows, done)
    if given["json_"]:
        print_json(done.as_dict() | {"model": place, "report": report})
    else:
        _print_summary(done, place, report)
    _raise_unreadable(rows)


def _print_summary(result: Any, place: str, report: str | None) -> None:
    counts = [f"{escape_unprintable(label)} {n:,.0f}" for label, n in result.classes.items()]
    click.echo(
        format_heading(f"{result.rows:,} rows, {len(counts)} classes")
        + f": {', '.join(_shorten_list(counts, MAX_CLASSES_SHOWN))}"
    )
    click.echo(format_heading("columns, by the family that explains them best"))
    for family, named in _group_by_family(result.families).items():
        print_item(family, _shorten_list(named, MAX_COLUMNS_SHOWN))
    if result.scores is not None:
        of = "" if len(result.scores.truth) == result.rows else " of rows drawn from all"
        click.echo(format_heading(f"leave-one-out{of}: each judged by the model without it"))
        print_lines(str(result.scores))
    if result.evidence:
        click.echo(format_heading("strongest evidence, in decibans"))
        for label, told in list(result.evidence.items())[:MAX_CLASSES_SHOWN]:
            print_item(label, [f"{token} {weight:+.1f}" for token, weight in told[:MAX_WORDS_SHOWN]])
    if result.findings is not None:
        click.echo(format_heading("leakage audit") + ("" if result.findings else ": nothing found"))
        for finding in result.findings:
            print_item(finding.severity, [finding.what])
    click.echo(f"wrote {place}" + (f" and {report}" if report else "") + f"; next: priory predict {place} FILE")


def _shorten_list(names: list[str], max_names: int) -> list[str]:
    """The first of many, and how many more there are."""
    return names if len(names) <= max_names else [*names[:max_names], f"and {len(names) - max_names} more"]


def _check_options(given: dict[str, Any]) -> None:
    if given["plain_"] and given["refine"]:
        raise click.UsageError("--plain keeps statistics only, and --refine corrects them by rows; use one")
    alpha = given["alpha"]
    if alpha is not None and not 0 <= alpha < float("inf"):
        raise click.BadParameter(f"{alpha} is not allowed; use a number from 0.", param_hint="--alpha")


def _make_model_path(path: str) -> str:
    if path == "-":
        raise click.UsageError("what is read from standard input has no name; use -o model.priory")
    name = Path(path.rstrip("/")).name
    if any(c in name for c in "*?["):
        return "model.priory"
    for suffix in (".gz", ".zst"):
        name = name.removesuffix(suffix)
    return f"{Path(name).stem or 'model'}.priory"


def _print_repairs(rows: FileRows, result: Any) -> None:
    """Every repair was asked for; here it is counted."""
    from priory.sources.mail import MAIL_FLAG_MESSAGES

    for name in result.empty_columns:
        print_note(f"column {name!r} is empty and was left out")
    skipped = sum(getattr(file, "skipped", 0) for file in rows.files)
    if skipped:
        print_note(f"padded or left out as asked, because they did not fit: {format_count(skipped, 'row')}")
    if result.n_unlabelled:
        print_note(f"left out as asked, without a label: {format_count(result.n_unlabelled, 'row')}")
    for file in rows.files:
        for flag, count in getattr(file, "flags", {}).items():
            print_note(f"{count:,} of the messages {MAIL_FLAG_MESSAGES[flag]}")


def _raise_unreadable(rows: FileRows) -> None:
    unreadable = [path for file in rows.files for path in getattr(file, "unreadable", [])]
    if unreadable:
        named = ", ".join(unreadable[:5])
        raise PermissionError(
            13, f"{format_count(len(unreadable), 'file')} may not be read ({named}); the others were learned"
        )


def _group_by_family(families: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, family in families.items():
        found.setdefault(family, []).append(name)
    return found
