"""``priory learn``, ``forget`` and ``merge``: model files changed whole, by one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from priory.cli.options import (
    FILE,
    Option,
    asked,
    columns,
    combined,
    command,
    files_argument,
    force_option,
    json_option,
    model_argument,
    output,
    reading,
    said,
)
from priory.cli.sign import required
from priory.cli.terminal import as_json, many, note, plain, progress, saying

if TYPE_CHECKING:
    from priory.sources import Rows
    from priory.sources.column_types import Said
    from priory.storage import Updated

SOON = 1.0  # seconds that nobody needs to be told of

refresh_option = click.option(
    "--refresh", multiple=True, type=FILE, metavar="FILE", help="Rows the model knows, to make it honest on again."
)
changing = combined(
    model_argument,
    files_argument,
    refresh_option,
    click.option(
        "--wait",
        cls=Option,
        type=click.FloatRange(0),
        metavar="SECONDS",
        help="Give up if others change MODEL for longer.",
    ),
    json_option,
    columns,
    reading,
)


@command(short_help="Learn more rows.", epilog="Example: priory learn mail.priory today.csv")
@changing
def learn(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Learn the rows of FILEs on top of what MODEL has learned: all of them, or none if anything is wrong.

    Where there is no MODEL yet it is made, as priory train --plain --target COLUMN would. Several may learn into one
    MODEL at once: each waits for its turn, and nothing is lost.
    """
    _change("learned", model, paths, given)


@command(short_help="Unlearn rows, exactly.", epilog="Example: priory forget mail.priory withdrawn.csv")
@changing
def forget(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Make MODEL as if it had never seen the rows of FILEs: all of them, or none if one was never learned."""
    _change("forgotten", model, paths, given)


def _change(what: str, path: str, paths: tuple[str, ...], given: dict[str, Any]) -> None:
    how, spoken = asked(given), said(given)
    from priory.cli.model_files import known, refreshed, target_of
    from priory.sources import open_files

    with progress(list(paths)) as told, _alone(path, given["wait"]) as file:
        if file.model is None and what == "forgotten":
            raise FileNotFoundError(2, "there is no such model; make one with priory train", path)
        rows = open_files(list(paths), how, told)
        if file.model is None:
            count = _begin(file, path, rows, spoken)
        else:
            count = _go_on(what, known(file.model, path), rows, spoken)
        refreshed(file.model, given["refresh"], how, target_of(file.model, spoken))
    total = float(file.model.class_count_.sum())
    if given["json_"]:
        as_json({"model": path, what: count, "rows": total})
    else:
        click.echo(f"{many(count, 'row')} {what}; {path} now knows {total:,.0f}")


@contextmanager
def _alone(path: str, wait: float | None) -> Iterator[Updated]:
    """The model file, while nobody else changes it; who has to wait is told so.

    The files are read inside: what their cells mean depends on the columns and values that the model has by then.
    """
    from priory.errors import Busy
    from priory.storage import updating

    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder; name a model file", path)
    most = float("inf") if wait is None else wait
    with ExitStack() as stack:
        try:
            file = stack.enter_context(updating(path, wait=min(SOON, most), key=required()))
        except Busy:
            if most <= SOON:
                raise
            note(f"{path}: another process is changing it; waiting until it is done")
            file = stack.enter_context(updating(path, wait=most - SOON, key=required()))
        yield file


def _begin(file: Updated, path: str, rows: Rows, spoken: Said) -> int:
    """There is no model yet: one is made, as ``train --plain`` makes it."""
    from priory.cli.train import train
    from priory.workflows.train import trained

    done = trained(rows, spoken, train.make_context("train", ["--plain", "FILE"]).params)
    file.model = done.model
    told = ", ".join(f"{plain(name)} ({family})" for name, family in done.families.items())
    note(f"{path}: there was no such model; made one that learns {done.model.target_!r} from {told}")
    return done.rows


def _go_on(what: str, model: Any, rows: Rows, spoken: Said) -> int:
    from priory.cli.model_files import columns_of, joined, labelled, target_of

    parts, count = labelled(rows, columns_of(model), target_of(model, spoken)), 0
    for part, labels in parts if what == "learned" else joined(parts):  # forgotten at once: rounded once
        (model.partial_fit if what == "learned" else model.forget)(part, labels)
        count += len(labels)
    return count


@command(
    short_help="Add what models have learned.",
    epilog="Example: priory merge monday.priory tuesday.priory -o both.priory",
)
@click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option("-o", "--out", required=True, type=FILE, metavar="MODEL", help="What has learned what all have.")
@refresh_option
@force_option
@json_option
@columns
@reading
def merge(models: tuple[str, ...], out: str, **given: Any) -> None:
    """Add what MODELs have learned: as if one had seen all rows."""
    how, what = asked(given), said(given)
    place = output(out, list(models), given["force"])
    if place is None or len(models) < 2:
        raise click.UsageError("give two models or more, and a file for their sum with -o")
    from priory.cli.model_files import loaded, refreshed, target_of
    from priory.storage import save

    with saying("adding the models"):
        first, *others = (loaded(path) for path in models)
        both = first.merge(*others)
    refreshed(both, given["refresh"], how, target_of(both, what))
    save(both, place)
    total = float(both.class_count_.sum())
    as_json({"model": place, "rows": total}) if given["json_"] else click.echo(f"wrote {place}: {total:,.0f} rows")
