"""Load and save model files, and read rows of files for a model; priors of classes; progress and notes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

import priory
from priory.errors import DataError, KindError, NotLearnedError, StaleModelError
from priory.evaluation.decisions import find_class_index
from priory.sources import FileRows, ReadOptions, RowChunk, open_files
from priory.sources.byte_streams import ProgressCallback, format_path, ignore_progress, read_ahead
from priory.sources.cell_parsing import RowPlaces
from priory.sources.column_types import ColumnOptions, InputRows, LabelReader, ModelColumns, TargetReader
from priory.sources.discovery import format_names, make_absent_column_error
from priory.sources.document_files import LABEL_COLUMN, TEXT_COLUMN
from priory.storage import load
from priory.workflows.out_of_core import DrawnRows

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from priory import BayesianLinearRegression, NaiveBayes, TextClassifier

    TableOrTextClassifier: TypeAlias = NaiveBayes | TextClassifier
    FileModel: TypeAlias = TableOrTextClassifier | BayesianLinearRegression
    PathLike: TypeAlias = str | os.PathLike[str]
    Paths: TypeAlias = PathLike | Sequence[PathLike]
    ModelOrPath: TypeAlias = FileModel | PathLike


def ignore_note(_: str) -> None:
    pass


@dataclass(frozen=True)
class Callbacks:
    """Functions that a workflow calls while it runs.

    Parameters
    ----------
    progress : function of an int
        Called with the number of bytes whenever a block of a file has been read.
    notify : function of a str
        Called with each note: a message that is not an error, such as the names of columns left out.
    activity : function of a str that returns a context manager
        Called with a phrase such as "looking for leakage"; the work that the phrase describes is done inside.
    """

    progress: ProgressCallback = ignore_progress
    notify: Callable[[str], None] = ignore_note
    activity: Callable[[str], AbstractContextManager[object]] = nullcontext

    def note_coerced_cells(self, n_coerced: Mapping[str, int]) -> None:
        """Note for each column how many cells were read as missing because they are not numbers."""
        for name, count in n_coerced.items():
            if count:
                self.notify(f"column {name!r}: read {format_count(count, 'cell')} without a number as missing")


SILENT = Callbacks()


def format_count(count: float, name: str) -> str:
    """Format a number with the noun that it counts, in the singular or plural.

    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,.0f} {name}" + ("" if count == 1 else "s")


class FileOptions(TypedDict, total=False):
    """Keyword arguments that every workflow on files takes; see `FileTask`."""

    target: str | None
    columns: ColumnOptions | None
    read: ReadOptions | None
    key: PathLike | None
    callbacks: Callbacks


@dataclass(frozen=True)
class FileTask:
    """Which files a workflow reads, and how.

    Workflows take a FileTask in place of paths, or make one of their paths and keyword arguments. Besides the
    parameters below there is the keyword ``target``, short for ``columns=ColumnOptions(target=...)``.

    Parameters
    ----------
    paths : one path or several
        Files, folders, patterns, or "-" for standard input.
    columns : ColumnOptions
        The target and the kinds of the columns. A model file remembers its target and its columns.
    read : ReadOptions
        Format, encoding, and the treatment of malformed rows.
    key : path, optional
        Model files must be signed with this key. A file that is changed is signed with it again.
    callbacks : Callbacks
        Called with progress and notes; silent by default.
    where : dict of str to str
        Only the rows whose cells in these columns are these texts, such as the rows of one person.
    """

    paths: Paths
    columns: ColumnOptions = field(default_factory=ColumnOptions)
    read: ReadOptions = field(default_factory=ReadOptions)
    key: PathLike | None = None
    callbacks: Callbacks = SILENT
    where: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The paths as text."""
        paths = [self.paths] if isinstance(self.paths, str | os.PathLike) else self.paths
        return [os.fspath(path) for path in paths]

    def open(self) -> FileRows:
        """Open the files, and note what is odd about the first."""
        rows = open_files(self.names, self.read, self.callbacks.progress, self.columns.label)
        for note in rows.files[0].list_notes():
            self.callbacks.notify(note)
        return rows

    def open_for(self, columns: ModelColumns) -> FileRows:
        """Open files whose rows are to be predicted: a model of one text also reads documents, such as notes."""
        if self.columns != ColumnOptions():
            raise DataError("the model knows its columns; target and columns are for files with labels")
        read = replace(self.read, text_column=columns.names[0]) if columns.is_one_text else self.read
        return replace(self, read=replace(read, reader=columns.reader)).open()

    def adapt_to(self, model: FileModel) -> FileTask:
        """The task with the model's target, where none is given, and with mail read as the model reads it."""
        target = LABEL_COLUMN if self.columns.label else self.columns.target or getattr(model, "target_", LABEL_COLUMN)
        read = replace(self.read, reader=getattr(model, "reader", "text"))
        return replace(self, columns=replace(self.columns, target=target), read=read)


