"""Read the target of files: labels as classes, or numbers to predict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import arrow_functions as arrow
from priory.sources import cell_parsing as cells
from priory.sources.byte_streams import format_path
from priory.sources.chunk import RowChunk
from priory.sources.column_types import ColumnOptions

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

    @property
    def names(self) -> Array:
        if len(self._names) < len(self.class_codes):
            self._names = np.empty(len(self.class_codes), dtype=object)
            self._names[:] = list(self.class_codes)
        return self._names

    def read(self, chunk: RowChunk) -> tuple[Array, RowChunk]:
        """For each labelled row the index of its class in ``names``, and the chunk with only these rows."""
        column = chunk.batch.column(self.target)
        place, found = arrow.number_texts(cells.cast_to_text(column))
        missing = {"", *self.column_options.missing}
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


class TargetReader:
    """Reads the numbers to predict."""

    def __init__(self, target: str, column_options: ColumnOptions) -> None:
        self.target, self.column_options, self.n_unlabelled = target, column_options, 0

    def read(self, chunk: RowChunk) -> tuple[Array, RowChunk]:
        """The target of each row that has one, and the chunk with only these rows."""
        values = cells.read_number_column(chunk, self.target, self.column_options.missing)
        is_missing = np.isnan(values)
        if is_missing.any():
            if not self.column_options.skip_unlabelled:
                remedy = "give it one, or use --skip-unlabelled"
                raise chunk.make_cell_error(int(is_missing.argmax()), self.target, "has no number to predict", remedy)
            self.n_unlabelled += int(is_missing.sum())
            values, chunk = values[~is_missing], chunk.keep_rows(~is_missing)
        return values, chunk
