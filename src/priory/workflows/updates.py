"""Model files that change: learn, forget, refresh, merge. A file is changed whole or not at all, by one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from priory.core.typing import Array
from priory.errors import FileBusyError, NotLearnedError
from priory.sources import FileRows, ReadOptions
from priory.sources.chunk import RowPlaces
from priory.sources.column_types import ColumnOptions, InputRows, make_model_rows
from priory.sources.prefetch import read_ahead
from priory.storage import Updated, updating
from priory.workflows.callbacks import SILENT, Callbacks
from priory.workflows.model_files import (
    check_fitted,
    check_model_type,
    choose_columns,
    count_known_rows,
    fill_target,
    get_model_columns,
    has_learned_rows,
    is_regression,
    join_labelled_rows,
    load_classifier,
    locate_unlearned_row,
    open_paths,
    read_labelled_rows,
    refresh_corrections,
)
from priory.workflows.regression import read_rows_with_targets

if TYPE_CHECKING:
    from priory.workflows.model_files import FileModel, ModelOrPath, PathLike, Paths, TableOrTextClassifier

MAX_SILENT_WAIT_SECONDS = 1.0  # who waits longer for another process is told so


@dataclass(frozen=True)
class UpdateResult:
    """A model file after it was changed.

    Attributes
    ----------
    model : NaiveBayes, TextClassifier or BayesianLinearRegression
        The model as it is in the file now.
    n_rows : int
        The number of rows that were learned or forgotten.
    """

    model: FileModel
    n_rows: int

    @property
    def n_rows_known(self) -> float:
        """The number of rows that the model knows now, each counted with its weight."""
        return count_known_rows(self.model)


def learn(
    model: PathLike,
    paths: Paths,
    *,
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    refresh_from: Paths = (),
    wait: float | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> UpdateResult:
    """Learn the rows of files into a model file: all of them, or none if anything is wrong.

    A model file that does not exist yet is created, as `train` would, but it is not judged. Several
    processes may learn into one file at once: each waits for its turn, and nothing is lost.

    Parameters
    ----------
    model : the model file
    paths : one path or several
    target : str, optional
        The column of the labels; by default the one that the model was trained for.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    refresh_from : one path or several, optional
        Rows that the model has learned, to fit its corrections to again.
    wait : float, optional
        How many seconds to wait while others change the file, before `priory.errors.FileBusyError` is raised.
    key : path, optional
        The model file must be signed with this key, and is signed again.
    callbacks : Callbacks
    """
    column_options = choose_columns(columns, target)
    with _lock_model_file(model, wait, key, callbacks) as file:
        rows = open_paths(paths, read, callbacks)
        if file.model is None or not has_learned_rows(check_model_type(file.model, model)):
            count = _learn_new_model(file, model, rows, column_options, callbacks)
        else:
            trained, count = check_model_type(file.model, model), 0
            for part, labels in read_ahead(_read_known_rows(trained, rows, column_options, callbacks)):
                trained.partial_fit(_prepare_rows(trained, part), labels)
                count += len(labels)
        refresh_corrections(file.model, refresh_from, read, fill_target(file.model, column_options), callbacks)
    return UpdateResult(file.model, count)


def forget(
    model: PathLike,
    paths: Paths,
    *,
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    refresh_from: Paths = (),
    wait: float | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> UpdateResult:
    """Make a model file as if it had never learned the rows of files: all of them, or none if one was never learned.

    Parameters
    ----------
    model : the model file
    paths : one path or several
    target : str, optional
        The column of the labels; by default the one that the model was trained for.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    refresh_from : one path or several, optional
        Rows that the model still knows, to fit its corrections to again.
    wait : float, optional
        How many seconds to wait while others change the file, before `priory.errors.FileBusyError` is raised.
    key : path, optional
        The model file must be signed with this key, and is signed again.
    callbacks : Callbacks
    """
    column_options, count = choose_columns(columns, target), 0
    with _lock_model_file(model, wait, key, callbacks) as file:
        trained = _check_exists(file, model)
        rows, places = open_paths(paths, read, callbacks), list[RowPlaces]()
        parts = _read_known_rows(trained, rows, column_options, callbacks, places)
        for part, labels in join_labelled_rows(parts):  # all at once, so that sums are rounded once
            try:
                trained.forget(_prepare_rows(trained, part), labels)
            except NotLearnedError as error:
                target = fill_target(trained, column_options).find_target(rows)
                raise locate_unlearned_row(error, places, target) from None
            count += len(labels)
        refresh_corrections(trained, refresh_from, read, fill_target(trained, column_options), callbacks)
    return UpdateResult(trained, count)


def refresh(
    model: PathLike,
    paths: Paths,
    *,
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    wait: float | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> UpdateResult:
    """Fit the corrections of a model file again, to rows that the model has learned.

    Parameters
    ----------
    model : the model file
    paths : one path or several
        All rows that the model has learned, or a fair sample of them.
    target : str, optional
        The column of the labels; by default the one that the model was trained for.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    wait : float, optional
        How many seconds to wait while others change the file, before `priory.errors.FileBusyError` is raised.
    key : path, optional
        The model file must be signed with this key, and is signed again.
    callbacks : Callbacks
    """
    with _lock_model_file(model, wait, key, callbacks) as file:
        trained = _check_exists(file, model)
        column_options = fill_target(trained, choose_columns(columns, target))
        refresh_corrections(trained, paths, read, column_options, callbacks)
    return UpdateResult(trained, 0)


def merge(
    models: Sequence[ModelOrPath],
    *,
    refresh_from: Paths = (),
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> TableOrTextClassifier:
    """A new model that has learned what all the models have, as if one had learned all rows.

    Parameters
    ----------
    models : sequence of model files or models
    refresh_from : one path or several, optional
        Rows that the models have learned, to fit the corrections of the new model to.
    target : str, optional
        The column of their labels; by default the one that the models were trained for.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    key : path, optional
        The model files must be signed with this key.
    callbacks : Callbacks
    """
    with callbacks.activity("merging the models"):
        first, *others = (load_classifier(model, key) for model in models)
        merged = first.merge(*others)
    column_options = fill_target(merged, choose_columns(columns, target))
    refresh_corrections(merged, refresh_from, read, column_options, callbacks)
    return merged


@contextmanager
def _lock_model_file(
    path: PathLike, wait: float | None, key: PathLike | None, callbacks: Callbacks
) -> Iterator[Updated]:
    """The model file, while nobody else changes it; a long wait is noted.

    Files are read while the lock is held, because the meaning of their cells depends on the columns that the model has.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder; give a model file", os.fspath(path))
    longest = float("inf") if wait is None else wait
    with ExitStack() as stack:
        try:
            file = stack.enter_context(updating(path, wait=min(MAX_SILENT_WAIT_SECONDS, longest), key=key))
        except FileBusyError:
            if longest <= MAX_SILENT_WAIT_SECONDS:
                raise
            callbacks.notify(f"{os.fspath(path)}: another process is changing it; waiting until it is done")
            file = stack.enter_context(updating(path, wait=longest - MAX_SILENT_WAIT_SECONDS, key=key))
        yield file


