"""``priory train`` and ``priory forget`` for a table of a database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from priory.errors import DataError, KindError
from priory.estimators.naive_bayes import NaiveBayes
from priory.sources.column_types import MAX_NUMERIC_LABELS, ColumnOptions, find_declared_family
from priory.storage import updating
from priory.tables.dates import find_source_column
from priory.workflows.database_tables import DatabaseTable, open_table
from priory.workflows.databases import learn_table, unlearn_table
from priory.workflows.model_files import FileTask, count_known_rows, declare_class_prior
from priory.workflows.partitions import evaluate_partitions
from priory.workflows.row_counting import TrainingOptions
from priory.workflows.training import TrainingResult, describe_families
from priory.workflows.updates import UpdateResult


def train_table(task: FileTask, *, options: TrainingOptions) -> TrainingResult:
    """Learn from the table of a database that a task names; with ``memory=0`` it is counted inside."""
    url = get_url(task)
    with open_table(url) as found:
        target, names = find_columns(found, task.columns)
        rows = replace(found.select_columns((*names, target)), text_column=target)
        check_target(rows, target, task.columns)
        model = make_model(rows, task.columns, options)
        for note in describe_reading(model, rows, names):
            task.callbacks.notify(note)
        learn_table(model, rows, target)
        declare_class_prior(model, options.class_prior, options.class_weight)
        model.target_, model.missing_ = target, ()
        n_rows, empty = int(model.class_count_.sum()), [n for n in names if not is_filled(model, n)]
        result = TrainingResult(model, n_rows, describe_families(model), empty, [], source=url.partition("?")[0])
        if model.calibrate:
            result.scores = evaluate_partitions(model, rows.select_labelled(target), target)
    return result


def forget_table(path: str | os.PathLike[str], task: FileTask, *, receipt: object = None) -> UpdateResult:
    """Make a model file as if it had never learned the rows of a table that a task selects."""
    if receipt is not None:
        raise DataError("receipts are for rows of files; export the rows, or leave --receipt out")
    url = get_url(task)
    with updating(path, key=task.key) as file, open_table(url, task.where) as found:
        if not isinstance(file.model, NaiveBayes) or not hasattr(file.model, "statistics_"):
            raise KindError(f"{path}: is no trained model of a table; give one that priory train has written")
        target = task.columns.target or str(getattr(file.model, "target_", ""))
        names = [find_source_column(str(name), found.names) for name in file.model.feature_names_in_]
        rows = replace(found.select_columns((*dict.fromkeys(names), target)), text_column=target)
        before = count_known_rows(file.model)
        unlearn_table(file.model, rows, target)
        return UpdateResult(file.model, int(before - count_known_rows(file.model)))


def get_url(task: FileTask) -> str:
    """The only table of a task."""
    if len(task.names) > 1:
        raise DataError("a table of a database is read by itself; give one URL, and merge the models of several")
    return task.names[0]


def find_columns(rows: DatabaseTable, options: ColumnOptions) -> tuple[str, list[str]]:
    """The target and the columns to learn from."""
    if options.target is None:
        raise DataError(f"which column is the target? use --target with one of {', '.join(map(repr, rows.names))}")
    for name in (options.target, *options.types, *options.columns, *options.ignore):
        rows.check_column(name)
    names = [n for n in options.columns or rows.names if n != options.target and n not in options.ignore]
    if not names:
        raise DataError("the table has no column besides the target; there is nothing to learn from")
    return options.target, names


def check_target(rows: DatabaseTable, target: str, options: ColumnOptions) -> None:
    """Raise an error if the labels look like numbers to predict, or are all the same."""
    labels = set(rows.count_rows(target).labels)
    if rows.types[target] != "text" and len(labels) > MAX_NUMERIC_LABELS and not options.labels_as_text:
        raise DataError(
            f"the target {target!r} has {len(labels):,} different values; use --classes to take each for a class, or "
            "export the rows to a file to predict a number"
        )
    if len(labels) < 2:
        raise DataError(f"the target {target!r} has {len(labels)} different values; give rows of two or more classes")


def make_model(rows: DatabaseTable, columns: ColumnOptions, options: TrainingOptions) -> NaiveBayes:
    """An empty model with the declared families."""
    if options.textbook or options.text_model is not None or options.max_tokens is not None:
        raise DataError("--textbook, --model and --max-words are for files; export the rows, or leave the option out")
    kinds = {"label": "categorical", "text": "text"}
    families = {name: kinds.get(given, given) for name, given in columns.types.items() if name in rows.names}
    known = {name: family for name, family in families.items() if find_declared_family(family) is not None}
    return NaiveBayes(
        known or "auto",
        alpha=options.alpha,
        calibrate=False if options.plain or options.memory == 0 else "loo",
        memory=0 if options.plain else options.memory,
    )


def describe_reading(model: NaiveBayes, rows: DatabaseTable, names: Sequence[str]) -> Iterator[str]:
    """Say what is read besides counts."""
    if model.memory != 0:
        yield "reading the rows once, to keep some for corrections; --memory 0 counts inside the database"
        return
    yield f"counting inside the database, {len(names)} columns; no rows are kept, so answers are plain naive Bayes"
    doubles = [repr(name) for name in names if name in rows.doubles]
    if doubles:
        yield f"{', '.join(doubles)}: doubles, whose cells are read, because their sums are exact here only"


def is_filled(model: NaiveBayes, name: str) -> bool:
    """Whether a column of the table has a learned cell."""
    return any(name in (known, known.rpartition(" (")[0]) for known in model.schema_)
