"""Run the service in one process until it is asked to stop, and ``priory serve --check``."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp

from priory import inbox
from priory.errors import DataError, PrioryError
from priory.service.application import Service
from priory.service.changes import CreateRequest, LearnRequest
from priory.service.journal import Journal
from priory.service.labelled_rows import ModelKind, Row, RowBatch, contains_phrase, decode_row_batch
from priory.service.limits import LOCAL_HOSTS, MAX_HTTP_HEADER_BYTES, make_protocol
from priory.service.model_store import ModelStore
from priory.workflows.model_files import format_count

if TYPE_CHECKING:
    from priory.service.application import Service


@dataclass
class CheckResult:
    """Result of a check: lines of text, and the number of problems."""

    lines: list[str] = field(default_factory=list)
    problems: int = 0

    def note(self, line: str, is_problem: bool = False) -> None:
        self.lines.append(f"{'problem' if is_problem else 'ok'}: {line}")
        self.problems += is_problem


def check_folder(folder: Path, search: Sequence[str] = ()) -> CheckResult:
    """Check the data folder of a stopped service; the texts ``search`` must not occur in any file."""
    result = CheckResult()
    if not (folder / "journal.sqlite").exists():
        result.note(f"{folder} is not the data folder of a service", True)
        return result
    try:
        store = ModelStore(folder)
    except PrioryError as error:
        result.note(str(error), True)
        return result
    rows_with: dict[str, int] = {}
    try:
        _check_journal(store.journal, result)
        # decoded rows, compared without regard to case, Unicode form and blanks
        rows_with = {text: _count_rows_with(store.journal, text) for text in search}
        for name, model in sorted(store.models.items()):
            result.note(f"{name}: {model.n_rows:,.0f} rows, version {model.version}")
    except sqlite3.Error as error:
        result.note(f"journal: {error}", True)
    finally:
        store.close()
    # after closing the store, so that all files are complete
    for text in search:
        places = sorted(str(path.relative_to(folder)) for path in find_files_with(folder, text))
        if n_rows := rows_with.get(text, 0):  # another spelling, which a search of the bytes misses
            places.append(f"{format_count(n_rows, 'row')} of the journal")
        result.note(f"{text[:40]!r} occurs in {', '.join(places) or 'no file'}", bool(places))
    return result


def _check_journal(journal: Journal, result: CheckResult) -> None:
    found = journal.check_integrity()
    result.note(f"journal: {found}", found != "ok")
    due = journal.list_models_to_erase()
    result.note(f"journal: {len(due)} models with rows that are still to be erased", bool(due))


def _count_rows_with(journal: Journal, phrase: str) -> int:
    batches = map(decode_row_batch, journal.read_bodies())
    pairs = (pair for batch in batches for pair in zip(batch.rows, batch.labels or (), strict=True))
    return sum(contains_phrase(row, label, phrase) for row, label in pairs)


def find_files_with(folder: Path, text: str) -> Iterator[Path]:
    """Yield the files that contain a text in any Unicode normal form, verbatim or escaped as in JSON."""
    forms = {text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD"))}
    escaped = {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (False, True)}
    spellings = [spelling.encode() for spelling in forms | escaped]
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if any(spelling in content for spelling in spellings):
                yield path


DEMO_TEACHER = "demo"


def create_demo_models(service: Service) -> None:
    """Create the models ``inbox`` (a table with a column of texts) and ``messages`` (texts), if they do not exist."""
    rows, labels = inbox()
    texts = tuple(str(row["text"]) for row in rows)
    table: tuple[Row, ...] = tuple(rows)
    models: list[tuple[str, ModelKind, tuple[str | Row, ...]]] = [
        ("messages", "text", texts),
        ("inbox", "table", table),
    ]
    for name, kind, content in models:
        if name not in service.store.models:
            service.writer.submit(CreateRequest(name, DEMO_TEACHER, kind=kind)).result()
            batch = RowBatch(kind, content, tuple(labels))
            service.writer.submit(LearnRequest(name, DEMO_TEACHER, rows=batch)).result()


KEEP_ALIVE_SECONDS = 15  # of an idle connection
SHUTDOWN_SECONDS = 8  # for active requests to finish


@dataclass(frozen=True)
class Address:
    """The address of the service: a host and a port, a Unix socket, or both."""

    host: str = "127.0.0.1"
    port: int = 8000  # negative: no port
    socket_path: Path | None = None


def check_address(address: Address, has_tokens: bool) -> None:
    """Raise DataError if other machines could connect without a token."""
    if address.host not in LOCAL_HOSTS and not has_tokens:
        raise DataError(f"other machines could connect to {address.host}; give --token-file, or serve on 127.0.0.1")


def open_sockets(address: Address) -> list[socket.socket]:
    """Open the sockets to listen on; a Unix socket is accessible to its owner and group only."""
    sockets = []
    if address.port >= 0:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # for TCP_NODELAY in asyncio
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen()
        sockets.append(listening)
    if address.socket_path is not None:
        sockets.append(_open_unix_socket(address.socket_path))
    return sockets


def _open_unix_socket(path: Path) -> socket.socket:
    if path.exists():
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise DataError(f"{path}: is not a socket; remove it, or choose another path")
        path.unlink()  # stale: this process holds the lock of the data folder
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)  # mode 0660
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen()
    return listening


def run_server(service: Service, app: ASGIApp, sockets: Iterable[socket.socket]) -> None:
    """Answer requests until a signal stops the server; active requests are finished first."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn stops, and raises the signal again
    try:
        with suppress(KeyboardInterrupt):
            make_server(service, app).run(list(sockets))
    finally:
        signal.signal(signal.SIGTERM, before)


def make_server(service: Service, app: ASGIApp) -> uvicorn.Server:
    """Return the server, configured with the limits of the service."""
    limits = service.settings.limits
    config = uvicorn.Config(
        app,
        http=make_protocol(limits),
        ws="none",
        lifespan="off",
        loop="asyncio",
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=True,
        proxy_headers=False,  # anyone could forge them
        backlog=limits.n_connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=MAX_HTTP_HEADER_BYTES,
    )
    return uvicorn.Server(config)
