"""The container format: raw arrays and a JSON manifest, every byte covered by a checksum, no code.

The manifest is measured before it is parsed, and every field of it is validated."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray as Array

import priory
from priory.core.sharding import total_memory_bytes
from priory.errors import DataError, ModelFileError, ModelTooLargeError
from priory.storage.saved_files import ALIGNMENT_BYTES, FileBytes, hash_blocks, make_padding
from priory.storage.signatures import SIGNATURE_BYTES, SIGNATURE_KIND, Ed25519Key

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]  # a node of the manifest
ValueT = TypeVar("ValueT", str, int, bool)

FORMAT_VERSION = 3
ARRAY_DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
MAX_MANIFEST_BYTES = 16 << 20  # 16 MiB
MAX_TREE_DEPTH = 64  # real models need at most 20
MAX_FILE_PARTS = 64
MAX_FILE_PARTS_BYTES = 16 << 20  # of all parts together

# Memory per node while JSON is parsed.
OBJECT_NODE_BYTES, LIST_NODE_BYTES, ITEM_NODE_BYTES, TEXT_NODE_BYTES, FURTHER_NAME_BYTES = 184, 72, 40, 52, 200
# Memory allowed for the parsed tree. Tables of 100,000 columns need 20 bytes for each byte of their manifest, and their
# arrays are at least twice as large as the manifest.
FREE_TREE_BYTES, TREE_BYTES_PER_MANIFEST_BYTE, TREE_BYTES_PER_ARRAY_BYTE = 48 << 20, 4, 8


def find_size_fault(manifest: bytes, body_bytes: int) -> str | None:
    """Return an error message if the parsed manifest would take far more memory than the file justifies, else None.

    The nodes are counted by their punctuation, before parsing. ``body_bytes`` is the size of arrays and parts.
    """
    if len(manifest) > MAX_MANIFEST_BYTES:
        return f"its manifest has {len(manifest):,} bytes; at most {MAX_MANIFEST_BYTES:,} are allowed"
    allowed = FREE_TREE_BYTES + TREE_BYTES_PER_MANIFEST_BYTE * len(manifest) + TREE_BYTES_PER_ARRAY_BYTE * body_bytes
    if (needed := estimate_tree_bytes(manifest)) <= allowed:
        return None
    return (
        f"its manifest has far more nodes than a model of its size: they would take {needed >> 20:,} MiB of memory; "
        f"at most {allowed >> 20:,} are allowed"
    )


def estimate_tree_bytes(manifest: bytes) -> int:
    """Return an upper bound on the memory of the parsed manifest: punctuation inside of strings counts too.

    >>> estimate_tree_bytes(b'{"array":["<f8",[3,2]]}')
    460
    """
    objects, lists, items, names, quotes = (manifest.count(mark) for mark in (b"{", b"[", b",", b":", b'"'))
    known = OBJECT_NODE_BYTES * objects + LIST_NODE_BYTES * lists + ITEM_NODE_BYTES * items
    strings = max(quotes // 2 - names, 0)  # strings other than names, which the parser keeps once each
    return known + TEXT_NODE_BYTES * strings + FURTHER_NAME_BYTES * max(names - objects, 0)


def parse_manifest(manifest: bytes) -> dict[str, Any]:
    """Parse the manifest; duplicate names and NaN or Infinity are errors."""
    try:
        content = json.loads(
            manifest.decode(), object_pairs_hook=_reject_duplicate_names, parse_constant=_reject_constant
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its manifest cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise ModelFileError("its manifest is not a JSON object.")
    return content


def check_depth(tree: Json) -> None:
    """Raise ModelFileError if the tree is nested more deeply than any model."""
    # breadth first, without recursion: a hostile tree must not exhaust the stack
    level: list[Any] = [tree]
    for _ in range(MAX_TREE_DEPTH):
        level = [
            node
            for holder in level
            if isinstance(holder, (dict, list))
            for node in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            return
    raise ModelFileError(f"a part of the model is nested more than {MAX_TREE_DEPTH} deep, which no model is.")


def check_format(version: str, form: int, needed: int) -> None:
    """Raise ModelFileError if this version cannot read the format; ``needed`` is the lowest a reader must support."""
    if not re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", version):
        raise ModelFileError("its manifest does not name a version.")
    if max(form, needed) > FORMAT_VERSION:
        raise ModelFileError(
            f"made by priory {version} (format {max(form, needed)}); this is {priory.__version__}, which reads up to "
            f"format {FORMAT_VERSION}: upgrade priory."
        )
    if form != FORMAT_VERSION or needed != FORMAT_VERSION:
        raise ModelFileError(
            f"it says format {form}, to be read from format {needed} on, which no version writes; "
            "get the file again from where it was saved."
        )


def _reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    # parsers disagree on which duplicate counts
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def get_typed(node: Mapping[str, Json], name: str, cls: type[ValueT]) -> ValueT:
    """Return a value of the manifest, which must be of exactly this class."""
    value = node.get(name)
    if type(value) is not cls:
        raise ModelFileError(f"its manifest has no {name}.")
    return value


def check_sections(node: Json, available_bytes: int) -> list[dict[str, Any]]:
    """Return the sections, which must have known dtypes and fill the file exactly."""
    sections = _check_object_list(node, "sections")
    for section in sections:
        kind, size = get_typed(section, "kind", str), get_typed(section, "bytes", int)
        if set(section) != {"kind", "bytes"} or not is_storable_dtype(kind) or size < 0 or size % ALIGNMENT_BYTES:
            raise ModelFileError(f"this version does not know the type of section {kind!r}.")
    if len({section["kind"] for section in sections}) < len(sections):
        raise ModelFileError("a section is there twice.")
    if sum(section["bytes"] for section in sections) != available_bytes:
        raise ModelFileError("its sections do not fill the file.")
    return sections


def check_parts(node: Json) -> dict[str, int]:
    """Return the sizes of the parts by name; this version keeps all parts and needs none of them."""
    parts, found = _check_object_list(node, "parts"), dict[str, int]()
    for part in parts:
        name, size = get_typed(part, "name", str), get_typed(part, "bytes", int)
        if set(part) != {"name", "bytes", "optional"} or not re.fullmatch("[a-z0-9-]{1,64}", name) or size < 0:
            raise ModelFileError(f"{name!r} is not a valid part: names have 1 to 64 characters of a-z, 0-9 and hyphen.")
        if not get_typed(part, "optional", bool):
            raise ModelFileError(
                f"it cannot be used without its part {name!r}, which this version does not know: upgrade priory."
            )
        found[name] = size
    if len(found) < len(parts) or len(parts) > MAX_FILE_PARTS or sum(found.values()) > MAX_FILE_PARTS_BYTES:
        raise ModelFileError(
            f"there can be {MAX_FILE_PARTS} parts at most, of different names, {MAX_FILE_PARTS_BYTES:,} bytes in all."
        )
    return found


def check_signature_kind(kind: Json) -> str | None:
    if kind is None or kind == SIGNATURE_KIND:
        return kind
    raise ModelFileError(f"it is signed in a way this version does not know; it knows {SIGNATURE_KIND}.")


def _check_object_list(node: Json, name: str) -> list[dict[str, Any]]:
    if not isinstance(node, list) or not all(isinstance(item, dict) for item in node):
        raise ModelFileError(f"its manifest has no list of {name}.")
    return node


def is_storable_dtype(kind: str) -> bool:
    """Whether arrays of this dtype, such as "<f8", are stored as raw bytes: numbers, bools and fixed-length bytes."""
    # only the canonical spelling, such as "|S12" and not "|S012"
    fixed = kind.startswith("|S") and kind[2:].isascii() and kind[2:].isdigit() and 0 < int(kind[2:7]) < 1 << 16
    return kind in ARRAY_DTYPES or (fixed and kind == f"|S{int(kind[2:7])}")


MAGIC_BYTES = b"\x8fpriory\n"
HEADER_STRUCT = struct.Struct("<8sIIQQ32s")  # magic, format, needed format, sizes of manifest and file, SHA-256
MAX_AXIS_LENGTH = 1 << 40  # products of up to eight axes are Python integers, so they cannot overflow
FOREIGN_FILE_MESSAGES = {  # first bytes of files that are often mistaken for models
    b"\x80": "is a pickle; priory never loads pickles",
    b"PK": "is a zip file",
    b"\x1f\x8b": "is a gzip file; unpack it first",
    b"(\xb5/\xfd": "is a zstd file; unpack it first",
    b"<": "is a web page or XML",
    b"{": "is JSON",
    b"PAR1": "is a Parquet file",
}


@dataclass
class ArraySections:
    """Collects the arrays to be written, by dtype, in the order in which they were added."""

    arrays: dict[str, list[Array]] = field(default_factory=dict)

    def add_array(self, array: Array) -> str:
        """Add an array and return the name of its section, such as "<f8"."""
        kind = array.dtype.newbyteorder("<").str  # files are little-endian
        flat = np.ascontiguousarray(array, dtype=kind).reshape(-1)
        self.arrays.setdefault(kind, []).append(flat)
        return kind

    def iterate_chunks(self) -> Iterator[FileBytes]:
        """Yield the bytes of all sections."""
        for array in chain.from_iterable(self.arrays.values()):
            yield memoryview(array.view(np.uint8).data)
            yield make_padding(array.nbytes)

    def describe_sections(self) -> list[dict[str, Any]]:
        """Return the dtypes and sizes of the sections, for the manifest."""
        sizes = {
            kind: sum(a.nbytes + -a.nbytes % ALIGNMENT_BYTES for a in arrays) for kind, arrays in self.arrays.items()
        }
        return [{"kind": kind, "bytes": size} for kind, size in sizes.items()]


def pack_model_file(
    tree: Json, sections: ArraySections, parts: Mapping[str, bytes] | None = None, key: Ed25519Key | None = None
) -> Iterator[FileBytes]:
    """Yield the bytes of a model file in chunks."""
    named = [(name, memoryview(part)) for name, part in (parts or {}).items()]
    body = [*sections.iterate_chunks(), *(chunk for _, part in named for chunk in (part, make_padding(len(part))))]
    content: dict[str, Json] = {
        "priory": priory.__version__,
        "sections": sections.describe_sections(),
        "parts": [{"name": name, "bytes": len(part), "optional": True} for name, part in named],
        "sha256": hash_blocks(body),
        "signature": SIGNATURE_KIND if key else None,
        "model": tree,
    }
    try:
        check_parts(content["parts"])
        check_depth(tree)
    except ModelFileError as error:
        raise DataError(str(error)) from None
    manifest = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    if fault := find_size_fault(manifest, sum(map(len, body))):
        raise ModelTooLargeError(f"the model has too many parts: {fault}; use fewer columns.")
    # `-n % ALIGNMENT_BYTES` is the padding after n bytes; a signature is followed by a checksum of 32 bytes
    start = HEADER_STRUCT.size + len(manifest)
    size = start + -start % ALIGNMENT_BYTES + sum(map(len, body)) + (SIGNATURE_BYTES + 32 if key else 0)
    # the header without its digest, which covers the header and the manifest
    head = HEADER_STRUCT.pack(MAGIC_BYTES, FORMAT_VERSION, FORMAT_VERSION, len(manifest), size, bytes(32))[:-32]
    digest = hashlib.sha256(head + manifest).digest()
    yield head + digest
    yield manifest
    yield make_padding(start)
    yield from body
    if key:
        signature = key.sign_digest(digest)
        yield signature + hashlib.sha256(digest + signature).digest()


class FileContents:
    """An opened model file: its manifest, and its arrays, which are read in the order in which they were stored.

    Call `verify_checksums` before the arrays are used.
    """

    def __init__(self, file: BufferedReader) -> None:
        self.bytes = self._reserved_bytes = os.fstat(file.fileno()).st_size
        head = file.read(HEADER_STRUCT.size)
        length = _check_header(head, self.bytes)
        start = HEADER_STRUCT.size + length
        manifest = file.read(length)
        self.digest = head[-32:]
        if hashlib.sha256(head[:-32] + manifest).digest() != self.digest:
            raise ModelFileError("the checksum of its manifest differs; the file was damaged or changed.")
        # before parsing: a small manifest can be made to need much memory
        if fault := find_size_fault(manifest, self.bytes - start):
            raise ModelFileError(f"{fault}.")
        content = parse_manifest(manifest)
        self.format, needed_format = HEADER_STRUCT.unpack(head)[1:3]
        self.version = get_typed(content, "priory", str)
        check_format(self.version, self.format, needed_format)
        # unknown fields might change the meaning of the file
        if set(content) != {"priory", "sections", "parts", "sha256", "signature", "model"}:
            raise ModelFileError(f"its manifest holds {sorted(content)}, which this version does not know.")
        self.tree: Json = content["model"]
        check_depth(self.tree)
        self.signature_kind = check_signature_kind(content["signature"])
        # the remaining bytes must be exactly sections, parts and trailer, each padded
        trailer = SIGNATURE_BYTES + 32 if self.signature_kind else 0
        parts = check_parts(content["parts"])
        room = self.bytes - start - -start % ALIGNMENT_BYTES - trailer
        self.sections = check_sections(
            content["sections"], room - sum(n + -n % ALIGNMENT_BYTES for n in parts.values())
        )
        self.reserve_memory(0)  # raises if the file itself exceeds the memory
        self._buffer = memoryview(bytearray(self.bytes))  # indexed by the offset in the file
        if file.readinto(self._buffer[start:]) < self.bytes - start:
            raise ModelFileError("the file became shorter while it was read.")
        at = start + -start % ALIGNMENT_BYTES
        # the padding is not covered by the digest of the manifest, and must be zero
        if any(self._buffer[start:at]):
            raise ModelFileError("the checksum of its manifest differs; the file was damaged or changed.")
        self._body, self._checksums = self._buffer[at : self.bytes - trailer], content["sha256"]
        self.signature = self._read_signature(trailer)
        # the offsets of the next unread array and of the end of each section
        self._next_offsets, self._end_offsets = {}, {}
        for section in self.sections:
            self._next_offsets[section["kind"]] = at
            self._end_offsets[section["kind"]] = at = at + section["bytes"]
        self.parts = {name: bytes(self._read_part(at, size)) for name, size, at in _locate_parts(parts, at)}

    def verify_checksums(self) -> None:
        """Raise ModelFileError unless the arrays and parts have the checksums of the manifest."""
        if hash_blocks([self._body]) != self._checksums:
            raise ModelFileError("a checksum differs; the file was damaged or changed.")

    def _read_signature(self, trailer: int) -> bytes:
        """Return the signature at the end of the file, after verifying its checksum; b"" if the file is unsigned."""
        end = bytes(self._buffer[self.bytes - trailer :]) if trailer else b""
        if trailer and hashlib.sha256(self.digest + end[:-32]).digest() != end[-32:]:
            raise ModelFileError("the checksum of its signature differs; the file was damaged or changed.")
        return end[:-32]

    def _read_part(self, offset: int, size: int) -> memoryview:
        if any(self._buffer[offset + size : offset + size + -size % ALIGNMENT_BYTES]):
            raise ModelFileError("there are bytes between its parts.")
        return self._buffer[offset : offset + size]

    def reserve_memory(self, size: int) -> None:
        """Count ``size`` more bytes to be allocated; raise if the total exceeds the machine's memory."""
        self._reserved_bytes += size
        memory = total_memory_bytes()
        if memory is not None and self._reserved_bytes > memory:
            raise ModelTooLargeError(
                f"it needs {self._reserved_bytes / 2**30:.1f} GiB; this machine has {memory / 2**30:.1f} GiB of memory."
            )

    def take_array(self, kind: str, shape: list[int]) -> Array:
        """Return the next array of a section, as a view of the file's bytes."""
        if kind not in self._next_offsets:
            raise ModelFileError(f"it has no section {kind!r}.")
        # `type(n) is int` excludes bools
        if len(shape) > 8 or not all(type(n) is int and 0 <= n < MAX_AXIS_LENGTH for n in shape):
            raise ModelFileError(f"an array has the shape {shape}.")
        dtype = np.dtype(kind)
        at, size = self._next_offsets[kind], math.prod(shape) * dtype.itemsize  # in bytes
        stop = at + size + -size % ALIGNMENT_BYTES
        if stop > self._end_offsets[kind]:
            raise ModelFileError(f"an array of shape {shape} is larger than what is left of section {kind}.")
        if any(self._buffer[at + size : stop]):
            raise ModelFileError(f"there are bytes between the arrays of section {kind}.")
        # NumPy misbehaves on bools with other bytes
        if kind == "|b1" and (np.frombuffer(self._buffer, np.uint8, size, at) > 1).any():
            raise ModelFileError("a truth value is neither 0 nor 1.")
        self._next_offsets[kind] = stop
        return np.frombuffer(self._buffer, dtype, math.prod(shape), at).reshape(shape)

    def check_all_read(self) -> None:
        """Raise ModelFileError if a section has unread arrays."""
        left = [kind for kind, at in self._next_offsets.items() if at != self._end_offsets[kind]]
        if left:
            raise ModelFileError(f"section {left[0]} holds more than the model has.")


