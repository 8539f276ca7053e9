"""The command line as a process: streams, pipes, signals, help, completion, the tour."""

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

import priory
from priory import inbox
from shell import GOOD, PRIORY, rows_of, write


@pytest.mark.parametrize(
    "command",
    ["train", "predict", "explain", "evaluate", "audit", "report", "learn", "forget", "merge", "inspect", "demo"],
)
def test_every_command_has_help_with_an_example(command, run):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"Example: priory {command}" in out


def test_help_imports_nothing_heavy():
    code = """
import sys
from priory.cli.entry_point import main
main(["--help"])
print(sorted({"pandas", "sklearn", "pyarrow", "scipy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


HEAVY = {
    *("sklearn", "scipy", "pandas", "matplotlib", "narwhals", "jinja2", "sqlite3"),
    *("pyarrow.compute", "numpy.random", "priory.cli.train"),
}
ANSWERS = [
    (["predict", "mail.priory", "new.csv"], "claim"),
    (["predict", "inbox.priory", "inbox.csv"], "work"),
    (["explain", "mail.priory", "claim your prize"], "spam"),
    (["explain", "inbox.priory", "hour=7"], "hour"),
    (["inspect", "mail.priory"], "TextClassifier"),
    (["inspect", "corrected_table.priory"], "NaiveBayes"),
    (["learn", "mail.priory", "mail.csv"], "6 rows learned"),
    (["forget", "mail.priory", "mail.csv"], "6 rows forgotten"),
    (["learn", "inbox.priory", "one.csv"], "1 row learned"),
    (["forget", "inbox.priory", "one.csv"], "1 row forgotten"),
    *(
        ([command, f"corrected_{kind}.priory", "one.csv"], answer)
        for kind in ("texts", "table")
        for command, answer in (("predict", "0."), ("learn", "1 row learned"), ("forget", "1 row forgotten"))
    ),
]


@pytest.fixture(scope="module")
def corrected(made):
    """A model of texts and one of a table in a folder, both with corrections."""
    messages, labels = inbox()
    texts = priory.TextClassifier().fit([message["text"] for message in messages], labels)
    table = priory.NaiveBayes().fit([{name: m[name] for name in ("sender", "hour", "links")} for m in messages], labels)
    for name, model in (("texts", texts), ("table", table)):
        assert model.corrections_
        priory.save(model, made / f"corrected_{name}.priory")
    return made


@pytest.mark.parametrize(("arguments", "answer"), ANSWERS, ids=[" ".join(arguments) for arguments, _ in ANSWERS])
def test_answers_and_updates_import_nothing_heavy(arguments, answer, mail, table, corrected):
    code = f"""
import os, sys
os._exit = lambda code: sys.exit(code or str(sorted(
    name for name in {HEAVY!r} & set(sys.modules) if type(sys.modules[name]).__name__ != "LateModule"
)))
sys.argv = ["priory", *{arguments!r}]
import priory.cli.entry_point
priory.cli.entry_point.entry()
"""
    write("new.csv", ["text"], [["claim your prize"]])
    first = rows_of("inbox.csv")[0]
    write("one.csv", first.keys(), [first.values()])
    for name in ("corrected_texts.priory", "corrected_table.priory"):
        shutil.copy(corrected / name, name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_filtering_mail_imports_neither_arrow_nor_what_tables_need(made):
    messages, labels = inbox()
    mails = [b"\n" + message["text"].encode() for message in messages]
    priory.save(priory.TextClassifier(reader="mail").fit(mails, labels), "mail.priory")
    code = """
import os, sys
def list_imports(code):
    late = [name for name in ("pyarrow", "pyarrow.compute") if type(sys.modules[name]).__name__ == "LateModule"]
    unneeded = ("priory.families", "priory.tables", "priory.model.schema", "priory.learning.unlabelled_texts",
                "priory.storage.inspection", "priory.calibration.solvers", "priory.calibration.number_members",
                "concurrent.futures", "logging", "zoneinfo", "fractions", "random", "socket")
    sys.exit(str([late, [name for name in unneeded if name in sys.modules]]))
os._exit = list_imports
sys.argv = ["priory", "filter", "mail.priory"]
from priory.__main__ import run_program
run_program()
"""
    done = subprocess.run([sys.executable, "-c", code], input=mails[0], capture_output=True, check=False)
    assert done.stdout.startswith(b"X-Priory: ")
    assert done.stderr.decode().splitlines()[-1] == "[['pyarrow', 'pyarrow.compute'], []]"


def test_what_is_imported_late_is_there_when_it_is_used():
    code = """
