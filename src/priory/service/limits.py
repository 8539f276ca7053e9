"""The request guard: checks host, origin, size and duration of every request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from priory.errors import PrioryError, ServiceError
from priory.service.metrics import Metrics
from priory.service.problems import find_status, make_problem_response

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})  # against DNS rebinding, other Host headers are rejected
MAX_HTTP_HEADER_BYTES = 16384
IDENTITY_KEY = "priory.identity"  # key of the sender in the ASGI scope
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing
SECURITY_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
logger = logging.getLogger("priory.service")


@dataclass(frozen=True)
class Limits:
    """Limits on the size, duration and number of requests."""

    body_bytes: int = 16 << 20
    request_seconds: float = 60.0  # until a request is answered
    receive_seconds: float = 15.0  # until a whole request has arrived
    n_requests: int = 256  # being answered at the same time
    n_connections: int = 500  # well below the 1,024 open files that systems allow

    @property
    def all_bodies_bytes(self) -> int:
        """The limit on the total size of all request bodies in memory."""
        return 16 * self.body_bytes

    @property
    def discarded_bytes(self) -> int:
        """The limit on bytes of a rejected body that are read and discarded, so that the client can read the answer."""
        return 16 * self.body_bytes


class RequestGuard:
    """Checks requests before the application sees them, and turns errors into answers."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        allowed_hosts: Iterable[str],
        metrics: Metrics,
        public_host: str | None = None,
    ) -> None:
        self._app, self._limits, self._metrics, self._public_host = app, limits, metrics, public_host
        self._allowed_hosts = LOCAL_HOSTS | {host.lower() for host in allowed_hosts}
        if public_host is not None:
            self._allowed_hosts |= {_read_host_name(public_host)}
        self._n_body_bytes = 0  # total over all active requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send, self._count_body_bytes)
        start = time.perf_counter()
        try:
            self._check_request(scope)
            async with asyncio.timeout(self._limits.request_seconds):
                scope["app"] = self
                await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:
            await self._answer_error(error, scope, exchange)
        finally:
            self._n_body_bytes -= exchange.n_body_bytes
            route = scope.get("priory.route", "other")
            self._metrics.count("priory_requests_total", route=route, status=str(exchange.status))
            self._metrics.observe("priory_request_seconds", time.perf_counter() - start, route=route)

    def _check_request(self, scope: Scope) -> None:
        if sum(map(len, chain.from_iterable(scope["headers"]))) > MAX_HTTP_HEADER_BYTES:
            raise ServiceError(431, f"headers may have {MAX_HTTP_HEADER_BYTES:,} bytes")
        headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))  # the first of repeated headers counts
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if _read_host_name(host) not in self._allowed_hosts:
            raise ServiceError(421, "this host name is not served here; see --allow-host")
        if scope["method"] not in SAFE_METHODS and _comes_from_another_site(headers, (host, self._public_host)):
            raise ServiceError(403, "requests from pages of other sites are refused")
        length = headers.get(b"content-length", b"0")
        # reject by the declared length before reading; the actual length is counted too
        if length.isdigit() and int(length[:20]) > self._limits.body_bytes:
            raise self._make_size_error()

    def _make_size_error(self) -> ServiceError:
        return ServiceError(413, f"a body may have {self._limits.body_bytes:,} bytes; send less at a time")

    def _count_body_bytes(self, n_bytes: int, n_own: int) -> None:
        """Count received bytes; ``n_own`` is the total of this request so far."""
        self._n_body_bytes += n_bytes
        if n_own > self._limits.body_bytes:
            raise self._make_size_error()
        if self._n_body_bytes > self._limits.all_bodies_bytes:
            raise ServiceError(503, "too much is being sent at once; try again later")

    async def _answer_error(self, error: Exception, scope: Scope, exchange: _Exchange) -> None:
        # from asyncio.timeout
        if isinstance(error, TimeoutError) and not isinstance(error, PrioryError):
            error = ServiceError(503, "the request took too long")
        if isinstance(error, ClientDisconnect):
            return
        if find_status(error) == 500 and not isinstance(error, HTTPException):
            # without the message, which may contain data
            logger.error("unexpected %s at %s", type(error).__name__, scope.get("priory.route", "other"))
        # the answer has begun, so no other status can be sent: abort the connection
        if exchange.status:
            raise ConnectionAbortedError("the answer could not be finished") from None
        await make_problem_response(error)(scope, exchange.receive, exchange.send)


class _Exchange:
    """Wraps receive and send of one request: counts the bytes, records the status, adds security headers."""

    def __init__(self, receive: Receive, send: Send, count_bytes: Callable[[int, int], None]) -> None:
        self._receive, self._send, self._count_bytes = receive, send, count_bytes
        self.status = self.n_body_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        n_bytes = len(message.get("body", b""))
        self.n_body_bytes += n_bytes
        self._count_bytes(n_bytes, self.n_body_bytes)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = dict(message["headers"])
            message["headers"] = [
                *message["headers"],
                *(header for header in SECURITY_HEADERS if header[0] not in given),
            ]
        await self._send(message)


def _comes_from_another_site(headers: dict[bytes, bytes], own_hosts: tuple[str | None, ...]) -> bool:
    """Whether the Origin or Sec-Fetch-Site header names another site than these hosts."""
    origin = headers.get(b"origin")
    is_foreign = origin is not None and urlsplit_host(origin.decode("latin-1")) not in own_hosts
    return is_foreign or headers.get(b"sec-fetch-site") == b"cross-site"


def urlsplit_host(origin: str) -> str:
    """Return host and port of an origin, or "" if it is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _read_host_name(host: str) -> str:
    """Return the host name of a Host header, without the port.

    >>> _read_host_name("LOCALHOST:8000"), _read_host_name("[::1]:80")
    ('localhost', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
