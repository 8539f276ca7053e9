"""The readable twin of `products`: exact sums of products, in NumPy and Python integers.

Shapes: ``z`` is (rows, columns). ``limbs`` is (pairs, limbs): the pairs of columns i <= j in the order of
``numpy.triu_indices``, each the sum of ``limbs[pair, k] * 2 ** (32 * (base + k))`` over k.
"""

from __future__ import annotations

import numpy as np

BITS_OF_LIMB = 32


def flushes_denormals() -> bool:
    """Whether this thread takes the smallest numbers for zero, as some libraries make the processor do."""
    return bool(np.float64(5e-324) * np.float64(1.0) == 0.0)


def cut_digits(
    z: np.ndarray, order: np.ndarray, limit: np.ndarray, unit: np.ndarray, columns: np.ndarray, digits: np.ndarray
) -> np.ndarray:
    """Cut every cell into whole numbers of the units of its column, the largest unit first.

    The columns are taken in this ``order``. ``unit`` is (levels, columns), and level k takes the first ``columns[k]``
    of them. ``digits`` (rows, digits) gets the digits, level by level. A row fits if none of its cells is above its
    ``limit`` and nothing of them is left after the last unit; the digits of the others are zero. Returns which rows
    fit.
    """
    z = z[:, order]
    rest, parts = z.copy(), []
    for level, n in enumerate(columns):
        digit = np.rint(rest[:, :n] / unit[level, :n])
        rest[:, :n] -= digit * unit[level, :n]
        parts.append(digit)
    fits = (np.abs(z) <= limit).all(axis=1) & (rest == 0).all(axis=1)
    digits[:] = np.where(fits[:, None], np.concatenate([np.empty((len(z), 0)), *parts], axis=1), 0.0)
    return fits


def place_sums(
    sums: np.ndarray, column: np.ndarray, exponent: np.ndarray, p: int, limbs: np.ndarray, base: int
) -> None:
    """Add ``sums[a, b] * 2 ** (exponent[a] + exponent[b])`` to the pair of the columns of the digits a and b."""
    pair = {ij: k for k, ij in enumerate(zip(*np.triu_indices(p), strict=True))}
    for a in range(len(sums)):
        for b in range(len(sums)):
            if column[a] <= column[b]:
                shift = int(exponent[a] + exponent[b]) - BITS_OF_LIMB * base
                _add_integer(limbs[pair[column[a], column[b]]], int(sums[a, b]) << shift)


def find_limb_range(z: np.ndarray) -> tuple[bool, int, int]:
    """Whether all cells are finite, and the lowest and highest limb in which a cell that is not zero begins."""
    some = z[z != 0]
    places = (np.maximum(np.frexp(np.where(np.isfinite(some), some, 2.0**1023))[1], -1021) - 53) // BITS_OF_LIMB
    low, high = (int(places.min()), int(places.max())) if len(places) else (0, 0)
    return bool(np.isfinite(z).all()), low, high


def add_rows(z: np.ndarray, weight: np.ndarray | None, limbs: np.ndarray, base: int) -> None:
    """Add the products of every row, times its weight; ``base`` and the number of limbs leave room for all of them."""
    left, right = np.triu_indices(z.shape[1])
    for i, row in enumerate(z):
        ratios = [float(x).as_integer_ratio() for x in row]
        top, bottom = (1.0 if weight is None else float(weight[i])).as_integer_ratio()
        for k, (a, b) in enumerate(zip(left, right, strict=True)):
            numerator = (ratios[a][0] * ratios[b][0] * top) << -BITS_OF_LIMB * min(base, 0)
            whole, _ = divmod(numerator, ratios[a][1] * ratios[b][1] * bottom << BITS_OF_LIMB * max(base, 0))
            _add_integer(limbs[k], whole)


def transform_sums(limbs: np.ndarray, index: np.ndarray, factor: np.ndarray) -> tuple[np.ndarray, int]:
    """The sums of products of new columns, each the sum of ``factor[i, a]`` times the old column ``index[i, a]``.

    The limbs have been carried: only the last may be negative. Returns limbs, and how much their base is above theirs.
    """
    rows, old = len(limbs), 0
    while old * (old + 1) // 2 < rows:
        old += 1
    values = [sum(int(v) << BITS_OF_LIMB * k for k, v in enumerate(row)) for row in limbs]
    pair = {ij: k for k, ij in enumerate(zip(*np.triu_indices(old), strict=True))}
    _, low, high = find_limb_range(factor)
    left, right = np.triu_indices(len(index))
    sums = np.zeros((len(left), limbs.shape[1] + 2 * (high - low) + 7), dtype=np.int64)
    scale = 1 << -BITS_OF_LIMB * 2 * low  # the factors of a centring are never so large that they have no fraction
    for k, (i, j) in enumerate(zip(left, right, strict=True)):
        for a, x in zip(index[i], factor[i], strict=True):
            for b, y in zip(index[j], factor[j], strict=True):
                (top, bottom), (other_top, other_bottom) = float(x).as_integer_ratio(), float(y).as_integer_ratio()
                old_sum = values[pair[min(a, b), max(a, b)]]
                _add_integer(sums[k], old_sum * top * other_top * scale // (bottom * other_bottom))
    return sums, 2 * low


def _add_integer(limbs: np.ndarray, value: int) -> None:
    sign, rest, k = (1 if value > 0 else -1), abs(value), 0
    while rest:
        limbs[k] += sign * (rest & (1 << BITS_OF_LIMB) - 1)
        rest >>= BITS_OF_LIMB
        k += 1
