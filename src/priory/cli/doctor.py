"""``priory doctor``: check the installation."""

from __future__ import annotations

import click

from priory.cli.options import json_option
from priory.cli.sections import sectioned_command
from priory.cli.terminal import format_heading, print_json


@sectioned_command("doctor", short_help="Check this installation.", epilog="Example: priory doctor")
@json_option
def doctor_command(json_: bool) -> None:
    """Check this installation: versions, optional packages, compiled kernels, threads, and writing a model.

    The exit code is 1 if something that priory needs does not work. An optional package may be missing.
    """
    from priory.workflows.self_check import check_installation

    found = check_installation()
    if json_:
        print_json(found.as_dict())
    else:
        for title, lines in found.as_dict().items():
            click.echo(format_heading(title))
            for name, text in lines.items():
                click.echo(f"  {name}: {text}")
        click.echo("everything that priory needs works" if found.is_well else f"not working: {', '.join(found.faults)}")
    raise click.exceptions.Exit(0 if found.is_well else 1)
