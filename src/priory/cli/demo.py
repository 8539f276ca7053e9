"""``priory demo``: the tour on real data in two minutes, every step a command that can be typed."""

from __future__ import annotations

import shlex
from contextlib import suppress

import click

from priory.cli.terminal import format_heading, invoke_command


@click.command(
    "demo", epilog="Example: priory demo --out tour", short_help="The tour: every step a command to be typed."
)
@click.option("--out", default="priory-demo", metavar="FOLDER", show_default=True, help="Where it leaves its files.")
@click.option("--data-only", is_flag=True, help="Leave the data to be tried, and skip the tour.")
@click.pass_context
def demo_command(context: click.Context, out: str, data_only: bool) -> None:
    """Learn, judge, explain, forget, audit: the tour on data that comes with priory and with scikit-learn."""
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
            with suppress(click.exceptions.Exit):  # an audit that found something says so by its exit code
                invoke_command(app, shlex.split(line))
    finally:
        os.chdir(here)
    click.echo(
        f"\n{format_heading('The report')} is {folder / 'inbox.html'}; the data and models of the tour are beside it."
    )
