"""Running the service: one process, on a port or a Unix socket, until it is asked to stop."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from priory.errors import DataError
from priory.service.application import Service
from priory.service.connections import make_protocol
from priory.service.limits import LOCAL_HOSTS, MAX_HTTP_HEADER_BYTES

KEEP_ALIVE_SECONDS = 15
SHUTDOWN_SECONDS = 8


@dataclass(frozen=True)
class Address:
    """Where the service listens: a host and a port, a Unix socket, or both."""

    host: str = "127.0.0.1"
    port: int = 8000
    socket_path: Path | None = None


def check_address(address: Address, has_tokens: bool) -> None:
    """Other machines may connect only if tokens are required."""
    if address.host not in LOCAL_HOSTS and not has_tokens:
        raise DataError(f"other machines could connect to {address.host}; give --token-file, or serve on 127.0.0.1")


def open_sockets(address: Address) -> list[socket.socket]:
    """The sockets to listen on. A Unix socket is open to its owner and group alone."""
    sockets = []
    if address.port >= 0:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by which asyncio knows TCP_NODELAY
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
        path.unlink()  # the data folder is locked, so whoever made it is gone
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen()
    return listening


def run_server(service: Service, app: ASGIApp, sockets: Iterable[socket.socket]) -> None:
    """Answer requests until a signal asks to stop; requests that are under way are finished."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn stops, and raises the signal again
    try:
        with suppress(KeyboardInterrupt):
            make_server(service, app).run(list(sockets))
    finally:
        signal.signal(signal.SIGTERM, before)


def make_server(service: Service, app: ASGIApp) -> uvicorn.Server:
    """The server with the limits of the service."""
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
        proxy_headers=False,
        backlog=limits.n_connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=MAX_HTTP_HEADER_BYTES,
    )
    return uvicorn.Server(config)
