"""Measure how dependent columns are given the class, and how much that costs naive Bayes.

    I(X; Y | C) = Σ p(x, y, c) log2 p(x, y | c) / (p(x | c) p(y | c))

is zero if X and Y are independent given the class. Everything is measured within the classes, so that it does not
change with the distance between them. What the dependence costs the answers is another question: columns that repeat
each other and do not depend on the class cost nothing. It is answered by comparing the log losses of naive Bayes and of
the model whose corrections treat columns jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array
from scipy.stats import chi2, rankdata

from priory.core.display_table import DisplayTable
from priory.core.sharding import space_evenly
from priory.errors import DataError
from priory.estimators.folds import make_splitter
from priory.estimators.naive_bayes import NaiveBayes
from priory.evaluation.comparison import compare_scores
from priory.evaluation.intervals import Interval
from priory.evaluation.scores import Scores
from priory.tables.table import Table
from priory.tables.table_reading import read_table

MAX_BINS = 5  # of a column of numbers in a class, with equal numbers of rows in each
MIN_ROWS_PER_CELL = 5  # of a pair of bins, on average
MAX_VALUES_OF_LABELS = 30
N_PERMUTATIONS = 20  # by which the chance level is found
MAX_DEVIATIONS_FROM_MEDIAN = 3.0  # from the median: numbers beyond count as this far away
SIGNIFICANCE = 0.01  # for all pairs together
SMALL_DEPENDENCE = 0.02  # bits a row: a dependence that is certain, and very weak
MAX_JUDGED_ROWS = 2000
N_FOLDS = 5


@dataclass(frozen=True)
class Dependence:
    """How dependent each pair of columns is given the class, and what that costs the answers.

    Attributes
    ----------
    names : tuple of str
        The columns.
    bits : ndarray of shape (n_columns, n_columns)
        The conditional mutual information of each pair, in bits a row, less what chance alone would show. Of numbers it
        is a lower bound: the largest of three estimates, from correlation, rank correlation and bins.
    p_value : ndarray of shape (n_columns, n_columns)
        The probability of as much of it by chance.
    naive, corrected : Scores
        Of naive Bayes, and of the model with its corrections, on rows that neither has learned.
    cost : Interval
        By how much the log loss of naive Bayes is larger, row by row.
    """

    names: tuple[str, ...]
    bits: Array
    p_value: Array
    naive: Scores
    corrected: Scores

    @property
    def cost(self) -> Interval:
        return compare_scores(self.naive, self.corrected).log_loss

    def violations(self) -> list[tuple[str, str, float]]:
        """List the pairs that are significantly dependent given the class, with their bits, in falling order."""
        upper = np.triu(np.ones_like(self.bits, dtype=bool), 1)
        n_pairs = max(int(upper.sum()), 1)
        # Bonferroni: the significance is shared among all pairs
        found = np.argwhere(upper & (self.p_value < SIGNIFICANCE / n_pairs) & (self.bits > 0))
        pairs = [(self.names[i], self.names[j], float(self.bits[i, j])) for i, j in found]
        return sorted(pairs, key=lambda pair: -pair[2])

    @property
    def verdict(self) -> str:
        """Two sentences: whether columns are independent given the class, and the cost if they are not."""
        return f"{self._describe_pairs()} {self._describe_cost()}"

    def _describe_pairs(self) -> str:
        found = self.violations()
        n_pairs = len(self.names) * (len(self.names) - 1) // 2
        if not found:
            return f"None of the {n_pairs} pairs of columns is dependent given the class, as far as these rows show."
        first, second, bits = found[0]
        strong = sum(pair[2] > SMALL_DEPENDENCE for pair in found)
        strength = f"{strong} by more than {SMALL_DEPENDENCE:g} bits a row" if strong else "all very weakly"
        verb = "is" if len(found) == 1 else "are"
        return (
            f"{len(found)} of {n_pairs} pairs {verb} dependent given the class, {strength}; "
            f"most of all {first} and {second} ({bits:.3g} bits a row)."
        )

    def _describe_cost(self) -> str:
        naive, corrected = self.naive.log_loss.value, self.corrected.log_loss.value
        losses = f"naive Bayes has {naive:.3f}, and with corrections {corrected:.3f}"
        if self.cost.low > 0:
            return f"It costs the answers {self.cost:.2g} in log loss: {losses}."
        return f"What it costs the answers may be chance, {self.cost:.2g} in log loss: {losses}."

    def table(self) -> DisplayTable:
        """Tabulate the pairs that are dependent given the class."""
        rows = tuple(self.violations()[:30])
        return DisplayTable(self.verdict, ("column", "column", "bits a row"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def measure_dependence(X: object, y: Sequence[object] | Array) -> Dependence:
    """Measure how far each pair of columns violates conditional independence given the class, and what that costs.

    Texts, and labels of more than 30 values, have no pairs. The cost is measured on at most 2,000 rows.

    >>> rng = np.random.default_rng(0)
    >>> c = rng.integers(0, 2, 1000)
    >>> x = c + rng.normal(size=1000)
    >>> table = {"x": x, "twice": 2 * x + 0.1 * rng.normal(size=1000), "noise": rng.normal(size=1000)}
    >>> found = measure_dependence(table, c)
    >>> [pair[:2] for pair in found.violations()], found.cost.low > 0
    ([('x', 'twice')], True)
    """
    table, labels = read_table(X), np.asarray(y)
    if len(labels) != table.rows:
        raise DataError(f"there are {table.rows} rows and {len(labels)} labels; give one label for each row.")
    group = np.unique(labels, return_inverse=True)[1]
    columns = _read_columns(table, group)
    names = tuple(columns)
    bits, p_value = np.zeros((len(names), len(names))), np.ones((len(names), len(names)))
    shuffled = _shuffle_within_classes(group)
    for i in range(len(names)):
        for j in range(i):
            found = _measure_pair(columns[names[i]], columns[names[j]], group, shuffled)
            (bits[i, j], p_value[i, j]), (bits[j, i], p_value[j, i]) = found, found
    chosen = space_evenly(table.rows, MAX_JUDGED_ROWS)
    rows, known = table.take_rows(chosen), labels[chosen]
    folds = make_splitter(N_FOLDS, known, 0)
    models = NaiveBayes(calibrate=False), NaiveBayes()
    naive, corrected = (model.fit(rows, known).evaluate(rows, known, folds) for model in models)
    return Dependence(names, bits, p_value, naive, corrected)


@dataclass(frozen=True)
class _Column:
    """A column within the classes: codes (rows,) of bins or labels, -1 where missing, and standardised numbers.

    ``scores`` is (2, rows): the numbers without outliers, and their ranks, with mean 0 and variance 1 in each class;
    NaN where missing, or where a class has few different numbers. ``entropy`` (classes,) is of the cells, in nats.
    """

    codes: Array
    scores: Array
    entropy: Array


def _read_columns(table: Table, group: Array) -> dict[str, _Column]:
    columns = {}
    for place, (name, kind) in enumerate(table.column_kinds().items()):
        cells = table.labels([place]) if kind in ("label", "number") else None
        if cells is None or (kind == "label" and len(cells.values[0]) > MAX_VALUES_OF_LABELS):
            continue
        codes, scores = np.asarray(cells.codes[:, 0]).astype(int), np.full((2, table.rows), np.nan)
        entropy = np.zeros(group.max(initial=-1) + 1)
        numbers = table.numbers([place])[:, 0] if kind == "number" else None
        for c in range(len(entropy)):
            own = np.flatnonzero((group == c) & (codes >= 0))
            # relative frequencies of the values in this class, for the entropy
            share = np.unique(codes[own], return_counts=True)[1] / max(len(own), 1)
            entropy[c] = -(share * np.log(share)).sum()
            if numbers is not None and len(own):
                if len(share) > MAX_BINS:
                    scores[:, own] = _standardise(numbers[own])
                codes[own] = _bin_numbers(numbers[own])
        columns[name] = _Column(codes, scores, entropy)
    return columns


def _bin_numbers(values: Array) -> Array:
    """Bin the numbers of a class: a bin for each value if they are few, otherwise bins of equal content."""
    distinct, codes = np.unique(values, return_inverse=True)
    # so many bins that a cell of two binned columns has MIN_ROWS_PER_CELL rows on average
    n_bins = int(np.clip(np.sqrt(len(values) / MIN_ROWS_PER_CELL), 2, MAX_BINS))
    if len(distinct) <= n_bins:
        return codes
    return np.searchsorted(np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1]), values, side="right")


def _standardise(values: Array) -> Array:
    """(2, rows): the clipped numbers and their ranks, each with mean 0 and variance 1."""
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    reach = MAX_DEVIATIONS_FROM_MEDIAN * ((high - low) / 1.349 or float(np.std(values)))  # the quartiles of a Gaussian
    both = np.stack([np.clip(values, median - reach, median + reach), rankdata(values)])
    both = both - both.mean(axis=1, keepdims=True)
    return both / both.std(axis=1, keepdims=True)


def _shuffle_within_classes(group: Array) -> Array:
    """(permutations, rows): random permutations of the rows within their classes."""
    rng, order = np.random.default_rng(0), np.argsort(group, kind="stable")
    shuffled = np.empty((N_PERMUTATIONS, len(group)), dtype=int)
    for permutation in shuffled:
        # lexsort orders by class, then at random; order lists the rows by class, so each gets a row of its class
        permutation[order] = np.lexsort([rng.random(len(group)), group])
    return shuffled


def _measure_pair(a: _Column, b: _Column, group: Array, shuffled: Array) -> tuple[float, float]:
    """I(A; B | C) in bits, less what chance shows, and the p-value: the largest of three lower bounds."""
    n = float(((a.codes >= 0) & (b.codes >= 0)).sum())
    found = [_test_bins(a.codes, b.codes, group, shuffled)]
    found += [_test_correlation(a, b, form, group) for form in (0, 1)]
    surplus, p = zip(*found, strict=True)
    # G = 2 n I in nats; the p-value is corrected for the three tests
    return max(max(surplus) / (2 * max(n, 1.0) * np.log(2)), 0.0), min(len(found) * min(p), 1.0)


def _test_bins(a: Array, b: Array, group: Array, shuffled: Array) -> tuple[float, float]:
    """The G statistic of bins and labels above its mean under permutation, and its p-value."""
    g = _compute_g(a, b, group)
    chance = np.array([_compute_g(a, b[order], group) for order in shuffled])
    mean = float(chance.mean())
    if mean <= 0:
        return 0.0, 1.0
    scale = max(float(chance.var()) / (2 * mean), 1.0)  # a scaled chi-squared with the mean and variance found
    return g - mean, float(chi2.sf(g / scale, mean / scale))


def _compute_g(a: Array, b: Array, group: Array) -> float:
    """2 Σ n log(n / expected) over classes and pairs of codes."""
    known = (a >= 0) & (b >= 0)
    shape = (group.max(initial=0) + 1, a.max(initial=0) + 1, b.max(initial=0) + 1)
    cell = np.ravel_multi_index((group[known], a[known], b[known]), shape)
    counts = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape).astype(float)
    # counts and expected are (classes, values of a, values of b); expected = row sum * column sum / total
    expected = counts.sum(axis=2, keepdims=True) * counts.sum(axis=1, keepdims=True)
    expected /= np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1.0)
    some = counts > 0
    return 2 * float((counts[some] * np.log(counts[some] / expected[some])).sum())


def _test_correlation(a: _Column, b: _Column, form: int, group: Array) -> tuple[float, float]:
    """The G statistic of a Gaussian dependence, -n log(1 - r²) in each class, and its p-value."""
    g, freedom = 0.0, 0
    for c in range(len(a.entropy)):
        x, y = a.scores[form][group == c], b.scores[form][group == c]
        known = ~np.isnan(x + y)
        n = int(known.sum())
        if n > 2:
            r = float(np.corrcoef(x[known], y[known])[0, 1])
            r = 2 * np.sin(np.pi / 6 * r) if form == 1 else r  # of Gaussians, from the correlation of their ranks
            # mutual information is at most the smaller entropy
            most = 2 * n * min(a.entropy[c], b.entropy[c])
            g += min(-n * np.log1p(-min(r * r, 1 - 1 / n**2)), most)
            freedom += 1
    return (g - freedom, float(chi2.sf(g, freedom))) if freedom else (0.0, 1.0)
