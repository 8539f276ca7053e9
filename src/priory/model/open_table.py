"""A mutable model of a table for single rows, which are dicts from column to cell.

Rows are stored as tuples of cells, in the order of the blocks of the schema. Log-likelihoods of cells are computed from
counts that change row by row (`priory.families.open_columns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isinf, isnan, nan
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel.rows import hash_numbers
from priory.core.content_hash import WORD_MASK, hash_bytes, hash_value, scramble_number
from priory.core.input_guard import is_valid_text, name_cells
from priory.core.value_counts import CategoricalCells, encode_values
from priory.families.open_columns import ColumnGuard, OpenColumns
from priory.model.cells import ZERO_HASH, Cells, LabelCells, NumberCells, TextCells, hash_column_name
from priory.model.model_statistics import ModelStatistics, measure_text_length
from priory.model.open_model import OpenModel, OpenPrior, RowEvidence
from priory.model.schema import ColumnBlock, instantiate_family, split_row
from priory.model.table_model import Model
from priory.tables.table import MAX_EXACT_INTEGER
from priory.text.normal_forms import Document
from priory.text.text_model import OpenCounts

MAX_LABEL_HASHES = 100_000  # size of the cache of label hashes
BYTES_PER_CELL = 80

SingleCell = float | str | None  # NaN is a missing number, None a missing label, "" a missing text
SingleRow = tuple[SingleCell, ...]


@dataclass
class OpenText:
    """A column of texts."""

    counts: OpenCounts
    n: Array  # (classes,): number of texts of each class
    position: int  # among the cells of a row
    part: int  # among the parts of the evidence

    def learn(self, document: str, group: int) -> None:
        """Add a text."""
        self.counts.learn(document, group)
        self.n[group] += 1

    def log_likelihood(self, row: SingleRow) -> Array:
        """log p(text | class), (classes,); zero if the text is missing."""
        text = row[self.position]
        assert isinstance(text, str)
        return self.counts.log_likelihood(text) if text else np.zeros(len(self.n))


class ClassGuard:
    """Decides whether rows of one class can be forgotten, from the cells of its numbers and labels that are left."""

    def __init__(self, blocks: Sequence[ColumnBlock], parts: Sequence[Any], group: int) -> None:
        self.guards: list[tuple[slice, bool, list[ColumnGuard]]] = []  # for each block, one for every candidate
        start = 0
        for block, records in zip(blocks, parts, strict=True):
            place, start = slice(start, start + len(block.names)), start + len(block.names)
            if block.kind != "text":
                families = map(instantiate_family, block.candidates)
                guards = [family.guard(record, group) for family, record in zip(families, records, strict=True)]
                self.guards.append((place, block.kind == "number", guards))

    def allows(self, row: SingleRow) -> bool:
        """Whether the row can be subtracted from the statistics."""
        return all(guard.allows(cells) for cells, guards in self._split_row(row) for guard in guards)

    def count(self, row: SingleRow, rows: int) -> None:
        """Add a row ``rows`` times; -1 subtracts it."""
        for cells, guards in self._split_row(row):
            for guard in guards:
                guard.count(cells, rows)

    def _split_row(self, row: SingleRow) -> Iterator[tuple[Any, list[ColumnGuard]]]:
        """The cells of each block with its guards."""
        for place, is_number, guards in self.guards:
            yield np.array(row[place], dtype=float) if is_number else row[place], guards


class OpenTable(OpenModel[SingleRow]):
    """A `Model` that learns, forgets and scores row by row.

    ``new_columns`` controls columns that are not in the schema.
    """

    def __init__(self, model: Model, new_columns: str) -> None:
        self.schema, self.blocks, self.known_names = model.schema, model.schema.blocks, frozenset(model.schema.names)
        self.new_columns = new_columns
        self.columns = [(name, block.kind) for block in self.blocks for name in block.names]
        self.empty_names = self.known_names - {name for name, _ in self.columns}
        self.parts = 1 + np.concatenate(model.schema.find_places())  # (columns,): the part of each column
        self.prior = OpenPrior(model.statistics.n, model.class_prior)
        self.texts = list(_open_texts(model))
        self.families: list[tuple[list[int], OpenColumns]] | None = None  # positions of their cells, and the columns
        self.restart(model.statistics)
        self.rows_left = 0.0  # number of rows until families are chosen again
        self._hashes: dict[tuple[int, str], int] = {}  # cache of label hashes
        self._numbers = [j for j, (_, kind) in enumerate(self.columns) if kind == "number"]
        self._others = [(j, kind) for j, (_, kind) in enumerate(self.columns) if kind != "number"]
        self._keys = [
            hash_column_name(name) ^ (int(ZERO_HASH) if kind == "number" else 0) for name, kind in self.columns
        ]
        self._number_keys = np.array([self._keys[j] for j in self._numbers], dtype=np.uint64)

    @staticmethod
    def can_open(model: Model) -> bool:
        """Whether the cost of a row depends only on the row: labels are strings, and texts are counted by words.

        Families with declared prior shares of values are excluded, because they reject other values.
        """
        for block, records in zip(model.schema.blocks, model.statistics.parts, strict=True):
            if not all(instantiate_family(candidate).accepts_new_values for candidate in block.candidates):
                return False
            if block.kind == "label" and not all(isinstance(counts.values[0], str) for counts in records[0]):
                return False
            if block.kind == "text":
                text = block.text_family().build_model(model.estimate)
                if not OpenCounts.can_open(text, records[0]):
                    return False
        return bool(model.schema.blocks)

    # -- reading -------------------------------------------------------------------------------------------------

    def read_row(self, x: object, learns: bool) -> SingleRow | None:
        """Convert a dict to a row; None if a column is new, or a cell is not of the column's kind."""
        if not isinstance(x, Mapping):
            return None
        cells: list[SingleCell] = []
        n_found = 0
        for name, kind in self.columns:
            value = x.get(name)
            n_found += value is not None
            cell = _read_cell(value, kind)
            if cell is _UNREADABLE:
                return None
            cells.append(cell)  # type: ignore[arg-type]  # not unreadable
        # some columns of the row are unknown: parts of dates, or columns to ignore
        if n_found < len(x):
            if learns and any(x.get(name) is not None for name in self.empty_names):
                return None  # the first cell of a column that was empty until now
            split = split_row(name_cells(x), self.schema, learns)
            if split is not x:
                return self.read_row(split, learns)
            if not self._ignores_other_columns(x, learns):
                return None
        if learns and self.new_columns == "error" and not x.keys() >= self.known_names:
            return None
        return tuple(cells)

    def _ignores_other_columns(self, x: Mapping[object, object], learns: bool) -> bool:
        """Whether columns that the model does not know can be ignored."""
        known = {name for name, _ in self.columns}
        return not learns or self.new_columns == "ignore" or all(x[name] is None for name in x.keys() - known)

    def hash_row(self, row: SingleRow) -> int:
        total: int = hash_numbers(np.array([row[j] for j in self._numbers], dtype=float), self._number_keys)
        for j, kind in self._others:
            value = row[j]
            if value is not None and (value or kind == "label"):
                assert isinstance(value, str)
                total += self._hash_string(j, value, kind)
        return total & WORD_MASK

    def _hash_string(self, column: int, value: str, kind: str) -> int:
        """The contribution of a label or a text to the hash of its row."""
        if kind == "text":
            return scramble_number(hash_bytes(value.encode()) ^ self._keys[column])
        known = self._hashes.get((column, value))
        if known is None:
            if len(self._hashes) >= MAX_LABEL_HASHES:
                self._hashes.clear()
            known = self._hashes[column, value] = scramble_number(hash_value(value) ^ self._keys[column])
        return known

    def make_cells(self, rows: Sequence[SingleRow]) -> list[Cells]:
        columns = list(zip(*rows, strict=True))
        cells, start = [], 0
        for block in self.blocks:
            cells.append(_make_block(block, columns[start : start + len(block.names)], len(rows)))
            start += len(block.names)
        return cells

    def measure_row(self, row: SingleRow) -> int:
        texts = [row[text.position] for text in self.texts]
        return BYTES_PER_CELL * len(row) + sum(len(text) for text in texts if isinstance(text, str))

    # -- learning ------------------------------------------------------------------------------------------------

    def restart(self, statistics: ModelStatistics) -> None:
        self._parts = statistics.parts
        self._guards: dict[int, ClassGuard] = {}  # of the classes with forgotten rows
        self._unguarded: dict[int, list[SingleRow]] = {}  # rows of each class that its guard has not counted

    def learn(self, row: SingleRow, group: int) -> None:
        self._unguarded.setdefault(group, []).append(row)
        for text in self.texts:
            if row[text.position]:
                text.learn(row[text.position], group)  # type: ignore[arg-type]
        self._count(row, group, 1.0)

    def forget(self, row: SingleRow, group: int, is_new: bool) -> bool:
        guard = self._find_guard(group)
        if not guard.allows(row) or not self._forget_texts(row, group):
            return False
        guard.count(row, -1)
        self._count(row, group, -1.0)
        if not is_new:
            self.families = None  # they were chosen from rows that included this one
        return True

    def _find_guard(self, group: int) -> ClassGuard:
        """The guard of a class, which has counted all of its rows."""
        guard = self._guards.get(group)
        if guard is None:
            guard = self._guards[group] = ClassGuard(self.blocks, self._parts, group)
        for row in self._unguarded.pop(group, ()):
            guard.count(row, 1)
        return guard

    def _forget_texts(self, row: SingleRow, group: int) -> bool:
        """Forget the texts of a row; return False, changing nothing, if one of them cannot have been learned."""
        texts = [(text, row[text.position]) for text in self.texts if row[text.position]]
        for done, (text, document) in enumerate(texts):
            if text.n[group] < 1 or not text.counts.forget(document, group):  # type: ignore[arg-type]
                for earlier, forgotten in texts[:done]:
                    earlier.learn(forgotten, group)  # type: ignore[arg-type]
                return False
            text.n[group] -= 1
        return True

    def _count(self, row: SingleRow, group: int, rows: float) -> None:
        self.prior.count(group, rows)
        if self.families is not None:
            # families are chosen again if a value does not fit, or after enough rows
            self.rows_left -= 1
            fit = [columns.add([row[j] for j in places], group, rows) for places, columns in self.families]
            if not all(fit) or self.rows_left < 0:
                self.families = None

    # -- scoring -------------------------------------------------------------------------------------------------

    @property
    def needs_record(self) -> bool:
        """Whether families must be chosen before ``log_joint``."""
        return self.families is None

    def follow_record(self, model: Model, share: float) -> None:
        """Choose families from the statistics of all rows, until more than ``share`` of the rows have changed."""
        self.families, self.rows_left = self._open_families(model), share * float(self.n.sum())

    def _open_families(self, model: Model) -> list[tuple[list[int], OpenColumns]]:
        """Mutable columns of each family with the positions of their cells; empty with point estimates."""
        if model.estimate != "predictive":
            return []
        # the position of the first cell of each block in a row
        starts = np.cumsum([0, *(len(block.names) for block in self.blocks)])
        opened = []
        for choice in model.choices():
            if self.blocks[choice.block].kind != "text":
                places = (starts[choice.block] + choice.positions).tolist()
                opened.append((places, choice.family.open(choice.statistics)))
        return opened

    def log_joint(self, row: SingleRow) -> Array | None:
        if not self.families and len(self.texts) < len(self.columns):
            return None
        joint = self.prior.log_declared()
        for places, columns in self.families or ():
            terms = columns.terms([row[j] for j in places])
            if terms is None:
                return None
            joint = joint + terms.values.sum(axis=0)
        for text in self.texts:
            joint = joint + text.log_likelihood(row)
        return joint

    def evidence(self, row: SingleRow) -> RowEvidence:
        values, lengths = np.empty((len(self.n), 1 + len(self.texts))), np.ones(1 + len(self.texts))
        values[:, 0] = self.prior.log_estimated()
        for place, text in enumerate(self.texts, 1):
            values[:, place], document = text.log_likelihood(row), row[text.position]
            assert isinstance(document, str)
            lengths[place] = measure_text_length(document)
        return RowEvidence(np.array([0, *(1 + text.part for text in self.texts)]), values, lengths)

    def column_evidence(self, row: SingleRow) -> RowEvidence | None:
        """Log-likelihood of the class prior, the texts and every column; None if the full statistics are needed."""
        if not self.families and len(self.texts) < len(self.columns):
            return None
        found = self.evidence(row)
        parts, values = [found.parts], [found.values]
        for places, columns in self.families or ():
            terms = columns.terms([row[j] for j in places])
            if terms is None:
                return None
            if terms.columns:
                parts.append(self.parts[[places[j] for j in terms.columns]])
                values.append(terms.values.T)
        # columns have length 1; texts come first, with their lengths
        lengths = np.ones(sum(map(len, parts)))
        lengths[: len(found.lengths)] = found.lengths
        return RowEvidence(np.concatenate(parts), np.concatenate(values, axis=1), lengths)

    def list_coded_cells(self, row: SingleRow) -> Sequence[object]:
        return [cell for cell, (_, kind) in zip(row, self.columns, strict=True) if kind != "text"]

    def list_texts(self, row: SingleRow) -> Sequence[str]:
        return [text for text in (row[column.position] for column in self.texts) if isinstance(text, str)]


