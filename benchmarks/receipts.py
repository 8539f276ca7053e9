"""Honest receipts are accepted, and forged ones are refused, by the verifier that imports nothing of priory.

    python benchmarks/receipts.py [--runs 1000] [--seed 0] [--made-up] [--write]

Of a model of a table (1,000 rows of adult) and one of texts (1,000 messages of sms_spam), two to five rows are
forgotten with a receipt, which is verified with its opening, the receipt before it, the record of the model and the
rows asked for. Then the same request is answered by a forger, in one of the ways below; "operator" is a forger who has
the private key.
`--made-up` takes made-up rows. `--write` writes benchmarks/results/receipts.md. The exit code is 1 if an honest receipt
is refused or a forged one is accepted.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import datasets
import priory as pr
from priory.storage import receipts

RESULTS = Path(__file__).parent / "results" / "receipts.md"
N_ROWS, MEMORY = 1000, 300
Json = dict[str, Any]


def load_verifier() -> Any:
    """The file on its own, as somebody who has copied it would."""
    path = Path(receipts.__file__).with_name("receipt_verifier.py")
    assert "import priory" not in path.read_text()
    assert "from priory" not in path.read_text()
    spec = importlib.util.spec_from_file_location("verifier", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verifier = load_verifier()


def make_up_rows(rng: np.random.Generator) -> dict[str, tuple[Any, list[str]]]:
    """A table and texts without any data set."""
    labels = rng.choice(["yes", "no"], 200).tolist()
    table = pd.DataFrame(
        {
            "number": rng.normal(size=200).round(2),
            "count": rng.poisson(40, 200),
            "positive": np.where(rng.random(200) < 0.2, np.nan, rng.gamma(2, size=200)),
            "label": rng.choice(["a", "b", "c"], 200),
            "note": [" ".join(rng.choice(["win", "cash", "noon", "été", "lunch"], 4)) + str(i) for i in range(200)],
        }
    )
    texts = [
        " ".join(rng.choice(["win", "cash", "noon", "lunch", "Prize"], 5)) + f" number{i % 60}" for i in range(200)
    ]
    return {"table": (table, labels), "texts": (texts, labels)}


def read_rows(made_up: bool, rng: np.random.Generator) -> dict[str, tuple[Any, list[str]]]:
    table, texts = datasets.table("adult"), datasets.text("sms_spam")
    if made_up or table is None or texts is None:
        return make_up_rows(rng)
    X, y = table
    return {"table": (X[:N_ROWS], y[:N_ROWS].tolist()), "texts": (texts[0][:N_ROWS], texts[1][:N_ROWS])}


@dataclass
class Case:
    """A request: a model with its first receipt, the rows asked for, and the honest answer."""

    model: Any
    first: receipts.Issued
    before: Json
    asked: list[Json]
    honest: receipts.Issued
    record: Json
    other: receipts.Issued  # an honest answer to another request, and its record
    other_record: Json
    key: ed25519.Ed25519PrivateKey
    is_table: bool

    def sign(self, receipt: Json, key: ed25519.Ed25519PrivateKey | None = None) -> Json:
        signed = (key or self.key).sign(verifier.signed_bytes(receipt))
        return receipt | {"signature": signed.hex()}

    def answer(self, record: Json, rows: list[Json], **changed: Any) -> Attempt:
        """What an operator would show who claims that these rows have left this record."""
        salts = self.honest.opening["salts"] | {"rows": ["ab" * 32] * len(rows)}
        committed = [verifier.commit("row", salt, row) for salt, row in zip(salts["rows"], rows, strict=True)]
        stated = {"after": verifier.commit("record", salts["after"], record), "rows": committed}
        opening = self.honest.opening | {"rows": rows, "salts": salts}
        return Attempt(self.sign(self.honest.receipt | stated | changed), opening, record)


@dataclass
class Attempt:
    """A receipt with what is shown beside it."""

    receipt: Json
    opening: Json
    record: Json
    first: Json | None = None  # a receipt before it that is another than the honest one


def clone(value: Json) -> Json:
    return json.loads(verifier.encode_canonically(value))


def show_other_rows(case: Case) -> Attempt:
    return Attempt(case.honest.receipt, case.honest.opening | {"rows": case.other.opening["rows"]}, case.record)


def forget_nothing(case: Case) -> Attempt:
    return case.answer(case.before, case.asked)


def forget_another(case: Case) -> Attempt:
    return case.answer(case.other_record, case.asked)


def leave_in_sample(case: Case) -> Attempt:
    record = clone(case.record)
    name, row = next(iter(case.before["kept"]["rows"].items()))
    verifier.add_amount(record["kept"]["rows"].setdefault(name, clone(row) | {"weight": "0"}), "weight", Fraction(1))
    return case.answer(record, case.asked)


def leave_a_unit(case: Case) -> Attempt:
    """The least that a sum, or a count of words, can be wrong by."""
    record = clone(case.record)
    wanted = ("Gaussian", "first") if case.is_table else ("Text", "counts")
    key = next(key for key in record["sums"] if tuple(json.loads(key)[1:3]) == wanted)
    verifier.add_amount(record["sums"], key, Fraction(1, 2**1074) if case.is_table else Fraction(1))
    return case.answer(record, case.asked)


def forget_fewer(case: Case) -> Attempt:
    """An honest receipt for all rows but one, of which nothing is said."""
    rest, left = case.asked[1:], clone(case.record)
    record = verifier.add_rows(left, case.honest.opening["frame"], case.asked[:1])
    return case.answer(record, rest)


def make_record_up(case: Case) -> Attempt:
    """A record before that no receipt has stated."""
    record = clone(case.other_record)
    before = verifier.add_rows(record, case.honest.opening["frame"], case.asked)
    salt = case.honest.opening["salts"]["before"]
    return case.answer(record, case.asked, before=verifier.commit("record", salt, before))


def change_a_field(case: Case) -> Attempt:
    changed = case.honest.receipt | {"time": "2020-01-01T00:00:00+00:00"}
    return Attempt(changed, case.honest.opening, case.record)


def use_another_key(case: Case) -> Attempt:
    signed = case.sign(case.honest.receipt, ed25519.Ed25519PrivateKey.generate())
    return Attempt(signed, case.honest.opening, case.record)


def replay(case: Case) -> Attempt:
    return Attempt(case.other.receipt, case.honest.opening, case.record)


def fork(case: Case) -> Attempt:
    return case.answer(case.record, case.asked, previous="00" * 32)


def forget_without_weight(case: Case) -> Attempt:
    return case.answer(case.before, [row | {"weight": "0"} for row in case.asked])


def hide_a_word(case: Case) -> Attempt:
    """A cell (of a text: a word) that stays in the record, and that the opening does not show."""
    rows = clone({"rows": case.asked})["rows"]
    cells = rows[0]["cells"]
    name = next(iter(cells))
    if isinstance(cells[name], dict) and cells[name]["tokens"]:
        cells[name]["tokens"].popitem()
    else:
        del cells[name]
    record = clone(case.before)
    negative = [row | {"weight": "-1"} for row in rows]
    return case.answer(verifier.add_rows(record, case.honest.opening["frame"], negative), rows)


def count_in_the_opening(case: Case) -> Attempt:
    """The opening has the sums that are missing in the record, of which nothing was taken."""
    negative = [row | {"weight": "-1"} for row in case.asked]
    wanted = verifier.add_rows(case.before, case.honest.opening["frame"], negative)
    attempt = case.answer(case.record | {name: case.before[name] for name in ("n", "sums")}, case.asked)
    attempt.opening["frame"] = case.honest.opening["frame"] | {name: wanted[name] for name in ("n", "sums")}
    return attempt


def state_no_sample(case: Case) -> Attempt:
    """The first receipt is of a record without the kept rows, so that they may stay."""
    return state_otherwise(case, case.record | {"kept": case.before["kept"]}, {"kept": None})


def state_no_counts(case: Case) -> Attempt:
    """The first receipt is of a record in which nothing is counted in some way, so that these counts may stay."""
    family = "Gaussian" if case.is_table else "Text"
    stay = {key: number for key, number in case.before["sums"].items() if json.loads(key)[1] == family}
    known = {name: {f: rules[f] for f in rules if f != family} for name, rules in case.before["columns"].items()}
    return state_otherwise(case, case.record | {"sums": case.record["sums"] | stay}, {"columns": known})


def state_otherwise(case: Case, record: Json, changes: Json) -> Attempt:
    """A chain that begins with a record which is otherwise, as the opening says, and leaves what was not in it."""
    stated = verifier.commit("record", case.honest.opening["salts"]["before"], case.before | changes)
    first = case.sign(case.first.receipt | {"after": stated})
    digest = hashlib.sha256(verifier.encode_canonically(first)).hexdigest()
    attempt = case.answer(record, case.asked, before=stated, previous=digest)
    attempt.opening["frame"] = case.honest.opening["frame"] | changes
    attempt.first = first
    return attempt


FORGERIES: dict[str, tuple[bool, Callable[[Case], Attempt]]] = {  # whether the forger has the key
    "other rows are shown": (False, show_other_rows),
    "nothing was forgotten": (True, forget_nothing),
    "another row was forgotten": (True, forget_another),
    "a row is left in the sample": (True, leave_in_sample),
    "one unit is left in a sum": (True, leave_a_unit),
    "fewer rows than asked": (True, forget_fewer),
    "a record made up for the occasion": (True, make_record_up),
    "a field is changed": (False, change_a_field),
    "another key": (False, use_another_key),
    "an old receipt again": (False, replay),
    "a fork of the chain": (True, fork),
    "a row without weight": (True, forget_without_weight),
    "a cell or word is left out": (True, hide_a_word),
    "sums in the opening": (True, count_in_the_opening),
    "a chain that states no sample": (True, state_no_sample),
    "a chain that does not state all counts": (True, state_no_counts),
}


def train(kind: str, X: Any, y: list[str]) -> Any:
    return (pr.NaiveBayes if kind == "table" else pr.TextClassifier)(memory=MEMORY).fit(X, y)


def forget(model: Any, book: receipts.ReceiptBook, X: Any, y: list[str], rows: np.ndarray) -> tuple[Any, Any]:
    twin = copy.copy(model)
    chosen = X.iloc[rows] if isinstance(X, pd.DataFrame) else [X[i] for i in rows]
    return book.forget(twin, chosen, [y[i] for i in rows]), twin


def run(runs: int, seed: int, made_up: bool) -> tuple[dict[str, list[int]], dict[str, float]]:
    """Honest receipts and forgeries by kind: how many, and how many had the right outcome; and seconds."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[int]] = {}
    seconds = {"issue": 0.0, "verify": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        key = ed25519.Ed25519PrivateKey.generate()
        pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        private = Path(folder, "key.pem")
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        sets = read_rows(made_up, rng)
        models = {}
        for kind, (X, y) in sets.items():
            book = receipts.ReceiptBook(private, Path(folder, kind))
            model = train(kind, X, y)
            first = book.issue_state(model)
            models[kind] = (X, y, book, model, first, Path(book.salts).read_bytes(), receipts.export_model(model))
        for i in range(runs):
            kind = ("table", "texts")[i % 2]
            X, y, book, model, first, salts, before = models[kind]
            issued = []
            for _ in range(2):
                Path(book.salts).write_bytes(salts)
                rows = rng.choice(len(y), rng.integers(2, 6), replace=False)
                start = time.process_time()
                issued.append(forget(model, book, X, y, rows))
                seconds["issue"] += time.process_time() - start
            (honest, left), (other, other_left) = issued
            asked = honest.opening["rows"]
            record, other_record = receipts.export_model(left), receipts.export_model(other_left)
            case = Case(
                model,
                first,
                clone(before),
                asked,
                honest,
                clone(record),
                other,
                clone(other_record),
                key,
                kind == "table",
            )
            start = time.process_time()
            accepted = is_accepted(Attempt(honest.receipt, honest.opening, case.record), case, pem)
            seconds["verify"] += time.process_time() - start
            note(found, f"honest, {kind}", accepted)
            name = list(FORGERIES)[(i // 2) % len(FORGERIES)]
            note(found, name, not is_accepted(FORGERIES[name][1](case), case, pem))
    return found, {"issue": seconds["issue"] / (2 * runs), "verify": seconds["verify"] / runs}


def is_accepted(attempt: Attempt, case: Case, pem: bytes) -> bool:
    try:
        # as files: what is read from JSON
        first = attempt.first or case.first.receipt
        files = [clone(part) for part in (attempt.receipt, first, attempt.opening, attempt.record)]
        verifier.verify_receipt(files[0], pem, *files[1:], clone({"rows": case.asked})["rows"])
    except verifier.RefusedError:
        return False
    return True


def note(found: dict[str, list[int]], name: str, is_right: bool) -> None:
    counts = found.setdefault(name, [0, 0])
    counts[0] += 1
    counts[1] += is_right


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--made-up", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found, seconds = run(given.runs, given.seed, given.made_up)
    honest = {name: counts for name, counts in found.items() if name.startswith("honest")}
    forged = {name: counts for name, counts in found.items() if name not in honest}
    lines = [
        "# Receipts: honest ones accepted, forged ones refused",
        "",
        f"`python benchmarks/receipts.py --runs {given.runs} --seed {given.seed} --write`: of a model of a table",
        "(1,000 rows of adult) and one of texts (1,000 messages of sms_spam), two to five rows are forgotten with a",
        "receipt, which the verifier that imports nothing of priory checks with opening, record, receipt before and",
        "rows asked for. Then a forger answers the same request; an operator is a forger who has the private key.",
        "",
        "| receipts | runs | accepted |",
        "|---|---:|---:|",
        *(f"| {name} | {n:,} | {right:,} |" for name, (n, right) in sorted(honest.items())),
        "",
        "| forgery | forger | runs | refused |",
        "|---|---|---:|---:|",
        *(
            f"| {name} | {'operator' if FORGERIES[name][0] else 'anybody'} | {n:,} | {right:,} |"
            for name, (n, right) in forged.items()
        ),
        f"| all | | {sum(n for n, _ in forged.values()):,} | {sum(right for _, right in forged.values()):,} |",
        "",
        f"Forgetting with a receipt takes {1e3 * seconds['issue']:.0f} ms of processor time and verifying one "
        f"{1e3 * seconds['verify']:.0f} ms, nearly all of it JSON.",
    ]
    print("\n".join(lines))
    if given.write:
        RESULTS.write_text("\n".join(lines) + "\n")
    return int(any(n != right for n, right in found.values()))


if __name__ == "__main__":
    sys.exit(main())
