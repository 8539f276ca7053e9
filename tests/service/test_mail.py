"""Mail on standard input: passed on with a header, learned by a button, through a service or a model file."""

import email.header
import email.policy
import io
import os
import re
import subprocess
import sys

import pytest

import priory as pr
from priory.cli import main
from priory.service.client import Client
from priory.service.mail_filter import FilterThresholds, Verdict, add_header, make_verdict
from running_service import run_service

SPAM = b"From a@b Mon\nSubject: win cash\nX-Priory: ham; probability=1\n\ncash prize\n\nX-Priory: in the body\n"
TEXTS, LABELS = ["win cash now", "cash prize", "lunch at noon", "see you at lunch"], ["spam", "spam", "ham", "ham"]


@pytest.fixture
def mail(tmp_path):
    with run_service(tmp_path) as service, Client(socket=service.socket) as client:
        client.create("mail", calibrate=False)
        client.learn("mail", TEXTS, LABELS)
        service.client = client
        yield service


def run_priory(*arguments, message=SPAM):
    command = [sys.executable, "-m", "priory", *map(str, arguments)]
    return subprocess.run(command, input=message, capture_output=True, timeout=60)


@pytest.mark.slow
def test_a_message_is_passed_on_with_a_header_of_the_service(mail):
    done = run_priory("filter", "mail", "--socket", mail.socket)
    lines = done.stdout.splitlines()
    assert lines[0] == b"From a@b Mon"
    assert lines[1].startswith(b"X-Priory: spam; probability=0.")
    assert b"cash +" in lines[1]
    assert lines[2:] == [b"Subject: win cash", b"", b"cash prize", b"", b"X-Priory: in the body"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert run_priory("filter", "mail", "--socket", mail.socket, "--exit-code", "ham").returncode == 1
    assert run_priory("filter", "mail", "--socket", mail.socket, "--exit-code=ham", "--certainty=1").returncode == 2


@pytest.mark.slow
def test_a_model_file_gives_the_same_header(mail, tmp_path):
    path = tmp_path / "mail.priory"
    path.write_bytes(mail.client.download("mail"))
    by_file = run_priory("filter", path)
    assert by_file.stdout == run_priory("filter", path, "--socket", mail.socket).stdout


@pytest.mark.slow
def test_whatever_goes_wrong_the_message_is_passed_on_as_it_came(mail, tmp_path):
    for arguments in (["none", "--socket", mail.socket], ["nowhere.priory"], ["mail", "--socket", tmp_path / "none"]):
        done = run_priory("filter", *arguments)
        assert (done.returncode, done.stdout) == (75, SPAM)
        assert done.stderr.startswith(b"priory: the message is passed on as it came")


def type_message(monkeypatch, message):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(message)))


def test_a_button_learns_a_message_and_takes_it_back(mail, monkeypatch, capsys):
    for arguments, rows, done in (
        (["mail", "spam"], 5, "learned 1 message as spam: change 3 of mail"),
        (["mail", "spam", "--forget"], 4, "forgot 1 message as spam: change 4 of mail"),
        (["mail", "ham"], 5, "learned 1 message as ham: change 5 of mail"),
    ):
        type_message(monkeypatch, SPAM)
        assert main(["learn-mail", *arguments, "--socket", str(mail.socket)]) == 0
        assert capsys.readouterr().out == f"{done}\n"
        assert mail.client.get_model("mail")["rows"] == rows


def test_a_button_learns_into_a_model_file(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mail.priory"
    pr.save(pr.TextClassifier().fit(TEXTS, LABELS), path)
    type_message(monkeypatch, SPAM)
    assert main(["learn-mail", str(path), "spam"]) == 0
    assert capsys.readouterr().out == f"learned 1 message as spam; {path} now knows 5\n"
    assert pr.load(path).class_count_.tolist() == [2, 3]


def test_a_mistyped_label_is_refused_and_a_new_class_is_asked_for(mail, tmp_path, monkeypatch, capsys):
    path = tmp_path / "mail.priory"
    pr.save(pr.TextClassifier().fit(TEXTS, LABELS), path)
    for arguments in (["mail", "--socket", str(mail.socket)], [str(path)]):
        type_message(monkeypatch, SPAM)
        assert main(["learn-mail", *arguments, "sapm"]) != 0
        said = capsys.readouterr()
        assert said.out == ""
        assert "the model has no class 'sapm' (did you mean 'spam'?); with --new-class" in said.err
        assert len(said.err.splitlines()) == 1
        type_message(monkeypatch, SPAM)
        assert main(["learn-mail", *arguments, "work", "--new-class"]) == 0
        assert capsys.readouterr().out.startswith("learned 1 message as work")
    assert mail.client.get_model("mail")["classes"] == pr.load(path).classes_.tolist() == ["ham", "spam", "work"]


def test_words_beyond_ascii_are_encoded_as_mail_does():
    faces = "\N{GRINNING FACE}" * 30
    words = ["zürich", "(absent tokens)", "win cash", "日本語" * 20, faces, '"quoted\\', "=?utf-8?q?forged?="]
    verdict = Verdict("müll; sicher", 0.9, tuple((word, 1.0) for word in words))
    message = add_header(b"Subject: a\n\nbody\n", "X-Priory", verdict.format())
    line = message.splitlines()[0].decode("ascii")
    assert "?" not in re.sub(r"=\?utf-8\?b\?[\w+/=]+\?=", "", line)
    assert all(len(word) <= 75 for word in re.findall(r"=\?\S+", line))
    for policy in (email.policy.default, email.policy.compat32):
        shown = email.message_from_bytes(message, policy=policy)["X-Priory"]
        if policy is email.policy.compat32:
            shown = str(email.header.make_header(email.header.decode_header(shown)))
        assert shown.startswith("müll; sicher ; probability=0.9000; evidence=")
        for word in (*words[:3], "日本語" * 5, faces[:11], *words[5:]):
            assert f"{word} +1.0" in shown


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"Subject: a\n\nbody\n", b"X: v\nSubject: a\n\nbody\n"),
        (b"x: 1\nSubject: a\nX: 2\n  more\n\nbody\n", b"X: v\nSubject: a\n\nbody\n"),
        (b"From me\nSubject: a\n\nbody\n", b"From me\nX: v\nSubject: a\n\nbody\n"),
        (b"\nbody\n", b"X: v\n\nbody\n"),
    ],
)
def test_a_header_is_added_and_forged_ones_are_removed(message, expected, end):
    assert add_header(message.replace(b"\n", end), "X", "v") == expected.replace(b"\n", end)


