"""``priory demo``: run a tour of commands on example data."""

from __future__ import annotations

import shlex
from contextlib import suppress

import click

from priory.cli.terminal import format_heading, invoke_command


@click.command("demo", epilog="Example: priory demo --out tour", short_help="Take a tour; every step is a command.")
@click.option("--out", default="priory-demo", metavar="FOLDER", show_default=True, help="Where to put the files.")
@click.option("--data-only", is_flag=True, help="Write the data files only, without the tour.")
@click.pass_context
def demo_command(context: click.Context, out: str, data_only: bool) -> None:
    """Take a tour on data that comes with priory and scikit-learn: train, predict, explain, forget, audit, inspect."""
    import os
    from pathlib import Path

    from priory.workflows.tour import TOUR_STEPS, write_tour_files

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    files = write_tour_files(folder)
    if data_only:
        click.echo(f"wrote {', '.join(files)} to {folder}")
        return
    here = Path.cwd()
    app = context.find_root().command
    click.echo("posterior = prior + statistics(data)")
    os.chdir(folder)
    try:
        for why, line in TOUR_STEPS:
            click.echo(f"\n{format_heading(why)}\n$ priory {line}")
            with suppress(click.exceptions.Exit):  # the exit code of an audit that found something
                invoke_command(app, shlex.split(line))
    finally:
        os.chdir(here)
    report = folder / "inbox.html"
    click.echo(f"\n{format_heading('The report')} is {report}; the data and models of the tour are in the same folder.")
