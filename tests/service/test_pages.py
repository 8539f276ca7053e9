"""The page without a browser: every address, who may use it, and what it changes."""

import re
import time

import httpx
import pandas as pd
import pytest

from priory import NaiveBayes, TextClassifier, load, save
from priory.core.content_hash import hash_content
from priory.errors import ServiceError
from priory.service.changes import LearnRequest
from priory.service.pages.page_routes import PAGE_ROUTES
from priory.service.tokens import TokenList, add_token
from running_service import run_service

TEXTS = ["win cash now", "cash prize from carla", "lunch at noon", "see you at lunch", "carla brings lunch"]
LABELS = ["spam", "spam", "ham", "ham", "ham"]
DAYS = "outlook,wind,hour,play\n" + "".join(
    f"{outlook},{wind},{hour},{play}\n"
    for outlook, wind, hour, play in [
        ("sunny", "weak", 9, "yes"),
        ("sunny", "strong", 10, "yes"),
        ("rain", "strong", 17, "no"),
        ("rain", "weak", 18, "no"),
    ]
)
HOSTILE = "<script>alert(1)</script>\"'&"


def connect_raw(service, **options):
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(service.socket)),
        base_url="http://localhost",
        timeout=60,
        headers={"HX-Request": "true"},
        **options,
    )


@pytest.fixture
def service(tmp_path):
    with run_service(tmp_path) as service:
        yield service


@pytest.fixture
def page(service):
    with connect_raw(service) as page:
        page.put("/v1/models/mail", json={"kind": "text", "parameters": {"calibrate": False}})
        page.post("/v1/models/mail/learn", json={"texts": TEXTS, "labels": LABELS})
        yield page


def read_rows(page, name="mail"):
    return page.get(f"/v1/models/{name}").json()["rows"]


def upload(page, body, **query):
    """Learn a file through the page, and wait until it is learned; the last answer."""
    answer = page.post("/upload", params=query, content=body)
    assert answer.status_code == 200, answer.text
    while found := re.search(r'hx-get="(/upload/\w+)"', answer.text):
        time.sleep(0.01)
        answer = page.get(found[1])
    return answer.text


def read_hidden(html, name):
    return re.search(rf'name="{name}" value="([^"]*)"', html)[1]


@pytest.mark.parametrize(
    "path",
    ["/", "/play"]
    + [
        f"/models/mail{part}"
        for part in ("", "/try", "/queue", "/rows?phrase=lunch", "/audit", "/compare", "/traffic", "/history")
    ],
)
def test_a_page_has_a_title_a_heading_and_a_strict_policy(page, path):
    answer = page.get(path)
    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert len(re.findall("<h1", answer.text)) == 1
    assert "<title>" in answer.text
    assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:|<script>", answer.text)
    hosts = set(re.findall(r'(?:src|href|action)="(\w+:|//)', answer.text))
    assert not hosts


def test_titles_differ(page):
    parts = ("", "/try", "/queue", "/rows", "/audit", "/compare", "/traffic", "/history")
    paths = ["/", "/play", *(f"/models/mail{part}" for part in parts)]
    titles = [re.search("<title>(.*)</title>", page.get(path).text)[1] for path in paths]
    assert len(set(titles)) == len(paths)
    assert titles[-1] == "mail: history · Priory"


def test_static_files_are_served_and_nothing_else(page):
    for name in ("page.css", "page.js", "htmx.min.js", "icon.svg", "figures.css", "course.js", "figure-coin.js"):
        assert page.get(f"/static/{name}").status_code == 200
    for name in ("htmx.LICENSE.txt", "exercises.js", "..%2Frendering.py", "%2e%2e/page_routes.py", "nothing"):
        assert page.get(f"/static/{name}").status_code == 404


