"""The API as a client meets it: every address, on a real server."""

import gzip
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import priory as pr
from paths import ROOT
from priory import inbox
from priory.errors import ServiceError
from priory.service.client import Client
from priory.service.routes import ROUTES
from running_service import connect, run_service

TEXTS = ["win cash now", "cash prize", "lunch at noon", "see you at lunch"]
LABELS = ["spam", "spam", "ham", "ham"]


@pytest.fixture
def client(tmp_path):
    with connect(tmp_path) as client:
        yield client


@pytest.fixture
def mail(client):
    client.create("mail", "text", calibrate=False)
    client.learn("mail", TEXTS, LABELS)
    return client


@pytest.fixture
def raw(tmp_path):
    """Plain HTTP, for what the client never sends."""
    (tmp_path / "raw").mkdir()
    with run_service(tmp_path / "raw") as service:
        transport = httpx.HTTPTransport(uds=str(service.socket))
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=60) as raw:
            raw.put("/v1/models/mail", json={"kind": "text"})
            raw.post("/v1/models/mail/learn", json={"texts": TEXTS, "labels": LABELS})
            yield raw


def test_a_model_is_created_taught_and_asked(mail):
    model = mail.get_model("mail")
    assert (model["rows"], model["classes"], model["version"]) == (4, ["ham", "spam"], 2)
    answer = mail.predict("mail", ["cash", "lunch"])
    assert [p["label"] for p in answer["predictions"]] == ["spam", "ham"]
    assert answer["version"] == 2
    own = pr.TextClassifier(calibrate=False).fit(TEXTS, LABELS).predict_proba(["cash"])[0]
    assert answer["predictions"][0]["probabilities"] == pytest.approx(dict(zip(["ham", "spam"], own, strict=True)))


def test_a_table_is_learned_row_by_row_and_as_a_whole(client):
    rows, labels = inbox()
    client.create("inbox", "table", calibrate=False)
    client.learn("inbox", rows[:200], labels[:200])
    client.learn("inbox", rows[200:], labels[200:])
    fitted = pr.NaiveBayes(calibrate=False).fit(rows, labels)
    answer = client.predict("inbox", rows[:50])
    found = [[p["probabilities"][c] for c in fitted.classes_] for p in answer["predictions"]]
    np.testing.assert_allclose(found, fitted.predict_proba(rows[:50]), atol=1e-12)
    assert client.get_model("inbox")["columns"]["hour"] == "number"


def test_top_costs_and_abstention(mail):
    assert list(mail.predict("mail", ["cash"], top=1)["predictions"][0]["probabilities"]) == ["spam"]
    never_spam = mail.predict("mail", ["cash"], costs={"ham": {"spam": 1000}})
    assert never_spam["predictions"][0]["label"] == "ham"
    assert mail.predict("mail", ["neither"], certainty=0.9)["predictions"][0]["label"] is None
    with pytest.raises(ServiceError, match="no class 'eggs'"):
        mail.predict("mail", ["cash"], costs={"eggs": {"spam": 2}})


def test_the_ledger_adds_up_to_the_log_odds_of_the_answer(mail):
    explained = mail.explain("mail", ["win cash at noon"])["explanations"][0]
    shares = mail.predict("mail", ["win cash at noon"])["predictions"][0]["probabilities"]
    odds = 10 * np.log10(shares[explained["label"]] / shares[explained["against"]])
    assert explained["decibans"] == pytest.approx(odds, abs=0.01)
    total = explained["prior"] + sum(line["decibans"] for line in explained["evidence"])
    assert total == pytest.approx(odds, abs=0.05)
    place = next(line["places"] for line in explained["evidence"] if line["name"] == "cash")
    assert place == [[4, 8]]


def test_learn_undo_and_forget_answer_ids_and_versions(mail):
    done = mail.learn("mail", ["free money"], ["spam"])
    assert (done["operation"], done["rows"]) == ("learn", 1)
    undone = mail.undo("mail")
    assert mail.get_model("mail")["rows"] == 4
    mail.undo("mail", id=undone["id"])
    assert mail.get_model("mail")["rows"] == 5
    mail.forget("mail", id=done["id"])
    mail.forget("mail", [TEXTS[0]], [LABELS[0]])
    assert mail.get_model("mail")["rows"] == 3
    with pytest.raises(ServiceError) as refused:
        mail.forget("mail", [TEXTS[0]], [LABELS[0]])
    assert refused.value.status == 409


