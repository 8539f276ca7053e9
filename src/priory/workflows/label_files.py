"""Several labels for a row of a file, written in one cell with a separator: training, predictions and scores.

The model file holds a model whose classes are sets of labels, and the separator; see `priory.MultiLabelClassifier`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

import priory
from priory.errors import DataError
from priory.sources import FileRows, RowChunk
from priory.sources.byte_streams import peek_first
from priory.sources.cell_parsing import cast_to_text, make_column
from priory.sources.column_inference import infer_columns
from priory.sources.writers import find_free_name, find_output_format, write_batches
from priory.workflows import model_files
from priory.workflows.model_files import FileOptions, FileTask

if TYPE_CHECKING:
    from priory.estimators.multi_label import MultiLabelClassifier
    from priory.evaluation.label_scores import LabelScores
    from priory.sources.column_types import InputRows, ModelColumns
    from priory.workflows.model_files import ModelOrPath, Paths, TableOrTextClassifier

LABELS = "labels"


def view_labels(model: TableOrTextClassifier) -> MultiLabelClassifier:
    """The model as a classifier of several labels; raises if it was not trained as one."""
    separator = getattr(model, "separator_", "")
    if not separator:
        raise DataError("the model has one class for each row; train it with --multilabel ';' for several labels")
    return priory.MultiLabelClassifier.of(model, separator=separator)


def train_labels(paths: Paths | FileTask, separator: str, **given: Unpack[FileOptions]) -> MultiLabelClassifier:
    """Learn files whose target holds any number of labels for each row; the rows have to fit into memory."""
    task = model_files.make_task(paths, given)
    rows = task.open()
    target, names = task.columns.find_target(rows), task.columns.find_features(rows)
    first, chunks = peek_first(rows.read_chunks((target, *names)))
    columns = infer_columns(first, names, task.columns).columns
    data, labels = _read_rows(chunks, columns, target)
    model = priory.MultiLabelClassifier(
        priory.TextClassifier() if columns.is_one_text else priory.NaiveBayes(), separator=separator
    ).fit(data, labels)
    model_files.set_training_columns(model.estimator_, columns, target)
    model.estimator_.separator_ = separator
    return model


def score_labels(model: ModelOrPath, paths: Paths | FileTask, **given: Unpack[FileOptions]) -> LabelScores:
    """Score a model of several labels on new rows of files."""
    task = model_files.make_task(paths, given)
    trained = model_files.load_classifier(model, task.key)
    view, columns, task = view_labels(trained), model_files.get_model_columns(trained), task.adapt_to(trained)
    rows = task.open()
    target = task.columns.find_target(rows)
    return view.score_labels(*_read_rows(rows.read_chunks(rows.names), columns, target))


def _read_rows(chunks: Iterable[RowChunk], columns: ModelColumns, target: str) -> tuple[InputRows, list[str]]:
    """All rows as a model takes them, and their labels as written; an empty cell is no label."""
    parts, labels = [], []
    for chunk in chunks:
        parts.append(columns.read_input_rows(chunk))
        labels += [text or "" for text in cast_to_text(chunk.batch.column(target)).to_pylist()]
    texts = [text for part in parts if isinstance(part, list) for text in part]
    return texts if columns.is_one_text else pa.concat_tables(parts), labels


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
