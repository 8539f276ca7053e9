"""Verify a receipt of forgetting by adding: the record after + the rows forgotten = the record before.

This file needs Python 3.11 with cryptography, and nothing of priory. Copy it, and run

    python receipt_verifier.py r1.json --key public.pem [--previous r0.json] [--opening p7.json]
                               [--record record.json] [--rows rows.json]

It prints one sentence. The exit code is 0 if the receipt is verified, 1 if it is refused, 2 if it cannot be checked.
"""

import hashlib
import json
import math
import struct
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

RECEIPT_SPEC, MASK = "priory receipt 1", (1 << 64) - 1


class RefusedError(ValueError):
    """The receipt is not true."""


def require(is_true: bool, otherwise: str) -> None:
    """Refuse the receipt with a reason, unless something is true."""
    if not is_true:
        raise RefusedError(otherwise)


def encode_canonically(value: object) -> bytes:
    """JSON with sorted keys and without blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def commit(label: str, salt: str, thing: object) -> str:
    """A salted commitment to JSON."""
    return hashlib.sha256(label.encode() + b"\0" + bytes.fromhex(salt) + encode_canonically(thing)).hexdigest()


def signed_bytes(receipt: Any) -> bytes:
    """What an Ed25519 key signs: everything but the signature."""
    return b"priory receipt\0" + encode_canonically({k: v for k, v in receipt.items() if k != "signature"})


# -- counting a row ----------------------------------------------------------------------------------------------------


def read_number(number: Any) -> Fraction:
    """A number, or a fraction written as 5/4; there are no exponents, which could take all memory."""
    return Fraction(*map(int, number.split("/"))) if isinstance(number, str) else Fraction(number)


def add_amount(table: Any, key: str, amount: Fraction) -> None:
    """Add to a number of a table, in which zeros are left out."""
    total = read_number(table.pop(key, 0)) + amount
    table.update({key: str(total)} if total else {})


def compute_log(x: float) -> float:
    """The logarithm as a sequence of IEEE operations: x = m 2^e, c the middle of the interval of m, r = (m - c) / c."""
    m, e = math.frexp(x)
    c = (math.floor(m * 1024) + 0.5) / 1024
    r, series = (m - c) / c, 0.0
    for coefficient in (0.2, 0.25, 1 / 3, 0.5, 1.0):
        series = (coefficient - series) * r
    return float(Decimal(c).ln()) + series + e * float(Decimal(2).ln())


def compute_log_factorial(x: float) -> float:
    """The logarithm of a product that is exact up to 20!, and Stirling's series above."""
    if x <= 20:
        return compute_log(float(math.factorial(int(x))))
    s = 1 / (x * x)
    s = 1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))
    return (x + 0.5) * compute_log(x) - x + 0.91893853320467274178 + s / x


def round_number(x: float, bits: int) -> float:
    """The nearest number with so many significant bits, finite."""
    m, e = math.frexp(x)
    whole = round(math.ldexp(m, bits))
    return math.ldexp(whole - (int(math.copysign(1, x)) if e == 1024 and abs(whole) == 1 << bits else 0), e - bits)


def count_cell(family: str, rule: Any, x: Any) -> Any:
    """What one cell adds to the record of a family: fields, the value that is counted (in a list), and amounts."""
    if family in ("Categorical", "Histogram"):
        return [("counts", [str(x) if family == "Categorical" else round_number(x, rule["bits"]).hex()], 1)]
    if family == "Text":
        counts = [("counts", [token], 1 if rule["binary"] else times) for token, times in x["tokens"].items()]
        return [("n", [], 1), *counts]
    n, log_of = rule.get("trials", 2**53), compute_log_factorial
    is_count = x >= 0 and x == math.floor(x) and x <= n
    is_inside = {"Bernoulli": x in (0, 1), "Gaussian": True, "Gamma": 1e-300 <= x <= 1e300}.get(family, is_count)
    sums: Any = {
        "Bernoulli": lambda: {"successes": x},
        "Gaussian": lambda: {"weight": 1, "first": x, "second": Fraction(x) ** 2},
        "Poisson": lambda: {"events": x, "log_factorials": log_of(x)},
        "Binomial": lambda: {"successes": x, "log_ways": log_of(n) - log_of(x) - log_of(n - x)},
        "Gamma": lambda: {"total": x, "log_total": compute_log(x)},
    }
    return [(f, [], amount) for f, amount in ({"n": 1} | sums[family]() if is_inside else {"outside": 1}).items()]


