"""Options of commands: each is declared once, and named after the field that it fills."""

from dataclasses import dataclass, fields

import click
import pytest
from click.testing import CliRunner

from priory.cli import options
from priory.cli.entry_point import HOMES, app
from priory.cli.options import OptionSection, check_exclusive, define_option, sectioned_command
from priory.workflows import ColumnOptions, ReadOptions, TrainingOptions

FILLED = [
    (ReadOptions, [options.reading_options], {"text_column"}, set()),  # a model of texts names its column
    (ColumnOptions, [options.column_options], set(), {"text"}),  # short for --type A=text
    (TrainingOptions, [options.training_options, options.learning_options, options.class_options], set(), set()),
]


@pytest.mark.parametrize(("record", "sections", "without_option", "without_field"), FILLED)
def test_every_option_fills_a_field_and_every_field_has_an_option(record, sections, without_option, without_field):
    names = [name for section in sections for name in section.names]
    assert len(names) == len(set(names))
    assert set(names) - without_field == {field.name for field in fields(record)} - without_option


@pytest.mark.parametrize("name", HOMES)
def test_every_option_says_what_it_does(name):
    command = app.get_command(None, name)
    context = click.Context(command)
    records = [option.get_help_record(context) for option in command.params if isinstance(option, click.Option)]
    assert [flags for flags, text in filter(None, records) if len(text) < len("Print JSON.")] == []


@dataclass(frozen=True)
class Colours:
    shade: str = "dark"
    n_layers: int = 2
    is_glossy: bool = True


COLOUR_OPTIONS = OptionSection(
    "Colours",
    define_option("--shade NAME", "Dark or light.", str.lower),
    define_option("--layers N", "How many layers.", click.INT, field="n_layers"),
    define_option("--matt", "Without gloss.", lambda is_matt: not is_matt, field="is_glossy"),
)


@sectioned_command("paint")
@COLOUR_OPTIONS
def paint(**given):
    """Paint."""
    check_exclusive("--layers", "--shade")
    click.echo(Colours(**COLOUR_OPTIONS.pop(given)))
    assert not given


@pytest.mark.parametrize(
    ("arguments", "filled"),
    [
        ([], Colours()),
        (["--shade", "LIGHT"], Colours("light")),
        (["--layers", "3", "--matt"], Colours(n_layers=3, is_glossy=False)),
    ],
)
def test_an_option_and_a_field_are_all_that_a_new_option_needs(arguments, filled):
    assert CliRunner().invoke(paint, arguments).output == f"{filled}\n"
    shown = CliRunner().invoke(paint, ["--help-all"]).output
    assert "Colours:\n" in shown
    assert "--matt" in shown.partition("Colours:")[2]


def test_options_that_exclude_each_other_are_named():
    done = CliRunner().invoke(paint, ["--shade", "light", "--layers", "1"])
    assert done.exit_code == 2
    assert "--layers and --shade exclude each other; use one of them" in done.output
