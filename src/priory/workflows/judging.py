"""Cross-validation of a model on rows that it has learned: in folds, by groups or by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from priory.core.typing import Array
from priory.errors import DataError
from priory.sources.cell_parsing import cast_to_text, is_text_column, looks_like_date, looks_numeric

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores
    from priory.sources.column_types import InputRows
    from priory.workflows.model_files import TableOrTextClassifier

DEFAULT_FOLDS = 5
Split = tuple[Array, Array]  # rows to learn from, and rows to judge


@dataclass(frozen=True)
class JudgingOptions:
    """How learned rows are left out for cross-validation.

    Parameters
    ----------
    folds : int, optional
        The number of folds; by default the model's own choice, or five with groups or time.
    groups : str, optional
        A column: rows with the same value, such as one person, are left out together.
    time : str, optional
        A column of numbers or dates: rows are judged by a model of earlier rows only.
    """

    folds: int | None = None
    groups: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if self.groups is not None and self.time is not None:
            raise DataError("groups and time exclude each other; give one of them")
        if self.folds is not None and self.folds < 2:
            raise DataError(f"there are {self.folds} folds; give at least 2")

    @property
    def is_default(self) -> bool:
        return self == JudgingOptions()

    @property
    def side_columns(self) -> tuple[str, ...]:
        """The columns that are read in addition to the model's own."""
        return tuple(name for name in (self.groups, self.time) if name is not None)


class SideColumns:
    """Collects columns that the model does not use, while rows are read."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self._batches = tuple(dict.fromkeys(names)), list[pa.RecordBatch]()

    def add(self, batch: pa.RecordBatch) -> None:
        if self.names:
            self._batches.append(batch.select(list(self.names)))

    def get(self, name: str) -> pa.Array:
        """The cells of all rows."""
        return pa.Table.from_batches(self._batches)[name].combine_chunks()

    def get_texts(self, name: str) -> Array:
        """The cells of all rows as text; a missing one is empty."""
        return np.array(cast_to_text(self.get(name)).fill_null("").to_pylist(), dtype=object)


def make_splits(labels: Array, options: JudgingOptions, side: SideColumns) -> list[Split]:
    """The rows to learn from and to judge, for each fold."""
    from sklearn.model_selection import GroupKFold, TimeSeriesSplit

    from priory.estimators.folds import make_splitter

    n_folds = options.folds or DEFAULT_FOLDS
    if options.time is not None:
        order = np.argsort(read_times(side, options.time), kind="stable")
        if len(order) <= n_folds:
            raise DataError(f"there are {len(order)} rows for {n_folds} folds by time; give fewer folds")
        return [(order[train], order[test]) for train, test in TimeSeriesSplit(n_folds).split(order)]
    if options.groups is not None:
        groups = side.get_texts(options.groups)
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise DataError(f"column {options.groups!r} has one value only; give groups that can be left out")
        return list(GroupKFold(min(n_folds, n_groups)).split(groups, labels, groups))
    return list(make_splitter(n_folds, labels, 0).split(np.zeros((len(labels), 1)), labels))


def read_times(side: SideColumns, name: str) -> Array:
    """Read a column of numbers or ISO dates into an array that sorts by time."""
    column = side.get(name)
    if column.null_count or (is_text_column(column) and "" in column.to_pylist()):
        raise DataError(f"column {name!r} has missing cells; every row needs a time")
    if not is_text_column(column):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if all(looks_numeric(column).to_pylist()):
        return np.array(column.cast(pa.float64()))
    cells = column.to_pylist()
    is_sortable = all(looks_like_date(column).to_pylist()) and all(cell[4:5] in ("-", "/") for cell in cells)
    if not is_sortable:
        raise DataError(f"column {name!r} has neither numbers nor dates such as 2024-05-31; convert it")
    return np.array(cells)


def cross_validate(
    model: TableOrTextClassifier, rows: InputRows, labels: Array, options: JudgingOptions, side: SideColumns
) -> Scores:
    """Score learned rows, each predicted by a model from which it was subtracted."""
    if options.is_default:
        return model.evaluate(rows, labels)
    return model.evaluate(rows, labels, folds=make_splits(labels, options, side))
