"""``priory serve`` as it is typed."""

import signal
import subprocess
import sys

import pytest

from priory.service.client import Client
from priory.service.tokens import TokenList


@pytest.fixture
def serve(tmp_path):
    """A function that starts the command, and returns its process and a client."""
    started = []

    def start(*options):
        command = [
            sys.executable,
            "-m",
            "priory",
            "serve",
            "--port",
            "0",
            "--socket",
            str(tmp_path / "s.sock"),
            *options,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        process.first_line = process.stdout.readline()
        return process, Client(socket=tmp_path / "s.sock", retries=0)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_is_asked_to_with_snapshots_and_without_its_socket(serve, tmp_path, stop):
    process, client = serve("--data", str(tmp_path / "data"))
    assert process.first_line.startswith("serving 0 models on http://127.0.0.1:")
    client.create("mail", calibrate=False)
    client.learn("mail", ["win cash", "lunch"], ["spam", "ham"])
    client.close()
    process.send_signal(stop)
    assert process.communicate(timeout=60)[0] == "stopped; all acknowledged changes are on disk\n"
    assert process.returncode == 0
    assert (tmp_path / "data" / "models" / "1.priory").exists()
    assert not (tmp_path / "s.sock").exists()
    process, client = serve("--data", str(tmp_path / "data"))
    assert process.first_line.startswith("serving 1 models")
    assert client.get_model("mail")["rows"] == 2
    client.close()


@pytest.mark.slow
def test_the_demo_has_two_models(serve):
    process, client = serve("--demo")
    assert process.first_line.startswith("serving 2 models")
    assert client.predict("messages", ["win cash now"])["predictions"][0]["label"] == "spam"
    client.close()


def test_a_token_is_printed_once_and_kept_as_a_hash(run, here):
    code, out, _ = run("serve", "--token-file", "tokens", "--add-token", "anna", "--scope", "learn")
    assert code == 0
    identity = TokenList(here / "tokens").identify(f"Bearer {out.strip()}")
    assert (identity.name, identity.scope) == ("anna", "learn")


def test_tokens_are_listed_and_removed(run, here):
    for name, scope in (("anna", "learn"), ("ben", "read"), ("anna", "read")):
        run("serve", "--token-file", "tokens", "--add-token", name, "--scope", scope)
    assert run("serve", "--token-file", "tokens", "--list-tokens")[1] == "anna learn\nben read\nanna read\n"
    assert run("serve", "--token-file", "tokens", "--remove-token", "anna")[1] == "removed 2 tokens of anna\n"
    assert run("serve", "--token-file", "tokens", "--list-tokens")[1] == "ben read\n"
    code, _, err = run("serve", "--token-file", "tokens", "--remove-token", "bem")
    assert code != 0
    assert "tokens: has no token of the name 'bem' (did you mean 'ben'?)" in err


def test_a_check_finds_what_should_be_gone(run, here):
    assert run("serve", "--data", "none", "--check")[0] == 3
    from priory.service.changes import CreateRequest, LearnRequest
    from priory.service.labelled_rows import RowBatch
    from priory.service.model_store import ModelStore
    from priory.service.writer import Writer

    store = ModelStore(here / "data")
    writer = Writer(store)
    writer.submit(CreateRequest("mail", "ann")).result()
    writer.submit(LearnRequest("mail", "ann", rows=RowBatch("text", ("call Anna",), ("ham",)))).result()
    writer.close()
    store.close()
    code, out, _ = run("serve", "--data", "data", "--check")
    assert code == 0
    assert "ok: mail: 1 rows, version 2" in out
    code, out, _ = run("serve", "--data", "data", "--check", "--search", "call Anna")
    assert code == 3
    assert "problem: 'call Anna' occurs in journal.sqlite" in out
    code, out, _ = run("serve", "--data", "data", "--check", "--search", "CALL  anna", "--search", "ben")
    assert code == 3
    assert "problem: 'CALL  anna' occurs in 1 row of the journal" in out
    assert "ok: 'ben' occurs in no file" in out


def test_without_its_packages_the_command_says_how_to_get_them():
    code = "import sys; sys.modules['h11'] = None; from priory.__main__ import run_program; run_program()"
    done = subprocess.run([sys.executable, "-c", code, "serve", "--demo"], capture_output=True, text=True)
    assert done.stderr == "priory: a service needs packages of its own: pip install 'priory[serve]'.\n"
    assert done.returncode != 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --data FOLDER, or --demo"),
        (["--data", "d", "--host", "0.0.0.0"], "other machines could connect to 0.0.0.0; give --token-file"),
        (["--add-token", "anna"], "give --token-file FILE"),
        (["--list-tokens"], "give --token-file FILE"),
        (["--data", "d", "--public-url", "mail.example"], "is no address; give one such as https://"),
    ],
)
def test_what_is_missing_is_said(run, options, message):
    code, _, err = run("serve", *options)
    assert code != 0
    assert message in err
