"""``priory inspect``: list the contents of a model file."""

from __future__ import annotations

import click

from priory import workflows
from priory.cli.options import get_required_key, json_option, model_argument
from priory.cli.sections import sectioned_command
from priory.cli.terminal import print_json, print_lines


@sectioned_command(
    "inspect", short_help="Show what a model file contains.", epilog="Example: priory inspect mail.priory"
)
@model_argument
@click.option("--tables", is_flag=True, help="Load the model, and show P(class) and P(value | class).")
@json_option
def inspect_command(model: str, tables: bool, json_: bool) -> None:
    """Show what MODEL contains, and what it would reveal to anyone who has the file. The model is not loaded."""
    if tables:
        from priory.workflows.model_files import load_classifier

        found_tables = load_classifier(model, get_required_key()).tables_
        print_json(found_tables.to_dicts()) if json_ else print_lines(str(found_tables), indent="")
        return
    found = workflows.inspect(model, key=get_required_key())
    print_json(found.as_dict()) if json_ else print_lines(str(found), indent="")
