"""Learning from a table inside its database: one GROUP BY for each column, and the record is the one of ``fit``.

    model = NaiveBayes(memory=0, calibrate=False)
    priory.workflows.databases.fit(model, "duckdb:///sales.db?table=orders", target="paid")

A record is a function of the distinct cells of each class and of how often each occurs, so these are all that leaves
the database. Two kinds of columns are read cell by cell: doubles, whose distinct values are about as many as the rows,
and all columns where the model keeps a sample of rows (``memory``), in one pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array
from sklearn.utils.validation import check_is_fitted

from priory.core.content_hash import hash_value
from priory.errors import DataError, KindError
from priory.estimators.label_encoding import encode_labels
from priory.estimators.naive_bayes import NaiveBayes
from priory.learning.counting import PartCounter, check_countable
from priory.learning.learned import Learned, settle
from priory.learning.table_rows import TableRows
from priory.model.column_profile import ColumnProfile, profile_columns
from priory.model.model_statistics import ModelStatistics
from priory.model.table_model import make_empty_statistics, observe_cells, rearrange_blocks
from priory.sources.column_types import MAX_NUMERIC_LABELS, ColumnOptions, find_declared_family
from priory.storage import updating
from priory.tables.dates import find_source_column
from priory.tables.table import Table
from priory.tables.table_reading import read_table
from priory.workflows.database_tables import CellCounts, DatabaseTable, open_table
from priory.workflows.model_files import FileTask, count_known_rows, declare_class_prior
from priory.workflows.partitions import ModelT, evaluate_partitions, fit_partitions, forget_partitions
from priory.workflows.row_counting import TrainingOptions
from priory.workflows.training import TrainingResult, describe_families
from priory.workflows.updates import UpdateResult


def fit(model: ModelT, url: str, target: str, where: Mapping[str, str] | None = None) -> ModelT:
    """Learn from a table of a database; the model equals ``model.fit`` with all rows that have a label.

    Parameters
    ----------
    model : estimator
        `priory.NaiveBayes`, which counts inside the database with ``memory=0, calibrate=False``. Other models, and
        models that keep rows, read the rows in one pass.
    url : str
        Such as ``duckdb:///sales.db?table=orders``, ``sqlite:///...`` or ``postgresql://...``.
    target : str
        The column to predict; all other columns are learned from.
    where : dict of column to text, optional
        Only the rows with these texts in these columns.

    Returns
    -------
    model
    """
    with open_table(url, where) as rows:
        rows.check_column(target)
        return learn_table(model, rows, target)


def forget(model: ModelT, url: str, target: str, where: Mapping[str, str] | None = None) -> ModelT:
    """Forget rows of a table, as if they had never been learned, with the parameters of `fit`."""
    with open_table(url, where) as rows:
        rows.check_column(target)
        return unlearn_table(model, rows, target)


def learn_table(model: ModelT, rows: DatabaseTable, target: str) -> ModelT:
    """Learn from an open table."""
    check_countable(model)
    counter: Any = model.counter()
    if not counts_inside(counter):
        return fit_partitions(model, rows.select_labelled(target), target, None)
    return model.adopt(count_table(counter, rows, target, is_known=False))


def unlearn_table(model: ModelT, rows: DatabaseTable, target: str) -> ModelT:
    """Forget rows of an open table."""
    check_countable(model)
    check_is_fitted(model)
    counter: Any = model.counter(known=True)
    if not counts_inside(counter):
        return forget_partitions(model, rows.select_labelled(target), target, None)
    return model.subtract(count_table(counter, rows, target, is_known=True))


def counts_inside(counter: object) -> bool:
    """Whether nothing but counts is needed: a table is learned, and no rows are kept."""
    return isinstance(counter, PartCounter) and isinstance(counter.rows, TableRows) and not counter.rows.memory


def count_table(counter: PartCounter, rows: DatabaseTable, target: str, is_known: bool) -> Learned | None:
    """Count a table into a part, column by column; None if no row has a label."""
    names = tuple(name for name in rows.names if name != target)
    found = rows.count_values(target, target)
    if not found.labels:
        return None
    classes, group = encode_labels(found.labels, None, False)
    n = np.bincount(group, found.times, len(classes)).astype(float)
    places = dict(zip(found.labels, group.tolist(), strict=True))
    parts, profiles = list[tuple[TableRows, ModelStatistics]](), dict[str, ColumnProfile]()
    for name in names:
        counted = rows.count_values(name, target)
        if counted.labels:
            table = read_table(pa.table({name: counted.cells}))
            own = {} if is_known else weigh_profiles(table, counted)
            profiles |= own
            columns: Any = counter.rows if is_known else counter.rows.with_profiles(names, own)
            weight = np.array(counted.times, dtype=float)
            parts.append(
                (columns, observe_column(columns, table, classes, [places[c] for c in counted.labels], weight))
            )
    whole: Any = counter.rows if is_known else counter.rows.with_profiles(names, profiles)
    total = make_empty_statistics(whole.schema, classes)
    for columns, part in parts:
        total = total + rearrange_blocks(part, columns.schema, whole.schema)
    statistics = replace(total, n=n)
    return settle(Learned(whole, statistics), statistics)


def observe_column(columns: Any, table: Table, classes: Array, group: list[int], weight: Array) -> ModelStatistics:
    """The statistics of the cells of one column, each ``weight`` times (cells,); the others are missing."""
    batch = columns.read(table, "forget")[1] if columns.schema.blocks else table
    cells = columns.schema.read_cells(batch.add_missing_columns(columns.schema.names))
    return observe_cells(columns.schema, cells, classes, np.array(group, dtype=np.int32), weight)


def weigh_profiles(table: Table, counted: CellCounts) -> dict[str, ColumnProfile]:
    """The profile of a column, or of the parts of its dates, in which each cell counts as often as it occurs."""
    found = profile_columns(table)
    times = np.array(counted.times, dtype=np.int64)
    for name, profile in found.items():
        if profile.kind == "label" and len(found) == 1:
            hashes = np.array([hash_value(cell) for cell in counted.cells.to_pylist()], dtype=np.uint64)
            kept = hashes < np.uint64(profile.limit)
            total = np.bincount(np.searchsorted(profile.hashes, hashes[kept]), times[kept], len(profile.hashes))
            found[name] = replace(profile, times=total.astype(np.int64))
    return found


# -- ``priory train`` and ``priory forget`` for a table of a database --------------------------------------------------


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
        declare_class_prior(model, options.class_prior)
        model.target_, model.missing_ = target, ()
        learned = {part for known in model.schema_ for part in (known, known.rpartition(" (")[0])}  # dates have parts
        n_rows, empty = int(model.class_count_.sum()), [name for name in names if name not in learned]
        result = TrainingResult(model, n_rows, describe_families(model), empty, source=url.partition("?")[0])
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
    labels = set(rows.count_values(target, target).labels)
    if rows.types[target] != "text" and len(labels) > MAX_NUMERIC_LABELS and not options.labels_as_text:
        raise DataError(
            f"the target {target!r} has {len(labels):,} different values; use --classes to take each for a class, or "
            "export the rows to a file to predict a number"
        )
    if len(labels) < 2:
        raise DataError(f"the target {target!r} has {len(labels)} different values; give rows of two or more classes")


def make_model(rows: DatabaseTable, columns: ColumnOptions, options: TrainingOptions) -> NaiveBayes:
    """An empty model with the declared families."""
    if options.text_model is not None or options.max_tokens is not None:
        raise DataError("--model and --max-words are for files; export the rows, or leave the option out")
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
