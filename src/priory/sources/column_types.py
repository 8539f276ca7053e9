"""What the columns are: said by the user, or read off a sample of rows before anything is learned; then fixed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.bag_of_words.tokenizer import words_in
from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import cell_parsing as cells
from priory.sources.byte_streams import shown
from priory.sources.chunk import Chunk
from priory.sources.discovery import Rows, listed
from priory.sources.document_files import LABEL, PATH

if TYPE_CHECKING:
    from priory.models.table import Column

NAMES = {"numeric": "number", "number": "number", "label": "label", "categorical": "label", "text": "text"}
MARKERS = {"NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "-", ".", "inf", "-inf"}
ALMOST = re.compile(r"\s*[+-]?(\d+,\d+|0[xX][0-9a-fA-F]+|\d+)\s*")  # digits of every script
PROSE_WORDS = 3  # a text has so many words on average, and most differ
POSSIBLE: Mapping[str, Callable[[Array], Array]] = {
    "poisson": lambda v: (v >= 0) & (v == np.floor(v)),
    "bernoulli": lambda v: (v == 0) | (v == 1),
    "gamma": lambda v: v > 0,
}
FRACTIONS = 20  # so many different fractions as labels are a number to predict


@dataclass(frozen=True)
class Said:
    """What the user said of the columns."""

    target: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    skip_unlabelled: bool = False
    labels_as_text: bool = False

    def target_in(self, rows: Rows) -> str:
        target = self.target or (LABEL if rows.is_documents else None)
        if target is None:
            raise DataError(f"which column is to be learned? use --target with one of {listed(rows.names)}")
        if target not in rows.names:
            raise DataError(f"{shown(rows.files[0].path)}: has no column {target!r}; it has {listed(rows.names)}")
        return target

    def features_in(self, rows: Rows) -> tuple[str, ...]:
        for name in (*self.types, *self.ignore):
            if name not in rows.names:
                raise DataError(f"{shown(rows.files[0].path)}: has no column {name!r}; it has {listed(rows.names)}")
        out = {*self.ignore, self.target_in(rows), *([PATH] if rows.is_documents else [])}
        names = tuple(name for name in rows.names if name not in out)
        blank = next((place for place, name in enumerate(rows.names, 1) if name in names and not name.strip()), None)
        if blank:
            where = f"{shown(rows.files[0].path)}:1:{blank}"
            raise DataError(f"{where}: the column has no name; name it, or leave it out with --ignore ''")
        if not names:
            raise DataError(
                f"{shown(rows.files[0].path)}: has no column beside the target; there is nothing to learn from"
            )
        return names


@dataclass(frozen=True)
class Columns:
    """The columns of a model in order: "number", "label" or "text"."""

    kinds: Mapping[str, str]
    missing: frozenset[str] = frozenset()
    declared: Mapping[str, Any] = field(default_factory=dict)  # families by name, where somebody said

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    @property
    def is_one_text(self) -> bool:
        return list(self.kinds.values()) == ["text"]

    def read(self, chunk: Chunk) -> Any:
        """A chunk as a model takes it: documents, or a table whose kinds do not depend on what the chunk holds."""
        if self.is_one_text:
            return cells.documents(chunk.batch.column(self.names[0]))
        from priory.models.table import Table

        columns = tuple(self._column(chunk, name, kind) for name, kind in self.kinds.items())
        return Table(chunk.batch.num_rows, self.names, True, columns)

    def rows(self, chunk: Chunk) -> Any:
        """The same as anybody would give it to the library: texts, or an Arrow table of numbers and strings."""
        if self.is_one_text:
            return cells.as_text(chunk.batch.column(self.names[0])).fill_null("").to_pylist()
        return pa.table({name: self._arrow(chunk, name, kind) for name, kind in self.kinds.items()})

    def _arrow(self, chunk: Chunk, name: str, kind: str) -> Any:
        if kind == "number":
            return pa.array(self._numbers(chunk, name), from_pandas=True)
        return cells.as_text(cells.present(chunk.batch.column(name), self.missing))

    def _numbers(self, chunk: Chunk, name: str) -> Array:
        """A column of numbers, each of which the declared family can have made."""
        values = cells.numbers(chunk, name, self.missing)
        family = self.declared.get(name)
        if isinstance(family, str) and family in POSSIBLE:
            odd = ~(POSSIBLE[family](values) | np.isnan(values))
            if odd.any():
                from priory.models.schema import FAMILIES

                row = int(odd.argmax())
                what = f"{values[row]:g} is not {family}: that takes {FAMILIES[family].holds}"
                raise chunk.fault(row, name, what, "mend it, or train with another --type")
        return values

    def _column(self, chunk: Chunk, name: str, kind: str) -> Column:
        from priory.models.table import Column

        if kind == "number":
            return Column("number", numbers=self._numbers(chunk, name))
        column = cells.present(chunk.batch.column(name), self.missing)
        if kind == "text":
            return Column("text", texts=list(cells.documents(column)))
        return Column("label", labels=cells.labels(column))


def inferred(chunk: Chunk, names: tuple[str, ...], said: Said) -> tuple[Columns, list[str]]:
    """The columns by a first chunk, and the names of those that are left out because they are empty."""
    kinds: dict[str, str] = {}
    empty: list[str] = []
    for name in names:
        column = cells.present(chunk.batch.column(name), said.missing)
        if name in said.types:
            kinds[name] = _said_kind(said.types[name])
        elif column.null_count == len(column):
            empty.append(name)
        else:
            kinds[name] = _kind(chunk, name, column)
    if not kinds:
        raise DataError(f"{shown(chunk.file.path)}: every cell is empty; there is nothing to learn from")
    return Columns(kinds, said.missing, said.types), empty


def families(columns: Columns, said: Said) -> dict[str, str]:
    """The families of a model of these columns: fixed where the kind leaves one, else by evidence."""
    from priory.models.schema import FAMILIES

    fixed = {"label": "categorical", "text": "text"}
    chosen = {name: fixed[kind] for name, kind in columns.kinds.items() if kind in fixed}
    return chosen | {name: given for name, given in said.types.items() if given in FAMILIES and name in columns.kinds}


def _said_kind(given: str) -> str:
    return NAMES.get(given, "number")  # all other families are of numbers


def _kind(chunk: Chunk, name: str, column: Any) -> str:
    if not cells.is_text(column):
        return "number"
    numeric = cells.looks_numeric(column)
    there = int(pc.sum(column.is_valid()).as_py())
    good = int(pc.sum(numeric).as_py() or 0)
    if good == there:
        return "number"
    if 2 * good > there:
        odd = pc.unique(column.filter(pc.invert(numeric.fill_null(True)))).to_pylist()
        if all(cell.strip() in MARKERS or ALMOST.fullmatch(cell) for cell in odd):
            cells.numbers(chunk, name, frozenset())  # says which cell is no number
    return "text" if _is_prose(column, there) else "label"


def _is_prose(column: Any, there: int) -> bool:
    """Whether cells are texts: most differ, and have three words or more."""
    values = pc.unique(column.drop_null())
    if 2 * len(values) <= there:
        return False
    return sum(map(words_in, values.to_pylist())) >= PROSE_WORDS * len(values)


class Labels:
    """The classes met so far, in the order they came; labels stay the text they are."""

    def __init__(self, target: str, said: Said) -> None:
        self.target, self.said = target, said
        self.places: dict[str, int] = {}
        self.unlabelled = 0
        self._names = np.empty(0, dtype=object)

    @property
    def names(self) -> Array:
        if len(self._names) < len(self.places):
            self._names = np.empty(len(self.places), dtype=object)
            self._names[:] = list(self.places)
        return self._names

    def read(self, chunk: Chunk) -> tuple[Array, Chunk]:
        """The class of each row, and the rows that have one."""
        column = chunk.batch.column(self.target)
        coded = (column if cells.is_text(column) else cells.as_text(column)).dictionary_encode()
        found, nothing = coded.dictionary.to_pylist(), {"", *self.said.missing}
        known = [label for label in found if label.strip() not in nothing]
        self._check(known)
        for label in known:
            self.places.setdefault(label, len(self.places))
        places = np.array([self.places.get(label, -1) for label in [*found, None]], dtype=np.int32)  # -1: no label
        group = places[coded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)]
        there = group >= 0
        if not there.all():
            if not self.said.skip_unlabelled:
                remedy = "give it one, or use --skip-unlabelled"
                raise chunk.fault(int(np.argmin(there)), self.target, "has no label", remedy)
            self.unlabelled += int((~there).sum())
            chunk, group = chunk._replace(batch=chunk.batch.filter(pa.array(there))), group[there]
        return group, chunk

    def _check(self, found: list[str]) -> None:
        if self.places or self.said.labels_as_text or len(found) <= FRACTIONS:
            return
        column = pa.array(found, pa.string())
        if all(pc.fill_null(cells.looks_numeric(column), False).to_pylist()) and sum("." in f for f in found) * 2 > len(
            found
        ):
            raise DataError(
                f"the target {self.target!r} looks like a number to predict; bin it, or pass --labels-as-text"
            )
