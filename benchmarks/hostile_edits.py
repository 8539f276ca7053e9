"""Edits of model files as a hostile author would make them: wrong content, and every checksum right.

A file is taken apart into its tree, its arrays and its header; each kind of edit changes one of them, and
`make_edited_file` puts the file together again. What is changed, and how, is left to `Choices`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from example_models import Example
from priory.storage.container import (
    ARRAY_DTYPES,
    FORMAT_VERSION,
    HEADER_STRUCT,
    MAGIC_BYTES,
    ArraySections,
    pack_model_file,
)
from priory.storage.saved_files import make_padding
from priory.storage.value_trees import encode_value

ODD_NUMBERS = [0.0, -0.0, -1.0, 0.5, 1e9, 1e16, 1e155, 1e300, 1.7e308, -1e308, 5e-324, 1e-200, np.nan, np.inf, -np.inf]
ODD_VALUES: list[Any] = [None, True, False, -1, 0, 1, 2, 2**31, 2**63, 10**30, -0.5, 0.0, 1e308, 5e-324, "", "x", "é"]
ODD_NODES: list[Any] = [
    *ODD_VALUES,
    *([], {}, {"tuple": []}, {"tuple": [1.5]}, {"list": [1]}, {"list": ["x", 2]}, {"set": ["a"]}),
    *({"dict": []}, {"dict": [["a", 1]]}, {"float": "nan"}, {"float": "inf"}, {"objects": [[0], []]}),
    *({"class": "Words"}, {"class": "Gaussian"}, {"Gaussian": {}}, {"Term": {"column": 0}}, {"Tempering": {}}),
    *({"array": ["<f8", [0]]}, {"array": ["|u1", [2]]}, {"scalar": {"array": ["<f8", []]}}),
    *({"narrow": ["<f8", {"array": ["|u1", [80, 2]]}]}, {"steps": {"array": ["|u1", [80]]}}),
    {"strings": ["O", [2], {"array": ["<i8", [2]]}]},
]
WRAPPERS: list[Callable[[Any], Any]] = [
    lambda node: {"tuple": [node]},
    lambda node: {"list": [node]},
    lambda node: {"dict": [["a", node]]},
    lambda node: {"objects": [[1], [node]]},
    lambda node: [node],
]
FORMAT_NUMBERS = [0, 7, 2**32 - 1, int.from_bytes(b"2", "little"), 1]  # the third is -1, the fourth the text "2"


class Choices(Protocol):
    """What decides how a file is edited: a seeded generator, or the bytes of a coverage-guided fuzzer."""

    def ConsumeIntInRange(self, low: int, high: int) -> int: ...
    def ConsumeBool(self) -> bool: ...
    def ConsumeInt(self, n_bytes: int) -> int: ...
    def ConsumeFloat(self) -> float: ...
    def ConsumeBytes(self, n_bytes: int) -> bytes: ...
    def ConsumeUnicodeNoSurrogates(self, n_characters: int) -> str: ...
    def PickValueInList(self, values: list[Any]) -> Any: ...


class RandomChoices(random.Random):
    """The choices of a seeded generator, by the names that atheris gives them."""

    def ConsumeIntInRange(self, low: int, high: int) -> int:
        return self.randint(low, high)

    def ConsumeBool(self) -> bool:
        return self.random() < 0.5

    def ConsumeInt(self, n_bytes: int) -> int:
        return int.from_bytes(self.randbytes(n_bytes), signed=True) >> self.choice([0, 20, 40, 60])

    def ConsumeFloat(self) -> float:
        return float(np.frombuffer(self.randbytes(8), dtype=float)[0]) if self.random() < 0.5 else self.gauss(0, 10)

    def ConsumeBytes(self, n_bytes: int) -> bytes:
        return self.randbytes(n_bytes)

    def ConsumeUnicodeNoSurrogates(self, n_characters: int) -> str:
        return "".join(self.choice("aBé_送0 ") for _ in range(self.randint(0, n_characters)))

    def PickValueInList(self, values: list[Any]) -> Any:
        return self.choice(values)


@dataclass
class OpenedFile:
    """A model file in pieces: its tree below a root without a name, its arrays, and what is done to it when packed."""

    root: dict[str, Any]
    name: str  # of the model's class
    sections: ArraySections
    formats: tuple[int, int] = (FORMAT_VERSION, FORMAT_VERSION)
    edit_manifest: Callable[[dict[str, Any]], None] | None = None

    def pack(self) -> bytes:
        """The bytes of the file, every checksum right."""
        blob = b"".join(pack_model_file(None, self.sections))
        length = HEADER_STRUCT.unpack(blob[: HEADER_STRUCT.size])[3]
        start = HEADER_STRUCT.size + length
        manifest, body = json.loads(blob[HEADER_STRUCT.size : start]), blob[start + len(make_padding(start)) :]
        manifest["model"] = self.root.get("")
        if self.edit_manifest:
            self.edit_manifest(manifest)
        return pack_manifest(json.dumps(manifest, separators=(",", ":")).encode(), body, self.formats)


def pack_manifest(
    manifest: bytes, body: bytes = b"", formats: tuple[int, int] = (FORMAT_VERSION, FORMAT_VERSION)
) -> bytes:
    """A file with this manifest, whatever it says, and a header that agrees with it."""
    start = HEADER_STRUCT.size + len(manifest)
    size = start + len(make_padding(start)) + len(body)
    head = HEADER_STRUCT.pack(MAGIC_BYTES, *formats, len(manifest), size, bytes(32))[:-32]
    return head + hashlib.sha256(head + manifest).digest() + manifest + make_padding(start) + body


# -- places ------------------------------------------------------------------------------------------------------------


def pick_place(tree: Any, choices: Choices) -> tuple[Any, Any]:
    """A random place in a tree: the container, and the name or number in it."""
    holder, key = tree, choices.PickValueInList(list(tree))
    while isinstance(holder[key], dict | list) and len(holder[key]) and choices.ConsumeIntInRange(0, 7):
        holder = holder[key]
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = keys[choices.ConsumeIntInRange(0, len(keys) - 1)]
    return holder, key


def walk_places(node: Any) -> Iterator[tuple[Any, Any]]:
    """All places in a tree."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from walk_places(node[key])


