"""Profiles of columns, which determine the schema and can be added: the profiles of parts sum to the whole table's.

Whether strings are labels or texts depends on how many are distinct, and on their words. Of all distinct strings the
profile keeps the ones with the smallest hashes, with their counts and numbers of words. Up to `MAX_VALUES_KEPT`
distinct strings the decision is the same as from the whole table; beyond that it is based on a uniform sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import ndarray as Array

from priory.core.content_hash import hash_value
from priory.core.typing import ColumnKind
from priory.core.value_counts import encode_values
from priory.errors import KindError
from priory.model.cells import NO_LIMIT
from priory.tables.dates import join_date_names
from priory.tables.table import Column, Table
from priory.text.tokenizer import estimate_word_count

MAX_VALUES_KEPT = 10_000


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """The kind of a column, whether its numbers are all 0 or 1, and a uniform sample of its distinct strings."""

    kind: ColumnKind = "empty"
    zone: str | None = None  # of moments that the column is a part of
    is_binary: bool = True
    limit: int = NO_LIMIT  # upper bound (exclusive) of the hashes
    hashes: Array = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # (values,), sorted
    times: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (values,): number of occurrences
    words: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (values,): number of words

    @classmethod
    def of(cls, table: Table, position: int) -> ColumnProfile:
        kind = table.column_kinds()[table.names[position]]
        if not table.find_filled_columns()[position]:
            return cls()
        zone = table.get_zone(position)
        if kind != "label":
            return cls(kind, zone, kind == "number" and table.is_binary(position))
        codes, values = table.labels([position]).codes[:, 0], table.labels([position]).values[0]
        times = np.bincount(codes[codes >= 0], minlength=len(values))
        hashes = np.array([hash_value(value) for value in values.tolist()], dtype=np.uint64)
        words = np.array([estimate_word_count(str(value)) for value in values.tolist()], dtype=np.int64)
        # values without cells (from a dictionary encoding) do not count
        used = np.flatnonzero(times)
        order = used[np.argsort(hashes[used], kind="stable")]
        return cls(kind, zone, False, NO_LIMIT, hashes[order], times[order], words[order])._trim()

    def __add__(self, other: ColumnProfile) -> ColumnProfile:
        # union of the values; counts of equal values are added
        hashes, first, place = np.unique(np.append(self.hashes, other.hashes), return_index=True, return_inverse=True)
        times = np.zeros(len(hashes), dtype=np.int64)
        np.add.at(times, place, np.append(self.times, other.times))
        words = np.append(self.words, other.words)[first]
        kind, zone = (self.kind, self.zone) if other.kind == "empty" else (other.kind, other.zone)
        limit = min(self.limit, other.limit)
        return ColumnProfile(kind, zone, self.is_binary and other.is_binary, limit, hashes, times, words)._trim()

    def _trim(self) -> ColumnProfile:
        """Keep the values below the limit, and at most `MAX_VALUES_KEPT` of them."""
        limit = min(self.limit, int(self.hashes[MAX_VALUES_KEPT])) if len(self.hashes) > MAX_VALUES_KEPT else self.limit
        n = int(np.searchsorted(self.hashes, np.uint64(limit)))
        return replace(self, limit=limit, hashes=self.hashes[:n], times=self.times[:n], words=self.words[:n])

    @property
    def is_prose(self) -> bool:
        """Whether the strings are texts: most cells are distinct, with three words or more on average."""
        n_values = len(self.hashes)
        return 2 * n_values > int(self.times.sum()) and int(self.words.sum()) >= 3 * n_values

    def make_example(self) -> Column:
        """Make a column of two cells from which a schema infers the same kind and families."""
        if self.kind == "number":
            return Column("number", np.array([0.0, 1.0] if self.is_binary else [0.5, 0.5]), zone=self.zone)
        if self.kind == "label":
            cells = ["one short text", "two short texts"] if self.is_prose else ["label", "label"]
            return Column("label", labels=encode_values(np.array(cells, dtype=object)), zone=self.zone)
        return Column("empty")


NO_CELLS = ColumnProfile()
Profiles = Mapping[str, ColumnProfile]


def profile_columns(table: Table) -> dict[str, ColumnProfile]:
    """Profile the columns of a table; dates are profiled part by part."""
    return {name: ColumnProfile.of(table, place) for place, name in enumerate(table.names)}


def add_profiles(one: Profiles, other: Profiles) -> dict[str, ColumnProfile]:
    """Add the profiles of two parts of a table."""
    for name in one.keys() & other.keys():
        kinds = one[name].kind, other[name].kind
        if "empty" not in kinds and kinds[0] != kinds[1]:
            raise KindError(
                f"column {name!r} holds {kinds[0]}s in one partition and {kinds[1]}s in another; "
                "make it one or the other."
            )
    return {name: one.get(name, NO_CELLS) + other.get(name, NO_CELLS) for name in {**one, **other}}


def make_example_table(names: Sequence[str], profiles: Profiles) -> Table:
    """Make a table of two rows with the schema of all rows; columns without a profile are open."""
    placed = join_date_names(names, profiles)
    mixed = [name for name in names if name not in placed and profiles.get(name, NO_CELLS).kind != "empty"]
    if mixed:
        raise KindError(
            f"column {mixed[0]!r} holds dates in one partition and {profiles[mixed[0]].kind}s in another; make it one "
            "or the other."
        )
    return Table(2, placed, True, tuple(profiles.get(name, NO_CELLS).make_example() for name in placed))
