"""``priory doctor``, ``completion`` and ``demo``: what this installation can do."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from priory.cli.options import json_option, sectioned_command
from priory.cli.terminal import format_heading, invoke_command, print_json


@sectioned_command("doctor", short_help="Check this installation.", epilog="Example: priory doctor")
@json_option
def doctor_command(json_: bool) -> None:
    """Check this installation: versions, optional packages, compiled kernels, threads, and writing a model.

    The exit code is 1 if something that priory needs does not work. An optional package may be missing.
    """
    from priory.workflows.installation import check_installation

    sections, faults = check_installation()
    if json_:
        print_json(sections)
    else:
        for title, lines in sections.items():
            click.echo(format_heading(title))
            for name, text in lines.items():
                click.echo(f"  {name}: {text}")
        click.echo(f"not working: {', '.join(faults)}" if faults else "everything that priory needs works")
    raise click.exceptions.Exit(1 if faults else 0)


@click.command(
    "completion", short_help="Print shell completion.", epilog="Example: priory completion bash >> ~/.bashrc"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that makes a shell complete the commands, options and files of priory."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root()
    click.echo(kind(root.command, {}, "priory", "_PRIORY_COMPLETE").source())


@click.command("demo", epilog="Example: priory demo --out tour", short_help="Take a tour; every step is a command.")
@click.option("--out", default="priory-demo", metavar="FOLDER", show_default=True, help="Where to put the files.")
@click.option("--data-only", is_flag=True, help="Write the data files only, without the tour.")
@click.pass_context
def demo_command(context: click.Context, out: str, data_only: bool) -> None:
    """Take a tour on data that comes with priory and scikit-learn: train, predict, explain, forget, audit, inspect."""
    from priory.workflows.installation import TOUR_STEPS, write_tour_files

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
