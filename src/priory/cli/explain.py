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
)
from priory.cli.sections import SectionedOption, sectioned_command
from priory.cli.terminal import print_json, print_lines
from priory.models.ledger_formatting import EVIDENCE_UNITS


@sectioned_command(
    "explain",
    short_help="Show the evidence behind a prediction.",
    epilog='Example: priory explain mail.priory "Free entry, text WIN now"',
)
@model_argument
@click.argument("values", nargs=-1, metavar="[TEXT...|COLUMN=VALUE...]")
@click.option("--from", "path", type=FILE_PATH_TYPE, metavar="FILE", help="Explain rows of this file.")
@click.option(
    "--row",
    "numbers",
    cls=SectionedOption,
    multiple=True,
    type=click.IntRange(1),
    metavar="N",
    help="Which row of the file, counted from 1; may be repeated. By default the first.",
)
@click.option(
    "--unit",
    type=click.Choice(EVIDENCE_UNITS),
    default="decibans",
    metavar="UNIT",
    help=f"What evidence is shown in: {', '.join(EVIDENCE_UNITS)}. By default decibans.",
)
@json_option
@add_reading_options
def explain_command(
    model: str,
    values: tuple[str, ...],
    path: str | None,
    numbers: tuple[int, ...],
    unit: str,
    json_: bool,
    **given: Any,
) -> None:
    """Show the evidence behind a prediction: the prior, one line for each word or column, and their sum.

    The heading names the predicted class and the runner-up. Each line says how far it moves the odds between these two,
    in decibans (dB), which are 10 * log10 of the odds: with +10 dB the odds for the predicted class become ten times as
    high, with -10 dB ten times as low.

    \b
    prior             how common the two classes are among the learned rows
    prior (tempered)  the same times a weight: training found how much the prior
                      should count, so that the probabilities are right
    (together)        what columns or words add in combination
    (absent tokens)   the words that the text does not contain
    """
    read = pop_read_options(given)
    if bool(values) == bool(path):
        raise click.UsageError("give one of these to explain: texts, COLUMN=VALUE pairs, or --from FILE")
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
        print_lines(str(ledgers.convert_unit(unit)), indent="")
