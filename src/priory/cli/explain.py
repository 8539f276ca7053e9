"""``priory explain``: why a model says what it says, the evidence added up."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import FILE, asked, command, json_option, model_argument, reading
from priory.cli.terminal import as_json, lines


@command(
    short_help="Why a model says what it says.", epilog='Example: priory explain mail.priory "Free entry, text WIN now"'
)
@model_argument
@click.argument("what", nargs=-1, metavar="[TEXT...|COLUMN=VALUE...]")
@click.option("--from", "path", type=FILE, metavar="FILE", help="Explain rows of a file.")
@click.option(
    "--row", "numbers", multiple=True, type=click.IntRange(1), help="Which rows of it, from 1; else the first."
)
@json_option
@reading
def explain(model: str, what: tuple[str, ...], path: str | None, numbers: tuple[int, ...], **given: Any) -> None:
    """Show the ledger of a prediction: the prior, what every word or column said, and the sum."""
    how = asked(given)
    if bool(what) == bool(path):
        raise click.UsageError("give what is to be explained: a text, COLUMN=VALUE pairs, or --from FILE")
    from priory.cli.model_files import columns_of, loaded
    from priory.workflows.explain import as_dict, rows_from, rows_given

    trained = loaded(model)
    columns = columns_of(trained)
    rows = rows_from(path, numbers or (1,), columns, how) if path else rows_given(what, columns)
    ledgers = trained.explain(rows)
    if given["json_"]:
        as_json([as_dict(ledger) for ledger in ledgers])
        return
    for number, ledger in enumerate(ledgers):
        if number:
            click.echo()
        lines(str(ledger), indent="")
