"""docs/format.md: the test vectors, read by priory and by the second reader, which imports nothing of it."""

import ast
import hashlib
import json
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import priory as pr
from paths import ROOT
from priory.errors import ModelFileError
from priory.learning.record_export import export_record
from priory.storage.receipt_verifier import add_rows
from second_reader import RefusedError, answer, read_model
from second_reader.families import take_column
from second_reader.model_file import split

VECTORS = sorted((ROOT / "tests" / "format_vectors").glob("*.json"))
TOLERANCE = 1e-12
HEADER = struct.Struct("<8sIIQQ32s")


@pytest.fixture(params=[path.stem for path in VECTORS])
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    path = ROOT / "tests" / "format_vectors" / request.param
    found = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return found | {"path": path.with_suffix(".priory")}


def find_difference(answers: Any, vector: dict[str, Any]) -> float:
    return float(np.abs(np.exp(answers) - np.exp(vector["log_probabilities"])).max())


def test_the_second_reader_answers_each_vector(vector):
    assert find_difference(answer(read_model(vector["path"]), vector["rows"]), vector) <= TOLERANCE


def test_priory_answers_each_vector(vector):
    model, rows = pr.load(vector["path"]), vector["rows"]
    answers = model.predict_proba(rows)
    assert np.abs(answers - np.exp(vector["log_probabilities"])).max() <= TOLERANCE
    for row, wanted in zip(rows, vector["log_probabilities"], strict=True):
        if row:  # a dict has at least one column
            single = model.predict_proba_one(row)
            assert np.abs([single[c] for c in model.classes_] - np.exp(wanted)).max() <= TOLERANCE


def test_the_record_of_each_file_is_the_one_of_the_vector(vector):
    assert export_record(pr.load(vector["path"]).learned_) == vector["record"]


def test_the_rows_of_each_vector_add_up_to_its_record(vector):
    record = vector["record"]
    empty = record | {"n": {}, "sums": {}, "kept": record["kept"] and record["kept"] | {"rows": {}}}
    frame = {name: record[name] for name in ("columns", "declared", "kept")}
    assert add_rows(empty, frame, vector["learned"]) == record


def test_the_second_reader_finds_the_same_sums(vector):
    tree = read_model(vector["path"])
    labels = tree["learned"]["statistics_"]["classes"].tolist()
    found = dict(list_sums(tree, labels))
    assert found == {key: Fraction(number) for key, number in vector["record"]["sums"].items()}


def list_sums(tree: dict[str, Any], labels: list[str]) -> Any:
    """Counts and exact sums by [column, family, field, class (and value)], without zeros."""
    parts = tree["learned"]["statistics_"]["parts"]
    if tree["class"] == "TextClassifier":
        blocks = [{"names": ["text"], "candidates": ["Text"]}]
        parts = [parts]
    else:
        blocks = tree["learned"]["_schema"]["blocks"]
    for block, records in zip(blocks, parts, strict=True):
        for family, record in zip(block["candidates"], records, strict=True):
            for j, name in enumerate(block["names"]):
                for field, values, numbers in list_fields(family, record, j):
                    for c, row in enumerate(numbers):
                        for value, number in zip(values, row, strict=True):
                            key = json.dumps([name, family, field, labels[c], *value], separators=(",", ":"))
                            yield from [(key, Fraction(number))] if number else []


def list_fields(family: str, record: Any, j: int) -> Any:
    if isinstance(record, list):
        values = record[j]["values"].tolist()
        spelled = [[v if isinstance(v, str) else v.hex()] for v in values]
        yield "counts", spelled, record[j]["counts"].tolist()
    elif family == "Text":
        words = split(record["arena"], record["ends"])
        yield "n", [[]], record["n"][:, None].tolist()
        yield "counts", [[word] for word in words], record["counts"].T.tolist()
    else:
        for field, sums in take_column(record, j).items():
            yield field, [[]], [[number] for number in sums]


