"""Keep a share of the rows of files: those that a model finds most probable of a class, or most like a collection.

How much a text is like a wanted collection is the log odds log p(text | wanted) - log p(text | rest) of naive Bayes
with two classes, over hashed words and pairs of words. Both are records, so either can learn and forget texts.

References
----------
Xie, S. M., Santurkar, S., Ma, T. and Liang, P. (2023). Data selection for language models via importance resampling.
NeurIPS 36.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Unpack

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

import priory
from priory.errors import DataError
from priory.model.ledger_output import DECIBANS_PER_NAT
from priory.sources import FileRows, RowChunk
from priory.sources.byte_streams import read_ahead
from priory.sources.cell_parsing import make_column
from priory.sources.column_types import ModelColumns
from priory.sources.discovery import format_names
from priory.sources.document_files import LABEL_COLUMN, TEXT_COLUMN
from priory.sources.writers import append_columns
from priory.tables.table import Table
from priory.text.documents import PackedDocuments
from priory.workflows import model_files
from priory.workflows.model_files import FileOptions, FileTask
from priory.workflows.prediction import PredictedRows, compute_certainty, list_class_names, open_rows

if TYPE_CHECKING:
    from priory import TextClassifier
    from priory.workflows.model_files import ModelOrPath, Paths, TableOrTextClassifier

WANTED_LABEL, REST_LABEL = "wanted", "rest"
CONTRAST_BUCKETS = 1 << 18  # of words and pairs of words
EVIDENCE_SHOWN = 5
BYTES_OF_A_SCORE = 1000  # the length of text that a score is about
BYTES_OF_A_KEY, KEYS_PER_BLOCK, RADIX_BITS = 8, 1 << 17, 16


@dataclass(frozen=True)
class SelectionOptions:
    """Which rows are kept.

    Parameters
    ----------
    share : float
        The share of the rows to keep, from 0 to 1; a tenth by default.
    number : int, optional
        The number of rows to keep, in place of a share.
    label : str, optional
        The class whose rows are wanted; by default "wanted", the class of a model made from wanted texts.
    seed : int, optional
        Draw rows with probabilities in proportion to their odds (importance resampling) with this seed; otherwise those
        with the highest odds are kept.
    explains : bool
        Add a column with the strongest evidence for the class in each row that is kept.
    """

    share: float = 0.1
    number: int | None = None
    label: str | None = None
    seed: int | None = None
    explains: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise DataError(f"share is {self.share!r}; use a number from 0 to 1")
        if self.number is not None and self.number < 0:
            raise DataError(f"number is {self.number!r}; use a number that is 0 or more")


class SelectedRows(PredictedRows):
    """The rows that are kept, in their order, with their score: the log odds of the class in decibans.

    A model of texts without corrections takes words for independent, so that its odds grow with the length of a text:
    its score is in decibans per 1,000 bytes, unless rows are drawn.

    All rows are scored first; keys of 8 bytes for each row are in a temporary file. Then the files are read again while
    one iterates over the Arrow batches, which is possible once.

    Attributes
    ----------
    n_rows, n_kept : int
        The number of rows, and of those that are kept.
    lowest : float
        The lowest score of the rows that were kept so far, in decibans.
    """

    def __init__(self, model: TableOrTextClassifier, task: FileTask, options: SelectionOptions) -> None:
        self._model, self._task, self._options = model, task, options
        self._columns, self._class = model_files.get_model_columns(model), _find_class(model, options.label)
        self._per_length = self._columns.is_one_text and not model.calibrate and options.seed is None
        self.n_rows, self.n_kept, self.lowest = 0, 0, float("inf")

    def describe(self) -> list[str]:
        """How many rows were kept, in one line."""
        kept = f"kept {self.n_kept:,} of {model_files.format_count(self.n_rows, 'row')}"
        label = self._model.classes_[self._class]
        unit = "dB per 1,000 bytes" if self._per_length else "dB"
        return [f"{kept}; the lowest score is {self.lowest:+.1f} {unit} for {label}" if self.n_kept else kept]

    def predict_chunks(self, numbers: bool) -> Iterator[pa.RecordBatch]:
        with TemporaryFile() as keys:
            self._write_keys(keys)
            wanted = self._options.number
            self.n_kept = min(self.n_rows, round(self._options.share * self.n_rows) if wanted is None else wanted)
            lowest, n_equal = find_lowest_key(keys, self.n_kept)
            keys.seek(0)
            rows = open_rows(self._model, replace(self._task, callbacks=model_files.SILENT))
            for chunk in read_ahead(rows.read_chunks(rows.names)):
                own = np.frombuffer(keys.read(BYTES_OF_A_KEY * chunk.batch.num_rows), dtype=np.uint64)
                if len(own) < chunk.batch.num_rows:
                    raise DataError(f"{chunk.file.path}: has more rows than when it was scored; select again")
                is_equal = own == lowest
                kept = (own > lowest) | (is_equal & (np.cumsum(is_equal) <= n_equal))
                n_equal -= int((is_equal & kept).sum())
                if kept.any():
                    yield self._finish_chunk(chunk.keep_rows(kept))

    def _write_keys(self, keys: IO[bytes]) -> None:
        """Score all rows, and write keys that sort as they are to be kept."""
        rows, seed = open_rows(self._model, self._task), self._options.seed
        random = np.random.default_rng(seed)
        chunks = read_ahead(rows.read_chunks(rows.names))
        for ready in read_ahead(self._columns.read(chunk) for chunk in chunks):
            scores = self._score(ready)
            if seed is not None:  # the largest of log weights with Gumbel noise are a sample without replacement
                scores = scores / DECIBANS_PER_NAT + random.gumbel(size=len(scores))
            keys.write(make_sortable(scores).tobytes())
            self.n_rows += len(scores)

    def _score(self, rows: Table | PackedDocuments) -> Array:
        """The log odds of the class in decibans, (rows,)."""
        log_proba = self._model.predict_log_proba(rows)
        decibans = compute_certainty(log_proba, np.full(len(log_proba), self._class))
        if self._per_length and isinstance(rows, PackedDocuments):
            return decibans / np.maximum(np.diff(rows.edges) / BYTES_OF_A_SCORE, 1 / BYTES_OF_A_SCORE)
        return decibans

    def _finish_chunk(self, chunk: RowChunk) -> pa.RecordBatch:
        """Add the columns to rows that are kept."""
        batch, scores = chunk.batch, self._score(self._columns.read(chunk))
        self.lowest = min(self.lowest, float(scores.min()))
        added = {"score": make_column(scores.round(2))}
        if self._options.explains:
            added["evidence"] = pa.array(self._list_evidence(chunk), pa.string())
        return append_columns(batch, added)

    def _list_evidence(self, chunk: RowChunk) -> list[str]:
        """The strongest evidence for the class in each row, such as "+12.2 so real"."""
        label, found = self._model.classes_[self._class], []
        for ledger in self._model.explain(self._columns.read_input_rows(chunk)):
            weights = zip(ledger.weights(for_class=label)[1:], (line.name for line in ledger.lines), strict=True)
            best = sorted(((weight, name) for weight, name in weights if weight > 0), reverse=True)[:EVIDENCE_SHOWN]
            found.append("; ".join(f"{weight * DECIBANS_PER_NAT:+.1f} {name}" for weight, name in best))
        return found


def make_sortable(numbers: Array) -> Array:
    """Map finite doubles to whole numbers of 64 bits in the same order."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    sign = np.uint64(1 << 63)
    return np.where(bits & sign, ~bits, bits | sign)


