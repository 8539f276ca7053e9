"""The service: its models, writer and threads, its ASGI application, and the process that runs it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
import stat
import tempfile
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TextIO

import msgspec
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from priory import inbox
from priory.core.typing import ReturnT
from priory.errors import DataError, PrioryError, ServiceError
from priory.service import limits as guard
from priory.service.changes import ChangeAnswer, ChangeRequest, CreateRequest, LearnRequest
from priory.service.journal import Journal
from priory.service.labelled_rows import RowBatch, contains_phrase, decode_row_batch
from priory.service.messages import MESSAGE_TYPE, Call
from priory.service.metrics import Metrics, watch_process
from priory.service.model_store import ModelStore, ServedModel, StandbyWorker
from priory.service.predictions import PredictionBatcher
from priory.service.routes import ROUTES, ApiRoute, describe_api
from priory.service.tokens import LOCAL_USER, Identity, Scope, TokenList
from priory.service.writer import Writer
from priory.storage import save
from priory.workflows.model_files import format_count

MAX_SLOW_CALLS = 32  # explanations, evaluations, audits and uploads, running or queued


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the service, except the address it listens on."""

    folder: Path
    tokens: TokenList = field(default_factory=TokenList)
    limits: guard.Limits = field(default_factory=guard.Limits)
    allowed_hosts: tuple[str, ...] = ()  # besides the local names
    public_url: str | None = None  # the URL of a reverse proxy in front of the service
    access_log: TextIO | None = None  # a line of JSON for each request
    sign_key: Path | None = None  # a private Ed25519 key, with which receipts of forgotten rows are signed

    @property
    def is_encrypted(self) -> bool:
        """Whether browsers reach the service through TLS."""
        return self.public_url is not None and self.public_url.startswith("https:")

    @property
    def public_host(self) -> str | None:
        return None if self.public_url is None else guard.urlsplit_host(self.public_url)


