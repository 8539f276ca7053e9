"""``priory learn``, ``forget`` and ``merge``: model files changed whole, by one at a time."""

from __future__ import annotations

from typing import Any

import click

from priory.cli.options import asked, columns, force_option, json_option, output, reading, said
from priory.cli.show import as_json, progress
from priory.cli.sign import required

refresh_option = click.option(
    "--refresh", multiple=True, metavar="FILE", help="Rows the model knows, to make it honest on again."
)


@click.command(short_help="Learn more rows.", epilog="Example: priory learn mail.priory today.csv")
@click.argument("model", metavar="MODEL")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@refresh_option
@columns
@reading
@json_option
def learn(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Learn the rows of FILEs on top of what MODEL has learned: all of them, or none if anything is wrong."""
    _change("learned", model, paths, given)


@click.command(short_help="Unlearn rows, exactly.", epilog="Example: priory forget mail.priory withdrawn.csv")
@click.argument("model", metavar="MODEL")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@refresh_option
@columns
@reading
@json_option
def forget(model: str, paths: tuple[str, ...], **given: Any) -> None:
    """Make MODEL as if it had never seen the rows of FILEs: all of them, or none if one was never learned."""
    _change("forgotten", model, paths, given)


def _change(what: str, path: str, paths: tuple[str, ...], given: dict[str, Any]) -> None:
    how, spoken = asked(given), said(given)
    from priory.cli.data import columns_of, joined, known, labelled, refreshed, target_of
    from priory.sources import open_files
    from priory.storage import updating

    count = 0
    with progress(None) as told, updating(path, key=required()) as file:
        if file.model is None:
            raise FileNotFoundError(2, "there is no such model; make one with priory train", path)
        model = known(file.model, path)
        spoken = target_of(model, spoken)
        parts = labelled(open_files(list(paths), how, told), columns_of(model), spoken)
        for part, labels in (
            parts if what == "learned" else joined(parts)
        ):  # forget at once: what is left is rounded once
            (model.partial_fit if what == "learned" else model.forget)(part, labels)
            count += len(labels)
        refreshed(model, given["refresh"], how, spoken)
    total = float(model.class_count_.sum())
    if given["json_"]:
        as_json({"model": path, what: count, "rows": total})
    else:
        click.echo(f"{count:,} rows {what}; {path} now knows {total:,.0f}")


@click.command(
    short_help="Add what models have learned.",
    epilog="Example: priory merge monday.priory tuesday.priory -o both.priory",
)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("-o", "--out", required=True, metavar="MODEL", help="The model that has learned what all have.")
@refresh_option
@columns
@reading
@force_option
@json_option
def merge(models: tuple[str, ...], out: str, **given: Any) -> None:
    """Add what MODELs have learned: as if one had seen all rows."""
    how, what = asked(given), said(given)
    place = output(out, list(models), given["force"])
    if place is None or len(models) < 2:
        raise click.UsageError("give two models or more, and a file for their sum with -o")
    from priory.cli.data import loaded, refreshed, target_of
    from priory.storage import save

    first, *others = (loaded(path) for path in models)
    both = first.merge(*others)
    refreshed(both, given["refresh"], how, target_of(both, what))
    save(both, place)
    total = float(both.class_count_.sum())
    as_json({"model": place, "rows": total}) if given["json_"] else click.echo(f"wrote {place}: {total:,.0f} rows")
