"""The container format: one file of raw arrays and JSON, every byte covered by a checksum, without code.

    64 bytes     magic bytes, format, lowest format a reader must support, sizes of manifest and file, SHA-256 of these
                 and the manifest
    manifest     JSON: the version that wrote the file, the tree of the model, the sections and parts with their sizes,
                 the SHA-256 of every mebibyte of them, and the kind of signature, if there is one
    sections     one for each type of number, in the order of the manifest; every array starts at a multiple of 64 bytes
    parts        named bytes, each starting at a multiple of 64 bytes: a reader keeps parts that it does not know if
                 they are marked optional, and refuses the file otherwise
    signature    of the SHA-256 in the header, and a SHA-256 of both (see `signatures`)

Nothing in the file says *where* anything is: sections, arrays and parts follow one another, so none can overlap, leave
a gap or point elsewhere. All sizes are checked against the size of the file before anything is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO, TypeVar

import numpy as np

import priory
from priory.core.machine import total_memory_bytes
from priory.core.sharding import N_THREADS
from priory.core.typing import Array
from priory.errors import DataError, ModelFileError, ModelTooLargeError
from priory.storage.hashed_blocks import ALIGNMENT_BYTES, FileBytes, hash_blocks, make_padding, read_into_memory
from priory.storage.signatures import SIGNATURE_SIZES, SignatureKey

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]  # a node of the manifest

FORMAT_VERSION = 3
KNOWN_FORMATS = (1, 2, 3)
MAGIC_BYTES = b"\x8fpriory\n"
HEADER_STRUCT = struct.Struct("<8sIIQQ32s")
MAX_MANIFEST_BYTES = 16 << 20
NODE_BYTES = {b"{": 184, b"[": 72, b",": 40}  # what a dictionary, a list, and an item of either take in memory
FREE_TREE_BYTES, MAX_TREE_BYTES_PER_BYTE = 8 << 20, 10  # models need 2 to 8 bytes for each byte of their file
MAX_FILE_PARTS = 64
MAX_FILE_PARTS_BYTES = 16 << 20  # of all parts together
MAX_AXIS_LENGTH = 1 << 40
ValueT = TypeVar("ValueT", str, int, bool)
ARRAY_DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
FOREIGN_FILE_MESSAGES = {  # first bytes of files that are mistaken for models
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
    """Arrays on their way into a file, by type of number, in the order in which they were added."""

    arrays: dict[str, list[Array]] = field(default_factory=dict)

    def add_array(self, array: Array) -> str:
        """Add an array; returns the section it is in, such as "<f8"."""
        kind = array.dtype.newbyteorder("<").str
        flat = np.ascontiguousarray(array, dtype=kind).reshape(-1)
        self.arrays.setdefault(kind, []).append(flat)
        return kind

    def iterate_chunks(self) -> Iterator[FileBytes]:
        """The bytes of all sections."""
        for array in chain.from_iterable(self.arrays.values()):
            yield memoryview(array.view(np.uint8).data)
            yield make_padding(array.nbytes)

    def describe_sections(self) -> list[dict[str, Any]]:
        """The sections for the manifest: their types and sizes."""
        sizes = {
            kind: sum(a.nbytes + -a.nbytes % ALIGNMENT_BYTES for a in arrays) for kind, arrays in self.arrays.items()
        }
        return [{"kind": kind, "bytes": size} for kind, size in sizes.items()]


def pack_model_file(
    tree: Json, sections: ArraySections, parts: Mapping[str, bytes] | None = None, key: SignatureKey | None = None
) -> Iterator[FileBytes]:
    """The bytes of a model file, piece by piece."""
    named = [(name, memoryview(part)) for name, part in (parts or {}).items()]
    body = [*sections.iterate_chunks(), *(chunk for _, part in named for chunk in (part, make_padding(len(part))))]
    content: dict[str, Json] = {
        "priory": priory.__version__,
        "sections": sections.describe_sections(),
        "parts": [{"name": name, "bytes": len(part), "optional": True} for name, part in named],
        "sha256": hash_blocks(body),
        "signature": key.kind if key else None,
        "model": tree,
    }
    try:
        _check_parts(content["parts"])
    except ModelFileError as error:
        raise DataError(str(error)) from None
    manifest = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    if len(manifest) > MAX_MANIFEST_BYTES or not _fits_tree(manifest, len(manifest) + sum(map(len, body))):
        raise ModelTooLargeError(
            f"the model has too many parts: its manifest would have {len(manifest):,} bytes; "
            f"at most {MAX_MANIFEST_BYTES:,} are allowed."
        )
    start = HEADER_STRUCT.size + len(manifest)
    size = start + -start % ALIGNMENT_BYTES + sum(map(len, body)) + (SIGNATURE_SIZES[key.kind] + 32 if key else 0)
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
    """An opened model file: its manifest, and its arrays, which are taken in the order in which they were stored.

    They are used inside of ``with contents.verify_checksums()``.
    """

    def __init__(self, file: BinaryIO, mapped: bool = False) -> None:
        self.bytes = self._reserved_bytes = os.fstat(file.fileno()).st_size
        head = file.read(HEADER_STRUCT.size)
        length = _check_header(head, self.bytes)
        start = HEADER_STRUCT.size + length
        manifest = file.read(length)
        self.digest = head[-32:]
        if hashlib.sha256(head[:-32] + manifest).digest() != self.digest:
            raise ModelFileError("the checksum of its manifest differs; the file was damaged or changed.")
        if not _fits_tree(manifest, self.bytes):
            raise ModelFileError("its manifest has far more nodes than a model of its size; it was not read.")
        content = _parse_manifest(manifest)
        self.format, needed_format = HEADER_STRUCT.unpack(head)[1:3]
        self.version = _get_typed(content, "priory", str)
        if not re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", self.version):
            raise ModelFileError("its manifest does not name a version.")
        if needed_format > FORMAT_VERSION:
            raise ModelFileError(
                f"made by priory {self.version} (format {needed_format}); this is {priory.__version__}: upgrade priory."
            )
        if self.format not in KNOWN_FORMATS or needed_format not in KNOWN_FORMATS or needed_format > self.format:
            raise ModelFileError(f"it is of format {self.format}; this version knows formats 1 to {FORMAT_VERSION}.")
        if set(content) != {"priory", "sections", "parts", "sha256", "signature", "model"}:
            raise ModelFileError(f"its manifest holds {sorted(content)}, which this version does not know.")
        self.tree: Json = content["model"]
        self.signature_kind = _check_signature_kind(content["signature"])
        trailer = SIGNATURE_SIZES[self.signature_kind] + 32 if self.signature_kind else 0
        parts = _check_parts(content["parts"])
        room = self.bytes - start - -start % ALIGNMENT_BYTES - trailer
        self.sections = _check_sections(
            content["sections"], room - sum(n + -n % ALIGNMENT_BYTES for n in parts.values())
        )
        self.reserve_memory(0)
        self._buffer = read_into_memory(file, start, self.bytes, mapped)
        at = start + -start % ALIGNMENT_BYTES
        if any(self._buffer[start:at]):
            raise ModelFileError("the checksum of its manifest differs; the file was damaged or changed.")
        self._body, self._checksums = self._buffer[at : self.bytes - trailer], content["sha256"]
        self.signature = self._read_signature(trailer)
        self._next_offsets, self._end_offsets = {}, {}
        for section in self.sections:
            self._next_offsets[section["kind"]] = at
            self._end_offsets[section["kind"]] = at = at + section["bytes"]
        self.parts = {name: bytes(self._read_part(at, size)) for name, size, at in _locate_parts(parts, at)}

    @contextmanager
    def verify_checksums(self) -> Iterator[None]:
        """Hash the contents while the body of the ``with`` uses them; a wrong checksum replaces any other error."""
        with ThreadPoolExecutor(1) as pool:
            sums = pool.submit(hash_blocks, [self._body], N_THREADS - 1)
            try:
                yield
            finally:
                if sums.result() != self._checksums:
                    raise ModelFileError("a checksum differs; the file was damaged or changed.")

    def _read_signature(self, trailer: int) -> bytes:
        """The signature at the end of a signed file, after a comparison with its own checksum."""
        end = bytes(self._buffer[self.bytes - trailer :]) if trailer else b""
        if trailer and hashlib.sha256(self.digest + end[:-32]).digest() != end[-32:]:
            raise ModelFileError("the checksum of its signature differs; the file was damaged or changed.")
        return end[:-32]

    def _read_part(self, offset: int, size: int) -> memoryview:
        if any(self._buffer[offset + size : offset + size + -size % ALIGNMENT_BYTES]):
            raise ModelFileError("there are bytes between its parts.")
        return self._buffer[offset : offset + size]

    def reserve_memory(self, size: int) -> None:
        """Announce that ``size`` more bytes will be allocated; raise if all of them exceed the machine's memory."""
        self._reserved_bytes += size
        memory = total_memory_bytes()
        if memory is not None and self._reserved_bytes > memory:
            raise ModelTooLargeError(
                f"it needs {self._reserved_bytes / 2**30:.1f} GiB; this machine has {memory / 2**30:.1f} GiB of memory."
            )

    def take_array(self, kind: str, shape: list[int]) -> Array:
        """The next array of a section."""
        if kind not in self._next_offsets:
            raise ModelFileError(f"it has no section {kind!r}.")
        if len(shape) > 8 or not all(type(n) is int and 0 <= n < MAX_AXIS_LENGTH for n in shape):
            raise ModelFileError(f"an array has the shape {shape}.")
        dtype = np.dtype(kind)
        at, size = self._next_offsets[kind], math.prod(shape) * dtype.itemsize
        stop = at + size + -size % ALIGNMENT_BYTES
        if stop > self._end_offsets[kind]:
            raise ModelFileError(f"an array of shape {shape} is larger than what is left of section {kind}.")
        if any(self._buffer[at + size : stop]):
            raise ModelFileError(f"there are bytes between the arrays of section {kind}.")
        if kind == "|b1" and (np.frombuffer(self._buffer, np.uint8, size, at) > 1).any():
            raise ModelFileError("a truth value is neither 0 nor 1.")
        self._next_offsets[kind] = stop
        return np.frombuffer(self._buffer, dtype, math.prod(shape), at).reshape(shape)

    def check_all_read(self) -> None:
        """Raise if a section holds arrays that nobody took."""
        left = [kind for kind, at in self._next_offsets.items() if at != self._end_offsets[kind]]
        if left:
            raise ModelFileError(f"section {left[0]} holds more than the model has.")


