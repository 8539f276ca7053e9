"""Predictions with intervals, and scores, of regression models on rows of files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import FileRows
from priory.sources.byte_streams import read_ahead
from priory.sources.writers import TEXT_FORMATS, find_free_name, find_output_format, replace_text_columns, write_batches
from priory.workflows.model_files import (
    FileTask,
    format_count,
    get_model_columns,
    join_labelled_rows,
    read_labelled_rows,
)

if TYPE_CHECKING:
    from priory.evaluation.regression_scores import RegressionScores
    from priory.regression.linear_regression import BayesianLinearRegression


INTERVAL_LEVEL = 0.9  # the probability of the bounds that are shown
PREDICTION, LOW, HIGH = "prediction", "low", "high"


class NumberPredictions:
    """Rows of files with three added columns: prediction, low and high.

    The rows are read and predicted a batch at a time while one iterates over the Arrow batches, which is possible
    once. The number lies between low and high with a probability of 90 %.

    Attributes
    ----------
    n_rows : int
        The number of rows so far.
    """

    def __init__(self, model: BayesianLinearRegression, rows: FileRows) -> None:
        self._model, self._rows, self._columns = model, rows, get_model_columns(model)
        self.n_rows, self._total = 0, 0.0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._predict_chunks(numbers=True)

    def to_table(self) -> pa.Table:
        """All rows as one Arrow table."""
        return pa.Table.from_batches(list(self))

    def write(self, path: str | None, file_format: str | None = None, *, safe: bool = True) -> None:
        """Write all rows to a file, in the format of its suffix, or to standard output where ``path`` is None."""
        file_format = find_output_format(path, file_format)
        write_batches(self._predict_chunks(numbers=file_format not in TEXT_FORMATS), path, file_format, safe)

    def describe(self) -> list[str]:
        """The predictions in one line."""
        mean = f": mean prediction {self._total / self.n_rows:.6g}" if self.n_rows else ""
        return [f"{format_count(self.n_rows, 'row')}{mean}"]

    def _predict_chunks(self, numbers: bool) -> Iterator[pa.RecordBatch]:
        for chunk in read_ahead(self._rows.read_chunks(self._rows.names)):
            table, batch = self._columns.read_arrow_table(chunk), chunk.batch
            student = self._model.predictive(table)
            low, high = student.interval(INTERVAL_LEVEL)
            if numbers:
                batch = replace_text_columns(batch, {n: table[n].combine_chunks() for n in table.column_names})
            for name, values in ((PREDICTION, student.location), (LOW, low), (HIGH, high)):
                batch = batch.append_column(
                    find_free_name(name, chunk.file.names), pa.array(round_significantly(values))
                )
            self.n_rows, self._total = self.n_rows + batch.num_rows, self._total + float(student.location.sum())
            yield batch


def round_significantly(values: Array, digits: int = 6) -> Array:
    """Round numbers to some significant digits."""
    with np.errstate(divide="ignore"):
        magnitude = np.floor(np.log10(np.abs(np.where(values == 0, 1.0, values))))
    scale = 10.0 ** (digits - 1 - magnitude)
    return np.where(np.isfinite(scale * values), np.round(values * scale) / scale, values)


def evaluate_regression(
    model: BayesianLinearRegression, rows: FileRows, task: FileTask, *, learned: bool = False
) -> RegressionScores:
    """Score a regression on rows of files; each of the ``learned`` rows is predicted by the model without it."""
    parts = list(read_labelled_rows(model, rows, task))
    if not parts:
        raise DataError("no row has a number to compare with; give rows with the target")
    table, targets = join_labelled_rows(parts)
    return score_regression(model, table, targets, learned)


def score_regression(
    model: BayesianLinearRegression, table: pa.Table, targets: Array, learned: bool
) -> RegressionScores:
    """Score a table; learned rows are left out one by one, in closed form."""
    from priory.evaluation.regression_scores import RegressionScores

    student = model.leave_one_out(table, targets) if learned else model.predictive(table)
    low, high = student.interval(INTERVAL_LEVEL)
    return RegressionScores(targets, student.location, low, high, INTERVAL_LEVEL)
