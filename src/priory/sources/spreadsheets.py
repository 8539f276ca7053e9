"""Reader of Excel sheets (.xlsx), with openpyxl, an optional dependency."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import finalize

from priory.errors import DataError, MissingDependencyError, ModelTooLargeError
from priory.sources.byte_streams import MAX_UNPACK_RATIO, MIN_UNPACK_LIMIT, format_path
from priory.sources.database_files import choose_table
from priory.sources.record_files import RecordReader, format_value_as_cell

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

WORKBOOK_PART = "xl/workbook.xml"


def is_workbook(path: str) -> bool:
    """Whether a file is an Excel workbook, by its contents."""
    try:
        with zipfile.ZipFile(path) as archive:
            return WORKBOOK_PART in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


class WorkbookReader(RecordReader):
    """A sheet of a workbook: its first row has the names of the columns."""

    unit = "sheet"

    def _open_table(self, table: str | None) -> tuple[str, list[str]]:
        self.workbook = _open_workbook(self.path)
        finalize(self, self.workbook.close)
        sheet = choose_table(self.path, self.workbook.sheetnames, table, self.unit)
        header = next(self.workbook[sheet].iter_rows(values_only=True), ())
        names = [format_value_as_cell(cell) or "" for cell in header]
        while names and not names[-1].strip():
            names.pop()  # cells that were formatted, not filled
        if not names:
            raise DataError(f"{format_path(self.path)}: sheet {sheet!r} is empty; give one with a header and rows")
        return sheet, names

    def _read_records(self, column_names: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
        positions = [self.names.index(name) for name in column_names]
        rows = self.workbook[self.table].iter_rows(min_row=2, max_col=len(self.names), values_only=True)
        for row in rows:
            if any(cell is not None for cell in row):
                yield tuple(row[j] if j < len(row) else None for j in positions)

    def locate_cell(self, row: int, column: str) -> str:
        from openpyxl.utils import get_column_letter

        letter = get_column_letter(self.names.index(column) + 1)
        return f"{format_path(self.path)}: sheet {self.table!r}, cell {letter}{row + 2}"


def _open_workbook(path: str) -> Workbook:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingDependencyError(
            f"{format_path(path)}: is an Excel workbook, which needs openpyxl: pip install 'priory[excel]'.",
            name=error.name,
        ) from None
    with zipfile.ZipFile(path) as archive:
        packed = sum(part.compress_size for part in archive.infolist())
        unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > max(MIN_UNPACK_LIMIT, MAX_UNPACK_RATIO * packed):
        raise ModelTooLargeError(
            f"{format_path(path)}: decompresses to more than {MAX_UNPACK_RATIO} times its size; save the sheet as CSV"
        )
    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises many kinds of errors
        raise DataError(f"{format_path(path)}: is a damaged workbook ({type(error).__name__}); save it again") from None