def test_a_table_is_uploaded_and_its_rows_can_be_found(page):
    assert "Learned 4 rows of days.csv" in upload(page, DAYS.encode(), file="days.csv", model="days", target="play")
    assert read_rows(page, "days") == 4
    assert "Learned 4 rows" in upload(page, DAYS.encode(), file="days.csv", model="days", target="play")
    assert read_rows(page, "days") == 8
    found = page.get("/models/days/rows/found", params={"phrase": "RAIN"}).text
    assert len(re.findall('type="checkbox"', found)) == 2
    overview = page.get("/models/days").text
    assert "categorical" in overview
    answer = page.post("/models/days/try", data={"cell:outlook": "rain", "cell:hour": "17"}).text
    assert "<h2>no</h2>" in answer


def test_a_mailbox_is_learned_as_one_class(page):
    mail = b"From a@b.c Mon Jan  1 00:00:00 2024\nFrom: a@b.c\nSubject: %s\n\n%s please\n\n"
    assert "Learned 1 row" in upload(page, mail % (b"win", b"win cash"), file="a.mbox", model="box", label="spam")
    assert "Learned 1 row" in upload(page, mail % (b"lunch", b"lunch now"), file="b.mbox", model="box", label="ham")
    assert page.get("/v1/models/box").json()["classes"] == ["ham", "spam"]


def test_a_text_column_may_have_any_name_and_rows_without_a_label_are_counted(page):
    notes = b"note,kind\nwin a lot of cash now,spam\nlunch is at noon today,ham\na note without any label,\n"
    for n_rows in (2, 4):
        answer = upload(page, notes, file="notes.csv", model="notes", target="kind")
        assert "Learned 2 rows of notes.csv, and skipped 1 row without a label" in answer
        assert read_rows(page, "notes") == n_rows
    assert page.get("/v1/models/notes").json()["kind"] == "text"
    added = page.post("/models/notes/queue/add", params={"file": "new.csv"}, content=b"note\nmore cash for you\n")
    assert "more cash for you" in added.text


@pytest.mark.parametrize(
    ("query", "body", "message"),
    [
        ({"file": "days.csv", "target": ""}, DAYS, "which column has the labels?"),
        ({"file": "days.csv", "target": "sport"}, DAYS, "days.csv: has no column &#39;sport&#39;"),
        ({"file": "days.exe", "target": "play"}, DAYS, "files of the kind &#39;.exe&#39; cannot be read"),
        ({"file": "days.csv", "target": "play"}, 'outlook,play\n"open', "days.csv"),
        ({"file": "days.parquet", "target": "play"}, "no parquet", "days.parquet"),
    ],
)
def test_a_bad_upload_says_why_and_leaves_no_model(page, query, body, message):
    answer = upload(page, body.encode(), model="days", **query)
    assert message in answer
    assert ".upload-" not in answer
    assert page.get("/v1/models/days").status_code == 404


def test_a_file_that_breaks_at_its_end_leaves_a_model_as_it_was(page):
    upload(page, DAYS.encode(), file="days.csv", model="days", target="play")
    before = page.get("/v1/models/days").json()
    answer = upload(page, (DAYS + "sunny,weak,noon,yes\n").encode(), file="days.csv", model="days", target="play")
    assert "days.csv:6:3" in answer
    assert page.get("/v1/models/days").json() == before


def test_an_upload_that_fails_halfway_is_taken_back(page, service, monkeypatch):
    upload(page, DAYS.encode(), file="days.csv", model="days", target="play")
    monkeypatch.setattr("priory.service.pages.page_state.choose_batch_size", lambda n_rows: 2)
    submit, n_learned = service.writer.submit, []

    def refuse_the_second(request):
        if isinstance(request, LearnRequest):
            n_learned.append(request)
            if len(n_learned) % 2 == 0:
                raise ServiceError(507, "the disk is full")
        return submit(request)

    monkeypatch.setattr(service.writer, "submit", refuse_the_second)
    for name, n_rows in (("days", 4), ("more", None)):
        assert "the disk is full" in upload(page, DAYS.encode(), file="days.csv", model=name, target="play")
        assert page.get(f"/v1/models/{name}").json().get("rows") == n_rows


