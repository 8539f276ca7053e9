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
