"""Who may do what, how much, and how slowly; and what nobody learns from an error."""

import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from priory.errors import DataError, ServiceError
from priory.estimators.text_classifier import TextClassifier
from priory.service.client import Client
from priory.service.limits import Limits
from priory.service.server import Address, check_address, open_sockets
from priory.service.tokens import TokenList, add_token, read_token_file, remove_tokens
from running_service import connect, exchange_bytes, run_service, wait_until


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    return path, {scope: add_token(path, f"the-{scope}", scope) for scope in ("read", "learn", "admin")}


def get_raw(service, **options):
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(service.socket)), base_url="http://localhost", timeout=10, **options
    )


def test_a_token_file_holds_no_token(tokens):
    path, made = tokens
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(token in path.read_text() for token in made.values())
    assert [identity.name for identity, _ in read_token_file(path)] == ["the-read", "the-learn", "the-admin"]


def test_each_scope_may_do_its_own_and_what_is_below(tmp_path, tokens):
    path, made = tokens
    with run_service(tmp_path, tokens=TokenList(path)) as service:
        read, learn, admin = (Client(socket=service.socket, token=made[s], retries=0) for s in made)
        admin.create("mail")
        learn.learn("mail", ["win cash", "lunch"], ["spam", "ham"])
        read.predict("mail", ["cash"])
        assert learn.get_history("mail", content=True)["events"][0]["teacher"] == "the-learn"
        for refuse in (
            lambda: read.learn("mail", ["x"], ["spam"]),
            lambda: read.get_history("mail", content=True),
            lambda: learn.create("other"),
            lambda: learn.download("mail"),
            lambda: learn.delete("mail"),
        ):
            with pytest.raises(ServiceError) as refused:
                refuse()
            assert refused.value.status == 403
        for client in (read, learn, admin):
            client.close()


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic abc", "Bearer", "Bearer \xff"])
def test_without_a_token_nothing_is_revealed(tmp_path, tokens, header):
    with run_service(tmp_path, tokens=TokenList(tokens[0])) as service, get_raw(service) as raw:
        headers = {} if header is None else {"Authorization": header.encode("latin-1")}
        answers = [
            raw.get(path, headers=headers) for path in ("/v1/models", "/v1/models/mail", "/v1/models/none", "/metrics")
        ]
        assert [answer.status_code for answer in answers] == [401] * 4
        assert len({answer.content for answer in answers}) == 1
        assert answers[0].headers["www-authenticate"] == "Bearer"
        assert raw.get("/health").status_code == 200


def test_other_machines_need_tokens():
    with pytest.raises(DataError, match="--token-file"):
        check_address(Address(host="0.0.0.0"), has_tokens=TokenList().is_required)
    check_address(Address(host="0.0.0.0"), has_tokens=True)
    check_address(Address(), has_tokens=False)


def test_a_foreign_host_name_or_origin_is_refused(tmp_path):
    with run_service(tmp_path, allowed_hosts=("mail.example",)) as service, get_raw(service) as raw:
        assert raw.get("/health", headers={"Host": "evil.example"}).status_code == 421
        assert raw.get("/health", headers={"Host": "mail.example:8000"}).status_code == 200
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
            assert raw.put("/v1/models/mail", json={"kind": "text"}, headers=headers).status_code == 403
        own = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
        assert raw.put("/v1/models/mail", json={"kind": "text"}, headers=own).status_code == 201
        form = raw.post("/v1/models/mail/learn", data={"texts": "a"})
        assert form.status_code == 415


def test_answers_have_a_strict_policy(tmp_path):
    with run_service(tmp_path) as service, get_raw(service) as raw:
        headers = raw.get("/health").headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_a_large_body_is_refused_with_and_without_its_length(tmp_path):
    with run_service(tmp_path, limits=Limits(body_bytes=1000)) as service, get_raw(service) as raw:
        assert raw.put("/v1/models/a", content=b"x" * 2000).status_code == 413

        def stream():
            for _ in range(100):
                yield b"x" * 100

        assert raw.put("/v1/models/a", content=stream()).status_code == 413
        assert raw.get("/health").status_code == 200