def test_the_history_says_who_did_what_and_forgets_content(mail):
    done = mail.learn("mail", ["my phone number"], ["ham"])
    event = mail.get_history("mail", content=True)["events"][0]
    assert (event["id"], event["operation"], event["teacher"]) == (done["id"], "learn", "local")
    assert event["content"] == ["my phone number"]
    mail.forget("mail", id=done["id"])
    forgotten, learned = mail.get_history("mail", content=True, limit=2)["events"]
    assert (forgotten["operation"], forgotten["target"]) == ("forget", done["id"])
    assert learned["is_erased"]
    assert "content" not in learned
    page = mail.get_history("mail", limit=2)
    assert [e["operation"] for e in mail.get_history("mail", before=page["before"])["events"]] == ["learn", "create"]


def test_a_model_file_goes_out_and_comes_in(mail, tmp_path):
    content = mail.download("mail")
    (tmp_path / "mail.priory").write_bytes(content)
    assert pr.load(tmp_path / "mail.priory").predict(["cash"]).tolist() == ["spam"]
    assert mail.upload("copy", content)["rows"] == 4
    assert mail.download("copy") == content
    mail.forget("copy", [TEXTS[0]], [LABELS[0]])
    assert mail.get_model("copy")["rows"] == 3
    with pytest.raises(ServiceError, match="upload"):
        mail.upload("bad", b"not a model")


def test_a_table_a_parquet_file_and_a_mailbox_are_trained_on(client):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, labels = inbox()
    table = pa.Table.from_pylist(rows).append_column("label", pa.array(labels))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    made = client.upload("inbox", buffer.getvalue(), "application/vnd.apache.parquet", target="label")
    assert (made["rows"], made["kind"]) == (len(rows), "table")
    text = "label,text\nspam,win cash now\nham,lunch at noon\nspam,a cash prize\n"
    assert client.upload("mail", text.encode(), "text/csv", target="label")["kind"] == "text"
    with pytest.raises(ServiceError, match=r"^upload\.csv") as refused:
        client.upload("other", text.encode(), "text/csv", target="nothing")
    assert "/" not in str(refused.value).replace("/v1", "")


def test_scores(mail):
    scores = mail.evaluate("mail", TEXTS * 3, LABELS * 3)
    assert scores["rows"] == 12
    assert scores["scores"]["accuracy"]["value"] == 1.0


def test_lines_of_json_and_mail_are_accepted(raw):
    lines = b'{"text": "cash"}\n{"text": "lunch"}\n'
    headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
    answer = raw.post("/v1/models/mail/predict", content=lines, headers=headers)
    assert [json.loads(line)["label"] for line in answer.text.splitlines()] == ["spam", "ham"]
    mail = b"Subject: cash prize\n\nwin cash now\n"
    headers = {"Content-Type": "message/rfc822"}
    assert (
        raw.post("/v1/models/mail/predict", content=mail, headers=headers).json()["predictions"][0]["label"] == "spam"
    )
    assert raw.post("/v1/models/mail/learn?label=spam", content=mail, headers=headers).json()["rows"] == 1


