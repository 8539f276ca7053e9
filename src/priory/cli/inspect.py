"""``priory inspect``: what a model file holds and would reveal; ``completion``: the commands known to the shell."""

from __future__ import annotations

import click

from priory.cli.options import json_option, model_argument
from priory.cli.sign import get_required_key
from priory.cli.terminal import print_json, print_lines


@click.command(short_help="What a model file holds and would reveal.", epilog="Example: priory inspect mail.priory")
@model_argument
@json_option
def inspect(model: str, json_: bool) -> None:
    """Show what MODEL holds, and what it would reveal to whoever gets it. Nothing in it is run."""
    from priory.storage import inspect as inspected

    told = inspected(model, key=get_required_key())
    print_json(told.as_dict()) if json_ else print_lines(str(told), indent="")


@click.command(short_help="Completion for a shell.", epilog="Example: priory completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete the commands and options of priory."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root()
    click.echo(kind(root.command, {}, "priory", "_PRIORY_COMPLETE").source())
