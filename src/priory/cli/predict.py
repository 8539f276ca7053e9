"""``priory predict``: the rows as they came, with a label, its probability and how certain it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from priory.cli.options import (
    FILE,
    asked,
    command,
    files_argument,
    force_option,
    json_option,
    model_argument,
    output,
    reading,
)
from priory.cli.terminal import note, progress


@command(short_help="Label the rows of files.", epilog="Example: priory predict mail.priory new.csv -o out.csv")
@model_argument
@files_argument
@click.option(
    "-o",
    "--out",
    type=FILE,
    metavar="FILE",
    help="Where to write: .csv, .tsv, .jsonl, .parquet or .arrow; else a CSV here.",
)
@click.option("--raw", is_flag=True, help="CSV cells as they are, even if a spreadsheet would take them for formulas.")
@click.option("--threshold", type=float, help="Leave the label empty where it is less probable than this.")
@force_option
@json_option
@reading
def predict(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Label the rows of FILEs by MODEL.

    The columns stay; label, probability and certainty are added (as predicted_label and so on where a column has that
    name). Certainty is the log-odds of the label in decibans: +10 is ten to one, +20 a hundred to one.
    """
    how = asked(given)
    threshold = given["threshold"]
    if threshold is not None and not 0 <= threshold <= 1:
        raise click.BadParameter(f"{threshold} is not allowed; use a number from 0 to 1.", param_hint="--threshold")
    place = output(given["out"], [model, *paths], given["force"])
    from priory.cli.model_files import columns_of, loaded, note_extra, wanted
    from priory.sources import open_files
    from priory.sources.prefetch import ahead
    from priory.sources.writers import written
    from priory.workflows.predict import predicted

    trained = loaded(model)
    columns = columns_of(trained)
    with progress(list(paths)) as told:
        rows = open_files(list(paths), how, told)
        wanted(rows, columns)
        note_extra(rows, columns, getattr(trained, "target_", ""))
        counts: Counter[str] = Counter()
        batches = (predicted(trained, columns, chunk, threshold, counts) for chunk in ahead(rows.chunks(rows.names)))
        written(batches, place, "jsonl" if given["json_"] else None, safe=not given["raw"])
    if counts["never seen"]:
        note(f"{counts['never seen']:,} cells hold labels the model has never seen; they were smoothed")
