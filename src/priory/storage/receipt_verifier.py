"""Verify a receipt of forgetting by adding: the record after + the rows forgotten = the record before.

This file needs Python 3.11 with cryptography, and nothing of priory. Copy it, and run

    python receipt_verifier.py r1.json --key public.pem [--previous r0.json] [--opening p7.json]
                               [--record record.json] [--rows rows.json]

It prints one sentence. The exit code is 0 if the receipt is verified, 1 if it is refused, 2 if it cannot be checked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import struct
import sys
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

RECEIPT_SPEC, MASK = "priory receipt 1", (1 << 64) - 1
FIELDS = {"spec", "kind", "model", "counter", "time", "previous", "before", "after", "rows", "reason", "signature"}


class RefusedError(ValueError):
    """The receipt is not true."""


def encode_canonically(value: object) -> bytes:
    """JSON with sorted keys and without blanks."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode(errors="surrogatepass")


def commit(label: str, salt: str, thing: object) -> str:
    """A salted commitment to JSON."""
    return hashlib.sha256(label.encode() + b"\0" + bytes.fromhex(salt) + encode_canonically(thing)).hexdigest()


def signed_bytes(receipt: dict[str, Any]) -> bytes:
    """What an Ed25519 key signs: everything but the signature."""
    return b"priory receipt\0" + encode_canonically({k: v for k, v in receipt.items() if k != "signature"})


def add_amount(table: dict[str, Any], path: list[str], amount: Fraction) -> None:
    """Add to a number in nested dicts; what is zero or empty is left out."""
    key, *rest = path
    if rest:
        add_amount(table.setdefault(key, {}), rest, amount)
    else:
        table[key] = str(Fraction(table.get(key, 0)) + amount)
    if table[key] in ("0", {}):
        del table[key]


def log_by_table(x: float) -> float:
    """The logarithm as a sequence of IEEE operations: x = m 2^e, c the middle of the interval of m, r = (m - c) / c."""
    m, e = math.frexp(x)
    c = (math.floor(m * 1024) + 0.5) / 1024
    r, series = (m - c) / c, 0.0
    with localcontext(prec=40):
        log_c, log_two = float(Decimal(c).ln()), float(Decimal(2).ln())
    for coefficient in (0.2, 0.25, 1 / 3, 0.5, 1.0):
        series = (coefficient - series) * r
    return log_c + series + e * log_two


def log_factorial(x: float) -> float:
    """The logarithm of a product that is exact up to 20!, and Stirling's series above."""
    if x <= 20:
        return log_by_table(float(math.factorial(int(x))))
    s = 1 / (x * x)
    s = 1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))
    return (x + 0.5) * log_by_table(x) - x + 0.91893853320467274178 + s / x


def round_to_bits(x: float, bits: int) -> float:
    """The nearest number with so many significant bits, finite."""
    m, e = math.frexp(x)
    whole = round(math.ldexp(m, bits))
    return math.ldexp(whole - (int(math.copysign(1, x)) if e == 1024 and abs(whole) == 1 << bits else 0), e - bits)


def count_cell(family: str, rule: dict[str, Any], x: Any) -> Iterator[tuple[str, str | None, float | Fraction]]:
    """What one cell adds to the record of a family: fields, values (of counts) and amounts."""
    if family == "Categorical":
        yield "counts", str(x), 1
    elif family == "Histogram":
        yield "counts", round_to_bits(x, rule["bits"]).hex(), 1
    elif family == "Text":
        yield "n", None, 1
        for token, times in x["tokens"].items():
            yield "counts", token, 1 if rule["binary"] else Fraction(times)
            if rule["presence"]:
                yield "presence", token, 1
    else:
        whole = x >= 0 and x == math.floor(x)
        sums: dict[str, tuple[bool, dict[str, float | Fraction]]] = {
            "Bernoulli": (x in (0, 1), {"successes": x}),
            "Gaussian": (True, {"weight": 1, "first": x, "second": Fraction(x) ** 2}),
            "Poisson": (whole and x <= 2**53, {"events": x}),
            "Gamma": (1e-300 <= x <= 1e300, {"total": x}),
            "Binomial": (whole and x <= rule.get("trials", 0), {"successes": x}),
        }
        inside, found = sums[family]
        if inside and family == "Poisson":
            found["log_factorials"] = log_factorial(x)
        elif inside and family == "Gamma":
            found["log_total"] = log_by_table(x)
        elif inside and family == "Binomial":
            n = rule["trials"]
            found["log_ways"] = log_factorial(n) - log_factorial(x) - log_factorial(n - x)
        for field, amount in ({"n": 1} | found if inside else {"outside": 1}).items():
            yield field, None, amount


