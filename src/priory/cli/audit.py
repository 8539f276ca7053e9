"""``priory audit``: look for leakage in files."""

from __future__ import annotations

from typing import Any

import click

from priory import workflows
from priory.cli.options import FILE_PATH_TYPE, column_options, files_argument, json_option, open_task, reading_options
from priory.cli.sections import sectioned_command
from priory.cli.terminal import print_lines


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
