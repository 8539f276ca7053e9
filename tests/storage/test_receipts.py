"""Receipts: who has the opening and the model file can check by adding that rows have left a model."""

import ast
import copy
import json
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import house_figures
import priory as pr
from paths import ROOT
from priory.cli import main
from priory.core.logspace import log_by_table, log_factorial
from priory.errors import DataError, StaleModelError
from priory.storage import receipt_verifier as verifier
from priory.storage.receipts import ReceiptBook, export_model, read_chain
from priory.storage.receipts import verify_with_model as verify

PEM = serialization.Encoding.PEM


@pytest.fixture
def pem(tmp_path):
    """The public key; key.pem is the private one."""
    key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(private)
    public = key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "public.pem").write_bytes(public)
    return public


def read_private_key(path):
    return serialization.load_pem_private_key(path.read_bytes(), None)


@pytest.fixture
def book(tmp_path, pem):
    return ReceiptBook(tmp_path / "key.pem", tmp_path / "salts")


def make_table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "count": rng.poisson(30, n),
            "positive": np.where(rng.random(n) < 0.3, np.nan, rng.gamma(2, size=n)),
            "huge": rng.choice([1e300, -1e300, 5e-324, 0.0], n),
            "city": rng.choice(["Ulm", "Bonn", None], n),
            "level": rng.choice([1, 2, 3], n),
            "day": pd.date_range("2020-01-01", periods=n, freq="7h"),
            "note": [" ".join(rng.choice(["win", "cash", "été", "noon", "lunch", "today"], 6)) for _ in range(n)],
        }
    )
    return table, rng.choice(["yes", "no"], n)


KINDS = [{}, {"memory": 30}, {"memory": 0}, {"calibrate": False}, {"families": {"level": "categorical"}}]
TEXT_KINDS = [
    {},
    {"memory": 30},
    {"model": "multinomial"},
    {"buckets": 64},
    {"vocabulary": ["win", "cash"]},
]


@pytest.mark.parametrize("parameters", KINDS, ids=str)
def test_a_record_after_with_the_rows_is_the_record_before(book, pem, parameters):
    X, y = make_table()
    model = pr.NaiveBayes(**parameters).fit(X, y)
    first, before = book.issue_state(model), export_model(model)
    issued = book.forget(model, X[:5], y[:5], reason="request 7")
    found = verify(issued.receipt, pem, model, previous=first.receipt, opening=issued.opening)
    assert "follows receipt 0" in found
    assert "with the rows the one before" in found
    assert verifier.add_rows(export_model(model), issued.opening["frame"], issued.opening["rows"]) == before
    assert export_model(model) == export_model(pr.NaiveBayes(**parameters).fit(X[5:], y[5:])) | _kept_of(model)


def _kept_of(model):
    """Above ``memory`` rows the sample of a model that has forgotten is smaller than a new one's."""
    return {"kept": export_model(model)["kept"]}


@pytest.mark.parametrize("parameters", TEXT_KINDS, ids=str)
def test_texts_have_receipts_too(book, pem, parameters):
    X, y = make_table()
    texts = ["", *X["note"][1:]]
    model = pr.TextClassifier(**parameters).fit(texts, y)
    first = book.issue_state(model)
    issued = book.forget(model, texts[:4], y[:4])
    assert "record before" not in verify(issued.receipt, pem, previous=first.receipt)
    assert "the one before" in verify(issued.receipt, pem, model, previous=first.receipt, opening=issued.opening)


def test_what_is_kept_beside_the_model_confirms_no_guess_about_the_rows(tmp_path, book, pem):
    X, y = make_table()
    model = pr.NaiveBayes().fit(X, y)
    book.issue_state(model)
    opening = book.forget(model, X[:1], y[:1]).opening
    kept = (tmp_path / "salts").read_text()
    assert opening["salts"]["after"] in kept
    assert opening["salts"]["before"] not in kept
    assert opening["salts"]["rows"][0] not in kept


def test_all_rows_of_a_model_may_be_forgotten(book, pem):
    model = pr.TextClassifier().fit(["win cash", "lunch"], ["spam", "ham"])
    book.issue_state(model)
    issued = book.forget(model, ["win cash", "lunch"], ["spam", "ham"])
    assert "the one before" in verify(issued.receipt, pem, model, opening=issued.opening)