def test_the_same_key_gives_the_same_answer_and_another_body_is_refused(raw):
    headers, path = {"Idempotency-Key": "abc"}, "/v1/models/mail/learn"
    first = raw.post(path, json={"texts": ["a"], "labels": ["spam"]}, headers=headers)
    again = raw.post(path, json={"texts": ["a"], "labels": ["spam"]}, headers=headers)
    other = raw.post(path, json={"texts": ["b"], "labels": ["spam"]}, headers=headers)
    assert first.json() == again.json()
    assert other.status_code == 409
    assert raw.get("/v1/models/mail").json()["rows"] == 5


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/models/mail/predict", b"{", 400),
        ("POST", "/v1/models/mail/predict", b"\xff", 400),
        ("POST", "/v1/models/mail/predict", b"[" * 100_000, 422),
        ("POST", "/v1/models/mail/predict", b'{"texts": []}', 422),
        ("POST", "/v1/models/mail/predict", b'{"rows": [{}]}', 409),
        ("POST", "/v1/models/mail/predict", b'{"texts": ["a"], "more": 1}', 422),
        ("POST", "/v1/models/mail/predict", b'{"texts": [1]}', 422),
        ("POST", "/v1/models/mail/learn", b'{"texts": ["a"], "labels": ["b", "c"]}', 422),
        ("POST", "/v1/models/mail/learn", b'{"texts": ["a"], "labels": [null]}', 422),
        ("POST", "/v1/models/mail/forget", b"{}", 422),
        ("POST", "/v1/models/mail/undo", b'{"id": 0}', 422),
        ("POST", "/v1/models/none/predict", b'{"texts": ["a"]}', 404),
        ("POST", "/v1/models/..%2f..%2fetc/predict", b'{"texts": ["a"]}', 404),
        ("PUT", "/v1/models/a.b", b'{"kind": "text"}', 422),
        ("PUT", "/v1/models/new", b'{"kind": "image"}', 422),
        ("PUT", "/v1/models/new", b'{"kind": "text", "parameters": {"nothing": 1}}', 422),
        ("PUT", "/v1/models/mail", b'{"kind": "table"}', 409),
        ("GET", "/v1/models/mail/history?limit=x", b"", 422),
        ("GET", "/nothing", b"", 404),
        ("PATCH", "/v1/models/mail", b"", 405),
    ],
)
def test_bad_requests_are_answered_with_a_problem(raw, method, path, body, status):
    headers = {"Content-Type": "application/json"} if body else {}
    answer = raw.request(method, path, content=body or None, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert raw.get("/v1/models/mail").json()["rows"] == 4


@pytest.mark.parametrize(
    ("path", "content_type", "body"),
    [
        ("predict", "application/json", b'{"texts": ["a"], "texts": ["b"]}'),
        ("predict", "application/json", b'{"texts": ["a"], "costs": {"spam": {"ham": 1, "ham": 9}}}'),
        (
            "learn",
            "application/x-ndjson",
            b'{"text": "a", "label": "spam"}\n{"text": "b", "label": "ham", "label": "x"}\n',
        ),
    ],
)
def test_a_key_that_is_given_twice_is_refused(raw, path, content_type, body):
    answer = raw.post(f"/v1/models/mail/{path}", content=body, headers={"Content-Type": content_type})
    assert answer.status_code in (400, 422)
    assert "twice; give every key once" in answer.json()["detail"]
    assert raw.get("/v1/models/mail").json()["rows"] == 4


@pytest.mark.parametrize("cell", ["1_0", "\uff11\uff12", "nan", "inf", "0x10", "1e999"])
def test_a_number_is_what_it_is_in_a_file(client, cell):
    client.create("ages", "table", calibrate=False)
    client.learn("ages", [{"age": age} for age in (3, 5, 40, 50)], ["young", "young", "old", "old"])
    assert client.predict("ages", [{"age": " 4.5e1"}]) == client.predict("ages", [{"age": 45}])
    with pytest.raises(ServiceError, match=r"rows\[0\]: column 'age' holds numbers, not"):
        client.predict("ages", [{"age": cell}])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "/v1/models/other?target=label", 413), ("POST", "/upload?model=other&file=mail.csv&target=label", 200)],
)
def test_a_packed_file_that_is_too_large_is_refused_without_a_path_of_the_server(raw, method, path, status):
    headers = {"Content-Type": "text/csv", "HX-Request": "true"}
    answer = raw.request(method, path, content=gzip.compress(b"a" * (9 << 20)), headers=headers)
    while found := re.search(r'hx-get="(/upload/\w+)"', answer.text):
        answer = raw.get(found[1], headers=headers)
    assert answer.status_code == status
    assert re.search(r"(upload|mail)\.csv:1: the first line has more than 8 MB", answer.text)
    assert "scratch" not in answer.text


