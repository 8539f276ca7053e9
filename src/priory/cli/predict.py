"""``priory predict``: the rows as they came, with a label, its probability and how certain it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from priory.cli.options import (
    FILE_PATH_TYPE,
    add_reading_options,
    check_output_path,
    files_argument,
    force_option,
    json_option,
    model_argument,
    pop_read_options,
    sectioned_command,
)
from priory.cli.terminal import print_note, show_progress


@sectioned_command(
    short_help="Label the rows of files.", epilog="Example: priory predict mail.priory new.csv -o out.csv"
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
def predict(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Label the rows of FILEs by MODEL.

    The columns stay; label, probability and certainty are added (as predicted_label and so on where a column has that
    name). Certainty is the log-odds of the label in decibans: +10 is ten to one, +20 a hundred to one.
    """
    how = pop_read_options(given)
    threshold = given["threshold"]
    if threshold is not None and not 0 <= threshold <= 1:
        raise click.BadParameter(f"{threshold} is not allowed; use a number from 0 to 1.", param_hint="--threshold")
    place = check_output_path(given["out"], [model, *paths], given["force"])
    from priory.cli.model_files import find_needed_columns, get_model_columns, load_classifier, note_unknown_columns
    from priory.sources import open_files
    from priory.sources.prefetch import read_ahead
    from priory.sources.writers import write_batches
    from priory.workflows.predict import add_predictions

    trained = load_classifier(model)
    columns = get_model_columns(trained)
    with show_progress(list(paths)) as told:
        rows = open_files(list(paths), how, told)
        find_needed_columns(rows, columns)
        note_unknown_columns(rows, columns, getattr(trained, "target_", ""))
        counts: Counter[str] = Counter()
        batches = (
            add_predictions(trained, columns, chunk, threshold, counts)
            for chunk in read_ahead(rows.read_chunks(rows.names))
        )
        write_batches(batches, place, "jsonl" if given["json_"] else None, safe=not given["raw"])
    if counts["never seen"]:
        print_note(f"{counts['never seen']:,} cells hold labels the model has never seen; they were smoothed")