def test_a_chain_has_no_gap_and_every_kind_of_change_is_seen(book, pem):
    X, y = make_table()
    model = pr.NaiveBayes().fit(X, y)
    with pytest.raises(StaleModelError, match="no receipt yet"):
        book.forget(model, X[:1], y[:1])
    issued = [book.issue_state(model)]
    issued += [book.forget(model, X[i : i + 1], y[i : i + 1]) for i in range(3)]
    for earlier, later in pairwise(issued):
        assert verify(later.receipt, pem, previous=earlier.receipt)
    with pytest.raises(verifier.RefusedError, match="gap"):
        verify(issued[3].receipt, pem, previous=issued[1].receipt)
    model.learn_one(X.iloc[0].to_dict(), y[0])
    with pytest.raises(StaleModelError, match="changed since receipt 3"):
        book.forget(model, X[:1], y[:1])
    stated = book.issue_state(model)
    assert verify(book.forget(model, X[:1], y[:1]).receipt, pem, previous=stated.receipt)
    assert [n_rows for _, _, n_rows in read_chain(model)["issued"]] == [0, 1, 1, 1, 0, 1]


def test_a_receipt_is_refused_with_its_reason(book, pem):
    X, y = make_table()
    model = pr.NaiveBayes().fit(X, y)
    book.issue_state(model)
    unchanged = copy.copy(model)
    issued = book.forget(model, X[:2], y[:2])
    opening, rows = issued.opening, issued.opening["rows"]

    def refuse(match, receipt=issued.receipt, model=model, opening=opening, **given):
        with pytest.raises(verifier.RefusedError, match=match):
            verify(receipt, pem, model, opening=opening, **given)

    refuse("not signed with this key", issued.receipt | {"reason": "other"})
    refuse("version", {**issued.receipt, "spec": "receipt 2"})
    refuse("version", {**issued.receipt, "model": "\x1b[2J"})
    refuse("other rows than the receipt", opening=opening | {"rows": rows[:1]})
    refuse("other rows than the receipt", opening=opening | {"rows": rows[::-1]})
    refuse("not the rows asked for", rows=rows[:1])
    refuse("not the one that the receipt has left", model=unchanged)
    refuse("do not add up", opening=opening | {"frame": opening["frame"] | {"declared": ["yes"]}})


def test_the_opening_of_a_text_shows_the_words_that_were_counted(book):
    model = pr.TextClassifier().fit(["Win cash, win", "lunch at noon", "cash"], ["spam", "ham", "spam"])
    book.issue_state(model)
    [row] = book.forget(model, ["Win cash, win"], ["spam"]).opening["rows"]
    assert row["class"] == "spam"
    assert row["cells"]["text"]["text"] == "Win cash, win"
    assert row["cells"]["text"]["tokens"] == {"cash": "1", "win": "2"}


def test_what_cannot_be_checked_gets_no_receipt_and_changes_nothing(book):
    X, y = make_table()
    model = pr.NaiveBayes(memory=0).fit(X, y, sample_weight=np.full(len(y), 0.1))
    book.issue_state(model)
    model = model.decay(0.3)
    book.issue_state(model)
    before = export_model(model)
    with pytest.raises(StaleModelError):
        book.forget(model, X[:1], y[:1])
    assert export_model(model) == before


def test_the_key_and_the_salts_are_checked(tmp_path, book):
    X, y = make_table(40)
    model = pr.NaiveBayes().fit(X, y)
    with pytest.raises(DataError, match="private Ed25519 key"):
        ReceiptBook(tmp_path / "public.pem", tmp_path / "salts").issue_state(model)
    book.issue_state(model)
    assert (tmp_path / "salts").stat().st_mode & 0o777 == 0o600
    (tmp_path / "salts").unlink()
    with pytest.raises(DataError, match="does not have the salt of receipt 0"):
        book.forget(model, X[:1], y[:1])


def test_logarithms_of_the_verifier_are_the_ones_of_the_record():
    x = np.concatenate([np.logspace(-300, 300, 997), np.arange(1.0, 300)])
    assert [verifier.compute_log(v) for v in x.tolist()] == log_by_table(x).tolist()
    n = np.concatenate([np.arange(400.0), [1e6, 2.0**53]])
    assert [verifier.compute_log_factorial(v) for v in n.tolist()] == log_factorial(n).tolist()