def test_a_deletion_is_answered_again_by_its_key(raw):
    headers = {"Idempotency-Key": "once"}
    first = raw.delete("/v1/models/mail", headers=headers)
    assert first.status_code == 200
    assert raw.delete("/v1/models/mail", headers=headers).json() == first.json()
    assert raw.delete("/v1/models/mail").status_code == 404


def test_alive_is_not_ready(tmp_path):
    with run_service(tmp_path) as service, Client(socket=service.socket, retries=0) as client:
        transport = httpx.HTTPTransport(uds=str(service.socket))
        with httpx.Client(transport=transport, base_url="http://localhost") as raw:
            assert raw.get("/health").status_code == 200
            assert raw.get("/ready").status_code == 503
            client.create("mail", calibrate=False)
            assert raw.get("/ready").status_code == 503  # it knows no rows
            client.learn("mail", TEXTS, LABELS)
            assert raw.get("/ready").status_code == 200
            probe = service.store.scratch_folder / "probe"
            probe.symlink_to("/dev/full")
            answer = raw.get("/ready")
            assert answer.status_code == 503
            assert "the disk is full" in answer.json()["detail"]
            assert raw.get("/ready").status_code == 200  # the probe was removed


def test_metrics_split_latency_into_queue_model_and_journal(raw):
    raw.post("/v1/models/mail/predict", json={"texts": ["cash"]})
    text = raw.get("/metrics").text
    for stage in ("queue", "model", "journal"):
        assert f'priory_stage_seconds_count{{stage="{stage}"}}' in text
    assert 'priory_requests_total{route="/v1/models/{name}/predict",status="200"} 1' in text


def test_a_request_that_is_sent_again_is_counted_once_in_the_metrics(raw):
    before = raw.get("/metrics").text
    body = {"texts": ["cash", "noon"], "labels": ["spam", "ham"]}
    for _ in range(2):
        raw.post("/v1/models/mail/learn", json=body, headers={"Idempotency-Key": "once"})
    assert 'priory_rows_total{operation="learn"} 4' in before
    assert 'priory_rows_total{operation="learn"} 6' in raw.get("/metrics").text


def test_a_new_model_says_that_it_knows_nothing(client):
    client.create("mail")
    with pytest.raises(ServiceError, match="knows no rows yet") as refused:
        client.predict("mail", ["cash"])
    assert refused.value.status == 409


def test_what_was_learned_is_there_after_a_restart(tmp_path):
    with connect(tmp_path) as client:
        client.create("mail")
        client.learn("mail", TEXTS, LABELS)
        before = client.predict("mail", ["cash at noon"])
    with connect(tmp_path) as client:
        assert client.predict("mail", ["cash at noon"]) == before
        client.delete("mail")
        assert client.list_models() == []


def test_many_requests_at_once_get_the_answers_of_one(tmp_path):
    with connect(tmp_path) as client, ThreadPoolExecutor(50) as threads:
        client.create("mail", calibrate=False)
        client.learn("mail", TEXTS, LABELS)
        alone = client.predict("mail", ["cash"])
        together = list(threads.map(lambda _: client.predict("mail", ["cash"]), range(50)))
        learned = list(threads.map(lambda i: client.learn("mail", [f"win {i}"], ["spam"]), range(50)))
        model = client.get_model("mail")
    assert all(answer == alone for answer in together)
    assert len({answer["id"] for answer in learned}) == 50
    assert model["rows"] == 54


def test_the_example_in_the_documents_runs(tmp_path):
    page = (ROOT / "docs" / "service.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with run_service(tmp_path, port=0) as service:
        exec(example.replace(":8000", f":{service.port}"), {})
        assert service.store.get("mail").n_rows == 0


def test_every_route_is_in_the_documents_and_in_the_description(raw):
    page = (ROOT / "docs" / "service.md").read_text()
    described = raw.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    for route in ROUTES:
        assert route.method.lower() in described["paths"][route.path]
        assert route.path.replace("{name}", "NAME").rpartition("/")[2] in page
