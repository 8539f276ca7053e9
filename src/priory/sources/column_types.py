"""What the columns are: declared by the user, or inferred from the first rows; fixed before anything is learned."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.bag_of_words.tokenizer import estimate_word_count
from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import cell_parsing as cells
from priory.sources.byte_streams import format_path
from priory.sources.chunk import RowChunk
from priory.sources.discovery import FileRows, format_names, make_absent_column_error
from priory.sources.document_files import LABEL_COLUMN, PATH_COLUMN

if TYPE_CHECKING:
    from priory.bag_of_words.documents import PackedDocuments
    from priory.families.base import AnyFamily
    from priory.models.table import Column, Table

InputRows: TypeAlias = list[str] | pa.Table  # rows as a user of the library would give them to a model

KIND_BY_TYPE = {"numeric": "number", "number": "number", "label": "label"}  # what is declared besides families
MISSING_MARKERS = {"NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "-", ".", "inf", "-inf"}
NEAR_NUMBER_PATTERN = re.compile(r"\s*[+-]?(\d+,\d+|0[xX][0-9a-fA-F]+|\d+)\s*")  # digits of every script
MIN_WORDS_PER_TEXT = 3  # on average, in a column of texts
MIN_SHARE_OF_KIND = 0.9  # of the cells of the first block: with fewer exceptions a column holds numbers, or dates
MAX_NUMERIC_LABELS = 20  # a target with more different numbers than this looks like a number to predict


@dataclass(frozen=True)
class ColumnOptions:
    """What the columns are, as far as it is not inferred from the first rows.

    Parameters
    ----------
    target : str, optional
        The column to predict.
    types : dict of str to str
        For a column "numeric", "label" or "text", or the name of a family such as "poisson".
    ignore : tuple of str
        Columns to leave out.
    missing : frozenset of str
        Cells that count as missing, besides empty ones.
    skip_unlabelled : bool
        Skip rows without a label; otherwise they are errors.
    labels_as_text : bool
        Accept a target that looks like a number to predict: more than 20 different numbers.
    coerce : bool
        Read cells that are not numbers, in columns of numbers, as missing; otherwise they are errors.
    """

    target: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    skip_unlabelled: bool = False
    labels_as_text: bool = False
    coerce: bool = False

    def find_target(self, rows: FileRows) -> str:
        target = self.target or (LABEL_COLUMN if rows.is_documents else None)
        if target is None:
            raise DataError(f"which column is the target? use --target with one of {format_names(rows.names)}")
        if target not in rows.names:
            raise make_absent_column_error(rows.files[0].path, [target], rows.names)
        return target

    def find_features(self, rows: FileRows) -> tuple[str, ...]:
        for name in (*self.types, *self.ignore):
            if name not in rows.names:
                raise make_absent_column_error(rows.files[0].path, [name], rows.names)
        out = {*self.ignore, self.find_target(rows), *([PATH_COLUMN] if rows.is_documents else [])}
        names = tuple(name for name in rows.names if name not in out)
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

    ``kinds`` has "number", "label" or "text" for each column, ``missing`` the cells that count as missing, and
    ``declared_families`` the families by column name, where they were declared. With ``coerce``, cells that are not
    numbers are read as missing, and ``n_coerced`` counts them by column. ``is_trained`` says that these are the columns
    of a trained model, which cannot be declared otherwise any more.
    """

    kinds: Mapping[str, str]
    missing: frozenset[str] = frozenset()
    declared_families: Mapping[str, object] = field(default_factory=dict)
    coerce: bool = False
    is_trained: bool = False
    n_coerced: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    @property
    def is_one_text(self) -> bool:
        return list(self.kinds.values()) == ["text"]

    def read(self, chunk: RowChunk) -> Table | PackedDocuments:
        """A chunk for a model: documents, or a table whose kinds of columns do not depend on the chunk."""
        if self.is_one_text:
            return cells.read_text_column(chunk.batch.column(self.names[0]))
        from priory.models.table import Table

        columns = tuple(self._read_column(chunk, name, kind) for name, kind in self.kinds.items())
        return Table(chunk.batch.num_rows, self.names, True, columns)

    def read_input_rows(self, chunk: RowChunk) -> InputRows:
        """A chunk as a user of the library would give it: texts, or an Arrow table of numbers and strings."""
        if self.is_one_text:
            return cells.cast_to_text(chunk.batch.column(self.names[0])).fill_null("").to_pylist()
        return pa.table({name: self._read_arrow_column(chunk, name, kind) for name, kind in self.kinds.items()})

    def _read_arrow_column(self, chunk: RowChunk, name: str, kind: str) -> pa.Array:
        if kind == "number":
            return pa.array(self._read_numbers(chunk, name), from_pandas=True)
        return cells.cast_to_text(cells.mask_missing_cells(chunk.batch.column(name), self.missing))

    def _read_numbers(self, chunk: RowChunk, name: str) -> Array:
        """A column of numbers, checked to be possible under the declared family."""
        if self.coerce:
            column, n_blanked = cells.blank_non_numbers(chunk.batch.column(name), self.missing)
            self.n_coerced[name] += n_blanked
            chunk = chunk._replace(batch=pa.RecordBatch.from_arrays([column], names=[name]))
        values = cells.read_number_column(chunk, name, self.missing, not self.is_trained)
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
        from priory.models.table import Column

        if kind == "number":
            return Column("number", numbers=self._read_numbers(chunk, name))
        column = cells.mask_missing_cells(chunk.batch.column(name), self.missing)
        if kind == "text":
            return Column("text", texts=list(cells.read_text_column(column)))
        return Column("label", labels=cells.encode_label_column(column))