def find_array_nodes(file: OpenedFile) -> list[list[Any]]:
    """The nodes of all arrays: [section, shape] or [section, shape, order of axes]."""
    found = (holder[key] for holder, key in walk_places(file.root) if key == "array")
    return [node for node in found if isinstance(node, list) and len(node) >= 2 and isinstance(node[1], list)]


def pick_array(file: OpenedFile, choices: Choices) -> tuple[str, int]:
    """A random array: its section and its number in it."""
    kind = choices.PickValueInList(sorted(file.sections.arrays))
    return kind, choices.ConsumeIntInRange(0, len(file.sections.arrays[kind]) - 1)


# -- edits -------------------------------------------------------------------------------------------------------------


def make_odd_number(choices: Choices) -> Any:
    number = choices.ConsumeInt(8) if choices.ConsumeBool() else choices.ConsumeFloat()
    return number if np.isfinite(float(number)) else {"float": str(float(number))}


def change_number(file: OpenedFile, choices: Choices) -> None:
    """Another number in the place of one in the tree."""
    places = [(h, k) for h, k in walk_places(file.root) if type(h[k]) in (int, float)]
    if places:
        holder, key = choices.PickValueInList(places)
        holder[key] = make_odd_number(choices)


def change_type(file: OpenedFile, choices: Choices) -> None:
    """A node of any kind in the place of another."""
    holder, key = pick_place(file.root, choices)
    holder[key] = copy.deepcopy(choices.PickValueInList(ODD_NODES))


def copy_node(file: OpenedFile, choices: Choices) -> None:
    """A part of the model in the place of another."""
    (holder, key), (other, at) = pick_place(file.root, choices), pick_place(file.root, choices)
    with suppress(RecursionError):  # an edit before this one may have nested it deeply
        holder[key] = copy.deepcopy(other[at])


def remove_node(file: OpenedFile, choices: Choices) -> None:
    holder, key = pick_place(file.root, choices)
    del holder[key]


