"""Predictions next to the rows they are for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from priory.bag_of_words.documents import PackedDocuments
from priory.core.typing import Array
from priory.models.ledger_formatting import DECIBANS_PER_NAT
from priory.models.table import Table
from priory.sources import FileRows, ReadOptions, RowChunk
from priory.sources.discovery import format_names
from priory.sources.prefetch import read_ahead
from priory.sources.writers import write_batches
from priory.workflows.callbacks import SILENT, Callbacks, format_count
from priory.workflows.model_files import find_needed_columns, get_model_columns, load_classifier, open_paths_for_model

if TYPE_CHECKING:
    from priory.workflows.model_files import ModelOrPath, PathLike, Paths, TableOrTextClassifier

MAX_CERTAINTY_DECIBANS = 9999.9  # JSON has no infinity
PREDICTION_COLUMNS = ("label", "probability", "certainty")


class Predictions:
    """Rows of files with three more columns: label, probability and certainty.

    The rows are read and predicted a batch at a time while one iterates over the Arrow batches, which is possible
    once. Where a file already has a column of one of these names, the new one is called ``predicted_label`` and so on.
    Certainty is the log-odds of the label against all other classes together, in decibans (10 * log10 of the odds).

    Attributes
    ----------
    n_unknown_labels : int
        The number of cells so far that hold a label the model has never seen.
    """

    def __init__(
        self, model: TableOrTextClassifier, rows: FileRows, threshold: float | None, callbacks: Callbacks
    ) -> None:
        self._model, self._rows, self._threshold, self._callbacks = model, rows, threshold, callbacks
        self._columns = get_model_columns(model)
        self.n_unknown_labels = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for chunk in read_ahead(self._rows.read_chunks(self._rows.names)):
            yield self._predict_chunk(chunk)
        if self.n_unknown_labels:
            self._callbacks.notify(
                f"{format_count(self.n_unknown_labels, 'cell')} with a label that the model has never seen; "
                "it says nothing about the class"
            )

    def to_table(self) -> pa.Table:
        """All rows as one Arrow table."""
        return pa.Table.from_batches(list(self))

    def write(self, path: str | None, file_format: str | None = None, *, safe: bool = True) -> None:
        """Write all rows to a file, in the format of its suffix, or to standard output where ``path`` is None.

        With ``safe`` a cell of a CSV that a spreadsheet would take for a formula gets an apostrophe in front.
        """
        write_batches(iter(self), path, file_format, safe)

    def _predict_chunk(self, chunk: RowChunk) -> pa.RecordBatch:
        rows = self._columns.read(chunk)
        self.n_unknown_labels += count_unknown_labels(self._model, rows)
        log_proba = self._model.predict_log_proba(rows)  # (rows, classes)
        best = log_proba.argmax(axis=1)
        probability = np.exp(log_proba.max(axis=1))
        labels = pa.array([str(label) for label in self._model.classes_[best]], pa.string())
        if self._threshold is not None:
            likely = pa.array(probability >= self._threshold)
            labels = pa.compute.if_else(likely, labels, pa.scalar(None, pa.string()))
        added = (labels, pa.array(probability.round(6)), pa.array(compute_certainty(log_proba, best).round(1)))
        batch = chunk.batch
        for name, column in zip(PREDICTION_COLUMNS, added, strict=True):
            batch = batch.append_column(find_free_name(name, chunk.file.names), column)
        return batch


def predict(
    model: ModelOrPath,
    paths: Paths,
    *,
    threshold: float | None = None,
    read: ReadOptions | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> Predictions:
    """Label the rows of files.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several
        Files, folders, patterns, or "-" for standard input. A model of texts also takes files that are texts, such as
        ``note.txt``, and folders of them: each is a row with the columns path and text.
    threshold : float, optional
        Leave the label empty where its probability is below this.
    read : ReadOptions, optional
    key : path, optional
        The model file must be signed with this key.
    callbacks : Callbacks

    Returns
    -------
    Predictions
        The rows with their labels, predicted while they are iterated over or written.
    """
    trained = load_classifier(model, key)
    columns = get_model_columns(trained)
    rows = open_paths_for_model(paths, read, columns, callbacks)
    find_needed_columns(rows, columns)
    extra = [name for name in rows.names if name not in {*columns.names, getattr(trained, "target_", "")}]
    if extra and not rows.is_documents:
        callbacks.notify(f"the model does not use the columns {format_names(extra)}")
    return Predictions(trained, rows, threshold, callbacks)


def count_unknown_labels(model: TableOrTextClassifier, rows: Table | PackedDocuments) -> int:
    """The number of cells that hold a label the model has never seen."""
    from priory.estimators.naive_bayes import NaiveBayes

    if not isinstance(model, NaiveBayes) or not isinstance(rows, Table):
        return 0
    count, columns = 0, dict(zip(rows.names, rows.columns, strict=True))
    for name, known in model.categories_.items():
        labels = columns[name].labels
        if labels is not None:
            codes, values = labels
            count += int((~np.isin(values, known))[codes[codes >= 0]].sum())
    return count


def find_free_name(name: str, used_names: tuple[str, ...]) -> str:
    while name in used_names:
        name = f"predicted_{name}"
    return name


def compute_certainty(log_proba: Array, best: Array) -> Array:
    """The log-odds of the best class against all others together, in decibans; always finite."""
    own = np.arange(len(best)), best
    others = log_proba.copy()
    others[own] = -np.inf
    with np.errstate(divide="ignore"):
        against = np.logaddexp.reduce(others, axis=1)
    decibans = np.nan_to_num((log_proba[own] - against) * DECIBANS_PER_NAT, posinf=MAX_CERTAINTY_DECIBANS)
    return np.clip(decibans, -MAX_CERTAINTY_DECIBANS, MAX_CERTAINTY_DECIBANS)
