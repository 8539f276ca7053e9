"""``priory sign``: sign a model file."""

from __future__ import annotations

import click

from priory.cli.options import FILE_PATH_TYPE, get_required_key, json_option, model_argument
from priory.cli.sections import sectioned_command
from priory.cli.terminal import print_json


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
    from priory.storage import inspect, sign

    inspect(model, key=get_required_key())
    sign(model, key)
    kind = inspect(model, key=key).signature
    print_json({"model": model, "signature": kind}) if json_ else click.echo(f"signed {model}: {kind}")
