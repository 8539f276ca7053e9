"""``priory explain``: the evidence behind a prediction, added up."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import (
    FILE_PATH_TYPE,
    add_reading_options,
    get_required_key,
    json_option,
    model_argument,
    pop_read_options,
    sectioned_command,
)
from priory.cli.terminal import print_json, print_lines


@sectioned_command(
    "explain",
    short_help="Why a model says what it says.",
    epilog='Example: priory explain mail.priory "Free entry, text WIN now"',
)
@model_argument
@click.argument("values", nargs=-1, metavar="[TEXT...|COLUMN=VALUE...]")
@click.option("--from", "path", type=FILE_PATH_TYPE, metavar="FILE", help="Explain rows of a file.")
@click.option(
    "--row", "numbers", multiple=True, type=click.IntRange(1), help="Which rows of it, from 1; else the first."
)
@json_option
@add_reading_options
def explain_command(
    model: str, values: tuple[str, ...], path: str | None, numbers: tuple[int, ...], json_: bool, **given: Any
) -> None:
    """Show the ledger of a prediction: the prior, what every word or column said, and the sum."""
    read = pop_read_options(given)
    if bool(values) == bool(path):
        raise click.UsageError("give what is to be explained: a text, COLUMN=VALUE pairs, or --from FILE")
    from priory.workflows import explain, explain_values
    from priory.workflows.explanation import convert_ledger_to_dict

    key = get_required_key()
    if path:
        ledgers = explain(model, path, numbers or (1,), read=read, key=key)
    else:
        ledgers = explain_values(model, values, key=key)
    if json_:
        print_json([convert_ledger_to_dict(ledger) for ledger in ledgers])
    else:
        print_lines(str(ledgers), indent="")
