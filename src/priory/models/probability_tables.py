"""The tables a teacher writes on the board: P(class), and for every column P(value | class) with how it is estimated.

A cell reads ``(3+1)/(5+3) = 0.5``: three rows of five, with one virtual example of each of three values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from priory.bag_of_words.sparse_counts import make_dense_counts
from priory.bag_of_words.text_model import TextModel, TextRecords
from priory.bag_of_words.vocabulary import check_words_kept
from priory.bag_of_words.weight_tables import measure_spread, take_token_rows
from priory.core.display_table import DisplayTable, format_cell, import_pandas, join_html
from priory.core.statistics import find_members
from priory.core.typing import Array, Label
from priory.errors import DataError
from priory.families import Bernoulli, Categorical, Histogram, Text
from priory.families.base import AnyFamily, Family
from priory.families.text import split_record
from priory.models.naive_bayes import Model

if TYPE_CHECKING:
    import pandas as pd

MAX_TABLE_CLASSES = 12  # that have a column of their own in the text; the data frame has all
MAX_TABLE_ROWS = 60  # values of one column in the text; the data frame has all
MAX_STRONGEST_WORDS = 20
TITLES_OF_WORDS = {
    "poisson": "occurrences of a word in a document of the class, poisson",
    "complement": "1 / P(word | all other classes), complement",
}


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One number of a table: of a value, or of a parameter, in a class."""

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

    ``print`` shows them all, a notebook shows them as HTML, and ``to_frame`` has every number in a row of its own.
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
        """The same as `to_frame`, as dictionaries."""
        return [asdict(one) for one in self.estimates]

    def to_frame(self) -> pd.DataFrame:
        """A row for each value (or parameter) and class: count, n, estimate, and the formula."""
        return import_pandas().DataFrame(self.to_dicts(), columns=[field.name for field in fields(TableEntry)])

    def _list_tables(self) -> list[DisplayTable]:
        return [self.class_prior, *self.columns.values()]


def tabulate_model(model: Model) -> ProbabilityTables:
    """The tables of naive Bayes of a table."""
    found: dict[str, list[TableEntry]] = {name: [] for name in model.schema.names}
    titles: dict[str, str] = {}
    for choice in model.choices():
        names = [model.schema.blocks[choice.block].names[position] for position in choice.positions.tolist()]
        symbol = "P" if isinstance(choice.family, Categorical | Bernoulli | Histogram | Text) else "p"
        titles |= {name: f"{symbol}({name} | class), {type(choice.family).__name__}" for name in names}
        found |= dict(zip(names, _estimate_columns(names, choice.family, choice.statistics, model), strict=True))
    prior, estimates = tabulate_class_prior(model.classes, model.statistics.n, np.exp(model.log_prior()))
    columns = {name: _lay_out(titles[name], name, found[name], model.classes) for name in titles}
    return ProbabilityTables(prior, columns, (*estimates, *(e for name in titles for e in found[name])))


def tabulate_texts(
    text: TextModel, records: TextRecords, classes: Array, n: Array, class_prior: Array, name: str = "text"
) -> ProbabilityTables:
    """The tables of naive Bayes of texts, with the words that distinguish the classes most."""
    words = find_distinctive_words(text, records)
    table, estimates = tabulate_words(text, records, classes, words, name)
    prior, shares = tabulate_class_prior(classes, n, class_prior)
    return ProbabilityTables(prior, {name: table}, (*shares, *estimates))


def tabulate_words(
    text: TextModel, records: TextRecords, classes: Array, words: Sequence[str], name: str = "text"
) -> tuple[DisplayTable, list[TableEntry]]:
    """P(word | class) of some words."""
    estimates = _estimate_words(name, text, records, classes, words)
    title = TITLES_OF_WORDS.get(text.model, f"P(word | class), {text.model}")
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


def compute_word_probabilities(text: TextModel, records: TextRecords, rows: Array) -> Array:
    """(words, classes): P(word | class) of the tokens with these numbers; for "poisson" their rates in a document."""
    table = take_token_rows(text.token_weights(records).table, rows)
    return 1 / (1 + np.exp(-table)) if text.model == "bernoulli" else np.exp(table)


def find_distinctive_words(text: TextModel, records: TextRecords, max_words: int = MAX_STRONGEST_WORDS) -> list[str]:
    """The words whose probabilities differ most between the classes, weighted by how often they occur."""
    counts = check_words_kept(text.select_counts(records))
    spread = measure_spread(text.token_weights(records).table)
    best = np.argsort(-spread * counts.counts.sum(axis=1), kind="stable")[:max_words]
    return counts.take_tokens(best).tokens()


# -- the numbers -------------------------------------------------------------------------------------------------------


def _estimate_columns(names: list[str], family: AnyFamily, record: Any, model: Model) -> Iterator[list[TableEntry]]:
    """The entries of each of the columns that a family explains."""
    labels, kind = model.classes.tolist(), "mean" if model.estimate == "predictive" else model.estimate
    if isinstance(family, Text):
        text, records = family.build_model(model.estimate), split_record(record)
        words = find_distinctive_words(text, records)
        yield _estimate_words(names[0], text, records, model.classes, words)
    elif isinstance(family, Categorical):
        for i, name in enumerate(names):
            yield _estimate_values(name, family.take_column(i), record[i], labels, kind)
    elif isinstance(family, Histogram):
        for name, counts in zip(names, record, strict=True):
            edges, shares = family.parameters(counts, kind)
            bins = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)]
            yield _make_estimates(name, bins, labels, shares)
    elif isinstance(family, Bernoulli):
        yield from _estimate_yes_or_no(names, family, record, labels, kind)
    else:
        yield from _estimate_parameters(names, family, record, labels, kind)


