"""``priory report``: a model on the rows of files, as one HTML page."""

from __future__ import annotations

from typing import Any

import click

from priory import workflows
from priory.cli.options import (
    FILE_PATH_TYPE,
    check_output_path,
    column_options,
    files_argument,
    force_option,
    json_option,
    model_argument,
    open_task,
    reading_options,
)
from priory.cli.sections import sectioned_command
from priory.cli.terminal import format_command_line, print_json


@sectioned_command(
    "report", short_help="Write an HTML report.", epilog="Example: priory report mail.priory test.csv -o report.html"
)
@model_argument
@files_argument
@click.option(
    "--learned",
    is_flag=True,
    help="MODEL has learned these rows: predict each by a model that has not (leave-one-out).",
)
@click.option(
    "--against",
    type=click.Choice(["sklearn"]),
    help="Compare with logistic regression and gradient boosting, fitted to the same folds; implies --learned.",
)
@click.option("--no-audit", is_flag=True, help="Do not look for leakage in the rows.")
@click.option("-o", "--out", required=True, type=FILE_PATH_TYPE, metavar="HTML", help="The page to write.")
@force_option
@json_option
@column_options
@reading_options
def report_command(
    model: str,
    paths: tuple[str, ...],
    learned: bool,
    against: str | None,
    no_audit: bool,
    out: str,
    force: bool,
    json_: bool,
    **given: Any,
) -> None:
    """Write a report about MODEL on the rows of FILEs as one HTML page.

    It has scores, calibration as a whole and of each class, right and wrong answers, the learning curve, the strongest
    evidence, the worst mistakes, the columns with a small figure each, what was learned, the leakage audit, and how to
    make it again. The page needs nothing else, and works under a strict content security policy.

    The rows are taken for new ones, which MODEL has not learned; for those that it was trained on, use --learned.
    """
    report_path = check_output_path(out, (model, *paths), force)
    if report_path is None:
        raise click.UsageError("a report is written to a file; use -o report.html")
    with open_task(paths, given) as task:
        page, n_rows = workflows.report(
            model,
            task,
            learned=learned or against is not None,
            peers=against is not None,
            audit=not no_audit,
            command=format_command_line(),
        )
    page.save(report_path)
    print_json({"report": report_path, "rows": n_rows}) if json_ else click.echo(f"wrote {report_path}")