def test_a_table_is_not_learned_by_a_model_of_texts(page):
    page.put("/v1/models/empty", json={"kind": "text"})
    for name in ("empty", "mail"):
        before = page.get(f"/v1/models/{name}").json()
        assert 'class="notice bad"' in upload(page, DAYS.encode(), file="days.csv", model=name, target="play")
        assert page.get(f"/v1/models/{name}").json() == before


def test_an_upload_needs_a_name_and_a_file(page):
    assert "the name of a model" in page.post("/upload", params={"model": "a/b", "file": "x.csv"}, content=b"x").text
    assert "not empty" in page.post("/upload", params={"model": "ab", "file": "x.csv"}).text


def test_an_answer_shows_probabilities_marked_words_and_a_ledger_that_sums_up(page):
    answer = page.post("/models/mail/try", data={"text": "cash at lunch"}).text
    told = page.post("/v1/models/mail/predict", json={"texts": ["cash at lunch"]}).json()["predictions"][0]
    assert f"<h2>{told['label']}</h2>" in answer
    assert f"{100 * told['probability']:.1f} %" in answer
    assert re.search(r'<mark class="(for|against)-\d">cash</mark>', answer)
    total = page.post("/v1/models/mail/explain", json={"texts": ["cash at lunch"]}).json()["explanations"][0]
    assert f"{total['decibans']:+.1f}" in answer.split("total")[-1]


def test_a_mistake_is_corrected_and_undone(page):
    text = {"text": "free lunch voucher"}
    before = page.post("/models/mail/try", data=text).text
    learned = page.post("/models/mail/try/learn", data=text | {"label": "spam"}).text
    assert "Learned as spam." in learned
    assert "The model has 6 rows now; it had 5." in learned
    assert read_rows(page) == 6
    undone = page.post("/models/mail/try/undo", data=text | {"label": "spam", "id": read_hidden(learned, "id")}).text
    assert "Undone" in undone
    assert read_rows(page) == 5
    shares = r'<td class="number">([\d.<> ]+%)</td>'
    assert re.findall(shares, undone)[-2:] == re.findall(shares, before)[-2:]


def test_a_new_class_can_be_named(page):
    page.post("/models/mail/try/learn", data={"text": "minutes of the meeting", "label": "work"})
    assert page.get("/v1/models/mail").json()["classes"] == ["ham", "spam", "work"]


def queue_texts(page, texts, model="mail"):
    return page.post(f"/models/{model}/queue/add", params={"file": "typed.csv"}, content=texts)


def test_the_queue_asks_for_the_row_whose_label_tells_most_first(page):
    page.post(
        "/models/mail/queue/add",
        params={"file": "typed.csv"},
        content="win cash now prize\n\ncash lunch\nlunch noon see you",
    )
    first = page.get("/models/mail/queue/row").text
    assert "Row 1 of 3" in first
    assert "cash lunch" in first
    form = {"item": read_hidden(first, "item"), "at": "0", "label": "ham"}
    second = page.post("/models/mail/queue/label", data=form).text
    assert "Learned as ham." in second
    assert "Row 1 of 2" in second
    assert read_rows(page) == 6
    assert page.post("/models/mail/queue/label", data=form).status_code == 409
    back = page.post("/models/mail/queue/undo").text
    assert "cash lunch" in back
    assert "of 3" in back
    assert read_rows(page) == 5
    assert page.post("/models/mail/queue/undo").status_code == 409


