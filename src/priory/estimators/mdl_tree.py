"""A decision tree pruned by minimum description length: the bits of the tree plus the bits of its exceptions.

    L(tree) + L(labels | tree)

The labels of known rows are described by a tree and its exceptions. One bit says whether a node is a question or a
leaf. A question names its column and one of its thresholds. A leaf is the adaptive code of its labels
(`priory.hypotheses.description_length.label_bits`): the first label names the leaf and counts as part of the tree, and
the others cost little until there is an exception. The description is a sum over the nodes, so the shortest of all
prunings is found in one pass from the leaves to the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.input_guard import guard_input
from priory.core.sample_weight import check_sample_weight
from priory.core.single_rows import SingleRowMethods
from priory.core.typing import Array, MatrixLike, RandomState
from priory.hypotheses.description_length import Bits, label_bits

if TYPE_CHECKING:
    from sklearn.tree._tree import Tree

NODE_BITS = 1.0  # whether a node is a question or a leaf


@final
class MDLTreeClassifier(ClassifierMixin, SingleRowMethods, BaseEstimator):
    """A scikit-learn decision tree, fully grown and then pruned to the shortest description.

    The probabilities of a leaf with n rows, n_c of them of class c, are ``(n_c + 1/k) / (n + 1)`` for k classes, in
    agreement with the code of its labels. Missing cells are handled as in scikit-learn's tree.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        The seed with which scikit-learn's tree breaks ties between columns.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        P(class): the share of the rows of each class.
    bits_ : Bits
        The description length: of the tree, and of its exceptions.
    tree_ : sklearn.tree._tree.Tree
        The tree before pruning.
    nodes_ : ndarray of int
        The nodes of ``tree_`` that were kept.
    asks_ : ndarray of bool
        Whether each node of ``tree_`` is a question of the pruned tree.
    leaf_ : ndarray of int
        The node of the pruned tree that replaces each node of ``tree_``.
    counts_ : ndarray of shape (n_nodes, n_classes)
        The number of rows of each class at each node.
    ask_bits_, answer_bits_ : ndarray of shape (n_nodes,)
        The bits of each node as a question and as a leaf.
    missing_ : ndarray of shape (n_features,)
        Whether each column had missing cells.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if the table has them.

    References
    ----------
    .. [1] T. M. Mitchell, "Machine Learning", McGraw-Hill, 1997, section 6.6.
    .. [2] J. R. Quinlan and R. L. Rivest, "Inferring decision trees using the minimum description length principle",
       Information and Computation 80(3), 1989.

    Examples
    --------
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
    class_prior_: Array
    tree_: Tree
    bits_: Bits
    counts_: Array
    missing_: Array
    ask_bits_: Array
    answer_bits_: Array
    asks_: Array
    leaf_: Array
    nodes_: Array

    def __init__(self, *, random_state: RandomState = 0) -> None:
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree and prune it."""
        with guard_input(X):
            table, labels = validate_data(self, X, y, dtype=np.float32, ensure_all_finite="allow-nan")
            check_classification_targets(labels)
        weight = check_sample_weight(sample_weight, len(table))
        weight = np.ones(len(table)) if weight is None else weight
        self.classes_, codes = np.unique(labels, return_inverse=True)
        used = weight > 0
        grown = DecisionTreeClassifier(criterion="entropy", random_state=self.random_state)
        self.tree_ = grown.fit(table[used], codes[used], sample_weight=weight[used]).tree_
        self.counts_ = np.zeros((self.tree_.node_count, len(self.classes_)))
        self.counts_[:, grown.classes_] = self.tree_.value[:, 0] * self.tree_.weighted_n_node_samples[:, None]
        self.class_prior_ = self.counts_[0] / self.counts_[0].sum()
        self.missing_ = np.isnan(table[used]).any(axis=0)
        self.ask_bits_ = compute_ask_bits(self.tree_, table[used])
        self.answer_bits_ = NODE_BITS + label_bits(self.counts_)
        self.asks_, self.leaf_ = find_shortest_pruning(self.tree_, self.ask_bits_, self.answer_bits_)
        self.nodes_ = np.unique(self.leaf_)
        leaves = self.nodes_[~self.asks_[self.nodes_]]
        named = len(leaves) * (NODE_BITS + np.log2(len(self.classes_)))
        self.bits_ = Bits(
            float(self.ask_bits_[self.asks_].sum() + named), float(self.answer_bits_[leaves].sum() - named)
        )
        return self

    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the probability of each class."""
        check_is_fitted(self)
        counts = self.counts_[self.apply(X)]
        return (counts + 1 / len(self.classes_)) / (counts.sum(axis=1, keepdims=True) + 1)

    def predict(self, X: MatrixLike) -> Array:
        """Return the most probable class of each row."""
        check_is_fitted(self)
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def apply(self, X: MatrixLike) -> Array:
        """Return the leaf of each row, as a node of ``tree_``."""
        check_is_fitted(self)
        with guard_input(X):
            table = validate_data(self, X, dtype=np.float32, ensure_all_finite="allow-nan", reset=False)
        return np.asarray(self.leaf_[self.tree_.apply(table)])

    def _explain_absence(self, method: str) -> str:
        return "a tree is grown and pruned over all rows at once; call fit with all of them, or use priory.NaiveBayes."

    def get_n_leaves(self) -> int:
        """Return the number of leaves after pruning."""
        check_is_fitted(self)
        return int((~self.asks_[self.nodes_]).sum())

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Return the tree as text, with the bits of each question and leaf."""
        check_is_fitted(self)
        default_names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        lines = self._format_lines(0, 0, default_names if feature_names is None else feature_names)
        tree, exceptions = self.bits_
        total = f"tree {tree:.1f} bits + exceptions {exceptions:.1f} bits = {self.bits_.total:.1f} bits"
        return "\n".join([*lines, total])

    def _format_lines(self, node: int, depth: int, names: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a node and everything below it."""
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
        """Return the two answers to a question; missing cells are mentioned if the column had some."""
        threshold = self.tree_.threshold[node]
        if np.isinf(threshold):
            return f"{name} present", f"{name} missing"
        low, high = f"{name} <= {threshold:g}", f"{name} > {threshold:g}"
        if not self.missing_[self.tree_.feature[node]]:
            return low, high
        return (f"{low} or missing", high) if self.tree_.missing_go_to_left[node] else (low, f"{high} or missing")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def find_shortest_pruning(tree: Tree, ask_costs: Array, answer_costs: Array) -> tuple[Array, Array]:
    """Return the shortest pruning: which nodes are questions, and the node that replaces each node.

    Both arrays, and the costs, are (nodes,).
    """
    inner = np.flatnonzero(tree.children_left >= 0)
    children = np.column_stack([tree.children_left, tree.children_right])
    best, asks, replacement = answer_costs.copy(), np.zeros(len(answer_costs), dtype=bool), np.arange(len(answer_costs))
    for node in inner[::-1]:  # from the leaves up: a child has a higher number than its parent
        cost = ask_costs[node] + best[children[node]].sum()
        if cost < best[node]:
            best[node], asks[node] = cost, True
    for node in inner:  # from the root down: everything below a leaf is replaced by the leaf
        if replacement[node] != node or not asks[node]:
            asks[node], replacement[children[node]] = False, replacement[node]
    return asks, replacement


def compute_ask_bits(tree: Tree, table: Array) -> Array:
    """Return the bits of the question at each node: its kind, column and threshold, and where missing cells go.

    A column with m values has m - 1 thresholds (one more if it has missing cells), and a node with n rows can use at
    most n - 1 of them.
    """
    feature = np.maximum(tree.feature, 0)  # it is -2 for a leaf, whose question is never used
    known = [column[~np.isnan(column)] for column in table.T]
    thresholds = np.array([len(np.unique(column)) - 1 for column in known])[feature]
    missing = np.array([len(column) < len(table) for column in known])[feature]
    choices = np.minimum(thresholds + missing, tree.weighted_n_node_samples - 1)
    return np.asarray(NODE_BITS + np.log2(len(known)) + np.log2(np.maximum(choices, 1.0)) + missing)
