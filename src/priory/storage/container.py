"""The container format: raw arrays and a JSON manifest, every byte covered by a checksum, no code.

    64 bytes     magic bytes, format, lowest format a reader must support, sizes of manifest and file, SHA-256 of these
                 and the manifest
    manifest     JSON: the version that wrote the file, the tree of the model, the sections and parts with their sizes,
                 the SHA-256 of every mebibyte of them, and the kind of signature, if there is one
    sections     one for each type of number, in the order of the manifest; every array starts at a multiple of 64 bytes
    parts        named bytes, each starting at a multiple of 64 bytes: a reader keeps unknown parts that are marked
                 optional, and rejects the file if an unknown part is not
    signature    of the SHA-256 in the header, and a SHA-256 of both (see `signatures`)

The file stores sizes but no offsets: sections, arrays and parts follow one another, so they cannot overlap, leave gaps
or point elsewhere. All sizes are checked against the size of the file before anything is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

import priory
from priory.core.sharding import N_THREADS, total_memory_bytes
from priory.core.typing import Array
from priory.errors import DataError, ModelFileError, ModelTooLargeError
from priory.storage.manifest import (
    FORMAT_VERSION,
    MAX_MANIFEST_BYTES,
    Json,
    check_depth,
    check_format,
    check_parts,
    check_sections,
    check_signature_kind,
    find_size_fault,
    get_typed,
    parse_manifest,
)
from priory.storage.saved_files import ALIGNMENT_BYTES, FileBytes, hash_blocks, make_padding, read_into_memory
from priory.storage.signatures import SIGNATURE_SIZES, SignatureKey

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
    tree: Json, sections: ArraySections, parts: Mapping[str, bytes] | None = None, key: SignatureKey | None = None
) -> Iterator[FileBytes]:
    """Yield the bytes of a model file in chunks."""
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
        check_parts(content["parts"])
        check_depth(tree)
    except ModelFileError as error:
        raise DataError(str(error)) from None
    manifest = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    if fault := find_size_fault(manifest, sum(map(len, body))):
        raise ModelTooLargeError(f"the model has too many parts: {fault}; use fewer columns.")
    # `-n % ALIGNMENT_BYTES` is the padding after n bytes; a signature is followed by a checksum of 32 bytes
    start = HEADER_STRUCT.size + len(manifest)
    size = start + -start % ALIGNMENT_BYTES + sum(map(len, body)) + (SIGNATURE_SIZES[key.kind] + 32 if key else 0)
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

    Use the arrays inside of ``with contents.verify_checksums()``.
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
        trailer = SIGNATURE_SIZES[self.signature_kind] + 32 if self.signature_kind else 0
        parts = check_parts(content["parts"])
        room = self.bytes - start - -start % ALIGNMENT_BYTES - trailer
        self.sections = check_sections(
            content["sections"], room - sum(n + -n % ALIGNMENT_BYTES for n in parts.values())
        )
        self.reserve_memory(0)  # raises if the file itself exceeds the memory
        self._buffer = read_into_memory(file, start, self.bytes, mapped)
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

    @contextmanager
    def verify_checksums(self) -> Iterator[None]:
        """Verify the checksums in a thread during the ``with`` block; a wrong checksum replaces any other error."""
        with ThreadPoolExecutor(1) as pool:
            sums = pool.submit(hash_blocks, [self._body], N_THREADS - 1)
            try:
                yield
            finally:
                if sums.result() != self._checksums:
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
