"""``priory evaluate``, ``audit`` and ``report``: what to think of a model, and of the data it was made from."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import (
    FILE,
    asked,
    columns,
    command,
    files_argument,
    force_option,
    json_option,
    model_argument,
    output,
    reading,
    said,
)
from priory.cli.terminal import as_json, heading, lines, progress, saying


@command(short_help="Compare predictions with labels.", epilog="Example: priory evaluate mail.priory test.csv")
@model_argument
@files_argument
@click.option("--learned", is_flag=True, help="The rows were learned: judge each by the model without it.")
@json_option
@columns
@reading
def evaluate(model: str, paths: tuple[str, ...], learned: bool, **given: Any) -> None:
    """Compare what MODEL says of the rows of FILEs with their labels, beside the base rate."""
    how, what = asked(given), said(given)
    from priory.sources import open_files
    from priory.workflows.evaluate import scored

    with progress(list(paths)) as told:
        scores, rows = scored(model, open_files(list(paths), how, told), what, learned)
    if given["json_"]:
        as_json({"rows": rows, "scores": scores.to_dict()})
        return
    if learned:
        click.echo(heading("each row judged by the model without it"))
    lines(str(scores), indent="")


@command(
    short_help="Look for leakage in the data.", epilog="Example: priory audit train.csv --test test.csv --target label"
)
@files_argument
@click.option("--test", "tests", multiple=True, type=FILE, metavar="FILE", help="Rows the model will be tested on.")
@click.option("--groups", metavar="COLUMN", help="Rows of one group (a person, a thread) belong on one side.")
@click.option("--time", metavar="COLUMN", help="The test rows must come after the others in this column.")
@json_option
@columns
@reading
def audit(paths: tuple[str, ...], tests: tuple[str, ...], groups: str | None, time: str | None, **given: Any) -> None:
    """Look for leakage: what a model could learn from FILEs that it will not have when it counts.

    The exit code says what was found: 0 nothing, else the one the audit gives.
    """
    how, what = asked(given), said(given)
    import priory
    from priory.sources import open_files
    from priory.workflows.evaluate import whole_table

    with progress([*paths, *tests]) as told:
        rows = open_files(list(paths), how, told)
        target = what.target_in(rows)
        train = whole_table(rows, what)
        test = whole_table(open_files(list(tests), how, told), what) if tests else None
    with saying("looking for leakage"):
        findings = priory.audit(train, test, target=target, groups=groups, time=time)
    if given["json_"]:
        click.echo(findings.to_json())
    else:
        lines(str(findings), indent="")
    raise click.exceptions.Exit(findings.exit_code)


@command(short_help="Write an HTML report.", epilog="Example: priory report mail.priory test.csv -o report.html")
@model_argument
@files_argument
@click.option("-o", "--out", required=True, type=FILE, metavar="HTML", help="The report.")
@force_option
@json_option
@columns
@reading
def report(model: str, paths: tuple[str, ...], out: str, **given: Any) -> None:
    """Write what there is to say of MODEL and the rows of FILEs as one HTML page."""
    how, what = asked(given), said(given)
    place = output(out, [model, *paths], given["force"])
    if place is None:
        raise click.UsageError("a report is written to a file; use -o report.html")
    import priory
    from priory.sources import open_files
    from priory.workflows.evaluate import labelled_rows

    with progress(list(paths)) as told:
        trained, rows, labels = labelled_rows(model, open_files(list(paths), how, told), what)
    with saying("writing the report"):
        priory.report(trained, rows, labels).save(place)
    as_json({"report": place, "rows": len(labels)}) if given["json_"] else click.echo(f"wrote {place}")