import sys
from priory.core.lazy_imports import LateModule
for name in ("scipy", "pyarrow", "pyarrow.compute"):
    LateModule(name).install()
import pyarrow as pa
import pyarrow.compute as pc
import scipy
assert "scipy.sparse" not in sys.modules
assert scipy.sparse.eye_array(2).shape == (2, 2) and pc.sum(pa.array([1, 2])).as_py() == 3
assert pa.array(["1"]).cast(pa.int64()).to_pylist() == [1]
from scipy.special import gammaln
import scipy.optimize
assert gammaln(1.0) == 0 and scipy.optimize.minimize_scalar
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_shell_completes_commands_options_and_files(run):
    assert "_PRIORY_COMPLETE=bash_complete" in run("completion", "bash")[1]
    for words, answer in (
        ("priory mer", "plain,merge\n"),
        ("priory train --ref", "plain,--refine\n"),
        ("priory train ma", "file,ma\n"),
    ):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_PRIORY_COMPLETE": "bash_complete"}
        done = subprocess.run(PRIORY, env=bare() | asked, capture_output=True, text=True)
        assert done.stdout == answer


@pytest.mark.slow
def test_the_tour_runs(run):
    pytest.importorskip("jinja2")
    code, out, _ = run("demo")
    assert code == 0
    assert "The report is priory-demo/inbox.html" in out
    assert Path("priory-demo/inbox.html").exists()
    assert len(rows_of("priory-demo/labelled.csv")) == 569


@pytest.mark.slow
def test_standard_streams(mail):
    data = "text\nclaim your prize\n"
    done = subprocess.run([*PRIORY, "predict", "mail.priory", "-"], input=data, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].startswith("claim your prize,spam,0.8")
    trained = subprocess.run(
        [*PRIORY, "train", "-", "--target", "label", "-o", "in.priory", "--plain"], input=GOOD, text=True, env=bare()
    )
    assert trained.returncode == 0
    assert priory.load("in.priory").class_count_.tolist() == [3.0, 3.0]


def bare():
    """An environment with next to nothing: locale C, no home, an odd time zone; and where Python finds priory."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {"LC_ALL": "C", "TZ": "Mars/Olympus", "PYTHONHASHSEED": "1"} | kept


@pytest.mark.slow
def test_closed_standard_input_is_said(mail):
    done = subprocess.run(
        f"{sys.executable} -m priory predict mail.priory - <&-", shell=True, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert done.stderr == "priory: -: standard input is closed; give a file\n"


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_quiet(mail, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    write("many.csv", ["text"], [["claim your prize now"]] * 50_000)
    done = subprocess.run(
        f"{sys.executable} -m priory predict mail.priory many.csv | head -2; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "141"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(mail):
    done = subprocess.run(
        [*PRIORY, "predict", "mail.priory", "mail.csv", "-o", "/dev/full"], capture_output=True, text=True
    )
    assert done.returncode == 5
    assert done.stderr.startswith("priory: ")
    assert "no space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_home_that_cannot_be_written_and_a_strict_umask_are_no_hindrance(mail):
    env = bare() | {"HOME": "/proc"}
    done = subprocess.run([*PRIORY, "learn", "mail.priory", "mail.csv"], env=env, umask=0o077, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert priory.load("mail.priory").class_count_.tolist() == [6.0, 6.0]


def on_a_terminal(*arguments, **environment):
    """What a person sees of a command: the bytes that come to a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")} | {"TERM": "xterm"} | environment
    done = subprocess.Popen([*PRIORY, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # the end of a terminal
        while block := os.read(ours, 4096):
            seen += block
    os.close(ours)
    assert done.wait() == 0
    return seen.decode()


@pytest.mark.slow
def test_a_terminal_gets_headings_progress_and_lines_that_fit(table):
    train = ["train", "inbox.csv", "--target", "label", "--force"]
    seen = on_a_terminal(*train)
    assert "\x1b[1m308 rows, 3 classes\x1b[0m" in seen
    assert "\r\x1b[Kjudging 308 rows by models that have not learned them ...\r\x1b[K" in seen
    seen = on_a_terminal(*train, "--ignore", "text", NO_COLOR="1", TERM="dumb")
    assert "\x1b" not in seen
    told = seen[seen.index("columns,") : seen.index("scores:")]
    assert max(map(len, told.splitlines())) <= 60
