"""``priory train``: files in, a model out, and what a person wants to know of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priory.cli.options import (
    FILE,
    asked,
    columns,
    command,
    files_argument,
    force_option,
    how_to_learn,
    json_option,
    output,
    reading,
    said,
)
from priory.cli.terminal import as_json, heading, item, lines, many, note, plain, progress, saying

if TYPE_CHECKING:
    from priory.sources import Rows

MOST_CLASSES, MOST_COLUMNS, MOST_WORDS = 10, 12, 6  # shown


@command(
    short_help="Learn a model from files.", epilog="Example: priory train mail.csv --target label --report mail.html"
)
@files_argument
@click.option("-o", "--out", type=FILE, metavar="MODEL", help="The model file; else the name of the data with .priory.")
@click.option("--report", "report_", type=FILE, metavar="HTML", help="Also write a report.")
@click.option("--plain", "plain_", is_flag=True, help="Statistics only: no corrections, no scores, no audit.")
@click.option("--no-audit", is_flag=True, help="Do not look for leakage.")
@force_option
@json_option
@columns
@how_to_learn
@reading
def train(paths: tuple[str, ...], **given: Any) -> None:
    """Learn a model from FILEs and write it.

    FILEs are CSV, TSV, JSON lines, Parquet or Arrow, packed by gzip or zstd or not; folders of them; a folder of texts
    with a folder for each class; mboxes, maildirs; patterns; or - for standard input. They may be larger than memory.
    """
    how, what = asked(given), said(given)
    _check(given)
    inputs = list(paths)
    place = output(given["out"] or _named_after(inputs[0]), inputs, given["force"])
    if place is None:
        raise click.UsageError("a model is written to a file; use -o model.priory")
    report = output(given["report_"], inputs, given["force"])
    from priory.sources import open_files
    from priory.workflows.train import Trained, trained

    with progress(inputs) as told:
        rows = open_files(inputs, how, told)
        done: Trained = trained(rows, what, given)
    from priory.storage import save

    with saying("writing the model"):
        save(done.model, place)
    if report:
        with saying("writing the report"):
            done.report().save(report)
    _say_repairs(rows, done)
    if given["json_"]:
        as_json(done.as_dict() | {"model": place, "report": report})
    else:
        _say(done, place, report)
    _say_unreadable(rows)


def _say(done: Any, place: str, report: str | None) -> None:
    counts = [f"{plain(label)} {n:,.0f}" for label, n in done.classes.items()]
    click.echo(heading(f"{done.rows:,} rows, {len(counts)} classes") + f": {', '.join(_some(counts, MOST_CLASSES))}")
    click.echo(heading("columns, by the family that explains them best"))
    for family, named in _by_family(done.families).items():
        item(family, _some(named, MOST_COLUMNS))
    if done.scores is not None:
        of = "" if len(done.scores.truth) == done.rows else " of rows drawn from all"
        click.echo(heading(f"leave-one-out{of}: each judged by the model without it"))
        lines(str(done.scores))
    if done.evidence:
        click.echo(heading("strongest evidence, in decibans"))
        for label, told in list(done.evidence.items())[:MOST_CLASSES]:
            item(label, [f"{token} {weight:+.1f}" for token, weight in told[:MOST_WORDS]])
    if done.findings is not None:
        click.echo(heading("leakage audit") + ("" if done.findings else ": nothing found"))
        for finding in done.findings:
            item(finding.severity, [finding.what])
    click.echo(f"wrote {place}" + (f" and {report}" if report else "") + f"; next: priory predict {place} FILE")


def _some(names: list[str], most: int) -> list[str]:
    """The first of many, and how many more there are."""
    return names if len(names) <= most else [*names[:most], f"and {len(names) - most} more"]


def _check(given: dict[str, Any]) -> None:
    if given["plain_"] and given["refine"]:
        raise click.UsageError("--plain keeps statistics only, and --refine corrects them by rows; use one")
    alpha = given["alpha"]
    if alpha is not None and not 0 <= alpha < float("inf"):
        raise click.BadParameter(f"{alpha} is not allowed; use a number from 0.", param_hint="--alpha")


def _named_after(path: str) -> str:
    if path == "-":
        raise click.UsageError("what is read from standard input has no name; use -o model.priory")
    name = Path(path.rstrip("/")).name
    if any(c in name for c in "*?["):
        return "model.priory"
    for suffix in (".gz", ".zst"):
        name = name.removesuffix(suffix)
    return f"{Path(name).stem or 'model'}.priory"


def _say_repairs(rows: Rows, done: Any) -> None:
    """Every repair was asked for; here it is counted."""
    from priory.sources.mail import FLAGS

    for name in done.empty:
        note(f"column {name!r} is empty and was left out")
    skipped = sum(getattr(file, "skipped", 0) for file in rows.files)
    if skipped:
        note(f"padded or left out as asked, because they did not fit: {many(skipped, 'row')}")
    if done.unlabelled:
        note(f"left out as asked, without a label: {many(done.unlabelled, 'row')}")
    for file in rows.files:
        for flag, count in getattr(file, "flags", {}).items():
            note(f"{count:,} of the messages {FLAGS[flag]}")


def _say_unreadable(rows: Rows) -> None:
    unreadable = [path for file in rows.files for path in getattr(file, "unreadable", [])]
    if unreadable:
        named = ", ".join(unreadable[:5])
        raise PermissionError(13, f"{many(len(unreadable), 'file')} may not be read ({named}); the others were learned")


def _by_family(families: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, family in families.items():
        found.setdefault(family, []).append(name)
    return found
