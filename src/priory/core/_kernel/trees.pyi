import numpy as np

def add_trees(
    codes: np.ndarray, is_label: np.ndarray, tests: np.ndarray, leaves: np.ndarray, logits: np.ndarray
) -> None:
    """Add the leaf of each tree that a row reaches to ``logits`` (rows, logits); see `grow_trees` for the arrays."""

def grow_trees(
    codes: np.ndarray,
    n_codes: np.ndarray,
    is_label: np.ndarray,
    group: np.ndarray,
    weight: np.ndarray,
    columns: np.ndarray,
    rate: float,
    ridge: float,
    logits: np.ndarray,
    tests: np.ndarray,
    leaves: np.ndarray,
    cover: np.ndarray,
) -> None:
    """Grow one oblivious tree for each row of ``columns``, and add its leaves to ``logits``.

    ``codes`` (columns, rows) are below ``n_codes`` (columns,). Rows of weight zero are answered, but not learned from.
    ``logits`` (rows, logits) has one logit for each class; of two classes, only the second has one. Tree t may test the
    columns ``columns[t]``.

    Written are ``tests`` (trees, depth, 2), the column and the cut of each level: a row goes right if its code is above
    the cut, or equal to it for a label; ``leaves`` (trees, 2^depth, logits); and ``cover`` (trees, 2^depth), the
    weight of the rows in each leaf.
    """