def test_the_queue_is_learned_without_labels_until_a_row_gets_its_own(page):
    page.put("/v1/models/some", json={"kind": "text", "parameters": {"unlabelled": True}})
    labelled = {
        "texts": ["win cash", "cash prize", "lunch noon", "noon soup"],
        "labels": ["spam", "spam", "ham", "ham"],
    }
    page.post("/v1/models/some/learn", json=labelled)
    queue_texts(page, "cash now\nlunch now", "some")
    assert "2 texts without label" in page.post("/models/some/queue/learn").text
    assert page.post("/models/some/queue/learn").status_code == 422
    assert "without label" in page.get("/models/some/rows", params={"phrase": "cash now"}).text
    shown = page.get("/models/some/queue/row").text
    page.post("/models/some/queue/label", data={"item": read_hidden(shown, "item"), "at": "0", "label": "ham"})
    assert page.get("/v1/models/some").json()["class_rows"] == [3, 2]
    own, other = ("cash now", "lunch now") if "cash now" in shown else ("lunch now", "cash now")
    for text, status in ((own, 409), (other, 200)):
        body = {"texts": [text], "labels": [None]}
        assert page.post("/v1/models/some/forget", json=body).status_code == status


def test_texts_without_label_are_learned_forgotten_and_undone(page):
    page.put("/v1/models/some", json={"kind": "text", "parameters": {"unlabelled": True}})
    page.post("/v1/models/some/learn", json={"texts": ["win cash", "lunch noon"], "labels": ["spam", "ham"]})
    for undo in ("forget", "undo"):
        learned = page.post("/v1/models/some/learn", json={"texts": ["cash", "soup"], "labels": [None, "ham"]})
        assert learned.json()["rows"] == 2
        body = {"texts": ["cash", "soup"], "labels": [None, "ham"]} if undo == "forget" else {}
        assert page.post(f"/v1/models/some/{undo}", json=body).status_code == 200
        assert page.get("/v1/models/some").json()["rows"] == 2
    refused = page.post("/v1/models/mail/learn", json={"texts": ["cash"], "labels": [None]})
    assert refused.status_code == 422
    assert "label" in refused.json()["detail"]


def test_a_label_that_was_forgotten_elsewhere_cannot_be_undone_and_does_not_block_the_queue(page):
    queue_texts(page, "one cash\ntwo lunch")
    for _ in range(2):
        shown = page.get("/models/mail/queue/row").text
        page.post("/models/mail/queue/label", data={"item": read_hidden(shown, "item"), "at": "0", "label": "ham"})
    learned = page.get("/v1/models/mail").json()["version"]
    page.post("/v1/models/mail/forget", json={"id": learned})
    assert page.post("/models/mail/queue/undo").status_code == 409
    assert "The last label is undone." in page.post("/models/mail/queue/undo").text
    assert read_rows(page) == 5


def test_rows_of_a_table_wait_in_the_queue(page):
    upload(page, DAYS.encode(), file="days.csv", model="days", target="play")
    added = page.post("/models/days/queue/add", params={"file": "new.csv"}, content=b"outlook,wind,hour\nrain,weak,9\n")
    assert "Added 1 row." in added.text
    assert "<dd>rain</dd>" in added.text
    wrong = page.post("/models/days/queue/add", params={"file": "new.csv"}, content=b"colour\nred\n")
    assert wrong.status_code == 422
    assert "new.csv" in wrong.text


def test_a_person_is_found_and_forgotten(service, page):
    found = page.get("/models/mail/rows/found", params={"phrase": "Carla"}).text
    digests = re.findall(r'name="row" value="(\w+)"', found)
    assert len(digests) == 2
    answer = page.post("/models/mail/rows/forget", data={"row": digests, "phrase": "Carla"}).text
    assert "Forgotten and erased: 2 rows." in answer
    assert "No learned row contains “Carla”" in answer
    assert read_rows(page) == 3
    folder = service.settings.folder
    assert not [path for path in folder.rglob("*") if path.is_file() and b"carla" in path.read_bytes()]
    assert page.post("/models/mail/rows/forget", data={"row": digests}).status_code == 422


