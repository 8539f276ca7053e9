"""The readable twin of `sparse`: what each loop means, in NumPy."""

from __future__ import annotations

import numpy as np


def multiply_rows(
    ends: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray | None,
    dense: np.ndarray,
    out: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """Rows ``start .. stop-1`` of a sparse table times ``dense``, into ``out``; without ``data`` all values are one.

    The entries of row i are ``indices[ends[i] : ends[i + 1]]``; the width of ``dense`` is a multiple of 8.
    """
    for i in range(start, stop):
        entries = slice(ends[i], ends[i + 1])
        values = 1.0 if data is None else data[entries, None]
        out[i] = (values * dense[indices[entries]]).sum(axis=0, dtype=np.float32)


def add_products(ends: np.ndarray, indices: np.ndarray, data: np.ndarray, dense: np.ndarray, out: np.ndarray) -> None:
    """Add a sparse table times ``dense`` to ``out``: a table of any width, in single or double precision."""
    for i in range(len(out)):
        entries = slice(ends[i], ends[i + 1])
        out[i] += (data[entries, None] * dense[indices[entries]]).sum(axis=0)


def add_transposed_products(
    ends: np.ndarray, indices: np.ndarray, data: np.ndarray, dense: np.ndarray, out: np.ndarray
) -> None:
    """Add the transposed sparse table times ``dense`` to ``out``, as `add_products` does."""
    row = np.repeat(np.arange(len(dense)), np.diff(ends))
    np.add.at(out, indices, data[:, None] * dense[row])


def order_entries(indices: np.ndarray, width: int) -> np.ndarray:
    """The entries column by column; those of one column stay in order. Columns are below ``width``."""
    return np.argsort(indices, kind="stable")


def unite_rows(
    ends: np.ndarray,
    ids: np.ndarray,
    part_ends: np.ndarray,
    parts: np.ndarray,
    seen: np.ndarray,
    out: np.ndarray | None,
    out_ends: np.ndarray,
) -> None:
    """The distinct parts of all entries of each row, in the order in which they are met, into ``out`` and ``out_ends``.

    The parts of entry ``e`` are ``parts[part_ends[e] : part_ends[e + 1]]``. ``seen`` (columns,) begins with -1. Without
    ``out`` they are only counted.
    """
    n = 0
    for i in range(len(ends) - 1):
        met = [parts[part_ends[e] : part_ends[e + 1]] for e in ids[ends[i] : ends[i + 1]].tolist()]
        found = list(dict.fromkeys(np.concatenate([parts[:0], *met]).tolist()))
        seen[found] = i
        if out is not None:
            out[n : n + len(found)] = found
        n += len(found)
        out_ends[i + 1] = n


def judge_logits(
    logits: np.ndarray,
    group: np.ndarray,
    weight: np.ndarray,
    n_logits: int,
    wrong: np.ndarray,
    losses: np.ndarray,
) -> None:
    """The log loss (rows, models) of several models' logits, and its weighted derivative, into ``losses``, ``wrong``.

    Row i holds ``n_logits`` logits for each model; a single one is that of the second of two classes.
    """
    rows, models = weight.shape
    z = logits[:, : models * n_logits].reshape(rows, models, n_logits)
    if n_logits == 1:
        z = np.concatenate([np.zeros_like(z), z], axis=2)
    z = z - z.max(axis=2, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(axis=2, keepdims=True)
    own = np.eye(z.shape[2])[group][:, None]
    losses[:] = np.log(np.exp(z).sum(axis=2)) - (z * own).sum(axis=2)
    slope = (p - own)[:, :, -n_logits:] * weight[:, :, None]
    wrong[:, : models * n_logits] = slope.reshape(rows, -1)


def score_cells(
    levels: np.ndarray,
    sets: np.ndarray,
    n_levels: int,
    wrong: np.ndarray,
    chance: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """How far the residuals of sets ``start .. stop-1`` of columns are above chance, into ``out`` (sets, width).

    ``levels`` is (columns, rows), and a row with a negative level is in no cell. ``wrong`` and ``chance`` (rows, width)
    are added up in every cell of a set's table; ``sums`` (2, cells, width) is room for that.
    """
    for s in range(start, stop):
        own = levels[sets[s]]  # (columns of the set, rows)
        known = np.flatnonzero((own >= 0).all(axis=0))
        cell = np.ravel_multi_index(tuple(own[:, known]), (n_levels,) * len(own))
        sums[:] = 0.0
        np.add.at(sums[0], cell, wrong[known])
        np.add.at(sums[1], cell, chance[known])
        out[s] = ((sums[0] ** 2 - sums[1]) / (1.0 + sums[1])).sum(axis=0)


def copy_rows(ends: np.ndarray, entries: np.ndarray, size: int, rows: np.ndarray, out: np.ndarray) -> None:
    """The entries of some rows, one row after the other, into ``out``; an entry is ``size`` bytes."""
    places = [np.arange(size * ends[row], size * ends[row + 1]) for row in rows]
    out[:] = entries[np.concatenate([np.zeros(0, np.int64), *places])]


def sort_rows(
    ends: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    more_columns: np.ndarray,
    more_values: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """Sort the entries of rows ``start .. stop-1`` by their columns, in place; the others are room for as many."""
    for i in range(start, stop):
        entries = slice(ends[i], ends[i + 1])
        order = np.argsort(columns[entries], kind="stable")
        columns[entries], values[entries] = columns[entries][order], values[entries][order]


def count_entries(
    ends: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray | None,
    group: np.ndarray,
    weight: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add each row, by its weight, to ``counts`` (columns, classes) at its class; without ``data`` values are one."""
    row = np.repeat(np.arange(len(group)), np.diff(ends))
    np.add.at(counts, (indices, group[row]), weight[row] if data is None else data * weight[row])


def score_left_out(
    ends: np.ndarray,
    indices: np.ndarray,
    group: np.ndarray,
    weight: np.ndarray,
    smoothing: float,
    counts: np.ndarray,
    totals: np.ndarray,
    logs: np.ndarray,
    scores: np.ndarray,
    remaining: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """Add ``Σ log(count + smoothing)`` over the columns of rows ``start .. stop-1`` to ``scores`` (rows, classes).

    Each row is left out: in its own class the counts are smaller by its weight. Columns that no other row shows are
    left out too; how many are not is added to ``remaining``. ``totals`` are the counts of all classes, and ``logs`` the
    logarithms of the smoothed counts.
    """
    for i in range(start, stop):
        columns = indices[ends[i] : ends[i + 1]]
        columns = columns[totals[columns] > weight[i]]
        seen = counts[columns, group[i]]
        remaining[i] += len(columns)
        scores[i] += logs[columns].sum(axis=0)
        fewer = np.log(np.maximum(seen - weight[i], 0.0) + smoothing) - np.log(seen + smoothing)
        scores[i, group[i]] += fewer.sum()


def ascend_rows(
    ends: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    squares: np.ndarray,
    common: np.ndarray,
    offset: np.ndarray,
    group: np.ndarray,
    weight: np.ndarray,
    strength: float,
    order: np.ndarray,
    n_logits: int,
    answers: np.ndarray,
    weights: np.ndarray,
    shift: np.ndarray,
    moved: np.ndarray,
) -> None:
    """Dual coordinate ascent: for each row in ``order``, a Newton step towards the answer that agrees with its logits.

    The weights (features, at least ``n_logits``) are ``Σ_i weight_i x_i (own class - answers_i) / strength`` before and
    after each step. What a row has in ``common`` with all others does not count: ``shift`` (at least ``n_logits``) is
    the same sum over ``common``, and is taken back. ``squares`` are the squared lengths of the rows without it, and
    ``moved`` is how far each answer moved.
    """
    for i in order:
        entries = slice(ends[i], ends[i + 1])
        features, x = indices[entries], data[entries]
        z = offset[i, :n_logits] + x @ weights[features, :n_logits] - common[i] * shift[:n_logits]
        if n_logits == 1:
            z = np.append(0.0, z)
        p = np.exp(z - z.max())
        p = (p / p.sum())[-n_logits:]
        curvature = weight[i] * squares[i] / strength  # how much the row's own answer moves its own logits
        middle = (p + answers[i]) / 2  # steps stay short of too far
        slope = np.diag(middle) - np.outer(middle, middle)
        step = np.linalg.solve(np.eye(n_logits) + curvature * slope, p - answers[i])
        answers[i] += step
        moved[i] = np.abs(step).sum()
        pull = -weight[i] / strength * step
        shift[:n_logits] += common[i] * pull
        np.add.at(weights[:, :n_logits], features, np.outer(x, pull))
