"""Clients that keep a server on 127.0.0.1 busy: each sends its next request when its last is answered."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

MakeRequest = Callable[[int], bytes]  # the number of a request -> its bytes


@dataclass(frozen=True)
class LoadResult:
    """What a run measured: requests, seconds, the latency of each request, and how many failed."""

    seconds: float
    latencies: np.ndarray
    n_failed: int

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def milliseconds(self, share: float) -> float:
        return float(np.quantile(self.latencies, share) * 1000)


def make_post(path: str, body: bytes, content_type: str = "application/json", headers: str = "") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content_type}\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class _Client(asyncio.Protocol):
    """One connection; as little Python as possible between two requests."""

    def __init__(self, load: _Load) -> None:
        self.load, self.received, self.sent_at = load, b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # a socket's
        self.send_next()

    def send_next(self) -> None:
        request = self.load.take_request()
        if request is None:
            self.transport.close()
            return
        self.sent_at = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.received[:end].lower()
        start = head.find(b"content-length: ")
        length = int(head[start + 16 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
        if len(self.received) < end + 4 + length:
            return
        self.load.note(time.perf_counter() - self.sent_at, head[9:12] == b"200")
        self.received = b""
        delay = self.load.choose_delay()
        if delay:
            asyncio.get_running_loop().call_later(delay, self.send_next)
        else:
            self.send_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self.load.end_client()


class _Load:
    def __init__(self, make: MakeRequest, n_requests: int, n_clients: int, rate: float | None) -> None:
        self.make, self.n_left, self.n_clients, self.rate = make, n_requests, n_clients, rate
        self.n_sent, self.n_failed, self.latencies = 0, 0, list[float]()
        self.is_over = asyncio.Event()

    def take_request(self) -> bytes | None:
        if self.n_left <= 0:
            return None
        self.n_left -= 1
        self.n_sent += 1
        return self.make(self.n_sent)

    def note(self, seconds: float, is_good: bool) -> None:
        self.latencies.append(seconds)
        self.n_failed += not is_good

    def choose_delay(self) -> float:
        """The pause of a client before its next request, where all together are to send at a rate."""
        return 0.0 if self.rate is None else random.expovariate(self.rate / self.n_clients)

    def end_client(self) -> None:
        self.n_clients -= 1
        if self.n_clients == 0:
            self.is_over.set()


async def _run(make: MakeRequest, port: int, n_requests: int, n_clients: int, rate: float | None) -> LoadResult:
    load = _Load(make, n_requests, n_clients, rate)
    loop = asyncio.get_running_loop()
    start = time.perf_counter()
    for _ in range(n_clients):
        await loop.create_connection(lambda: _Client(load), "127.0.0.1", port)
    await asyncio.wait_for(load.is_over.wait(), 900)
    return LoadResult(time.perf_counter() - start, np.array(load.latencies), load.n_failed)


def run_load(make: MakeRequest, port: int, n_requests: int, n_clients: int, rate: float | None = None) -> LoadResult:
    """Send ``n_requests``, from ``n_clients`` at once, as fast as they are answered or at a rate per second."""
    return asyncio.run(_run(make, port, n_requests, n_clients, rate))