def _check_header(head: bytes, size: int) -> int:
    """Check the header and return the length of the manifest."""
    if not head.startswith(MAGIC_BYTES):
        found = next(
            (text for start, text in reversed(FOREIGN_FILE_MESSAGES.items()) if start and head.startswith(start)),
            "starts with other bytes than a model" if head else "is empty",
        )
        raise ModelFileError(f"not a priory model: it {found}.")
    if len(head) < HEADER_STRUCT.size:
        raise ModelFileError(f"cut short: it has {size} bytes; the header alone has {HEADER_STRUCT.size}.")
    _, _, _, length, declared, _ = HEADER_STRUCT.unpack(head)
    if declared != size:
        fault = "cut short" if size < declared else "longer than it says"
        raise ModelFileError(f"{fault}: it has {size:,} bytes instead of {declared:,}.")
    if length > min(MAX_MANIFEST_BYTES, size - HEADER_STRUCT.size):
        raise ModelFileError(f"its manifest would have {length:,} bytes; at most {MAX_MANIFEST_BYTES:,} are read.")
    return int(length)


def _locate_parts(parts: dict[str, int], offset: int) -> Iterator[tuple[str, int, int]]:
    for name, size in parts.items():
        yield name, size, offset
        offset += size + -size % ALIGNMENT_BYTES
