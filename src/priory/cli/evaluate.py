"""``priory evaluate``: predictions compared with labels."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import (
    add_column_options,
    add_reading_options,
    files_argument,
    get_required_key,
    json_option,
    model_argument,
    pop_column_options,
    pop_read_options,
)
from priory.cli.sections import sectioned_command
from priory.cli.terminal import format_heading, print_json, print_lines, watch_workflow


@sectioned_command(
    "evaluate", short_help="Compare predictions with labels.", epilog="Example: priory evaluate mail.priory test.csv"
)
@model_argument
@files_argument
@click.option(
    "--learned",
    is_flag=True,
    help="MODEL has learned these rows: predict each by a model that has not (leave-one-out).",
)
@json_option
@add_column_options
@add_reading_options
def evaluate_command(model: str, paths: tuple[str, ...], learned: bool, json_: bool, **given: Any) -> None:
    """Compare the predictions of MODEL for the rows of FILEs with their labels.

    Each score has a 95 % interval, and next to it the base rate: the score of always answering the most common class.
    Fewer than six rows, or rows of which no two have the same label, are too few to judge a model by: the command says
    so and gives no scores.
    """
    read, columns = pop_read_options(given), pop_column_options(given)
    from priory.workflows import evaluate

    with watch_workflow(paths) as callbacks:
        scores, n_rows = evaluate(
            model,
            paths,
            learned=learned,
            columns=columns,
            read=read,
            key=get_required_key(),
            callbacks=callbacks,
        )
    if json_:
        print_json({"rows": n_rows, "scores": scores.to_dict()})
        return
    if learned:
        click.echo(format_heading("leave-one-out: each row predicted by a model that has not learned it"))
    print_lines(str(scores), indent="")
