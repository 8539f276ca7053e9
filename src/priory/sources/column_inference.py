"""Infer the kinds of columns from the first rows of a file, before anything is learned."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.errors import DataError
from priory.sources import cell_parsing as cells
from priory.sources import column_types
from priory.sources.byte_streams import format_path
from priory.sources.cell_parsing import RowChunk, choose_date_parts, find_declared_zone
from priory.sources.column_types import ColumnOptions, ModelColumns
from priory.tables import dates
from priory.tables.number_formats import find_common_format, find_number_formats
from priory.text.tokenizer import estimate_word_count

NEAR_NUMBER_PATTERN = re.compile(r"\s*[+-]?(\d+,\d+|0[xX][0-9a-fA-F]+|\d+)\s*")  # digits of every script
MIN_WORDS_PER_TEXT = 3  # on average, in a column of texts
MIN_SHARE_OF_KIND = 0.9  # of the cells of the first block: with fewer exceptions a column holds numbers, or dates


@dataclass(frozen=True)
class InferredColumns:
    """The columns of a model, and those that are left out: empty ones, and identifiers with the reason.

    ``dates`` has the parts that are learned of each column of dates, ``columns.formats`` the columns whose numbers or
    dates are not written in the usual notation, and ``codes`` the columns of digits with leading zeros.
    """

    columns: ModelColumns
    empty: list[str] = field(default_factory=list)
    identifiers: dict[str, str] = field(default_factory=dict)
    dates: dict[str, list[str]] = field(default_factory=dict)
    codes: list[str] = field(default_factory=list)


def infer_columns(
    chunk: RowChunk, names: tuple[str, ...], column_options: ColumnOptions, for_audit: bool = False
) -> InferredColumns:
    """Infer the columns from the first chunk.

    A column holds numbers if all cells are numbers or missing. If nearly all are (`MIN_SHARE_OF_KIND`), the first other
    cell is an error, unless it is coerced. Whole numbers are labels if some begin with a zero, such as 00123. A column
    of dates is split into the parts that differ between rows. An audit treats dates as labels, and keeps identifiers.
    """
    kinds: dict[str, str] = {}
    empty: list[str] = []
    codes: list[str] = []
    parts: dict[str, list[str]] = {}
    zones: dict[str, str] = {}
    formats: dict[str, str] = {}
    for name in names:
        column = cells.mask_missing_cells(chunk.batch.column(name), column_options.missing)
        declared = column_options.types.get(name)
        if declared is not None:
            kinds[name] = column_types.look_up_kind(declared)
        elif column.null_count == len(column):
            empty.append(name)
        elif cells.is_text_column(column) and _has_leading_zeros(column):
            kinds[name] = "label"
            codes.append(name)
        else:
            kinds[name] = _infer_kind(chunk, name, column, column_options, for_audit)
        form = _find_format(chunk, name, column, kinds.get(name), column_options)
        if form is not None:
            formats[name] = form
        if kinds.get(name) == "date":
            del kinds[name]
            parts[name] = choose_date_parts(column, form)
            zones[name] = find_declared_zone(chunk, name) or ""
            kinds |= {dates.name_date_part(name, part): dates.KIND_BY_DATE_PART[part] for part in parts[name]}
    if not kinds:
        raise DataError(f"{format_path(chunk.file.path)}: every cell is empty; there is nothing to learn from")
    identifiers = (
        {} if for_audit or column_options.keep_identifiers else _find_identifiers(chunk, kinds, column_options, formats)
    )
    if len(identifiers) == len(kinds):
        identifiers = {}  # without them nothing would be left to learn
    kept = {name: kind for name, kind in kinds.items() if name not in identifiers}
    formats = {name: form for name, form in formats.items() if name in parts or name in kept}
    columns = ModelColumns(
        kept, column_options.missing, column_options.types, column_options.coerce, zones=zones, formats=formats
    )
    return InferredColumns(columns, empty, identifiers, parts, [name for name in codes if name in kept])


def looks_like_data(chunk: RowChunk, names: tuple[str, ...]) -> bool:
    """Whether a header looks like a row: each name is a number or a date, as the cells below it, or one of them."""
    return all(_is_like_cells(name, chunk.batch.column(name)) for name in names)


def _is_like_cells(name: str, column: pa.Array) -> bool:
    if not cells.is_text_column(column):
        return False
    values = pc.unique(column.drop_null()).to_pylist()
    if find_number_formats([name]):
        return bool(find_number_formats([name, *values]))
    is_date = pc.all(cells.looks_like_date(pa.array([name, *values], pa.string())))
    return name in values or bool(is_date.as_py())


def _find_identifiers(
    chunk: RowChunk, kinds: dict[str, str], column_options: ColumnOptions, formats: dict[str, str]
) -> dict[str, str]:
    """The columns that identify rows instead of describing them, judged by the first rows, with the reasons."""
    suspects = {
        name: kind
        for name, kind in kinds.items()
        if kind != "text"
        and name in chunk.batch.schema.names
        and name not in column_options.types
        and _is_nearly_unique(chunk.batch.column(name))
    }
    if not suspects:
        return {}
    from priory.leakage.audit_tables import AuditColumn
    from priory.leakage.finders.identifiers import explain_identifier

    columns = ModelColumns(suspects, column_options.missing, coerce=True, formats=formats).read_columns(chunk)
    reasons = {
        name: explain_identifier(AuditColumn(name, column.numbers, column.labels), chunk.batch.num_rows)
        for name, column in columns.items()
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _is_nearly_unique(column: pa.Array) -> bool:
    n_valid = len(column) - column.null_count
    return len(pc.unique(column.drop_null())) >= MIN_SHARE_OF_KIND * n_valid


def _infer_kind(chunk: RowChunk, name: str, column: pa.Array, options: ColumnOptions, for_audit: bool) -> str:
    if not cells.is_text_column(column) or column_types.list_number_formats(column, options):
        return "number"
    numeric = cells.looks_numeric(column)
    n_valid = int(pc.sum(column.is_valid()).as_py())
    n_numeric = int(pc.sum(numeric).as_py() or 0)
    if n_numeric == n_valid:
        return "number"
    if n_numeric >= MIN_SHARE_OF_KIND * n_valid or (2 * n_numeric > n_valid and _are_near_numbers(column, numeric)):
        if not options.coerce:
            named = chunk._replace(batch=pa.RecordBatch.from_arrays([column], names=[name]))
            cells.read_number_column(named, name, frozenset())  # raises, naming the cell
        return "number"
    is_date = cells.looks_like_date(column)
    if not for_audit and int(pc.sum(is_date).as_py() or 0) >= MIN_SHARE_OF_KIND * n_valid:
        return "date"
    return "text" if _is_prose(column, n_valid) else "label"


def _has_leading_zeros(column: pa.Array) -> bool:
    """Whether a column of whole numbers has some that begin with a zero, as postcodes and article numbers do."""
    cells_of_code = pc.unique(cells.trim(column).drop_null())
    padded = pc.any(cells.match_pattern(cells_of_code, r"^0\d+$")).as_py()
    return bool(padded and pc.all(cells.match_pattern(cells_of_code, r"^(\d+|\D*)$")).as_py())


def _are_near_numbers(column: pa.Array, is_numeric: pa.BooleanArray) -> bool:
    """Whether all other cells are few words, markers of missing cells, or numbers in another notation."""
    if find_common_format(pc.unique(column.drop_null()).to_pylist()) is not None:
        return True
    odd = pc.unique(column.filter(pc.invert(is_numeric.fill_null(True)))).to_pylist()
    return all(cell.strip() in column_types.MISSING_MARKERS or NEAR_NUMBER_PATTERN.fullmatch(cell) for cell in odd)


def _find_format(chunk: RowChunk, name: str, column: pa.Array, kind: str | None, options: ColumnOptions) -> str | None:
    """The notation of a column of numbers or dates, None for the usual one; an error if there are two."""
    if kind == "number":
        return column_types.choose_number_format(chunk, name, options)
    if kind != "date":
        return None
    is_date = cells.looks_like_date(column).fill_null(False)
    formats = dates.find_date_formats(cells.blank(column, pc.invert(is_date)))
    if options.day_first is not None and None not in formats:
        return dates.DAY_FIRST if options.day_first else dates.MONTH_FIRST
    if not formats:  # the first cell that is not written as most of them is an error when it is read
        candidates = (None, dates.DAY_FIRST, dates.MONTH_FIRST)
        return max(candidates, key=lambda form: np.isfinite(dates.parse_dates(column, form)[0]).sum())
    if len(formats) < 2:
        return formats[0]
    one, other = (dates.parse_dates(column, form)[0] for form in formats[:2])
    raise column_types.make_ambiguity_error(chunk, name, "date", one, other, "--day-first or --month-first")


def _is_prose(column: pa.Array, n_valid: int) -> bool:
    """Whether the cells are texts: most differ, and they have three words or more on average."""
    values = pc.unique(column.drop_null())
    if 2 * len(values) <= n_valid:
        return False
    return sum(map(estimate_word_count, values.to_pylist())) >= MIN_WORDS_PER_TEXT * len(values)
