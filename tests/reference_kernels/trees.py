"""Boosted oblivious trees in NumPy; see `priory.core._kernel.trees`."""

import numpy as np

MIN_CURVATURE, TIE, MAX_COUNTED = 1e-6, 1.000001, 64


def find_probabilities(logits):
    """(rows, logits): the softmax of logits; of one logit, the probability of the second class."""
    if logits.shape[1] == 1:
        return 1 / (1 + np.exp(-logits))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def passes(codes, is_label, test):
    """(rows,): whether rows pass a test (column, cut), which sends them to the right."""
    column, cut = test
    return codes[column] == cut if is_label[column] else codes[column] > cut


def list_cuts(n_codes, is_label):
    """The cuts of a column that are tried first: of numbers, at most as many as are counted apart."""
    step = 1 if is_label else 1 << int((n_codes - 1) // MAX_COUNTED).bit_length()
    return range(n_codes) if is_label else range(step - 1, n_codes - 1, step)


def score_cut(right, leaf, gradient, curvature, ridge, n_leaves):
    """The sum of |G|^2 / (H + ridge) over the halves of all leaves."""
    place = 2 * leaf + right
    h = np.bincount(place, curvature, 2 * n_leaves)
    g = np.stack([np.bincount(place, column, 2 * n_leaves) for column in gradient.T], axis=1)
    shared = np.repeat(np.bincount(leaf, minlength=n_leaves) > 1, 2)  # a leaf of one row is the same for all cuts
    return ((g**2).sum(axis=1) / (h + ridge))[shared].sum()


def grow_trees(codes, n_codes, is_label, group, weight, columns, rate, ridge, logits, tests, leaves, cover):
    learned = np.flatnonzero(weight > 0)
    n_logits, (n_trees, depth, _) = logits.shape[1], tests.shape
    truth = group[learned, None] == np.arange(n_logits) + (n_logits == 1)
    w = weight[learned, None]
    for t in range(n_trees):
        p = find_probabilities(logits[learned])
        gradient = w * (truth - p)
        curvature = w[:, 0] * np.maximum((p * (1 - p)).sum(axis=1), MIN_CURVATURE)
        leaf = np.zeros(len(learned), dtype=np.int64)
        for level in range(depth):
            # the cuts of all columns, of numbers with many codes only some; and all cuts of the best column
            tried = [(column, cut) for column in columns[t] for cut in list_cuts(n_codes[column], is_label[column])]
            for finer in (False, True):
                best, chosen = -1.0, (tried[0] if finer else (columns[t, 0], 0))
                for test in tried:
                    right = passes(codes, is_label, test)[learned]
                    score = score_cut(right, leaf, gradient, curvature, ridge, 1 << level)
                    if score > best * TIE:
                        best, chosen = score, test
                tried = [(chosen[0], cut) for cut in range(n_codes[chosen[0]] - (not is_label[chosen[0]]))]
                if finer or len(tried) < MAX_COUNTED or is_label[chosen[0]]:
                    break
            tests[t, level] = chosen
            leaf = 2 * leaf + passes(codes, is_label, chosen)[learned]
        factor = rate if n_logits == 1 else rate * (n_logits - 1) / n_logits
        for c in range(n_logits):
            g = np.bincount(leaf, gradient[:, c], 1 << depth)
            h = np.bincount(leaf, (w * p * (1 - p))[:, c], 1 << depth)
            leaves[t, :, c] = factor * g / (h + ridge)
        cover[t] = np.bincount(leaf, w[:, 0], 1 << depth)
        add_trees(codes, is_label, tests[t : t + 1], leaves[t : t + 1], logits)


def add_trees(codes, is_label, tests, leaves, logits):
    for own_tests, own_leaves in zip(tests, leaves, strict=True):
        leaf = np.zeros(len(logits), dtype=np.int64)
        for test in own_tests:
            leaf = 2 * leaf + passes(codes, is_label, test)
        logits += own_leaves[leaf]
