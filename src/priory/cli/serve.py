"""``priory serve``: serve models over HTTP."""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from priory.cli.options import add_option
from priory.errors import import_extra

if TYPE_CHECKING:
    from priory.service.server import ServiceSettings

DEFAULT_PORT = 8000
FILE = click.Path(path_type=Path)


@click.command(
    "serve",
    short_help="Serve models over HTTP, with a page.",
    epilog="Example: priory serve --data mail-service --socket mail.sock",
)
@add_option("--data FOLDER", "Where models and the journal are kept; created if missing.", FILE, field="folder")
@add_option("--host ADDRESS", "The address to listen on.", default="127.0.0.1", show_default=True)
@add_option("--port PORT", "0 is any free one.", click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True)
@add_option("--socket PATH", "Also listen on a Unix socket.", FILE)
@add_option("--token-file FILE", "Require one of these tokens; see --add-token.", FILE)
@add_option("--allow-host NAME...", "A host name of the service; may be repeated.", field="hosts")
@add_option("--public-url URL", "Where people reach a proxy in front: its host is allowed, https is kept.")
@add_option("--sign-key FILE", "A private Ed25519 key (PEM): what is forgotten gets a signed receipt.", FILE)
@add_option("--max-body MB", "Megabytes of a request.", click.IntRange(1, 4096), default=16, show_default=True)
@add_option("--add-token NAME", "Add a token to the token file, print it, and stop.")
@add_option("--remove-token NAME", "Remove the tokens of this name from the file, and stop.")
@add_option("--list-tokens", "Print the names and scopes of the token file, and stop.")
@add_option("--scope", "What the new token may do.", click.Choice(["read", "learn", "admin"]), default="read")
@add_option("--check", "Check journal, snapshots and erased rows of the folder, and stop.")
@add_option("--search TEXT...", "With --check: say in which files this text occurs.")
@add_option("--access-log FILE", "Append a line of JSON for each request; - is standard output.")
@add_option("--backup FILE", "Write a backup of the folder, also of a running service, and stop.", FILE)
@add_option("--restore FILE", "Restore a backup into a new folder, and stop; see --erased.", FILE)
@add_option("--erased FILE", "With --restore: what was forgotten since, from --list-erased.", FILE)
@add_option("--list-erased", "Print where erased rows were, as JSON without content, and stop.")
@add_option("--upgrade", "Bring the folder to this version of priory, and stop.")
@add_option("--demo", "Serve models of the data that come with priory, in a temporary folder.")
def serve_command(folder: Path | None, demo: bool, check: bool, search: tuple[str, ...], **given: Any) -> None:
    """Serve the models of a folder over HTTP: predict, explain, learn, forget, undo.

    What is learned or forgotten is on disk before it is acknowledged. Without tokens only this machine may connect. The
    page is at the address that is printed, and the API is described at /openapi.json.
    """
    import_extra("priory.service.server", "a service needs packages of its own", "'priory[serve]'")
    if given["add_token"] is not None or given["remove_token"] is not None or given["list_tokens"]:
        _change_tokens(given["token_file"], given["add_token"], given["scope"], given["remove_token"])
        return
    if folder is None and not demo:
        raise click.UsageError("give --data FOLDER, or --demo")
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="priory-demo-")))
        if check:
            _print_check(folder, search)
        elif given["backup"] or given["restore"] or given["list_erased"] or given["upgrade"]:
            _keep_folder(folder, given["backup"], given["restore"], given["erased"], given["upgrade"])
        else:
            log = None if given["access_log"] is None else stack.enter_context(_open_log(given["access_log"]))
            _serve(_read_settings(folder, given, log), given["host"], given["port"], given["socket"], demo)


def _read_settings(folder: Path, given: dict[str, Any], log: TextIO | None) -> ServiceSettings:
    from priory.service import limits, server, tokens

    url = given["public_url"]
    if url is not None and not re.match(r"https?://[^/]", url):
        raise click.UsageError(f"--public-url {url} is no address; give one such as https://mail.example")
    known, limit = tokens.TokenList(given["token_file"]), limits.Limits(body_bytes=given["max_body"] << 20)
    hosts = (given["host"], *given["hosts"])
    return server.ServiceSettings(folder, known, limit, hosts, url, log, given["sign_key"])


def _serve(settings: ServiceSettings, host: str, port: int, socket: Path | None, demo: bool) -> None:
    from priory.service import server
    from priory.service.pages.page_routes import make_page_routes

    address = server.Address(host, port, socket)
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


def _keep_folder(folder: Path, backup: Path | None, restored: Path | None, erased: Path | None, upgrade: bool) -> None:
    """Back up, restore or upgrade a data folder, or list what was erased from it."""
    from priory.service import backups
    from priory.workflows.model_files import format_count

    if backup:
        backups.back_up(folder, backup)
        click.echo(f"wrote {backup}")
    elif restored:
        erasures = backups.Erasures() if erased is None else backups.Erasures.parse(erased.read_bytes())
        n_rows = backups.restore(restored, folder, erasures)
        click.echo(f"restored {folder}; erased {format_count(n_rows, 'row')} again")
        for line in erasures.unlisted:
            click.echo(f"these rows are part of a model that began as a file, forget them again: {line}")
    elif upgrade:
        click.echo(f"upgraded {folder} from version {backups.upgrade(folder)}")
    else:
        click.echo(backups.list_erasures(folder).to_json())


def _change_tokens(
    path: Path | None, added: str | None, scope: Literal["read", "learn", "admin"], removed: str | None
) -> None:
    """Add a token and print it, remove tokens by name, or list all. A running service reads the file again."""
    from priory.service.tokens import add_token, read_token_file, remove_tokens
    from priory.workflows.model_files import format_count

    if path is None:
        raise click.UsageError("give --token-file FILE, which holds the tokens")
    if added is not None:
        click.echo(add_token(path, added, scope))
    elif removed is not None:
        click.echo(f"removed {format_count(remove_tokens(path, removed), 'token')} of {removed}")
    else:
        for identity, _ in read_token_file(path):
            click.echo(f"{identity.name} {identity.scope}")


def _print_check(folder: Path, search: tuple[str, ...]) -> None:
    from priory.service import server

    found = list(server.check_folder(folder, search))
    for line, is_problem in found:
        click.echo(f"{'problem' if is_problem else 'ok'}: {line}")
    if any(is_problem for _, is_problem in found):
        raise click.exceptions.Exit(3)
