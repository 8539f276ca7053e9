"""The readable twin of `rows`: the corrections, the hash and the guards of a single row, in NumPy."""

from __future__ import annotations

import numpy as np

from priory.core.content_hash import scramble_bits
from priory.core.value_counts import round_to_bits


def add_weights(weights: np.ndarray, places: np.ndarray, start: int, factor: float, out: np.ndarray) -> None:
    """Add the weights (features, classes) of features ``start + places``, times ``factor``, to ``out`` (classes,)."""
    out += factor * weights[start + places].sum(axis=0)


def add_cells(
    weights: np.ndarray, levels: np.ndarray, sets: np.ndarray, n_levels: int, start: int, out: np.ndarray
) -> None:
    """Add the weight of one cell of each set of columns to ``out`` (classes,).

    ``levels`` (columns,) are below ``n_levels``, and negative where a label is new: then the set has no cell. The cells
    of all sets follow one another in ``weights``, from ``start``.
    """
    own = levels[sets]  # (sets, columns of a set)
    cells = np.arange(len(sets))
    for column in own.T:
        cells = cells * n_levels + column
    out += weights[start + cells[(own >= 0).all(axis=1)]].sum(axis=0)


def weigh_parts(
    values: np.ndarray,
    parts: np.ndarray,
    lengths: np.ndarray,
    weights: np.ndarray,
    exponents: np.ndarray,
    lowest: float,
    out: np.ndarray,
) -> None:
    """Add the evidence of parts to ``out`` (classes,), each by its weight and a power of its length.

    ``values`` (classes, parts) count by how far they are below that of the best class, at most as far as ``lowest``.
    """
    out += shrink_parts(values, parts, lengths, exponents, lowest) @ weights[parts]


def step_parts(
    values: np.ndarray,
    parts: np.ndarray,
    lengths: np.ndarray,
    group: int,
    count: float,
    lowest: float,
    max_weight: float,
    max_exponent: float,
    weights: np.ndarray,
    exponents: np.ndarray,
    precision: np.ndarray,
) -> None:
    """Move weights and exponents, in place, by a Fisher step for a row of class ``group`` that occurs ``count`` times.

    ``precision`` is that of the weights, then of the exponents; what the row says about them is added to it before.
    """
    size = len(weights)
    relative = shrink_parts(values, parts, lengths, exponents, lowest)
    logits = relative @ weights[parts]
    answer = np.exp(logits - np.logaddexp.reduce(logits))
    expected = answer @ relative
    slope = count * (expected - relative[group])
    spread = count * (answer @ relative**2 - expected**2)
    along = -np.log(lengths) * weights[parts]  # the slope of a weighted value along its exponent, by the value
    precision[parts] += spread
    precision[size + parts] += spread * along**2
    weights[parts] = np.clip(weights[parts] - slope / precision[parts], 0.0, max_weight)
    steps = slope * along / precision[size + parts]
    exponents[parts] = np.clip(exponents[parts] - steps, -max_exponent, max_exponent)


def shrink_parts(
    values: np.ndarray, parts: np.ndarray, lengths: np.ndarray, exponents: np.ndarray, lowest: float
) -> np.ndarray:
    """(classes, parts): evidence below that of the best class, by a power of its length."""
    best = values.max(axis=0)
    relative = np.maximum(values - np.where(np.isfinite(best), best, 0.0), lowest)
    return relative * lengths ** -exponents[parts]


def mix_members(logits: np.ndarray, exponents: np.ndarray, share: float, out: np.ndarray) -> None:
    """The log probabilities of all members together, into ``out`` (classes,).

    The first row of ``logits`` (1 + members, classes) is the base rate, which has the rest of the share; the geometric
    mean of the others, by their exponents, has the share.
    """
    answers = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    pooled = exponents @ answers[1:]
    with np.errstate(divide="ignore"):
        out[:] = np.log(share * np.exp(pooled - np.logaddexp.reduce(pooled)) + (1 - share) * np.exp(answers[0]))


def hash_numbers(x: np.ndarray, keys: np.ndarray) -> int:
    """The sum, modulo 2^64, of the hashes of the numbers (columns,) under the keys of their columns; NaN is skipped."""
    shown = x == x
    with np.errstate(over="ignore"):
        return int(scramble_bits((x[shown] + 0.0).view(np.uint64) ^ keys[shown]).sum(dtype=np.uint64))


LEFT = 1e-9  # of the largest sum so far: less may be a rounding error


class SupportGuard:
    """Rows inside and outside of the support of a family, and the sum of the numbers inside."""

    def __init__(self, low, high, whole, n, outside, total=None):
        self.low, self.high, self.whole = low, high, whole
        self.n, self.outside = np.array(n, dtype=float), np.array(outside, dtype=float)
        self.total = np.full(len(n), np.inf) if total is None else np.array(total, dtype=float)
        self.margin = self._bound_rounding()

    def _bound_rounding(self):
        return np.where((self.total > 2.0**53) & np.isfinite(self.total), LEFT * self.total, 0.0)

    def _has(self, x):
        return (self.low <= x) & (x <= self.high) & (not self.whole or np.floor(x) == x)

    def allows(self, x):
        inside, left = self._has(x), self.total - x
        is_possible = (left >= self.margin) & ((left <= self.high * (self.n - 1)) | (left == np.inf))
        is_left = np.where(inside, (self.n > 1) & is_possible, self.outside >= 1)
        return bool((is_left | (x != x)).all())

    def count(self, x, rows):
        inside = self._has(x)
        self.n[inside] += rows
        self.outside[~inside & (x == x)] += rows
        self.total[inside] += rows * x[inside]
        self.margin = np.maximum(self.margin, self._bound_rounding())


class MomentsGuard:
    """Running means and sums of squares about them."""

    def __init__(self, unit, n, mean, spread):
        self.unit, self.n, self.mean, self.spread, self.top = (
            np.array(field, dtype=float) for field in (unit, n, mean, spread, spread)
        )

    def allows(self, x):
        with np.errstate(all="ignore"):
            away = x / self.unit - self.mean
            left = self.spread - away**2 * self.n / (self.n - 1)
        return bool(((x != x) | (self.n > 1) & np.where(away == 0, self.spread >= 0, left > LEFT * self.top)).all())

    def count(self, x, rows):
        j = x == x
        with np.errstate(all="ignore"):
            n, away = self.n[j] + rows, x[j] / self.unit[j] - self.mean[j]
            self.spread[j] += rows * away**2 * self.n[j] / n
            self.mean[j] += rows * away / n
        self.n[j], self.top = n, np.maximum(self.top, self.spread)


class RoundedGuard:
    """Counts of numbers, rounded to ``bits`` significant bits."""

    def __init__(self, values, counts, bits):
        self.bits, self.columns = bits, len(values)
        self.left = {
            (j, value): count
            for j, (own, rows) in enumerate(zip(values, counts, strict=True))
            for value, count in zip(own.tolist(), rows.tolist(), strict=True)
        }

    def _list_places(self, x):
        return [(j, value) for j, value in enumerate(round_to_bits(x, self.bits).tolist()) if value == value]

    def allows(self, x):
        return all(self.left.get(place, 0) >= 1 for place in self._list_places(x))

    def count(self, x, rows):
        for place in self._list_places(x):
            self.left[place] = self.left.get(place, 0) + rows
