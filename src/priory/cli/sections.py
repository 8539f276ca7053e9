"""Commands and options whose help is in sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from importlib import import_module
from typing import Any, TypeVar

import click

from priory.cli.terminal import QUIET_KEY

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


QUIET_HELP = "Print no notes and no progress; errors are printed."


def _set_quiet(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[QUIET_KEY] = True


class SectionedOption(click.Option):
    """An option that belongs to a section of the help; ``make_help`` is called only if the help is shown."""

    def __init__(
        self,
        *names: Any,
        section: str = "Options",
        make_help: Callable[[], str] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(*names, **given)
        self.section = section
        self._make_help = make_help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self._make_help is not None:
            self.help = self._make_help()
        return super().get_help_record(ctx)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Extra help without the range, which the help gives in words."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class SectionedCommand(click.Command):
    """A command whose help shows the options in sections, its own options first; every command can be quiet."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        quiet = click.Option(
            ["-q", "--quiet"], is_flag=True, expose_value=False, is_eager=True, callback=_set_quiet, help=QUIET_HELP
        )
        self.params.append(quiet)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                sections.setdefault(getattr(option, "section", "Options"), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


class LateGroup(click.Group):
    """A group whose commands are imported when they are asked for; ``homes`` says where they are, in order."""

    def __init__(self, *given: Any, homes: Mapping[str, str], **named: Any) -> None:
        super().__init__(*given, **named)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return None
        module, command = self.homes[cmd_name].split(":")
        found: click.Command = getattr(import_module(f"priory.cli.{module}"), command)
        return found


sectioned_command = partial(click.command, cls=SectionedCommand)


def make_section(name: str, *options: tuple[tuple[str, ...], dict[str, Any]]) -> Callable[[CommandT], CommandT]:
    """Several options as one decorator, shown together in this order."""
    made = [click.option(*names, cls=SectionedOption, section=name, **given) for names, given in options]
    return combine_decorators(*made)


def combine_decorators(*decorators: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Several decorators as one."""
    return lambda function: reduce(lambda done, decorator: decorator(done), reversed(decorators), function)


def define_option(*names: str, **given: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, given
