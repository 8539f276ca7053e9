"""``priory serve``: serve models over HTTP."""

from __future__ import annotations

import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

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
@click.option("--max-body", default=16, show_default=True, type=click.IntRange(1, 4096), help="Megabytes of a request.")
@click.option("--add-token", metavar="NAME", help="Add a token to the token file, print it, and stop.")
@click.option("--remove-token", metavar="NAME", help="Remove the tokens of this name from the file, and stop.")
@click.option("--list-tokens", is_flag=True, help="Print the names and scopes of the token file, and stop.")
@click.option(
    "--scope", type=click.Choice(["read", "learn", "admin"]), default="read", help="What the new token may do."
)
@click.option("--check", is_flag=True, help="Check journal, snapshots and erased rows of the folder, and stop.")
@click.option("--search", multiple=True, metavar="TEXT", help="With --check: say in which files this text occurs.")
@click.option("--demo", is_flag=True, help="Serve models of the data that come with priory, in a temporary folder.")
def serve_command(
    folder: str | None,
    host: str,
    port: int,
    socket_path: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    public_url: str | None,
    max_body: int,
    add_token: str | None,
    remove_token: str | None,
    list_tokens: bool,
    scope: Literal["read", "learn", "admin"],
    check: bool,
    search: tuple[str, ...],
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
        settings = _read_settings(Path(folder), token_file, (host, *hosts), public_url, max_body)
        _serve(settings, host, port, socket_path, demo)


def _read_settings(
    folder: Path, token_file: str | None, hosts: tuple[str, ...], public_url: str | None, max_body: int
) -> ServiceSettings:
    from priory.service import limits, server, tokens

    if public_url is not None and not re.match(r"https?://[^/]", public_url):
        raise click.UsageError(f"--public-url {public_url} is no address; give one such as https://mail.example")
    known = tokens.TokenList(None if token_file is None else Path(token_file))
    return server.ServiceSettings(folder, known, limits.Limits(body_bytes=max_body << 20), hosts, public_url)


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
        if address.socket_path is not None:
            address.socket_path.unlink(missing_ok=True)


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
