"""What the columns are: said by the user, or read off a sample of rows before anything is learned; then fixed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.bag_of_words.tokenizer import estimate_word_count
from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import cell_parsing as cells
from priory.sources.byte_streams import format_path
from priory.sources.chunk import RowChunk
from priory.sources.discovery import FileRows, format_names
from priory.sources.document_files import LABEL_COLUMN, PATH_COLUMN

if TYPE_CHECKING:
    from priory.families.base import ColumnFamily
    from priory.models.table import Column

KIND_BY_TYPE = {"numeric": "number", "number": "number", "label": "label"}  # what is declared besides families
MISSING_MARKERS = {"NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "-", ".", "inf", "-inf"}
NEAR_NUMBER_PATTERN = re.compile(r"\s*[+-]?(\d+,\d+|0[xX][0-9a-fA-F]+|\d+)\s*")  # digits of every script
MIN_WORDS_PER_TEXT = 3  # a text has so many words on average, and most differ
MAX_FRACTION_LABELS = 20  # so many different fractions as labels are a number to predict


@dataclass(frozen=True)
class ColumnOptions:
    """What the user said of the columns."""

    target: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    skip_unlabelled: bool = False
    labels_as_text: bool = False

    def find_target(self, rows: FileRows) -> str:
        target = self.target or (LABEL_COLUMN if rows.is_documents else None)
        if target is None:
            raise DataError(f"which column is to be learned? use --target with one of {format_names(rows.names)}")
        if target not in rows.names:
            raise DataError(
                f"{format_path(rows.files[0].path)}: has no column {target!r}; it has {format_names(rows.names)}"
            )
        return target

    def find_features(self, rows: FileRows) -> tuple[str, ...]:
        for name in (*self.types, *self.ignore):
            if name not in rows.names:
                raise DataError(
                    f"{format_path(rows.files[0].path)}: has no column {name!r}; it has {format_names(rows.names)}"
                )
        out = {*self.ignore, self.find_target(rows), *([PATH_COLUMN] if rows.is_documents else [])}
        names = tuple(name for name in rows.names if name not in out)
        blank = next((place for place, name in enumerate(rows.names, 1) if name in names and not name.strip()), None)
        if blank:
            where = f"{format_path(rows.files[0].path)}:1:{blank}"
            raise DataError(f"{where}: the column has no name; name it, or leave it out with --ignore ''")
        if not names:
            raise DataError(
                f"{format_path(rows.files[0].path)}: has no column beside the target; there is nothing to learn from"
            )
        return names


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a model in order: "number", "label" or "text"."""

    kinds: Mapping[str, str]
    missing: frozenset[str] = frozenset()
    declared_families: Mapping[str, Any] = field(default_factory=dict)  # families by name, where somebody said

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    @property
    def is_one_text(self) -> bool:
        return list(self.kinds.values()) == ["text"]

    def read(self, chunk: RowChunk) -> Any:
        """A chunk as a model takes it: documents, or a table whose kinds do not depend on what the chunk holds."""
        if self.is_one_text:
            return cells.read_text_column(chunk.batch.column(self.names[0]))
        from priory.models.table import Table

        columns = tuple(self._read_column(chunk, name, kind) for name, kind in self.kinds.items())
        return Table(chunk.batch.num_rows, self.names, True, columns)

    def read_input_rows(self, chunk: RowChunk) -> Any:
        """The same as anybody would give it to the library: texts, or an Arrow table of numbers and strings."""
        if self.is_one_text:
            return cells.cast_to_text(chunk.batch.column(self.names[0])).fill_null("").to_pylist()
        return pa.table({name: self._read_arrow_column(chunk, name, kind) for name, kind in self.kinds.items()})

    def _read_arrow_column(self, chunk: RowChunk, name: str, kind: str) -> Any:
        if kind == "number":
            return pa.array(self._read_numbers(chunk, name), from_pandas=True)
        return cells.cast_to_text(cells.mask_missing_cells(chunk.batch.column(name), self.missing))

    def _read_numbers(self, chunk: RowChunk, name: str) -> Array:
        """A column of numbers, each of which the declared family can have made."""
        values = cells.read_number_column(chunk, name, self.missing)
        declared = self.declared_families.get(name)
        family = find_declared_family(declared) if isinstance(declared, str) else None
        if family is not None:
            odd = ~(family.accepts(values) | np.isnan(values))
            if odd.any():
                row = int(odd.argmax())
                what = f"{values[row]:g} is not {declared}: that takes {family.accepted_values}"
                raise chunk.make_cell_error(row, name, what, "mend it, or train with another --type")
        return values

    def _read_column(self, chunk: RowChunk, name: str, kind: str) -> Column:
        from priory.models.table import Column

        if kind == "number":
            return Column("number", numbers=self._read_numbers(chunk, name))
        column = cells.mask_missing_cells(chunk.batch.column(name), self.missing)
        if kind == "text":
            return Column("text", texts=list(cells.read_text_column(column)))
        return Column("label", labels=cells.encode_label_column(column))