def test_whatever_holds_the_words_of_a_person_is_found_and_erased(service, page):
    """Rows whose learning was undone, labels, other Unicode forms, keys, and rows that wait for a label."""
    texts = ["Zoë\N{COMBINING CIRCUMFLEX ACCENT}\n Ångström called", "from \uff3a\uff4f\xeb\u0302 ÅNGSTRÖM", "hello"]
    for place, (text, label) in enumerate(zip(texts, ["ham", "ham", "Zoe\u0308\u0302 Ångström"], strict=True)):
        body = {"texts": [text], "labels": [label]}
        page.post("/v1/models/mail/learn", json=body, headers={"Idempotency-Key": f"angstrom-{place}"})
    undone = page.get("/v1/models/mail").json()["version"] - 1
    page.post("/models/mail/history/undo", data={"id": undone})
    queue_texts(page, "zoë\u0302 ångström once more")
    found = page.get("/models/mail/rows/found", params={"phrase": "zoë\u0302 ångström"}).text
    digests, waiting = (re.findall(rf'name="{name}" value="(\w+)"', found) for name in ("row", "waiting"))
    assert (len(digests), len(waiting)) == (3, 1)
    assert f"change {undone}, undone" in found
    form = {"row": digests, "waiting": waiting, "phrase": "zoë\u0302 ångström"}
    answer = page.post("/models/mail/rows/forget", data=form).text
    assert "Forgotten and erased: 4 rows. The model knows 5 rows" in answer
    assert "No learned row contains" in answer
    for path in ("history", "queue"):
        assert "ngstr" not in page.get(f"/models/mail/{path}").text.casefold()
    folder = service.settings.folder
    assert not [path for path in folder.rglob("*") if path.is_file() and b"ngstr" in path.read_bytes().lower()]


def test_a_row_that_was_learned_twice_is_forgotten_twice(page):
    page.post("/v1/models/mail/learn", json={"texts": [TEXTS[1]], "labels": ["spam"]})
    found = page.get("/models/mail/rows/found", params={"phrase": "prize"}).text
    answer = page.post("/models/mail/rows/forget", data={"row": re.findall(r'name="row" value="(\w+)"', found)}).text
    assert "Forgotten and erased: 2 rows." in answer


def test_a_wrong_label_is_corrected(page):
    found = page.get("/models/mail/rows/found", params={"phrase": "noon"}).text
    (digest,) = re.findall(r'name="row" value="(\w+)"', found)
    answer = page.post("/models/mail/rows/relabel", data={"relabel": digest, "label": "spam", "phrase": "noon"}).text
    assert "learned as spam instead of ham" in answer
    assert page.get("/v1/models/mail").json()["class_rows"] == [2, 3]


def test_history_undoes_and_forgets(page):
    learned = page.post("/v1/models/mail/learn", json={"texts": ["cash"], "labels": ["spam"]}).json()["id"]
    assert f"Change {learned} is undone." in page.post("/models/mail/history/undo", data={"id": learned}).text
    assert read_rows(page) == 5
    assert page.post("/models/mail/history/undo", data={"id": learned}).status_code == 409
    assert "Forgotten: 1 row of change" in page.post("/models/mail/history/forget", data={"id": learned}).text
    assert "undone by" in page.get("/models/mail/history").text


def test_the_history_shows_one_kind_of_change_or_those_of_one_teacher(page):
    learned = page.post("/v1/models/mail/learn", json={"texts": ["cash"], "labels": ["spam"]}).json()["id"]
    undone = page.post("/v1/models/mail/undo", json={"id": learned}).json()["id"]

    def list_changes(**query):
        return re.findall(
            r'<td class="number">(\d+)</td><td class="time">', page.get("/models/mail/history", params=query).text
        )

    assert list_changes(operation="undo") == [str(undone)]
    assert str(undone) not in list_changes(operation="learn")
    assert list_changes(teacher="nobody") == []
    assert list_changes(teacher="local") == list_changes()


def compare(page, content, model="mail", other="short", file="typed.csv", **query):
    return page.post(f"/models/{model}/compare", params={"other": other, "file": file, **query}, content=content)


