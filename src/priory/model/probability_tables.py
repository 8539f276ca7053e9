"""Probability tables as in a textbook: P(class), and P(value | class) for every column with its formula.

A cell reads ``(3+1)/(5+3) = 0.5``: three of five rows, with one virtual example of each of three values. Also counts
the parameters of a model, with and without the naive assumption.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

from priory.core.display_table import DisplayTable, EstimateTable, format_cell, import_pandas, join_html
from priory.core.typing import Label
from priory.model.table_model import Model
from priory.text.text_model import TextModel

if TYPE_CHECKING:
    import pandas as pd

    from priory.text.token_counts import BagCounts


MAX_LOG2_CELLS = 1000  # 2 ** 1000 is still a float
MAX_TABLE_CLASSES = 12  # columns in the printed table; the data frame has all
MAX_TABLE_ROWS = 60  # values of one column in the printed table; the data frame has all


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One number of a table: the estimate for a value, or of a parameter, in a class."""

    column: str
    value: object
    label: Label
    count: float | None
    n: float | None
    estimate: float
    formula: str


@dataclass(frozen=True)
class ProbabilityTables(Mapping[str, DisplayTable]):
    """P(class) as ``class_prior``, and the table of every column by its name.

    ``print`` shows all of them, notebooks show HTML, and ``to_frame`` has one row for each number.
    """

    class_prior: DisplayTable
    columns: Mapping[str, DisplayTable]
    estimates: tuple[TableEntry, ...]

    def __getitem__(self, name: str) -> DisplayTable:
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(map(repr, list(self.columns)[:10]))}")
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._list_tables()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return join_html(self._list_tables())

    def to_html(self, max_columns: int | None = None) -> str:
        """The tables as HTML, without a style sheet."""
        shown = self._list_tables()[: None if max_columns is None else 1 + max_columns]
        return "".join(table.to_html() for table in shown)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows of `to_frame` as dictionaries."""
        return [asdict(one) for one in self.estimates]

    def to_frame(self) -> pd.DataFrame:
        """A row for each value (or parameter) and class: count, n, estimate, and the formula."""
        return import_pandas().DataFrame(self.to_dicts(), columns=[field.name for field in fields(TableEntry)])

    def _list_tables(self) -> list[DisplayTable]:
        return [self.class_prior, *self.columns.values()]


def tabulate_model(model: Model) -> ProbabilityTables:
    """The probability tables of a model of a table."""
    found: dict[str, list[TableEntry]] = {name: [] for name in model.schema.names}
    titles: dict[str, str] = {}
    for choice in model.choices():
        names = [model.schema.blocks[choice.block].names[position] for position in choice.positions.tolist()]
        for name, table in zip(names, choice.family.tabulate(choice.statistics, model.estimate), strict=True):
            titles[name] = f"{table.symbol}({name} | class), {type(choice.family).__name__}"
            found[name] = _list_entries(name, table, model.classes)
    prior, estimates = tabulate_class_prior(model.classes, model.statistics.n, np.exp(model.log_prior()))
    columns = {name: _lay_out(titles[name], name, found[name], model.classes) for name in titles}
    return ProbabilityTables(prior, columns, (*estimates, *(e for name in titles for e in found[name])))


def tabulate_texts(
    text: TextModel, record: BagCounts, classes: Array, n: Array, class_prior: Array, name: str = "text"
) -> ProbabilityTables:
    """The probability tables of a model of texts, with the words that differ most between classes."""
    words = text.find_distinctive_words(record)
    table, estimates = tabulate_words(text, record, classes, words, name)
    prior, shares = tabulate_class_prior(classes, n, class_prior)
    return ProbabilityTables(prior, {name: table}, (*shares, *estimates))


def tabulate_words(
    text: TextModel, record: BagCounts, classes: Array, words: Sequence[str], name: str = "text"
) -> tuple[DisplayTable, list[TableEntry]]:
    """P(word | class) of some words."""
    estimates = _list_entries(name, text.tabulate_words(record, words), classes)
    title = f"P(word | class), {text.model}"
    return _lay_out(title, name, estimates, classes), estimates


def tabulate_class_prior(classes: Array, n: Array, probabilities: Array) -> tuple[DisplayTable, list[TableEntry]]:
    """P(class), with the number of rows of each."""
    total = float(n.sum())
    estimates = [
        TableEntry("P(class)", label, label, count, total, p, _format_formula(count, total, 0.0, 0.0, p))
        for label, count, p in zip(classes.tolist(), n.tolist(), probabilities.tolist(), strict=True)
    ]
    rows = tuple((format_cell(one.label), one.count, one.formula) for one in estimates)
    return DisplayTable("P(class)", ("class", "rows", "P"), rows[:MAX_TABLE_ROWS]), estimates


# -- the numbers -------------------------------------------------------------------------------------------------------


def _list_entries(name: str, table: EstimateTable, classes: Array) -> list[TableEntry]:
    """An entry for each value and class."""
    labels, found = classes.tolist(), []
    for v, value in enumerate(table.values):
        for c, label in enumerate(labels):
            p = float(table.estimates[c, v])
            if table.counts is None or table.virtual is None:
                found.append(TableEntry(name, value, label, None, None, p, format_cell(p)))
                continue
            count, virtual = float(table.counts[c, v]), float(table.virtual[c, v])
            n = float(table.counts[c].sum() if table.n is None else table.n[c])
            all_virtual = float(table.virtual[c].sum() if table.all_virtual is None else table.all_virtual[c])
            found.append(
                TableEntry(name, value, label, count, n, p, _format_formula(count, n, virtual, all_virtual, p))
            )
    return found


def _format_formula(count: float, n: float, virtual: float, all_virtual: float, p: float) -> str:
    """Format an estimate with its formula, or alone if the formula does not give this value.

    >>> _format_formula(3, 5, 1, 3, 0.5), _format_formula(3, 5, 0, 0, 0.6), _format_formula(3, 5, 0, 0, 0.5)
    ('(3+1)/(5+3) = 0.5', '3/5 = 0.6', '0.5')
    """
    if not n + all_virtual > 0 or not math.isclose((count + virtual) / (n + all_virtual), p, rel_tol=1e-9):
        return format_cell(float(p))
    if all_virtual == 0:
        return f"{count:.6g}/{n:.6g} = {p:.4g}"
    return f"({count:.6g}+{virtual:.3g})/({n:.6g}+{all_virtual:.3g}) = {p:.4g}"


def _lay_out(title: str, name: str, estimates: Sequence[TableEntry], classes: Array) -> DisplayTable:
    """Arrange estimates in a table with a row for each value and a column for each class."""
    labels = classes.tolist()
    # estimates are ordered by value, then class
    values = [one.value for one in estimates[:: len(labels)]]
    cells = [one.formula for one in estimates]
    rows = [
        (format_cell(value), *cells[k * len(labels) : k * len(labels) + min(len(labels), MAX_TABLE_CLASSES)])
        for k, value in enumerate(values[:MAX_TABLE_ROWS])
    ]
    left_out = [
        f"{len(all_)} {noun}; to_frame() has all"
        for all_, limit, noun in ((values, MAX_TABLE_ROWS, "values"), (labels, MAX_TABLE_CLASSES, "classes"))
        if len(all_) > limit
    ]
    head = (format_cell(name), *(format_cell(label) for label in labels[:MAX_TABLE_CLASSES]))
    return DisplayTable(title, head, tuple(rows), ", ".join(left_out))


# -- the number of parameters ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParameterCount:
    """Number of parameters of a model, with (``naive``) and without (``full``) the naive assumption.

    ``full`` is infinite if it is too large for a float, and None if a family does not define a joint distribution.
    """

    naive: int
    full: float | None

    def __str__(self) -> str:
        full = "undefined" if self.full is None else f"{self.full:.6g}"
        return f"{self.naive:,} naive, {full} without the naive assumption"


def count_parameters(n_classes: int, naive: int, log2_outcomes: float | None, n_numbers: int = 0) -> ParameterCount:
    """Count the parameters of a model whose columns have ``naive`` parameters in each class.

    P(class) is one more for each class. Without the naive assumption, every combination of values has a probability,
    and for each combination ``n_numbers`` Gaussian columns have a mean vector and a covariance matrix.

    >>> print(count_parameters(2, 6, float(np.log2(3 * 3 * 2 * 2))))  # PlayTennis
    14 naive, 72 without the naive assumption
    """
    if log2_outcomes is None:
        full = None
    elif log2_outcomes > MAX_LOG2_CELLS:
        full = float("inf")
    else:
        # cells - 1 free probabilities, a mean and a covariance in each cell, and P(class)
        cells, per_cell = float(np.round(2.0**log2_outcomes)), n_numbers + n_numbers * (n_numbers + 1) / 2
        full = n_classes * (cells - 1 + cells * per_cell + 1)
    return ParameterCount(n_classes * (naive + 1), full)


def count_model_parameters(model: Model) -> ParameterCount:
    """Count the parameters of a model of a table."""
    naive, log2_outcomes, n_numbers = 0, 0.0, 0
    has_joint = True
    for choice in model.choices():
        naive += choice.family.n_parameters(choice.statistics)
        if choice.family.has_covariance:
            n_numbers += len(choice.positions)
            continue
        found = choice.family.log2_outcomes(choice.statistics)
        has_joint, log2_outcomes = has_joint and found is not None, log2_outcomes + (found or 0.0)
    return count_parameters(len(model.classes), naive, log2_outcomes if has_joint else None, n_numbers)
