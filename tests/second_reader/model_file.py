"""The container, its values and its records: docs/format.md, "The file"."""

import hashlib
import json
import math
import struct

import numpy as np

DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
RECORD_NAMES = (
    "Schema Block Seen Tally Trials Events Moments Positives ExactSums Words RowSample LabelCells NumberCells "
    "TextCells CategoricalCells TokenBags Text Tokens FittedCorrections PartWeights TableCodes ColumnCodes "
    "CodeEvidence LinearMember SlopeMember ObliviousTrees GaussianMember ScoreGaussian MemberPool "
    "GapCompletion TokenFeatures NaiveBayes TextClassifier "
)


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
    start, trailer = 64 + length + -length % 64, {None: 0, "ed25519": 96}[content["signature"]]
    body, at, sections = raw[start : size - trailer], 0, {}
    hashes = [hashlib.sha256(body[i : i + (1 << 20)]).hexdigest() for i in range(0, len(body), 1 << 20)]
    require(hashes == content["sha256"] and not any(raw[64 + length : start]), "a checksum differs")
    for section in content["sections"]:
        require(section["kind"] in DTYPES, "an unknown kind of numbers")
        sections[section["kind"]], at = [body, at], at + section["bytes"]
    require(at + sum(part["bytes"] + -part["bytes"] % 64 for part in content["parts"]) == len(body), "bytes are left")
    return decode(content["model"], sections)


def take(sections, kind, shape):
    body, at = sections[kind]
    array = np.frombuffer(body, kind, math.prod(shape), at).reshape(shape)
    sections[kind][1] = at + array.nbytes + -array.nbytes % 64
    return array


def decode(node, sections):
    """A value of the tree; records become dictionaries with their name under "class"."""
    if not isinstance(node, dict):
        return node
    if len(node) != 1:
        return {name: decode(value, sections) for name, value in node.items()}
    [(name, inside)] = node.items()
    if name == "array":
        kind, shape, *order = inside
        array = take(sections, kind, [shape[axis] for axis in order[0]] if order else shape)
        return array.transpose(np.argsort(order[0])) if order else array
    if name == "narrow":
        return decode(inside[1], sections).astype(inside[0])
    if name == "steps":
        return np.cumsum(decode(inside, sections), dtype=np.int64)
    if name == "strings":
        ends = decode(inside[2], sections)
        words = split_arena(take(sections, "|u1", [ends[-1] if len(ends) else 0]), ends)
        return np.array(words, dtype=object).reshape(inside[1])
    if name in ("tuple", "list", "set", "frozenset"):
        return decode(inside, sections).tolist() if isinstance(inside, dict) else [decode(v, sections) for v in inside]
    if name == "dict":
        return {decode(k, sections): decode(v, sections) for k, v in inside}
    if name in ("float", "scalar", "class"):
        return {"float": float, "scalar": lambda x: decode(x, sections)[()], "class": str}[name](inside)
    require(name in RECORD_NAMES.split(), f"an unknown record {name}")
    return {"class": name} | {field: decode(value, sections) for field, value in inside.items()}


def split_arena(arena, ends):
    text = arena.tobytes()
    return [text[a:b].decode() for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]