def test_two_models_answer_the_same_rows(page):
    page.put("/v1/models/short", json={"kind": "text", "parameters": {"calibrate": False}})
    assert compare(page, "cash").status_code == 409  # it has learned nothing
    page.post("/v1/models/short/learn", json={"texts": TEXTS[:3], "labels": LABELS[:3]})
    typed = compare(page, "cash prize\n\nlunch from carla\n").text
    assert "2 rows" in typed
    assert "log loss" not in typed
    table = "text,label\n" + "".join(f"{text},{label}\n" for text, label in zip(TEXTS * 2, LABELS * 2, strict=True))
    for file in ("typed.csv", "new.csv"):
        scored = compare(page, table, file=file, target="label").text
        assert "accuracy mail: 100.0% 72.2% to 100.0% short: 80.0%" in re.sub("(<[^>]*>)+", " ", scored).replace(
            "  ", " "
        )
        assert re.search(r'<td class="number">5</td>.*<b>ham</b> carla brings lunch', scored)
    assert read_rows(page) == 5


@pytest.mark.parametrize(
    ("content", "query", "status", "message"),
    [
        ("", {"other": "mail"}, 422, "choose a file that is not empty, or type rows"),
        ("cash", {"other": "nothing"}, 404, "no model of this name"),
        ("outlook\nrain\n", {"other": "days"}, 422, "do not answer the same rows"),
        ("text\ncash\n", {"other": "mail", "target": "label"}, 422, "has no column &#39;label&#39;"),
        ("text,label\ncash,egg\n", {"other": "mail", "target": "label"}, 422, "egg"),
        ("colour\nred\n", {"model": "days", "other": "days"}, 422, "has no column"),
    ],
)
def test_rows_that_cannot_be_compared_say_why(page, content, query, status, message):
    upload(page, DAYS.encode(), file="days.csv", model="days", target="play")
    answer = compare(page, content, **query)
    assert (answer.status_code, message in answer.text) == (status, True), answer.text


def test_traffic_counts_requests_by_outcome_and_answers_by_class(page, service, monkeypatch):
    assert "Nobody has asked" not in page.get("/models/mail/traffic").text  # it was created and taught
    for _ in range(2):
        page.post("/v1/models/mail/predict", json={"texts": ["cash", "lunch", "noon"]})
    page.post("/v1/models/mail/predict", json={"rows": [{}]})
    shown = re.sub(r"<[^>]*>", "", page.get("/models/mail/traffic").text)
    assert "1 refused0 failedham 4, spam 2" in shown
    later = time.time() + 3600 * 47
    monkeypatch.setattr(time, "time", lambda: later)
    page.get("/models/mail")
    assert page.get("/models/mail/traffic").text.count('<td class="time">') == 2
    page.post("/v1/models/mail/forget", json={"texts": TEXTS[:2], "labels": LABELS[:2]})
    assert "spam" not in page.get("/models/mail/traffic").text  # a class without rows is not named
    monkeypatch.setattr(time, "time", lambda: later + 3600 * 10)
    page.get("/models/mail")
    assert page.get("/models/mail/traffic").text.count('<td class="time">') == 2


def test_the_rows_that_a_model_file_keeps_are_found_and_forgotten(page, tmp_path):
    rows = [{"name": f"anna {place}", "age": age} for age, place in enumerate(["oslo", "rome", "bern", "york"] * 3)]
    model = NaiveBayes(memory=100).fit(pd.DataFrame([*rows, rows[0]]), ["a", "b"] * 6 + ["a"])
    save(model, tmp_path / "guests.priory")
    upload(page, (tmp_path / "guests.priory").read_bytes(), file="guests.priory", model="guests")
    page.post("/v1/models/guests/learn", json={"rows": [rows[4]], "labels": ["a"]})
    found = page.get("/models/guests/rows/found", params={"phrase": "Oslo anna"}).text
    digests = re.findall(r'name="row" value="(\w+)"', found)
    assert len(digests) == 3  # the row that was learned here too is shown once
    done = page.post("/models/guests/rows/forget", data={"row": digests, "phrase": "oslo"}).text
    assert "Forgotten and erased: 5 rows." in done
    assert "No learned row contains" in done
    assert read_rows(page, "guests") == 9
    left = NaiveBayes(memory=100).fit(pd.DataFrame(rows), ["a", "b"] * 6)
    left.forget(pd.DataFrame([rows[0], rows[4], rows[8]]), ["a", "a", "a"])
    (tmp_path / "left.priory").write_bytes(page.get("/v1/models/guests/file").content)
    assert hash_content(load(tmp_path / "left.priory").statistics_) == hash_content(left.statistics_)


