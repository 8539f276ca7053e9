"""Learning from a table inside its database: one GROUP BY for each column, and the record is the one of ``fit``.

    model = NaiveBayes(memory=0, calibrate=False)
    priory.workflows.databases.fit(model, "duckdb:///sales.db?table=orders", target="paid")

A record is a function of the distinct cells of each class and of how often each occurs, so these are all that leaves
the database. Two kinds of columns are read cell by cell: doubles, whose distinct values are about as many as the rows,
and all columns where the model keeps a sample of rows (``memory``), in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array
from sklearn.utils.validation import check_is_fitted

from priory.core.content_hash import hash_value
from priory.estimators.label_encoding import encode_labels
from priory.learning.counting import PartCounter, check_countable
from priory.learning.learned import Learned, settle
from priory.learning.table_rows import TableRows
from priory.model.column_profile import ColumnProfile, profile_columns
from priory.model.model_statistics import ModelStatistics, make_empty_statistics, observe_cells, rearrange_blocks
from priory.tables.table import Table
from priory.tables.table_reading import read_table
from priory.workflows.database_tables import CellCounts, DatabaseTable, open_table
from priory.workflows.partitions import ModelT, fit_partitions, forget_partitions


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
    with open_target_table(url, target, where) as rows:
        return learn_table(model, rows, target)


def forget(model: ModelT, url: str, target: str, where: Mapping[str, str] | None = None) -> ModelT:
    """Forget rows of a table, as if they had never been learned, with the parameters of `fit`."""
    with open_target_table(url, target, where) as rows:
        return unlearn_table(model, rows, target)


@contextmanager
def open_target_table(url: str, target: str, where: Mapping[str, str] | None) -> Iterator[DatabaseTable]:
    """Open a table that has a target."""
    with open_table(url, where) as rows:
        rows.check_column(target)
        yield rows


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
    found = rows.count_rows(target)
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
