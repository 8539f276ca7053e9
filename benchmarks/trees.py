"""MDLTreeClassifier against scikit-learn's trees, unpruned and pruned by cost complexity.

Each table is split into the same five stratified folds for all three trees; classes with fewer rows than folds are left
out. Numbers stay numbers, categories become indicator columns (a missing category is one of its own). The strength of
cost-complexity pruning is chosen inside each training part by five folds again, among at most 20 of the strengths on
its path. ``bits`` is the description length of the labels of the training part, tree and exceptions, by the code of
`priory.estimators.mdl_tree` for all three. Nothing in that code was fitted to these tables.

    python benchmarks/trees.py            # writes benchmarks/results/trees.md
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from datasets import CLASSIFICATION, table
from priory.bayes.description_length import label_bits
from priory.estimators.mdl_tree import NODE_BITS, MDLTreeClassifier, compute_ask_bits

SMALL = ["weka_contact_lenses", "weka_labor", "weka_weather_nominal", "weka_weather_numeric"]
RESULT = Path(__file__).parent / "results" / "trees.md"
ROWS = 15_000  # only the first rows of a longer table: cost-complexity pruning by cross-validation is slow
FOLDS = 5


def numbers(frame):
    """The numeric columns, then an indicator column for each value of the others."""
    columns = []
    for name in frame.columns:
        if frame[name].dtype == np.float64:
            columns.append(frame[name].to_numpy())
        else:
            cells = frame[name].fillna("").to_numpy()
            columns += [(cells == value).astype(float) for value in sorted(set(cells))]
    return np.column_stack(columns)


def pruned_by_cost(x, y):
    """A tree pruned with the cost-complexity strength that cross-validation chooses."""
    path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(x, y)
    alphas = np.unique(np.quantile(np.maximum(path.ccp_alphas, 0), np.linspace(0, 1, 20), method="nearest"))
    folds = StratifiedKFold(min(FOLDS, np.unique(y, return_counts=True)[1].min()), shuffle=True, random_state=0)
    if folds.n_splits < 2:
        folds = 2
    grid = GridSearchCV(DecisionTreeClassifier(random_state=0), {"ccp_alpha": alphas}, cv=folds)
    return grid.fit(x, y).best_estimator_


def bits_of(model, x, y):
    """Description length in bits by the code of MDLTreeClassifier."""
    if isinstance(model, MDLTreeClassifier):
        return model.bits_.total
    tree = model.tree_
    leaf = tree.children_left < 0
    counts = tree.value[leaf, 0] * tree.weighted_n_node_samples[leaf, None]
    return compute_ask_bits(tree, x.astype(np.float32))[~leaf].sum() + (NODE_BITS + label_bits(counts)).sum()


TREES = {
    "unpruned": lambda x, y: DecisionTreeClassifier(random_state=0).fit(x, y),
    "cost complexity": pruned_by_cost,
    "MDL": lambda x, y: MDLTreeClassifier().fit(x, y),
}


def measured(x, y, grow):
    """Accuracy, log loss, leaves, bits and seconds, averaged over the folds."""
    scores = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x, y):
        start = time.perf_counter()
        model = grow(x[train], y[train])
        seconds = time.perf_counter() - start
        proba = np.zeros((len(test), len(np.unique(y))))
        proba[:, np.searchsorted(np.unique(y), model.classes_)] = model.predict_proba(x[test])
        right = accuracy_score(y[test], model.predict(x[test]))
        loss = log_loss(y[test], proba, labels=np.unique(y))
        scores.append([right, loss, model.get_n_leaves(), bits_of(model, x[train], y[train]), seconds])
    return np.mean(scores, axis=0)


def main():
    lines = ["# Trees", "", __doc__.split("\n\n    python")[0], ""]
    lines += ["| table | rows x columns | " + " | ".join(TREES) + " |", "|---|---|" + "---|" * len(TREES)]
    everything, sizes = [], []
    for name in CLASSIFICATION + SMALL:
        if (data := table(name)) is None:
            continue
        x, y = numbers(data[0][:ROWS]), data[1][:ROWS].to_numpy(dtype=str)
        common = np.isin(y, [c for c in np.unique(y) if (y == c).sum() >= FOLDS])
        x, y = x[common], y[common]
        scores = [measured(x, y, grow) for grow in TREES.values()]
        cells = [f"{a:.3f} / {ll:.3f}; {leaves:.0f}; {bits:.0f}" for a, ll, leaves, bits, _ in scores]
        lines.append(f"| {name} | {x.shape[0]} x {x.shape[1]} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
        everything.append(scores)
        sizes.append(len(y))
    found = summary(np.array(everything), np.array(sizes))
    RESULT.write_text("\n".join(lines + found) + "\n")
    print("\n".join(found))


def summary(scores, sizes):
    """The means over the tables, and the two figures that matter."""
    mean = scores.mean(axis=0)
    share = scores[:, 2, 2] / scores[:, 0, 2]
    gap = (scores[:, 2, 0] - scores[:, :2, 0].T) * 100
    cells = [f"{a:.3f} / {ll:.3f}; {leaves:.0f}; {bits:.0f}" for a, ll, leaves, bits, _ in mean]
    return [
        "| **mean** | | " + " | ".join(cells) + " |",
        "| **seconds to fit, in all** | | "
        + " | ".join(f"{s:.1f}" for s in scores[:, :, 4].sum(axis=0) * FOLDS)
        + " |",
        "",
        "A cell holds accuracy / log loss; leaves; bits. scikit-learn's trees answer with the frequencies in a leaf, "
        "so that a label not seen there costs 36 nats; MDL's are smoothed by one observation, as is its code.",
        "",
        f"MDL against unpruned: {gap[0].mean():+.2f} points of accuracy on average (worst {gap[0].min():+.2f}); "
        f"against cost complexity: {gap[1].mean():+.2f} (worst {gap[1].min():+.2f}). "
        f"Without the tables of fewer than 100 rows: {gap[0, sizes >= 100].mean():+.2f} (worst "
        f"{gap[0, sizes >= 100].min():+.2f}) and {gap[1, sizes >= 100].mean():+.2f} "
        f"(worst {gap[1, sizes >= 100].min():+.2f}).",
        f"Leaves: {mean[2, 2]:.0f} against {mean[0, 2]:.0f} unpruned "
        f"(ratio {mean[2, 2] / mean[0, 2]:.2f} of the means; per table {share.mean():.2f} on average, "
        f"{share.max():.2f} at most) and {mean[1, 2]:.0f} by cost complexity.",
    ]


if __name__ == "__main__":
    main()
