"""Hostile requests to the service: none may end in a 500, a traceback or a leak.

    python benchmarks/service_fuzz.py [requests] [--write]       # 100,000 by default
    python benchmarks/service_fuzz.py schemathesis [examples]    # needs schemathesis

Requests are edits of valid ones (JSON, NDJSON, mail, model files) and plain rubbish, sent to a service with tokens on a
Unix socket, half of them without a token. Writes benchmarks/results/service_fuzz.md. schemathesis checks the service
against its own OpenAPI description, once for a model that has learned and once for any name, but for the check that all
valid bodies are accepted: whether there are as many labels as rows, and whether the model knows what it is asked about,
no schema can say.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from priory.service.client import Client
from priory.service.limits import Limits
from priory.service.routes import ROUTES
from priory.service.server import Address, Service, ServiceSettings, make_application, make_server, open_sockets
from priory.service.tokens import TokenList, add_token

RESULT = Path(__file__).parent / "results" / "service_fuzz.md"
SECRET = "zanzibarsecret"
REQUEST_SECONDS = 30.0  # within which every request must be answered or cut off
N_SENDERS = 16  # most of them wait for the end of a request that never comes
LEAKS = (b"Traceback", b'File "', b"/site-packages/", b"sqlite3", b"msgspec.", b"priory/service")
SEEDS = [
    {"texts": ["win cash", "lunch at noon"], "labels": ["spam", "ham"]},
    {"rows": [{"age": 4, "town": "x"}, {"age": None, "town": "y"}], "labels": ["a", "b"]},
    {"texts": ["win"], "top": 1, "costs": {"spam": {"ham": 2}}, "certainty": 0.5, "reject": 0.1},
    {"id": 3},
    {"kind": "text", "parameters": {"alpha": 1, "ngram_range": [1, 2], "calibrate": False}},
    {"kind": "table", "parameters": {"families": {"a": "poisson"}}},
]
ODD_VALUES = [
    None, True, -1, 0, 1e308, -1e-320, 10**30, "", "\x00", "\ud800", "a" * 5000, [], {}, [[]], "../../etc/passwd",
    "<script>alert(1)</script>", "' OR 1=1 --", float("nan"), float("inf"), 2**63, "İ", "\u202e", {"$ref": "#"},
]  # fmt: skip
ODD_NAMES = ["mail", "table", "none", "..", "%2e%2e%2f", "a" * 300, "%00", "mail%20", "MAIL", "%ff", "a;b", "[x]"]
CONTENT_TYPES = ["application/json"] * 6 + [
    "application/x-ndjson", "message/rfc822", "text/csv", "application/octet-stream", "application/mbox",
    "application/vnd.apache.parquet", "text/plain", "multipart/form-data; boundary=x", "", "application/json;x=y",
]  # fmt: skip
ODD_HEADERS = [
    "Host: evil", "Origin: https://evil", "Content-Encoding: gzip", "Expect: 100-continue", "Idempotency-Key: ",
    "Idempotency-Key: k", "Range: bytes=0-1", "X-Forwarded-For: 1.2.3.4", "Cookie: a=b", "Accept: application/x-ndjson",
    "Upgrade: websocket\r\nConnection: Upgrade", "Transfer-Encoding: gzip", "X: " + "y" * 9000, "Content-Length: 5",
]  # fmt: skip


def edit_tree(tree: object, chance: random.Random) -> object:
    """A JSON tree with some places replaced, repeated, dropped or renamed."""
    if chance.random() < 0.12:
        return chance.choice(ODD_VALUES)
    if isinstance(tree, dict):
        items = [(key, edit_tree(value, chance)) for key, value in tree.items() if chance.random() > 0.06]
        if chance.random() < 0.1:
            items.append((chance.choice(["labels", "texts", "rows", "id", "x", "", "top"]), chance.choice(ODD_VALUES)))
        return dict(items)
    if isinstance(tree, list):
        parts = [edit_tree(part, chance) for part in tree if chance.random() > 0.06]
        return parts * chance.choice([1, 1, 1, 2, 50])
    return tree


def make_body(chance: random.Random, model_file: bytes) -> bytes:
    kind = chance.random()
    if kind < 0.6:
        text = json.dumps(edit_tree(chance.choice(SEEDS), chance), ensure_ascii=chance.random() < 0.5)
        body = text.encode("utf-8", "surrogatepass")
    elif kind < 0.7:
        body = b"\n".join(b'{"text": "win", "label": "spam"}' for _ in range(chance.randrange(5)))
    elif kind < 0.75:
        body = b"label,text\nspam,win cash now\nham,see you at noon\n" * chance.randrange(3)
    elif kind < 0.8:
        body = b"From a\nSubject: =?utf-8?q?win?=\nContent-Type: text/html\n\n<b>cash</b>\n"
    elif kind < 0.85:
        body = model_file
    elif kind < 0.9:
        opening = chance.choice([b"[", b'{"a":', b'{"texts":['])
        body = opening * chance.choice([10, 2000, 100_000])
    else:
        body = chance.randbytes(chance.randrange(200))
    if chance.random() < 0.3 and body:
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(body) + 1)
            body = body[:place] + chance.randbytes(chance.randrange(3)) + body[place + chance.randrange(3) :]
    return body


def make_request(chance: random.Random, token: str, model_file: bytes) -> bytes:
    route = chance.choice(ROUTES)
    method = route.method if chance.random() < 0.9 else chance.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "X"])
    name = chance.choice(["mail", "table"]) if chance.random() < 0.8 else chance.choice(ODD_NAMES)
    if method == "DELETE" or (method == "PUT" and chance.random() < 0.9):
        name = f"new{chance.randrange(5)}"
    path = route.path.replace("{name}", name)
    if chance.random() < 0.1:
        path += chance.choice(["?limit=-1", "?before=x", "?label=%00", "?target=label", "/", "//", "?content", "/../x"])
    body = make_body(chance, model_file) if method in ("POST", "PUT") else b""
    headers = ["Host: localhost", f"Content-Type: {chance.choice(CONTENT_TYPES)}", f"Content-Length: {len(body)}"]
    if token:
        headers.append(f"Authorization: Bearer {token}")
    if chance.random() < 0.15:
        headers.append(chance.choice(ODD_HEADERS))
    request = f"{method} {path} HTTP/1.1\r\n" + "\r\n".join(headers) + "\r\n\r\n"
    raw = request.encode("latin-1", "replace") + body
    if chance.random() < 0.02:
        place = chance.randrange(len(raw))
        raw = raw[:place] + chance.randbytes(4) + raw[place:]
    return raw


class Sender:
    """Sends requests over one connection as long as the service keeps it open."""

    def __init__(self, path: Path) -> None:
        self.path, self.connection = path, None

    def send(self, request: bytes) -> bytes:
        """The answer; empty if the connection was cut off, which is what a request that never ends deserves."""
        for _ in range(2):
            is_new = self.connection is None
            if is_new:
                self.connection = socket.socket(socket.AF_UNIX)
                self.connection.settimeout(2 * REQUEST_SECONDS)
                self.connection.connect(str(self.path))
            with suppress(BrokenPipeError, ConnectionResetError):
                self.connection.sendall(request)
            answer = self._receive(request[:4] == b"HEAD")
            if answer or is_new:
                return answer
        return b""

    def _receive(self, is_head: bool) -> bytes:
        received = b""
        try:
            while True:
                head, found, body = received.partition(b"\r\n\r\n")
                if found and head.startswith(b"HTTP/1.1 100"):
                    received = body
                    continue
                if found:
                    lower = head.lower()
                    length = int(lower.partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                    if is_head or len(body) >= length:
                        if b"connection: close" in lower or is_head or b"http/1.1 400" in lower:
                            self.close()
                        return received
                part = self.connection.recv(65536)
                if not part:
                    break
                received += part
        except (ConnectionResetError, TimeoutError):
            pass
        self.close()
        return received

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def fuzz(n_requests: int, seed: int = 1) -> str:
    with tempfile.TemporaryDirectory(prefix="priory-fuzz-") as name:
        folder = Path(name)
        token = add_token(folder / "tokens", "tester", "admin")
        limits = Limits(receive_seconds=0.2, request_seconds=REQUEST_SECONDS)
        service = Service(ServiceSettings(folder / "data", TokenList(folder / "tokens"), limits))
        path = folder / "s.sock"
        server = make_server(service, make_application(service))
        thread = threading.Thread(target=server.run, args=(open_sockets(Address(port=-1, socket_path=path)),))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            with Client(socket=path, token=token) as client:
                client.create("mail", calibrate=False)
                client.learn("mail", [f"win cash {SECRET}", "lunch at noon"], ["spam", "ham"])
                client.create("table", "table", calibrate=False)
                client.learn("table", [{"age": 1, "town": SECRET}, {"age": 2, "town": "y"}], ["a", "b"])
                arguments = n_requests // N_SENDERS, path, token, client.download("mail")
                with ThreadPoolExecutor(N_SENDERS) as threads:
                    parts = list(threads.map(lambda i: send_all(*arguments, random.Random(seed + i)), range(N_SENDERS)))
                statuses, (seconds, slowest) = sum((part[0] for part in parts), Counter()), max(p[1] for p in parts)
                client.learn("mail", ["still alive"], ["spam"])
        finally:
            server.should_exit = True
            thread.join()
            service.close()
    shown = ", ".join(f"{status} {count:,}" for status, count in sorted(statuses.items()))
    return (
        f"{n_requests:,} requests: {shown}. No 500, no traceback, no leak; the slowest answer (`{slowest}`) took "
        f"{seconds:.2f} s of the {REQUEST_SECONDS:.0f} s that a request may take."
    )


def send_all(
    n_requests: int, path: Path, token: str, model_file: bytes, chance: random.Random
) -> tuple[Counter[str], tuple[float, str]]:
    """Send requests, and return the slowest; raises an error at the first answer that should not be."""
    statuses: Counter[str] = Counter()
    sender, slowest = Sender(path), (0.0, "")
    for _ in range(n_requests):
        is_known = chance.random() < 0.5
        request = make_request(chance, token if is_known else "", model_file)
        start = time.monotonic()
        answer = sender.send(request)
        seconds = time.monotonic() - start
        assert seconds < REQUEST_SECONDS + 5, (seconds, request[:400])
        slowest = max(slowest, (seconds, request[:60].partition(b" HTTP")[0].decode("ascii", "replace")))
        status = answer[9:12].decode("ascii", "replace") if answer.startswith(b"HTTP/1.1 ") else "cut off"
        statuses[status] += 1
        assert status not in ("500", "501", "502"), (request[:400], answer[:400])
        found = [leak for leak in LEAKS if leak in answer]
        assert not found, (found, request[:400], answer[:400])
        assert is_known or SECRET.encode() not in answer, (request[:400], answer[:400])
    sender.close()
    return statuses, slowest


def run_schemathesis(n_examples: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        service = Service(ServiceSettings(Path(folder, "data")))
        sockets = open_sockets(Address(port=0))
        server = make_server(service, make_application(service))
        thread = threading.Thread(target=server.run, args=(sockets,))
        thread.start()
        address = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        with Client(address, retries=5) as client:
            client.create("mail", calibrate=False)
            client.learn("mail", ["win cash", "lunch"], ["spam", "ham"])
        known_model = Path(folder, "known_model.toml")
        known_model.write_text('[parameters]\n"path.name" = "mail"\n')
        command = [sys.executable, "-m", "schemathesis.cli"]
        options = ["run", f"{address}/openapi.json", "--max-examples", str(n_examples), "--request-timeout", "60"]
        options += ["--exclude-checks", "positive_data_acceptance"]
        options += ["--exclude-path", "/ready"]  # it answers 503 once all models are deleted, and they will be
        runs = (
            [*command, "--config-file", str(known_model), *options, "--include-path-regex", "/v1/models/.*/"],
            [*command, *options],
        )
        code = max(subprocess.run(run, cwd=folder).returncode for run in runs)
        server.should_exit = True
        thread.join()
        service.close()
    return code


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["schemathesis"]:
        sys.exit(run_schemathesis(int(arguments[1]) if len(arguments) > 1 else 100))
    numbers = [int(argument) for argument in arguments if argument.isdigit()]
    text = fuzz(numbers[0] if numbers else 100_000)
    print(text)
    if "--write" in arguments:
        RESULT.write_text(f"# Hostile requests\n\n`python benchmarks/service_fuzz.py --write`\n\n{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
