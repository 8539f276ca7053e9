"""``priory report``, ``audit`` and ``drift``: a model on one HTML page, leakage in the data, and changed data."""

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
    sectioned_command,
)
from priory.cli.terminal import format_command_line, print_json, print_lines


@sectioned_command(
    "audit",
    short_help="Look for leakage in the data.",
    epilog="Example: priory audit train.csv --test test.csv --target label",
)
@files_argument
@click.option(
    "--test",
    "tests",
    multiple=True,
    type=FILE_PATH_TYPE,
    metavar="FILE",
    help="The rows that a model will be tested on; may be repeated.",
)
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Rows with the same value, such as a person, must not be on both sides of a split.",
)
@click.option("--time", metavar="COLUMN", help="Test rows must be later than training rows in this column.")
@json_option
@column_options
@reading_options
def audit_command(
    paths: tuple[str, ...], tests: tuple[str, ...], groups: str | None, time: str | None, json_: bool, **given: Any
) -> None:
    """Look for leakage: information in FILEs that a model could learn from and will not have when it is used.

    Findings are low (worth knowing), medium (look before you trust a score) or high (the score cannot be trusted). The
    exit code is 3 if any finding is medium or high, else 0.
    """
    with open_task(paths, given, more_paths=tests) as task:
        findings = workflows.audit(task, test=tests, groups=groups, time=time)
    if json_:
        click.echo(findings.to_json())
    else:
        print_lines(str(findings), indent="")
    raise click.exceptions.Exit(findings.exit_code)


@sectioned_command(
    "drift",
    short_help="Compare rows with newer rows.",
    epilog="Example: priory drift january.csv --new february.csv --target label",
)
@files_argument
@click.option(
    "--new",
    "new",
    multiple=True,
    required=True,
    type=FILE_PATH_TYPE,
    metavar="FILE",
    help="The newer rows; may be repeated.",
)
@click.option(
    "--false-alarms",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="The probability of an alarm if nothing has changed.",
)
@click.option("--stream", is_flag=True, help="The newer rows are in the order of time: find the row of the change.")
@json_option
@column_options
@reading_options
def drift_command(
    paths: tuple[str, ...], new: tuple[str, ...], false_alarms: float, stream: bool, json_: bool, **given: Any
) -> None:
    """Compare the rows of FILEs with newer rows: which columns, and which words of texts, have changed?

    Each line is a column or word with its share before and after, and the evidence in decibans (+20 is a hundred to
    one). With --target columns are compared within each class. The exit code is 3 if there is drift, else 0.
    """
    with open_task(paths, given, more_paths=new) as task:
        found = workflows.drift(task, new=new, false_alarms=false_alarms, stream=stream)
    print_json(found.to_dict()) if json_ else print_lines(str(found), indent="")
    raise click.exceptions.Exit(3 if found else 0)


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
