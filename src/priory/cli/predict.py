"""``priory predict``: add a label, its probability and its certainty to the rows of files."""

from __future__ import annotations

from typing import Any

import click

from priory import workflows
from priory.cli.decision_options import cost_options, pop_costs, threshold_option
from priory.cli.options import (
    FILE_PATH_TYPE,
    SectionedOption,
    check_output_path,
    files_argument,
    force_option,
    json_option,
    model_argument,
    open_task,
    reading_options,
    sectioned_command,
)


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
@click.option("--proba", is_flag=True, help="Add the probability of every class, as probability_CLASS.")
@click.option(
    "--top",
    cls=SectionedOption,
    type=click.IntRange(1),
    default=1,
    metavar="K",
    help="Give the K most probable classes: label_2, probability_2 and so on.",
)
@force_option
@json_option
@threshold_option
@cost_options
@reading_options
def predict_command(
    model: str,
    paths: tuple[str, ...],
    out: str | None,
    raw: bool,
    proba: bool,
    top: int,
    force: bool,
    json_: bool,
    **given: Any,
) -> None:
    """Predict the labels of the rows of FILEs with MODEL.

    The output has all columns of FILEs and three more: label, probability and certainty (or predicted_label and so on,
    where FILEs have a column of that name). Certainty is the log-odds of the label in decibans, 10 * log10 of the odds:
    +10 means ten to one, +20 a hundred to one. Where there is no label, both belong to the most probable class.

    With costs the label is the answer of least expected cost, and a column expected_cost says how much that is. --json
    writes JSON lines. A line on standard error sums up: rows, the share of each label, how certain they are, how many
    have none, and whether the classes have drifted since training.
    """
    costs, threshold = pop_costs(given), threshold_option.pop(given).get("thresholds")
    if costs is not None and threshold is not None:
        raise click.UsageError("costs and --threshold exclude each other; use one of them")
    out_path = check_output_path(out, (model, *paths), force)
    with open_task(paths, given) as task:
        rows = workflows.predict(model, task, threshold=threshold, costs=costs, top=top, probabilities=proba)
        rows.write(out_path, "jsonl" if json_ else None, safe=not raw)
        for line in rows.describe():
            task.callbacks.notify(line)
