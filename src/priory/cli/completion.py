"""``priory completion``: print a completion script for a shell."""

from __future__ import annotations

import click


@click.command(
    "completion", short_help="Print shell completion.", epilog="Example: priory completion bash >> ~/.bashrc"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that makes a shell complete the commands, options and files of priory."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root()
    click.echo(kind(root.command, {}, "priory", "_PRIORY_COMPLETE").source())