def make_task(paths: Paths | FileTask, given: FileOptions) -> FileTask:
    """Make a task of paths and keyword arguments; None stands for a default."""
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    target = named.pop("target", None)
    task = replace(paths if isinstance(paths, FileTask) else FileTask(paths), **named)
    return task if target is None else replace(task, columns=replace(task.columns, target=target))


def describe_source(rows: FileRows) -> str:
    """Name the files for the title of a report: the first, and the number of the others."""
    first = os.path.basename(str(rows.files[0].path).rstrip("/"))
    name, n_others = "standard input" if first == "-" else first, len(rows.openers) - 1
    return f"{name} and {format_count(n_others, 'more file')}" if n_others else name


def load_model(model: ModelOrPath, key: PathLike | None = None) -> FileModel:
    """Load a model if a path is given; only models whose columns can be filled from files are accepted."""
    if isinstance(model, str | os.PathLike):
        return check_fitted(check_model_type(load(model, key=key), model), model)
    return check_fitted(check_model_type(model, "the model"), "the model")


def load_classifier(model: ModelOrPath, key: PathLike | None = None, *, several: bool = False) -> TableOrTextClassifier:
    """Load a model if a path is given; only classifiers are accepted, of several labels for a row if ``several``."""
    loaded = load_model(model, key)
    named = format_path(model) if isinstance(model, str | os.PathLike) else "the model"
    if is_regression(loaded):
        raise KindError(f"{named}: predicts a number; give a model of classes")
    if hasattr(loaded, "separator_") and not several:
        raise KindError(f"{named}: has several labels for each row; give a model of one class for each row")
    return loaded


def check_model_type(model: object, path: PathLike) -> FileModel:
    if not isinstance(model, priory.NaiveBayes | priory.TextClassifier) and not is_regression(model):
        raise KindError(
            f"{format_path(path)}: is a {type(model).__name__}; files work with NaiveBayes, TextClassifier and "
            "BayesianLinearRegression only"
        )
    return model


def is_regression(model: object) -> TypeIs[BayesianLinearRegression]:
    """Whether a model predicts a number; the regression module is imported only for a regression."""
    if type(model).__module__ != "priory.regression.linear_regression":
        return False
    return isinstance(model, priory.BayesianLinearRegression)


def has_learned_rows(model: FileModel) -> bool:
    """Whether a model knows any rows."""
    return hasattr(model, "statistics_") and (not is_regression(model) or bool(model.statistics_.n))


def count_known_rows(model: FileModel) -> float:
    """The number of rows that a model knows, each counted with its weight."""
    if not has_learned_rows(model):
        return 0.0
    return float(model.statistics_.n) if is_regression(model) else float(model.class_count_.sum())


def check_fitted(model: FileModel, path: PathLike) -> FileModel:
    """Return the model if it knows any rows; all of them may have been forgotten."""
    if not has_learned_rows(model):
        raise StaleModelError(f"{format_path(path)}: knows no rows; teach it some with priory learn")
    return model


def set_training_columns(model: TableOrTextClassifier, columns: ModelColumns, target: str) -> None:
    """Record in the model which columns it was trained on; a model file keeps them."""
    if columns.is_one_text:
        learned = model.learned_
        named = replace(learned.rows, name=columns.names[0])  # type: ignore[type-var]
        model.adopt(replace(learned, rows=named), finish=False)
    model.target_, model.missing_ = target, tuple(sorted(columns.missing))


