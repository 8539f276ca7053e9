"""Audit partitioned rows for exact copies, conflicting labels, and groups on both sides of a split.

Workers hash the cells of each row, the engine counts equal hashes with its own ``groupby``, and only totals reach the
driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError, suggest_name
from priory.leakage.finders.duplicates import MAX_ROWS_PER_DISTINCT, format_chance_note, rate_copies
from priory.leakage.findings import Finding, Findings, Severity, clopper_pearson_interval
from priory.model.cells import Cells, LabelCells, NumberCells, hash_value
from priory.model.row_sample import hash_labelled_rows
from priory.tables.table import Table
from priory.tables.table_reading import read_table

HASH_COLUMNS = ("row", "label", "group", "train", "test")


@dataclass(frozen=True)
class AuditedColumns:
    """The columns compared between rows, and the columns of the label and the group."""

    features: tuple[str, ...]
    target: str | None
    groups: str | None

    def without_absent(self, names: Sequence[str]) -> AuditedColumns:
        """A copy for a table that may lack the label or the group."""
        return replace(
            self,
            target=self.target if self.target in names else None,
            groups=self.groups if self.groups in names else None,
        )

    def hash_rows(self, rows: Any, is_train: bool) -> dict[str, Array]:
        """Hash each row, its label and its group; ``train`` and ``test`` are 0 or 1. All arrays are (rows,)."""
        n_rows = len(rows)
        side = {"train": np.full(n_rows, int(is_train)), "test": np.full(n_rows, int(not is_train))}
        if not n_rows:
            return {name: np.zeros(0, dtype=np.int64) for name in HASH_COLUMNS}
        table = read_table(rows[list(self.features)] if hasattr(rows, "iloc") else rows.select(list(self.features)))
        return {
            # Spark has no unsigned integers: the same bits, signed
            "row": _hash_cells(table).view(np.int64),
            "label": _hash_column(rows, self.target, n_rows),
            "group": _hash_column(rows, self.groups, n_rows),
            **side,
        }


def _hash_cells(table: Table) -> Array:
    """(rows,): hash of the cells of each row; a string is hashed whole, even a text."""
    kinds = table.column_kinds()
    filled = [(place, name) for place, name in enumerate(table.names) if kinds[name] != "empty"]
    cells: list[Cells] = [
        NumberCells(table.numbers([place])) if kinds[name] == "number" else LabelCells(table.labels([place]))
        for place, name in filled
    ]
    # the label is hashed separately, so all rows get one class here
    no_class = np.array([""], dtype=object), np.zeros(table.rows, dtype=np.int64)
    return hash_labelled_rows([(name,) for _, name in filled], cells, *no_class)


def _hash_column(rows: Any, name: str | None, n_rows: int) -> Array:
    """(rows,): hash of each cell of a column; 0 where it is missing, or without such a column."""
    if name is None:
        return np.zeros(n_rows, dtype=np.int64)
    cells = rows[name].to_pylist() if hasattr(rows[name], "to_pylist") else rows[name].tolist()
    # hash each distinct value once; value != value holds for NaN
    known = {value: 0 if value is None or value != value else hash_value(value) for value in set(cells)}
    return np.array([known[value] for value in cells], dtype=np.uint64).view(np.int64)


@dataclass(frozen=True)
class CopyCounts:
    """Totals over all distinct rows."""

    train: int  # rows
    test: int
    distinct_train: int
    distinct: int
    labelled_train: int  # distinct pairs of a row and its label
    copied_test: int  # test rows that are in the training table too
    copied_kinds: int  # distinct ones of them
    torn_rows: int  # training rows that are equal but for their labels
    lost_rows: int  # of those, the ones that no model can predict

    @classmethod
    def of(cls, kinds: Mapping[str, Array]) -> CopyCounts:
        """Sum arrays over distinct rows: counts in either table, number of labels, count of the commonest label."""
        train, test, labels, largest = (kinds[name] for name in ("train", "test", "labels", "largest"))
        # all arrays are (distinct rows,)
        both, torn = (train > 0) & (test > 0), labels > 1
        counts = (
            train,
            test,
            train > 0,
            train + test > 0,
            labels,
            test[both],
            both,
            train[torn],
            (train - largest)[torn],
        )
        return cls(*(int(count.sum()) for count in counts))


@dataclass(frozen=True)
class GroupCounts:
    """Totals over all groups."""

    shared_test: int  # test rows whose group is in the training table too
    shared_kinds: int

    @classmethod
    def of(cls, members: Mapping[str, Array]) -> GroupCounts:
        """Sum arrays over groups: the rows of each group in either table."""
        shared = (members["train"] > 0) & (members["test"] > 0)
        return cls(int(members["test"][shared].sum()), int(shared.sum()))


def make_findings(copies: CopyCounts, groups: GroupCounts | None, columns: AuditedColumns) -> Findings:
    """Make findings of totals, the most severe first."""
    found = [*_find_copies(copies, columns), *(_find_groups(copies, groups, columns) if groups is not None else ())]
    return Findings(tuple(sorted(found, key=lambda finding: -finding.severity)))


def _find_copies(copies: CopyCounts, columns: AuditedColumns) -> Iterator[Finding]:
    # in a narrow table with many rows per distinct row, copies are expected by chance
    chance = 1.0 if copies.train + copies.test > MAX_ROWS_PER_DISTINCT * copies.distinct else None
    if copies.copied_test:
        share = copies.copied_test / copies.test
        yield Finding(
            rate_copies(share, chance),
            "duplicates",
            f"{share:.1%} of the test rows ({copies.copied_test:,}) are also in the training table exactly "
            f"({copies.copied_kinds:,} distinct){format_chance_note(chance)}",
            "Remove the copies from one side, then split by distinct rows.",
            interval=clopper_pearson_interval(copies.copied_test, copies.test),
        )
    # training rows beyond the first of each kind
    extra = copies.train - copies.distinct_train
    if extra:
        share = extra / copies.train
        split = "" if copies.test else "; a random split puts copies on both sides"
        agreed = f" ({copies.train - copies.labelled_train:,} with the same label)" if columns.target else ""
        yield Finding(
            Severity.LOW if copies.test else rate_copies(share, chance),
            "duplicates",
            f"{share:.1%} of the rows are exact copies: {extra:,}{agreed}{format_chance_note(chance) or split}",
            "Remove the copies before splitting, or keep them together when splitting (groups).",
            interval=clopper_pearson_interval(extra, copies.train),
        )
    if copies.torn_rows and columns.target:
        yield Finding(
            min(rate_copies(copies.torn_rows / copies.train, chance), Severity.MEDIUM),
            "conflicts",
            f"{copies.torn_rows:,} rows are equal in all columns but have different labels: "
            f"no model can predict {copies.lost_rows:,} of them",
            "Look at them: some labels are wrong, or a column is missing that distinguishes them.",
            interval=clopper_pearson_interval(copies.lost_rows, copies.train),
        )


def _find_groups(copies: CopyCounts, groups: GroupCounts, columns: AuditedColumns) -> Iterator[Finding]:
    if groups.shared_test:
        yield Finding(
            Severity.HIGH,
            "groups",
            f"{groups.shared_test / copies.test:.1%} of the test rows belong to a group that is also in the training "
            f"table by {columns.groups!r} ({groups.shared_kinds:,} values)",
            f"Keep each group on one side of the split: use GroupKFold, and audit with groups={columns.groups!r}.",
            columns=(str(columns.groups),),
            interval=clopper_pearson_interval(groups.shared_test, copies.test),
        )


def choose_audited_columns(names: Sequence[str], target: str | None, groups: str | None) -> AuditedColumns:
    """Compare rows by all columns but the target and the groups."""
    for name in (target, groups):
        if name is not None and name not in names:
            raise DataError(f"the table has no column {name!r}{suggest_name(name, names)}.")
    return AuditedColumns(tuple(name for name in names if name not in (target, groups)), target, groups)
