"""``priory learn``, ``forget`` and ``merge``: model files that change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

import priory
from priory import workflows
from priory.cli.options import (
    FILE_PATH_TYPE,
    check_output_path,
    column_options,
    force_option,
    json_option,
    open_task,
    pop_receipt_files,
    reading_options,
    receipt_options,
    refresh_option,
    sectioned_command,
    update_options,
)
from priory.cli.terminal import print_json, print_update


@sectioned_command(
    "learn", short_help="Learn more rows into a model.", epilog="Example: priory learn mail.priory today.csv"
)
@update_options
def learn_command(
    model: str, paths: tuple[str, ...], refresh_from: tuple[str, ...], wait: float | None, json_: bool, **given: Any
) -> None:
    """Learn the rows of FILEs in addition to what MODEL has learned: all of them, or none if there is an error.

    If MODEL does not exist, it is created as priory train --plain --target COLUMN would. Several processes may learn
    into one MODEL at the same time: each waits for its turn, and nothing is lost.
    """
    with open_task(paths, given) as task:
        result = workflows.learn(model, task, refresh_from=refresh_from, wait=wait)
    print_update("learned", model, result, json_)


@sectioned_command(
    "forget",
    short_help="Unlearn rows, exactly.",
    epilog="Example: priory forget mail.priory mail.csv --where sender=ann",
)
@update_options
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=TEXT",
    help="Only the rows of FILEs with this text in this column, which need not be a column of MODEL; may be repeated.",
)
@force_option
@receipt_options
def forget_command(
    model: str,
    paths: tuple[str, ...],
    refresh_from: tuple[str, ...],
    wait: float | None,
    json_: bool,
    where: tuple[str, ...],
    force: bool,
    **given: Any,
) -> None:
    """Unlearn the rows of FILEs: MODEL becomes exactly what it would be if it had never learned them.

    All rows are forgotten, or none if one of them was never learned. With --sign-key and --receipt a receipt is written
    that others can check (priory verify).
    """
    files = pop_receipt_files(given, force)
    selected = dict(_split_condition(text) for text in where)
    with open_task(paths, given) as task:
        chosen = replace(task, where=selected)
        result = workflows.forget(model, chosen, refresh_from=refresh_from, wait=wait, receipt=files)
    print_update("forgotten", model, result, json_)


def _split_condition(text: str) -> tuple[str, str]:
    name, equals, cell = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--where {text}: write COLUMN=TEXT")
    return name, cell


@sectioned_command(
    "merge",
    short_help="Combine models into one.",
    epilog="Example: priory merge monday.priory tuesday.priory -o both.priory",
)
@click.argument("models", nargs=-1, required=True, type=FILE_PATH_TYPE, metavar="MODEL...")
@click.option("-o", "--out", required=True, type=FILE_PATH_TYPE, metavar="MODEL", help="The merged model.")
@refresh_option
@force_option
@json_option
@column_options
@reading_options
def merge_command(
    models: tuple[str, ...], out: str, refresh_from: tuple[str, ...], force: bool, json_: bool, **given: Any
) -> None:
    """Combine MODELs into one model, exactly as if it had learned the rows of all of them."""
    out_path = check_output_path(out, models, force)
    if out_path is None or len(models) < 2:
        raise click.UsageError("give two models or more, and a file for the merged model with -o")
    with open_task(refresh_from, given) as task:
        merged = workflows.merge(models, refresh_from=task)
        priory.save(merged, out_path)
    total = float(merged.class_count_.sum())
    print_json({"model": out_path, "rows": total}) if json_ else click.echo(f"wrote {out_path}: {total:,.0f} rows")
