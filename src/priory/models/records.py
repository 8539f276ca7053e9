"""The statistics of one candidate of a block: one record for all columns, or a tuple with one for each column."""

from __future__ import annotations

import numpy as np

from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.families.value_counts import ValueCounts

BlockRecord = Statistics | tuple[ValueCounts, ...]


def take_columns(record: BlockRecord, columns: Array) -> BlockRecord:
    """Select columns of the block."""
    return tuple(record[int(j)] for j in columns) if isinstance(record, tuple) else record.take_columns(columns)


def place_columns(record: BlockRecord, other: BlockRecord, places: Array) -> BlockRecord:
    """Replace the columns at ``places`` by the columns of another record of the same family."""
    if not isinstance(record, tuple):
        assert not isinstance(other, tuple)
        return record.place_columns(other, places)
    assert isinstance(other, tuple)
    columns = list(record)
    for place, counts in zip(places.tolist(), other, strict=True):
        columns[place] = counts
    return tuple(columns)


def pool_records(record: BlockRecord) -> BlockRecord:
    """Pool all classes into one."""
    return tuple(counts.pool_classes() for counts in record) if isinstance(record, tuple) else record.pool_classes()


def find_filled(record: BlockRecord) -> Array:
    """Whether each column has at least one learned cell, (columns,)."""
    if isinstance(record, tuple):
        return np.array([len(counts.values) > 0 for counts in record], dtype=bool)
    return record.find_filled_columns()
