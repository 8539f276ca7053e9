"""``priory explain``: why a model says what it says, the evidence added up."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import (
    FILE_PATH_TYPE,
    add_reading_options,
    json_option,
    model_argument,
    pop_read_options,
    sectioned_command,
)
from priory.cli.terminal import print_json, print_lines


@sectioned_command(
    short_help="Why a model says what it says.", epilog='Example: priory explain mail.priory "Free entry, text WIN now"'
)
@model_argument
@click.argument("what", nargs=-1, metavar="[TEXT...|COLUMN=VALUE...]")
@click.option("--from", "path", type=FILE_PATH_TYPE, metavar="FILE", help="Explain rows of a file.")
@click.option(
    "--row", "numbers", multiple=True, type=click.IntRange(1), help="Which rows of it, from 1; else the first."
)
@json_option
@add_reading_options
def explain(model: str, what: tuple[str, ...], path: str | None, numbers: tuple[int, ...], **given: Any) -> None:
    """Show the ledger of a prediction: the prior, what every word or column said, and the sum."""
    how = pop_read_options(given)
    if bool(what) == bool(path):
        raise click.UsageError("give what is to be explained: a text, COLUMN=VALUE pairs, or --from FILE")
    from priory.cli.model_files import get_model_columns, load_classifier
    from priory.workflows.explain import convert_ledger_to_dict, parse_typed_rows, read_file_rows

    trained = load_classifier(model)
    columns = get_model_columns(trained)
    rows = read_file_rows(path, numbers or (1,), columns, how) if path else parse_typed_rows(what, columns)
    ledgers = trained.explain(rows)
    if given["json_"]:
        print_json([convert_ledger_to_dict(ledger) for ledger in ledgers])
        return
    for number, ledger in enumerate(ledgers):
        if number:
            click.echo()
        print_lines(str(ledger), indent="")