def _check_exists(file: Updated, path: PathLike) -> FileModel:
    if file.model is None:
        raise FileNotFoundError(2, "no such model; train one with priory train", os.fspath(path))
    return check_fitted(check_model_type(file.model, path), path)


def _read_known_rows(
    model: FileModel,
    rows: FileRows,
    column_options: ColumnOptions,
    callbacks: Callbacks,
    places: list[RowPlaces] | None = None,
) -> Iterator[tuple[InputRows, Array]]:
    """Rows with labels or targets as the model takes them; ``places`` gets where they are."""
    if is_regression(model):
        return read_rows_with_targets(
            rows, get_model_columns(model), fill_target(model, column_options), callbacks, places
        )
    return read_labelled_rows(rows, get_model_columns(model), fill_target(model, column_options), callbacks, places)


def _prepare_rows(model: FileModel, rows: InputRows) -> Any:
    """Rows in the form that takes a model the shortest time to read."""
    return rows if is_regression(model) else make_model_rows(rows)


def _learn_new_model(
    file: Updated, path: PathLike, rows: FileRows, column_options: ColumnOptions, callbacks: Callbacks
) -> int:
    from priory.workflows.training import train_on_rows  # the other updates start without what training needs
    from priory.workflows.training_results import TrainingOptions

    reason = "no such model"
    if file.model is not None:
        reason, column_options = "it knows no rows any more", fill_target(file.model, column_options)
    result = train_on_rows(rows, column_options, TrainingOptions(), callbacks, judge=False)
    file.model = result.model
    families = ", ".join(f"{name} ({family})" for name, family in result.families.items())
    callbacks.notify(f"{os.fspath(path)}: {reason}; created one that predicts {result.model.target_!r} from {families}")
    return result.n_rows
