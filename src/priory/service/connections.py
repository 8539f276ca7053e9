"""Time out slow requests, which uvicorn does not, and limit the number of connections.

A connection is idle between requests and until a whole request has arrived. When there are too many connections, an
idle one is closed, the oldest first and those with a token last. A client that has sent a whole request is always
answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from priory.service.limits import IDENTITY_KEY, Limits
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


def make_protocol(limits: Limits) -> type[H11Protocol]:
    """Return uvicorn's protocol with a deadline for each request to arrive, from its first byte or the connection."""

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
                if self._n_discarded_bytes > limits.discarded_bytes:
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
            self._deadline = self.loop.call_later(limits.receive_seconds, self.transport.abort)

        def _stop_deadline(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
