"""The command line: what a person types, what they get, and what goes wrong in one line with an exit code."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import priory
from priory.cli import main
from priory.data import inbox
from priory.sources.output import restored
from priory.text import TextClassifier

PRIORY = [sys.executable, "-m", "priory"]
TEXTS = [
    ("ham", "lunch at noon then, my friend?"),
    ("spam", "win cash now, claim your prize"),
    ("ham", "see you at the station tomorrow"),
    ("spam", "your cash prize is waiting, claim now"),
    ("ham", "are we still on for lunch tomorrow?"),
    ("spam", "claim the prize now, free cash"),
]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIORY_DEBUG", raising=False)
    return tmp_path


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def mail():
    write("mail.csv", ["label", "text"], TEXTS)
    assert main(["train", "mail.csv", "--target", "label", "--no-audit"]) == 0


@pytest.fixture
def table():
    messages, labels = inbox()
    write("inbox.csv", [*messages[0], "label"], [[*m.values(), y] for m, y in zip(messages, labels, strict=True)])
    assert main(["train", "inbox.csv", "--target", "label", "--plain"]) == 0


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    capsys.readouterr()
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


# -- what each command does -------------------------------------------------------------------------------------------


def test_train_says_what_a_person_wants_to_know(mail, capsys):
    code, out, err = run(capsys, "train", "mail.csv", "--target", "label", "--force")
    assert (code, err) == (0, "")
    assert out.startswith("6 rows, 2 classes: ham 3, spam 3\ncolumns, by the family that explains them best\n")
    for part in (
        "  text, 25 different words: text\n",
        "leave-one-out",
        "accuracy",
        "log loss",
        "base rate",
        "calibration",
        "spam: ",
        "wrote mail.priory",
    ):
        assert part in out
    assert "\x1b" not in out


def test_train_answers_in_json(mail, capsys):
    _, out, _ = run(capsys, "train", "mail.csv", "--target", "label", "--force", "--json")
    answer = json.loads(out)
    assert (answer["rows"], answer["classes"], answer["sampled"]) == (6, {"ham": 3.0, "spam": 3.0}, 6)
    assert answer["model"] == "mail.priory"
    assert answer["scores"]["accuracy"]


def test_a_trained_model_is_the_one_of_the_library(mail):
    texts, labels = [text for _, text in TEXTS], [label for label, _ in TEXTS]
    trained = priory.load("mail.priory")
    again = TextClassifier().fit(texts, labels)  # too few rows to say anything about themselves: no corrections
    assert trained.vocabulary_ == again.vocabulary_
    np.testing.assert_allclose(trained.predict_proba(texts), again.predict_proba(texts))


def test_predict_keeps_the_columns_and_adds_three(mail, capsys):
    write("new.csv", ["id", "text"], [["007", "claim your free prize"], ["8", "=1+1"], ["9", ""]])
    code, out, err = run(capsys, "predict", "mail.priory", "new.csv", "-o", "out.csv")
    assert (code, out) == (0, "")
    assert "columns the model does not know are left out: 'id'" in err
    first, formula, empty = rows_of("out.csv")
    assert list(first) == ["id", "text", "label", "probability", "certainty"]
    assert (first["id"], first["label"]) == ("007", "spam")
    assert float(first["probability"]) > 0.9
    assert (formula["text"], restored(formula["text"])) == ("'=1+1", "=1+1")
    assert float(empty["probability"]) == 0.5
    run(capsys, "predict", "mail.priory", "new.csv", "-o", "raw.csv", "--raw")
    assert rows_of("raw.csv")[1]["text"] == "=1+1"


@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl", "out.parquet", "out.arrow"])
def test_predict_writes_what_the_readers_read(mail, name, capsys):
    code, _, _ = run(capsys, "predict", "mail.priory", "mail.csv", "-o", name)
    assert code == 0
    code, out, _ = run(capsys, "predict", "mail.priory", name, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [row["predicted_label"] for row in found] == [label for label, _ in TEXTS]
    assert [row["predicted_predicted_label"] for row in found] == [label for label, _ in TEXTS]


def test_predict_leaves_the_label_empty_below_the_threshold(mail, capsys):
    write("new.csv", ["text"], [["claim your free prize"], ["xyzzy"]])
    _, out, _ = run(capsys, "predict", "mail.priory", "new.csv", "--threshold", "0.8", "--json")
    assert [json.loads(line)["label"] for line in out.splitlines()] == ["spam", None]


def test_explain_shows_the_ledger_of_a_text(mail, capsys):
    _, out, _ = run(capsys, "explain", "mail.priory", "claim now \x1b[31m lunch")
    assert out.startswith("spam against ham\n")
    assert "claim" in out
    assert "\x1b" not in out
    _, out, _ = run(capsys, "explain", "mail.priory", "--json", "claim", "xyzzy")
    told, silent = json.loads(out)
    assert told["evidence"][0]["name"] == "claim"
    assert told["evidence"][0]["decibans"] > 0
    assert silent["no_evidence"]
    assert silent["evidence"] == []


def test_explain_takes_columns_or_rows_of_a_file(table, capsys):
    code, out, _ = run(capsys, "explain", "inbox.priory", "sender=stranger", "hour=3", "links=4")
    assert code == 0
    assert out.startswith("spam against")
    code, out, _ = run(capsys, "explain", "inbox.priory", "--from", "inbox.csv", "--row", "2", "--row", "300")
    assert out.count(" against ") == 2
    assert run(capsys, "explain", "inbox.priory", "--from", "inbox.csv", "--row", "999")[0] == 3
    assert run(capsys, "explain", "inbox.priory", "colour=red")[2] == (
        "priory: 'colour=red' is not COLUMN=VALUE; the model's columns are 'sender', 'hour', 'links', 'text'\n"
    )


def test_evaluate_compares_with_the_labels(mail, capsys):
    _, out, _ = run(capsys, "evaluate", "mail.priory", "mail.csv")
    assert out.startswith("6 rows ")
    assert "base rate" in out
    _, out, _ = run(capsys, "evaluate", "mail.priory", "mail.csv", "--json")
    assert json.loads(out)["rows"] == 6
    write("other.csv", ["label", "text"], [["eggs", "claim"]])
    code, _, err = run(capsys, "evaluate", "mail.priory", "other.csv")
    assert (code, err) == (3, "priory: the model knows no class 'eggs'; it knows ['ham', 'spam']\n")


def test_a_class_that_is_not_in_the_test_rows_has_no_scores(mail, capsys):
    write("ham.csv", ["label", "text"], [row for row in TEXTS if row[0] == "ham"])
    code, out, _ = run(capsys, "evaluate", "mail.priory", "ham.csv", "--json")
    assert code == 0
    assert "NaN" not in out
    code, out, _ = run(capsys, "evaluate", "mail.priory", "ham.csv")
    assert code == 0
    assert "undefined" in out


def test_learn_and_forget_are_exact(mail, capsys):
    before = priory.load("mail.priory")
    write("more.csv", ["label", "text"], [["eggs", "a new word"], ["ham", "lunch again"]])
    code, out, _ = run(capsys, "learn", "mail.priory", "more.csv")
    assert (code, out) == (0, "2 rows learned; mail.priory now knows 8\n")
    assert priory.load("mail.priory").classes_.tolist() == ["eggs", "ham", "spam"]
    code, out, _ = run(capsys, "forget", "mail.priory", "more.csv", "--json")
    assert json.loads(out) == {"model": "mail.priory", "forgotten": 2, "rows": 6.0}
    after = priory.load("mail.priory")
    assert after.vocabulary_ == before.vocabulary_
    np.testing.assert_array_equal(after.counts_[:, 1:], before.counts_)


def test_a_model_that_forgot_is_made_honest_again_on_rows_it_knows(capsys):
    messages, labels = inbox()
    rows = [[y, m["text"]] for m, y in zip(messages, labels, strict=True)]
    write("all.csv", ["label", "text"], rows)
    write("gone.csv", ["label", "text"], rows[:100])
    write("kept.csv", ["label", "text"], rows[100:])
    main(["train", "all.csv", "--target", "label", "--no-audit"])
    assert priory.load("all.priory").corrections_.names == ("tempering",)
    _, _, err = run(capsys, "forget", "all.priory", "gone.csv")
    assert err == "priory: no longer corrected by what rows said of it (tempering); --refresh FILE does it again\n"
    run(capsys, "learn", "all.priory", "gone.csv")
    code, _, err = run(capsys, "forget", "all.priory", "gone.csv", "--refresh", "kept.csv")
    assert (code, err) == (0, "")
    again, texts = priory.load("all.priory"), [text for _, text in rows[:100]]
    assert again.stale_ == ()
    never = TextClassifier().fit([text for _, text in rows[100:]], [y for y, _ in rows[100:]])
    np.testing.assert_allclose(again.predict_proba(texts), never.predict_proba(texts), atol=1e-6)


def test_what_was_never_learned_is_not_forgotten_and_nothing_else_is(mail, capsys):
    whole = Path("mail.priory").read_bytes()
    write("more.csv", ["label", "text"], [*TEXTS[:1], ["ham", "never seen before"]])
    code, _, err = run(capsys, "forget", "mail.priory", "more.csv")
    assert code == 3
    assert "only what was learned can be forgotten" in err
    assert Path("mail.priory").read_bytes() == whole


def test_merge_is_learning_both(mail, capsys):
    write("a.csv", ["label", "text"], TEXTS[:4])
    write("b.csv", ["label", "text"], TEXTS[4:])
    for name in "ab":
        main(["train", f"{name}.csv", "--target", "label", "--plain"])
    code, out, _ = run(capsys, "merge", "a.priory", "b.priory", "-o", "c.priory")
    assert (code, out) == (0, "wrote c.priory: 6 rows\n")
    both, whole = priory.load("c.priory"), priory.load("mail.priory")
    assert both.vocabulary_ == whole.vocabulary_
    np.testing.assert_array_equal(both.counts_, whole.counts_)


def test_inspect_tells_what_a_file_would_reveal(mail, capsys):
    code, out, _ = run(capsys, "inspect", "mail.priory")
    assert code == 0
    assert "reveals" in out
    assert json.loads(run(capsys, "inspect", "mail.priory", "--json")[1])["model"] == "TextClassifier"


def test_columns_can_be_said(table, capsys):
    code, out, _ = run(
        capsys, *["train", "inbox.csv", "--target", "label", "--force", "--plain", "--json"],
        *["--type", "hour=label", "--type", "links=poisson", "--ignore", "sender", "--text", "text"],
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["columns"] == {"hour": "categorical", "links": "poisson", "text": "text"}


def test_a_tree_of_texts_needs_no_target(capsys):
    for label, text in TEXTS:
        folder = Path("tree") / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(os.listdir(folder))}.txt").write_text(text)
    assert run(capsys, "train", "tree", "--no-audit")[0] == 0
    _, out, _ = run(capsys, "predict", "tree.priory", "tree", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert all(row["label"] == row["predicted_label"] for row in rows)
    assert rows[0]["path"] == "tree/ham/0.txt"


def test_completion_is_printed(capsys):
    assert "_PRIORY_COMPLETE=bash_complete" in run(capsys, "completion", "bash")[1]


@pytest.mark.parametrize(
    "command",
    ["train", "predict", "explain", "evaluate", "audit", "report", "learn", "forget", "merge", "inspect", "demo"],
)
def test_every_command_has_help_with_an_example(command, capsys):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"Example: priory {command}" in out


def test_audit_says_what_leaks_and_exits_with_it(capsys):
    rows = [["ab"[i % 3 // 2], i % 3 // 2, i * 7 % 50] for i in range(300)]
    write("leak.csv", ["label", "code", "age"], rows)
    code, out, _ = run(capsys, "audit", "leak.csv", "--target", "label")
    assert code == 3
    assert "code" in out
    code, out, _ = run(capsys, "audit", "leak.csv", "--target", "label", "--ignore", "code", "--json")
    assert code == 0
    assert "high" not in {finding["severity"] for finding in json.loads(out)["findings"]}
    code, out, _ = run(capsys, "train", "leak.csv", "--target", "label")
    assert code == 0
    assert "leakage audit" in out
    assert "high: " in out


def test_report_is_one_page(mail, table, capsys):
    pytest.importorskip("jinja2")
    code, out, _ = run(capsys, "report", "inbox.priory", "inbox.csv", "-o", "page.html")
    assert (code, out) == (0, "wrote page.html\n")
    assert "</html>" in Path("page.html").read_text()
    arguments = ["train", "mail.csv", "--target", "label", "--force", "--no-audit", "--report", "mail.html"]
    assert "wrote mail.priory and mail.html" in run(capsys, *arguments)[1]
    assert "</html>" in Path("mail.html").read_text()
    assert run(capsys, *arguments[:-3], "--report", "there/mail.html")[0] == 5


def test_the_tour_runs(capsys):
    pytest.importorskip("jinja2")
    code, out, _ = run(capsys, "demo")
    assert code == 0
    assert "The report is priory-demo/inbox.html" in out
    assert Path("priory-demo/inbox.html").exists()
    assert len(rows_of("priory-demo/labelled.csv")) == 569


# -- what goes wrong --------------------------------------------------------------------------------------------------

GOOD = "label,text\n" + "".join(f'{label},"{text}"\n' for label, text in TEXTS)
WRONG = {
    "no file": ("train nothing.csv --target label", 5, "nothing.csv: no such file or directory"),
    "an empty file": ("train empty.csv --target label", 3, "empty.csv: is empty; give a file with rows"),
    "a folder of nothing": (
        "train nowhere --target label",
        3,
        "nowhere: holds no documents; give a folder for each class, or an mbox",
    ),
    "a pattern of nothing": (
        "train *.none --target label",
        3,
        "*.none: holds no files; name a file, a folder or a pattern",
    ),
    "no target": ("train good.csv", 3, "which column is to be learned? use --target with one of 'label', 'text'"),
    "no such target": ("train good.csv --target y", 3, "good.csv: has no column 'y'; it has 'label', 'text'"),
    "no such column": (
        "train good.csv --target label --ignore id",
        3,
        "good.csv: has no column 'id'; it has 'label', 'text'",
    ),
    "only a target": (
        "train good.csv --target label --ignore text",
        3,
        "good.csv: has no column beside the target; there is nothing to learn from",
    ),
    "one class": ("train one.csv --target label", 3, "one.csv: only one class 'ham'; a choice needs two"),
    "a blank label": (
        "train blank.csv --target label",
        3,
        "blank.csv:4:1: has no label; give it one, or use --skip-unlabelled",
    ),
    "numbers to predict": (
        "train price.csv --target label",
        3,
        "the target 'label' looks like a number to predict; bin it, or pass --labels-as-text",
    ),
    "a column without a name": (
        "train noname.csv --target label",
        3,
        "noname.csv:1:2: the column has no name; name it, or leave it out with --ignore ''",
    ),
    "all empty": ("train void.csv --target label", 3, "void.csv: every cell is empty; there is nothing to learn from"),
    "the output is there": (
        "train good.csv --target label -o there.priory",
        5,
        "there.priory: is there already; use --force to replace it",
    ),
    "the output is the input": (
        "train good.csv --target label -o good.csv --force",
        5,
        "good.csv: is an input; it is never overwritten: name another file",
    ),
    "no folder for the output": (
        "train good.csv --target label -o no/x.priory",
        5,
        "no: there is no such folder; make it first",
    ),
    "the output is a folder": (
        "train good.csv --target label -o nowhere --force",
        5,
        "nowhere: is a folder; name a file",
    ),
    "standard input without a name": (
        "train - --target label",
        2,
        "what is read from standard input has no name; use -o model.priory",
    ),
    "alpha": (
        "train good.csv --target label --alpha -1",
        2,
        "Invalid value for --alpha: -1.0 is not allowed; use a number from 0.",
    ),
    "alpha nan": (
        "train good.csv --target label --alpha nan",
        2,
        "Invalid value for --alpha: nan is not allowed; use a number from 0.",
    ),
    "alpha infinite": (
        "train good.csv --target label --alpha 1e400",
        2,
        "Invalid value for --alpha: inf is not allowed; use a number from 0.",
    ),
    "a type": (
        "train good.csv --target label --type text=prose",
        2,
        "Invalid value for --type: 'text=prose' is not COLUMN=TYPE; a type is one of numeric, label, text, bernoulli, "
        "categorical, gamma, gaussian, histogram, poisson.",
    ),
    "a delimiter": (
        "train good.csv --target label --delimiter ,,",
        2,
        "Invalid value for --delimiter: ',,' is not one ASCII character.",
    ),
    "an encoding": (
        "train good.csv --target label --encoding klingon",
        3,
        "encoding 'klingon' is not known; try utf-8, utf-16 or latin-1",
    ),
    "an option": ("train good.csv --colour", 2, None),
    "a command": ("tarin good.csv", 2, None),
    "a threshold": (
        "predict there.priory good.csv --threshold 1.5",
        2,
        "Invalid value for --threshold: 1.5 is not allowed; use a number from 0 to 1.",
    ),
    "no model": ("predict nothing.priory good.csv", 5, "nothing.priory: no such file or directory"),
    "learning into nothing": (
        "learn nothing.priory good.csv",
        5,
        "nothing.priory: there is no such model; make one with priory train",
    ),
    "a folder as data": ("predict there.priory nowhere", 4, None),
    "no model in it": ("predict good.csv good.csv", 4, None),
    "an unknown output": (
        "predict mail.priory good.csv -o out.xls",
        3,
        "out.xls: what kind of file is it to be? use one of .csv, .tsv, .jsonl, .parquet, .arrow",
    ),
    "a missing column": (
        "predict mail.priory one_column.csv",
        3,
        "one_column.csv: has no column 'text', which the model needs; it has 'label'",
    ),
    "nothing to explain": (
        "explain mail.priory",
        2,
        "give what is to be explained: a text, COLUMN=VALUE pairs, or --from FILE",
    ),
    "one model to merge": (
        "merge mail.priory -o x.priory",
        2,
        "give two models or more, and a file for their sum with -o",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_one_line_and_a_code(name, mail, capsys):
    files = {
        "good.csv": GOOD,
        "empty.csv": "",
        "one.csv": "label,text\nham,x\nham,y\n",
        "blank.csv": 'label,text\nham,"x\ny"\n,y\n',
        "price.csv": "label,x\n" + "".join(f"{i / 7:.3f},{i}\n" for i in range(50)),
        "noname.csv": "label,\na,b\nb,c\n",
        "void.csv": "label,x\na,\nb,\n",
        "there.priory": "no model",
        "one_column.csv": "label\nham\n",
    }
    for path, content in files.items():
        Path(path).write_text(content)
    Path("nowhere").mkdir()
    arguments, expected, message = WRONG[name]
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    code, _, err = run(capsys, *arguments.split())
    assert code == expected, err
    assert err.startswith("priory: ")
    assert err.count("\n") == 1
    if message is not None:
        assert err == f"priory: {message}\n"
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_a_file_that_may_not_be_read(mail, capsys):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    Path("mail.csv").chmod(0)
    assert run(capsys, "predict", "mail.priory", "mail.csv")[::2] == (5, "priory: mail.csv: permission denied\n")


def test_a_column_that_is_empty_is_left_out_and_said(capsys):
    write("a.csv", ["label", "x", "e"], [["a", 1, ""], ["b", 2, ""], ["a", 1.5, ""]])
    code, out, err = run(capsys, "train", "a.csv", "--target", "label", "--json", "--no-audit")
    assert code == 0
    assert "priory: column 'e' is empty and was left out\n" in err
    assert json.loads(out)["left_out"] == ["e"]


def test_repairs_are_counted(capsys):
    Path("a.csv").write_text("label,x\na,1\nb,2\nb,3,4\na\n,5\na,2\n")
    code, _, err = run(
        capsys, "train", "a.csv", "--target", "label", "--ragged", "skip", "--skip-unlabelled", "--no-audit"
    )
    assert code == 0
    assert "2 rows that did not fit were padded or left out, as asked" in err
    assert "1 rows without a label were left out, as asked" in err


def test_text_in_a_column_of_numbers_at_predict(table, capsys):
    write("new.csv", ["sender", "hour", "links", "text"], [["friend", "3", "0", "hi"], ["friend", "noon", "0", "hi"]])
    code, _, err = run(capsys, "predict", "inbox.priory", "new.csv")
    assert code == 3
    assert err == "priory: new.csv:3:2: 'noon' is not a number; mend it, or use --missing noon or --type hour=label\n"


def test_columns_in_another_order_and_values_never_seen(table, capsys):
    messages, _ = inbox()
    write(
        "new.csv",
        ["links", "text", "hour", "sender"],
        [[m["links"], m["text"], m["hour"], "martian"] for m in messages[:3]],
    )
    code, out, err = run(capsys, "predict", "inbox.priory", "new.csv", "--json")
    assert code == 0
    assert len(out.splitlines()) == 3
    assert err == "priory: 3 cells hold labels the model has never seen; they were smoothed\n"


def test_an_unexpected_error_is_one_line_too(mail, capsys, monkeypatch):
    import priory.cli.data

    def broken(path, **_):
        raise ZeroDivisionError("surprise\nand more")

    monkeypatch.setattr(priory.cli.data, "load", broken)
    code, _, err = run(capsys, "predict", "mail.priory", "mail.csv")
    assert code == 1
    assert err == "priory: ZeroDivisionError: surprise and more; set PRIORY_DEBUG=1 to see where, and report it\n"


# -- as a process -----------------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy():
    code = "import sys, priory.cli; print(sorted({'numpy', 'sklearn', 'pyarrow', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_standard_streams(mail):
    data = "text\nclaim your prize\n"
    done = subprocess.run([*PRIORY, "predict", "mail.priory", "-"], input=data, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].startswith('"claim your prize","spam",')
    trained = subprocess.run(
        [*PRIORY, "train", "-", "--target", "label", "-o", "in.priory", "--plain"], input=GOOD, text=True, env=bare()
    )
    assert trained.returncode == 0
    assert priory.load("in.priory").class_count_.tolist() == [3.0, 3.0]


def bare():
    """An environment with next to nothing: locale C, no home, an odd time zone."""
    return {"LC_ALL": "C", "PATH": os.environ["PATH"], "TZ": "Mars/Olympus", "PYTHONHASHSEED": "1"}


def test_closed_standard_input_is_said(mail):
    done = subprocess.run(
        f"{sys.executable} -m priory predict mail.priory - <&-", shell=True, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert done.stderr == "priory: -: standard input is closed; give a file\n"


def test_a_closed_pipe_is_quiet(mail):
    write("many.csv", ["text"], [["claim your prize now"]] * 50_000)
    done = subprocess.run(
        f"{sys.executable} -m priory predict mail.priory many.csv | head -2; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "141"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(mail):
    done = subprocess.run(
        [*PRIORY, "predict", "mail.priory", "mail.csv", "-o", "/dev/full"], capture_output=True, text=True
    )
    assert done.returncode == 5
    assert done.stderr.startswith("priory: ")
    assert "no space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_ctrl_c_leaves_everything_as_it_was(mail):
    os.mkfifo("endless.csv")
    old = Path("mail.priory").read_bytes()
    learning = subprocess.Popen(
        [*PRIORY, "learn", "mail.priory", "endless.csv"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with open("endless.csv", "w") as pipe:
        pipe.write("label,text\n" + "ham,lunch\n" * 10)
        pipe.flush()
        time.sleep(1.0)
        learning.send_signal(signal.SIGINT)
        _, err = learning.communicate(timeout=30)
    assert learning.returncode == 130
    assert err == "priory: interrupted; nothing was changed\n"
    assert Path("mail.priory").read_bytes() == old
    assert sorted(path.name for path in Path().iterdir()) == ["endless.csv", "mail.csv", "mail.priory"]
