"""Options that several commands share, in the sections of their help, and the workflow options they become."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, reduce
from importlib import import_module
from inspect import getdoc
from operator import not_
from pathlib import Path
from typing import Any, TypeVar

import click

from priory import workflows
from priory.cli.config import find_defaults
from priory.cli.terminal import QUIET_KEY, print_note, watch_workflow
from priory.errors import suggest_name

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


ALL_OPTIONS_KEY = "priory.all_options"  # in the context of a command whose help lists every option
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
    """An option that belongs to a section of the help; the short help has the common ones only.

    ``parse`` converts its value, if it has one, and may raise `click.BadParameter`. ``make_help`` is called only when
    the help is shown.
    """

    def __init__(
        self,
        *names: Any,
        section: str = "Options",
        parse: Callable[[Any], Any] | None = None,
        make_help: Callable[[], str] | None = None,
        is_common: bool = False,
        **given: Any,
    ) -> None:
        super().__init__(*names, callback=None if parse is None else partial(_convert, parse), **given)
        self.section, self.is_common, self._make_help = section, is_common or section == "Options", make_help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self._make_help is not None:
            self.help = self._make_help()
        return super().get_help_record(ctx)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Extra help without the range, which the help gives in words."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


def _show_all_help(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[ALL_OPTIONS_KEY] = True
        click.echo(context.get_help())
        context.exit()


class SectionedCommand(click.Command):
    """A command whose help lists options by section, that has --quiet, and that takes defaults from a file."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        flag = partial(click.Option, is_flag=True, expose_value=False, is_eager=True)
        self.params.append(flag(["-q", "--quiet"], callback=_set_quiet, help=QUIET_HELP))
        if any(not option.is_common for option in self.params if isinstance(option, SectionedOption)):
            self.params.append(flag(["--help-all"], callback=_show_all_help, help="Show all options, and exit."))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        group = ctx.parent and ctx.parent.command
        if not isinstance(group, LateGroup):
            return super().parse_args(ctx, args)
        shared = {flag for section in SHARED_SECTIONS for flag in section.flags}
        file, ctx.default_map = find_defaults(self, shared, set(group.homes))
        rest = super().parse_args(ctx, args)
        if ctx.default_map:
            print_note(f"options from {file}: {', '.join(ctx.default_map)}")
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            is_shown = ctx.meta.get(ALL_OPTIONS_KEY) or getattr(option, "is_common", True)
            if record is not None and isinstance(option, click.Option) and is_shown:
                sections.setdefault(getattr(option, "section", "Options"), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


class LateGroup(click.Group):
    """A group whose commands are imported on use; ``homes`` has the module of each, in order."""

    def __init__(self, *given: Any, homes: Mapping[str, str], **named: Any) -> None:
        super().__init__(*given, **named)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.homes)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f"{error.message.rstrip('.')}{suggest_name(args[0], self.homes)}.", ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return None
        module = import_module(f"priory.cli.{self.homes[cmd_name]}")
        found: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return found


sectioned_command = partial(click.command, cls=SectionedCommand)


