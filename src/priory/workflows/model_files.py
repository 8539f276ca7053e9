"""Models as files, and the rows of files as a model takes them: what all workflows share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from priory.core.typing import Array
from priory.errors import KindError, NotLearnedError, StaleModelError
from priory.sources import FileRows, ReadOptions, RowChunk, open_files
from priory.sources.byte_streams import format_path
from priory.sources.chunk import RowPlaces
from priory.sources.column_types import ColumnOptions, InputRows, ModelColumns
from priory.sources.discovery import make_absent_column_error
from priory.sources.document_files import LABEL_COLUMN, TEXT_COLUMN
from priory.sources.label_reading import LabelReader
from priory.sources.prefetch import read_ahead
from priory.storage import load
from priory.workflows.callbacks import SILENT, Callbacks, format_count, note_coerced_cells
from priory.workflows.out_of_core import DrawnRows

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier
    from priory.regression.linear_regression import BayesianLinearRegression

    TableOrTextClassifier = NaiveBayes | TextClassifier
    FileModel = TableOrTextClassifier | BayesianLinearRegression
    PathLike = str | os.PathLike[str]
    Paths = PathLike | Sequence[PathLike]
    ModelOrPath = FileModel | PathLike


def open_paths(paths: Paths, read: ReadOptions | None, callbacks: Callbacks) -> FileRows:
    """The rows of one path or of several."""
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    return open_files([os.fspath(path) for path in named], read or ReadOptions(), callbacks.progress)


def describe_source(rows: FileRows) -> str:
    """The name of the file for the title of a report; of several, the first and the number of the others."""
    first = os.path.basename(str(rows.files[0].path).rstrip("/"))
    name, n_others = "standard input" if first == "-" else first, len(rows.openers) - 1
    return f"{name} and {format_count(n_others, 'more file')}" if n_others else name


def open_paths_for_model(
    paths: Paths, read: ReadOptions | None, columns: ModelColumns, callbacks: Callbacks
) -> FileRows:
    """The rows to be predicted: a model of one text also reads files that are texts, such as notes in a folder."""
    read = read or ReadOptions()
    return open_paths(paths, replace(read, text_column=columns.names[0]) if columns.is_one_text else read, callbacks)


def load_model(model: ModelOrPath, key: PathLike | None = None) -> FileModel:
    """The model, loaded if a path is given; only models whose columns can be filled from files are accepted."""
    if isinstance(model, str | os.PathLike):
        return check_fitted(check_model_type(load(model, key=key), model), model)
    return check_fitted(check_model_type(model, "the model"), "the model")


def load_classifier(model: ModelOrPath, key: PathLike | None = None) -> TableOrTextClassifier:
    """The model, loaded if a path is given; only models of classes are accepted."""
    loaded = load_model(model, key)
    if is_regression(loaded):
        named = format_path(model) if isinstance(model, str | os.PathLike) else "the model"
        raise KindError(f"{named}: predicts a number; give a model of classes")
    return loaded


def check_model_type(model: object, path: PathLike) -> FileModel:
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier

    if not isinstance(model, NaiveBayes | TextClassifier) and not is_regression(model):
        raise KindError(
            f"{format_path(path)}: is a {type(model).__name__}; files work with NaiveBayes, TextClassifier and "
            "BayesianLinearRegression only"
        )
    return model


def is_regression(model: object) -> TypeIs[BayesianLinearRegression]:
    """Whether a model predicts a number; its module is not imported for any other model."""
    if type(model).__module__ != "priory.regression.linear_regression":
        return False
    from priory.regression.linear_regression import BayesianLinearRegression

    return isinstance(model, BayesianLinearRegression)


def has_learned_rows(model: FileModel) -> bool:
    """Whether a model knows any rows."""
    return hasattr(model, "statistics_") and (not is_regression(model) or bool(model.statistics_.n))


def count_known_rows(model: FileModel) -> float:
    """The number of rows that a model knows, each counted with its weight."""
    if not has_learned_rows(model):
        return 0.0
    return float(model.statistics_.n) if is_regression(model) else float(model.class_count_.sum())


def check_fitted(model: FileModel, path: PathLike) -> FileModel:
    """The model, if it knows any rows: all of them may have been forgotten."""
    if not has_learned_rows(model):
        raise StaleModelError(f"{format_path(path)}: knows no rows; teach it some with priory learn")
    return model


def set_training_columns(model: TableOrTextClassifier, columns: ModelColumns, target: str) -> None:
    """Record in the model which columns it was trained on; a model file keeps them."""
    model.feature_names_in_ = np.array(columns.names, dtype=object)
    model.target_, model.missing_ = target, tuple(sorted(columns.missing))


def choose_columns(columns: ColumnOptions | None, target: str | None) -> ColumnOptions:
    """The column options, with the target where one is given by itself."""
    columns = columns or ColumnOptions()
    return replace(columns, target=target) if target else columns


def fill_target(model: FileModel, columns: ColumnOptions) -> ColumnOptions:
    """The column options; a target that is not given is the one the model was trained for."""
    return choose_columns(columns, columns.target or getattr(model, "target_", LABEL_COLUMN))


def get_model_columns(model: FileModel) -> ModelColumns:
    """The columns a model was trained on."""
    from priory.estimators.text_classifier import TextClassifier

    missing = frozenset(getattr(model, "missing_", ()))
    if is_regression(model):
        levels = {term.column for term in model.statistics_.terms if term.kind == "level"}
        names = getattr(model, "feature_names_in_", [])
        return ModelColumns(
            {str(name): "label" if name in levels else "number" for name in names}, missing, is_trained=True
        )
    if isinstance(model, TextClassifier):
        names = getattr(model, "feature_names_in_", [TEXT_COLUMN])
        return ModelColumns({str(names[0]): "text"}, missing, is_trained=True)
    declared = model.families if isinstance(model.families, dict) else {}
    kinds = {name: "label" if kind == "empty" else kind for name, kind in model.column_kinds_.items()}
    return ModelColumns(kinds, missing, declared, is_trained=True, zones=model.column_zones_)


def find_needed_columns(rows: FileRows, columns: ModelColumns, *more: str) -> tuple[str, ...]:
    """The names of the columns that a model needs, after ``more``; the files must have those of the model."""
    sources = columns.find_sources(rows.names)
    absent = [name for name in sources if name not in rows.names]
    if absent:
        raise make_absent_column_error(rows.files[0].path, absent, rows.names, ", which the model needs")
    return tuple(dict.fromkeys([*more, *sources]))


def read_labelled_rows(
    rows: FileRows,
    columns: ModelColumns,
    column_options: ColumnOptions,
    callbacks: Callbacks = SILENT,
    places: list[RowPlaces] | None = None,
) -> Iterator[tuple[InputRows, Array]]:
    """Rows as the library takes them and their labels, a chunk at a time; ``places`` gets where they are."""
    target = column_options.find_target(rows)
    columns = replace(columns, coerce=column_options.coerce)
    labels = LabelReader(target, replace(column_options, labels_as_text=True))  # the model says what a class is
    for chunk in read_ahead(rows.read_chunks(find_needed_columns(rows, columns, target))):
        group, kept = labels.read(chunk)
        if len(group):
            if places is not None:
                places.append(kept.places)
            yield columns.read_input_rows(kept), labels.names[group]
    note_coerced_cells(columns.n_coerced, callbacks)


def locate_unlearned_row(error: NotLearnedError, places: list[RowPlaces], column: str) -> NotLearnedError:
    """The error with the place of its row in the file, instead of the number of the row."""
    row = error.row
    if row is None:
        return error
    for part in places:
        if row < len(part.numbers):
            problem = str(error).removeprefix(f"row {error.row}: ").rstrip(".")
            return NotLearnedError(f"{part.locate_cell(row, error.column or column)}: {problem}", row=error.row)
        row -= len(part.numbers)
    return error


def join_labelled_rows(parts: Iterator[tuple[InputRows, Array]]) -> list[tuple[InputRows, Array]]:
    """All rows and all labels as one pair; an empty list if there are none."""
    pairs = list(parts)
    if not pairs:
        return []
    return [(concatenate_rows([rows for rows, _ in pairs]), np.concatenate([labels for _, labels in pairs]))]


def concatenate_rows(parts: list[InputRows]) -> InputRows:
    """Lists of texts, or Arrow tables with the same columns, as one."""
    if isinstance(parts[0], list):
        return [document for part in parts for document in part]
    return pa.concat_tables(parts)


def read_sample_rows(
    sample: DrawnRows, columns: ModelColumns, column_options: ColumnOptions, rows: FileRows
) -> tuple[InputRows, Array]:
    """The rows of a sample as the library takes them, and their labels."""
    labels = LabelReader(str(column_options.target), replace(column_options, labels_as_text=True))
    group, kept = labels.read(RowChunk(sample.batch(), rows.files[0], 0))
    return columns.read_input_rows(kept), labels.names[group]


def refresh_corrections(
    model: FileModel,
    paths: Paths,
    read: ReadOptions | None,
    column_options: ColumnOptions,
    callbacks: Callbacks,
) -> None:
    """Derive the corrections anew, from rows of files if there are any; note those that are lost without them."""
    if is_regression(model):
        return
    if paths:
        rows, columns, sample = open_paths(paths, read, callbacks), get_model_columns(model), DrawnRows()
        target = column_options.find_target(rows)
        columns = replace(columns, coerce=column_options.coerce)
        labels = LabelReader(target, replace(column_options, labels_as_text=True))
        for chunk in read_ahead(rows.read_chunks(find_needed_columns(rows, columns, target))):
            sample.add(labels.read(chunk)[1].batch)
        with callbacks.activity(f"fitting the corrections to {len(sample.keys):,} rows"):
            model.set_params(calibrate="loo").refresh(*read_sample_rows(sample, columns, column_options, rows))
    elif model.stale_:
        callbacks.notify(
            f"the corrections ({', '.join(model.stale_)}) were dropped, because the model keeps no rows to derive them "
            "from; use --refresh FILE to fit them again"
        )
