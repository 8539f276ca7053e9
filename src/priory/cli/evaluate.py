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
    sectioned_command,
)
from priory.cli.terminal import format_heading, print_json, print_lines, watch_workflow


@sectioned_command(
    "evaluate", short_help="Compare predictions with labels.", epilog="Example: priory evaluate mail.priory test.csv"
)
@model_argument
@files_argument
@click.option("--learned", is_flag=True, help="The rows were learned: judge each by the model without it.")
@json_option
@add_column_options
@add_reading_options
def evaluate_command(model: str, paths: tuple[str, ...], learned: bool, json_: bool, **given: Any) -> None:
    """Compare what MODEL says of the rows of FILEs with their labels, beside the base rate."""
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
        click.echo(format_heading("each row judged by the model without it"))
    print_lines(str(scores), indent="")
