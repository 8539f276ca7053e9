"""The service (models, writer, threads) and the ASGI application that answers its requests."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from priory.core.typing import ReturnT
from priory.errors import ServiceError
from priory.service.changes import ChangeAnswer, ChangeRequest
from priory.service.limits import IDENTITY_KEY, Limits, RequestGuard, urlsplit_host
from priory.service.metrics import Metrics
from priory.service.model_store import ModelStore, ServedModel
from priory.service.predictions import PredictionBatcher
from priory.service.request_reading import MESSAGE_TYPE, Call
from priory.service.routes import ROUTES, ApiRoute, describe_api
from priory.service.tokens import LOCAL_USER, Identity, Scope, TokenList
from priory.service.writer import Writer
from priory.storage import save

MAX_SLOW_CALLS = 32  # explanations, evaluations, audits and uploads, running or queued


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the service, except the address it listens on."""

    folder: Path
    tokens: TokenList = field(default_factory=TokenList)
    limits: Limits = field(default_factory=Limits)
    allowed_hosts: tuple[str, ...] = ()  # besides the local names
    public_url: str | None = None  # the URL of a reverse proxy in front of the service
    sign_key: Path | None = None  # a private Ed25519 key, with which receipts of forgotten rows are signed

    @property
    def is_encrypted(self) -> bool:
        """Whether browsers reach the service through TLS."""
        return self.public_url is not None and self.public_url.startswith("https:")

    @property
    def public_host(self) -> str | None:
        return None if self.public_url is None else urlsplit_host(self.public_url)


class Service:
    """Everything behind the API. Open one per data folder; ``close`` it to write snapshots."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.store = ModelStore(settings.folder, settings.sign_key)
        self.writer = Writer(self.store, self.metrics)
        self._prediction_threads = ThreadPoolExecutor(2, "priory-predict")  # slow calls must not delay them
        self._slow_threads = ThreadPoolExecutor(2, "priory-slow")
        self._n_slow_calls = self._n_requests = 0
        self.batcher = PredictionBatcher(self.store, self._prediction_threads, self.metrics)
        self.metrics.watch("priory_models", lambda: len(self.store.models))
        self.metrics.watch("priory_changes_waiting", self.writer.count_waiting)

    @cached_property
    def openapi(self) -> bytes:
        """The OpenAPI description as JSON, built on first use."""
        return msgspec.json.encode(describe_api(ROUTES))

    def close(self) -> None:
        self._prediction_threads.shutdown()  # finish what is running before the journal is closed
        self._slow_threads.shutdown()
        self.writer.close()
        self.store.close()

    def check_ready(self) -> None:
        """Raise ServiceError (503) if no model is fitted or the disk cannot be written."""
        if not any(model.is_fitted for model in self.store.models.values()):
            raise ServiceError(503, "no model has learned any rows yet")
        try:
            self.store.probe_disk()
        except OSError:
            raise ServiceError(503, "the disk is full or cannot be written; predictions go on") from None

    def authorise(self, request: Request, scope: Scope) -> Identity:
        """Return the sender of a request; raise 401 for an unknown token, 403 for an insufficient scope."""
        identity = self.settings.tokens.identify(request.headers.get("authorization"))
        return self.admit(request, identity, scope)

    def admit(self, request: Request, identity: Identity, scope: Scope) -> Identity:
        """Record the sender of a request; raise 403 if their scope is insufficient."""
        if not identity.may(scope):
            raise ServiceError(403, f"this needs a token with the scope {scope}")
        request.scope[IDENTITY_KEY] = identity
        return identity

    @asynccontextmanager
    async def take_place(self, request: Request) -> AsyncIterator[None]:
        """Count a request as active once its whole body has arrived; raise 503 if too many are active."""
        await request.body()  # a slow upload must not occupy a place
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
    return RequestGuard(router, settings.limits, settings.allowed_hosts, service.metrics, settings.public_host)


def _make_route(service: Service, path: str, routes: Sequence[ApiRoute]) -> Route:
    by_method = {route.method: route for route in routes}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]  # the server leaves out the body
    return Route(path, _make_endpoint(service, by_method), methods=list(by_method))


def _make_endpoint(service: Service, by_method: dict[str, ApiRoute]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        route = by_method[request.method]
        request.scope["priory.route"] = route.path  # the label of metrics; the path itself may contain names
        if route.scope is None:
            answer = await route.handler(Call(service, request, LOCAL_USER))
        else:
            identity = service.authorise(request, route.scope)
            async with service.take_place(request):
                answer = await route.handler(Call(service, request, identity))
        if isinstance(answer, Response):
            return answer
        return Response(msgspec.json.encode(answer), route.status, media_type=MESSAGE_TYPE)

    return endpoint
