"""The container: one file of raw arrays and JSON, every byte of it under a checksum, and nothing that could run.

    64 bytes    magic, format, least format a reader must know, sizes of manifest and file, SHA-256 of all this and
                the manifest
    manifest    JSON: the version that wrote it, the tree of the model, and for each section its kind of number, its
                bytes and its SHA-256
    sections    one for each kind of number, in the order of the manifest; every array begins at a multiple of 64 bytes

Nothing in the file says *where* anything is: sections and arrays follow one another, so none can overlap, leave a hole
or point elsewhere. All sizes are checked against the size of the file before anything is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

import priory
from priory.errors import BadModel, TooLarge
from priory.logspace import Array

FORMAT = 1
MAGIC = b"\x8fpriory\n"
HEADER = struct.Struct("<8sIIQQ32s")
ALIGNED = 64
MOST_MANIFEST = 16 << 20
MOST_AXIS = 1 << 40
KINDS = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
OTHERS = {  # what people take for a model
    b"": "is empty",
    b"\x80": "is a pickle; priory never loads pickles",
    b"PK": "is a zip file",
    b"\x1f\x8b": "is a gzip file; unpack it first",
    b"(\xb5/\xfd": "is a zstd file; unpack it first",
    b"<": "is a web page or XML",
    b"{": "is JSON",
    b"PAR1": "is a Parquet file",
}


@dataclass
class Sections:
    """Arrays on their way into a file, by kind of number, in the order they are met."""

    arrays: dict[str, list[Array]] = field(default_factory=dict)

    def put(self, array: Array) -> str:
        """Remember the array; its kind."""
        kind = array.dtype.newbyteorder("<").str
        flat = np.ascontiguousarray(array, dtype=kind).reshape(-1)
        self.arrays.setdefault(kind, []).append(flat)
        return kind

    def chunks(self, kind: str) -> Iterator[memoryview | bytes]:
        """The bytes of one section."""
        for array in self.arrays[kind]:
            yield memoryview(array.view(np.uint8).data)
            yield bytes(-array.nbytes % ALIGNED)

    def described(self, kind: str) -> dict[str, Any]:
        digest, size = hashlib.sha256(), 0
        for chunk in self.chunks(kind):
            digest.update(chunk)
            size += len(chunk)
        return {"kind": kind, "bytes": size, "sha256": digest.hexdigest()}


def packed(tree: Any, sections: Sections) -> Iterator[memoryview | bytes]:
    """The bytes of a file, piece by piece."""
    described = [sections.described(kind) for kind in sections.arrays]
    content = {"priory": priory.__version__, "sections": described, "model": tree}
    manifest = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    if len(manifest) > MOST_MANIFEST:
        raise TooLarge(f"the model has too many parts: its outline takes {len(manifest):,} of {MOST_MANIFEST:,} bytes.")
    start = HEADER.size + len(manifest)
    size = start + -start % ALIGNED + sum(section["bytes"] for section in described)
    head = HEADER.pack(MAGIC, FORMAT, FORMAT, len(manifest), size, bytes(32))[:-32]
    yield head + hashlib.sha256(head + manifest).digest()
    yield manifest
    yield bytes(-start % ALIGNED)
    for kind in sections.arrays:
        yield from sections.chunks(kind)


class Contents:
    """An opened file, its checksums compared: the manifest, and the arrays, to be taken in the order they were put."""

    def __init__(self, file: BinaryIO, mapped: bool = False) -> None:
        self.bytes = os.fstat(file.fileno()).st_size
        head = file.read(HEADER.size)
        length = _checked_header(head, self.bytes)
        start = HEADER.size + length
        manifest = file.read(length)
        if hashlib.sha256(head[:-32] + manifest).digest() != head[-32:]:
            raise BadModel("the checksum of its manifest differs; the file was damaged or changed.")
        content = _parsed(manifest)
        self.format, least = HEADER.unpack(head)[1:3]
        self.version = _typed(content, "priory", str)
        if not re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", self.version):
            raise BadModel("its manifest names no version.")
        if least > FORMAT:
            raise BadModel(f"made by priory {self.version} (format {least}); this is {priory.__version__}: upgrade it.")
        if set(content) != {"priory", "sections", "model"}:
            raise BadModel(f"its manifest holds {sorted(content)}; this version knows no such part.")
        self.tree: Any = content["model"]
        self.sections = _checked_sections(content["sections"], self.bytes - start - -start % ALIGNED)
        check_room(self.bytes)
        self._buffer = memoryview(_mapped(file, self.bytes) if mapped else _read(file, self.bytes))
        if bytes(self._buffer[:start]) != head + manifest or any(self._buffer[start : start + -start % ALIGNED]):
            raise BadModel("the checksum of its manifest differs; the file was damaged or changed.")
        self._at = self._verified(start + -start % ALIGNED)
        self._end = {s["kind"]: self._at[s["kind"]] + s["bytes"] for s in self.sections}

    def _verified(self, start: int) -> dict[str, int]:
        """Where each section begins, its checksum compared."""
        begins = {}
        for section in self.sections:
            end = start + section["bytes"]
            if hashlib.sha256(self._buffer[start:end]).hexdigest() != section["sha256"]:
                raise BadModel(f"the checksum of section {section['kind']} differs; the file was damaged or changed.")
            begins[section["kind"]] = start
            start = end
        return begins

    def take(self, kind: str, shape: list[int]) -> Array:
        """The next array of this kind."""
        if kind not in self._at:
            raise BadModel(f"it has no section {kind!r}.")
        if len(shape) > 8 or not all(type(n) is int and 0 <= n < MOST_AXIS for n in shape):
            raise BadModel(f"an array has the shape {shape}.")
        dtype = np.dtype(kind)
        at, size = self._at[kind], math.prod(shape) * dtype.itemsize
        stop = at + size + -size % ALIGNED
        if stop > self._end[kind]:
            raise BadModel(f"an array of shape {shape} is larger than what is left of section {kind}.")
        if any(self._buffer[at + size : stop]):
            raise BadModel(f"there are bytes between the arrays of section {kind}.")
        if kind == "|b1" and (np.frombuffer(self._buffer, np.uint8, size, at) > 1).any():
            raise BadModel("a truth value is neither 0 nor 1.")
        self._at[kind] = stop
        return np.frombuffer(self._buffer, dtype, math.prod(shape), at).reshape(shape)

    def finish(self) -> None:
        """Everything in the file must have been asked for."""
        left = [kind for kind, at in self._at.items() if at != self._end[kind]]
        if left:
            raise BadModel(f"section {left[0]} holds more than the model has.")


def check_room(size: int) -> None:
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > there:
        raise TooLarge(f"it has {size / 2**30:.1f} GiB, and this machine {there / 2**30:.1f} of memory.")


def _checked_header(head: bytes, size: int) -> int:
    """The length of the manifest, if the file can be a model at all."""
    if not head.startswith(MAGIC):
        what = next((what for start, what in reversed(OTHERS.items()) if head.startswith(start) and start), None)
        raise BadModel(f"not a priory model: it {what or ('is empty' if not head else 'begins otherwise')}.")
    if len(head) < HEADER.size:
        raise BadModel(f"cut short: {size} bytes, and the header alone has {HEADER.size}.")
    _, _, _, length, declared, _ = HEADER.unpack(head)
    if declared != size:
        what = "cut short" if size < declared else "longer than it says"
        raise BadModel(f"{what}: {size:,} bytes instead of {declared:,}.")
    if length > min(MOST_MANIFEST, size - HEADER.size):
        raise BadModel(f"its manifest would have {length:,} bytes; at most {MOST_MANIFEST:,} are read.")
    return int(length)


def _parsed(manifest: bytes) -> dict[str, Any]:
    try:
        content = json.loads(manifest.decode(), object_pairs_hook=_no_repetition, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadModel(f"its manifest cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise BadModel("its manifest is no JSON object.")
    return content


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _typed(node: dict[str, Any], name: str, kind: type) -> Any:
    if type(node.get(name)) is not kind:
        raise BadModel(f"its manifest has no {name}.")
    return node[name]


def _checked_sections(sections: Any, room: int) -> list[dict[str, Any]]:
    if not isinstance(sections, list) or not all(isinstance(s, dict) for s in sections):
        raise BadModel("its manifest has no list of sections.")
    for section in sections:
        kind, size = _typed(section, "kind", str), _typed(section, "bytes", int)
        if set(section) != {"kind", "bytes", "sha256"} or not is_kind(kind) or size < 0 or size % ALIGNED:
            raise BadModel(f"section {kind!r} is of no kind this version knows.")
        _typed(section, "sha256", str)
    if len({section["kind"] for section in sections}) < len(sections):
        raise BadModel("a section is there twice.")
    if sum(section["bytes"] for section in sections) != room:
        raise BadModel("its sections do not fill the file.")
    return sections


def is_kind(kind: str) -> bool:
    """Numbers, truth values, and bytes of one width: what can lie in a file as it lies in memory."""
    fixed = kind.startswith("|S") and kind[2:].isascii() and kind[2:].isdigit() and 0 < int(kind[2:7]) < 1 << 16
    return kind in KINDS or (fixed and kind == f"|S{int(kind[2:7])}")


def _read(file: BinaryIO, size: int) -> mmap.mmap:
    """The whole file in memory of its own, which begins at a page."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
    buffer, at = mmap.mmap(-1, size, flags=flags), 0
    file.seek(0)
    while at < size:  # a read gives two gigabytes at most
        more = file.readinto(memoryview(buffer)[at:])  # type: ignore[attr-defined]  # files opened in binary have it
        if not more:
            raise BadModel("the file became shorter while it was read.")
        at += more
    return buffer


def _mapped(file: BinaryIO, size: int) -> mmap.mmap:
    """The whole file as memory, its pages shared with everyone who maps it until somebody writes to them."""
    return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