@pytest.mark.parametrize("head", ["", "Connection: close\r\n"])
@pytest.mark.parametrize("port", [-1, 0])
def test_a_client_that_sends_too_much_reads_why(tmp_path, head, port):
    body = b"x" * (17 << 20)
    with run_service(tmp_path, port=port) as service:
        with socket.socket(socket.AF_UNIX) if port < 0 else socket.socket() as connection:
            connection.settimeout(10)
            connection.connect(str(service.socket) if port < 0 else ("127.0.0.1", service.port))
            request = f"PUT /v1/models/a HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: {len(body)}\r\n\r\n"
            connection.sendall(request.encode() + body)
            received = b""
            while part := connection.recv(65536):
                received += part
        assert received.startswith(b"HTTP/1.1 413")
        assert b"a body may have 16,777,216 bytes" in received


def test_a_token_file_is_read_again_when_it_changes(tmp_path, tokens):
    path, made = tokens
    with run_service(tmp_path, tokens=TokenList(path)) as service, get_raw(service) as raw:

        def ask(token):
            return raw.get("/v1/models", headers={"Authorization": f"Bearer {token}"}).status_code

        assert ask(made["read"]) == 200
        assert remove_tokens(path, "the-read") == 1
        assert (ask(made["read"]), ask(made["admin"])) == (401, 200)
        assert ask(add_token(path, "ben", "read")) == 200
        path.write_text("nonsense\n")
        assert ask(made["admin"]) == 503
        assert "nonsense" not in raw.get("/v1/models").text


def test_only_those_who_may_teach_see_words_that_were_learned(tmp_path, tokens):
    path, made = tokens
    texts = [f"{word} number {i}" for i, word in enumerate(["zebra", "lunch"] * 20)]
    labels = ["spam", "ham"] * 20
    with run_service(tmp_path, tokens=TokenList(path)) as service, get_raw(service) as raw:
        with Client(socket=service.socket, token=made["admin"], retries=0) as admin:
            admin.create("mail")
            admin.learn("mail", texts, labels)
        for scope, is_shown in (("read", False), ("learn", True)):
            headers = {"Authorization": f"Bearer {made[scope]}", "Cookie": f"priory_token={made[scope]}"}
            scores = raw.get("/models/mail/scores", headers=headers)
            assert (scores.status_code, "zebra" in scores.text) == (200, is_shown)


def test_behind_a_proxy_with_tls_the_cookie_is_secure(tmp_path, tokens):
    path, made = tokens
    form, own = {"token": made["read"]}, {"Origin": "https://mail.example", "HX-Request": "true"}
    settings = {"tokens": TokenList(path), "public_url": "https://mail.example"}
    with run_service(tmp_path, **settings) as service, get_raw(service) as raw:
        for host in ("mail.example", "localhost"):  # as the proxy passes it on, or not
            answer = raw.post("/sign-in", data=form, headers={**own, "Host": host})
            assert answer.status_code == 204
            assert "; Secure" in answer.headers["set-cookie"]
        foreign = {**own, "Origin": "https://evil.example"}
        assert raw.post("/sign-in", data=form, headers=foreign).status_code == 403


def test_a_slow_client_is_cut_off_and_others_are_served(tmp_path):
    with run_service(tmp_path, limits=Limits(receive_seconds=0.3)) as service:
        for slow in (
            b"",
            b"GET /health HTTP/1.1\r\nHost: loc",
            b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\nab",
        ):
            start = time.monotonic()
            with get_raw(service) as raw, socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(str(service.socket))
                connection.sendall(slow)
                assert raw.get("/health").status_code == 200
                try:
                    while connection.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
            assert time.monotonic() - start < 3


