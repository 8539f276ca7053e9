"""``priory inspect`` and ``sign``: what a model file contains and would reveal, and a signature for it."""

from __future__ import annotations

import click

import priory
from priory import workflows
from priory.cli.options import (
    FILE_PATH_TYPE,
    check_exclusive,
    get_required_key,
    json_option,
    model_argument,
    sectioned_command,
)
from priory.cli.terminal import print_json, print_lines


@sectioned_command(
    "inspect", short_help="Show what a model file contains.", epilog="Example: priory inspect mail.priory"
)
@model_argument
@click.option("--tables", is_flag=True, help="Load the model, and show P(class) and P(value | class).")
@click.option(
    "--privacy",
    is_flag=True,
    help="Load the model, and show how well its answers tell which of the rows it keeps were learned.",
)
@json_option
def inspect_command(model: str, tables: bool, privacy: bool, json_: bool) -> None:
    """Show what MODEL contains, and what it would reveal to anyone who has the file. The model is not loaded."""
    check_exclusive("--tables", "--privacy")
    if privacy or tables:
        from priory.workflows.model_files import load_classifier  # what a file contains is shown without it

        loaded = load_classifier(model, get_required_key())
    if privacy:
        audit = loaded.audit_membership()
        if json_:
            print_json({"model": model, **audit.as_dict()})
        else:
            print_lines(f"{model}: what its answers reveal about {audit.rows:,} kept rows\n{audit}", indent="")
        return
    if tables:
        found_tables = loaded.tables_
        print_json(found_tables.to_dicts()) if json_ else print_lines(str(found_tables), indent="")
        return
    found = workflows.inspect(model, key=get_required_key())
    print_json(found.as_dict()) if json_ else print_lines(str(found), indent="")


@sectioned_command("sign", short_help="Sign a model file.", epilog="Example: priory sign mail.priory --key private.pem")
@model_argument
@click.option(
    "--key",
    required=True,
    type=FILE_PATH_TYPE,
    metavar="FILE",
    help="A private Ed25519 key in PEM format, or a secret of at least 32 bytes.",
)
@json_option
def sign_command(model: str, key: str, json_: bool) -> None:
    """Sign MODEL, so that priory --require-signature KEY accepts it. After a change it has to be signed again.

    \b
    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    priory --require-signature public.pem predict mail.priory new.csv
    """
    workflows.inspect(model, key=get_required_key())
    priory.storage.sign(model, key)
    kind = workflows.inspect(model, key=key).signature
    print_json({"model": model, "signature": kind}) if json_ else click.echo(f"signed {model}: {kind}")