def infer_columns(
    chunk: RowChunk, names: tuple[str, ...], column_options: ColumnOptions, dates_as_labels: bool = False
) -> tuple[ModelColumns, list[str]]:
    """The columns as the first chunk shows them, and the names of those that are left out because they are empty.

    A column holds numbers if all cells are numbers that are not missing. If nearly all are (`MIN_SHARE_OF_KIND`), the
    first other cell is an error, unless it is to be coerced. Dates are an error too, unless they are to be labels.
    """
    kinds: dict[str, str] = {}
    empty: list[str] = []
    for name in names:
        column = cells.mask_missing_cells(chunk.batch.column(name), column_options.missing)
        if name in column_options.types:
            kinds[name] = _look_up_kind(column_options.types[name])
        elif column.null_count == len(column):
            empty.append(name)
        else:
            kinds[name] = _infer_kind(chunk, name, column, column_options.coerce, dates_as_labels)
    if not kinds:
        raise DataError(f"{format_path(chunk.file.path)}: every cell is empty; there is nothing to learn from")
    return ModelColumns(kinds, column_options.missing, column_options.types, column_options.coerce), empty


def declare_column_families(columns: ModelColumns, column_options: ColumnOptions) -> dict[str, str]:
    """The families of the columns that have no choice of family: those of labels or texts, and those declared."""
    fixed = {"label": "categorical", "text": "text"}
    chosen = {name: fixed[kind] for name, kind in columns.kinds.items() if kind in fixed}
    return chosen | {
        name: given
        for name, given in column_options.types.items()
        if name in columns.kinds and find_declared_family(given) is not None
    }


def find_binary_columns(chunk: RowChunk, columns: ModelColumns) -> set[str]:
    """The columns of numbers that hold only 0 and 1, as far as the first rows show."""
    names = [name for name, kind in columns.kinds.items() if kind == "number"]
    values = {name: pc.unique(chunk.batch.column(name)).drop_null().to_pylist() for name in names}
    return {name for name in names if {str(value) for value in values[name]} <= {"0", "1", "0.0", "1.0"}}


def _look_up_kind(given: str) -> str:
    family = find_declared_family(given)
    return KIND_BY_TYPE.get(given, "number") if family is None else family.column_kind


def find_declared_family(name: str) -> type[AnyFamily] | None:
    """The family that is declared by this name; None for types such as "numeric" that leave a choice of families."""
    from priory.families.registry import families_by_name

    return families_by_name().get(name)


def list_column_types() -> tuple[str, ...]:
    """What a column can be declared as: kinds that leave the family open, then the families."""
    from priory.families.registry import families_by_name

    return tuple(dict.fromkeys(["numeric", "label", "text", *families_by_name()]))


def _infer_kind(chunk: RowChunk, name: str, column: pa.Array, coerce: bool, dates_as_labels: bool) -> str:
    if not cells.is_text_column(column):
        return "number"
    numeric = cells.looks_numeric(column)
    n_valid = int(pc.sum(column.is_valid()).as_py())
    n_numeric = int(pc.sum(numeric).as_py() or 0)
    if n_numeric == n_valid:
        return "number"
    if n_numeric >= MIN_SHARE_OF_KIND * n_valid or (2 * n_numeric > n_valid and _are_near_numbers(column, numeric)):
        if not coerce:
            named = chunk._replace(batch=pa.RecordBatch.from_arrays([column], names=[name]))
            cells.read_number_column(named, name, frozenset())  # raises, naming the cell
        return "number"
    if not dates_as_labels:
        _check_no_dates(chunk, name, column, n_valid)
    return "text" if _is_prose(column, n_valid) else "label"