class OptionSection:
    """Options as one decorator: shown together in the help, and named after the fields of the record that they fill.

    A new option is declared here and as a field of the record, a name in `priory.workflows`: its default applies where
    the option is not given, and its description is the help where the option has none of its own.
    """

    def __init__(self, title: str, *options: tuple[tuple[str, ...], dict[str, Any]], record: str = "") -> None:
        for names, how in options:
            if not {"help", "make_help"} & how.keys():
                field = str(SectionedOption(names, **how).name)
                how["make_help"] = partial(describe_field, record, field)
        self._decorators = [click.option(*names, cls=SectionedOption, section=title, **how) for names, how in options]
        self.names = [SectionedOption(names, **how).name for names, how in options]
        self.flags = [flag.lstrip("-") for names, _ in options for flag in names if flag.startswith("-")]

    def __call__(self, command: CommandT) -> CommandT:
        return combine_decorators(*self._decorators)(command)

    def pop(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take the options that have a value out of what a command was given."""
        values = {name: given.pop(name, None) for name in self.names}
        return {name: value for name, value in values.items() if value not in (None, ())}


def describe_field(record: str, field: str) -> str:
    """The description of a field in the docstring of a record of `priory.workflows`."""
    documented = getdoc(getattr(workflows, record)) or ""
    found = re.search(rf"^(\w+, )*{field}(, \w+)* : .*\n((    .*\n?)+)", documented, re.MULTILINE)
    return " ".join(found[3].replace("``", "").split()) if found else ""


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


def define_option(
    usage: str, help: str | Callable[[], str] = "", parse: Any = None, *, field: str = "", **given: Any
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Define an option by its usage as the help shows it, such as ``--ignore A,B...``, for `OptionSection`.

    An option without a metavariable is a flag, unless ``parse`` is a choice; one that ends in ``...`` may be repeated.
    ``parse`` is a type of click, or a function that converts the value and may raise `click.BadParameter`. ``field`` is
    the field that the option fills, if it has another name; a function as ``help`` is called when help is shown.
    """
    flags, _, metavar = usage.partition(" ")
    names = (*flags.split(","), *([field] if field else []))
    if help:
        given |= {"make_help": help} if callable(help) else {"help": help}
    given |= {"type" if isinstance(parse, click.ParamType) else "parse": parse}
    if metavar:
        given |= {"metavar": metavar.removesuffix("..."), "multiple": metavar.endswith("...")}
    elif "/" in flags:
        given["default"] = None
    elif not isinstance(parse, click.ParamType):
        given["is_flag"] = True
    return names, given


def add_option(*definition: Any, **given: Any) -> Callable[[CommandT], CommandT]:
    """A decorator that adds one option, defined as by `define_option`, to a command."""
    names, how = define_option(*definition, **given)
    return click.option(*names, cls=SectionedOption, **how)


TEXT_MODELS = ("binary", "multinomial", "bernoulli")
FILE_PATH_TYPE = click.Path(readable=False)  # for shell completion; checked when the file is opened


def _parse_delimiter(text: str) -> str:
    delimiter = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(delimiter) != 1 or not delimiter.isascii():
        raise click.BadParameter(f"{delimiter!r} is not one ASCII character.")
    return delimiter


def _split_names(texts: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names in a text such as ``a,b``, or in several; among several, an empty text is an empty name."""
    if isinstance(texts, str):
        return tuple(texts.split(",")) if texts else ()
    return tuple(name for text in texts for name in text.split(","))


def _parse_column_types(texts: tuple[str, ...]) -> dict[str, str]:
    """The declarations in texts such as ``a=label,b=numeric``; a comma may also be part of a name."""
    from priory.sources.column_types import list_column_types

    types = {}
    for text in texts:
        parts = text.split(",")
        for part in parts if all("=" in part for part in parts) else [text]:
            name, _, kind = part.rpartition("=")
            if not name or kind not in list_column_types():
                raise click.BadParameter(
                    f"{part!r} is not COLUMN=TYPE; a type is one of {', '.join(list_column_types())}."
                )
            types[name] = kind
    return types


def split_assignments(texts: Iterable[str], usage: str) -> dict[str, str]:
    """The parts of texts such as ``NAME=VALUE`` at the first sign of equality."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name + equals + value!r}: write {usage}.")
    return {name: value for name, _, value in pairs}


def _check_alpha(alpha: float) -> float:
    if not 0 <= alpha < float("inf"):
        raise click.BadParameter(f"{alpha} is not allowed; use a number that is 0 or more.")
    return alpha


def _parse_class_prior(text: str) -> str | dict[str, float]:
    if text == "uniform":
        return text
    numbers = {}
    for pair in text.split(","):
        name, _, number = pair.rpartition("=")  # the name of a class may have the sign
        try:
            numbers[name] = float(number if name else "")
        except ValueError:
            raise click.BadParameter(f"{pair!r} is not CLASS=NUMBER.") from None
    return numbers


reading_options = OptionSection(
    "Reading files",
    define_option("--format NAME"),
    define_option("--delimiter C", parse=_parse_delimiter),
    define_option("--encoding NAME"),
    define_option("--errors", parse=click.Choice(["strict", "replace"])),
    define_option("--ragged", parse=click.Choice(["error", "pad", "skip"])),
    define_option("--table NAME"),
    define_option(
        "--no-header", "A CSV without a header: the columns are called c1, c2 and so on.", not_, field="has_header"
    ),
    define_option("--no-quotes", "Treat quotation marks in a CSV as ordinary characters.", not_, field="quotes"),
    define_option("--skip-bad N", parse=click.IntRange(0), field="max_bad_lines"),
    define_option("--keep-going"),
    define_option(
        "--no-mail-headers",
        "Learn only the subject and the body of mail. A model remembers it.",
        lambda is_given: "mail_body" if is_given else "mail",
        field="reader",
    ),
    record="ReadOptions",
)


def describe_column_types() -> str:
    from priory.sources.column_types import list_column_types

    types = list_column_types()
    return f"What a column holds: {', '.join(types[:4])}, or a family: {', '.join(types[4:])}."


column_options = OptionSection(
    "Columns",
    define_option("--target COLUMN", "The column to predict. A model remembers it.", is_common=True),
    define_option(
        "--type,--types COLUMN=TYPE...", describe_column_types, _parse_column_types, field="types", is_common=True
    ),
    define_option("--text A,B", "Columns that hold texts.", _split_names),
    define_option("--columns A,B", parse=_split_names),
    define_option("--ignore A,B...", parse=_split_names, is_common=True),
    define_option("--keep-ids", field="keep_identifiers"),
    define_option("--missing A,B...", parse=lambda texts: frozenset(_split_names(texts))),
    define_option("--decimal", parse=click.Choice([".", ","])),
    define_option("--thousands", parse=click.Choice([",", ".", " ", "'"])),
    define_option("--day-first/--month-first"),
    define_option("--map-label OLD=NEW...", parse=partial(split_assignments, usage="OLD=NEW"), field="label_map"),
    define_option("--strip-labels"),
    define_option("--label LABEL"),
    define_option("--skip-unlabelled"),
    define_option("--coerce"),
    define_option("--classes,--labels-as-text", field="labels_as_text"),
    record="ColumnOptions",
)

training_options = OptionSection(
    "Options",
    define_option("--plain"),
    define_option("--no-audit", "Do not look for leakage in the data.", not_, field="audit"),
    record="TrainingOptions",
)

learning_options = OptionSection(
    "Learning",
    define_option("--refine/--no-refine"),
    define_option("--alpha A", parse=_check_alpha, type=float),
    define_option("--model NAME", parse=click.Choice(TEXT_MODELS), field="text_model"),
    define_option("--ngrams N", parse=click.IntRange(1, 5)),
    define_option("--max-words N", parse=click.IntRange(1), field="max_tokens"),
    define_option("--memory N", parse=click.IntRange(0)),
    define_option("--sample N", parse=click.IntRange(50), field="sample_rows"),
    record="TrainingOptions",
)

class_options = OptionSection(
    "Classes",
    define_option(
        "--prior PRIOR",
        "How probable the classes are where the model will be used: 'uniform', or CLASS=P,... By default as in the "
        "training rows.",
        _parse_class_prior,
        field="class_prior",
    ),
)

SHARED_SECTIONS = (reading_options, column_options, training_options, learning_options, class_options)

model_argument = click.argument("model", type=FILE_PATH_TYPE, metavar="MODEL")
files_argument = click.argument("paths", nargs=-1, required=True, type=FILE_PATH_TYPE, metavar="FILE...")
json_option = add_option("--json", "Print JSON.", field="json_")
force_option = add_option("--force", "Replace an existing file.")


output_options = combine_decorators(
    add_option(
        "-o,--out FILE",
        "The output: .csv, .tsv, .jsonl, .parquet or .arrow. By default a CSV on standard output.",
        FILE_PATH_TYPE,
    ),
    force_option,
    json_option,
)
_refresh_definition = define_option(
    "--refresh FILE...",
    "Rows that the model has learned, to fit its corrections to again; may be repeated.",
    FILE_PATH_TYPE,
    field="refresh_from",
)
refresh_option = OptionSection("Options", _refresh_definition)
update_options = OptionSection(
    "Options",
    _refresh_definition,
    define_option(
        "--wait SECONDS",
        "How long to wait while another process changes MODEL. By default as long as it takes.",
        click.FloatRange(0),
    ),
    define_option("--unlabelled", "The rows are texts without label; MODEL uses them where that helps."),
)


@contextmanager
def open_task(
    paths: tuple[str, ...], given: dict[str, Any], *, more_paths: tuple[str, ...] = ()
) -> Iterator[workflows.FileTask]:
    """The files of a command with the options of `reading_options` and `column_options`, taken out of ``given``.

    Progress and notes are printed while the context is open; ``more_paths`` are files that are read besides.
    """
    texts, columns = dict.fromkeys(given.pop("text", None) or (), "text"), column_options.pop(given)
    if texts:
        columns["types"] = columns.get("types", {}) | texts
    read = workflows.ReadOptions(**reading_options.pop(given))
    with watch_workflow((*paths, *more_paths)) as callbacks:
        yield workflows.FileTask(paths, workflows.ColumnOptions(**columns), read, get_required_key(), callbacks)


def pop_training_options(given: dict[str, Any]) -> workflows.TrainingOptions:
    """The options of `training_options`, `learning_options` and `class_options`, taken out of ``given``."""
    check_exclusive("--plain", "--refine")
    sections = (training_options, learning_options, class_options)
    return workflows.TrainingOptions(
        **{name: value for section in sections for name, value in section.pop(given).items()}
    )


def get_required_key() -> str | None:
    """The key that models must be signed with, if ``--require-signature`` gave one."""
    key: str | None = click.get_current_context().find_root().params.get("require_signature")
    return key


receipt_options = OptionSection(
    "Receipts",
    define_option("--sign-key FILE", parse=FILE_PATH_TYPE, field="key"),
    define_option("--receipt FILE", parse=FILE_PATH_TYPE),
    define_option("--opening FILE", parse=FILE_PATH_TYPE),
    define_option("--reason TEXT"),
    record="ReceiptFiles",
)


def pop_receipt_files(given: dict[str, Any], force: bool = False) -> workflows.ReceiptFiles | None:
    """The options of `receipt_options`, taken out of ``given``; None if no receipt is wanted."""
    named = receipt_options.pop(given)
    if named and not {"key", "receipt"} <= named.keys():
        raise click.UsageError("a receipt needs a key and a file: give --sign-key and --receipt")
    for name in {"receipt", "opening"} & named.keys():
        named[name] = check_output_path(named[name], (named["key"],), force)
        if named[name] is None:
            raise click.UsageError("a receipt is written to a file; give its name")
    return workflows.ReceiptFiles(**named) if named else None


def check_output_path(path: str | None, inputs: tuple[str, ...], force: bool) -> str | None:
    """Return the path if it may be written, or None for standard output. Inputs are never overwritten."""
    if path is None or path == "-":
        return None
    target = Path(path)
    for given in inputs:
        if given != "-" and os.path.exists(given) and target.exists() and os.path.samefile(given, path):
            raise FileExistsError(17, "is an input, which is never overwritten; give another file", path)
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "no such folder; create it first", str(target.parent))
    if target.exists() and target.is_file() and not force:
        raise FileExistsError(17, "already exists; use --force to replace it", path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; give a file", path)
    return path


def require_output_path(path: str | None, inputs: tuple[str, ...], force: bool, what: str, example: str) -> str:
    """Return the path, as `check_output_path`, of what cannot be written to standard output."""
    found = check_output_path(path, inputs, force)
    if found is None:
        raise click.UsageError(f"{what} is written to a file; use -o {example}")
    return found
