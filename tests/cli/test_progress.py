"""Progress on a terminal and in a log, --quiet, and doctor."""

import json
import time

import pytest

from priory.cli import terminal
from priory.cli.terminal import StatusLine, format_progress
from shell import write


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_each_ten_seconds_with_what_is_left(clock, capsys):
    line = StatusLine(1_000_000_000, print)
    for _ in range(40):  # a second and 25 MB each
        clock[0] += 1
        line.show_progress(25_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "priory: 28 %, 275 MB read, 25 MB/s, about 29 s left"
    assert len(lines) == 3


def test_a_terminal_gets_one_line_that_is_cleared(clock, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "is_on_terminal", lambda: True)
    line = StatusLine(None, print)
    clock[0] += 1
    line.show_progress(5_000_000)
    assert capsys.readouterr().err == ""  # what is done within two seconds shows nothing
    clock[0] += 3
    line.show_progress(5_000_000)
    assert capsys.readouterr().err == "\r\x1b[K10 MB read, 2 MB/s"
    line.clear()
    assert capsys.readouterr().err == "\r\x1b[K"


def test_a_long_activity_is_reported_again_and_again(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LOG_LINES", 0.05)
    with StatusLine(None, print).show_activity("fitting corrections"):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert set(lines) == {"priory: fitting corrections, 0 s so far"}


def test_quiet_lines_print_nothing(clock, capsys):
    line = StatusLine(10, print, is_quiet=True)
    clock[0] += 100
    line.show_progress(5)
    assert capsys.readouterr().err == ""


def test_the_estimate_never_exceeds_all(clock):
    assert format_progress(20, 10, 4.0).startswith("100 %, ")


def test_quiet_silences_notes_but_not_errors_and_not_answers(mail, run):
    write("new.csv", ["id", "text"], [["1", "claim your prize"]])
    code, out, err = run("predict", "mail.priory", "new.csv")
    assert (code, "the model does not use the columns 'id'" in err) == (0, True)
    assert run("predict", "mail.priory", "new.csv", "--quiet") == (0, out, "")
    assert run("predict", "mail.priory", "none.csv", "-q")[::2] == (5, "priory: none.csv: no such file or directory\n")
    for command in (
        "train",
        "predict",
        "explain",
        "evaluate",
        "audit",
        "report",
        "learn",
        "forget",
        "merge",
        "inspect",
    ):
        assert "--quiet" in run(command, "--help")[1]


def test_doctor_says_what_works(run, monkeypatch):
    code, out, _ = run("doctor", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found["compiled kernels"].values()) == {"works"}
    assert found["checks"] == {"write, read and predict": "works"}
    assert found["versions"]["numpy"][0].isdigit()
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    code, out, _ = run("doctor")
    assert code == 1
    assert "not working: write, read and predict\n" in out
