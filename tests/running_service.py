"""A service in a thread of the test, on a Unix socket: as real as one in a process, and started in milliseconds."""

import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from priory.service.client import Client
from priory.service.pages.page_routes import make_page_routes
from priory.service.server import Address, Service, ServiceSettings, make_application, make_server, open_sockets


@contextmanager
def run_service(folder, *, port=-1, **settings):
    """A running service; ``service.socket`` is its Unix socket, ``service.port`` its port if it has one."""
    path = Path(folder, "s.sock")
    service = Service(ServiceSettings(Path(folder, "data"), **settings))
    sockets = open_sockets(Address(port=port, socket_path=path))
    server = make_server(service, make_application(service, make_page_routes(service)))
    thread = threading.Thread(target=server.run, args=(sockets,), daemon=True)
    thread.start()
    service.socket = path
    service.port = sockets[0].getsockname()[1] if port >= 0 else None
    try:
        wait_until(lambda: server.started)
        yield service
    finally:
        server.should_exit = True
        thread.join(10)
        service.close()


def wait_until(is_true, seconds=10):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.002)


@contextmanager
def connect(folder, **settings):
    """A client of a service that runs meanwhile."""
    with run_service(folder, **settings) as service, Client(socket=service.socket, retries=0) as client:
        yield client


def exchange_bytes(path, sent, seconds=5.0):
    """What a service on a Unix socket answers to these bytes, up to the end of its headers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(str(path))
        connection.sendall(sent)
        received = b""
        while b"\r\n\r\n" not in received and (part := connection.recv(65536)):
            received += part
        return received