def _are_near_numbers(column: pa.Array, is_numeric: pa.BooleanArray) -> bool:
    """Whether all cells that are not numbers are marks of missing cells, or numbers in another notation."""
    odd = pc.unique(column.filter(pc.invert(is_numeric.fill_null(True)))).to_pylist()
    return all(cell.strip() in MISSING_MARKERS or NEAR_NUMBER_PATTERN.fullmatch(cell) for cell in odd)


def _check_no_dates(chunk: RowChunk, name: str, column: pa.Array, n_valid: int) -> None:
    """Raise an error that names the first date if nearly all cells are dates: no family explains them."""
    is_date = cells.looks_like_date(column).fill_null(False)
    if int(pc.sum(is_date).as_py() or 0) < MIN_SHARE_OF_KIND * n_valid:
        return
    row = int(pc.index(is_date, True).as_py())
    quoted = shlex.quote(name)
    raise chunk.make_cell_error(
        row,
        name,
        f"{cells.shorten_cell(column[row].as_py())} is a date, which no family explains",
        "give what matters of it as columns, such as the year, the month or the days since an event, "
        f"or use --ignore {quoted} or --type {quoted}=label",
    )


def _is_prose(column: pa.Array, n_valid: int) -> bool:
    """Whether the cells are texts: most differ, and they have three words or more on average."""
    values = pc.unique(column.drop_null())
    if 2 * len(values) <= n_valid:
        return False
    return sum(map(estimate_word_count, values.to_pylist())) >= MIN_WORDS_PER_TEXT * len(values)


class LabelReader:
    """Reads labels, which stay the text they are; ``names`` are the classes so far, in order of appearance."""

    def __init__(self, target: str, column_options: ColumnOptions) -> None:
        self.target, self.column_options = target, column_options
        self.class_codes: dict[str, int] = {}
        self.n_unlabelled, self.n_rows = 0, 0
        self._names = np.empty(0, dtype=object)

    @property
    def names(self) -> Array:
        if len(self._names) < len(self.class_codes):
            self._names = np.empty(len(self.class_codes), dtype=object)
            self._names[:] = list(self.class_codes)
        return self._names

    def read(self, chunk: RowChunk) -> tuple[Array, RowChunk]:
        """For each labelled row the index of its class in ``names``, and the chunk with only these rows."""
        column = chunk.batch.column(self.target)
        coded = (column if cells.is_text_column(column) else cells.cast_to_text(column)).dictionary_encode()
        found, missing = coded.dictionary.to_pylist(), {"", *self.column_options.missing}
        labels = [label for label in found if label.strip() not in missing]
        n_before, self.n_rows = len(self.class_codes), self.n_rows + len(column)
        for label in labels:
            self.class_codes.setdefault(label, len(self.class_codes))
        if n_before <= MAX_NUMERIC_LABELS and not self.column_options.labels_as_text:
            self._check_not_numeric(chunk)
        codes = np.array([self.class_codes.get(label, -1) for label in [*found, None]], dtype=np.int32)  # -1: no label
        group = codes[coded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)]
        labelled = group >= 0
        if not labelled.all():
            if not self.column_options.skip_unlabelled:
                remedy = "give it one, or use --skip-unlabelled"
                raise chunk.make_cell_error(int(np.argmin(labelled)), self.target, "has no label", remedy)
            self.n_unlabelled += int((~labelled).sum())
            chunk, group = chunk.keep_rows(labelled), group[labelled]
        return group, chunk

    @property
    def looks_numeric(self) -> bool:
        """Whether the labels look like a number to predict: more than 20 different values, all of them numbers."""
        return len(self.class_codes) > MAX_NUMERIC_LABELS and self.are_numbers

    @property
    def are_numbers(self) -> bool:
        """Whether every label is a number."""
        return all(cells.looks_numeric(pa.array(list(self.class_codes), pa.string())).to_pylist())

    def _check_not_numeric(self, chunk: RowChunk) -> None:
        if self.looks_numeric:
            raise DataError(
                f"{format_path(chunk.file.path)}: the target {self.target!r} looks like a number to predict: "
                f"{len(self.class_codes):,} different values in the first {self.n_rows:,} rows; "
                "bin it, or use --classes if each value is a class"
            )
