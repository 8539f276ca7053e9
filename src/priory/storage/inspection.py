"""Describe what a model file contains and would reveal, without building the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from priory.core.statistics import Registration, Statistics
from priory.errors import ModelFileError
from priory.model.cells import describe_shortage
from priory.storage.container import FileContents, Json
from priory.storage.validation import find_class
from priory.storage.value_trees import ModelDecoder, check_object


@dataclass(frozen=True)
class StoredObject:
    """The name and the fields of a record or model in the file."""

    name: str
    fields: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


@dataclass(frozen=True)
class StoredClass:
    """The name of a class in the file."""

    name: str

    def __repr__(self) -> str:
        return self.name


class InspectionDecoder(ModelDecoder):
    """Decodes the tree of a file without building its objects, so unknown classes are allowed."""

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
    # printed to a terminal, so nothing but identifiers
    if not (isinstance(name, str) and name.isidentifier() and name[0].isupper()):
        raise ModelFileError(f"this version does not know {name!r}.")
    return name


@dataclass(frozen=True)
class Inspection:
    """Description of a model file: its contents, its size by part, and what it would reveal."""

    path: str
    bytes: int
    format: int
    version: str  # the version of priory that wrote the file
    model: str
    parameters: dict[str, str]
    classes: list[Any]
    rows: dict[Any, float]  # the total weight of the learned rows by class
    clock: float
    columns: dict[str, list[str]]  # the candidate families of each column
    words: int  # the number of tokens that can be read from the file
    kept_rows: int  # the number of sampled rows in the file (for calibration)
    shortage: str  # empty, unless these are fewer than corrections should be derived from
    released: list[float]  # the epsilons of a private release
    parts: dict[str, int]  # bytes by learned attribute
    sections: dict[str, int]  # bytes by dtype
    notes: dict[str, int]  # bytes by note
    sha256: str  # of the manifest, which contains all other (verified) checksums
    signature: str | None  # the kind of signature; verifying it needs the key
    reveals: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the description as a dictionary for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = ", ".join(f"{label!r} {n:g}" for label, n in self.rows.items())
        lines = [
            f"{self.path}: {self.model}, {self.bytes:,} bytes, format {self.format}, by priory {self.version}",
            f"classes   {rows or 'none yet'}" + (f"; decayed to {self.clock:g}" if self.clock != 1 else ""),
            *(f"column    {name!r}: {' or '.join(candidates)}" for name, candidates in self.columns.items()),
            *([f"words     {self.words:,}"] if self.words else []),
            *([f"keeps     {self.kept_rows:,} rows, to derive corrections from"] if self.kept_rows else []),
            *([f"short     {self.shortage}"] if self.shortage else []),
            *(f"released  with noise, epsilon {epsilon:g}" for epsilon in self.released),
            *(f"part      {name!r} {size:,} bytes" for name, size in self.parts.items() if size),
            *(f"section   {kind} {size:,} bytes" for kind, size in self.sections.items()),
            *(f"note      {name!r} {size:,} bytes" for name, size in self.notes.items()),
            f"SHA-256   {self.sha256}; all checksums agree",
            *([f"signed    {self.signature}"] if self.signature else []),
            *(f"reveals   {what}" for what in self.reveals),
        ]
        return "\n".join(lines)


def inspect_contents(path: Path, contents: FileContents) -> Inspection:
    """Return the description of an opened file."""
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
    samples = [record.fields for record in records if record.name == "RowSample"]
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
        kept_rows=sum(len(sample["hashes"]) for sample in samples),
        shortage="".join(describe_shortage(len(s["hashes"]), s["memory"], s["limit"]) for s in samples[:1]),
        released=list(learned.get("released_", ())),
        parts={name: sum(_iterate_sizes(value)) for name, value in learned.items()},
        sections={section["kind"]: section["bytes"] for section in contents.sections},
        notes={name: len(part) for name, part in contents.parts.items()},
        sha256=contents.digest.hex(),
        signature=contents.signature_kind,
        reveals=_describe_revealed(records),
    )


def _list_column_families(learned: dict[str, Any]) -> dict[str, list[str]]:
    """Return the candidate families of each named column."""
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
    """Yield every record inside of a value, at any depth."""
    for inside in _iterate_children(value):
        if isinstance(inside, StoredObject):
            yield inside
        yield from _iterate_records(inside)


def _iterate_sizes(value: object) -> Iterator[int]:
    """Yield the size in bytes of every array inside of a value."""
    if isinstance(value, np.ndarray):
        # strings are stored in UTF-8
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
    """Return what the records reveal, as declared by their classes; other records hold sums or are unknown."""
    found = {record.name: find_class(record.name) for record in records}
    known = [registration for registration in found.values() if registration]
    unknown = sorted(name for name, registration in found.items() if registration is None)
    return [
        *dict.fromkeys(registration.reveals for registration in known if registration.reveals),
        *(["sums over the rows of each class"] if any(map(_holds_sums, known)) else []),
        *([f"the contents of {', '.join(unknown)}, which this version does not know"] if unknown else []),
    ]


def _holds_sums(registration: Registration) -> bool:
    return issubclass(registration.cls, Statistics) and not registration.reveals and registration.name != "Seen"