def test_the_verifier_is_150_lines_of_code_without_priory(tmp_path):
    """As somebody runs it who has copied the file; benchmarks/receipts.py does so with a thousand forgeries."""
    source = (ROOT / "src/priory/storage/receipt_verifier.py").read_text()
    assert house_figures.count_code(source, ast.parse(source))[0] <= 150
    command = [sys.executable, ROOT / "benchmarks" / "receipts.py", "--runs", "32", "--made-up"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| all | | 32 | 32 |" in done.stdout


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path, monkeypatch, pem, capsys):
    """A folder with people.csv, its model, and receipt 0."""
    monkeypatch.chdir(tmp_path)
    X, y = make_table(60)
    table = X.assign(person=[f"p{i % 12}" for i in range(60)], kind=y).drop(columns="huge")
    table.to_csv("people.csv", index=False)
    table[table.person == "p7"].to_csv("p7.csv", index=False)
    signed = ["--sign-key", "key.pem", "--receipt", "r0.json"]
    options = ["--target", "kind", "--ignore", "person", "--no-audit", "-o", "m.priory"]
    assert main(["train", "people.csv", *options, *signed]) == 0
    capsys.readouterr()
    return tmp_path


def forget_person(person, receipt, *more):
    signed = ["--sign-key", "key.pem", "--receipt", receipt, "--opening", f"{person}.json", *more]
    return main(["forget", "m.priory", "people.csv", "--where", f"person={person}", *signed])


def test_commands_issue_and_verify_receipts(trained, capsys):
    assert forget_person("p7", "r1.json", "--json", "--reason", "by mail") == 0
    assert json.loads(capsys.readouterr().out) == {"model": "m.priory", "forgotten": 5, "rows": 55.0, "counter": 1}
    given = ["--key", "public.pem", "--opening", "p7.json", "--model", "m.priory"]
    assert main(["verify", "r1.json", *given, "--previous", "r0.json", "--rows", "p7.csv"]) == 0
    assert capsys.readouterr().out.startswith("verified: receipt 1 of model ")
    assert main(["verify", "r1.json", *given, "--rows", "people.csv"]) == 1
    assert capsys.readouterr().out == "refused: the rows of the receipt are not the rows asked for\n"
    assert main(["verify", "r1.json", "--key", "nothing.pem"]) == 2
    assert "cannot check: nothing.pem: no such file" in capsys.readouterr().err
    assert json.loads((trained / "r1.json").read_text())["reason"] == "by mail"


def test_a_copy_of_the_verifier_needs_the_record_only(trained, capsys):
    assert forget_person("p7", "r1.json") == 0
    capsys.readouterr()
    assert main(["record", "m.priory"]) == 0
    (trained / "record.json").write_text(capsys.readouterr().out)
    copied = trained / "verify.py"
    copied.write_text((ROOT / "src/priory/storage/receipt_verifier.py").read_text())
    code = "import runpy, sys; sys.modules['priory'] = None; runpy.run_path('verify.py', run_name='__main__')"
    given = ["r1.json", "--key", "public.pem", "--opening", "p7.json", "--record", "record.json"]
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "with the rows the one before" in done.stdout
    (trained / "record.json").write_text("{}")
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:8]) == (1, "refused:")


DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
HOSTILE_FILES = [
    b"",
    b"null",
    b"[]",
    b"7",
    b"{",
    DEEP,
    b"[" * 100_000,
    b"\xff",
    b"NaN",
    b'{"rows": [' + b"9" * 9999 + b"]}",
]
HOSTILE_VALUES = [
    None,
    True,
    -1,
    1e308,
    float("nan"),
    10**400,
    "x",
    "1e999999999",
    "1/0",
    "\ud800",
    [],
    {},
    {"tokens": 1},
]


def list_places(value, place=()):
    yield place
    for key in (list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ())[:9]:
        yield from list_places(value[key], (*place, key))


@pytest.fixture
def check_both(trained, capsys):
    """Run the command and the copied file, which have to answer with one line."""
    assert forget_person("p7", "r1.json") == 0
    assert main(["record", "m.priory"]) == 0
    (trained / "record.json").write_text(capsys.readouterr().out.splitlines()[-1])
    files = ["r1.json", "--key", "public.pem", "--opening", "p7.json", "--previous", "r0.json"]

    def run():
        codes = []
        for check in (
            lambda: main(["verify", *files, "--model", "m.priory"]),
            lambda: verifier.run_command(*files, "--record", "record.json"),
        ):
            codes.append(check())
            out, err = capsys.readouterr()
            assert len((out + err).splitlines()) == 1, out + err
            assert not {"\x1b", "Traceback", "report it"} & {*(out + err).split()}
        return codes

    assert run() == [0, 0]
    return run


