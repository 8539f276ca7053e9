"""``priory serve``: serve models over HTTP."""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

import click

if TYPE_CHECKING:
    from priory.service.server import ServiceSettings

DEFAULT_PORT = 8000


@click.command(
    "serve",
    short_help="Serve models over HTTP, with a page.",
    epilog="Example: priory serve --data mail-service --socket mail.sock",
)
@click.option("--data", "folder", metavar="FOLDER", help="Where models and the journal are kept; created if missing.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0 is any free one."
)
@click.option("--socket", "socket_path", metavar="PATH", help="Also listen on a Unix socket.")
@click.option("--token-file", metavar="FILE", help="Require one of these tokens; see --add-token.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A host name of the service; may be repeated."
)
@click.option(
    "--public-url", metavar="URL", help="Where people reach a proxy in front: its host is allowed, https is kept."
)
@click.option(
    "--sign-key", metavar="FILE", help="A private Ed25519 key (PEM): what is forgotten gets a signed receipt."
)
@click.option("--max-body", default=16, show_default=True, type=click.IntRange(1, 4096), help="Megabytes of a request.")
@click.option("--add-token", metavar="NAME", help="Add a token to the token file, print it, and stop.")
@click.option("--remove-token", metavar="NAME", help="Remove the tokens of this name from the file, and stop.")
@click.option("--list-tokens", is_flag=True, help="Print the names and scopes of the token file, and stop.")
@click.option(
    "--scope", type=click.Choice(["read", "learn", "admin"]), default="read", help="What the new token may do."
)
@click.option("--check", is_flag=True, help="Check journal, snapshots and erased rows of the folder, and stop.")
@click.option("--search", multiple=True, metavar="TEXT", help="With --check: say in which files this text occurs.")
@click.option("--access-log", metavar="FILE", help="Append a line of JSON for each request; - is standard output.")
@click.option("--backup", metavar="FILE", help="Write a backup of the folder, also of a running service, and stop.")
@click.option("--restore", metavar="FILE", help="Restore a backup into a new folder, and stop; see --erased.")
@click.option("--erased", metavar="FILE", help="With --restore: what was forgotten since, from --list-erased.")
@click.option("--list-erased", is_flag=True, help="Print where erased rows were, as JSON without content, and stop.")
@click.option("--upgrade", is_flag=True, help="Bring the folder to this version of priory, and stop.")
@click.option("--demo", is_flag=True, help="Serve models of the data that come with priory, in a temporary folder.")
def serve_command(
    folder: str | None,
    host: str,
    port: int,
    socket_path: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    public_url: str | None,
    sign_key: str | None,
    max_body: int,
    add_token: str | None,
    remove_token: str | None,
    list_tokens: bool,
    scope: Literal["read", "learn", "admin"],
    check: bool,
    search: tuple[str, ...],
    access_log: str | None,
    backup: str | None,
    restore: str | None,
    erased: str | None,
    list_erased: bool,
    upgrade: bool,
    demo: bool,
) -> None:
    """Serve the models of a folder over HTTP: predict, explain, learn, forget, undo.

    What is learned or forgotten is on disk before it is acknowledged. Without tokens only this machine may connect. The
    page is at the address that is printed, and the API is described at /openapi.json.
    """
    if add_token is not None or remove_token is not None or list_tokens:
        _change_tokens(token_file, add_token, scope, remove_token)
        return
    if folder is None and not demo:
        raise click.UsageError("give --data FOLDER, or --demo")
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="priory-demo-"))
        if check:
            _print_check(Path(folder), search)
            return
        if backup or restore or list_erased or upgrade:
            _keep_folder(Path(folder), backup, restore, erased, upgrade)
            return
        log = None if access_log is None else stack.enter_context(_open_log(access_log))
        settings = _read_settings(Path(folder), token_file, (host, *hosts), public_url, max_body, sign_key)
        settings = replace(settings, access_log=log)
        _serve(settings, host, port, socket_path, demo)


def _read_settings(
    folder: Path,
    token_file: str | None,
    hosts: tuple[str, ...],
    public_url: str | None,
    max_body: int,
    sign_key: str | None,
) -> ServiceSettings:
    from priory.service import limits, server, tokens

    if public_url is not None and not re.match(r"https?://[^/]", public_url):
        raise click.UsageError(f"--public-url {public_url} is no address; give one such as https://mail.example")
    known = tokens.TokenList(None if token_file is None else Path(token_file))
    key = None if sign_key is None else Path(sign_key)
    limit = limits.Limits(body_bytes=max_body << 20)
    return server.ServiceSettings(folder, known, limit, hosts, public_url, sign_key=key)


def _serve(settings: ServiceSettings, host: str, port: int, socket_path: str | None, demo: bool) -> None:
    from priory.service import server
    from priory.service.pages.page_routes import make_page_routes

    address = server.Address(host, port, None if socket_path is None else Path(socket_path))
    server.check_address(address, settings.tokens.is_required)
    service = server.Service(settings)
    try:
        if demo:
            server.create_demo_models(service)
        sockets = server.open_sockets(address)
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"serving {len(service.store.models)} models on http://{shown}:{sockets[0].getsockname()[1]}/")
        server.run_server(service, server.make_application(service, make_page_routes(service)), sockets)
    finally:
        service.close()
        click.echo("stopped; all acknowledged changes are on disk")
        if address.socket_path is not None:
            address.socket_path.unlink(missing_ok=True)


def _open_log(path: str) -> AbstractContextManager[TextIO]:
    """Open a file to append lines to; each line is written at once, so that the file may be truncated meanwhile."""
    return nullcontext(sys.stdout) if path == "-" else open(path, "a", buffering=1, encoding="utf-8")


def _keep_folder(folder: Path, backup: str | None, restored: str | None, erased: str | None, upgrade: bool) -> None:
    """Back up, restore or upgrade a data folder, or list what was erased from it."""
    import msgspec

    from priory.service import backups
    from priory.workflows.model_files import format_count

    if backup:
        backups.back_up(folder, Path(backup))
        click.echo(f"wrote {backup}")
    elif restored:
        listed = b"{}" if erased is None else Path(erased).read_bytes()
        erasures = msgspec.json.decode(listed, type=backups.Erasures)
        n_rows = backups.restore(Path(restored), folder, erasures)
        click.echo(f"restored {folder}; erased {format_count(n_rows, 'row')} again")
        for line in erasures.unlisted:
            click.echo(f"these rows are part of a model that began as a file, forget them again: {line}")
    elif upgrade:
        click.echo(f"upgraded {folder} from version {backups.upgrade(folder)}")
    else:
        click.echo(msgspec.json.encode(backups.list_erasures(folder)))


def _change_tokens(
    token_file: str | None, added: str | None, scope: Literal["read", "learn", "admin"], removed: str | None
) -> None:
    """Add a token and print it, remove tokens by name, or list all. A running service reads the file again."""
    from priory.service.tokens import add_token, read_token_file, remove_tokens
    from priory.workflows.model_files import format_count

    if token_file is None:
        raise click.UsageError("give --token-file FILE, which holds the tokens")
    path = Path(token_file)
    if added is not None:
        click.echo(add_token(path, added, scope))
    elif removed is not None:
        click.echo(f"removed {format_count(remove_tokens(path, removed), 'token')} of {removed}")
    else:
        for token in read_token_file(path):
            click.echo(f"{token.identity.name} {token.identity.scope}")


def _print_check(folder: Path, search: tuple[str, ...]) -> None:
    from priory.service import server

    found = server.check_folder(folder, search)
    for line in found.lines:
        click.echo(line)
    if found.problems:
        raise click.exceptions.Exit(3)