def test_the_words_of_texts_in_a_model_file_are_found(page, tmp_path):
    save(TextClassifier().fit(TEXTS, LABELS), tmp_path / "mail.priory")
    upload(page, (tmp_path / "mail.priory").read_bytes(), file="mail.priory", model="old")
    found = page.get("/models/old/rows/found", params={"phrase": "lunch Carla"}).text
    assert "words in the model file" in found
    assert found.count("disabled") == 1


def test_a_model_file_becomes_a_model(page):
    file = page.get("/v1/models/mail/file").content
    assert "Learned 5 rows of mail.priory" in upload(page, file, file="mail.priory", model="copy")
    asked = {"texts": ["cash for lunch"]}
    answers = [page.post(f"/v1/models/{name}/predict", json=asked).json()["predictions"] for name in ("mail", "copy")]
    assert answers[0] == answers[1]
    assert "there is a model of this name" in upload(page, file, file="mail.priory", model="copy")
    assert "mail.priory" in upload(page, file[:-1], file="mail.priory", model="broken")
    assert page.get("/v1/models/broken").status_code == 404


def test_the_overview_shows_scores_figures_and_evidence(page):
    page.put("/v1/models/notes", json={"kind": "text"})
    texts = [f"{word} number {i} {'cash' if i % 2 else 'lunch'}" for i, word in enumerate(["win", "eat"] * 20)]
    page.post(
        "/v1/models/notes/learn", json={"texts": texts, "labels": ["spam" if "cash" in t else "ham" for t in texts]}
    )
    scores = page.get("/models/notes/scores").text
    assert "accuracy" in scores
    assert scores.count("<figure>") == 2
    assert "data:" not in scores
    assert " style=" not in scores
    assert "cash" in scores
    assert page.get("/models/notes/scores").text == scores


def test_the_audit_reports_rows_that_occur_twice(page):
    texts = [f"the same long message about lunch at noon number {i // 2}" for i in range(60)]
    page.post("/v1/models/mail/learn", json={"texts": texts, "labels": [LABELS[i % 3] for i in range(60)]})
    assert 'class="finding' in page.post("/models/mail/audit").text


def test_what_is_typed_stays_text(page):
    page.post("/models/mail/try/learn", data={"text": HOSTILE + " lunch", "label": HOSTILE})
    queue_texts(page, HOSTILE)
    answers = [
        page.post("/models/mail/try", data={"text": HOSTILE}),
        page.post("/models/mail/try/undo", data={"text": HOSTILE, "label": HOSTILE, "id": "x"}),
        *(page.get(f"/models/mail{part}") for part in ("", "/try", "/queue", "/history")),
        page.get("/models/mail/rows", params={"phrase": HOSTILE}),
        page.get("/models/mail/rows", params={"phrase": "lunch"}),
        page.get("/"),
        page.get("/models/" + HOSTILE.replace("/", "")),
        page.post("/upload", params={"model": "m", "file": HOSTILE + ".csv", "target": HOSTILE}, content=b"a,b\n1,2\n"),
    ]
    for answer in answers:
        assert "<script>alert" not in answer.text
        assert answer.status_code != 500


