"""Connections that may not dawdle: a request that does not arrive in time is cut off. uvicorn has no such limit."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class JoiningTransport(asyncio.Transport):
    """A transport that sends what is written in one turn of the event loop at once.

    uvicorn writes the head of an answer and its body by themselves; each takes a system call and a packet.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._parts = transport, loop, list[bytes]()
        for name in ("abort", "get_extra_info", "is_closing", "pause_reading", "resume_reading", "set_protocol"):
            setattr(self, name, getattr(transport, name))

    def write(self, data: bytes) -> None:  # type: ignore[override]  # uvicorn writes nothing but bytes
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))


def make_protocol(receive_seconds: float) -> type[H11Protocol]:
    """uvicorn's protocol with a deadline for each request to arrive, from its first byte (or the connection) on."""

    class DeadlineProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(JoiningTransport(transport, self.loop))
            self._start_deadline()

        def data_received(self, data: bytes) -> None:
            if self._deadline is None:
                self._start_deadline()
            super().data_received(data)
            if self.conn.their_state is not h11.SEND_BODY and self.conn.their_state is not h11.IDLE:
                self._stop_deadline()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_deadline()
            super().connection_lost(exc)

        def _start_deadline(self) -> None:
            self._deadline = self.loop.call_later(receive_seconds, self._cut_off)

        def _stop_deadline(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _cut_off(self) -> None:
            self._deadline = None
            if not self.transport.is_closing():
                self.transport.abort()

    return DeadlineProtocol
