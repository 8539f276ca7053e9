"""Several labels for a row of a file, written in one cell with a separator: training, predictions and scores.

The model file holds a model whose classes are sets of labels, and the separator; see `MultiLabelClassifier`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

import priory
from priory.estimators.multi_label import PATH_SEPARATOR, MultiLabelClassifier, Threshold
from priory.sources import FileRows, RowChunk
from priory.sources.byte_streams import peek_first
from priory.sources.cell_parsing import cast_to_text, make_column
from priory.sources.column_inference import infer_columns
from priory.sources.writers import find_free_name, find_output_format, write_batches
from priory.workflows import model_files
from priory.workflows.model_files import FileOptions, FileTask

if TYPE_CHECKING:
    from priory.sources.cell_parsing import RowPlaces
    from priory.sources.column_types import InputRows, ModelColumns
    from priory.workflows.model_files import Paths, TableOrTextClassifier

LABELS = "labels"


def view_labels(model: TableOrTextClassifier, threshold: Threshold = 0.5) -> MultiLabelClassifier:
    """The model as a classifier of several labels; labels are paths if the parent of each is a label too."""
    view = MultiLabelClassifier.of(model, threshold=threshold, separator=model.separator_)
    labels = set(view.classes_.tolist())
    parents = {label.rpartition(PATH_SEPARATOR)[0] for label in labels} - {""}
    return view.set_params(hierarchy=bool(parents) and parents <= labels)


def train_labels(
    paths: Paths | FileTask, separator: str, hierarchy: bool = False, **given: Unpack[FileOptions]
) -> MultiLabelClassifier:
    """Learn files whose target holds any number of labels for each row; the rows have to fit into memory."""
    task = model_files.make_task(paths, given)
    rows = task.open()
    target, names = task.columns.find_target(rows), task.columns.find_features(rows)
    first, chunks = peek_first(rows.read_chunks((target, *names)))
    columns = infer_columns(first, names, task.columns).columns
    data, labels = _read_rows(chunks, columns, target)
    estimator = None if columns.is_one_text else priory.NaiveBayes()
    model = MultiLabelClassifier(estimator, separator=separator, hierarchy=hierarchy).fit(data, labels)
    model_files.set_training_columns(model.estimator_, columns, target)
    model.estimator_.separator_ = separator
    return model


def read_label_sets(
    trained: TableOrTextClassifier, task: FileTask, places: list[RowPlaces] | None = None
) -> tuple[InputRows, list[str]]:
    """All rows of files for a model that was trained, and their labels as written; adds their ``places``."""
    task = task.adapt_to(trained)
    rows = task.open()
    columns, target = model_files.get_model_columns(trained), task.columns.find_target(rows)
    chunks = list(rows.read_chunks(model_files.find_needed_columns(rows, columns, target)))
    if places is not None:
        places += [chunk.places for chunk in chunks]
    return _read_rows(chunks, columns, target)


def _read_rows(chunks: Iterable[RowChunk], columns: ModelColumns, target: str) -> tuple[InputRows, list[str]]:
    """All rows as a model takes them, and their labels as written; an empty cell is no label."""
    parts, labels = [], []
    for chunk in chunks:
        parts.append(columns.read_input_rows(chunk))
        labels += [text or "" for text in cast_to_text(chunk.batch.column(target)).to_pylist()]
    return model_files.concatenate_rows(parts), labels


@dataclass
class LabelPredictions:
    """Rows of files with their labels in one column and, on request, the probability of every label."""

    view: MultiLabelClassifier
    rows: FileRows
    columns: ModelColumns
    probabilities: bool
    n_rows: int = 0
    n_labels: int = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        names, thresholds = self.view.classes_.tolist(), self.view.thresholds_
        for chunk in self.rows.read_chunks(self.rows.names):
            p, batch = self.view.predict_proba(self.columns.read_input_rows(chunk)), chunk.batch
            given = p >= thresholds
            cells = [self.view.separator.join(n for n, g in zip(names, row, strict=True) if g) for row in given]
            batch = batch.append_column(find_free_name(LABELS, chunk.file.names), pa.array(cells, pa.string()))
            for name, column in zip(names, p.T, strict=True) if self.probabilities else ():
                batch = batch.append_column(f"probability_{name}", make_column(column.round(6)))
            self.n_rows, self.n_labels = self.n_rows + len(p), self.n_labels + int(given.sum())
            yield batch

    def write(self, path: str | None, file_format: str | None = None, *, safe: bool = True) -> None:
        """Write all rows to a file, or to standard output where ``path`` is None."""
        write_batches(iter(self), path, find_output_format(path, file_format), safe)

    def describe(self) -> list[str]:
        """The predictions in one line."""
        rows = model_files.format_count(self.n_rows, "row")
        return [f"{rows}: {self.n_labels / max(self.n_rows, 1):.2f} labels for a row, on average"]