@pytest.mark.parametrize(
    "given", ["", "x", "-1", "9" * 40, "\0", "\ud800".encode("utf-8", "surrogatepass"), "{{7919*7919}}", "../.."]
)
def test_hostile_fields_are_refused_without_a_fault(page, given):
    names = ("text", "label", "id", "item", "at", "row", "relabel", "phrase", "texts", "name", "token", "cell:a")
    for route in PAGE_ROUTES:
        path = route.path.format(name="mail", job="x")
        if "delete" not in path:
            fields = dict.fromkeys(names, given)
            answer = (
                page.post(path, data=fields)
                if route.method == "POST"
                else page.get(
                    path,
                    params=dict.fromkeys(
                        ("before", "at", "phrase", "drawn", "bag", "a", "b", "outlook", "random"), given
                    ),
                )
            )
            assert answer.status_code < 500, (path, answer.text)
            assert str(7919 * 7919) not in answer.text


def test_changes_must_come_from_the_page_itself(service):
    with connect_raw(service) as page:
        del page.headers["HX-Request"]
        for route in PAGE_ROUTES:
            if route.method == "POST":
                answer = page.post(route.path.format(name="mail"))
                assert answer.status_code == 403, route.path
        page.headers["HX-Request"] = "true"
        foreign = {"Origin": "http://evil.example"}
        assert page.post("/models/mail/try", data={"text": "x"}, headers=foreign).status_code == 403
        assert page.get("/", headers={"Host": "evil.example"}).status_code == 421


def test_a_token_is_entered_once_and_says_what_may_be_done(tmp_path):
    path = tmp_path / "tokens"
    made = {scope: add_token(path, f"the-{scope}", scope) for scope in ("read", "learn", "admin")}
    with run_service(tmp_path, tokens=TokenList(path)) as service:
        with connect_raw(service) as page:
            assert page.get("/models/mail/try").headers["hx-redirect"] == "/sign-in"
            del page.headers["HX-Request"]
            assert page.get("/").headers["location"] == "/sign-in"
            page.headers["HX-Request"] = "true"
            assert page.post("/sign-in", data={"token": "priory_wrong"}).status_code == 401
            for scope, upload_status, delete_status in (("read", 403, 403), ("learn", 403, 403), ("admin", 200, 404)):
                answer = page.post("/sign-in", data={"token": made[scope]})
                cookie = answer.headers["set-cookie"]
                assert "HttpOnly" in cookie
                assert "samesite=strict" in cookie.lower()
                assert f"the-{scope}" in page.get("/").text
                query = {"model": "days", "file": "days.csv", "target": "play"}
                assert page.post("/upload", params=query, content=DAYS).status_code == upload_status
                assert page.post("/models/nothing/delete").status_code == delete_status
            page.post("/sign-out")
            assert page.get("/models/mail/try").status_code == 401
        assert made["admin"] not in path.read_text()


def test_a_model_is_deleted_by_its_name(page):
    assert page.post("/models/mail/delete", data={"name": "other"}).status_code == 422
    assert page.post("/models/mail/delete", data={"name": "mail"}).headers["hx-redirect"] == "/"
    assert page.get("/models/mail").status_code == 404


def test_play_has_the_figures_of_the_course(page):
    answer = page.get("/play").text
    figures = re.findall(r'data-figure="([\w-]+)"', answer)
    assert len(figures) == 7
    for name in figures:
        assert "export function mount" in page.get(f"/static/figure-{name}.js").text


def test_a_model_says_what_its_answers_reveal(page):
    assert "keeps no rows" in page.get("/models/mail/privacy").text  # it has no corrections
    texts = [f"{word} number {i}" for i in range(20) for word in ("cash", "lunch")]
    page.put("/v1/models/letters", json={"kind": "text"})
    page.post("/v1/models/letters/learn", json={"texts": texts, "labels": ["spam", "ham"] * 20})
    assert 'hx-get="/models/letters/privacy"' in page.get("/models/letters").text
    found = page.get("/models/letters/privacy").text
    assert re.search(r"ROC curve of this attack is 0\.\d+ \[.*\] \(0.5 is chance\)", found)
    assert "can read the 40 rows in it" in found
