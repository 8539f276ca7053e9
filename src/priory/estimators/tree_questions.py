"""What a tree that splits numbers asks of a table with labels: a number, or whether a label has one of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from priory.core.typing import Array
from priory.errors import DataError
from priory.models.table import Table
from priory.models.table_reading import read_table

MAX_VALUES_OF_A_COLUMN = 1000  # a column with more is an identifier


class Question(NamedTuple):
    """A column of the table, by its position, and the label that is asked for; None for a column of numbers."""

    column: int
    value: object = None


def read_labels(X: object) -> Table | None:
    """The table, if some of its cells are labels or it is made of dicts; None for numbers, which scikit-learn reads."""
    if issparse(X):
        return None
    cells = np.asarray(X)
    if cells.dtype.kind not in "OUS" or (cells.ndim == 2 and not any(isinstance(cell, str) for cell in cells.flat)):
        return None
    return read_table(X)


def list_questions(table: Table) -> list[Question]:
    """One question for each column of numbers, and one for each value of each column of labels."""
    questions = []
    for column, (name, kind) in enumerate(table.column_kinds().items()):
        values = table.labels([column]).values[0].tolist() if kind == "label" else [None]
        if len(values) > MAX_VALUES_OF_A_COLUMN:
            raise DataError(f"column {name!r} holds {len(values):,} different labels; leave it out.")
        questions += [Question(column, value) for value in values]
    return questions


def encode_questions(questions: Sequence[Question], table: Table, positions: Sequence[int]) -> Array:
    """(rows, questions): numbers as they are, and 1 where a label has the value; NaN where a cell is missing.

    ``positions`` says where each column that the questions know stands in the table.
    """
    encoded = np.empty((table.rows, len(questions)))
    for j, (column, value) in enumerate(questions):
        place = positions[column]
        if value is None:
            encoded[:, j] = table.numbers([place])[:, 0]
        else:
            cells = table.labels([place])
            answers = np.array([*(label == value for label in cells.values[0].tolist()), np.nan], dtype=float)
            encoded[:, j] = answers[cells.codes[:, 0]]  # the code of a missing cell, -1, points to the last
    return encoded
