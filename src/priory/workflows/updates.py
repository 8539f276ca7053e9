"""Update model files: learn, forget, merge. Changes are atomic and locked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import priory
from priory.errors import DataError, FileBusyError, KindError, NotLearnedError
from priory.sources.byte_streams import read_ahead
from priory.sources.cell_parsing import RowPlaces
from priory.sources.column_types import InputRows, make_model_rows
from priory.storage import Updated, drop_note, updating
from priory.workflows import model_files
from priory.workflows.label_files import read_label_sets, view_labels
from priory.workflows.model_files import FileOptions, FileTask

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from priory.estimators.text_classifier import TextClassifier
    from priory.storage.receipts import Issued
    from priory.workflows.erasure import ReceiptFiles
    from priory.workflows.model_files import FileModel, ModelOrPath, PathLike, Paths, TableOrTextClassifier

MAX_SILENT_WAIT_SECONDS = 1.0  # a longer wait for another process is noted


@dataclass(frozen=True)
class UpdateResult:
    """A model file after it was changed.

    Attributes
    ----------
    model : NaiveBayes, TextClassifier or BayesianLinearRegression
        The model as it is in the file now.
    n_rows : int
        The number of rows that were learned or forgotten.
    issued : Issued, optional
        The receipt of what was forgotten, and its opening.
    """

    model: FileModel
    n_rows: int
    issued: Issued | None = None

    @property
    def n_rows_known(self) -> float:
        """The number of rows that the model knows now, each counted with its weight."""
        return model_files.count_known_rows(self.model)


def learn(
    model: PathLike,
    paths: Paths | FileTask,
    *,
    refresh_from: Paths = (),
    wait: float | None = None,
    unlabelled: bool = False,
    **given: Unpack[FileOptions],
) -> UpdateResult:
    """Learn the rows of files into a model file: all of them, or none if anything is wrong.

    A model file that does not exist yet is created, as `train` would, but it is not judged. Several
    processes may learn into one file at once: each waits for its turn, and nothing is lost.

    Parameters
    ----------
    model : the model file
    paths : one path or several, or a FileTask
    refresh_from : one path or several, optional
        Rows that the model has learned, to fit its corrections to again.
    wait : float, optional
        How many seconds to wait while others change the file, before `priory.errors.FileBusyError` is raised.
    unlabelled : bool
        Whether the rows are texts without label, for a `TextClassifier` that exists.
    **given
        The target and how the files are read, as for `FileTask`.
    """
    task = model_files.make_task(paths, given)
    with _lock_model_file(model, wait, task) as file:
        if unlabelled:
            trained, count = _check_texts(_check_exists(file, model)).set_params(unlabelled=True), 0
            for part in _read_unlabelled(trained, task):
                trained.partial_fit(part, None)
                count += len(part)
        elif file.model is None or not model_files.has_learned_rows(model_files.check_model_type(file.model, model)):
            count = _learn_new_model(file, model, task)
        else:
            trained, count = model_files.check_model_type(file.model, model), 0
            for part, labels in read_ahead(_read_labelled(trained, task, [])):
                trained.partial_fit(_prepare_rows(trained, part), labels)
                count += len(labels)
        model_files.refresh_corrections(file.model, replace(task, paths=refresh_from))
    return UpdateResult(file.model, count)


def _read_labelled(trained: FileModel, task: FileTask, places: list[RowPlaces]) -> Iterator[tuple[InputRows, Array]]:
    """Yield rows and their labels; of models with several labels all at once, each set of labels as it is counted."""
    if hasattr(trained, "separator_"):
        rows, held = read_label_sets(trained, task, places)
        yield rows, view_labels(trained).join_labels(held)
    else:
        adapted = task.adapt_to(trained)
        yield from model_files.read_labelled_rows(trained, adapted.open(), adapted, places)


def _check_texts(trained: FileModel) -> TextClassifier:
    """The model, which takes texts without label; others raise an error."""
    if not isinstance(trained, priory.TextClassifier) or hasattr(trained, "separator_"):
        raise KindError("rows without label are for models of texts with one label each; label them, or leave them out")
    return trained


def _read_unlabelled(trained: FileModel, task: FileTask) -> Iterator[InputRows]:
    """Yield texts without label."""
    columns = model_files.get_model_columns(trained)
    rows = task.open_for(columns)
    for chunk in rows.read_chunks(model_files.find_needed_columns(rows, columns)):
        yield columns.read_input_rows(chunk)


def forget(
    model: PathLike,
    paths: Paths | FileTask,
    *,
    refresh_from: Paths = (),
    wait: float | None = None,
    receipt: ReceiptFiles | None = None,
    unlabelled: bool = False,
    **given: Unpack[FileOptions],
) -> UpdateResult:
    """Make a model file as if it had never learned the rows of files: all of them, or none if one was never learned.

    Parameters
    ----------
    model : the model file
    paths : one path or several, or a FileTask
    refresh_from : one path or several, optional
        Rows that the model still knows, to fit its corrections to again.
    wait : float, optional
        How many seconds to wait while others change the file, before `priory.errors.FileBusyError` is raised.
    receipt : ReceiptFiles, optional
        Where a receipt is written, and what it is signed with.
    unlabelled : bool
        Whether the rows are texts that were learned without label.
    **given
        The target and how the files are read, as for `FileTask`.
    """
    task, count, issued = model_files.make_task(paths, given), 0, None
    with _lock_model_file(model, wait, task) as file:
        trained, places = _check_exists(file, model), list[RowPlaces]()
        if unlabelled:
            known = _check_texts(trained)
            texts = [text for part in _read_unlabelled(known, task) for text in part]
            return UpdateResult(known.forget(texts, None), len(texts))
        parts = list(_read_labelled(trained, task, places))
        if not parts and (task.where or receipt is not None):
            wanted = " and ".join(f"{name} = {text!r}" for name, text in task.where.items()) or "a label"
            raise DataError(f"{task.names[0]}: no row has {wanted}; nothing was forgotten")
        if parts:
            part, labels = model_files.join_labelled_rows(parts)  # all at once, so that sums are rounded once
            try:
                ready = _prepare_rows(trained, part)
                if receipt is None:
                    trained.forget(ready, labels)
                else:
                    book = receipt.open_book(model, trained)
                    issued = book.forget(trained, ready, labels, reason=receipt.reason)
            except NotLearnedError as error:
                raise model_files.locate_unlearned_row(error, places, str(trained.target_)) from None
            count = len(labels)
        model_files.refresh_corrections(trained, replace(task, paths=refresh_from))
        if receipt is not None and issued is not None:
            receipt.write(issued)
    return UpdateResult(trained, count, issued)


def merge(
    models: Sequence[ModelOrPath], *, refresh_from: Paths | FileTask = (), **given: Unpack[FileOptions]
) -> TableOrTextClassifier:
    """Add models: the result is the model that would have learned the rows of all of them.

    Parameters
    ----------
    models : sequence of model files or models
    refresh_from : one path or several, or a FileTask, optional
        Rows that the models have learned, to fit the corrections of the new model to.
    **given
        Their target and how the files are read, as for `FileTask`.
    """
    task = model_files.make_task(refresh_from, given)
    with task.callbacks.activity("merging the models"):
        first, *others = (model_files.load_classifier(model, task.key, several=True) for model in models)
        merged = first.merge(*others)
        drop_note(merged, "receipts")  # they are the first model's
    model_files.refresh_corrections(merged, task)
    return merged


@contextmanager
def _lock_model_file(path: PathLike, wait: float | None, task: FileTask) -> Iterator[Updated]:
    """Lock and open a model file; a long wait is noted.

    Files are read while the lock is held, because the meaning of their cells depends on the columns that the model has.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder; give a model file", os.fspath(path))
    longest = float("inf") if wait is None else wait
    with ExitStack() as stack:
        try:
            file = stack.enter_context(updating(path, wait=min(MAX_SILENT_WAIT_SECONDS, longest), key=task.key))
        except FileBusyError:
            if longest <= MAX_SILENT_WAIT_SECONDS:
                raise
            task.callbacks.notify(f"{os.fspath(path)}: another process is changing it; waiting until it is done")
            file = stack.enter_context(updating(path, wait=longest - MAX_SILENT_WAIT_SECONDS, key=task.key))
        yield file


def _check_exists(file: Updated, path: PathLike) -> FileModel:
    if file.model is None:
        raise FileNotFoundError(2, "no such model; train one with priory train", os.fspath(path))
    return model_files.check_fitted(model_files.check_model_type(file.model, path), path)


def _prepare_rows(model: FileModel, rows: InputRows) -> Any:
    """Convert rows to the form that the model reads fastest."""
    return rows if model_files.is_regression(model) else make_model_rows(rows)


def _learn_new_model(file: Updated, path: PathLike, task: FileTask) -> int:
    from priory.workflows.training import train  # the other updates start without what training needs

    reason = "no such model"
    if file.model is not None:
        reason, task = "it knows no rows any more", task.adapt_to(file.model)
    result = train(task, judge=False)
    file.model = result.model
    families = ", ".join(f"{name} ({family})" for name, family in result.families.items())
    task.callbacks.notify(
        f"{os.fspath(path)}: {reason}; created one that predicts {result.model.target_!r} from {families}"
    )
    return result.n_rows
