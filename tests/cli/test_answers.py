"""What models answer: predict, explain, evaluate, audit, report, inspect."""

import json
from pathlib import Path

import pytest

from priory import inbox
from priory.sources.writers import unescape_formula
from shell import TEXTS, rows_of, write


def test_predict_keeps_the_columns_and_adds_three(mail, run):
    write("new.csv", ["id", "text"], [["007", "claim your free prize"], ["8", "=1+1"], ["9", ""]])
    code, out, err = run("predict", "mail.priory", "new.csv", "-o", "out.csv")
    assert (code, out) == (0, "")
    assert "the model does not use the columns 'id'" in err
    first, formula, empty = rows_of("out.csv")
    assert list(first) == ["id", "text", "label", "probability", "certainty"]
    assert (first["id"], first["label"]) == ("007", "spam")
    assert 0.8 < float(first["probability"]) < 7 / 8  # of six texts
    assert (formula["text"], unescape_formula(formula["text"])) == ("'=1+1", "=1+1")
    assert float(empty["probability"]) == 0.5
    run("predict", "mail.priory", "new.csv", "-o", "raw.csv", "--raw")
    assert rows_of("raw.csv")[1]["text"] == "=1+1"


@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl", "out.parquet", "out.arrow"])
def test_predict_writes_what_the_readers_read(mail, name, run):
    code, _, _ = run("predict", "mail.priory", "mail.csv", "-o", name)
    assert code == 0
    code, out, _ = run("predict", "mail.priory", name, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [row["predicted_label"] for row in found] == [label for label, _ in TEXTS]
    assert [row["predicted_predicted_label"] for row in found] == [label for label, _ in TEXTS]


def test_predict_leaves_the_label_empty_below_the_threshold(mail, run):
    write("new.csv", ["text"], [["claim your free prize"], ["xyzzy"]])
    _, out, _ = run("predict", "mail.priory", "new.csv", "--threshold", "0.8", "--json")
    assert [json.loads(line)["label"] for line in out.splitlines()] == ["spam", None]


def test_columns_in_another_order_and_values_never_seen(table, run):
    messages, _ = inbox()
    write(
        "new.csv",
        ["links", "text", "hour", "sender"],
        [[m["links"], m["text"], m["hour"], "martian"] for m in messages[:3]],
    )
    code, out, err = run("predict", "inbox.priory", "new.csv", "--json")
    assert code == 0
    assert len(out.splitlines()) == 3
    unknown, summary = err.splitlines()
    assert unknown == "priory: 3 cells with a label that the model has never seen; it says nothing about the class"
    assert summary.startswith("priory: 3 rows: ")


def test_explain_shows_the_ledger_of_a_text(mail, run):
    _, out, _ = run("explain", "mail.priory", "claim now \x1b[31m lunch")
    assert out.startswith("spam against ham, corrected by tempering\n")
    assert "claim" in out
    assert "\x1b" not in out
    _, out, _ = run("explain", "mail.priory", "--json", "claim", "xyzzy")
    told, silent = json.loads(out)
    assert told["evidence"][0]["name"] == "claim"
    assert told["evidence"][0]["decibans"] > 0
    assert silent["no_evidence"]
    assert silent["evidence"] == []


def test_explain_takes_columns_or_rows_of_a_file(table, run):
    code, out, _ = run("explain", "inbox.priory", "sender=stranger", "hour=3", "links=4")
    assert code == 0
    assert out.startswith("spam against")
    code, out, _ = run("explain", "inbox.priory", "--from", "inbox.csv", "--row", "2", "--row", "300")
    assert out.count(" against ") == 2
    assert run("explain", "inbox.priory", "--from", "inbox.csv", "--row", "999")[0] == 3
    assert run("explain", "inbox.priory", "colour=red")[2] == (
        "priory: the model has no column 'colour' (did you mean 'hour'?); "
        "its columns are 'sender', 'hour', 'links', 'text'\n"
    )


def test_evaluate_compares_with_the_labels(mail, run):
    _, out, _ = run("evaluate", "mail.priory", "mail.csv")
    assert out.startswith("6 rows ")
    assert "base rate" in out
    _, out, _ = run("evaluate", "mail.priory", "mail.csv", "--json")
    assert json.loads(out)["rows"] == 6
    write("other.csv", ["label", "text"], [["eggs", "claim"]])
    code, _, err = run("evaluate", "mail.priory", "other.csv")
    assert (code, err) == (3, "priory: the model has no class 'eggs'; it has 'ham', 'spam'\n")


def test_a_class_that_is_not_in_the_test_rows_has_no_scores(mail, run):
    write("ham.csv", ["label", "text"], [row for row in TEXTS * 2 if row[0] == "ham"])
    code, out, _ = run("evaluate", "mail.priory", "ham.csv", "--json")
    assert code == 0
    assert "NaN" not in out
    code, out, _ = run("evaluate", "mail.priory", "ham.csv")
    assert code == 0
    assert "undefined" in out


def test_inspect_tells_what_a_file_would_reveal(mail, run):
    code, out, _ = run("inspect", "mail.priory")
    assert code == 0
    assert "reveals" in out
    assert json.loads(run("inspect", "mail.priory", "--json")[1])["model"] == "TextClassifier"


def test_inspect_shows_the_tables_of_what_was_learned(mail, run):
    code, out, _ = run("inspect", "mail.priory", "--tables")
    assert code == 0
    assert "P(word | class), binary" in out
    assert "3/6 = 0.5" in out
    entries = json.loads(run("inspect", "mail.priory", "--tables", "--json")[1])
    assert {"column", "value", "label", "count", "n", "estimate", "formula"} == set(entries[0])


def test_audit_says_what_leaks_and_exits_with_it(run):
    rows = [["ab"[i % 3 // 2], i % 3 // 2, i * 7 % 50] for i in range(300)]
    write("leak.csv", ["label", "code", "age"], rows)
    code, out, _ = run("audit", "leak.csv", "--target", "label")
    assert code == 3
    assert "code" in out
    code, out, _ = run("audit", "leak.csv", "--target", "label", "--ignore", "code", "--json")
    assert code == 0
    assert "high" not in {finding["severity"] for finding in json.loads(out)["findings"]}
    code, out, _ = run("train", "leak.csv", "--target", "label")
    assert code == 0
    assert "leakage audit" in out
    assert "high: " in out


@pytest.mark.slow
def test_report_is_one_page(mail, table, run):
    pytest.importorskip("jinja2")
    code, out, _ = run("report", "inbox.priory", "inbox.csv", "-o", "page.html")
    assert (code, out) == (0, "wrote page.html\n")
    assert "</html>" in Path("page.html").read_text()
    arguments = ["train", "mail.csv", "--target", "label", "--force", "--no-audit", "--report", "mail.html"]
    assert "wrote mail.priory and mail.html" in run(*arguments)[1]
    assert "</html>" in Path("mail.html").read_text()
    assert run(*arguments[:-3], "--report", "there/mail.html")[0] == 5


@pytest.mark.slow
def test_a_report_takes_rows_for_new_ones_unless_they_are_learned(table, run):
    pytest.importorskip("jinja2")
    messages, labels = inbox()
    rows = [[*message.values(), label] for message, label in zip(messages, labels, strict=True)]
    write("train.csv", [*messages[0], "label"], rows[:200])
    write("test.csv", [*messages[0], "label"], rows[200:])
    assert run("train", "train.csv", "--target", "label", "--no-audit")[0] == 0
    assert run("report", "train.priory", "test.csv", "-o", "test.html")[:2] == (0, "wrote test.html\n")
    scores = json.loads(run("evaluate", "train.priory", "test.csv", "--json")[1])["scores"]
    page = Path("test.html").read_text()
    assert "108 rows, none of them learned by the model" in page
    assert f"<b>{scores['accuracy']['value']:.1%}</b>" in page
    assert f"<b>{scores['log_loss']['value']:.3f}</b>" in page
    assert "<title>test.csv: predicting label: report</title>" in page
    assert "<td>NaiveBayes train.priory</td>" in page
    assert run("report", "train.priory", "train.csv", "--learned", "-o", "train.html")[0] == 0
    scores = json.loads(run("evaluate", "train.priory", "train.csv", "--learned", "--json")[1])["scores"]
    page = Path("train.html").read_text()
    assert "200 rows, each judged by the model without it" in page
    assert f"<b>{scores['log_loss']['value']:.3f}</b>" in page
    write("other.csv", [*messages[0], "label"], [[*messages[0].values(), "eggs"]])
    assert run("report", "train.priory", "other.csv", "-o", "other.html")[2] == (
        "priory: the model has no class 'eggs'; it has 'normal', 'spam', 'urgent'\n"
    )


def test_the_first_entry_of_a_corrected_ledger_is_the_average_row(table, run):
    assert "average row" not in run("explain", "inbox.priory", "links=4")[1]  # trained with --plain
    assert json.loads(run("explain", "inbox.priory", "links=4", "--json")[1])[0]["prior_name"] == "prior"
    run("train", "inbox.csv", "--target", "label", "--no-audit", "--force")
    out = run("explain", "inbox.priory", "links=4")[1]
    assert "\naverage row  " in out
    answer = json.loads(run("explain", "inbox.priory", "links=4", "--json")[1])[0]
    assert answer["prior_name"] == "average row"
    assert "tempering" in answer["corrections"]
    assert "average row" in run("explain", "--help")[1]


@pytest.mark.parametrize("rows", [[("a", "1"), ("b", "9")], [("a", "one two three"), ("b", "four five six")]])
def test_two_rows_are_not_scored(rows, run):
    write("two.csv", ["label", "x"], rows)
    code, out, _ = run("train", "two.csv", "--target", "label", "--no-audit")
    assert code == 0
    assert "  Too few rows to judge the model: 2 rows are scored, and at least 6 are needed.\n" in out
    assert "accuracy" not in out
    answer = json.loads(run("evaluate", "two.priory", "two.csv", "--json")[1])["scores"]
    assert (answer["accuracy"], answer["log_loss"], answer["enough_rows"]) == (None, None, False)