def add_node(file: OpenedFile, choices: Choices) -> None:
    """One node more in an object or a list."""
    (holder, _), (other, at) = pick_place(file.root, choices), pick_place(file.root, choices)
    new = copy.deepcopy(choices.PickValueInList([*ODD_NODES, other[at]]))
    if isinstance(holder, dict):
        holder[choices.ConsumeUnicodeNoSurrogates(8)] = new
    else:
        holder.insert(choices.ConsumeIntInRange(0, len(holder)), new)


def rename_node(file: OpenedFile, choices: Choices) -> None:
    """Another name for a field, a parameter or a class; half of the time one that is used elsewhere in the file."""
    places = [(h, k) for h, k in walk_places(file.root[""]) if isinstance(h, dict)]
    (holder, key), (_, other) = choices.PickValueInList(places), choices.PickValueInList(places)
    holder[other if choices.ConsumeBool() else choices.ConsumeUnicodeNoSurrogates(8)] = holder.pop(key)


def change_parameter(file: OpenedFile, choices: Choices) -> None:
    """A parameter, or something inside of one, of another type or out of its range."""
    parameters = file.root[""][file.name]["parameters"]
    holder, key = pick_place(parameters, choices) if parameters else (file.root, "")
    odd = copy.deepcopy(choices.PickValueInList(ODD_NODES))
    holder[key] = make_odd_number(choices) if choices.ConsumeIntInRange(0, 3) == 0 else odd


def nest_node(file: OpenedFile, choices: Choices) -> None:
    """A node inside of many others."""
    holder, key = pick_place(file.root, choices)
    wrap, depth = choices.PickValueInList(WRAPPERS), choices.PickValueInList([1, 2, 20, 200])
    for _ in range(depth):
        holder[key] = wrap(holder[key])