def test_the_second_reader_imports_nothing_of_priory():
    allowed = {
        "hashlib",
        "itertools",
        "json",
        "math",
        "struct",
        "re",
        "unicodedata",
        "datetime",
        "fractions",
        "functools",
        "numpy",
    }
    for path in (ROOT / "tests" / "second_reader").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            assert {name.split(".")[0] for name in names} <= allowed | {"second_reader"}, path


# -- what a reader must refuse -----------------------------------------------------------------------------------------


def rewrite(raw: bytes, change: Callable[[dict[str, Any]], Any], form: int = 3, needed: int = 3) -> bytes:
    """A file with another manifest, and checksums that are right."""
    length = HEADER.unpack(raw[:64])[3]
    content = json.loads(raw[64 : 64 + length])
    change(content)
    manifest, body = json.dumps(content, separators=(",", ":")).encode(), raw[64 + length + -length % 64 :]
    return join(manifest, body, form, needed)


def join(manifest: bytes, body: bytes, form: int = 3, needed: int = 3) -> bytes:
    start = 64 + len(manifest) + -len(manifest) % 64
    head = HEADER.pack(b"\x8fpriory\n", form, needed, len(manifest), start + len(body), bytes(32))[:32]
    return (head + hashlib.sha256(head + manifest).digest() + manifest).ljust(start, b"\0") + body


def rename_record(content: dict[str, Any]) -> None:
    learned = content["model"]["NaiveBayes"]["learned"]
    learned["statistics_"] = {"Unheard": learned["statistics_"]["Seen"]}


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "a later version": lambda raw: rewrite(raw, lambda content: None, form=4, needed=4),
    "an earlier version": lambda raw: rewrite(raw, lambda content: None, form=2, needed=2),
    "a later version that says it can be read": lambda raw: rewrite(raw, lambda content: None, form=4, needed=3),
    "another kind of file": lambda raw: b"PK" + raw[2:],
    "cut short": lambda raw: raw[:-64],
    "longer than it says": lambda raw: raw + bytes(64),
    "a changed manifest": lambda raw: raw.replace(b'"NaiveBayes"', b'"NaiveBayez"', 1),
    "a changed byte of an array": lambda raw: raw[:-64] + bytes([raw[-64] ^ 1]) + raw[-63:],
    "an unknown record": lambda raw: rewrite(raw, rename_record),
    "an unknown field of the manifest": lambda raw: rewrite(raw, lambda content: content.update(more=1)),
    "an unknown part that it needs": lambda raw: rewrite(
        raw, lambda content: content.update(parts=[{"name": "x", "bytes": 0, "optional": False}])
    ),
    "sections that do not fill it": lambda raw: rewrite(raw, lambda content: content["sections"][0].update(bytes=0)),
    "an unknown kind of numbers": lambda raw: rewrite(raw, lambda content: content["sections"][0].update(kind="|O8")),
    "a name given twice": lambda raw: rewrite_manifest(raw, b'{"priory":', b'{"priory":"0","priory":'),
}


def rewrite_manifest(raw: bytes, old: bytes, new: bytes) -> bytes:
    length = HEADER.unpack(raw[:64])[3]
    return join(raw[64 : 64 + length].replace(old, new, 1), raw[64 + length + -length % 64 :])


@pytest.mark.parametrize("kind", HOSTILE)
def test_both_readers_refuse(kind, tmp_path):
    path = tmp_path / "hostile.priory"
    path.write_bytes(HOSTILE[kind]((ROOT / "tests" / "format_vectors" / "labels-plain.priory").read_bytes()))
    with pytest.raises(ModelFileError):
        pr.load(path)
    with pytest.raises(RefusedError):
        read_model(path)


def test_an_unchanged_file_that_was_put_together_again_is_read(tmp_path):
    raw = (ROOT / "tests" / "format_vectors" / "labels-plain.priory").read_bytes()
    assert rewrite(raw, lambda content: None) == raw
