"""Mutable statistics of a block of columns: learn, forget and score one row at a time; and guards of what is forgotten.

Choices that depend on all rows (the bins of a histogram, the smoothing, the location of a prior) stay as they were in
the statistics that the columns were opened from; counts include all rows since. The counts of a value are copied when
it first occurs, so that a cell costs the same for any number of values.

Statistics refuse to subtract what was not learned (`Statistics.check_subtraction`). A guard decides the same for one
row, from what is left of its cells in one class, at the cost of that row: what it allows, the statistics will not
refuse when rows are subtracted together later. It may refuse what they would allow, such as the last number of a column
in a class; then the statistics decide.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import rows as kernel
from priory.core.logspace import MAX_EXACT_COUNT, gammaln, log_sum_exp
from priory.core.value_counts import CategoricalCells, ValueCounts, round_number_to_bits
from priory.errors import NotLearnedError
from priory.families.moments import MIN_VARIATION, Moments

if TYPE_CHECKING:
    from priory.families.base import AnyFamily
    from priory.families.bernoulli import Bernoulli
    from priory.families.categorical import Categorical
    from priory.families.gamma import Gamma
    from priory.families.gaussian import Gaussian
    from priory.families.histogram import Histogram
    from priory.families.poisson import Poisson


class OpenColumns(Protocol):
    """Mutable statistics of some columns of a block."""

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        """Add a row ``rows`` times (-1 forgets it); False if another family, or other bins, may now fit better."""

    def terms(self, cells: Sequence[Any]) -> ColumnTerms | None:
        """log p(cell | class) of the cells present, up to a constant; None if the family excludes a value."""


class ColumnTerms(NamedTuple):
    """Log-likelihood of some cells of a row."""

    columns: list[int]
    values: Array  # (columns, classes)


NO_TERMS = ColumnTerms([], np.zeros((0, 1)))


class OpenRecord:
    """Columns of any family: add each row to the statistics, and score it as a batch of one."""

    def __init__(self, family: AnyFamily, record: Any) -> None:
        self.family, self.record = family, record
        self.n_classes = len(record[0].n if isinstance(record, tuple) else record.n)

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        x = self._make_row(cells)
        part = self.family.observe(x, np.array([group], dtype=np.int32), self.n_classes)
        combine = operator.add if rows > 0 else operator.sub
        is_tuple = isinstance(part, tuple)  # one record for each column
        self.record = tuple(map(combine, self.record, part)) if is_tuple else combine(self.record, part)
        return isinstance(x, CategoricalCells) or bool((self.family.accepts(x) | np.isnan(x)).all())

    def terms(self, cells: Sequence[Any]) -> ColumnTerms | None:
        columns = [j for j, cell in enumerate(cells) if cell is not None and cell == cell]
        values = self.family.log_likelihood(self.record, self._make_row(cells), "predictive")[0][:, columns]
        return ColumnTerms(columns, values.T) if np.isfinite(values).all() else None

    def _make_row(self, cells: Sequence[Any]) -> Array | CategoricalCells:
        if self.family.column_kind == "number":
            return np.array([cells], dtype=float)
        return CategoricalCells.of(np.array([cells], dtype=object))


class LabelCounts:
    """Counts of a label: by class, and in total."""

    __slots__ = ("by_class", "total")

    def __init__(self, by_class: Array) -> None:
        self.by_class, self.total = by_class, float(by_class.sum())


class OpenLabels:
    """Columns of labels: P(label | class) = (count + alpha) / (n + alpha values)."""

    def __init__(self, family: Categorical, records: Sequence[ValueCounts]) -> None:
        self.records = records
        self.n = np.array([record.n for record in records])  # (columns, classes)
        self.n_values = np.array([float(len(record.values)) for record in records])
        self.alpha = np.array([float(np.asarray(family.take_column(j).alpha)) for j in range(len(records))])
        self._counts: list[dict[object, LabelCounts]] = [{} for _ in records]  # of the labels that have occurred since

    def find_counts(self, column: int, label: object) -> LabelCounts | None:
        """The mutable counts of a label; None if it has never occurred."""
        known = self._counts[column].get(label)
        if known is None:
            record = self.records[column]
            place = int(np.searchsorted(record.values, label))  # type: ignore[call-overload]
            if place == len(record.values) or record.values[place] != label:
                return None
            known = self._counts[column][label] = LabelCounts(record.counts[:, place].copy())
        return known

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        for column, label in enumerate(cells):
            if label is None:
                continue
            counts = self.find_counts(column, label)
            if counts is None:
                counts = self._counts[column][label] = LabelCounts(np.zeros(self.n.shape[1]))
            before, after = counts.total, counts.total + rows
            counts.by_class[group] += rows
            counts.total = after
            # the denominator counts only labels that occur
            self.n_values[column] += (after > 0) - (before > 0)
            self.n[column, group] += rows
        return True

    def terms(self, cells: Sequence[Any]) -> ColumnTerms:
        found = [(j, self.find_counts(j, label)) for j, label in enumerate(cells) if label is not None]
        shown = [(j, counts.by_class) for j, counts in found if counts is not None and counts.total > 0]
        if not shown:
            return NO_TERMS
        columns, alpha = [j for j, _ in shown], self.alpha[[j for j, _ in shown], None]
        counts = np.array([counts for _, counts in shown])
        return ColumnTerms(columns, np.log((counts + alpha) / (self.n[columns] + alpha * self.n_values[columns, None])))


class OpenBins:
    """Columns of numbers as histograms: P(bin | class) = (count + alpha) / (n + alpha bins)."""

    def __init__(self, family: Histogram, records: Sequence[ValueCounts]) -> None:
        chosen = [family.choose_bins(record) for record in records]
        self.bits = family.bits
        self.edges = [edges[1:-1].tolist() for edges, _, _ in chosen]
        self.counts = [counts.T.copy() for _, counts, _ in chosen]  # (bins, classes) each
        self.n = np.array([counts.sum(axis=0) for counts in self.counts])  # (columns, classes)
        self.alpha = np.array([alpha for _, _, alpha in chosen])[:, None]
        self.mass = self.alpha * np.array([len(counts) for counts in self.counts])[:, None]

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        for column, cell in enumerate(cells):
            if cell == cell:
                place = bisect_right(self.edges[column], round_number_to_bits(cell, self.bits))
                self.counts[column][place, group] += rows
                self.n[column, group] += rows
        return True

    def terms(self, cells: Sequence[Any]) -> ColumnTerms:
        columns = [j for j, cell in enumerate(cells) if cell == cell]
        if not columns:
            return NO_TERMS
        counts = np.array([self.counts[j][bisect_right(self.edges[j], cells[j])] for j in columns])
        shares = (counts + self.alpha[columns]) / (self.n[columns] + self.mass[columns])
        return ColumnTerms(columns, np.log(shares))


class OpenBooleans:
    """Columns of zeros and ones."""

    def __init__(self, family: Bernoulli, record: Any) -> None:
        columns = record.n.shape[1]
        self.prior = np.stack([np.broadcast_to(virtual, columns) for virtual in (family.b, family.a)])  # (2, columns)
        self.counts = np.stack([record.n - record.successes, record.successes])  # (2, classes, columns)

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        fits = True
        for column, cell in enumerate(cells):
            if cell in (0.0, 1.0):
                self.counts[int(cell), group, column] += rows
            else:
                fits = fits and cell != cell
        return fits

    def terms(self, cells: Sequence[Any]) -> ColumnTerms | None:
        columns = [j for j, cell in enumerate(cells) if cell == cell]
        values = [int(cells[j]) for j in columns]
        if any(cells[j] not in (0.0, 1.0) for j in columns):
            return None
        both = self.counts[:, :, columns] + self.prior[:, None, columns]  # (2, classes, columns)
        own = both[values, :, range(len(columns))]  # (columns, classes)
        return ColumnTerms(columns, np.log(own / both.sum(axis=0).T))


class OpenPoisson:
    """Columns of counts: a negative binomial, which is a Poisson with the rate integrated out."""

    def __init__(self, family: Poisson, record: Any) -> None:
        self.shape = np.asarray(family.shape) + record.events.to_floats()  # (classes, columns)
        self.rate = np.asarray(family.rate) + record.n

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        fits = True
        for column, cell in enumerate(cells):
            if cell == cell:
                fits = fits and _is_count(cell)
                self.shape[group, column] += rows * cell
                self.rate[group, column] += rows
        return fits

    def terms(self, cells: Sequence[Any]) -> ColumnTerms | None:
        columns = [j for j, cell in enumerate(cells) if cell == cell]
        if not all(_is_count(cells[j]) for j in columns):
            return None
        k, a, b = np.array([cells[j] for j in columns]), self.shape[:, columns], self.rate[:, columns]
        # (classes, columns); log k! is the same for all classes and left out
        terms = gammaln(a + k) - gammaln(a) + a * np.log(b / (b + 1)) - k * np.log1p(b)
        return ColumnTerms(columns, terms.T)


class OpenGammas:
    """Columns of positive numbers: the quadrature nodes of the shape stay fixed, only their probabilities change."""

    def __init__(self, family: Gamma, record: Any) -> None:
        # (classes, columns, nodes) each: shapes, their log probabilities, and the posterior a, b of the rate
        self.shape, self.mass, self.a, self.b = (family + record).shape_posterior()
        self.varying, self.common = record.find_varying(), record.find_means()

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        fits = True
        for column, cell in enumerate(cells):
            if cell == cell and cell > 0:
                place = group, column
                fits = fits and bool(self.varying[column] or abs(cell / self.common[column] - 1) < MIN_VARIATION)
                # Learning multiplies the node probabilities by the predictive before the update, so forgetting undoes
                # the update first, and then divides by the same factor.
                if rows < 0:
                    self.a[place] -= self.shape[place]
                    self.b[place] -= cell
                self.mass[place] += rows * self._log_predictive(cell, place)
                if rows > 0:
                    self.a[place] += self.shape[place]
                    self.b[place] += cell
            else:
                fits = fits and cell != cell
        return fits and bool((self.b > 0).all())

    def _log_predictive(self, cell: float, place: tuple[Any, int]) -> Array:
        """Log predictive density of a number given each shape, with the rate integrated out."""
        k, a, b = self.shape[place], self.a[place], self.b[place]
        constant = gammaln(a + k) - gammaln(a) - gammaln(k) - k * np.log(b)
        return np.asarray(constant + (k - 1) * np.log(cell) - (a + k) * np.log1p(cell / b))

    def terms(self, cells: Sequence[Any]) -> ColumnTerms | None:
        columns = [j for j, cell in enumerate(cells) if cell == cell]
        if not columns or any(cells[j] <= 0 for j in columns):
            return None if columns else NO_TERMS
        masses = [self.mass[:, j] for j in columns]
        heavier = [
            mass + self._log_predictive(cells[j], (slice(None), j)) for j, mass in zip(columns, masses, strict=True)
        ]
        # (columns, classes): log of the predictive averaged over the nodes, (columns, classes, nodes) each
        terms = log_sum_exp(np.stack(heavier)) - log_sum_exp(np.stack(masses))
        return ColumnTerms(columns, np.where(self.varying[columns, None], terms, 0.0))


class OpenGaussians:
    """Columns of real numbers: Student's t, a Gaussian with mean and variance integrated out."""

    def __init__(self, family: Gaussian, record: Moments, floor: Array) -> None:
        self.unit = record.units()
        self.prior, self.floor = family.scale_to(self.unit), floor
        exponent = record.find_exponents()
        self.n = record.n.copy()  # (classes, columns)
        self.mean = np.where(record.n > 0, record.means(exponent), 0.0)
        self.spread = record.n * np.maximum(record.variances(exponent), 0.0)  # sum of squares about the mean, in units
        self._tables: tuple[Array, ...] | None = None

    def add(self, cells: Sequence[Any], group: int, rows: float) -> bool:
        self._tables = None
        for column, cell in enumerate(cells):
            if cell == cell:
                before, n = self.n[group, column], self.n[group, column] + rows
                x = cell / self.unit[column]
                away = x - self.mean[group, column]
                self.n[group, column] = n
                # Welford's update of mean and sum of squares; with rows = -1 it removes the value.
                self.mean[group, column] += rows * away / n if n > 0 else -self.mean[group, column]
                spread = self.spread[group, column] + rows * away**2 * before / n if n else 0.0
                self.spread[group, column] = max(spread, 0.0)
        return True

    def terms(self, cells: Sequence[Any]) -> ColumnTerms:
        if self._tables is None:
            self._tables = self._compute_tables()
        columns = [j for j, cell in enumerate(cells) if cell == cell]
        centre, precision, power, constant = (table[:, columns] for table in self._tables)
        z = np.array([cells[j] for j in columns]) / self.unit[columns] - centre
        return ColumnTerms(columns, (constant - power * np.log1p(precision * z**2)).T)

    def _compute_tables(self) -> tuple[Array, ...]:
        return self.prior.student_t_tables(self.n, self.mean, self.spread, self.floor)


