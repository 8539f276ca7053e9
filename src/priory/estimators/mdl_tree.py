"""A decision tree pruned by minimum description length: the bits of the tree plus the bits of its exceptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.bayes.description_length import Bits, label_bits, to_bits
from priory.core.estimator_methods import ProbabilisticClassifier
from priory.core.input_guard import check_sample_weight, guard_input
from priory.core.logspace import log, x_log_y
from priory.core.typing import MatrixLike, RandomState
from priory.errors import DataError
from priory.tables.table import Table
from priory.tables.table_reading import read_table

if TYPE_CHECKING:
    from sklearn.tree._tree import Tree


MAX_VALUES_OF_A_COLUMN = 1000  # a column with more is an identifier


class Question(NamedTuple):
    """The position of a column, and the label to compare with; None for a column of numbers."""

    column: int
    value: object = None


def read_labels(X: object) -> Table | None:
    """Read a table with labels or made of dicts; None for numbers, which scikit-learn reads."""
    if issparse(X):
        return None
    cells = np.asarray(X)
    if cells.dtype.kind not in "OUS" or (cells.ndim == 2 and not any(isinstance(cell, str) for cell in cells.flat)):
        return None
    return read_table(X)


def list_questions(table: Table) -> list[Question]:
    """List a question for each column of numbers, and for each value of each column of labels."""
    questions = []
    for column, (name, kind) in enumerate(table.column_kinds().items()):
        values = table.labels([column]).values[0].tolist() if kind == "label" else [None]
        if len(values) > MAX_VALUES_OF_A_COLUMN:
            raise DataError(f"column {name!r} holds {len(values):,} different labels; leave it out.")
        questions += [Question(column, value) for value in values]
    return questions


def encode_questions(questions: Sequence[Question], table: Table, positions: Sequence[int]) -> Array:
    """(rows, questions): numbers as they are, and 1 where a label has the value; NaN where a cell is missing.

    ``positions`` says where each column that the questions know stands in the table.
    """
    encoded = np.empty((table.rows, len(questions)))
    for j, (column, value) in enumerate(questions):
        place = positions[column]
        if value is None:
            encoded[:, j] = table.numbers([place])[:, 0]
        else:
            cells = table.labels([place])
            answers = np.array([*(label == value for label in cells.values[0].tolist()), np.nan], dtype=float)
            encoded[:, j] = answers[cells.codes[:, 0]]  # the code of a missing cell, -1, points to the last
    return encoded


NODE_BITS = 1.0  # whether a node is a question or a leaf


@final
@dataclass(eq=False, repr=False, kw_only=True)
class MDLTreeClassifier(ClassifierMixin, ProbabilisticClassifier, BaseEstimator):
    """A scikit-learn decision tree, fully grown and then pruned to the shortest description.

    The probabilities of a leaf with n rows, n_c of them of class c, are ``(n_c + 1/k) / (n + 1)`` for k classes, in
    agreement with the code of its labels. Missing cells are handled as in scikit-learn's tree. A column of labels is
    asked whether it has one of its values.

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
        The description length: of the tree, and of its exceptions, 0 if it classifies every row.
    questions_ : list of Question
        What each column of numbers that ``tree_`` was grown on asks: a column of the table, or one of its labels.
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
    tree 12.3 bits + exceptions 0.0 bits = 12.3 bits

    A table with labels:

    >>> days = [{"outlook": "sunny"}, {"outlook": "overcast"}, {"outlook": "rain"}] * 4
    >>> print(MDLTreeClassifier().fit(days, ["no", "yes", "no"] * 4).to_text())
    outlook is not overcast                           2.6 bits
        no (8 rows, 0 exceptions)                     3.3 bits
    outlook is overcast
        yes (4 rows, 0 exceptions)                    2.9 bits
    tree 8.8 bits + exceptions 0.0 bits = 8.8 bits
    """

    random_state: RandomState = 0

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree and prune it."""
        with guard_input(X):
            table = read_labels(X)
            questions = [] if table is None else list_questions(table)
            cells = X if table is None else encode_questions(questions, table, range(len(table.names)))
            x, labels = validate_data(self, cells, y, dtype=np.float32, ensure_all_finite="allow-nan")
            check_classification_targets(labels)
        self.questions_ = questions or [Question(j) for j in range(x.shape[1])]
        if table is not None:
            self.n_features_in_ = len(table.names)
            if table.has_names:
                self.feature_names_in_ = np.array(table.names, dtype=object)
        weight = check_sample_weight(sample_weight, len(x))
        weight = np.ones(len(x)) if weight is None else weight
        self.classes_, codes = np.unique(labels, return_inverse=True)
        used = weight > 0
        grown = DecisionTreeClassifier(criterion="entropy", random_state=self.random_state)
        self.tree_ = grown.fit(x[used], codes[used], sample_weight=weight[used]).tree_
        self.counts_ = np.zeros((self.tree_.node_count, len(self.classes_)))
        # value is (nodes, 1, classes), shares of the node's rows; classes without a weighted row stay 0
        self.counts_[:, grown.classes_] = self.tree_.value[:, 0] * self.tree_.weighted_n_node_samples[:, None]
        self.class_prior_ = self.counts_[0] / self.counts_[0].sum()
        self.missing_ = np.isnan(x[used]).any(axis=0)
        self.ask_bits_ = compute_ask_bits(self.tree_, x[used], self.questions_)
        self.answer_bits_ = NODE_BITS + label_bits(self.counts_)
        self.asks_, self.leaf_ = find_shortest_pruning(self.tree_, self.ask_bits_, self.answer_bits_)
        self.nodes_ = np.unique(self.leaf_)
        # kept nodes that are not questions
        leaves = self.nodes_[~self.asks_[self.nodes_]]
        total = float(self.ask_bits_[self.asks_].sum() + self.answer_bits_[leaves].sum())
        exceptions = float(exception_bits(self.counts_[leaves]).sum())
        self.bits_ = Bits(total - exceptions, exceptions)
        return self

    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the probability of each class."""
        check_is_fitted(self)
        # (rows, classes): the training rows in the leaf of each row
        counts = self.counts_[self.apply(X)]
        return (counts + 1 / len(self.classes_)) / (counts.sum(axis=1, keepdims=True) + 1)

    def apply(self, X: MatrixLike) -> Array:
        """Return the leaf of each row, as a node of ``tree_``."""
        check_is_fitted(self)
        with guard_input(X):
            if any(question.value is not None for question in self.questions_):
                table = read_table(X)
                table.check_finite()
                places = table.find_columns(getattr(self, "feature_names_in_", [""] * self.n_features_in_))
                x = encode_questions(self.questions_, table, places).astype(np.float32)
            else:
                x = validate_data(self, X, dtype=np.float32, ensure_all_finite="allow-nan", reset=False)
        return np.asarray(self.leaf_[self.tree_.apply(x)])

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
        low, high = self._format_sides(node, names)
        yield f"{margin + low:<48} {self.ask_bits_[node]:>4.1f} bits"
        yield from self._format_lines(tree.children_left[node], depth + 1, names)
        yield margin + high
        yield from self._format_lines(tree.children_right[node], depth + 1, names)

    def _format_sides(self, node: int, names: Sequence[str]) -> tuple[str, str]:
        """Return the two answers to a question; missing cells are mentioned if the column had some."""
        threshold, (column, value) = self.tree_.threshold[node], self.questions_[self.tree_.feature[node]]
        name = names[column]
        if np.isinf(threshold):
            return f"{name} present", f"{name} missing"
        low, high = f"{name} <= {threshold:g}", f"{name} > {threshold:g}"
        if value is not None:
            low, high = f"{name} is not {value}", f"{name} is {value}"
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
    # (nodes, 2)
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


def compute_ask_bits(tree: Tree, x: Array, questions: Sequence[Question]) -> Array:
    """Return the bits of the question at each node: its kind, column, threshold or label, and where missing cells go.

    A column with m numbers has m - 1 thresholds (one more if it has missing cells). A column with m labels has m of
    them to ask for, but two labels are one question. A node with n rows can use at most n - 1 thresholds or labels.
    """
    feature = np.maximum(tree.feature, 0)  # it is -2 for a leaf, whose question is never used
    # the present cells of each question's column
    known = [column[~np.isnan(column)] for column in x.T]
    n_labels = Counter(question.column for question in questions if question.value is not None)
    n_choices = [
        len(np.unique(cells)) - 1 if value is None else n_labels[column] - (n_labels[column] == 2)
        for cells, (column, value) in zip(known, questions, strict=True)
    ]
    missing = np.array([len(column) < len(x) for column in known])[feature]
    # (nodes,): thresholds or labels to choose from at each node
    choices = np.minimum(np.array(n_choices)[feature] + missing, tree.weighted_n_node_samples - 1)
    n_columns = len({question.column for question in questions})
    return np.asarray(NODE_BITS + np.log2(n_columns) + np.log2(np.maximum(choices, 1.0)) + missing)


def exception_bits(counts: Array) -> Array:
    """Return the bits of the labels given the share of each class, from counts (..., classes); none if one has all.

    >>> exception_bits(np.array([[4.0, 0.0], [3.0, 1.0]])).round(3).tolist()
    [0.0, 3.245]
    """
    shares = counts / counts.sum(axis=-1, keepdims=True)
    return to_bits(x_log_y(counts, log(shares)).sum(axis=-1))