def change_array_number(file: OpenedFile, choices: Choices) -> None:
    """NaN, infinity, a negative or a huge number in an array, or in all of its places."""
    kind, which = pick_array(file, choices)
    array = file.sections.arrays[kind][which].copy()
    if array.size:
        at: Any = choices.ConsumeIntInRange(0, array.size - 1)
        at = slice(None) if choices.ConsumeIntInRange(0, 3) == 0 else at
        if array.dtype.kind == "f":
            array[at] = choices.PickValueInList(ODD_NUMBERS)
        elif array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            array[at] = choices.PickValueInList([0, 1, limits.min, limits.max, limits.max // 2])
    file.sections.arrays[kind][which] = array


def change_array_bytes(file: OpenedFile, choices: Choices) -> None:
    """Some other bytes in an array."""
    kind, which = pick_array(file, choices)
    raw = bytearray(file.sections.arrays[kind][which].tobytes())
    if raw:
        at = choices.ConsumeIntInRange(0, len(raw) - 1)
        new = choices.ConsumeBytes(8)[: len(raw) - at]
        raw[at : at + len(new)] = new
    file.sections.arrays[kind][which] = np.frombuffer(bytes(raw), dtype=kind)


def swap_arrays(file: OpenedFile, choices: Choices) -> None:
    """Two arrays of one type, each in the place of the other; half of the time only of the same length."""
    kind, first = pick_array(file, choices)
    arrays = file.sections.arrays[kind]
    alike = [i for i, array in enumerate(arrays) if array.size == arrays[first].size and i != first]
    others = alike if alike and choices.ConsumeBool() else list(range(len(arrays)))
    second = choices.PickValueInList(others)
    arrays[first], arrays[second] = arrays[second], arrays[first]


def reshape_array(file: OpenedFile, choices: Choices) -> None:
    """Another shape for an array, of the same size or not."""
    node = choices.PickValueInList(find_array_nodes(file))
    shape, size = node[1], int(np.prod(node[1]))
    flat, column, turned = [size], [size, 1], shape[::-1]
    at = choices.ConsumeIntInRange(0, max(len(shape) - 1, 0))
    other = [
        n + choices.PickValueInList([-1, 1, 2**31, 2**62, -n, -n - 1]) if i == at else n for i, n in enumerate(shape)
    ]
    node[1] = choices.PickValueInList([flat, column, turned, other, other, [*shape, 1], [1, *shape], shape[:-1]])
    if len(node) > 2 and choices.ConsumeBool():
        del node[2]
    elif choices.ConsumeIntInRange(0, 3) == 0:
        node[2:] = [list(range(len(node[1])))[::-1]]


def convert_section(file: OpenedFile, choices: Choices) -> None:
    """All arrays of one type as another type: their numbers converted, or their bytes read as it."""
    kind = choices.PickValueInList(sorted(file.sections.arrays))
    other = choices.PickValueInList([k for k in ARRAY_DTYPES if k not in file.sections.arrays])
    reinterpret = choices.ConsumeBool() and np.dtype(kind).itemsize == np.dtype(other).itemsize
    with np.errstate(all="ignore"):
        arrays = [a.view(other) if reinterpret else a.astype(other) for a in file.sections.arrays[kind]]
    file.sections.arrays = {
        other if k == kind else k: arrays if k == kind else v for k, v in file.sections.arrays.items()
    }
    for node in find_array_nodes(file):
        node[0] = other if node[0] == kind else node[0]


def change_format(file: OpenedFile, choices: Choices) -> None:
    """Another format number, or another number of the lowest format that a reader must support."""
    number = choices.PickValueInList(FORMAT_NUMBERS)
    pairs = [(number, number), (number, FORMAT_VERSION), (FORMAT_VERSION, number), (1, number)]
    file.formats = choices.PickValueInList(pairs)


def change_manifest(file: OpenedFile, choices: Choices) -> None:
    """A node beside the tree: the version, the sections, the parts, their checksums or the kind of signature."""

    def edit(manifest: dict[str, Any]) -> None:
        around = {name: node for name, node in manifest.items() if name != "model"}
        holder, key = pick_place(around, choices)
        deed = choices.ConsumeIntInRange(0, 2)
        if deed == 0:
            del holder[key]
        elif deed == 1:
            holder[key] = copy.deepcopy(choices.PickValueInList(ODD_NODES))
        elif isinstance(holder, dict):
            holder[choices.ConsumeUnicodeNoSurrogates(8)] = copy.deepcopy(holder[key])
        else:
            holder.append(copy.deepcopy(holder[key]))
        model = manifest["model"]
        manifest.clear()
        manifest.update(around, model=model)

    file.edit_manifest = edit


Edit = Callable[[OpenedFile, Choices], None]
EDITS: dict[str, Edit] = {
    "a number changed": change_number,
    "a node of another type": change_type,
    "a part in the place of another": copy_node,
    "a node removed": remove_node,
    "a node added": add_node,
    "a node renamed": rename_node,
    "a parameter of another type or range": change_parameter,
    "a node inside of many others": nest_node,
    "NaN, infinite, negative or huge in an array": change_array_number,
    "other bytes in an array": change_array_bytes,
    "arrays swapped": swap_arrays,
    "an array of another shape": reshape_array,
    "arrays of another type": convert_section,
    "another format number": change_format,
    "the manifest around the tree changed": change_manifest,
}
ARRAY_EDITS = (change_array_number, change_array_bytes, swap_arrays, reshape_array, convert_section)


def make_edited_file(example: Example, choices: Choices, kind: str | None = None) -> bytes:
    """The file of a model after one edit of this kind, or of any, and sometimes one or two more."""
    sections = ArraySections()
    tree = json.loads(json.dumps(encode_value(example.model, sections)))
    file = OpenedFile({"": tree}, example.name, sections)
    kinds = [kind or choices.PickValueInList(list(EDITS))]
    kinds += [choices.PickValueInList(list(EDITS)) for _ in range(choices.PickValueInList([0, 0, 0, 1, 2]))]
    _apply_edit(EDITS[kinds[0]], file, choices)
    for name in kinds[1:]:
        with suppress(LookupError, TypeError, ValueError, RecursionError):  # the edits before may have removed it
            _apply_edit(EDITS[name], file, choices)
    return file.pack()


def _apply_edit(edit: Edit, file: OpenedFile, choices: Choices) -> None:
    if edit in ARRAY_EDITS and not find_array_nodes(file):
        edit = change_parameter  # a model that was not fitted holds no arrays
    edit(file, choices)
