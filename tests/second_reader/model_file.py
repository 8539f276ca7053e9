"""The container, its values and its records: docs/format.md, "The file"."""

import hashlib
import json
import math
import struct

import numpy as np

DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
RECORDS = """Schema Block Seen Tally Trials Events Moments Positives ExactSums Words RowSample LabelCells NumberCells
TextCells CategoricalCells TokenBags Text Tokens FittedCorrections PartWeights TableCodes ColumnCodes CodeEvidence
LinearMember SlopeMember ObliviousTrees GaussianMember ScoreGaussian MemberPool GapCompletion TokenFeatures NaiveBayes
TextClassifier"""


class RefusedError(ValueError):
    """The file is not one that this reader knows."""


def require(is_true, otherwise):
    if not is_true:
        raise RefusedError(otherwise)


def parse(pairs):
    require(len(dict(pairs)) == len(pairs), "a name is given twice")
    return dict(pairs)


def read_model(path):
    """Check a file and return {"class": name, "parameters": ..., "learned": ...}."""
    with open(path, "rb") as file:
        raw = file.read()
    require(len(raw) >= 64 and raw[:8] == b"\x8fpriory\n", "not a model file")
    form, needed, length, size, digest = struct.unpack("<IIQQ32s", raw[8:64])
    require(size == len(raw) and length <= size - 64, "cut short, or longer than it says")
    require(hashlib.sha256(raw[:32] + raw[64 : 64 + length]).digest() == digest, "a checksum differs")
    require(form == needed == 3, "a version that this reader does not know")
    content = json.loads(raw[64 : 64 + length], object_pairs_hook=parse)
    require(set(content) == {"priory", "sections", "parts", "sha256", "signature", "model"}, "an unknown field")
    require(all(part["optional"] is True for part in content["parts"]), "a part that this reader does not know")
    start = 64 + length + -length % 64
    body, at, sections = raw[start : size - {None: 0, "ed25519": 96}[content["signature"]]], 0, {}
    hashes = [hashlib.sha256(body[i : i + (1 << 20)]).hexdigest() for i in range(0, len(body), 1 << 20)]
    require(hashes == content["sha256"] and not any(raw[64 + length : start]), "a checksum differs")
    for section in content["sections"]:
        require(section["kind"] in DTYPES, "an unknown kind of numbers")
        sections[section["kind"]], at = at, at + section["bytes"]
    require(at + sum(part["bytes"] + -part["bytes"] % 64 for part in content["parts"]) == len(body), "bytes are left")
    return decode(content["model"], body, sections)


def decode(node, body, sections):
    """A value of the tree; records become dictionaries with their name under "class"."""

    def read(node):
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            return {name: read(value) for name, value in node.items()}
        [(name, inside)] = node.items()
        if name in ("tuple", "list", "set", "frozenset"):
            return [read(value) for value in inside] if isinstance(inside, list) else read(inside).tolist()
        if name in nodes:
            return nodes[name](*inside) if isinstance(inside, list) else nodes[name](inside)
        require(name in RECORDS.split(), f"an unknown record {name}")
        return {"class": name} | {field: read(value) for field, value in inside.items()}

    def take(kind, shape, order=None):
        order = range(len(shape)) if order is None else order
        array = np.frombuffer(body, kind, math.prod(shape), sections[kind]).reshape([shape[axis] for axis in order])
        sections[kind] += array.nbytes + -array.nbytes % 64
        return array.transpose(np.argsort(order))

    def take_strings(_, shape, node):
        ends = read(node)
        return np.array(split(take("|u1", [max(ends, default=0)]), ends), dtype=object).reshape(shape)

    nodes = {"array": take, "strings": take_strings, "float": float, "class": str}
    nodes["narrow"] = lambda kind, node: read(node).astype(kind)
    nodes["steps"] = lambda node: np.cumsum(read(node), dtype=np.int64)
    nodes["scalar"] = lambda node: read(node)[()]
    nodes["dict"] = lambda *pairs: {read(key): read(value) for key, value in pairs}
    return read(node)


def split(arena, ends):
    text = arena.tobytes()
    return [text[a:b].decode() for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]
