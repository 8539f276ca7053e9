"""The guard in front of every request: its host, origin, size and speed. uvicorn has no limit on slow requests."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import ClassVar, TextIO
from urllib.parse import urlsplit

import h11
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from priory.errors import PrioryError, ServiceError
from priory.service.messages import find_status, make_problem_response
from priory.service.metrics import Metrics
from priory.service.tokens import LOCAL_USER


class JoiningTransport(asyncio.Transport):
    """A transport that joins all writes of one turn of the event loop into one.

    uvicorn writes the head and the body of an answer separately, each with a system call and a packet. If a body is
    still arriving, ``close`` shuts down only the sending direction: otherwise the peer would get a reset instead of the
    answer.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, is_receiving: Callable[[], bool]
    ) -> None:
        self._transport, self._loop, self._parts = transport, loop, list[bytes]()
        self._is_receiving, self.is_lingering = is_receiving, False
        # delegate the rest of the interface to the real transport
        for name in ("abort", "get_extra_info", "pause_reading", "resume_reading", "set_protocol"):
            setattr(self, name, getattr(transport, name))

    def is_closing(self) -> bool:
        return self.is_lingering or self._transport.is_closing()

    def write(self, data: bytes) -> None:  # type: ignore[override]  # uvicorn writes bytes only
        if not data:
            return
        if not self._parts:
            # after all writes of this turn
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        if self.is_lingering or not self._is_receiving():
            self._transport.close()
            return
        self.is_lingering = True
        self._transport.resume_reading()  # uvicorn may have paused it; the body is read and discarded
        self._transport.write_eof()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))


class DeadlineProtocol(H11Protocol):
    """uvicorn's protocol with a deadline for each request to arrive, from its first byte or the connection."""

    limits: ClassVar[Limits]
    transport: JoiningTransport
    _deadline: asyncio.TimerHandle | None = None
    _waits_since = 0.0
    _n_discarded_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoiningTransport(transport, self.loop, lambda: self.conn.their_state is h11.SEND_BODY))
        self._start_deadline()
        if len(self.connections) > self.limits.n_connections:
            waiting = [c for c in self.connections if isinstance(c, DeadlineProtocol) and c.waits and c is not self]
            # if every other connection is busy, close the new one
            min(waiting, key=DeadlineProtocol.find_rank, default=self).transport.abort()

    @property
    def waits(self) -> bool:
        """Whether no request is being answered: none has arrived completely, or the answer was sent."""
        return self._deadline is not None or self.cycle is None or self.cycle.response_complete

    def find_rank(self) -> tuple[bool, float]:
        """Return the sort key among idle connections; the smallest is closed first."""
        has_token = self.scope is not None and self.scope.get(IDENTITY_KEY, LOCAL_USER) is not LOCAL_USER
        return has_token, self._waits_since

    def data_received(self, data: bytes) -> None:
        # the answer was sent, and the rest of the body is read and discarded
        if self.transport.is_lingering:
            self._n_discarded_bytes += len(data)
            if self._n_discarded_bytes > self.limits.many_bodies_bytes:
                self.transport.abort()
            return
        if self._deadline is None:
            self._start_deadline()
        super().data_received(data)
        # the request is complete, or the connection cannot be used any more
        if self.conn.their_state is not h11.SEND_BODY and self.conn.their_state is not h11.IDLE:
            self._stop_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        self._waits_since = self.loop.time()
        self._deadline = self.loop.call_later(self.limits.receive_seconds, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def make_protocol(limits: Limits) -> type[DeadlineProtocol]:
    """Return the protocol with these limits; uvicorn makes an instance of the class for each connection."""
    return type("LimitedProtocol", (DeadlineProtocol,), {"limits": limits})


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
    def many_bodies_bytes(self) -> int:
        """The limit on all bodies in memory, and on bytes of a rejected body, which are read so that it is answered."""
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
        access_log: TextIO | None = None,
    ) -> None:
        self._access_log = access_log
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
            self._record(scope, exchange, time.perf_counter() - start)

    def _record(self, scope: Scope, exchange: _Exchange, seconds: float) -> None:
        """Count a request, and write a line of the access log."""
        route, model = scope.get("priory.route", "other"), scope.get("path_params", {}).get("name")
        self._metrics.count("priory_requests_total", route=route, status=str(exchange.status))
        self._metrics.observe("priory_request_seconds", seconds, route=route)
        if model is not None and exchange.status:
            outcome = "ok" if exchange.status < 400 else "refused" if exchange.status < 500 else "failed"
            self._metrics.count_model(model if exchange.status != 404 else "unknown", outcome)
        if self._access_log is not None:
            identity = scope.get(IDENTITY_KEY)
            line = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "method": scope["method"],
                "route": route,
                "model": model,
                "status": exchange.status,
                "milliseconds": round(1000 * seconds, 3),
                "bytes": exchange.n_body_bytes,
                "user": None if identity is None else identity.name,
            }
            self._access_log.write(json.dumps(line) + "\n")

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
        if self._n_body_bytes > self._limits.many_bodies_bytes:
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
