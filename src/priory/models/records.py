"""The record of one candidate of a block, whatever its shape.

Most families keep one record of arrays (classes, columns) for a block; those that count values keep one record for each
column; a column of texts is a block of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

import numpy as np

from priory.bag_of_words.token_counts import TokenCounts
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.families.value_counts import ValueCounts

BlockRecord = Statistics | tuple[ValueCounts, ...]


@singledispatch
def take_columns(record: BlockRecord, columns: Array) -> BlockRecord:
    """The record of some columns of the block."""
    raise TypeError(f"{type(record).__name__} is not the record of a block.")


@take_columns.register
def _(record: Statistics, columns: Array) -> Statistics:
    arrays = {name: value for name, value in vars(record).items() if isinstance(value, np.ndarray)}
    return replace(record, **{name: value[..., columns] for name, value in arrays.items()})


@take_columns.register
def _(record: tuple, columns: Array) -> tuple[ValueCounts, ...]:  # type: ignore[type-arg]  # dispatch needs the class
    return tuple(record[int(j)] for j in columns)


@take_columns.register
def _(record: TokenCounts, columns: Array) -> TokenCounts:
    return record


def pool_records(record: BlockRecord) -> BlockRecord:
    """The record with all classes pooled into one."""
    return tuple(counts.pool_classes() for counts in record) if isinstance(record, tuple) else record.pool_classes()


@singledispatch
def find_filled(record: BlockRecord) -> Array:
    """(columns,): whether at least one cell of each column was learned."""
    raise TypeError(f"{type(record).__name__} is not the record of a block.")


@find_filled.register
def _(record: Statistics) -> Array:
    return np.asarray((record.n + getattr(record, "outside", 0.0)).any(axis=0))


@find_filled.register
def _(record: tuple) -> Array:  # type: ignore[type-arg]  # dispatch needs the class
    return np.array([len(counts.values) > 0 for counts in record], dtype=bool)


@find_filled.register
def _(record: TokenCounts) -> Array:
    return np.array([len(record) > 0])