def test_a_message_without_a_line_end_gets_a_header():
    assert add_header(b"Subject: no body", "X", "v") == b"X: v\nSubject: no body"
    assert add_header(b"", "X", "v") == b"X: v\n"


@pytest.mark.slow
def test_the_quick_way_imports_little(mail):
    command = [sys.executable, "-X", "importtime", "-m", "priory", "filter", "mail", "--socket", str(mail.socket)]
    done = subprocess.run(command, input=SPAM, capture_output=True, env={**os.environ}, timeout=60)
    assert done.returncode == 0
    for heavy in (b"click", b"numpy", b"httpx", b"starlette", b"msgspec"):
        assert b" " + heavy + b"\n" not in done.stderr


def explained(doubt="contrary", typicality=1.0, rival=0.0, rival_for=0.001):
    own = {"share_for": 1.0, "share_against": typicality, "typicality": typicality, "texts": 1000}
    other = {"share_for": rival_for, "share_against": rival, "typicality": rival, "texts": 1000}
    sides = {"spam": {"for": 90.0, "against": 80.0, **own}, "ham": {"for": 80.0, "against": 90.0, **other}}
    return {"evidence": [], "doubt": doubt, "sides": sides}


@pytest.mark.parametrize(
    ("found", "thresholds", "label", "doubt"),
    [
        (explained(), FilterThresholds(), "spam", ""),
        (explained(typicality=0.01), FilterThresholds(), None, "contrary"),
        (explained("unlike", typicality=0.01), FilterThresholds(), None, "unlike"),
        (explained(typicality=0.01), FilterThresholds(max_unsure=0.0), "spam", ""),
        (explained("young"), FilterThresholds(), None, "young"),
        (explained(rival=0.002), FilterThresholds.read(rates="spam=0.001"), None, "possible"),
        (explained(rival=0.002), FilterThresholds.read(rates="ham=0.001"), "spam", ""),
        (explained(rival=0.002), FilterThresholds.read(rates="0.01"), "spam", ""),
        (explained(), FilterThresholds(certainty=0.995), None, "uncertain"),
        ({"evidence": []}, FilterThresholds(), "spam", ""),
    ],
)
def test_a_verdict_is_unsure_for_a_reason(found, thresholds, label, doubt):
    verdict = make_verdict("spam", 0.99, found, thresholds)
    assert (verdict.label, verdict.doubt) == (label, doubt)
    assert (f"doubt={doubt}" in verdict.format()) == bool(doubt)


def test_the_probability_is_bounded_by_the_contrary_evidence_alone():
    def find_probability(typicality, rival_for):
        found = explained(typicality=typicality, rival_for=rival_for)
        return make_verdict("spam", 0.99, found, FilterThresholds()).probability

    assert find_probability(0.5, 0.001) == 0.99  # few hams have as little for them, and many spams as much against
    assert find_probability(0.1, 0.01) == pytest.approx(10**0.9 / (1 + 10**0.9))
    assert find_probability(1.0, 0.01) == 0.9  # of hams 1 % have as little for them
    assert find_probability(0.001, 0.3) == 0.5
    assert find_probability(0.001, 1 / 1001) == 0.99  # no ham has as little for it


@pytest.mark.parametrize("given", [{"max_unsure": "2"}, {"certainty": "x"}, {"rates": "spam=-1"}])
def test_thresholds_that_are_no_shares_are_refused(given):
    with pytest.raises(ValueError, match=r"not between 0 and 1|could not convert"):
        FilterThresholds.read(**given)