def get_model_columns(model: FileModel) -> ModelColumns:
    """The columns a model was trained on."""
    missing = frozenset(getattr(model, "missing_", ()))
    if is_regression(model):
        levels = {term.column for term in model.statistics_.terms if term.kind == "level"}
        names = getattr(model, "feature_names_in_", [])
        return ModelColumns(
            {str(name): "label" if name in levels else "number" for name in names},
            missing,
            is_trained=True,
            formats=dict(getattr(model, "formats_", ())),
        )
    if isinstance(model, priory.TextClassifier):
        names = getattr(model, "feature_names_in_", [TEXT_COLUMN])
        return ModelColumns({str(names[0]): "text"}, missing, is_trained=True, reader=model.reader)
    declared = model.families if isinstance(model.families, dict) else {}
    kinds = {name: "label" if kind == "empty" else kind for name, kind in model.column_kinds_.items()}
    return ModelColumns(
        kinds, missing, declared, is_trained=True, zones=model.column_zones_, formats=model.column_formats_
    )


def find_needed_columns(rows: FileRows, columns: ModelColumns, *more: str) -> tuple[str, ...]:
    """The columns to read: ``more``, then the columns of the model, which the files must have."""
    sources = columns.find_sources(rows.names)
    absent = [name for name in sources if name not in rows.names]
    if absent:
        raise make_absent_column_error(rows.files[0].path, absent, rows.names, ", which the model needs")
    return tuple(dict.fromkeys([*more, *sources]))


def read_labelled_chunks(
    rows: FileRows, task: FileTask, names: Sequence[str], is_number: bool = False
) -> Iterator[tuple[Array, RowChunk]]:
    """Yield the labels of rows, or the numbers to predict, and a chunk of the labelled rows with these columns."""
    target = task.columns.find_target(rows)
    # the model decides what is a class: labels that look like numbers are accepted
    labels = LabelReader(target, replace(task.columns, labels_as_text=True))
    numbers = TargetReader(target, task.columns)
    absent = [name for name in task.where if name not in rows.names]
    if absent:
        raise make_absent_column_error(rows.files[0].path, absent, rows.names, ", which --where names")
    for chunk in read_ahead(rows.read_chunks(tuple(dict.fromkeys([target, *names, *task.where])))):
        chunk = _select_rows(chunk, task.where)
        found, kept = numbers.read(chunk) if is_number else labels.read(chunk)
        if len(found):
            yield found if is_number else labels.names[found], kept


def _select_rows(chunk: RowChunk, where: Mapping[str, str]) -> RowChunk:
    """The rows whose cells in some columns are these texts."""
    for name, text in where.items():
        cells = chunk.batch.column(name).cast(pa.string())
        chunk = chunk.keep_rows(np.array([cell == text for cell in cells.to_pylist()], dtype=bool))
    return chunk


def read_labelled_rows(
    model: FileModel, rows: FileRows, task: FileTask, places: list[RowPlaces] | None = None
) -> Iterator[tuple[InputRows, Array]]:
    """Yield rows as the library takes them, with their labels or numbers to predict, a chunk at a time.

    The place of each row in its file is added to ``places``.
    """
    columns = replace(get_model_columns(model), coerce=task.columns.coerce)
    for labels, chunk in read_labelled_chunks(rows, task, find_needed_columns(rows, columns), is_regression(model)):
        if places is not None:
            places.append(chunk.places)
        yield columns.read_input_rows(chunk), labels
    task.callbacks.note_coerced_cells(columns.n_coerced)


def locate_unlearned_row(error: NotLearnedError, places: list[RowPlaces], column: str) -> NotLearnedError:
    """Replace the number of the row in an error by its place in the file."""
    row = error.row
    if row is None:
        return error
    for part in places:
        if row < len(part.numbers):
            problem = str(error).removeprefix(f"row {error.row}: ").rstrip(".")
            return NotLearnedError(f"{part.locate_cell(row, error.column or column)}: {problem}", row=error.row)
        row -= len(part.numbers)
    return error