def _estimate_yes_or_no(
    names: list[str], family: Bernoulli, record: Any, labels: list[Label], kind: str
) -> Iterator[list[TableEntry]]:
    tally, belief = Bernoulli(0.0, 0.0).posterior(record), family.posterior(record)
    counts = np.stack([np.asarray(tally.a), np.asarray(tally.b)], axis=-1)  # (classes, columns, 2)
    virtual = np.stack([np.asarray(belief.a), np.asarray(belief.b)], axis=-1) - counts
    p = np.asarray(family.parameters(record, kind))
    shares = np.stack([p, 1 - p], axis=-1)
    for i, name in enumerate(names):
        yield _make_estimates(name, [1, 0], labels, shares[:, i], counts[:, i], virtual[:, i])


def _estimate_values(name: str, family: Categorical, record: Any, labels: list[Label], kind: str) -> list[TableEntry]:
    counted = Categorical(0.0, family.values).posterior(record)
    belief = family.posterior(record)
    counts = np.asarray(counted.alpha)
    values, shares = family.parameters(record, kind)
    virtual = np.zeros_like(counts) if kind == "ml" else np.asarray(belief.alpha) - counts
    if kind == "ml":  # the declared values that were never seen are left out
        kept = find_members(np.asarray(counted.values), np.asarray(values))
        counts, virtual = counts[:, kept], virtual[:, kept]
    return _make_estimates(name, list(values), labels, shares, counts, virtual)


def _estimate_parameters(
    names: list[str], family: AnyFamily, record: Any, labels: list[Label], kind: str
) -> Iterator[list[TableEntry]]:
    assert isinstance(family, Family)
    parameters = family.parameters(record, kind)
    named = parameters._asdict() if hasattr(parameters, "_asdict") else {_name_parameter(family): parameters}
    values = np.stack([np.asarray(value, dtype=float) for value in named.values()], axis=-1)
    for i, name in enumerate(names):
        yield _make_estimates(name, list(named), labels, values[:, i])


def _name_parameter(family: AnyFamily) -> str:
    return {"Poisson": "rate", "Binomial": "probability"}.get(type(family).__name__, "parameter")


def _estimate_words(
    name: str, text: TextModel, records: TextRecords, classes: Array, words: Sequence[str]
) -> list[TableEntry]:
    counts = check_words_kept(text.select_counts(records))
    row_of_token = {token: row for row, token in enumerate(counts.tokens())}
    unknown = [word for word in words if word not in row_of_token]
    if unknown:
        raise DataError(f"the model has no word {unknown[0]!r}; it may be stemmed, lowered or too rare.")
    rows = np.array([row_of_token[word] for word in words], dtype=np.int64)
    own_counts = make_dense_counts(counts.take_tokens(rows).counts)  # (words, classes)
    alpha, total = text.choose_alpha(records), counts.counts.sum(axis=0)
    n = counts.n if text.model in ("bernoulli", "poisson") else total
    virtual = {"bernoulli": 2 * alpha, "poisson": 1.0}.get(text.model, alpha * len(counts))
    shares = compute_word_probabilities(text, records, rows)
    return [
        TableEntry(name, word, label, own, whole, p, _format_formula(own, whole, alpha, virtual, p))
        for word, own_row, probabilities in zip(words, own_counts.tolist(), shares.tolist(), strict=True)
        for label, own, whole, p in zip(classes.tolist(), own_row, n.tolist(), probabilities, strict=True)
    ]


def _make_estimates(
    name: str,
    values: Sequence[object],
    labels: list[Label],
    shares: Array,
    counts: Array | None = None,
    virtual: Array | None = None,
) -> list[TableEntry]:
    """An estimate for each value and class; arrays are (classes, values)."""
    found = []
    for v, value in enumerate(values):
        for c, label in enumerate(labels):
            p = float(shares[c, v])
            if counts is None or virtual is None:
                found.append(TableEntry(name, value, label, None, None, p, format_cell(p)))
                continue
            count, n = float(counts[c, v]), float(counts[c].sum())
            formula = _format_formula(count, n, float(virtual[c, v]), float(virtual[c].sum()), p)
            found.append(TableEntry(name, value, label, count, n, p, formula))
    return found


def _format_formula(count: float, n: float, virtual: float, all_virtual: float, p: float) -> str:
    """How a share came about, if that is how it did.

    >>> _format_formula(3, 5, 1, 3, 0.5), _format_formula(3, 5, 0, 0, 0.6), _format_formula(3, 5, 0, 0, 0.5)
    ('(3+1)/(5+3) = 0.5', '3/5 = 0.6', '0.5')
    """
    if not n + all_virtual > 0 or not math.isclose((count + virtual) / (n + all_virtual), p, rel_tol=1e-9):
        return format_cell(float(p))
    if all_virtual == 0:
        return f"{count:.6g}/{n:.6g} = {p:.4g}"
    return f"({count:.6g}+{virtual:.3g})/({n:.6g}+{all_virtual:.3g}) = {p:.4g}"


def _lay_out(title: str, name: str, estimates: Sequence[TableEntry], classes: Array) -> DisplayTable:
    """A row for each value, a column for each class."""
    labels = classes.tolist()
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
