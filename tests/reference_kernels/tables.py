"""The readable twin of `tables`: what each loop means, in NumPy.

Shapes: ``x`` is (rows, columns), ``group`` gives each row its class (0 .. groups-1), ``weight`` its weight or None.
"""

from __future__ import annotations

import numpy as np

MAX_KERNEL_Z = 1e130  # the square of anything farther out would overflow; the verdict is the same


def group_sums(x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int) -> np.ndarray:
    """Weighted column sums of the rows of each class."""
    sums = np.zeros((groups, x.shape[1]))
    np.add.at(sums, group, x if weight is None else x * weight[:, None])
    return sums


def code_counts(
    codes: np.ndarray, starts: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int
) -> np.ndarray:
    """How often each class showed each value; column j's value v is cell ``starts[j] + v``; negative is missing."""
    counts = np.zeros((groups, starts[-1]))
    w = np.ones(len(codes)) if weight is None else weight
    for j in range(codes.shape[1]):
        seen = codes[:, j] >= 0
        np.add.at(counts, (group[seen], starts[j] + codes[seen, j]), w[seen])
    return counts


def value_counts(
    x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int, bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of one column at ``bits`` significant binary digits, in order, and their counts per class."""
    seen = ~np.isnan(x)
    mantissa, exponent = np.frexp(x[seen])
    whole = np.asarray(np.round(np.ldexp(mantissa, bits)))
    beyond = (exponent == 1024) & (np.abs(whole) == 2.0**bits)  # the largest double
    whole = whole - np.where(beyond, np.sign(whole), 0.0)
    rounded = np.ldexp(whole, exponent - bits) + 0.0
    values, place = np.unique(rounded, return_inverse=True)
    counts = np.zeros((groups, len(values)))
    np.add.at(counts, (group[seen], place), 1.0 if weight is None else weight[seen])
    return values, counts


def quadratic(
    x: np.ndarray, inverse_unit: np.ndarray, centre: np.ndarray, precision: np.ndarray, constant: np.ndarray
) -> np.ndarray:
    """Sum over columns of ``constant - precision / 2 * (x / unit - centre)^2`` per row and class; NaN adds nothing."""
    scores = np.zeros((len(x), len(centre)))
    for c in range(len(centre)):
        z = np.clip(x * inverse_unit - centre[c], -MAX_KERNEL_Z, MAX_KERNEL_Z)
        scores[:, c] = np.where(np.isnan(z), 0.0, constant[c] - 0.5 * precision[c] * z * z).sum(axis=1)
    return scores


def student(
    x: np.ndarray,
    inverse_unit: np.ndarray,
    centre: np.ndarray,
    precision: np.ndarray,
    power: np.ndarray,
    constant: np.ndarray,
) -> np.ndarray:
    """Sum over columns of ``constant - power * log(1 + precision * (x / unit - centre)^2)``; NaN adds nothing."""
    scores = np.zeros((len(x), len(centre)))
    for c in range(len(centre)):
        z = np.clip(x * inverse_unit - centre[c], -MAX_KERNEL_Z, MAX_KERNEL_Z)
        scores[:, c] = np.where(np.isnan(z), 0.0, constant[c] - power[c] * np.log1p(precision[c] * z * z)).sum(axis=1)
    return scores


def lookup(codes: np.ndarray, starts: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Sum over columns of ``table[starts[j] + code, class]`` per row and class; a negative code adds nothing."""
    scores = np.zeros((len(codes), table.shape[1]))
    for j in range(codes.shape[1]):
        seen = codes[:, j] >= 0
        scores[seen] += table[starts[j] + codes[seen, j]]
    return scores
