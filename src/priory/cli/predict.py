"""``priory predict``: the rows of files with a label, its probability and its certainty."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import (
    FILE_PATH_TYPE,
    add_reading_options,
    check_output_path,
    files_argument,
    force_option,
    get_required_key,
    json_option,
    model_argument,
    pop_read_options,
)
from priory.cli.sections import sectioned_command
from priory.cli.terminal import watch_workflow


@sectioned_command(
    "predict", short_help="Predict the labels of rows.", epilog="Example: priory predict mail.priory new.csv -o out.csv"
)
@model_argument
@files_argument
@click.option(
    "-o",
    "--out",
    type=FILE_PATH_TYPE,
    metavar="FILE",
    help="The output: .csv, .tsv, .jsonl, .parquet or .arrow. By default a CSV on standard output.",
)
@click.option("--raw", is_flag=True, help="Do not escape cells of a CSV that a spreadsheet would take for formulas.")
@click.option("--threshold", type=float, metavar="P", help="Leave the label empty where its probability is below P.")
@force_option
@json_option
@add_reading_options
def predict_command(
    model: str,
    paths: tuple[str, ...],
    out: str | None,
    raw: bool,
    threshold: float | None,
    force: bool,
    json_: bool,
    **given: Any,
) -> None:
    """Predict the labels of the rows of FILEs with MODEL.

    The output has all columns of FILEs and three more: label, probability and certainty (or predicted_label and so on,
    where FILEs have a column of that name). Certainty is the log-odds of the label in decibans, 10 * log10 of the odds:
    +10 means ten to one, +20 a hundred to one.
    """
    read = pop_read_options(given)
    if threshold is not None and not 0 <= threshold <= 1:
        raise click.BadParameter(f"{threshold} is not allowed; use a number from 0 to 1.", param_hint="--threshold")
    out_path = check_output_path(out, (model, *paths), force)
    from priory.workflows import predict

    with watch_workflow(paths) as callbacks:
        rows = predict(model, paths, threshold=threshold, read=read, key=get_required_key(), callbacks=callbacks)
        rows.write(out_path, "jsonl" if json_ else None, safe=not raw)