_UNREADABLE = object()


def _read_cell(value: object, kind: str) -> object:
    """Convert a cell; `_UNREADABLE` if it is of another kind, or needs further checks."""
    if isinstance(value, np.generic):
        value = value.item()
    if kind == "number":
        if value is None:
            return nan
        if isinstance(value, float):
            return nan if value != value else _UNREADABLE if isinf(value) else value
        return float(value) if isinstance(value, int) and abs(value) <= MAX_EXACT_INTEGER else _UNREADABLE
    if value is None or (isinstance(value, float) and isnan(value)):
        return "" if kind == "text" else None
    return value if isinstance(value, str) and is_valid_text(value) else _UNREADABLE


def _open_texts(model: Model) -> Iterator[OpenText]:
    position = 0
    for block, records, places in zip(
        model.schema.blocks, model.statistics.parts, model.schema.find_places(), strict=True
    ):
        if block.kind == "text":
            counts = OpenCounts(block.text_family().build_model(model.estimate), records[0])
            yield OpenText(counts, records[0].n.copy(), position, int(places[0]))
        position += len(block.names)


def _make_block(block: ColumnBlock, columns: Sequence[Sequence[SingleCell]], n_rows: int) -> Cells:
    if block.kind == "text":
        texts: list[Document] = [text for text in columns[0] if isinstance(text, str)]
        return TextCells(texts)
    if block.kind == "number":
        return NumberCells(np.array(columns, dtype=float).T)
    encoded = [encode_values(np.array(column, dtype=object)) for column in columns]
    return LabelCells(CategoricalCells.from_encoded_columns(encoded, n_rows))