def test_a_request_that_arrives_in_time_is_not_cut_off_while_it_is_answered(tmp_path, monkeypatch):
    with run_service(tmp_path, limits=Limits(receive_seconds=0.2)) as service, get_raw(service) as raw:
        original = service.store.get

        def get_slowly(name):
            time.sleep(0.5)
            return original(name)

        raw.put("/v1/models/mail", json={"kind": "text"})
        monkeypatch.setattr(service.store, "get", get_slowly)
        assert raw.get("/v1/models/mail").status_code == 200


def test_too_many_requests_are_told_to_wait(tmp_path):
    with run_service(tmp_path, limits=Limits(n_requests=0)) as service, get_raw(service) as raw:
        answer = raw.get("/v1/models")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert raw.get("/health").status_code == 200


@contextmanager
def open_slowly(service, n_connections, head, body=b"{"):
    """Connections that have sent the head of a request and a part of its body."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(n_connections)]
        for connection in opened:
            connection.connect(str(service.socket))
            connection.sendall(head.encode() + b"Host: localhost\r\nContent-Length: 1000\r\n\r\n" + body)
        time.sleep(0.1)
        yield opened


@pytest.mark.parametrize("path", ["/v1/models/mail/predict", "/sign-in", "/nothing"])
def test_bodies_that_do_not_arrive_block_nobody(tmp_path, tokens, path):
    settings = {"tokens": TokenList(tokens[0]), "limits": Limits(n_requests=2, n_connections=20)}
    with (
        run_service(tmp_path, **settings) as service,
        Client(socket=service.socket, token=tokens[1]["admin"]) as client,
    ):
        client.create("mail", calibrate=False)
        client.learn("mail", ["win cash", "lunch"], ["spam", "ham"])
        head = "POST /v1/models/mail/predict HTTP/1.1\r\nAuthorization: Bearer {}\r\n"
        with (
            open_slowly(service, 6, head.format(tokens[1]["read"])) as known,
            open_slowly(service, 40, f"POST {path} HTTP/1.1\r\nHX-Request: true\r\n"),
        ):
            start = time.monotonic()
            with get_raw(service) as raw:
                assert raw.get("/health").status_code == 200
            assert client.predict("mail", ["cash"])["predictions"][0]["label"] == "spam"
            assert time.monotonic() - start < 2
            for connection in known:  # those with a token were not cut off
                connection.setblocking(False)
                with pytest.raises(BlockingIOError):
                    connection.recv(1)


def test_without_tokens_bodies_that_do_not_arrive_block_nobody_either(tmp_path):
    with (
        run_service(tmp_path, limits=Limits(n_requests=2, n_connections=20)) as service,
        open_slowly(service, 40, "PUT /v1/models/mail HTTP/1.1\r\n"),
        get_raw(service) as raw,
    ):
        assert raw.get("/health").status_code == 200
        assert raw.put("/v1/models/mail", json={"kind": "text"}).status_code == 201


def test_all_bodies_together_have_a_limit(tmp_path):
    with run_service(tmp_path, limits=Limits(body_bytes=1000)) as service, get_raw(service) as raw:
        with open_slowly(service, 16, "PUT /v1/models/mail HTTP/1.1\r\n", b" " * 999):
            assert raw.put("/v1/models/mail", content=b" " * 900).status_code == 503
        wait_until(lambda: raw.put("/v1/models/mail", json={"kind": "text"}).status_code in (200, 201))


def test_what_a_request_may_ask_for_is_bounded_by_rows_and_classes(tmp_path):
    with connect(tmp_path) as client:
        client.create("mail", calibrate=False)
        client.learn("mail", [f"w{i}" for i in range(1000)], [f"class {i}" for i in range(1000)])
        assert len(client.predict("mail", ["w1"] * 500, top=1)["predictions"]) == 500
        for ask in (
            lambda: client.predict("mail", ["w1"] * 501, top=1),
            lambda: client.evaluate("mail", ["w1"] * 501, ["class 1"] * 501),
            lambda: client.explain("mail", [" ".join(f"w{i}" for i in range(2001))]),
        ):
            with pytest.raises(ServiceError, match="send") as refused:
                ask()
            assert refused.value.status == 413


def test_others_are_answered_while_a_large_request_is(tmp_path, monkeypatch):
    is_over = threading.Event()

    def wait(*arguments):
        assert is_over.wait(10)
        raise DataError("waited")

    with run_service(tmp_path) as service, Client(socket=service.socket, retries=0) as client, get_raw(service) as raw:
        client.create("mail", calibrate=False)
        client.learn("mail", ["win cash", "lunch"], ["spam", "ham"])
        monkeypatch.setattr("priory.service.handlers.choose_answers", wait)
        monkeypatch.setattr("priory.service.messages._check_keys", lambda body: len(body) > 10**5 and wait())
        asked = []
        for texts in (["cash"], ["cash" * 30_000]):
            asked.append(threading.Thread(target=lambda t: raw_predict(service, t), args=(texts,)))
            asked[-1].start()
        time.sleep(0.1)
        assert raw.get("/health").status_code == 200
        assert client.get_model("mail")["rows"] == 2
        is_over.set()
        for thread in asked:
            thread.join(10)


def raw_predict(service, texts):
    with get_raw(service) as raw:
        assert "waited" in raw.post("/v1/models/mail/predict", json={"texts": texts}).text


def test_an_unexpected_error_is_a_500_without_its_text(tmp_path, monkeypatch):
    with run_service(tmp_path) as service, get_raw(service) as raw:
        monkeypatch.setattr(service.store, "get", lambda name: 1 / 0)
        answer = raw.get("/v1/models/mail")
        assert answer.status_code == 500
        assert "division" not in answer.text


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n",
    ],
)
def test_broken_http_is_refused(tmp_path, sent):
    with run_service(tmp_path, limits=Limits(receive_seconds=0.5)) as service:
        answer = exchange_bytes(service.socket, sent)
        assert answer.startswith(b"HTTP/1.1 4")
        assert b"Traceback" not in answer


def test_a_disk_that_cannot_be_read_is_said_and_predictions_go_on(tmp_path, monkeypatch):
    import sqlite3

    def fail(*arguments, **options):
        raise sqlite3.OperationalError("disk I/O error")

    with run_service(tmp_path) as service, Client(socket=service.socket, retries=0) as client:
        client.create("mail", calibrate=False)
        client.learn("mail", ["win cash", "lunch"], ["spam", "ham"])
        monkeypatch.setattr(service.store.reader, "read_events", fail)
        monkeypatch.setattr(service.store.journal, "add_event", fail)
        for ask in (lambda: client.get_history("mail"), lambda: client.learn("mail", ["x"], ["spam"])):
            with pytest.raises(ServiceError) as refused:
                ask()
            assert refused.value.status == 503
        assert client.predict("mail", ["cash"])["predictions"][0]["label"] == "spam"
        monkeypatch.undo()
        assert client.learn("mail", ["x"], ["spam"])["rows"] == 1
        assert client.get_model("mail")["rows"] == 3


def test_an_answer_on_a_port_is_sent_at_once_and_whole(tmp_path):
    """Neither head nor body waits for the other's acknowledgement, which Linux may delay by 40 ms."""
    with run_service(tmp_path, port=0) as service, socket.create_connection(("127.0.0.1", service.port), 5) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(65536).endswith(b"}")  # one packet
    with open_sockets(Address(port=0))[0] as listening:
        assert listening.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY on no other


def test_a_request_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    with connect(tmp_path, limits=Limits(request_seconds=1.0)) as client:
        client.create("mail", calibrate=False)
        client.learn("mail", ["win cash", "lunch"], ["spam", "ham"])
        is_over = threading.Event()
        monkeypatch.setattr(TextClassifier, "evaluate", lambda self: is_over.wait(10))
        with pytest.raises(ServiceError, match="too long") as caught:
            client.evaluate("mail")
        is_over.set()
        assert caught.value.status == 503
        assert client.predict("mail", ["cash"])["predictions"][0]["label"] == "spam"
