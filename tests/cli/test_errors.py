"""What goes wrong is one line and an exit code, and changes nothing."""

import gzip
import os
import re
from pathlib import Path

import pytest

from priory.sources.document_files import DocumentReader
from shell import GOOD, TEXTS, write

WRONG = {
    "no file": ("train nothing.csv --target label", 5, "nothing.csv: no such file or directory"),
    "an empty file": ("train empty.csv --target label", 3, "empty.csv: is empty; give a file with rows"),
    "a folder of nothing": (
        "train nowhere --target label",
        3,
        "nowhere: contains no documents; give one folder for each class, or an mbox",
    ),
    "a pattern of nothing": (
        "train *.none --target label",
        3,
        "*.none: matches no files; give a file, a folder or a pattern",
    ),
    "no target": (
        "train good.csv",
        3,
        "which column is the target? use --target text, if it is the last one; the columns are 'label', 'text'",
    ),
    "no such target": ("train good.csv --target y", 3, "good.csv: has no column 'y'; it has 'label', 'text'"),
    "no such column": (
        "train good.csv --target label --ignore id",
        3,
        "good.csv: has no column 'id'; it has 'label', 'text'",
    ),
    "only a target": (
        "train good.csv --target label --ignore text",
        3,
        "good.csv: has no column besides the target; there is nothing to learn from",
    ),
    "one class": (
        "train one.csv --target label",
        3,
        "one.csv: all rows have the label 'ham'; give rows of two or more classes",
    ),
    "a blank label": (
        "train blank.csv --target label",
        3,
        "blank.csv:4:1: has no label; give it one, or use --skip-unlabelled",
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
        "there.priory: already exists; use --force to replace it",
    ),
    "the output is the input": (
        "train good.csv --target label -o good.csv --force",
        5,
        "good.csv: is an input, which is never overwritten; give another file",
    ),
    "no folder for the output": (
        "train good.csv --target label -o no/x.priory",
        5,
        "no: no such folder; create it first",
    ),
    "the output is a folder": (
        "train good.csv --target label -o nowhere --force",
        5,
        "nowhere: is a folder; give a file",
    ),
    "standard input without a name": (
        "train - --target label",
        2,
        "standard input has no name for the model file; use -o model.priory",
    ),
    "alpha": (
        "train good.csv --target label --alpha -1",
        2,
        "Invalid value for --alpha: -1.0 is not allowed; use a number that is 0 or more.",
    ),
    "alpha nan": (
        "train good.csv --target label --alpha nan",
        2,
        "Invalid value for --alpha: nan is not allowed; use a number that is 0 or more.",
    ),
    "alpha infinite": (
        "train good.csv --target label --alpha 1e400",
        2,
        "Invalid value for --alpha: inf is not allowed; use a number that is 0 or more.",
    ),
    "a type": (
        "train good.csv --target label --type text=prose",
        2,
        "Invalid value for --type: 'text=prose' is not COLUMN=TYPE; a type is one of numeric, label, text, date, "
        "bernoulli, categorical, gamma, gaussian, histogram, poisson.",
    ),
    "a delimiter": (
        "train good.csv --target label --delimiter ,,",
        2,
        "Invalid value for --delimiter: ',,' is not one ASCII character.",
    ),
    "an encoding": (
        "train good.csv --target label --encoding klingon",
        3,
        "encoding 'klingon' is unknown; try utf-8, utf-16 or latin-1",
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
        3,
        "which column is the target? use --target text, if it is the last one; the columns are 'label', 'text'",
    ),
    "learning one class into nothing": (
        "learn nothing.priory one.csv --target label",
        3,
        "one.csv: all rows have the label 'ham'; give rows of two or more classes",
    ),
    "forgetting from nothing": (
        "forget nothing.priory good.csv",
        5,
        "nothing.priory: no such model; train one with priory train",
    ),
    "a wait": (
        "learn mail.priory good.csv --wait -1",
        2,
        "Invalid value for '--wait': -1.0 is not in the range x>=0.",
    ),
    "refined and plain": (
        "train good.csv --target label --refine --plain",
        2,
        "--plain and --refine exclude each other; use one of them",
    ),
    "words of a table": (
        "train numbers.csv --target label --model multinomial",
        3,
        "--model is only for a single column of texts; the columns are 'x', 'z'",
    ),
    "a sample": (
        "train good.csv --target label --sample 3",
        2,
        "Invalid value for '--sample': 3 is not in the range x>=50.",
    ),
    "a folder as a model": ("predict nowhere good.csv", 5, "nowhere: is a directory"),
    "learning into a folder": ("learn . good.csv", 5, ".: is a folder; give a model file"),
    "a pickle as a model": (
        "inspect pickle.priory",
        4,
        "pickle.priory: not a priory model: it is a pickle; priory never loads pickles.",
    ),
    "a pipe as a model": ("predict pipe.priory good.csv", 4, "pipe.priory: it is a pipe or a device, not a file."),
    "standard input twice": ("predict mail.priory - -", 3, "-: standard input is given twice; give it once"),
    "no such target of many": (
        "train wide.csv --target y",
        3,
        "wide.csv: has no column 'y'; it has 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9' and 2 more",
    ),
    "a CSV that is called Parquet": ("train called.parquet --target label", 3, None),
    "a number that its family cannot make": (
        "train numbers.csv --target label --type x=bernoulli",
        3,
        "numbers.csv:3:2: 2 is impossible for bernoulli, which takes only 0 and 1; "
        "correct it, or train with another --type",
    ),
    "a folder as data": ("predict there.priory nowhere", 4, None),
    "no model in it": ("predict good.csv good.csv", 4, None),
    "an unknown output": (
        "predict mail.priory good.csv -o out.xls",
        3,
        "out.xls: unknown output format; use one of .csv, .tsv, .jsonl, .parquet, .arrow",
    ),
    "a missing column": (
        "predict mail.priory one_column.csv",
        3,
        "one_column.csv: has no column 'text', which the model needs; it has 'label'",
    ),
    "nothing to explain": (
        "explain mail.priory",
        2,
        "give one of these to explain: texts, COLUMN=VALUE pairs, or --from FILE",
    ),
    "one model to merge": (
        "merge mail.priory -o x.priory",
        2,
        "give two models or more, and a file for the merged model with -o",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_one_line_and_a_code(name, mail, run):
    files = {
        "good.csv": GOOD,
        "empty.csv": "",
        "one.csv": "label,text\nham,x\nham,y\n",
        "blank.csv": 'label,text\nham,"x\ny"\n,y\n',
        "price.csv": "label,x\n" + "".join(f"{i / 7:.3f},{i}\n" for i in range(50)),
        "noname.csv": "label,\na,b\nb,c\n",
        "void.csv": "label,x\na,\nb,\n",
        "numbers.csv": "label,x,z\na,1,2\nb,2,1\n",
        "there.priory": "no model",
        "one_column.csv": "label\nham\n",
        "pickle.priory": "\x80\x04\x95",
        "wide.csv": ",".join(f"c{i}" for i in range(12)) + "\n" + ",".join("1" * 12) + "\n",
        "called.parquet": GOOD,
    }
    for path, content in files.items():
        Path(path).write_text(content, encoding="latin-1")
    Path("nowhere").mkdir()
    os.mkfifo("pipe.priory")
    arguments, expected, message = WRONG[name]
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    code, _, err = run(*arguments.split())
    assert code == expected, err
    assert err.startswith("priory: ")
    assert err.count("\n") == 1
    if message is not None:
        assert err == f"priory: {message}\n"
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_a_file_that_may_not_be_read(mail, run):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    Path("mail.csv").chmod(0)
    assert run("predict", "mail.priory", "mail.csv")[::2] == (5, "priory: mail.csv: permission denied\n")


def test_text_in_a_column_of_numbers_at_predict(table, run):
    write("new.csv", ["sender", "hour", "links", "text"], [["friend", "3", "0", "hi"], ["friend", "noon", "0", "hi"]])
    code, _, err = run("predict", "inbox.priory", "new.csv")
    assert code == 3
    assert err == "priory: new.csv:3:2: 'noon' is not a number; correct it, or leave the cell empty\n"


def test_an_unexpected_error_is_one_line_too(mail, run, monkeypatch):
    import priory.workflows.model_files

    def broken(path, **_):
        raise ZeroDivisionError("surprise\nand more")

    monkeypatch.setattr(priory.workflows.model_files, "load", broken)
    code, _, err = run("predict", "mail.priory", "mail.csv")
    assert code == 1
    assert (
        err == "priory: ZeroDivisionError: surprise and more; set PRIORY_DEBUG=1 to see where, and please report it\n"
    )


def test_a_broken_file_teaches_nothing(mail, run, monkeypatch):
    monkeypatch.setattr("priory.sources.byte_streams.MIN_UNPACK_LIMIT", 1 << 20)
    whole = Path("mail.priory").read_bytes()
    Path("early.csv.gz").write_bytes(gzip.compress(GOOD.encode() * 99)[:-20])
    code, _, err = run("learn", "mail.priory", "early.csv.gz")
    assert code == 3
    assert re.fullmatch(r"priory: early.csv.gz: ends early at byte \d+; copy it again\n", err)
    Path("bomb.csv.gz").write_bytes(gzip.compress(b"label,text\n" + b"ham,lunch\n" * (1 << 18)))
    code, _, err = run("learn", "mail.priory", "bomb.csv.gz")
    assert code == 6
    assert err.startswith("priory: bomb.csv.gz: decompresses to more than 200 times its size; ")
    assert Path("mail.priory").read_bytes() == whole


@pytest.mark.parametrize(
    ("cell", "family"), [("1.5", "poisson"), ("-1", "poisson"), ("2", "bernoulli"), ("0", "gamma")]
)
def test_what_a_declared_family_cannot_make_is_neither_learned_nor_predicted(run, cell, family):
    write("a.csv", ["label", "n"], [["a", 1], ["b", 1], ["a", 1]])
    run("train", "a.csv", "--target", "label", "--plain", "--type", f"n={family}")
    write("b.csv", ["label", "n"], [["a", 1], ["b", cell]])
    for command in ("learn", "predict"):
        code, _, err = run(command, "a.priory", "b.csv")
        assert code == 3
        assert err.startswith(f"priory: b.csv:3:2: {cell} is impossible for {family}, which takes ")


def test_one_file_that_may_not_be_read_is_named_and_left_out_only_if_asked(run, monkeypatch):
    for label, text in TEXTS:
        folder = Path("tree") / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(os.listdir(folder))}.txt").write_text(text)
    plain = DocumentReader._read_text_file

    def forbidden(self, file):
        if file.name == "2.txt" and file.parent.name == "ham":
            raise PermissionError(13, "Permission denied", str(file))
        return plain(self, file)

    monkeypatch.setattr(DocumentReader, "_read_text_file", forbidden)
    code, _, err = run("train", "tree", "--plain")
    assert (code, err) == (5, "priory: tree/ham/2.txt: permission denied\n")
    assert not Path("tree.priory").exists()
    code, out, err = run("train", "tree", "--plain", "--keep-going")
    assert code == 5
    assert err == "priory: 1 file could not be opened (tree/ham/2.txt); the others were learned\n"
    assert out.startswith("5 rows, 2 classes: spam 3, ham 2\n")


@pytest.mark.parametrize(("n_bad", "counted"), [(1, "1 message"), (2, "2 messages")])
def test_what_had_to_be_guessed_in_mail_is_counted(run, n_bad, counted):
    for label in ("ham", "spam"):
        Path("mail", label).mkdir(parents=True)
        for i in range(3):
            end = b"\0" if label == "spam" and i < n_bad else b""
            Path("mail", label, f"{i}.eml").write_bytes(b"Subject: %s\n\nbody %d" % (label.encode(), i) + end)
    code, _, err = run("train", "mail", "--plain", "--format", "mail")
    assert (code, err) == (0, f"priory: {counted}: NUL characters; they were replaced by spaces\n")


def test_a_folder_in_the_place_of_a_lock_is_named(mail, run):
    Path(".mail.priory.lock").mkdir()
    code, _, err = run("learn", "mail.priory", "mail.csv")
    problem = "it is in the place of a lock file, but is none, so the model cannot be changed; remove it"
    assert (code, err) == (5, f"priory: {Path('.mail.priory.lock')}: {problem}\n")


def test_a_model_with_two_names_is_changed_under_one_of_them_and_the_user_is_told(mail, run):
    os.link("mail.priory", "twin.priory")
    code, _, err = run("learn", "mail.priory", "mail.csv")
    assert code == 0
    assert "priory: mail.priory was one of 2 hard links to a file; the others still have the old model.\n" in err


def test_names_that_would_talk_to_the_terminal_are_spelt_out(run):
    write("a.csv", ["label", "\x1b[31mred", "b"], [["x\x1b]0;hi\x07", 1, 2], ["y", 2, 1], ["y", 3, 1]])
    code, out, err = run("train", "a.csv", "--target", "label", "--no-audit")
    assert code == 0
    assert "\\x1b[31mred" in out
    assert "x\\x1b]0;hi\\x07" in out
    assert "\x1b" not in out + err
    assert "\x1b" not in run("train", "a.csv", "--target", "\x1b[2J")[2]
