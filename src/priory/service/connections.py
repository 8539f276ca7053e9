"""Connections that may not dawdle: uvicorn does not limit how slowly a request arrives.

A connection waits until a whole request has arrived, and between requests. When there are too many connections, one
that waits makes room, the oldest first and those with a token last: whoever sends a whole request is always answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from priory.service.limits import IDENTITY_KEY, Limits
from priory.service.tokens import LOCAL_USER


class JoiningTransport(asyncio.Transport):
    """A transport that sends what is written in one turn of the event loop at once.

    uvicorn writes the head of an answer and its body by themselves; each takes a system call and a packet. While a body
    is still arriving it closes one direction only, as the peer would otherwise get a reset instead of the answer.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, is_receiving: Callable[[], bool]
    ) -> None:
        self._transport, self._loop, self._parts = transport, loop, list[bytes]()
        self._is_receiving, self.is_lingering = is_receiving, False
        for name in ("abort", "get_extra_info", "pause_reading", "resume_reading", "set_protocol"):
            setattr(self, name, getattr(transport, name))

    def is_closing(self) -> bool:
        return self.is_lingering or self._transport.is_closing()

    def write(self, data: bytes) -> None:  # type: ignore[override]  # uvicorn writes nothing but bytes
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        if self.is_lingering or not self._is_receiving():
            self._transport.close()
            return
        self.is_lingering = True
        self._transport.resume_reading()
        self._transport.write_eof()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))


def make_protocol(limits: Limits) -> type[H11Protocol]:
    """uvicorn's protocol with a deadline for each request to arrive, from its first byte (or the connection) on."""

    class DeadlineProtocol(H11Protocol):
        transport: JoiningTransport
        _deadline: asyncio.TimerHandle | None = None
        _waits_since = 0.0
        _n_discarded_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(
                JoiningTransport(transport, self.loop, lambda: self.conn.their_state is h11.SEND_BODY)
            )
            self._start_deadline()
            if len(self.connections) > limits.n_connections:
                waiting = [c for c in self.connections if isinstance(c, DeadlineProtocol) and c.waits and c is not self]
                min(waiting, key=DeadlineProtocol.find_rank, default=self).transport.abort()

        @property
        def waits(self) -> bool:
            """Whether no request is being answered: none has arrived as a whole, or the answer was sent."""
            return self._deadline is not None or self.cycle is None or self.cycle.response_complete

        def find_rank(self) -> tuple[bool, float]:
            """The place among connections that wait; the first makes room."""
            has_token = self.scope is not None and self.scope.get(IDENTITY_KEY, LOCAL_USER) is not LOCAL_USER
            return has_token, self._waits_since

        def data_received(self, data: bytes) -> None:
            if self.transport.is_lingering:
                self._n_discarded_bytes += len(data)
                if self._n_discarded_bytes > limits.discarded_bytes:
                    self.transport.abort()
                return
            if self._deadline is None:
                self._start_deadline()
            super().data_received(data)
            if self.conn.their_state is not h11.SEND_BODY and self.conn.their_state is not h11.IDLE:
                self._stop_deadline()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_deadline()
            super().connection_lost(exc)

        def _start_deadline(self) -> None:
            self._waits_since = self.loop.time()
            self._deadline = self.loop.call_later(limits.receive_seconds, self.transport.abort)

        def _stop_deadline(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