class Service:
    """Everything behind the API. Open one per data folder; ``close`` it to write snapshots."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.store = ModelStore(settings.folder, settings.sign_key)
        self.standby = StandbyWorker(self.store)
        self.writer = Writer(self.store, self.metrics, self.standby.notify)
        self._prediction_threads = ThreadPoolExecutor(2, "priory-predict")  # slow calls must not delay them
        self._slow_threads = ThreadPoolExecutor(2, "priory-slow")
        self._n_slow_calls = self._n_requests = 0
        self.batcher = PredictionBatcher(self.store, self._prediction_threads, self.metrics)
        self.metrics.watch("priory_models", lambda: len(self.store.models))
        self.metrics.watch("priory_changes_waiting", self.writer.count_waiting)
        watch_process(self.metrics, settings.folder)

    @cached_property
    def openapi(self) -> bytes:
        """The OpenAPI description as JSON, built on first use."""
        return msgspec.json.encode(describe_api(ROUTES))

    def close(self) -> None:
        self._prediction_threads.shutdown()  # finish what is running before the journal is closed
        self._slow_threads.shutdown()
        self.writer.close()
        self.standby.close()
        self.store.close()

    def check_ready(self) -> None:
        """Raise ServiceError (503) if no model is fitted or the disk cannot be written."""
        if not any(model.is_fitted for model in self.store.models.values()):
            raise ServiceError(503, "no model has learned any rows yet")
        try:
            self.store.probe_disk()
        except OSError:
            raise ServiceError(503, "the disk is full or cannot be written; predictions go on") from None

    def admit(self, request: Request, identity: Identity, scope: Scope) -> None:
        """Record the sender of a request; raise 403 if their scope is insufficient."""
        if not identity.may(scope):
            raise ServiceError(403, f"this needs a token with the scope {scope}")
        request.scope[guard.IDENTITY_KEY] = identity

    @asynccontextmanager
    async def occupy_slot(self, request: Request) -> AsyncIterator[None]:
        """Count a request as active once its whole body has arrived; raise 503 if too many are active."""
        await request.body()  # a slow upload must not occupy a slot
        if self._n_requests >= self.settings.limits.n_requests:
            raise ServiceError(503, "too many requests are under way; try again later")
        self._n_requests += 1
        try:
            yield
        finally:
            self._n_requests -= 1

    async def change(self, request: ChangeRequest) -> ChangeAnswer:
        """Carry out a change; a client that disconnects does not cancel it."""
        # the writer's future survives the cancellation of this request
        return await asyncio.shield(asyncio.wrap_future(self.writer.submit(request)))

    async def run_slowly(self, function: Callable[..., ReturnT], *arguments: object) -> ReturnT:
        """Run a slow function in a thread; raise 503 if too many are running or queued."""
        if self._n_slow_calls >= MAX_SLOW_CALLS:
            raise ServiceError(503, "too many slow requests are under way; try again later")
        self._n_slow_calls += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._slow_threads, function, *arguments)
        finally:
            self._n_slow_calls -= 1

    def pack_model(self, model: ServedModel) -> bytes:
        """Return a model as the bytes of a model file."""
        # inside of the data folder, so that a crash leaves no copy elsewhere
        with tempfile.TemporaryDirectory(dir=self.store.scratch_folder) as folder:
            path = Path(folder, "model.priory")
            save(model.estimator, path)
            return path.read_bytes()


def make_application(service: Service, more_routes: Iterable[BaseRoute] = ()) -> ASGIApp:
    """Return the API and additional routes (such as the web pages), behind the request guard."""
    paths = dict.fromkeys(route.path for route in ROUTES)
    routes = [_make_route(service, path, [route for route in ROUTES if route.path == path]) for path in paths]
    router = Router([*routes, *more_routes], redirect_slashes=False)
    settings = service.settings
    return guard.RequestGuard(
        router,
        settings.limits,
        settings.allowed_hosts,
        service.metrics,
        settings.public_host,
        settings.access_log,
    )


def _make_route(service: Service, path: str, routes: Sequence[ApiRoute]) -> Route:
    by_method = {route.method: route for route in routes}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]  # the server leaves out the body
    return Route(path, _make_endpoint(service, by_method), methods=list(by_method))


def _make_endpoint(service: Service, by_method: dict[str, ApiRoute]) -> Callable[[Request], Awaitable[Response]]:
    settings = service.settings

    async def endpoint(request: Request) -> Response:
        route = by_method[request.method]
        request.scope["priory.route"] = route.path  # the label of metrics; the path itself may contain names
        if route.scope is None:
            answer = await route.handler(Call(service, request, LOCAL_USER))
        else:
            identity = settings.tokens.identify(request.headers.get("authorization"))
            service.admit(request, identity, route.scope)
            async with service.occupy_slot(request):
                answer = await route.handler(Call(service, request, identity))
        if isinstance(answer, Response):
            return answer
        return Response(msgspec.json.encode(answer), route.status, media_type=MESSAGE_TYPE)

    return endpoint


def check_folder(folder: Path, search: Sequence[str] = ()) -> Iterator[tuple[str, bool]]:
    """Check the data folder of a stopped service: yield what was found, and whether it is a problem.

    The texts ``search`` must not occur in any file.
    """
    if not (folder / "journal.sqlite").exists():
        yield f"{folder} is not the data folder of a service", True
        return
    rows_with = dict.fromkeys(search, 0)
    try:
        with closing(ModelStore(folder)) as store:
            found, due = store.journal.check_integrity(), store.journal.list_models_to_erase()
            yield f"journal: {found}", found != "ok"
            yield f"journal: {len(due)} models with rows that are still to be erased", bool(due)
            # decoded rows, compared without regard to case, Unicode form and blanks
            rows_with = {text: _count_rows_with(store.journal, text) for text in search}
            for name, model in sorted(store.models.items()):
                yield f"{name}: {model.n_rows:,.0f} rows, version {model.version}", False
    except PrioryError as error:
        yield str(error), True
        return
    except sqlite3.Error as error:
        yield f"journal: {error}", True
    # after closing the store, so that all files are complete
    for text in search:
        places = sorted(str(path.relative_to(folder)) for path in find_files_with(folder, text))
        if rows_with[text]:  # another spelling, which a search of the bytes misses
            places.append(f"{format_count(rows_with[text], 'row')} of the journal")
        yield f"{text[:40]!r} occurs in {', '.join(places) or 'no file'}", bool(places)


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
    texts = RowBatch("text", tuple(str(row["text"]) for row in rows), tuple(labels))
    for name, batch in (("messages", texts), ("inbox", RowBatch("table", tuple(rows), tuple(labels)))):
        if name not in service.store.models:
            service.writer.submit(CreateRequest(name, DEMO_TEACHER, kind=batch.kind)).result()
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
    if address.host not in guard.LOCAL_HOSTS and not has_tokens:
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
        http=guard.make_protocol(limits),
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
        h11_max_incomplete_event_size=guard.MAX_HTTP_HEADER_BYTES,
    )
    return uvicorn.Server(config)
