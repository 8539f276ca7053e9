"""Counterfactuals: changes of a single cell that change the prediction for a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.core.typing import Array
from priory.errors import DataError
from priory.sources.byte_streams import peek_first
from priory.sources.column_types import ModelColumns
from priory.workflows.explanations import read_file_rows
from priory.workflows.model_files import (
    FileOptions,
    FileTask,
    find_needed_columns,
    get_model_columns,
    load_classifier,
    make_task,
)

if TYPE_CHECKING:
    from priory.workflows.model_files import ModelOrPath, PathLike, TableOrTextClassifier

N_NUMBERS_TRIED = 21
MAX_VALUES_TRIED = 200


class CellChange(NamedTuple):
    """A cell, its value, the changed value, and the prediction after the change."""

    column: str
    value: str | float | None
    changed: str | float
    label: str
    probability: float


class Counterfactual(NamedTuple):
    """The prediction for a row, and the changes of one cell that change it, the most probable first."""

    row: int
    label: str
    probability: float
    changes: list[CellChange]

    def describe(self) -> str:
        """Format the changes as text."""
        head = f"row {self.row}: {self.label} ({self.probability:.1%})"
        if not self.changes:
            return f"{head}; no single cell would change the answer"
        lines = [
            f"  {one.column}: {_format_cell(one.changed)} instead of {_format_cell(one.value)}"
            f" would make it {one.label} ({one.probability:.1%})"
            for one in self.changes
        ]
        return "\n".join([f"{head} would be answered otherwise if one cell were different:", *lines])


def find_counterfactuals(
    model: ModelOrPath, path: PathLike | FileTask, row_numbers: Sequence[int] = (1,), **given: Unpack[FileOptions]
) -> list[Counterfactual]:
    """Find changes of a single cell that change the prediction for rows of a file.

    Labels are replaced by every label that the model has learned, numbers by quantiles of the column in the first block
    of the file; the nearest number that changes the prediction is returned. Texts are not changed.

    Parameters
    ----------
    model : a model file, or a model, of a table
    path : the file, or a FileTask
    row_numbers : sequence of int
        Which rows, counted from 1.
    **given
        How the file is read, as for `FileTask`.
    """
    task = make_task(path, given)
    trained = load_classifier(model, task.key)
    columns = get_model_columns(trained)
    if columns.is_one_text:
        raise DataError("the model reads one text; cells can be changed in tables only")
    values = _list_values_to_try(trained, task, columns)
    table = read_file_rows(task, row_numbers, columns)
    assert isinstance(table, pa.Table)
    return [_change_cells(trained, table.slice(place, 1), row, values) for place, row in enumerate(row_numbers)]


def _list_values_to_try(model: TableOrTextClassifier, task: FileTask, columns: ModelColumns) -> dict[str, pa.Array]:
    rows = task.open_for(columns)
    first, _ = peek_first(rows.read_chunks(find_needed_columns(rows, columns)))
    table, categories = columns.read_arrow_table(first), getattr(model, "categories_", {})
    values: dict[str, pa.Array] = {}
    for name, kind in columns.kinds.items():
        if kind == "number":
            steps = np.linspace(0, 1, N_NUMBERS_TRIED)
            values[name] = pc.unique(pc.quantile(table[name], steps.tolist(), interpolation="nearest").drop_null())
        elif kind == "label":
            values[name] = pa.array([str(v) for v in categories.get(name, ())][:MAX_VALUES_TRIED], pa.string())
    return values


def _change_cells(
    model: TableOrTextClassifier, row: pa.Table, number: int, values: dict[str, pa.Array]
) -> Counterfactual:
    own = model.predict_log_proba(row)[0]
    answer = int(own.argmax())
    found = []
    for name, tried in values.items():
        if len(tried):
            best = _find_best_change(model, row, name, tried, answer)
            found += [best] if best is not None else []
    found.sort(key=lambda change: -change.probability)
    return Counterfactual(number, str(model.classes_[answer]), float(np.exp(own[answer])), found)


def _find_best_change(
    model: TableOrTextClassifier, row: pa.Table, name: str, tried: pa.Array, answer: int
) -> CellChange | None:
    """The best change of one cell: the nearest number, or the label that makes another class most probable."""
    # one variant of the row for each tried value; p has shape (variants, classes)
    position = row.column_names.index(name)
    variants = row.take(pa.array(np.zeros(len(tried), dtype=np.int64))).set_column(position, name, tried)
    p = np.exp(model.predict_log_proba(variants))
    changed = np.flatnonzero(p.argmax(axis=1) != answer)
    if not len(changed):
        return None
    value = row[name][0].as_py()
    best = int(changed[_rank_changes(p[changed], tried.take(pa.array(changed)), value).argmin()])
    label = int(p[best].argmax())
    return CellChange(name, value, tried[best].as_py(), str(model.classes_[label]), float(p[best, label]))


def _rank_changes(p: Array, tried: pa.Array, value: object) -> Array:
    """(changes,): distance of a number from its present value, or minus the probability of the new class."""
    if pa.types.is_floating(tried.type) and isinstance(value, float):
        return np.abs(np.asarray(tried) - value)
    return -p.max(axis=1)


def _format_cell(value: str | float | None) -> str:
    if value is None:
        return "nothing"
    return f"{value:g}" if isinstance(value, float) else repr(value)
