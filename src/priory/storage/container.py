"""The container: one file of raw arrays and JSON, every byte of it under a checksum, and nothing that could run.

    64 bytes     magic, format, least format a reader must know, sizes of manifest and file, SHA-256 of all this and
                 the manifest
    manifest     JSON: the version that wrote it, the tree of the model, the sections and parts with their sizes, the
                 SHA-256 of every mebibyte of them, and the kind of signature, if there is one
    sections     one for each kind of number, in the order of the manifest; every array begins at a multiple of 64 bytes
    parts        named bytes, each from a multiple of 64 bytes on: a reader keeps those it does not know, if they are
                 said to be optional, and else refuses the file
    signature    of the SHA-256 in the header, and a SHA-256 of both (see `signatures`)

Nothing in the file says *where* anything is: sections, arrays and parts follow one another, so none can overlap, leave
a hole or point elsewhere. All sizes are checked against the size of the file before anything is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

import priory
from priory.core.sharding import THREADS
from priory.core.typing import Array
from priory.errors import BadModel, DataError, TooLarge
from priory.storage.hashed_blocks import ALIGNED, Chunk, arrived, digests, padding
from priory.storage.signatures import SIZES, Key

FORMAT = 1
MAGIC = b"\x8fpriory\n"
HEADER = struct.Struct("<8sIIQQ32s")
MOST_MANIFEST = 16 << 20
MOST_PARTS = 64
MOST_BYTES = 16 << 20  # of all parts
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

    def chunks(self) -> Iterator[Chunk]:
        """The bytes of all sections."""
        for array in chain.from_iterable(self.arrays.values()):
            yield memoryview(array.view(np.uint8).data)
            yield padding(array.nbytes)

    def described(self) -> list[dict[str, Any]]:
        sizes = {kind: sum(a.nbytes + -a.nbytes % ALIGNED for a in arrays) for kind, arrays in self.arrays.items()}
        return [{"kind": kind, "bytes": size} for kind, size in sizes.items()]


def packed(
    tree: Any, sections: Sections, parts: Mapping[str, bytes] | None = None, key: Key | None = None
) -> Iterator[Chunk]:
    """The bytes of a file, piece by piece."""
    named = [(name, memoryview(part)) for name, part in (parts or {}).items()]
    body = [*sections.chunks(), *(chunk for _, part in named for chunk in (part, padding(len(part))))]
    content = {
        "priory": priory.__version__,
        "sections": sections.described(),
        "parts": [{"name": name, "bytes": len(part), "optional": True} for name, part in named],
        "sha256": digests(body),
        "signature": key.kind if key else None,
        "model": tree,
    }
    try:
        _checked_parts(content["parts"])
    except BadModel as error:
        raise DataError(str(error)) from None
    manifest = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    if len(manifest) > MOST_MANIFEST:
        raise TooLarge(f"the model has too many parts: its outline takes {len(manifest):,} of {MOST_MANIFEST:,} bytes.")
    start = HEADER.size + len(manifest)
    size = start + -start % ALIGNED + sum(map(len, body)) + (SIZES[key.kind] + 32 if key else 0)
    head = HEADER.pack(MAGIC, FORMAT, FORMAT, len(manifest), size, bytes(32))[:-32]
    digest = hashlib.sha256(head + manifest).digest()
    yield head + digest
    yield manifest
    yield padding(start)
    yield from body
    if key:
        signature = key.signed(digest)
        yield signature + hashlib.sha256(digest + signature).digest()


class Contents:
    """An opened file: its manifest, and its arrays, to be taken in the order they were put, inside of `verified`."""

    def __init__(self, file: BinaryIO, mapped: bool = False) -> None:
        self.bytes = self._claimed = os.fstat(file.fileno()).st_size
        head = file.read(HEADER.size)
        length = _checked_header(head, self.bytes)
        start = HEADER.size + length
        manifest = file.read(length)
        self.digest = head[-32:]
        if hashlib.sha256(head[:-32] + manifest).digest() != self.digest:
            raise BadModel("the checksum of its manifest differs; the file was damaged or changed.")
        content = _parsed(manifest)
        self.format, least = HEADER.unpack(head)[1:3]
        self.version = _typed(content, "priory", str)
        if not re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", self.version):
            raise BadModel("its manifest names no version.")
        if least > FORMAT:
            raise BadModel(f"made by priory {self.version} (format {least}); this is {priory.__version__}: upgrade it.")
        if set(content) != {"priory", "sections", "parts", "sha256", "signature", "model"}:
            raise BadModel(f"its manifest holds {sorted(content)}; this version knows no such part.")
        self.tree: Any = content["model"]
        self.signed = _checked_signature(content["signature"])
        trailer = SIZES[self.signed] + 32 if self.signed else 0
        parts = _checked_parts(content["parts"])
        room = self.bytes - start - -start % ALIGNED - trailer
        self.sections = _checked_sections(content["sections"], room - sum(n + -n % ALIGNED for n in parts.values()))
        self.claim(0)
        self._buffer = arrived(file, start, self.bytes, mapped)
        at = start + -start % ALIGNED
        if any(self._buffer[start:at]):
            raise BadModel("the checksum of its manifest differs; the file was damaged or changed.")
        self._body, self._sums = self._buffer[at : self.bytes - trailer], content["sha256"]
        self.signature = self._signature(trailer)
        self._at, self._end = {}, {}
        for section in self.sections:
            self._at[section["kind"]] = at
            self._end[section["kind"]] = at = at + section["bytes"]
        self.parts = {name: bytes(self._part(at, size)) for name, size, at in _placed(parts, at)}

    @contextmanager
    def verified(self) -> Iterator[None]:
        """While something is made of the contents they are hashed; if a checksum differs, that is what is wrong."""
        with ThreadPoolExecutor(1) as pool:
            sums = pool.submit(digests, [self._body], THREADS - 1)
            try:
                yield
            finally:
                if sums.result() != self._sums:
                    raise BadModel("a checksum differs; the file was damaged or changed.")

    def _signature(self, trailer: int) -> bytes:
        """What stands at the end of a signed file, its own checksum compared."""
        end = bytes(self._buffer[self.bytes - trailer :]) if trailer else b""
        if trailer and hashlib.sha256(self.digest + end[:-32]).digest() != end[-32:]:
            raise BadModel("the checksum of its signature differs; the file was damaged or changed.")
        return end[:-32]

    def _part(self, at: int, size: int) -> memoryview:
        if any(self._buffer[at + size : at + size + -size % ALIGNED]):
            raise BadModel("there are bytes between its parts.")
        return self._buffer[at : at + size]

    def claim(self, size: int) -> None:
        """So much more memory will be needed; all of it must be there."""
        self._claimed += size
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if self._claimed > there:
            raise TooLarge(f"it needs {self._claimed / 2**30:.1f} GiB; this machine has {there / 2**30:.1f} of memory.")

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
    for section in _listed(sections, "sections"):
        kind, size = _typed(section, "kind", str), _typed(section, "bytes", int)
        if set(section) != {"kind", "bytes"} or not is_kind(kind) or size < 0 or size % ALIGNED:
            raise BadModel(f"section {kind!r} is of no kind this version knows.")
    if len({section["kind"] for section in sections}) < len(sections):
        raise BadModel("a section is there twice.")
    if sum(section["bytes"] for section in sections) != room:
        raise BadModel("its sections do not fill the file.")
    return list(sections)


def _checked_parts(parts: Any) -> dict[str, int]:
    """The names of the parts and their sizes; this version knows none of them."""
    found: dict[str, int] = {}
    for part in _listed(parts, "parts"):
        name, size = _typed(part, "name", str), _typed(part, "bytes", int)
        if set(part) != {"name", "bytes", "optional"} or not re.fullmatch("[a-z0-9-]{1,64}", name) or size < 0:
            raise BadModel(f"the part {name!r} is no part: names have 1 to 64 of a-z, 0-9 and hyphen.")
        if not _typed(part, "optional", bool):
            raise BadModel(
                f"it cannot be used without its part {name!r}, which this version does not know: upgrade it."
            )
        found[name] = size
    if len(found) < len(parts) or len(parts) > MOST_PARTS or sum(found.values()) > MOST_BYTES:
        raise BadModel(f"parts have names of their own, are {MOST_PARTS} at most, and {MOST_BYTES:,} bytes in all.")
    return found


def _placed(parts: dict[str, int], at: int) -> Iterator[tuple[str, int, int]]:
    for name, size in parts.items():
        yield name, size, at
        at += size + -size % ALIGNED


def _checked_signature(kind: Any) -> str | None:
    if kind is not None and (not isinstance(kind, str) or kind not in SIZES):
        raise BadModel(f"it is signed in a way this version does not know; known are {', '.join(SIZES)}.")
    return kind


def _listed(node: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(node, list) or not all(isinstance(item, dict) for item in node):
        raise BadModel(f"its manifest has no list of {name}.")
    return node


def is_kind(kind: str) -> bool:
    """Numbers, truth values, and bytes of one width: what can lie in a file as it lies in memory."""
    fixed = kind.startswith("|S") and kind[2:].isascii() and kind[2:].isdigit() and 0 < int(kind[2:7]) < 1 << 16
    return kind in KINDS or (fixed and kind == f"|S{int(kind[2:7])}")
