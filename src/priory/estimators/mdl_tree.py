"""A decision tree as short as it should be: tree size traded against exceptions, both in bits.

    L(tree) + L(labels | tree)

To send the labels of rows that the receiver has without them, send the tree, then what the tree gets wrong. A node says
in one bit whether it asks or answers. A question names its column and one of its thresholds. An answer is the adaptive
code of its labels (`codelength.label_bits`): the first names the leaf and belongs to the tree, the others cost next to
nothing until there is an exception. The code adds up over the nodes, so the shortest of all prunings is found in one
pass from the leaves to the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.typing import Array
from priory.estimators.sklearn_compat import check_sklearn_sample_weight
from priory.hypotheses.description_length import Bits, label_bits

NODE_BITS = 1.0  # bits: does this node ask or answer?


@final
class MDLTreeClassifier(ClassifierMixin, BaseEstimator):
    """scikit-learn's tree, grown in full and pruned by description length.

    ``bits_`` is the code of the tree and of its exceptions. Of the nodes of the grown ``tree_``, ``nodes_`` were kept,
    ``asks_`` says which of them ask, and ``leaf_`` where each grown node ends. Probabilities are
    ``(n_c + 1/k) / (n + 1)``, as the labels' code has them. Missing cells go the way scikit-learn's tree sends them;
    ``random_state`` breaks its ties between columns.

    >>> x = np.arange(20.0)[:, None]
    >>> tree = MDLTreeClassifier().fit(x, ["low"] * 10 + ["high"] * 10)
    >>> print(tree.to_text(["x"]))
    x <= 9.5                                          5.2 bits
        low (10 rows, 0 exceptions)                   3.5 bits
    x > 9.5
        high (10 rows, 0 exceptions)                  3.5 bits
    tree 9.2 bits + exceptions 3.0 bits = 12.3 bits
    """

    classes_: Array
    tree_: Any
    bits_: Bits
    counts_: Array
    missing_: Array
    ask_bits_: Array
    answer_bits_: Array
    asks_: Array
    leaf_: Array
    nodes_: Array

    def __init__(self, *, random_state: Any = 0) -> None:
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        table, labels = validate_data(self, X, y, dtype=np.float32, ensure_all_finite="allow-nan")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        weight = check_sklearn_sample_weight(sample_weight, table, ensure_non_negative=True)
        seen = weight > 0
        grown = DecisionTreeClassifier(criterion="entropy", random_state=self.random_state)
        self.tree_ = grown.fit(table[seen], codes[seen], sample_weight=weight[seen]).tree_
        self.counts_ = np.zeros((self.tree_.node_count, len(self.classes_)))
        self.counts_[:, grown.classes_] = self.tree_.value[:, 0] * self.tree_.weighted_n_node_samples[:, None]
        self.missing_ = np.isnan(table[seen]).any(axis=0)
        self.ask_bits_ = compute_ask_bits(self.tree_, table[seen])
        self.answer_bits_ = NODE_BITS + label_bits(self.counts_)
        self.asks_, self.leaf_ = find_shortest_pruning(self.tree_, self.ask_bits_, self.answer_bits_)
        self.nodes_ = np.unique(self.leaf_)
        leaves = self.nodes_[~self.asks_[self.nodes_]]
        named = len(leaves) * (NODE_BITS + np.log2(len(self.classes_)))
        self.bits_ = Bits(
            float(self.ask_bits_[self.asks_].sum() + named), float(self.answer_bits_[leaves].sum() - named)
        )
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        counts = self.counts_[self.apply(X)]
        return (counts + 1 / len(self.classes_)) / (counts.sum(axis=1, keepdims=True) + 1)

    def predict(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        most = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most])

    def apply(self, X: ArrayLike) -> Array:
        """The leaf of each row, as a node of ``tree_``."""
        check_is_fitted(self)
        table = validate_data(self, X, dtype=np.float32, ensure_all_finite="allow-nan", reset=False)
        return np.asarray(self.leaf_[self.tree_.apply(table)])

    def get_n_leaves(self) -> int:
        """Leaves left after pruning."""
        check_is_fitted(self)
        return int((~self.asks_[self.nodes_]).sum())

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """The tree with the bits of each question and answer."""
        check_is_fitted(self)
        named = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        lines = self._format_lines(0, 0, named if feature_names is None else feature_names)
        tree, exceptions = self.bits_
        total = f"tree {tree:.1f} bits + exceptions {exceptions:.1f} bits = {self.bits_.total:.1f} bits"
        return "\n".join([*lines, total])

    def _format_lines(self, node: int, depth: int, names: Sequence[str]) -> Iterator[str]:
        margin, tree = "    " * depth, self.tree_
        if not self.asks_[node]:
            counts = self.counts_[node]
            rows, label = counts.sum(), self.classes_[counts.argmax()]
            text = f"{margin}{label} ({rows:g} rows, {rows - counts.max():g} exceptions)"
            yield f"{text:<48} {self.answer_bits_[node]:>4.1f} bits"
            return
        low, high = self._format_sides(node, names[tree.feature[node]])
        yield f"{margin + low:<48} {self.ask_bits_[node]:>4.1f} bits"
        yield from self._format_lines(tree.children_left[node], depth + 1, names)
        yield margin + high
        yield from self._format_lines(tree.children_right[node], depth + 1, names)

    def _format_sides(self, node: int, name: str) -> tuple[str, str]:
        """The two answers to a question; missing cells are spoken of where the column had some."""
        threshold = self.tree_.threshold[node]
        if np.isinf(threshold):
            return f"{name} known", f"{name} missing"
        low, high = f"{name} <= {threshold:g}", f"{name} > {threshold:g}"
        if not self.missing_[self.tree_.feature[node]]:
            return low, high
        return (f"{low} or missing", high) if self.tree_.missing_go_to_left[node] else (low, f"{high} or missing")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def find_shortest_pruning(tree: Any, ask_costs: Array, answer_costs: Array) -> tuple[Array, Array]:
    """The shortest pruning: which nodes ask, and for each node the one of the pruned tree that stands for it."""
    inner = np.flatnonzero(tree.children_left >= 0)
    children = np.column_stack([tree.children_left, tree.children_right])
    best, asks, standing = answer_costs.copy(), np.zeros(len(answer_costs), dtype=bool), np.arange(len(answer_costs))
    for node in inner[::-1]:  # upwards: scikit-learn numbers a child after its parent
        below = ask_costs[node] + best[children[node]].sum()
        if below < best[node]:
            best[node], asks[node] = below, True
    for node in inner:  # downwards: below an answer nothing is left
        if standing[node] != node or not asks[node]:
            asks[node], standing[children[node]] = False, standing[node]
    return asks, standing


def compute_ask_bits(tree: Any, table: Array) -> Array:
    """Bits of the question at each node: that it asks, which column, which threshold, and where missing cells go.

    A column of m values has m - 1 thresholds (one more if missing cells can be told from known ones), and a node of n
    rows can use at most n - 1 of them.
    """
    feature = np.maximum(tree.feature, 0)  # a leaf's is -2, and its question is never counted
    known = [column[~np.isnan(column)] for column in table.T]
    thresholds = np.array([len(np.unique(column)) - 1 for column in known])[feature]
    missing = np.array([len(column) < len(table) for column in known])[feature]
    choices = np.minimum(thresholds + missing, tree.weighted_n_node_samples - 1)
    return np.asarray(NODE_BITS + np.log2(len(known)) + np.log2(np.maximum(choices, 1.0)) + missing)
