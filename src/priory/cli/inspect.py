"""``priory inspect``: what a model file contains and would reveal."""

from __future__ import annotations

import click

from priory.cli.options import get_required_key, json_option, model_argument
from priory.cli.terminal import print_json, print_lines


@click.command(
    "inspect", short_help="What a model file holds and would reveal.", epilog="Example: priory inspect mail.priory"
)
@model_argument
@json_option
def inspect_command(model: str, json_: bool) -> None:
    """Show what MODEL holds, and what it would reveal to whoever gets it. Nothing in it is run."""
    from priory.workflows import inspect

    found = inspect(model, key=get_required_key())
    print_json(found.as_dict()) if json_ else print_lines(str(found), indent="")
