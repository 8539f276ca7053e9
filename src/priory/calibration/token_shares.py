"""Naive Bayes of few texts, with the token shares of all of them as prior: words that no class has seen tell nothing.

    score(text, c)  =  sum over its n tokens of [log(N(t, c) + s p(t)) - log(s p(t)) - log(N(c) + s)] / sqrt(n)

N counts texts of unit length by class, p(t) are the shares of all texts together, and s is ten times what an average
class has. With the same number of virtual texts for each token instead, 20,000 tokens outweigh a few hundred words, and
each word that a class lacks is an argument for the class with the shorter texts.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows, sum_entries, sum_entries_by_class

MAX_FEW_TEXTS = 2000  # with more, the counts of each class are enough
MAX_CELLS = 1 << 24  # entries times classes
STRENGTH = 10.0  # of the shares, in average classes
SHARE_EXPONENTS = np.geomspace(0.01, 100.0, 41)
SHARE_ROUNDING = 1e-9


def score_by_shares(rows: SparseRows, group: Array, weight: Array, n_classes: int) -> tuple[Array, Array]:
    """What tokens say for each class, (tokens, classes), and the score of each text by the others, (texts, classes).

    Texts of positive weight are counted, all of them are scored; ``rows`` have unit length.
    """
    shape = rows.width, n_classes
    counts = sum_entries_by_class(rows.ends, rows.indices, rows.values.astype(float), group, weight, shape)
    total, shown = counts.sum(axis=0), counts.sum(axis=1)  # (classes,), (tokens,)
    if not total.any():  # no text has a token
        return np.zeros(shape), np.zeros((rows.n_rows, n_classes))
    strength, known = STRENGTH * total.mean(), np.flatnonzero(shown)
    table = np.zeros(shape)
    table[known] = np.log1p(counts[known] * (total.sum() / strength / shown[known])[:, None])
    table[known] -= np.log(total + strength)
    # without the text itself: what it adds to each of its tokens (entries,), and to its class (texts,)
    own, text = (
        np.repeat(weight, np.diff(rows.ends)) * rows.values,
        np.repeat(np.arange(rows.n_rows), np.diff(rows.ends)),
    )
    added, rest = sum_entries(rows.ends, own), shown[rows.indices] - own
    kept = rest > SHARE_ROUNDING  # tokens of other texts
    n_kept, text, tokens, own = sum_entries(rows.ends, kept), text[kept], rows.indices[kept], own[kept]
    others, mass = counts[tokens], np.repeat(total[None], rows.n_rows, axis=0)  # (entries, classes), (texts, classes)
    others[np.arange(len(text)), group[text]] -= own
    mass[np.arange(rows.n_rows), group] -= added
    others *= ((total.sum() - added)[text] / strength / rest[kept])[:, None]  # in virtual texts of the token
    gains = np.log1p(np.maximum(others, 0.0, out=others), out=others)
    sums = np.zeros(mass.shape)
    if len(gains):
        some = np.flatnonzero(n_kept)
        sums[some] = np.add.reduceat(gains, np.append(0, np.cumsum(n_kept[some]))[:-1])
    scores = sums - n_kept[:, None] * np.log(mass + strength)
    return table, scores / np.sqrt(np.maximum(n_kept, 1))[:, None]


def choose_exponent(
    scores: Array, group: Array, weight: Array | None = None, log_prior: Array | float = 0.0
) -> tuple[float, float]:
    """The exponent of scores (texts, classes) with the smallest log loss, and the loss; ``log_prior`` is (classes,).

    One of n + 2 labels counts as any class: that ten texts are answered right proves little.

    >>> choose_exponent(np.array([[9.0, 0.0], [0.0, 9.0]]), np.array([0, 1]))[0] < 0.3
    True
    """
    mistaken, rows = 1.0 / (len(group) + 2.0), np.arange(len(group))
    answers = [log_normalise(exponent * scores + log_prior) for exponent in SHARE_EXPONENTS]
    losses = [
        -np.average((1 - mistaken) * log_p[rows, group] + mistaken * log_p.mean(axis=1), weights=weight)
        for log_p in answers
    ]
    best = int(np.argmin(losses))
    return float(SHARE_EXPONENTS[best]), float(losses[best])
