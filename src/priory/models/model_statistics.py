"""What a classifier has learned: the rows of each class, and a record for every part of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from priory.core.registration import find_axis_length, register_record
from priory.core.statistics import ROW_SUM_TOLERANCE, Statistics, is_increasing
from priory.core.typing import Array
from priory.errors import KindError
from priory.models.cells import Cells
from priory.models.row_sample import RowSample
from priory.models.schema import Schema, instantiate_family


@register_record("Seen", axes={"classes": "c", "n": "c"}, dtypes={"classes": ""})
@dataclass(frozen=True, eq=False)
class ModelStatistics(Statistics):
    """The rows of each class, and for each block of columns one record for every candidate family."""

    frame_fields: ClassVar[tuple[str, ...]] = ("classes",)

    classes: Array  # (classes,), sorted
    n: Array  # (classes,), the weight of the rows of each class
    parts: tuple[Any, ...]  # of a table: parts[block][candidate] is a record
    sample: RowSample | None = None  # rows to derive corrections from

    def find_fault(self) -> str | None:
        if len(self.n) == 0 or not is_increasing(self.classes):
            return "the classes are not sorted, or one of them is there twice"
        for part in _flatten_parts(self.parts):
            if not isinstance(part, Statistics) or find_axis_length(part, "c") != len(self.n):
                return "a part has other classes than the whole"
            if not (self.n + ROW_SUM_TOLERANCE * (1 + self.n.max()) >= _count_rows(part).T).all():
                return "a part has seen more rows than there were"
        if self.sample is not None and not _can_hold(self.n, self.sample):
            return "it keeps rows that it has not learned"
        return None

    def align(self, other: ModelStatistics) -> tuple[ModelStatistics, ModelStatistics]:
        """Both records over the classes of either."""
        if np.array_equal(self.classes, other.classes):
            return self, other
        if (self.classes.dtype.kind in "OUS") != (other.classes.dtype.kind in "OUS"):
            raise KindError(
                f"classes {self.classes.tolist()[:3]} and {other.classes.tolist()[:3]} are of different types; "
                "use strings or numbers for all labels."
            )
        classes = np.union1d(self.classes, other.classes)
        return self._expand_classes(classes), other._expand_classes(classes)

    def _expand_classes(self, classes: Array) -> ModelStatistics:
        wide = self.regroup_classes(np.searchsorted(classes, self.classes), len(classes))
        return replace(wide, classes=classes)


def _can_hold(n: Array, sample: RowSample) -> bool:
    """Whether the rows of a sample can be among ``n`` rows of each class."""
    kept = sample.n
    return len(kept) <= len(n) and bool((kept <= n[: len(kept)] + ROW_SUM_TOLERANCE * (1 + n.max())).all())


def _count_rows(record: Any) -> Array:
    """The rows that a record has seen: (classes,) or (classes, columns)."""
    return np.asarray(record.n + getattr(record, "outside", 0.0))


def _flatten_parts(parts: tuple[Any, ...]) -> Iterator[object]:
    for part in parts:
        if type(part) is tuple:
            yield from _flatten_parts(part)
        else:
            yield part


def observe_cells(
    schema: Schema, blocks: Sequence[Cells], classes: Array, group: Array, weight: Array | None
) -> ModelStatistics:
    """The statistics of rows given as blocks of cells; ``group`` (rows,) is the class number of each row."""
    group = np.ascontiguousarray(group, dtype=np.int32)
    n = np.bincount(group, weight, minlength=len(classes)).astype(float)
    parts = tuple(
        tuple(instantiate_family(c).observe(cells.data, group, len(classes), weight) for c in block.candidates)
        for block, cells in zip(
            schema.blocks, blocks, strict=False
        )  # a table of empty columns has a block of no columns
    )
    return ModelStatistics(classes, n, parts)


def make_empty_statistics(schema: Schema, classes: Array) -> ModelStatistics:
    """The zero of the algebra: no rows learned."""
    cells = [block.make_missing_cells(0) for block in schema.blocks]
    return observe_cells(schema, cells, classes, np.zeros(0, dtype=np.int32), None)


def add_empty_blocks(schema: Schema, statistics: ModelStatistics) -> ModelStatistics:
    """The record with an empty part for every block of the schema that it does not have yet."""
    known, sample = len(statistics.parts), statistics.sample
    empty = make_empty_statistics(schema, statistics.classes)
    if sample is not None:
        missing = tuple(block.make_missing_cells(len(sample)) for block in schema.blocks[len(sample.blocks) :])
        sample = replace(sample, blocks=sample.blocks + missing)
    return replace(statistics, parts=statistics.parts + empty.parts[known:], sample=sample)