def read_all_labelled_rows(model: TableOrTextClassifier, rows: FileRows, task: FileTask) -> tuple[InputRows, Array]:
    """All rows and all labels, which have to be classes of the model."""
    table, labels = join_labelled_rows(list(read_labelled_rows(model, rows, task)))
    check_known_labels(model, labels)
    return table, labels


def join_labelled_rows(parts: Sequence[tuple[InputRows, Array]]) -> tuple[InputRows, Array]:
    """Concatenate the rows and the labels of all parts."""
    check_any_labelled(parts)
    return concatenate_rows([rows for rows, _ in parts]), np.concatenate([labels for _, labels in parts])


def check_any_labelled(parts: Sequence[object]) -> None:
    """Raise an error if there are no parts of labelled rows."""
    if not parts:
        raise DataError("no row has a label; there is nothing to compare with")


def check_known_labels(model: TableOrTextClassifier, labels: Array) -> None:
    """Raise an error that names a label which is not a class of the model."""
    unknown = sorted(set(labels.tolist()) - set(model.classes_.tolist()))
    if unknown:
        raise DataError(f"the model has no class {unknown[0]!r}; it has {format_names(model.classes_.tolist())}")


def concatenate_rows(parts: list[InputRows]) -> InputRows:
    """Concatenate lists of texts, or Arrow tables with the same columns."""
    if isinstance(parts[0], list):
        return [document for part in parts for document in part]
    return pa.concat_tables(parts)


def read_sample_rows(
    sample: DrawnRows, columns: ModelColumns, column_options: ColumnOptions, rows: FileRows
) -> tuple[InputRows, Array]:
    """Convert a sample to rows as the library takes them, and their labels."""
    labels = LabelReader(str(column_options.target), replace(column_options, labels_as_text=True))
    group, kept = labels.read(RowChunk(sample.batch(), rows.files[0], 0))
    return columns.read_input_rows(kept), labels.names[group]


def refresh_corrections(model: FileModel, task: FileTask) -> None:
    """Derive the corrections anew, from the rows of the task if it has any; note those that are lost without rows."""
    if is_regression(model):
        return
    task, known = task.adapt_to(model), getattr(model, "statistics_", None)  # None: all rows were forgotten
    if task.paths:
        rows, columns, drawn = task.open(), get_model_columns(model), DrawnRows()
        columns = replace(columns, coerce=task.columns.coerce)
        for _, chunk in read_labelled_chunks(rows, task, find_needed_columns(rows, columns)):
            drawn.add(chunk.batch)
        with task.callbacks.activity(f"fitting the corrections to {len(drawn.keys):,} rows"):
            model.set_params(calibrate="loo").refresh(*read_sample_rows(drawn, columns, task.columns, rows))
    elif known is not None and known.sample is not None and known.sample.shortage:
        task.callbacks.notify(known.sample.shortage)
    elif model.stale_:
        task.callbacks.notify(
            f"the corrections ({', '.join(model.stale_)}) were dropped, because the model keeps no rows to derive them "
            "from; use --refresh FILE to fit them again"
        )


INTERVAL_LEVEL = 0.9  # the probability of the bounds that are shown


DeclaredPrior = Literal["uniform"] | Mapping[str, float]


def declare_class_prior(model: TableOrTextClassifier, prior: DeclaredPrior | None) -> None:
    """Give a model that has learned its rows the declared prior, whose classes must be its own."""
    if prior is None:
        return
    classes = model.classes_.tolist()
    if isinstance(prior, Mapping):
        for label in prior:
            find_class_index(label, classes)
        total = sum(prior.values())
        if absent := [label for label in classes if label not in prior]:
            raise DataError(f"the prior has no probability for class {absent[0]!r}; give one")
        if not (0 < total < inf and min(prior.values()) >= 0):
            raise DataError("a probability of the prior is negative, or all are 0; give numbers that are 0 or more")
        model.set_params(class_prior={label: prior[label] / total for label in classes})
        learned = model.learned_
        declared = replace(learned, statistics=learned.statistics.declare_classes(learned.classes))
        model.adopt(declared, finish=False)
    else:
        model.set_params(class_prior=prior)
    model.class_prior_  # noqa: B018  # weights that are impossible are reported here
