"""New texts are scored from files and folders: each file that is a text is one row."""

import csv
import io
import json
from pathlib import Path

import pytest

import priory
from shell import GOOD, TEXTS, write

NOTES = {"a.txt": "claim your free cash prize now", "b.txt": "lunch at the station tomorrow?", "c": "see you at noon"}


@pytest.fixture
def notes(mail):
    """A folder of notes, next to a model of texts whose column is called ``text``."""
    Path("notes").mkdir()
    for name, text in NOTES.items():
        Path("notes", name).write_text(text, encoding="utf-8")


def predict(run, *arguments):
    code, out, err = run("predict", *arguments)
    assert code == 0, err
    return list(csv.DictReader(io.StringIO(out)))


def test_a_folder_of_texts_is_predicted(notes, run):
    found = predict(run, "mail.priory", "notes")
    model = priory.load("mail.priory")
    assert [row["label"] for row in found] == model.predict(list(NOTES.values())).tolist()
    assert [row["path"] for row in found] == [f"notes/{name}" for name in NOTES]
    assert [row["text"] for row in found] == list(NOTES.values())
    assert list(found[0]) == ["path", "text", "label", "probability", "certainty"]


@pytest.mark.parametrize("name", NOTES)
def test_one_text_is_predicted(notes, run, name):
    [row] = predict(run, "mail.priory", f"notes/{name}")
    assert (row["path"], row["text"]) == (f"notes/{name}", NOTES[name])
    assert row["label"] == priory.load("mail.priory").predict([NOTES[name]])[0]


def test_several_texts_and_patterns_are_predicted(notes, run):
    assert len(predict(run, "mail.priory", "notes/a.txt", "notes/b.txt")) == 2
    assert len(predict(run, "mail.priory", "notes/*.txt")) == 2


def test_a_column_of_another_name_takes_the_texts(notes, run):
    write("sms.csv", ["label", "sms"], TEXTS)
    assert run("train", "sms.csv", "--target", "label", "--plain")[0] == 0
    found = predict(run, "sms.priory", "notes")
    assert [row["sms"] for row in found] == list(NOTES.values())


def test_a_table_with_another_suffix_is_still_a_table(notes, run):
    Path("table.txt").write_text(GOOD)
    assert [row["text"] for row in predict(run, "mail.priory", "table.txt")] == [text for _, text in TEXTS]
    Path("lines.txt").write_text("".join(json.dumps({"text": text}) + "\n" for _, text in TEXTS))
    assert len(predict(run, "mail.priory", "lines.txt")) == len(TEXTS)


MESSAGE = "Return-Path: <a@b.example>\nSubject: news {}\n\nfree cash now\n"


@pytest.mark.parametrize("files", [["a.eml", "b.eml"], ["inbox.mbox"], ["cur/1", "new/2"]])
def test_the_names_of_messages_mailboxes_and_maildirs_are_no_labels(notes, run, files):
    for name in ("box/cur", "box/new") if "cur/1" in files else ("box",):
        Path(name).mkdir(parents=True)
    for number, name in enumerate(files):
        start = "From a@b.example Mon Jan  1 00:00:00 2024\n" if name.endswith("mbox") else ""
        Path("box", name).write_text(start + MESSAGE.format(number))
    found = predict(run, "mail.priory", "box", "--format", "mail")
    assert len(found) == len(files)
    assert list(found[0]) == ["path", "text", "label", "probability", "certainty"]
    assert {row["label"] for row in found} == {"spam"}


def test_folders_for_each_class_keep_their_labels(notes, run):
    for label, text in TEXTS:
        Path("tree", label).mkdir(parents=True, exist_ok=True)
        Path("tree", label, f"{text[:5]}.txt").write_text(text)
    found = predict(run, "mail.priory", "tree")
    assert {(row["label"], row["text"]) for row in found} == set(TEXTS)
    assert all(row["predicted_label"] in ("ham", "spam") for row in found)
    Path("tree", "new.txt").write_text("free cash")
    found = predict(run, "mail.priory", "tree")
    assert len(found) == len(TEXTS) + 1
    assert "predicted_label" not in found[0]


def test_an_empty_text_has_no_evidence(notes, run):
    Path("empty.txt").write_text("")
    [row] = predict(run, "mail.priory", "empty.txt")
    assert row["text"] == ""


def test_a_text_from_a_file_is_explained(notes, run):
    code, out, _ = run("explain", "mail.priory", "--from", "notes/a.txt")
    assert code == 0
    assert out == run("explain", "mail.priory", NOTES["a.txt"])[1]
    code, out, _ = run("explain", "mail.priory", "--from", "notes", "--row", "2")
    assert out == run("explain", "mail.priory", NOTES["b.txt"])[1]


def test_the_library_predicts_and_explains_texts_from_files(notes, here):
    table = priory.workflows.predict("mail.priory", "notes").to_table()
    assert table["text"].to_pylist() == list(NOTES.values())
    assert len(priory.workflows.explain("mail.priory", Path("notes", "b.txt"))) == 1


def test_a_model_of_a_table_still_wants_a_table(table, run):
    Path("note.txt").write_text("lunch at noon")
    code, _, err = run("predict", "inbox.priory", "note.txt")
    assert code == 3
    assert "which the model needs" in err


def test_a_text_that_is_not_utf8_is_refused_with_its_line(notes, run):
    Path("latin.txt").write_bytes("one\ncaf\xe9".encode("latin-1"))
    assert run("predict", "mail.priory", "latin.txt")[::2] == (
        3,
        "priory: latin.txt:2: byte 7 is not UTF-8; use --encoding latin-1 (or the right one), or --errors replace\n",
    )
    [row] = predict(run, "mail.priory", "latin.txt", "--encoding", "latin-1")
    assert row["text"] == "one\ncafé"


def test_training_still_takes_a_txt_file_for_a_table(run):
    Path("table.txt").write_text(GOOD)
    assert run("train", "table.txt", "--target", "label", "--plain")[0] == 0
