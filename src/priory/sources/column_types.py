"""Column types, declared by the user or fixed by a model, and the target column as labels."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

from priory.errors import DataError
from priory.families.base import families_by_name
from priory.sources import cell_parsing as cells
from priory.sources.byte_streams import format_path
from priory.sources.cell_parsing import RowChunk, add_date_parts
from priory.sources.discovery import FileRows, format_names, make_absent_column_error
from priory.sources.document_files import LABEL_COLUMN, PATH_COLUMN
from priory.tables.dates import Zones, find_source_column, split_part_name
from priory.tables.number_formats import PLAIN_FORMAT, find_common_format, find_number_formats
from priory.tables.table import Column, Table
from priory.text.normal_forms import Reader

if TYPE_CHECKING:
    from priory.families.base import AnyFamily
    from priory.text.documents import PackedDocuments


InputRows: TypeAlias = list[str] | pa.Table  # rows as a user of the library would give them to a model

MISSING_MARKERS = {"NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "-", ".", "inf", "-inf"}
KIND_BY_TYPE = {
    "numeric": "number",
    "number": "number",
    "label": "label",
    "date": "date",
}  # types that leave the family open


@dataclass(frozen=True)
class ColumnOptions:
    """The target and the kinds of columns; what is not declared is inferred from the first rows.

    Parameters
    ----------
    target : str, optional
        The column to predict.
    types : dict of str to str
        For a column "numeric", "label", "text" or "date", or the name of a family such as "poisson".
    ignore : tuple of str
        Columns to leave out.
    missing : frozenset of str
        Cells that count as missing, such as NA or ?, besides empty ones.
    skip_unlabelled : bool
        Skip rows without a label; otherwise they are errors.
    labels_as_text : bool
        Take every value of the target for a class, even if it looks like a number to predict: more than 20 different
        numbers.
    coerce : bool
        Read cells that are not numbers, in columns of numbers, as missing; otherwise they are errors.
    keep_identifiers : bool
        Learn columns that identify rows instead of describing them; otherwise they are left out.
    columns : tuple of str
        The columns to learn from; by default all but the target.
    decimal, thousands : str, optional
        The separators of numbers, as "," and "." in 1.234,5. By default found by the cells of each column.
    day_first : bool, optional
        Whether 03/04/2024 is in April. By default found by the cells of each column.
    label_map : dict of str to str
        Labels to replace by others, such as a mistyped one by the right one.
    strip_labels : bool
        Ignore blanks around labels.
    label : str, optional
        The label of all rows, in a column ``label``, for files without labels.
    """

    target: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    skip_unlabelled: bool = False
    labels_as_text: bool = False
    coerce: bool = False
    keep_identifiers: bool = False
    columns: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    day_first: bool | None = None
    label_map: Mapping[str, str] = field(default_factory=dict)
    strip_labels: bool = False
    label: str | None = None

    def find_target(self, rows: FileRows) -> str:
        target = (
            LABEL_COLUMN if self.label is not None else self.target or (LABEL_COLUMN if rows.is_documents else None)
        )
        if target is None:
            last = shlex.quote(rows.names[-1])
            raise DataError(
                f"which column is the target? use --target {last}, if it is the last one; the columns are "
                f"{format_names(rows.names)}"
            )
        if target not in rows.names:
            raise make_absent_column_error(
                rows.files[0].path, [target], rows.names, remedy=rows.files[0].suggest_header(target)
            )
        return target

    def find_features(self, rows: FileRows) -> tuple[str, ...]:
        for name in (*self.types, *self.columns, *self.ignore):
            if name not in rows.names:
                raise make_absent_column_error(rows.files[0].path, [name], rows.names)
        out = {*self.ignore, self.find_target(rows), *([PATH_COLUMN] if rows.is_documents else [])}
        names = tuple(name for name in self.columns or rows.names if name not in out)
        blank = next((place for place, name in enumerate(rows.names, 1) if name in names and not name.strip()), None)
        if blank:
            where = f"{format_path(rows.files[0].path)}:1:{blank}"
            raise DataError(f"{where}: the column has no name; name it, or leave it out with --ignore ''")
        if not names:
            raise DataError(
                f"{format_path(rows.files[0].path)}: has no column besides the target; there is nothing to learn from"
            )
        return names


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a model in order, and how their cells are read.

    ``kinds`` has "number", "label" or "text" for each column, some of which may be parts of a column of dates;
    ``missing`` are the cells that count as missing, and ``declared_families`` the families by column name, where they
    were declared. With ``coerce``, cells that are not numbers are read as missing, and ``n_coerced`` counts them by
    column. ``is_trained`` marks the columns of a trained model, whose types are fixed. ``zones`` are the time zones of
    columns of dates, and ``formats`` the notations of numbers and dates that are not written in the usual one.
    """

    kinds: Mapping[str, str]
    missing: frozenset[str] = frozenset()
    declared_families: Mapping[str, object] = field(default_factory=dict)
    coerce: bool = False
    is_trained: bool = False
    zones: Zones = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    reader: Reader = "text"  # how documents are read
    n_coerced: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    def find_sources(self, file_columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of a file that these columns are read from."""
        return tuple(dict.fromkeys(find_source_column(name, file_columns) for name in self.names))

    @property
    def is_one_text(self) -> bool:
        return list(self.kinds.values()) == ["text"]

    def read(self, chunk: RowChunk) -> Table | PackedDocuments:
        """Convert a chunk for a model: documents, or a table with fixed kinds of columns."""
        if self.is_one_text:
            return cells.read_text_column(chunk.batch.column(self.names[0]))
        return Table(chunk.batch.num_rows, self.names, True, tuple(self.read_columns(chunk).values()))

    def read_columns(self, chunk: RowChunk) -> dict[str, Column]:
        """The columns of a chunk by name."""
        chunk = add_date_parts(chunk, self.names, self.missing, self.zones, self.formats)
        return {name: self._read_column(chunk, name, kind) for name, kind in self.kinds.items()}

    def read_input_rows(self, chunk: RowChunk) -> InputRows:
        """Convert a chunk to the input of estimators: texts, or an Arrow table of numbers and strings."""
        if self.is_one_text:
            return cells.fill_missing(cells.cast_to_text(chunk.batch.column(self.names[0])), "").to_pylist()
        return self.read_arrow_table(chunk)

    def read_arrow_table(self, chunk: RowChunk) -> pa.Table:
        """Convert a chunk to an Arrow table of numbers and strings."""
        chunk = add_date_parts(chunk, self.names, self.missing, self.zones, self.formats)
        return pa.table({name: self._read_arrow_column(chunk, name, kind) for name, kind in self.kinds.items()})

    def _read_arrow_column(self, chunk: RowChunk, name: str, kind: str) -> pa.Array:
        if kind == "number":
            return pa.array(self._read_numbers(chunk, name), from_pandas=True)
        return cells.cast_to_text(cells.mask_missing_cells(chunk.batch.column(name), self.missing))

    def _read_numbers(self, chunk: RowChunk, name: str) -> Array:
        """Read a column of numbers, and check them against the declared family."""
        column, form = chunk.batch.column(name), self.formats.get(name)
        if self.coerce:
            column, n_blanked = cells.blank_non_numbers(column, self.missing, form)
            self.n_coerced[name] += n_blanked
        chunk = chunk._replace(batch=pa.RecordBatch.from_arrays([column], names=[name]))
        values = cells.read_number_column(chunk, name, self.missing, not self.is_trained, form)
        declared = self.declared_families.get(name)
        family = find_declared_family(declared) if isinstance(declared, str) else None
        if family is not None:
            odd = ~(family.accepts(values) | np.isnan(values))
            if odd.any():
                row = int(odd.argmax())
                problem = f"{values[row]:g} is impossible for {declared}, which takes {family.accepted_values}"
                raise chunk.make_cell_error(row, name, problem, "correct it, or train with another --type")
        return values

    def _read_column(self, chunk: RowChunk, name: str, kind: str) -> Column:
        source, part = split_part_name(name)
        zone, form = self.zones.get(source) if part else None, self.formats.get(source)
        if kind == "number":
            return Column("number", numbers=self._read_numbers(chunk, name), zone=zone, format=form)
        column = cells.mask_missing_cells(chunk.batch.column(name), self.missing)
        if kind == "text":
            return Column("text", texts=list(cells.read_text_column(column)))
        return Column("label", labels=cells.encode_label_column(column), zone=zone, format=form)


def make_model_rows(rows: InputRows) -> list[str] | Table:
    """Convert rows to a `Table`, which a model reads without a data frame library."""
    if isinstance(rows, list):
        return rows
    columns = tuple(_make_column(column.combine_chunks()) for column in rows.columns)
    return Table(rows.num_rows, tuple(rows.column_names), True, columns)


def _make_column(column: pa.Array) -> Column:
    """Convert a column of an Arrow table; a column without cells may hold numbers or labels."""
    if pa.types.is_floating(column.type):
        return Column("number", numbers=cells.unpack_column(column))
    if column.null_count == len(column):
        return Column("empty")
    return Column("label", labels=cells.encode_label_column(column))


def declare_column_families(columns: ModelColumns, column_options: ColumnOptions) -> dict[str, str]:
    """The families that are not chosen by the data: of labels, texts, and declared columns."""
    fixed = {"label": "categorical", "text": "text"}
    chosen = {name: fixed[kind] for name, kind in columns.kinds.items() if kind in fixed}
    return chosen | {
        name: given
        for name, given in column_options.types.items()
        if name in columns.kinds and find_declared_family(given) is not None
    }


def look_up_kind(given: str) -> str:
    family = find_declared_family(given)
    return KIND_BY_TYPE.get(given, "number") if family is None else family.column_kind


def find_declared_family(name: str) -> type[AnyFamily] | None:
    """The family with this name; None for types such as "numeric" that leave the family open."""
    return families_by_name().get(name)


def list_column_types() -> tuple[str, ...]:
    """All types of columns: kinds that leave the family open, then the families."""
    return tuple(dict.fromkeys(["numeric", "label", "text", "date", *families_by_name()]))


def list_number_formats(column: pa.Array, options: ColumnOptions) -> list[str]:
    """The notations in which all cells are numbers, except for markers of missing cells; if none, the common one.

    Numbers as Python writes them have none unless the user declares separators, and are read by Arrow.
    """
    if not cells.is_text_column(column):
        return []
    written = [cell for cell in column.drop_null().unique().to_pylist() if cell.strip() not in MISSING_MARKERS]
    formats = find_number_formats(written, options.decimal, options.thousands)
    if not formats and (common := find_common_format(written)):
        formats = [common]
    return [] if PLAIN_FORMAT in formats else formats


def choose_number_format(chunk: RowChunk, name: str, options: ColumnOptions) -> str | None:
    """The notation of a column of numbers, None for the usual one; an error if a cell could be read in two ways."""
    column = cells.mask_missing_cells(chunk.batch.column(name), options.missing)
    formats = list_number_formats(column, options)
    if len(formats) < 2:
        return formats[0] if formats else None
    codes, values = cells.number_texts(column)
    one, other = (cells.parse_written_numbers(values, form)[codes] for form in formats[:2])
    raise make_ambiguity_error(chunk, name, "number", one, other, "--decimal , or --thousands ,")


def make_ambiguity_error(chunk: RowChunk, name: str, kind: str, one: Array, other: Array, options: str) -> DataError:
    """An error about the first cell that ``one`` and the ``other`` reading, both (rows,), do not read alike."""
    row = int(((one != other) & ~np.isnan(one)).argmax())
    problem = f"{cells.shorten_cell(chunk.batch.column(name)[row].as_py())} is a {kind} that could be read in two ways"
    return chunk.make_cell_error(row, name, problem, f"use {options}, or --type {shlex.quote(name)}=label")


MAX_NUMERIC_LABELS = 20  # a target with more different numbers than this looks like a number to predict


def looks_continuous(chunk: RowChunk, target: str, column_options: ColumnOptions) -> bool:
    """Whether the target looks like a number to predict: more than 20 different values, all of them numbers."""
    labels = LabelReader(target, replace(column_options, labels_as_text=True, skip_unlabelled=True))
    labels.read(chunk)
    return labels.looks_numeric


class LabelReader:
    """Reads labels as text; ``names`` are the classes so far, in order of appearance."""

    def __init__(self, target: str, column_options: ColumnOptions) -> None:
        self.target, self.column_options = target, column_options
        self.class_codes: dict[str, int] = {}
        self.n_unlabelled, self.n_rows = 0, 0
        self._names = np.empty(0, dtype=object)
        self.mapped: set[str] = set()  # labels that were replaced by others

    @property
    def names(self) -> Array:
        if len(self._names) < len(self.class_codes):
            self._names = np.empty(len(self.class_codes), dtype=object)
            self._names[:] = list(self.class_codes)
        return self._names

    def read(self, chunk: RowChunk) -> tuple[Array, RowChunk]:
        """For each labelled row the index of its class in ``names``, and the chunk with only these rows."""
        column = chunk.batch.column(self.target)
        place, found = cells.number_texts(cells.cast_to_text(column))
        missing = {"", *self.column_options.missing}
        found = [self._clean_label(label) for label in found]
        labels = [label for label in found if label.strip() not in missing]
        n_before, self.n_rows = len(self.class_codes), self.n_rows + len(column)
        for label in labels:
            self.class_codes.setdefault(label, len(self.class_codes))
        if n_before <= MAX_NUMERIC_LABELS and not self.column_options.labels_as_text:
            self._check_not_numeric(chunk)
        codes = np.array([*(self.class_codes.get(label, -1) for label in found), -1], dtype=np.int32)  # -1: no label
        group = codes[place]
        labelled = group >= 0
        if not labelled.all():
            if not self.column_options.skip_unlabelled:
                remedy = "give it one, or use --skip-unlabelled"
                raise chunk.make_cell_error(int(np.argmin(labelled)), self.target, "has no label", remedy)
            self.n_unlabelled += int((~labelled).sum())
            chunk, group = chunk.keep_rows(labelled), group[labelled]
        return group, chunk

    def _clean_label(self, label: str) -> str:
        label = label.strip() if self.column_options.strip_labels else label
        if label in self.column_options.label_map:
            self.mapped.add(label)
        return self.column_options.label_map.get(label, label)

    @property
    def looks_numeric(self) -> bool:
        """Whether the labels look like a number to predict: more than 20 different values, all of them numbers."""
        return len(self.class_codes) > MAX_NUMERIC_LABELS and self.are_numbers

    @property
    def are_numbers(self) -> bool:
        """Whether every label is a number."""
        labels = list(self.class_codes)
        return all(cells.looks_numeric(pa.array(labels, pa.string())).to_pylist()) or bool(
            find_number_formats(labels, self.column_options.decimal, self.column_options.thousands)
        )

    def _check_not_numeric(self, chunk: RowChunk) -> None:
        if self.looks_numeric:
            raise DataError(
                f"{format_path(chunk.file.path)}: the target {self.target!r} looks like a number to predict: "
                f"{len(self.class_codes):,} different values in the first {self.n_rows:,} rows; "
                "bin it, or use --classes if each value is a class"
            )


class TargetReader:
    """Reads the numbers to predict."""

    def __init__(self, target: str, column_options: ColumnOptions) -> None:
        self.target, self.column_options, self.n_unlabelled = target, column_options, 0

    def read(self, chunk: RowChunk) -> tuple[Array, RowChunk]:
        """The target of each row that has one, and the chunk with only these rows."""
        options = self.column_options
        form = choose_number_format(chunk, self.target, options)
        values = cells.read_number_column(chunk, self.target, options.missing, form=form)
        is_missing = np.isnan(values)
        if is_missing.any():
            if not self.column_options.skip_unlabelled:
                remedy = "give it one, or use --skip-unlabelled"
                raise chunk.make_cell_error(int(is_missing.argmax()), self.target, "has no number to predict", remedy)
            self.n_unlabelled += int(is_missing.sum())
            values, chunk = values[~is_missing], chunk.keep_rows(~is_missing)
        return values, chunk
