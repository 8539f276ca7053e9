"""``priory sign``: a signature for a model file; and what ``--require-signature`` asks of every command."""

from __future__ import annotations

import click


@click.command(short_help="Sign a model file.", epilog="Example: priory sign mail.priory --key private.pem")
@click.argument("model", metavar="MODEL")
@click.option(
    "--key", required=True, metavar="FILE", help="A private Ed25519 key in PEM, or a secret of 32 bytes or more."
)
def sign(model: str, key: str) -> None:
    """Sign MODEL, so that priory --require-signature KEY accepts it. Whoever changes it has to sign it again.

    \b
    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    priory --require-signature public.pem predict mail.priory new.csv
    """
    from priory.storage import inspect
    from priory.storage import sign as signed

    inspect(model, key=required())
    signed(model, key)
    click.echo(f"signed {model}: {inspect(model, key=key).signature}")


def required() -> str | None:
    """The key that models must be signed by, if one was given."""
    key: str | None = click.get_current_context().find_root().params.get("require_signature")
    return key
