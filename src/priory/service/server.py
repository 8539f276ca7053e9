"""Run the service in one process, on a port or a Unix socket, until a signal stops it."""

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