def find_lowest_key(keys: IO[bytes], n_kept: int) -> tuple[int, int]:
    """The lowest of the ``n_kept`` largest keys in a file, and how many of those that equal it are among them.

    Radix selection: each of four passes over the keys finds 16 bits, in memory that does not depend on their number.
    """
    prefix, left = 0, n_kept
    if not n_kept:
        return (1 << 64) - 1, 0
    for shift in range(8 * BYTES_OF_A_KEY - RADIX_BITS, -1, -RADIX_BITS):
        counts = np.zeros(1 << RADIX_BITS, dtype=np.int64)
        keys.seek(0)
        while block := keys.read(BYTES_OF_A_KEY * KEYS_PER_BLOCK):
            shifted = np.frombuffer(block, dtype=np.uint64) >> np.uint64(shift)
            same = shifted[(shifted >> np.uint64(RADIX_BITS)) == prefix] & np.uint64((1 << RADIX_BITS) - 1)
            counts += np.bincount(same.astype(np.int64), minlength=len(counts))
        from_above = np.cumsum(counts[::-1])
        place = int(np.searchsorted(from_above, left))
        left -= int(from_above[place - 1]) if place else 0
        prefix = prefix << RADIX_BITS | len(counts) - 1 - place
    return prefix, left


def select(
    model: ModelOrPath,
    paths: Paths | FileTask,
    *,
    options: SelectionOptions | None = None,
    **given: Unpack[FileOptions],
) -> SelectedRows:
    """Keep the rows of files that a model finds most probable of a class.

    Parameters
    ----------
    model : a model file, or a model
        One that was trained on labelled rows, or made by `learn_contrast`.
    paths : one path or several, or a FileTask
        Files, which may be larger than memory. They are read twice.
    options : SelectionOptions, optional
        How many rows are kept, and of which class; by default a tenth.
    **given
        How the files are read, as for `FileTask`.
    """
    task = model_files.make_task(paths, given)
    return SelectedRows(model_files.load_classifier(model, task.key), task, options or SelectionOptions())


