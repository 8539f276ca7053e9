"""``priory filter`` and ``priory learn-mail``: classify or learn one message from standard input."""

from __future__ import annotations

import sys
import uuid
from contextlib import closing
from urllib.parse import urlencode

import click

import priory
from priory.cli.options import get_required_key
from priory.service.mail_filter import (
    DEFAULT_HEADER,
    FilterThresholds,
    ServiceConnection,
    check_label,
    check_text_model,
    choose_judge,
    find_model_name,
    pass_mail_on,
)

socket_option = click.option(
    "--socket", "socket_path", envvar="PRIORY_SOCKET", metavar="PATH", help="The Unix socket of priory serve."
)
token_option = click.option("--token", envvar="PRIORY_TOKEN", help="A token of the service, where it needs one.")


@click.command(
    "filter",
    short_help="Pass mail on with a header that says its class.",
    epilog="Example: priory filter mail.priory --socket mail.sock < message",
)
@click.argument("model")
@socket_option
@token_option
@click.option("--header", default=DEFAULT_HEADER, show_default=True, metavar="NAME", help="The header to add.")
@click.option("--exit-code", "wanted", metavar="CLASS", help="Exit with 0 for this class, 1 for others, 2 if unsure.")
@click.option("--certainty", default=0.0, type=click.FloatRange(0, 1), help="Below this probability it is unsure.")
@click.option(
    "--max-unsure",
    default=0.05,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="The share of ordinary mail of a class that may be called unsure because it is unusual.",
)
@click.option(
    "--max-false-positives",
    "rates",
    default="",
    metavar="[CLASS=]RATE",
    help="The share of mail of other classes that may be given a class, such as spam=0.001; else it is unsure.",
)
def filter_command(
    model: str,
    socket_path: str | None,
    token: str | None,
    header: str,
    wanted: str | None,
    certainty: float,
    max_unsure: float,
    rates: str,
) -> None:
    """Read a message from standard input and write it to standard output with a header: class, probability, evidence.

    MODEL is a model file, or the name of a model in a running service (--socket, or PRIORY_SOCKET), which answers in
    milliseconds. Headers of the same name that the message came with are removed. If anything goes wrong the message is
    passed on as it came, and the exit code is 75.

    The class is "unsure" if there is unusually strong evidence against it, if the message is unlike those learned, or
    if fewer than 20 messages of a class were learned; the header says which.
    """
    try:
        thresholds = FilterThresholds.read(certainty, max_unsure, rates)
    except ValueError as error:
        raise click.UsageError(f"--max-false-positives {rates}: {error}; write spam=0.001") from None
    code = pass_mail_on(choose_judge(model, socket_path, token, get_required_key(), thresholds), header, wanted)
    if code:
        raise click.exceptions.Exit(code)


@click.command(
    "learn-mail",
    short_help="Learn one message, as a button in a mail program would.",
    epilog="Example: priory learn-mail mail.priory spam --socket mail.sock < message",
)
@click.argument("model")
@click.argument("label")
@socket_option
@token_option
@click.option("--forget", is_flag=True, help="Forget the message under this label instead.")
@click.option("--new-class", is_flag=True, help="LABEL may be one that the model does not know yet.")
def learn_mail_command(
    model: str, label: str, socket_path: str | None, token: str | None, forget: bool, new_class: bool
) -> None:
    """Read a message from standard input and learn it as LABEL.

    MODEL is a model file, or the name of a model in a running service (--socket, or PRIORY_SOCKET). To correct a
    mistake, forget the message under the wrong label and learn it under the right one.
    """
    message = sys.stdin.buffer.read()
    done = f"{'forgot' if forget else 'learned'} 1 message as {label}"
    if socket_path is not None:
        query = urlencode({"label": label} | ({"new_class": 1} if new_class else {}))
        path = f"/v1/models/{find_model_name(model)}/{'forget' if forget else 'learn'}?{query}"
        with closing(ServiceConnection(socket_path, token)) as connection:
            answer = connection.post_mail(path, message, uuid.uuid4().hex)
        click.echo(f"{done}: change {answer['id']} of {answer['model']}")
        return
    from priory.text.mail import read_mail

    with priory.storage.updating(model, key=get_required_key()) as file:
        trained = check_text_model(file.model, model)
        if not forget and not new_class:
            check_label(label, getattr(trained, "classes_", ()))
        change = trained.forget if forget else trained.partial_fit
        change([read_mail(message, trained.reader).text], [label])
        n_known = trained.class_count_.sum() if hasattr(trained, "statistics_") else 0.0
    click.echo(f"{done}; {model} now knows {n_known:,.0f}")
