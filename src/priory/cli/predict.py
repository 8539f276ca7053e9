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
    sectioned_command,
)
from priory.cli.terminal import watch_workflow


@sectioned_command(
    "predict", short_help="Label the rows of files.", epilog="Example: priory predict mail.priory new.csv -o out.csv"
)
@model_argument
@files_argument
@click.option(
    "-o",
    "--out",
    type=FILE_PATH_TYPE,
    metavar="FILE",
    help="Where to write: .csv, .tsv, .jsonl, .parquet or .arrow; else a CSV here.",
)
@click.option("--raw", is_flag=True, help="CSV cells as they are, even if a spreadsheet would take them for formulas.")
@click.option("--threshold", type=float, help="Leave the label empty where it is less probable than this.")
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
    """Label the rows of FILEs by MODEL.

    The columns stay; label, probability and certainty are added (as predicted_label and so on where a column has that
    name). Certainty is the log-odds of the label in decibans: +10 is ten to one, +20 a hundred to one.
    """
    read = pop_read_options(given)
    if threshold is not None and not 0 <= threshold <= 1:
        raise click.BadParameter(f"{threshold} is not allowed; use a number from 0 to 1.", param_hint="--threshold")
    out_path = check_output_path(out, (model, *paths), force)
    from priory.workflows import predict

    with watch_workflow(paths) as callbacks:
        rows = predict(model, paths, threshold=threshold, read=read, key=get_required_key(), callbacks=callbacks)
        rows.write(out_path, "jsonl" if json_ else None, safe=not raw)
