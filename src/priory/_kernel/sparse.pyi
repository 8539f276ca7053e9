import numpy as np

def add_products(ends: np.ndarray, indices: np.ndarray, data: np.ndarray, dense: np.ndarray, out: np.ndarray) -> None:
    """Add a sparse table times ``dense`` to ``out``: a table of any width, in single or double precision."""

def add_transposed_products(
    ends: np.ndarray, indices: np.ndarray, data: np.ndarray, dense: np.ndarray, out: np.ndarray
) -> None:
    """Add the transposed sparse table times ``dense`` to ``out``, as `add_products` does."""

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

def copy_rows(ends: np.ndarray, entries: np.ndarray, size: int, rows: np.ndarray, out: np.ndarray) -> None:
    """The entries of some rows, one row after the other, into ``out``; an entry is ``size`` bytes."""

def count_entries(
    ends: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray | None,
    group: np.ndarray,
    weight: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add each row, by its weight, to ``counts`` (columns, classes) at its class; without ``data`` values are one."""

def judge_logits(
    logits: np.ndarray, group: np.ndarray, weight: np.ndarray, n_logits: int, wrong: np.ndarray, losses: np.ndarray
) -> None:
    """The log loss (rows, models) of several models' logits, and its weighted derivative, into ``losses``, ``wrong``.

    Row i holds ``n_logits`` logits for each model; a single one is that of the second of two classes.
    """

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

def order_entries(indices: np.ndarray, width: int) -> np.ndarray:
    """The entries column by column; those of one column stay in order. Columns are below ``width``."""

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
