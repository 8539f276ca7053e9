"""The manifest of a model file: JSON whose size is limited before parsing and whose fields are validated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import priory
from priory.errors import ModelFileError
from priory.storage.saved_files import ALIGNMENT_BYTES
from priory.storage.signatures import SIGNATURE_SIZES

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
    if kind is None or (isinstance(kind, str) and kind in SIGNATURE_SIZES):
        return kind
    raise ModelFileError(f"it is signed in a way this version does not know; it knows {', '.join(SIGNATURE_SIZES)}.")


def _check_object_list(node: Json, name: str) -> list[dict[str, Any]]:
    if not isinstance(node, list) or not all(isinstance(item, dict) for item in node):
        raise ModelFileError(f"its manifest has no list of {name}.")
    return node


def is_storable_dtype(kind: str) -> bool:
    """Whether arrays of this dtype, such as "<f8", are stored as raw bytes: numbers, bools and fixed-length bytes."""
    # only the canonical spelling, such as "|S12" and not "|S012"
    fixed = kind.startswith("|S") and kind[2:].isascii() and kind[2:].isdigit() and 0 < int(kind[2:7]) < 1 << 16
    return kind in ARRAY_DTYPES or (fixed and kind == f"|S{int(kind[2:7])}")
