"""``priory evaluate``, ``audit`` and ``report``: what to think of a model, and of the data it was made from."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import (
    FILE_PATH_TYPE,
    add_column_options,
    add_reading_options,
    check_output_path,
    files_argument,
    force_option,
    json_option,
    model_argument,
    pop_column_options,
    pop_read_options,
    sectioned_command,
)
from priory.cli.terminal import format_heading, print_json, print_lines, show_activity, show_progress


@sectioned_command(
    short_help="Compare predictions with labels.", epilog="Example: priory evaluate mail.priory test.csv"
)
@model_argument
@files_argument
@click.option("--learned", is_flag=True, help="The rows were learned: judge each by the model without it.")
@json_option
@add_column_options
@add_reading_options
def evaluate(model: str, paths: tuple[str, ...], learned: bool, **given: Any) -> None:
    """Compare what MODEL says of the rows of FILEs with their labels, beside the base rate."""
    how, what = pop_read_options(given), pop_column_options(given)
    from priory.sources import open_files
    from priory.workflows.evaluate import score_file_rows

    with show_progress(list(paths)) as told:
        scores, rows = score_file_rows(model, open_files(list(paths), how, told), what, learned)
    if given["json_"]:
        print_json({"rows": rows, "scores": scores.to_dict()})
        return
    if learned:
        click.echo(format_heading("each row judged by the model without it"))
    print_lines(str(scores), indent="")


@sectioned_command(
    short_help="Look for leakage in the data.", epilog="Example: priory audit train.csv --test test.csv --target label"
)
@files_argument
@click.option(
    "--test", "tests", multiple=True, type=FILE_PATH_TYPE, metavar="FILE", help="Rows the model will be tested on."
)
@click.option("--groups", metavar="COLUMN", help="Rows of one group (a person, a thread) belong on one side.")
@click.option("--time", metavar="COLUMN", help="The test rows must come after the others in this column.")
@json_option
@add_column_options
@add_reading_options
def audit(paths: tuple[str, ...], tests: tuple[str, ...], groups: str | None, time: str | None, **given: Any) -> None:
    """Look for leakage: what a model could learn from FILEs that it will not have when it counts.

    The exit code says what was found: 0 nothing, else the one the audit gives.
    """
    how, what = pop_read_options(given), pop_column_options(given)
    import priory
    from priory.sources import open_files
    from priory.workflows.evaluate import read_whole_table

    with show_progress([*paths, *tests]) as told:
        rows = open_files(list(paths), how, told)
        target = what.find_target(rows)
        train = read_whole_table(rows, what)
        test = read_whole_table(open_files(list(tests), how, told), what) if tests else None
    with show_activity("looking for leakage"):
        findings = priory.audit(train, test, target=target, groups=groups, time=time)
    if given["json_"]:
        click.echo(findings.to_json())
    else:
        print_lines(str(findings), indent="")
    raise click.exceptions.Exit(findings.exit_code)


@sectioned_command(
    short_help="Write an HTML report.", epilog="Example: priory report mail.priory test.csv -o report.html"
)
@model_argument
@files_argument
@click.option("-o", "--out", required=True, type=FILE_PATH_TYPE, metavar="HTML", help="The report.")
@force_option
@json_option
@add_column_options
@add_reading_options
def report(model: str, paths: tuple[str, ...], out: str, **given: Any) -> None:
    """Write what there is to say of MODEL and the rows of FILEs as one HTML page."""
    how, what = pop_read_options(given), pop_column_options(given)
    place = check_output_path(out, [model, *paths], given["force"])
    if place is None:
        raise click.UsageError("a report is written to a file; use -o report.html")
    import priory
    from priory.sources import open_files
    from priory.workflows.evaluate import load_model_and_rows

    with show_progress(list(paths)) as told:
        trained, rows, labels = load_model_and_rows(model, open_files(list(paths), how, told), what)
    with show_activity("writing the report"):
        priory.report(trained, rows, labels).save(place)
    print_json({"report": place, "rows": len(labels)}) if given["json_"] else click.echo(f"wrote {place}")