def _check_header(head: bytes, size: int) -> int:
    """The length of the manifest, if the file can be a model at all."""
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


def _fits_tree(manifest: bytes, file_bytes: int) -> bool:
    """Whether the tree of a manifest takes little memory compared with the file; counted before it is parsed.

    Characters inside of strings are counted too, so the estimate is never too low.
    """
    estimate = sum(size * manifest.count(mark) for mark, size in NODE_BYTES.items())
    return estimate <= FREE_TREE_BYTES + MAX_TREE_BYTES_PER_BYTE * file_bytes


def _parse_manifest(manifest: bytes) -> dict[str, Any]:
    """The manifest; duplicate names and numbers that JSON does not have are refused."""
    try:
        content = json.loads(
            manifest.decode(), object_pairs_hook=_reject_duplicate_names, parse_constant=_reject_constant
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its manifest cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise ModelFileError("its manifest is not a JSON object.")
    return content


def _reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _get_typed(node: Mapping[str, Json], name: str, cls: type[ValueT]) -> ValueT:
    """The value of a name, which must be of exactly this class."""
    value = node.get(name)
    if type(value) is not cls:
        raise ModelFileError(f"its manifest has no {name}.")
    return value


def _check_sections(node: Json, available_bytes: int) -> list[dict[str, Any]]:
    """The sections, which must have known types and fill the file."""
    sections = _check_object_list(node, "sections")
    for section in sections:
        kind, size = _get_typed(section, "kind", str), _get_typed(section, "bytes", int)
        if set(section) != {"kind", "bytes"} or not is_storable_dtype(kind) or size < 0 or size % ALIGNMENT_BYTES:
            raise ModelFileError(f"this version does not know the type of section {kind!r}.")
    if len({section["kind"] for section in sections}) < len(sections):
        raise ModelFileError("a section is there twice.")
    if sum(section["bytes"] for section in sections) != available_bytes:
        raise ModelFileError("its sections do not fill the file.")
    return sections


def _check_parts(node: Json) -> dict[str, int]:
    """The names of the parts and their sizes; this version keeps them all and needs none of them."""
    parts, found = _check_object_list(node, "parts"), dict[str, int]()
    for part in parts:
        name, size = _get_typed(part, "name", str), _get_typed(part, "bytes", int)
        if set(part) != {"name", "bytes", "optional"} or not re.fullmatch("[a-z0-9-]{1,64}", name) or size < 0:
            raise ModelFileError(f"{name!r} is not a valid part: names have 1 to 64 characters of a-z, 0-9 and hyphen.")
        if not _get_typed(part, "optional", bool):
            raise ModelFileError(
                f"it cannot be used without its part {name!r}, which this version does not know: upgrade priory."
            )
        found[name] = size
    if len(found) < len(parts) or len(parts) > MAX_FILE_PARTS or sum(found.values()) > MAX_FILE_PARTS_BYTES:
        raise ModelFileError(
            f"there can be {MAX_FILE_PARTS} parts at most, of different names, {MAX_FILE_PARTS_BYTES:,} bytes in all."
        )
    return found


def _locate_parts(parts: dict[str, int], offset: int) -> Iterator[tuple[str, int, int]]:
    for name, size in parts.items():
        yield name, size, offset
        offset += size + -size % ALIGNMENT_BYTES


def _check_signature_kind(kind: Json) -> str | None:
    if kind is None or (isinstance(kind, str) and kind in SIGNATURE_SIZES):
        return kind
    raise ModelFileError(f"it is signed in a way this version does not know; it knows {', '.join(SIGNATURE_SIZES)}.")


def _check_object_list(node: Json, name: str) -> list[dict[str, Any]]:
    if not isinstance(node, list) or not all(isinstance(item, dict) for item in node):
        raise ModelFileError(f"its manifest has no list of {name}.")
    return node


def is_storable_dtype(kind: str) -> bool:
    """Whether arrays of this type, such as "<f8", can be stored as they lie in memory: numbers, bools, fixed bytes."""
    fixed = kind.startswith("|S") and kind[2:].isascii() and kind[2:].isdigit() and 0 < int(kind[2:7]) < 1 << 16
    return kind in ARRAY_DTYPES or (fixed and kind == f"|S{int(kind[2:7])}")