def hash_text(text: str) -> int:
    """A hash of 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def hash_cell(cell: Any, is_number: bool = False) -> int:
    """The hash of a number, a text (0 if it is empty) or a label."""
    if isinstance(cell, dict):
        return hash_text(cell["text"]) if cell["text"] else 0
    bits: int = struct.unpack("<Q", struct.pack("<d", cell if is_number else 0.0))[0] ^ 0x9E3779B97F4A7C15
    return bits if is_number else hash_text({str: "s", int: "n"}.get(type(cell), "float ") + str(cell))


def scramble(x: int) -> int:
    """Mix the bits of a number."""
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x = (x ^ (x >> 32)) * factor & MASK
    return x ^ (x >> 32)


def hash_row(columns: Any, row: Any) -> int:
    """The hash by which rows are sampled: of the class, plus one of each column with its cell."""
    cells = {name: hash_cell(cell, "Categorical" not in columns[name]) for name, cell in row["cells"].items()}
    total = sum(scramble(hash_text("column " + name) ^ cell) for name, cell in cells.items() if cell)
    return min(scramble(total + hash_cell(row["class"]) & MASK), MASK - 1)


def add_row(record: Any, row: Any) -> None:
    """Add a row to a record, in place."""
    label, weight, kept = str(row["class"]), read_number(row.get("weight", 1)), record["kept"]
    add_amount(record["n"], label, weight)
    for name, cell in row["cells"].items():
        for family, rule in record["columns"][name].items():
            for field, value, amount in count_cell(family, rule, cell):
                key = encode_canonically([name, family, field, label, *value]).decode()
                add_amount(record["sums"], key, weight * read_number(amount))
    place = hash_row(record["columns"], row)
    if kept is not None and place < int(kept["limit"], 16):
        cells = {n: {k: c[k] for k in c if k != "text"} if isinstance(c, dict) else c for n, c in row["cells"].items()}
        known = kept["rows"].setdefault(f"{place:016x}", {"class": row["class"], "cells": cells, "weight": "0"})
        add_amount(known, "weight", weight)


def add_rows(record: Any, frame: Any, rows: list[Any]) -> Any:
    """The record with rows added; the frame has what only the rows had, such as a column."""
    columns, kept = frame["columns"] | record["columns"], record["kept"] or frame["kept"]
    total = json.loads(encode_canonically(record | {"columns": columns, "declared": frame["declared"], "kept": kept}))
    for row in rows:
        add_row(total, row)
    return total


# -- the checks --------------------------------------------------------------------------------------------------------


def check_signed(receipt: Any, pem: bytes) -> None:
    """Refuse a receipt that lacks a field, or was not signed with the key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    is_known = receipt["spec"] == RECEIPT_SPEC and receipt["model"].isalnum()
    require(is_known, "it is not a receipt that this version knows")
    try:
        load_pem_public_key(pem).verify(bytes.fromhex(receipt["signature"]), signed_bytes(receipt))
    except InvalidSignature:
        raise RefusedError("it was not signed with this key, or was changed after it was signed") from None


def check_chain(receipt: Any, previous: Any) -> None:
    """Refuse a receipt that does not follow another; one without rows states what was learned since."""
    digest, is_joined = hashlib.sha256(encode_canonically(previous)).hexdigest(), receipt["before"] == previous["after"]
    follows = receipt["counter"] == previous["counter"] + 1 and receipt["time"] >= previous["time"]
    require(receipt["model"] == previous["model"], "it is about another model than the receipt before it")
    require(receipt["previous"] == digest and follows, "it does not follow this receipt: the chain has a gap or a fork")
    require(is_joined or not receipt["rows"], "the record before is not the one that the receipt before it has left")


def check_opening(receipt: Any, opening: Any, asked: list[Any]) -> None:
    """Refuse a receipt of other rows than the opening shows, or than were asked for."""
    rows, salts = opening["rows"], opening["salts"]["rows"]
    shown = [commit("row", salt, row) for salt, row in zip(salts, rows, strict=False)]
    require((shown, len(shown)) == (receipt["rows"], len(rows)), "the opening shows other rows than the receipt")
    wanted, given = (sorted(map(encode_canonically, some)) for some in (asked, rows))
    require(wanted == given, "the rows of the receipt are not the rows asked for")
    require(all(read_number(row.get("weight", 1)) > 0 for row in rows), "a row has no weight")


def check_record(receipt: Any, opening: Any, record: Any) -> None:
    """Refuse a receipt that has left another record, or one that with the rows is not the record before."""
    after, salts = commit("record", opening["salts"]["after"], record), opening["salts"]
    require(after == receipt["after"], "the record is not the one that the receipt has left")
    if receipt["rows"]:
        before = commit("record", salts["before"], add_rows(record, opening["frame"], opening["rows"]))
        require(before == receipt["before"], "the record after and the rows do not add up to the record before")


def verify_receipt(
    receipt: Any, pem: bytes, previous: Any = None, opening: Any = None, record: Any = None, rows: Any = None
) -> str:
    """Return a sentence that says what was verified; raise RefusedError with the reason if something is not true."""
    if opening is None and (record is not None or rows is not None):
        raise ValueError("records and rows are compared with the opening of the receipt; give it, too")
    check_signed(receipt, pem)
    found = f"receipt {receipt['counter']:d} of model {receipt['model']} is signed"
    if previous is not None:
        check_chain(receipt, previous)
        found += f" and follows receipt {previous['counter']:d}"
    if opening is not None:
        check_opening(receipt, opening, opening["rows"] if rows is None else rows)
        found += f", for the rows of the opening ({len(opening['rows'])})"
    if record is not None:
        check_record(receipt, opening, record)
        found += "; the record is the one after" + ", and with the rows the one before" * bool(receipt["rows"])
    return found


def run_command(receipt: str = "", *options: str) -> int:
    """Run the command."""
    try:
        paths = {"--receipt": receipt} | dict(zip(options[::2], options[1::2], strict=True))
        pem = Path(paths.pop("--key")).read_bytes()
        files = {option.removeprefix("--"): json.loads(Path(path).read_bytes()) or {} for option, path in paths.items()}
        print("verified:", verify_receipt(pem=pem, **files))
    except Exception as error:
        print("refused:" if isinstance(error, RefusedError) else f"cannot check ({type(error).__name__}):", error)
        return 1 if isinstance(error, RefusedError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(run_command(*sys.argv[1:]))
