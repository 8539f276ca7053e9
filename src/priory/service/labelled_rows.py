"""Batches of rows: texts, or cells by column name; their JSON encoding, and conversion for an estimator."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa

from priory.errors import DataError, suggest_name
from priory.sources.cell_parsing import parse_number

if TYPE_CHECKING:
    from priory.workflows.model_files import TableOrTextClassifier


Cell = str | int | float | bool | None
Row = dict[str, Cell]
RowLabel = str | int | bool | None  # None: a text without label, where the model takes them
ModelKind = Literal["text", "table"]

_sorted_encoder = msgspec.json.Encoder(order="deterministic")  # equal rows have equal bytes


@dataclass(frozen=True)
class RowBatch:
    """Texts or rows of a table, with optional labels."""

    kind: ModelKind
    rows: tuple[str | Row, ...]
    labels: tuple[RowLabel, ...] | None = None

    def __post_init__(self) -> None:
        if self.labels is not None and len(self.labels) != len(self.rows):
            raise DataError(f"there are {len(self.rows)} rows and {len(self.labels)} labels; give one for each row")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def targets(self) -> list[Any]:
        """The labels as estimators take them."""
        return list(self.labels or ())

    def keep(self, kept: Iterable[bool]) -> RowBatch:
        """Return the rows for which ``kept`` is true."""
        flags = list(kept)
        labels = None if self.labels is None else tuple(compress(self.labels, flags))
        return RowBatch(self.kind, tuple(compress(self.rows, flags)), labels)

    def encode(self) -> bytes:
        """Encode the rows as JSON."""
        return msgspec.json.encode([self.kind, self.rows, self.labels])

    def digest_rows(self) -> list[bytes]:
        """Return a hash of each row and its label, to find the row again; it is not secret, as rows can be guessed."""
        labels = self.labels or [None] * len(self)
        return [
            hashlib.blake2b(_sorted_encoder.encode([_normalise_row(row), label]), digest_size=16).digest()
            for row, label in zip(self.rows, labels, strict=True)
        ]


def _normalise_row(row: str | Row) -> str | Row:
    """Return a canonical form of equivalent rows: without missing cells, and with 4 for 4.0."""
    if isinstance(row, str):
        return row
    return {
        name: int(cell) if isinstance(cell, float) and cell.is_integer() else cell
        for name, cell in row.items()
        if cell is not None
    }


def fold_text(text: str) -> str:
    r"""Normalise case, Unicode form and blanks of a text.

    >>> fold_text("JOSE\u0301  \uff2e\uff4f\n1") == fold_text("jos\u00e9 no 1")
    True
    """
    # case folding can undo the normal form, so normalise again
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(form.split())


def contains_phrase(row: str | Row, label: RowLabel | None, phrase: str) -> bool:
    """Whether a phrase occurs in the text, in a cell or in the label."""
    cells = [row] if isinstance(row, str) else row.values()
    folded = fold_text(phrase)
    return any(folded in fold_text(str(cell)) for cell in (*cells, label) if cell is not None)


def decode_row_batch(encoded: bytes) -> RowBatch:
    """Decode the result of `RowBatch.encode`.

    >>> rows = RowBatch("table", ({"age": 4, "town": None},), ("yes",))
    >>> decode_row_batch(rows.encode()) == rows
    True
    """
    kind, rows, labels = msgspec.json.decode(encoded)
    return RowBatch(kind, tuple(rows), None if labels is None else tuple(labels))


def join_row_batches(batches: Sequence[RowBatch]) -> RowBatch:
    """Concatenate batches."""
    if len(batches) == 1:
        return batches[0]
    rows = tuple(row for batch in batches for row in batch.rows)
    if batches[0].labels is None:
        return RowBatch(batches[0].kind, rows)
    return RowBatch(batches[0].kind, rows, tuple(label for batch in batches for label in batch.labels or ()))


def convert_to_input(batch: RowBatch, model: TableOrTextClassifier) -> list[str] | pa.Table:
    """Convert rows to the input of an estimator; errors name the row and the column."""
    if batch.kind == "text":
        return list(batch.rows)
    known: dict[str, str] = getattr(model, "column_kinds_", {}) if hasattr(model, "statistics_") else {}
    # the columns of the model or, for a new model, of these rows
    names = list(known) or list(dict.fromkeys(name for row in batch.rows for name in row))
    if known:
        _check_column_names(batch.rows, names)  # type: ignore[arg-type]
    return pa.table({name: _read_column(batch.rows, name, known.get(name)) for name in names})  # type: ignore[arg-type]


def _check_column_names(rows: Sequence[Row], names: Sequence[str]) -> None:
    columns = set(names)
    for number, row in enumerate(rows):
        for name in row:
            if name not in columns:
                hint = suggest_name(name, names)
                raise DataError(f"rows[{number}]: the model has no column {name!r}{hint}; leave it out")


def _read_column(rows: Sequence[Row], name: str, kind: str | None) -> pa.Array:
    """Return one column: numbers if the column is known as numeric or, for a new model, if every cell is a number."""
    cells = [row.get(name) for row in rows]
    if kind in (None, "empty"):
        types = {type(cell) for cell in cells if cell is not None}
        kind = "number" if types and types <= {int, float} else "label"
    if kind == "number":
        return pa.array([_read_number(cell, number, name) for number, cell in enumerate(cells)], pa.float64())
    return pa.array([None if cell is None else _format_cell(cell) for cell in cells], pa.string())


def _read_number(cell: Cell, number: int, name: str) -> float | None:
    if cell is None or cell == "":
        return None
    found = parse_number(cell) if isinstance(cell, str) else float(cell)
    if found is None:
        raise DataError(f"rows[{number}]: column {name!r} holds numbers, not {str(cell)[:40]!r}")
    return found


def _format_cell(cell: str | int | float | bool) -> str:
    return cell if isinstance(cell, str) else msgspec.json.encode(cell).decode()