def infer_columns(
    chunk: RowChunk, names: tuple[str, ...], column_options: ColumnOptions
) -> tuple[ModelColumns, list[str]]:
    """The columns by a first chunk, and the names of those that are left out because they are empty."""
    kinds: dict[str, str] = {}
    empty: list[str] = []
    for name in names:
        column = cells.mask_missing_cells(chunk.batch.column(name), column_options.missing)
        if name in column_options.types:
            kinds[name] = _look_up_kind(column_options.types[name])
        elif column.null_count == len(column):
            empty.append(name)
        else:
            kinds[name] = _infer_kind(chunk, name, column)
    if not kinds:
        raise DataError(f"{format_path(chunk.file.path)}: every cell is empty; there is nothing to learn from")
    return ModelColumns(kinds, column_options.missing, column_options.types), empty


def declare_column_families(columns: ModelColumns, column_options: ColumnOptions) -> dict[str, str]:
    """The families of a model of these columns: fixed where the kind leaves one, else by evidence."""
    fixed = {"label": "categorical", "text": "text"}
    chosen = {name: fixed[kind] for name, kind in columns.kinds.items() if kind in fixed}
    return chosen | {
        name: given
        for name, given in column_options.types.items()
        if name in columns.kinds and find_declared_family(given) is not None
    }


def _look_up_kind(given: str) -> str:
    family = find_declared_family(given)
    return KIND_BY_TYPE.get(given, "number") if family is None else family.column_kind


def find_declared_family(name: str) -> type[ColumnFamily] | None:
    """The family that is declared by this name; None for types such as "numeric" that leave a choice of families."""
    from priory.families.registry import families_by_name

    return families_by_name().get(name)


def list_column_types() -> tuple[str, ...]:
    """What a column can be declared as: kinds that leave the family open, then the families."""
    from priory.families.registry import families_by_name

    return tuple(dict.fromkeys(["numeric", "label", "text", *families_by_name()]))


def _infer_kind(chunk: RowChunk, name: str, column: Any) -> str:
    if not cells.is_text_column(column):
        return "number"
    numeric = cells.looks_numeric(column)
    there = int(pc.sum(column.is_valid()).as_py())
    good = int(pc.sum(numeric).as_py() or 0)
    if good == there:
        return "number"
    if 2 * good > there:
        odd = pc.unique(column.filter(pc.invert(numeric.fill_null(True)))).to_pylist()
        if all(cell.strip() in MISSING_MARKERS or NEAR_NUMBER_PATTERN.fullmatch(cell) for cell in odd):
            cells.read_number_column(chunk, name, frozenset())  # says which cell is no number
    return "text" if _is_prose(column, there) else "label"


def _is_prose(column: Any, there: int) -> bool:
    """Whether cells are texts: most differ, and have three words or more."""
    values = pc.unique(column.drop_null())
    if 2 * len(values) <= there:
        return False
    return sum(map(estimate_word_count, values.to_pylist())) >= MIN_WORDS_PER_TEXT * len(values)


class LabelReader:
    """The classes met so far, in the order they came; labels stay the text they are."""

    def __init__(self, target: str, column_options: ColumnOptions) -> None:
        self.target, self.column_options = target, column_options
        self.class_codes: dict[str, int] = {}
        self.n_unlabelled = 0
        self._names = np.empty(0, dtype=object)

    @property
    def names(self) -> Array:
        if len(self._names) < len(self.class_codes):
            self._names = np.empty(len(self.class_codes), dtype=object)
            self._names[:] = list(self.class_codes)
        return self._names

    def read(self, chunk: RowChunk) -> tuple[Array, RowChunk]:
        """The class of each row, and the rows that have one."""
        column = chunk.batch.column(self.target)
        coded = (column if cells.is_text_column(column) else cells.cast_to_text(column)).dictionary_encode()
        found, nothing = coded.dictionary.to_pylist(), {"", *self.column_options.missing}
        known = [label for label in found if label.strip() not in nothing]
        self._check_not_numeric(known)
        for label in known:
            self.class_codes.setdefault(label, len(self.class_codes))
        places = np.array([self.class_codes.get(label, -1) for label in [*found, None]], dtype=np.int32)  # -1: no label
        group = places[coded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)]
        there = group >= 0
        if not there.all():
            if not self.column_options.skip_unlabelled:
                remedy = "give it one, or use --skip-unlabelled"
                raise chunk.make_cell_error(int(np.argmin(there)), self.target, "has no label", remedy)
            self.n_unlabelled += int((~there).sum())
            chunk, group = chunk._replace(batch=chunk.batch.filter(pa.array(there))), group[there]
        return group, chunk

    def _check_not_numeric(self, found: list[str]) -> None:
        if self.class_codes or self.column_options.labels_as_text or len(found) <= MAX_FRACTION_LABELS:
            return
        column = pa.array(found, pa.string())
        if all(pc.fill_null(cells.looks_numeric(column), False).to_pylist()) and sum("." in f for f in found) * 2 > len(
            found
        ):
            raise DataError(
                f"the target {self.target!r} looks like a number to predict; bin it, or pass --labels-as-text"
            )
