"""What a model file holds and would reveal, told without building the model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from priory.storage.container import FileContents
from priory.storage.registry import STATISTICS_PATHS
from priory.storage.value_encoding import ModelDecoder

REVEALED_BY_RECORD = {
    "Tally": "the values of its columns, rare and extreme ones too (labels, and numbers to three digits)",
    "Words": "words of the training texts, also those that one text alone had",
    "Buckets": "counts of hashed words, and the salt with which a guessed word can be looked up",
    "Moments": "one row of each class as it was, until rows are forgotten: the origin its sums are taken about",
    "Scatter": "one row of each class as it was, until rows are forgotten: the origin its sums are taken about",
    "Term": "the values of its columns that are labels",
}


@dataclass(frozen=True)
class StoredObject:
    """A record or a model as it stands in the file."""

    kind: str
    fields: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


@dataclass(frozen=True)
class Inspection:
    """A model file, told: what wrote it, what it is, what it learned from, where its bytes go, what it would reveal."""

    path: str
    bytes: int
    format: int
    version: str
    model: str
    parameters: dict[str, str]
    classes: list[Any]
    rows: dict[Any, float]  # the weight of the rows seen of each class
    clock: float
    columns: dict[str, list[str]]  # the families that may explain each column
    words: int  # distinct tokens it can spell
    parts: dict[str, int]  # the bytes of what it learned, by attribute
    sections: dict[str, int]  # the bytes of the file, by kind of number
    notes: dict[str, int]  # the bytes of what goes with it
    sha256: str  # of the manifest, which holds the checksums of all the rest; all were compared
    signature: str | None  # its kind; whether it is to be trusted is said only to whoever gives a key
    reveals: list[str]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = ", ".join(f"{label!r} {n:g}" for label, n in self.rows.items())
        lines = [
            f"{self.path}: {self.model}, {self.bytes:,} bytes, format {self.format}, by priory {self.version}",
            f"classes   {rows or 'none yet'}" + (f"; faded to {self.clock:g}" if self.clock != 1 else ""),
            *(f"column    {name!r}: {' or '.join(candidates)}" for name, candidates in self.columns.items()),
            *([f"words     {self.words:,}"] if self.words else []),
            *(f"part      {name!r} {size:,} bytes" for name, size in self.parts.items() if size),
            *(f"section   {kind} {size:,} bytes" for kind, size in self.sections.items()),
            *(f"note      {name!r} {size:,} bytes" for name, size in self.notes.items()),
            f"SHA-256   {self.sha256}; all checksums agree",
            *([f"signed    {self.signature}"] if self.signature else []),
            *(f"reveals   {what}" for what in self.reveals),
        ]
        return "\n".join(lines)


def inspect_contents(path: Path, contents: FileContents) -> Inspection:
    """Everything there is to tell of a file whose checksums agree."""
    decoder = ModelDecoder(contents, StoredObject, lambda *parts: parts)
    model, parameters, learned = decoder.decode_node(contents.tree)
    contents.check_all_read()
    seen = learned["statistics_"].fields if "statistics_" in learned else {}
    classes = seen.get("classes", learned.get("classes_", np.zeros(0))).tolist()
    rows = seen["n"].tolist() if "classes" in seen else []
    records = list(_iterate_records(learned))
    return Inspection(
        path=os.fspath(path),
        bytes=contents.bytes,
        format=contents.format,
        version=contents.version,
        model=model,
        parameters={name: repr(value) for name, value in parameters.items()},
        classes=classes,
        rows=dict(zip(classes, rows, strict=False)),
        clock=learned.get("clock_", 1.0),
        columns=_list_column_families(learned),
        words=max((len(record.fields["ends"]) for record in records if record.kind == "Words"), default=0),
        parts={name: sum(_iterate_sizes(value)) for name, value in learned.items()},
        sections={section["kind"]: section["bytes"] for section in contents.sections},
        notes={name: len(part) for name, part in contents.parts.items()},
        sha256=contents.digest.hex(),
        signature=contents.sign_digest,
        reveals=_describe_revealed(records),
    )


def _list_column_families(learned: dict[str, Any]) -> dict[str, list[str]]:
    """For each column its candidates; the numbers of columns where they have no names."""
    schema = learned.get("_schema")
    if schema is None:
        names = learned.get("feature_names_in_")
        return {} if names is None else {name: [] for name in names.tolist()}
    found: dict[str, list[str]] = {name: [] for name in schema.fields["names"]}
    for block in schema.fields["blocks"]:
        candidates = [c.__name__ if isinstance(c, type) else repr(c) for c in block.fields["candidates"]]
        found.update(dict.fromkeys(block.fields["names"], candidates))
    return found


def _iterate_records(value: Any) -> Iterator[Any]:
    """Every record, however deep it lies."""
    for inside in _iterate_children(value):
        if isinstance(inside, StoredObject):
            yield inside
        yield from _iterate_records(inside)


def _iterate_sizes(value: Any) -> Iterator[int]:
    if isinstance(value, np.ndarray):
        yield sum(len(s.encode()) for s in value.flat) if value.dtype.kind in "OU" else value.nbytes
    for inside in _iterate_children(value):
        yield from _iterate_sizes(inside)


def _iterate_children(value: Any) -> Iterator[Any]:
    if isinstance(value, StoredObject):
        yield from value.fields.values()
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (tuple, list)):
        yield from value


def _describe_revealed(records: list[Any]) -> list[str]:
    kinds = Counter(record.kind for record in records)
    told = list(dict.fromkeys(what for kind, what in REVEALED_BY_RECORD.items() if kinds[kind]))
    counted = sorted(
        kind for kind in kinds if kind in STATISTICS_PATHS and kind not in REVEALED_BY_RECORD and kind != "Seen"
    )
    return told + [f"sums over the rows of each class ({', '.join(counted)})"] * bool(counted)
