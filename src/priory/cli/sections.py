"""Commands with options in sections: help, parsing, and commands that are imported on use."""

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


def _convert(parse: Callable[[Any], Any], context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Apply ``parse`` to the value of an option, if it has one; an error names the option."""
    if value in (None, ()):
        return value
    try:
        return parse(value)
    except click.BadParameter as error:
        error.param_hint = option.opts[0]
        raise


class SectionedOption(click.Option):
    """An option that belongs to a section of the help.

    ``parse`` converts its value, if it has one, and may raise `click.BadParameter`. ``make_help`` is called only when
    the help is shown.
    """

    def __init__(
        self,
        *names: Any,
        section: str = "Options",
        parse: Callable[[Any], Any] | None = None,
        make_help: Callable[[], str] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(*names, callback=None if parse is None else partial(_convert, parse), **given)
        self.section, self._make_help = section, make_help

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
    """A command whose help lists options by section, and that has --quiet."""

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
    """A group whose commands are imported on use; ``homes`` has the module and function of each, in order."""

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


class OptionSection:
    """Options as one decorator: shown together in the help, and named after the fields of the record that they fill.

    A new option is declared here and as a field of the record, whose default applies where the option is not given.
    """

    def __init__(self, title: str, *options: tuple[tuple[str, ...], dict[str, Any]]) -> None:
        self._decorators = [click.option(*names, cls=SectionedOption, section=title, **how) for names, how in options]
        self.names = [SectionedOption(names, **how).name for names, how in options]

    def __call__(self, command: CommandT) -> CommandT:
        return combine_decorators(*self._decorators)(command)

    def pop(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take the options that have a value out of what a command was given."""
        values = {name: given.pop(name, None) for name in self.names}
        return {name: value for name, value in values.items() if value not in (None, ())}


def check_exclusive(option: str, *others: str) -> None:
    """Raise a usage error if the command was given the option and one of the others."""
    context = click.get_current_context()
    names = {flag: parameter.name for parameter in context.command.params for flag in parameter.opts}
    used = [flag for flag in (option, *others) if context.params[names[flag]] not in (None, False, ())]
    if used[:1] == [option] and len(used) > 1:
        raise click.UsageError(f"{option} and {used[1]} exclude each other; use one of them")


def combine_decorators(*decorators: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Several decorators as one."""
    return lambda function: reduce(lambda done, decorator: decorator(done), reversed(decorators), function)


def define_option(*names: str, **given: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, given
