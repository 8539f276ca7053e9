"""``priory learn``, ``forget`` and ``merge``: model files changed whole, by one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from priory.cli.options import (
    FILE_PATH_TYPE,
    SectionedOption,
    add_column_options,
    add_reading_options,
    check_output_path,
    combine_decorators,
    files_argument,
    force_option,
    json_option,
    model_argument,
    pop_column_options,
    pop_read_options,
    sectioned_command,
)
from priory.cli.sign import get_required_key
from priory.cli.terminal import escape_unprintable, format_count, print_json, print_note, show_activity, show_progress

if TYPE_CHECKING:
    from priory.sources import FileRows
    from priory.sources.column_types import ColumnOptions
    from priory.storage import Updated

MAX_SILENT_WAIT_SECONDS = 1.0  # seconds that nobody needs to be told of

refresh_option = click.option(
    "--refresh",
    multiple=True,
    type=FILE_PATH_TYPE,
    metavar="FILE",
    help="Rows the model knows, to make it honest on again.",
)
add_change_options = combine_decorators(
    model_argument,
    files_argument,
    refresh_option,
    click.option(
        "--wait",
        cls=SectionedOption,
        type=click.FloatRange(0),
        metavar="SECONDS",
        help="Give up if others change MODEL for longer.",
    ),
    json_option,
    add_column_options,
    add_reading_options,
)


@sectioned_command(short_help="Learn more rows.", epilog="Example: priory learn mail.priory today.csv")
@add_change_options
def learn(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Learn the rows of FILEs on top of what MODEL has learned: all of them, or none if anything is wrong.

    Where there is no MODEL yet it is made, as priory train --plain --target COLUMN would. Several may learn into one
    MODEL at once: each waits for its turn, and nothing is lost.
    """
    _change_model("learned", model, paths, given)


@sectioned_command(short_help="Unlearn rows, exactly.", epilog="Example: priory forget mail.priory withdrawn.csv")
@add_change_options
def forget(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Make MODEL as if it had never seen the rows of FILEs: all of them, or none if one was never learned."""
    _change_model("forgotten", model, paths, given)


def _change_model(action: str, path: str, paths: tuple[str, ...], given: dict[str, Any]) -> None:
    how, spoken = pop_read_options(given), pop_column_options(given)
    from priory.cli.model_files import check_model_type, fill_target, refresh_corrections
    from priory.sources import open_files

    with show_progress(list(paths)) as told, _lock_model_file(path, given["wait"]) as file:
        if file.model is None and action == "forgotten":
            raise FileNotFoundError(2, "there is no such model; make one with priory train", path)
        rows = open_files(list(paths), how, told)
        if file.model is None:
            count = _learn_new_model(file, path, rows, spoken)
        else:
            count = _update_model(action, check_model_type(file.model, path), rows, spoken)
        refresh_corrections(file.model, given["refresh"], how, fill_target(file.model, spoken))
    total = float(file.model.class_count_.sum())
    if given["json_"]:
        print_json({"model": path, action: count, "rows": total})
    else:
        click.echo(f"{format_count(count, 'row')} {action}; {path} now knows {total:,.0f}")


@contextmanager
def _lock_model_file(path: str, wait: float | None) -> Iterator[Updated]:
    """The model file, while nobody else changes it; who has to wait is told so.

    The files are read inside: what their cells mean depends on the columns and values that the model has by then.
    """
    from priory.errors import FileBusyError
    from priory.storage import updating

    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder; name a model file", path)
    most = float("inf") if wait is None else wait
    with ExitStack() as stack:
        try:
            file = stack.enter_context(updating(path, wait=min(MAX_SILENT_WAIT_SECONDS, most), key=get_required_key()))
        except FileBusyError:
            if most <= MAX_SILENT_WAIT_SECONDS:
                raise
            print_note(f"{path}: another process is changing it; waiting until it is done")
            file = stack.enter_context(updating(path, wait=most - MAX_SILENT_WAIT_SECONDS, key=get_required_key()))
        yield file


def _learn_new_model(file: Updated, path: str, rows: FileRows, column_options: ColumnOptions) -> int:
    """There is no model yet: one is made, as ``train --escape_unprintable`` makes it."""
    from priory.cli.train import train
    from priory.workflows.train import train_model

    done = train_model(rows, column_options, train.make_context("train", ["--plain", "FILE"]).params)
    file.model = done.model
    told = ", ".join(f"{escape_unprintable(name)} ({family})" for name, family in done.families.items())
    print_note(f"{path}: there was no such model; made one that learns {done.model.target_!r} from {told}")
    return done.rows


def _update_model(action: str, model: Any, rows: FileRows, column_options: ColumnOptions) -> int:
    from priory.cli.model_files import fill_target, get_model_columns, join_labelled_rows, read_labelled_rows

    parts, count = read_labelled_rows(rows, get_model_columns(model), fill_target(model, column_options)), 0
    for part, labels in parts if action == "learned" else join_labelled_rows(parts):  # forgotten at once: rounded once
        (model.partial_fit if action == "learned" else model.forget)(part, labels)
        count += len(labels)
    return count


@sectioned_command(
    short_help="Add what models have learned.",
    epilog="Example: priory merge monday.priory tuesday.priory -o both.priory",
)
@click.argument("models", nargs=-1, required=True, type=FILE_PATH_TYPE, metavar="MODEL...")
@click.option(
    "-o", "--out", required=True, type=FILE_PATH_TYPE, metavar="MODEL", help="What has learned what all have."
)
@refresh_option
@force_option
@json_option
@add_column_options
@add_reading_options
def merge(models: tuple[str, ...], out: str, **given: Any) -> None:
    """Add what MODELs have learned: as if one had seen all rows."""
    how, what = pop_read_options(given), pop_column_options(given)
    place = check_output_path(out, list(models), given["force"])
    if place is None or len(models) < 2:
        raise click.UsageError("give two models or more, and a file for their sum with -o")
    from priory.cli.model_files import fill_target, load_classifier, refresh_corrections
    from priory.storage import save

    with show_activity("adding the models"):
        first, *others = (load_classifier(path) for path in models)
        both = first.merge(*others)
    refresh_corrections(both, given["refresh"], how, fill_target(both, what))
    save(both, place)
    total = float(both.class_count_.sum())
    print_json({"model": place, "rows": total}) if given["json_"] else click.echo(f"wrote {place}: {total:,.0f} rows")
