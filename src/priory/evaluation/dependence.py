"""Is the naive assumption true? Conditional mutual information of every pair of columns, given the class.

    I(X; Y | C) = Σ p(x, y, c) log2 p(x, y | c) / (p(x | c) p(y | c))

is zero if X and Y are independent given the class. It is what the assumption costs: the bits a row that naive Bayes
counts twice where the pair says the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from priory.core.display_table import DisplayTable
from priory.core.typing import Array
from priory.errors import DataError
from priory.models.table_reading import read_table

MAX_BINS_OF_NUMBERS = 5  # equal numbers of rows in each
MAX_VALUES_OF_LABELS = 30
SIGNIFICANCE = 0.01  # for all pairs together
SMALL_COST = 0.02  # bits a row: a dependence that is certain, and hardly matters


@dataclass(frozen=True)
class Dependence:
    """What the naive assumption costs, pair by pair.

    Attributes
    ----------
    names : list of str
        The columns.
    bits : ndarray of shape (n_columns, n_columns)
        The conditional mutual information of each pair, in bits a row, less what chance alone would show.
    p_value : ndarray of shape (n_columns, n_columns)
        The probability of as much of it by chance.
    """

    names: tuple[str, ...]
    bits: Array
    p_value: Array

    def violations(self) -> list[tuple[str, str, float]]:
        """The pairs that are certainly dependent given the class, and their bits; the costliest first."""
        upper = np.triu(np.ones_like(self.bits, dtype=bool), 1)
        n_pairs = max(int(upper.sum()), 1)
        found = np.argwhere(upper & (self.p_value < SIGNIFICANCE / n_pairs) & (self.bits > 0))
        pairs = [(self.names[i], self.names[j], float(self.bits[i, j])) for i, j in found]
        return sorted(pairs, key=lambda pair: -pair[2])

    @property
    def verdict(self) -> str:
        """Whether the naive assumption holds, in one sentence."""
        found = self.violations()
        n_pairs = len(self.names) * (len(self.names) - 1) // 2
        if not found:
            return f"None of the {n_pairs} pairs of columns is dependent given the class, as far as these rows show."
        first, second, bits = found[0]
        matters = sum(pair[2] > SMALL_COST for pair in found)
        cost = f"{matters} by more than {SMALL_COST:g} bits a row" if matters else "all by very little"
        return (
            f"{len(found)} of {n_pairs} pairs {'is' if len(found) == 1 else 'are'} dependent given the class, {cost}; "
            f"most of all {first} and {second} ({bits:.3g} bits a row)."
        )

    def table(self) -> DisplayTable:
        """The pairs that are dependent given the class."""
        rows = tuple(self.violations()[:30])
        return DisplayTable(self.verdict, ("column", "column", "bits a row"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def measure_dependence(X: object, y: Sequence[object] | Array) -> Dependence:
    """Measure how far each pair of columns violates conditional independence given the class.

    Numbers are cut into five bins of equal content; texts are left out.

    >>> rng = np.random.default_rng(0)
    >>> c = rng.integers(0, 2, 2000)
    >>> x = c + rng.normal(size=2000)
    >>> table = {"x": x, "twice": 2 * x + 0.1 * rng.normal(size=2000), "noise": rng.normal(size=2000)}
    >>> [pair[:2] for pair in measure_dependence(table, c).violations()]
    [('x', 'twice')]
    """
    table = read_table(X)
    labels = np.unique(np.asarray(y), return_inverse=True)[1]
    if len(labels) != table.rows:
        raise DataError(f"there are {table.rows} rows and {len(labels)} labels; give one label for each row.")
    kinds = table.column_kinds()
    coded = {}
    for place, name in enumerate(table.names):
        if kinds[name] == "number":
            coded[name] = _bin_numbers(table.numbers([place])[:, 0])
        elif kinds[name] == "label":
            codes = np.asarray(table.labels([place]).codes[:, 0])
            if codes.max(initial=0) < MAX_VALUES_OF_LABELS:
                coded[name] = codes
    names = tuple(coded)
    bits, p_value = np.zeros((len(names), len(names))), np.ones((len(names), len(names)))
    for i in range(len(names)):
        for j in range(i):
            bits[i, j], p_value[i, j] = _measure_pair(coded[names[i]], coded[names[j]], labels)
            bits[j, i], p_value[j, i] = bits[i, j], p_value[i, j]
    return Dependence(names, bits, p_value)


def _measure_pair(a: Array, b: Array, labels: Array) -> tuple[float, float]:
    """I(A; B | C) in bits, less its expectation under independence, and the p-value of the G-test."""
    known = (a >= 0) & (b >= 0)
    counts = np.zeros((labels.max(initial=0) + 1, a.max(initial=0) + 1, b.max(initial=0) + 1))
    np.add.at(counts, (labels[known], a[known], b[known]), 1.0)
    n, total = counts.sum(axis=(1, 2), keepdims=True), counts.sum()
    if total == 0:
        return 0.0, 1.0
    expected = counts.sum(axis=2, keepdims=True) * counts.sum(axis=1, keepdims=True) / np.maximum(n, 1.0)
    some = counts > 0
    g = 2 * float((counts[some] * np.log(counts[some] / expected[some])).sum())
    seen_a, seen_b = (counts.sum(axis=2) > 0).sum(axis=1), (counts.sum(axis=1) > 0).sum(axis=1)
    freedom = float((np.maximum(seen_a - 1, 0) * np.maximum(seen_b - 1, 0)).sum())
    if freedom == 0:
        return 0.0, 1.0
    return max((g - freedom) / (2 * total * np.log(2)), 0.0), float(chi2.sf(g, freedom))


def _bin_numbers(values: Array) -> Array:
    """Numbers as the bins that they fall into; -1 where missing."""
    known = ~np.isnan(values)
    distinct = np.unique(values[known])
    if len(distinct) <= MAX_BINS_OF_NUMBERS:
        bins = np.searchsorted(distinct, values)
    else:
        edges = np.unique(np.quantile(values[known], np.linspace(0, 1, MAX_BINS_OF_NUMBERS + 1)[1:-1]))
        bins = np.searchsorted(edges, values, side="right")
    return np.where(known, bins, -1)
