"""Several labels for a row of a file, written in one cell with a separator: training, predictions and scores.

The model file holds a model whose classes are sets of labels, and the separator; see `MultiLabelClassifier`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

import priory
from priory.estimators.multi_label import PATH_SEPARATOR, MultiLabelClassifier, Threshold
from priory.sources import RowChunk
from priory.sources.byte_streams import peek_first
from priory.sources.cell_parsing import cast_to_text
from priory.sources.column_inference import infer_columns
from priory.workflows import model_files
from priory.workflows.model_files import FileOptions, FileTask

if TYPE_CHECKING:
    from priory.sources.cell_parsing import RowPlaces
    from priory.sources.column_types import InputRows, ModelColumns
    from priory.workflows.model_files import Paths, TableOrTextClassifier


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
