"""A backup is one moment of a running service; what was forgotten after it does not come back with it."""

import io
import json
import sqlite3
import subprocess
import sys
import threading

import httpx
import msgspec
import pytest

import priory
from priory.errors import DataError, ModelFileError, PrioryError
from priory.service import backups
from priory.service.client import Client
from priory.service.journal import Journal
from running_service import connect, run_service

TEXTS = [f"win prize number{i} now" for i in range(20)] + [f"lunch at noon number{i}" for i in range(20)]
LABELS = ["spam"] * 20 + ["ham"] * 20
SECRET = "the secret of Rosalind"


def teach(client):
    client.create("mail", kind="text")
    client.learn("mail", TEXTS, LABELS)
    client.learn("mail", [SECRET], ["spam"])


def predict(client, *texts):
    return client.predict("mail", list(texts))["predictions"]


def answers(folder, *texts):
    with connect(folder) as client:
        return predict(client, *texts)


def refreshed_answers(folder):
    """What the snapshot of a stopped service answers, with corrections of what it knows and no history."""
    [snapshot] = (folder / "models").glob("*.priory")
    return priory.load(snapshot).refresh().predict_proba(["win a prize", "lunch"]).tolist()


def test_a_restored_backup_answers_as_the_service_did(tmp_path):
    with connect(tmp_path) as client:
        teach(client)
        backups.back_up(tmp_path / "data", tmp_path / "backup.tar")
        before = predict(client, "win a prize", "lunch")
        client.learn("mail", ["later"], ["ham"])
    assert backups.restore(tmp_path / "backup.tar", tmp_path / "new" / "data", backups.Erasures()) == 0
    assert answers(tmp_path / "new", "win a prize", "lunch") == before


def test_a_restore_erases_again_what_was_forgotten_since(tmp_path):
    with connect(tmp_path) as client:
        teach(client)
        client.create("other", kind="text")
        backups.back_up(tmp_path / "data", tmp_path / "backup.tar")
        assert SECRET.encode() in (tmp_path / "backup.tar").read_bytes()
        client.forget("mail", [SECRET], ["spam"])
        client.delete("other")
        listed = backups.list_erasures(tmp_path / "data")
        after = predict(client, "win a prize", "secret", "Rosalind")
    assert b"secret" not in msgspec.json.encode(listed)
    assert backups.restore(tmp_path / "backup.tar", tmp_path / "new" / "data", listed) == 1
    assert answers(tmp_path / "new", "win a prize", "secret", "Rosalind") == after
    with connect(tmp_path / "new") as client:
        assert [model["name"] for model in msgspec.to_builtins(client.list_models())] == ["mail"]
    for path in (tmp_path / "new" / "data").rglob("*"):
        assert not path.is_file() or b"Rosalind" not in path.read_bytes(), path


def test_backups_made_while_rows_are_learned_and_forgotten_are_of_one_moment(tmp_path):
    with connect(tmp_path) as client:
        teach(client)
        stop, archives = threading.Event(), []

        def back_up_often():
            while not stop.is_set():
                archives.append(tmp_path / f"{len(archives)}.tar")
                backups.back_up(tmp_path / "data", archives[-1])

        thread = threading.Thread(target=back_up_often)
        thread.start()
        for i in range(10):
            client.learn("mail", [f"passing thought{i}"], ["ham"])
            client.forget("mail", [f"passing thought{i}"], ["ham"])
        stop.set()
        thread.join()
        listed = backups.list_erasures(tmp_path / "data")
    expected = refreshed_answers(tmp_path / "data")
    for archive in {archives[0], archives[len(archives) // 2], archives[-1]}:
        folder = tmp_path / archive.stem / "data"
        backups.restore(archive, folder, listed)
        assert refreshed_answers(folder) == expected


def test_what_is_not_a_backup_or_not_its_list_is_refused(tmp_path):
    with connect(tmp_path) as client:
        teach(client)
        backups.back_up(tmp_path / "data", tmp_path / "backup.tar")
    with pytest.raises(DataError, match="is not empty; restore into a new folder"):
        backups.restore(tmp_path / "backup.tar", tmp_path / "data", backups.Erasures())
    foreign = backups.Erasures([backups.ErasedRow(3, 0, 1.0)])
    with pytest.raises(DataError, match="of another service"):
        backups.restore(tmp_path / "backup.tar", tmp_path / "new", foreign)
    (tmp_path / "no.tar").write_bytes(b"no archive")
    with pytest.raises(ModelFileError, match=r"no\.tar: cannot be read"):
        backups.restore(tmp_path / "no.tar", tmp_path / "newer", backups.Erasures())


def test_a_folder_of_the_version_before_is_upgraded(tmp_path):
    with connect(tmp_path) as client:
        teach(client)
        before = predict(client, "win a prize", "lunch")
    connection = sqlite3.connect(tmp_path / "data" / "journal.sqlite")
    connection.executescript("DROP TABLE erased_row; PRAGMA user_version = 2;")
    connection.close()
    with pytest.raises(ModelFileError, match="back it up, then run priory serve with --upgrade"):
        Journal(tmp_path / "data" / "journal.sqlite")
    assert backups.upgrade(tmp_path / "data") == 2
    assert answers(tmp_path, "win a prize", "lunch") == before


def test_the_command_backs_up_lists_and_restores(tmp_path):
    with connect(tmp_path) as client:
        teach(client)
        client.forget("mail", [SECRET], ["spam"])

    def serve(*options):
        command = [sys.executable, "-m", "priory", "serve", *map(str, options)]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert serve("--data", "data", "--backup", "b.tar") == "wrote b.tar\n"
    listed = serve("--data", "data", "--list-erased")
    assert [row[:2] for row in json.loads(listed)["rows"]] == [[3, 0]]
    (tmp_path / "erased.json").write_text(listed)
    assert (
        serve("--data", "new", "--restore", "b.tar", "--erased", "erased.json") == "restored new; erased 0 rows again\n"
    )


def test_requests_are_logged_and_counted_by_model(tmp_path):
    log = io.StringIO()
    with run_service(tmp_path, access_log=log) as service:
        with Client(socket=service.socket, retries=0) as client:
            teach(client)
            client.predict("mail", ["win"])
            with pytest.raises(PrioryError):
                client.predict("unknown", ["win"])
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(service.socket)), base_url="http://localhost"
        ) as client:
            metrics = client.get("/metrics").text
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["method"], line["model"], line["status"]) for line in lines][-3:] == [
        ("POST", "mail", 200),
        ("POST", "unknown", 404),
        ("GET", None, 200),
    ]
    assert "win" not in log.getvalue()
    assert 'priory_model_requests_total{model="mail",outcome="ok"} 4' in metrics
    assert 'priory_model_requests_total{model="unknown",outcome="refused"} 1' in metrics
    named = {line.split()[2] for line in metrics.splitlines() if line.startswith("# HELP")}
    assert named == {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")}
    assert {"process_resident_memory_bytes", "priory_disk_free_bytes", "priory_journal_bytes"} <= named