def hash_bytes(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def hash_label(label: Any) -> int:
    is_text = isinstance(label, str)
    if not is_text and label != label // 1:
        return hash_bytes(f"{type(label).__name__} {label!r}".encode())
    return hash_bytes(b"s" + label.encode(errors="surrogatepass") if is_text else b"n%d" % int(label))


def scramble(x: int) -> int:
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x = (x ^ (x >> 32)) * factor & MASK
    return x ^ (x >> 32)


def hash_row(columns: dict[str, Any], row: dict[str, Any]) -> int:
    """The hash by which rows are sampled."""
    total = hash_label(row["class"])
    for name, cell in row["cells"].items():
        if "Text" in columns[name]:
            found = hash_bytes(cell["text"].encode(errors="surrogatepass")) if cell["text"] else 0
        elif "Categorical" in columns[name]:
            found = hash_label(cell)
        else:
            found = struct.unpack("<Q", struct.pack("<d", cell + 0.0))[0] ^ 0x9E3779B97F4A7C15
        total += scramble(found ^ hash_bytes(b"column " + name.encode(errors="surrogatepass"))) if found else 0
    return min(scramble(total & MASK), MASK - 1)


def add_row(record: dict[str, Any], row: dict[str, Any]) -> None:
    """Add a row to a record, in place."""
    label, weight, kept = str(row["class"]), Fraction(row.get("weight", 1)), record["kept"]
    add_amount(record["n"], [label], weight)
    for name, cell in row["cells"].items():
        for family, rule in record["columns"][name].items():
            sums = record["sums"].setdefault(name, {}).setdefault(family, {})
            for field, value, amount in count_cell(family, rule, cell):
                path = [field, label] if value is None else [field, label, value]
                add_amount(sums, path, weight * Fraction(amount))
    place = hash_row(record["columns"], row)
    if kept is not None and place < int(kept["limit"], 16):
        cells = {name: _drop_text(cell) for name, cell in row["cells"].items()}
        known = kept["rows"].setdefault(f"{place:016x}", {"class": row["class"], "cells": cells, "weight": "0"})
        add_amount(known, ["weight"], weight)


def _drop_text(cell: Any) -> Any:
    return {k: v for k, v in cell.items() if k != "text"} if isinstance(cell, dict) else cell


def find_miscounted_text(columns: dict[str, Any], rows: list[dict[str, Any]]) -> str | None:
    """The column of a text whose tokens are not its words; texts that are not plain ASCII words are not recounted."""
    for row in rows:
        for name, cell in row["cells"].items():
            words = columns[name].get("Text", {}).get("words")
            if words and cell["text"].isascii():
                found = [word[:1024] for word in re.findall(rf"\w{{{words},}}", cell["text"].lower())]
                if {word: str(found.count(word)) for word in found} != cell["tokens"]:
                    return name
    return None


def check_signature(receipt: dict[str, Any], pem: bytes) -> None:
    """Raise RefusedError unless the receipt has all fields and was signed with the key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if set(receipt) != FIELDS or receipt["spec"] != RECEIPT_SPEC or receipt["kind"] not in ("state", "forget"):
        raise RefusedError("it does not have the fields of a receipt")
    try:
        load_pem_public_key(pem).verify(bytes.fromhex(receipt["signature"]), signed_bytes(receipt))  # type: ignore
    except (InvalidSignature, ValueError):
        raise RefusedError("it was not signed with this key, or was changed after it was signed") from None


def check_chain(receipt: dict[str, Any], previous: dict[str, Any]) -> None:
    """Raise RefusedError unless a receipt follows another."""
    if receipt["model"] != previous["model"]:
        raise RefusedError("it is about another model than the receipt before it")
    if receipt["previous"] != hashlib.sha256(encode_canonically(previous)).hexdigest():
        raise RefusedError("it does not follow this receipt: the chain has a gap, or was forked")
    if receipt["counter"] != previous["counter"] + 1 or receipt["time"] < previous["time"]:
        raise RefusedError("its number or time does not follow the receipt before it")
    if receipt["kind"] == "forget" and receipt["before"] != previous["after"]:
        raise RefusedError("the record before is not the one that the receipt before it has left")


def check_rows(receipt: dict[str, Any], opening: dict[str, Any], asked: list[Any] | None) -> None:
    """Raise RefusedError unless the opening shows the rows of the receipt, and they are the rows asked for."""
    rows, salts = opening["rows"], opening["salts"]["rows"]
    if not len(rows) == len(salts) == len(receipt["rows"]):
        raise RefusedError("it is about another number of rows than the opening")
    if any(commit("row", s, row) != known for s, row, known in zip(salts, rows, receipt["rows"], strict=True)):
        raise RefusedError("the rows of the opening are not the rows of the receipt")
    if asked is not None and sorted(map(encode_canonically, asked)) != sorted(map(encode_canonically, rows)):
        raise RefusedError("the rows of the receipt are not the rows asked for")
    if name := find_miscounted_text(opening["columns"], rows):
        raise RefusedError(f"the words counted in column {name!r} are not the words of the text")


def check_record(receipt: dict[str, Any], opening: dict[str, Any], record: dict[str, Any]) -> None:
    """Raise RefusedError unless the record is the one after and, with the rows, the one before."""
    if commit("record", opening["salts"]["after"], record) != receipt["after"]:
        raise RefusedError("the record is not the one that the receipt has left")
    if receipt["kind"] == "forget":
        before = json.loads(encode_canonically(record | {"columns": opening["columns"]}))
        for row in opening["rows"]:
            add_row(before, row)
        if commit("record", opening["salts"]["before"], before) != receipt["before"]:
            raise RefusedError("the record after and the rows do not add up to the record before")


def verify_receipt(
    receipt: dict[str, Any],
    pem: bytes,
    previous: dict[str, Any] | None = None,
    opening: dict[str, Any] | None = None,
    record: dict[str, Any] | None = None,
    asked: list[Any] | None = None,
) -> str:
    """Return a sentence that says what was verified; raise RefusedError with the reason if something is not true."""
    check_signature(receipt, pem)
    found = f"receipt {receipt['counter']} of model {receipt['model']} is signed"
    if previous is not None:
        check_signature(previous, pem)
        check_chain(receipt, previous)
        found += f" and follows receipt {previous['counter']}"
    if opening is not None:
        check_rows(receipt, opening, asked)
        found += f", for {len(opening['rows'])} rows that it names"
    if opening is not None and record is not None:
        check_record(receipt, opening, record)
        found += "; the record is the one after, and with the rows the one before" if opening["rows"] else "; the record is the one it states"
    return found


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Verify a receipt of forgetting.")
    parser.add_argument("receipt")
    parser.add_argument("--key", required=True)
    for name in ("previous", "opening", "record", "rows"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args()
    try:
        names = (given.receipt, given.previous, given.opening, given.record, given.rows)
        files = [None if name is None else json.loads(Path(name).read_bytes()) for name in names]
        print("verified:", verify_receipt(files[0], Path(given.key).read_bytes(), *files[1:]))
    except RefusedError as error:
        print("refused:", error)
        return 1
    except Exception as error:
        print("cannot check:", type(error).__name__, error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