def _is_count(cell: float) -> bool:
    return 0 <= cell <= MAX_EXACT_COUNT and cell == int(cell)


# -- whether a row can be forgotten ------------------------------------------------------------------------------------


class ColumnGuard(Protocol):
    """What is left of the columns of a block in one class; cells are numbers (columns,), NaN if missing, or labels."""

    def allows(self, cells: Any) -> bool:
        """Whether these cells can be subtracted."""

    def count(self, cells: Any, rows: int) -> None:
        """Add the cells ``rows`` times; -1 subtracts them."""


class RecordGuard:
    """A guard for any family, which subtracts the row from the statistics."""

    def __init__(self, family: AnyFamily, record: Any, group: int) -> None:
        self.columns, self.group = OpenRecord(family, record), group

    def allows(self, cells: Any) -> bool:
        try:
            copy(self.columns).add(cells, self.group, -1.0)
        except NotLearnedError:
            return False
        return True

    def count(self, cells: Any, rows: int) -> None:
        self.columns.add(cells, self.group, rows)


class LabelGuard:
    """Counts of labels."""

    def __init__(self, records: Sequence[ValueCounts], group: int) -> None:
        self.records, self.group = records, group
        self._left: list[dict[object, float]] = [{} for _ in records]  # of the labels that have occurred since

    def allows(self, cells: Sequence[Any]) -> bool:
        return all(self._find_count(*place) >= 1 for place in enumerate(cells) if place[1] is not None)

    def count(self, cells: Sequence[Any], rows: int) -> None:
        for column, label in enumerate(cells):
            if label is not None:
                self._left[column][label] = self._find_count(column, label) + rows

    def _find_count(self, column: int, label: Any) -> float:
        known = self._left[column].get(label)
        if known is not None:
            return known
        record = self.records[column]
        place = bisect_left(record.values, label)
        is_found = place < len(record.values) and record.values[place] == label
        return float(record.counts[self.group, place]) if is_found else 0.0


def guard_rounded_numbers(records: Sequence[ValueCounts], group: int, bits: int) -> ColumnGuard:
    """A guard on counts of numbers rounded to ``bits``."""
    values = [np.ascontiguousarray(record.values, dtype=float) for record in records]
    return kernel.RoundedGuard(values, [record.counts[group] for record in records], bits)


def guard_support(
    low: float, high: float, whole: bool, n: Array, outside: Array, total: Array | None = None
) -> ColumnGuard:
    """A guard on the numbers (columns,) inside and outside of a family's support, and on the sum of those inside."""
    return kernel.SupportGuard(low, high, whole, n, outside, total)


def guard_moments(record: Moments, group: int) -> ColumnGuard:
    """A guard on means and variances: what is left must have a possible sum of squares about the mean."""
    own = record.take_classes(np.array([group]))
    exponent, [n] = own.find_exponents(), own.n
    spread = n * own.variances(exponent)[0]
    spread[spread < 0] = np.nan  # a rounding error, of which the statistics decide how much is too much
    return kernel.MomentsGuard(own.units(), n, np.where(n > 0, own.means(exponent)[0], 0.0), spread)
