"""What a model file holds and would reveal, found out without building the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from priory.core.registration import Registration
from priory.core.statistics import Statistics
from priory.errors import ModelFileError
from priory.storage.container import FileContents
from priory.storage.manifest import Json
from priory.storage.registry import find_class
from priory.storage.value_decoding import ModelDecoder, check_object


@dataclass(frozen=True)
class StoredObject:
    """A record or a model as it stands in the file."""

    name: str
    fields: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


@dataclass(frozen=True)
class StoredClass:
    """A class that stands in the file by its name."""

    name: str

    def __repr__(self) -> str:
        return self.name


class InspectionDecoder(ModelDecoder):
    """Reads the tree of a file without building any object of it, so that classes need not be known."""

    def decode_object(self, name: str, inside: Mapping[str, Json]) -> StoredObject:
        if set(inside) == {"parameters", "learned"}:
            return StoredObject(
                _check_name(name), {part: self._decode_named(check_object(values)) for part, values in inside.items()}
            )
        return StoredObject(_check_name(name), self._decode_named(inside))

    def decode_class(self, name: Json) -> StoredClass:
        return StoredClass(_check_name(name))

    def _decode_named(self, inside: Mapping[str, Json]) -> dict[str, object]:
        return {name: self.decode_node(value) for name, value in inside.items()}


def _check_name(name: Json) -> str:
    if not (isinstance(name, str) and name.isidentifier() and name[0].isupper()):
        raise ModelFileError(f"this version does not know {name!r}.")
    return name


@dataclass(frozen=True)
class Inspection:
    """A description of a model file: what it is, what it learned from, where its bytes go, what it would reveal."""

    path: str
    bytes: int
    format: int
    version: str  # of priory, which wrote the file
    model: str
    parameters: dict[str, str]
    classes: list[Any]
    rows: dict[Any, float]  # the weight of the rows learned of each class
    clock: float
    columns: dict[str, list[str]]  # the families that may explain each column
    words: int  # distinct tokens whose spelling is in the file
    kept_rows: int  # rows whose cells are in the file, to derive corrections from
    parts: dict[str, int]  # the bytes of what it learned, by attribute
    sections: dict[str, int]  # the bytes of the file, by type of number
    notes: dict[str, int]  # the bytes of each note
    sha256: str  # of the manifest, which holds the checksums of all the rest; all were compared
    signature: str | None  # its kind; only with a key can it be checked whether it is genuine
    reveals: list[str]

    def as_dict(self) -> dict[str, Any]:
        """The same as a dictionary, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = ", ".join(f"{label!r} {n:g}" for label, n in self.rows.items())
        lines = [
            f"{self.path}: {self.model}, {self.bytes:,} bytes, format {self.format}, by priory {self.version}",
            f"classes   {rows or 'none yet'}" + (f"; decayed to {self.clock:g}" if self.clock != 1 else ""),
            *(f"column    {name!r}: {' or '.join(candidates)}" for name, candidates in self.columns.items()),
            *([f"words     {self.words:,}"] if self.words else []),
            *([f"keeps     {self.kept_rows:,} rows, to derive corrections from"] if self.kept_rows else []),
            *(f"part      {name!r} {size:,} bytes" for name, size in self.parts.items() if size),
            *(f"section   {kind} {size:,} bytes" for kind, size in self.sections.items()),
            *(f"note      {name!r} {size:,} bytes" for name, size in self.notes.items()),
            f"SHA-256   {self.sha256}; all checksums agree",
            *([f"signed    {self.signature}"] if self.signature else []),
            *(f"reveals   {what}" for what in self.reveals),
        ]
        return "\n".join(lines)


def inspect_contents(path: Path, contents: FileContents) -> Inspection:
    """The description of a file whose checksums agree."""
    model = InspectionDecoder(contents).decode_node(contents.tree)
    if not isinstance(model, StoredObject) or set(model.fields) != {"parameters", "learned"}:
        raise ModelFileError("it does not hold a model.")
    contents.check_all_read()
    learned: dict[str, Any] = model.fields["learned"]
    statistics = learned.get("statistics_")
    counted = statistics.fields if isinstance(statistics, StoredObject) else {}
    classes = counted.get("classes", learned.get("classes_", np.zeros(0))).tolist()
    rows = counted["n"].tolist() if "classes" in counted else []
    records = list(_iterate_records(learned))
    return Inspection(
        path=os.fspath(path),
        bytes=contents.bytes,
        format=contents.format,
        version=contents.version,
        model=model.name,
        parameters={name: repr(value) for name, value in model.fields["parameters"].items()},
        classes=classes,
        rows=dict(zip(classes, rows, strict=False)),
        clock=learned.get("clock_", 1.0),
        columns=_list_column_families(learned),
        words=max((len(record.fields["ends"]) for record in records if record.name == "Words"), default=0),
        kept_rows=sum(len(record.fields["hashes"]) for record in records if record.name == "RowSample"),
        parts={name: sum(_iterate_sizes(value)) for name, value in learned.items()},
        sections={section["kind"]: section["bytes"] for section in contents.sections},
        notes={name: len(part) for name, part in contents.parts.items()},
        sha256=contents.digest.hex(),
        signature=contents.signature_kind,
        reveals=_describe_revealed(records),
    )


def _list_column_families(learned: dict[str, Any]) -> dict[str, list[str]]:
    """For each column of a table the families that may explain it; nothing for columns without names."""
    schema = learned.get("_schema")
    if schema is None:
        names = learned.get("feature_names_in_")
        return {} if names is None else {name: [] for name in names.tolist()}
    found: dict[str, list[str]] = {name: [] for name in schema.fields["names"]}
    for block in schema.fields["blocks"]:
        candidates = [repr(candidate) for candidate in block.fields["candidates"]]
        found.update(dict.fromkeys(block.fields["names"], candidates))
    return found


def _iterate_records(value: object) -> Iterator[StoredObject]:
    """Every record inside of a value, at any depth."""
    for inside in _iterate_children(value):
        if isinstance(inside, StoredObject):
            yield inside
        yield from _iterate_records(inside)


def _iterate_sizes(value: object) -> Iterator[int]:
    """The bytes of every array inside of a value."""
    if isinstance(value, np.ndarray):
        yield sum(len(s.encode()) for s in value.flat) if value.dtype.kind in "OU" else value.nbytes
    for inside in _iterate_children(value):
        yield from _iterate_sizes(inside)


def _iterate_children(value: object) -> Iterator[object]:
    if isinstance(value, StoredObject):
        yield from value.fields.values()
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (tuple, list)):
        yield from value


def _describe_revealed(records: list[StoredObject]) -> list[str]:
    """What each class of record says that it reveals; the others hold sums, or are not known here."""
    found = {record.name: find_class(record.name) for record in records}
    revealed = [registration.reveals for registration in found.values() if registration and registration.reveals]
    sums = sorted(name for name, registration in found.items() if registration and _holds_sums(registration))
    unknown = sorted(name for name, registration in found.items() if registration is None)
    return [
        *dict.fromkeys(revealed),
        *([f"sums over the rows of each class ({', '.join(sums)})"] if sums else []),
        *([f"whatever is in {', '.join(unknown)}, which this version does not know"] if unknown else []),
    ]


def _holds_sums(registration: Registration) -> bool:
    return issubclass(registration.cls, Statistics) and not registration.reveals and registration.name != "Seen"