def learn_contrast(wanted: Paths, paths: Paths | FileTask, **given: Unpack[FileOptions]) -> TextClassifier:
    """Learn what distinguishes wanted texts from the texts of files.

    The result is a `TextClassifier` with the classes "wanted" and "rest". It counts hashed words and pairs of words,
    takes both classes for equally probable, and keeps no texts.

    Parameters
    ----------
    wanted : one path or several
        Files of texts such as those to keep.
    paths : one path or several, or a FileTask
        Files of texts of all kinds.
    **given
        The column of the texts (``columns=ColumnOptions(types={"body": "text"})``), by default ``text``, and how the
        files are read, as for `FileTask`.
    """
    task = model_files.make_task(paths, given)
    model = priory.TextClassifier(
        "multinomial",
        alpha="evidence",
        ngram_range=(1, 2),
        buckets=CONTRAST_BUCKETS,
        calibrate=False,
        class_prior="uniform",
        memory=0,
    )
    for label, part in ((WANTED_LABEL, replace(task, paths=wanted)), (REST_LABEL, task)):
        rows = part.open()
        columns = ModelColumns({_find_text_column(rows, part): "text"})
        for chunk in read_ahead(rows.read_chunks(columns.names)):
            labels = [label] * chunk.batch.num_rows
            model.partial_fit(columns.read(chunk), labels, classes=[WANTED_LABEL, REST_LABEL])
    model_files.set_training_columns(model, columns, LABEL_COLUMN)
    return model


def _find_text_column(rows: FileRows, task: FileTask) -> str:
    name = next((name for name, kind in task.columns.types.items() if kind == "text"), TEXT_COLUMN)
    if name not in rows.names:
        raise DataError(
            f"{rows.files[0].path}: has no column {name!r}; name the column of the texts with --text; it has "
            f"{format_names(rows.names)}"
        )
    return name


def _find_class(model: TableOrTextClassifier, label: str | None) -> int:
    """The number of the class that is wanted."""
    names = list_class_names(model)
    wanted = label or WANTED_LABEL
    if wanted not in names:
        problem = "which class is wanted?" if label is None else f"the model has no class {label!r};"
        raise DataError(f"{problem} use --class with one of {format_names(names)}")
    return names.index(wanted)