@pytest.mark.parametrize("name", ["r1.json", "p7.json", "r0.json", "record.json", "public.pem"])
def test_hostile_files_get_one_sentence(trained, check_both, name):
    for content in HOSTILE_FILES:
        (trained / name).write_bytes(content)
        codes = check_both()
        assert codes[name == "record.json" :] in ([1], [2], [1, 1], [1, 2], [2, 1], [2, 2])


def test_hostile_values_that_an_operator_has_signed_get_one_sentence(trained, check_both):
    """An operator has the key, and commits to whatever the opening holds."""
    rng, key = np.random.default_rng(0), read_private_key(trained / "key.pem")
    honest = {name: json.loads((trained / name).read_text()) for name in ("r1.json", "p7.json", "record.json")}
    places = [(name, place) for name in honest for place in list_places(honest[name]) if place]
    for i in rng.choice(len(places), 60, replace=False).tolist():
        name, place = places[i]
        files = copy.deepcopy(honest)
        inside = files[name]
        for step in place[:-1]:
            inside = inside[step]
        inside[place[-1]] = HOSTILE_VALUES[i % len(HOSTILE_VALUES)]
        receipt, opening = files["r1.json"], files["p7.json"]
        with suppress(Exception):  # what cannot be signed stays as it is
            shown = zip(opening["salts"]["rows"], opening["rows"], strict=True)
            made = (
                receipt
                if name == "r1.json"
                else receipt
                | {
                    "rows": [verifier.commit("row", salt, row) for salt, row in shown],
                    "after": verifier.commit("record", opening["salts"]["after"], files["record.json"]),
                }
            )
            files["r1.json"] = made | {"signature": key.sign(verifier.signed_bytes(made)).hex()}
        for each, value in files.items():
            (trained / each).write_text(json.dumps(value))
        check_both()


@pytest.mark.parametrize(
    "more", [["--model", "m.priory"], ["--rows", "p7.csv"], ["--opening", "p7.json", "--rows", "p7.csv"]]
)
def test_what_cannot_be_compared_is_not_passed_over(trained, capsys, more):
    assert forget_person("p7", "r1.json") == 0
    capsys.readouterr()
    assert main(["verify", "r1.json", "--key", "public.pem", *more]) == 2
    assert "give --opening and --model" in capsys.readouterr().err
    for given in (["--record", "r0.json"], ["--opnening", "p7.json"], ["--opening"]):
        assert verifier.run_command("r1.json", "--key", "public.pem", *given) == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--where", "person=nobody"], "no row has person = 'nobody'"),
        (["--where", "name=p7"], "which --where names"),
        (["--where", "p7"], "write COLUMN=TEXT"),
        (["--sign-key", "key.pem"], "give --sign-key and --receipt"),
        (["--opening", "o.json"], "give --sign-key and --receipt"),
        (["--sign-key", "public.pem", "--receipt", "r.json"], "private Ed25519 key"),
    ],
)
def test_a_wrong_request_changes_nothing(trained, capsys, options, problem):
    before = (trained / "m.priory").read_bytes()
    assert main(["forget", "m.priory", "people.csv", *options]) != 0
    assert problem in capsys.readouterr().err
    assert (trained / "m.priory").read_bytes() == before


def test_a_model_that_has_learned_states_it_first(trained, capsys):
    assert main(["learn", "m.priory", "p7.csv"]) == 0
    assert forget_person("p7", "r1.json") == 3
    assert "changed since receipt 0" in capsys.readouterr().err
    assert main(["receipt", "m.priory", "--sign-key", "key.pem", "--receipt", "r1.json"]) == 0
    assert forget_person("p7", "r2.json") == 0
    capsys.readouterr()
    assert main(["verify", "r2.json", "--key", "public.pem", "--previous", "r1.json"]) == 0


def test_a_merged_model_begins_a_chain(trained, capsys):
    assert main(["merge", "m.priory", "m.priory", "-o", "both.priory"]) == 0
    assert read_chain(pr.load("both.priory")) is None
    assert read_chain(pr.load("m.priory"))["counter"] == 0
