import numpy as np

def add_products(ends: np.ndarray, indices: np.ndarray, data: np.ndarray, dense: np.ndarray, out: np.ndarray) -> None:
    """Add a sparse matrix times ``dense`` to ``out``; any width, in single or double precision."""

def add_transposed_products(
    ends: np.ndarray, indices: np.ndarray, data: np.ndarray, dense: np.ndarray, out: np.ndarray
) -> None:
    """Add the transposed sparse matrix times ``dense`` to ``out``, as `add_products`."""

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
    """Dual coordinate ascent: for each row in ``order``, a Newton step of its dual variables (``answers``).

    Before and after each step the weights (features, at least ``n_logits``) are ``Σ_i weight_i x_i (own class -
    answers_i) / strength``. The component ``common`` that all rows share is excluded: ``shift`` (at least ``n_logits``)
    is the same sum over ``common``, and is subtracted. ``squares`` are the squared lengths of the rows without it, and
    ``moved`` receives the change of each row.
    """

def copy_rows(ends: np.ndarray, entries: np.ndarray, size: int, rows: np.ndarray, out: np.ndarray) -> None:
    """Copy the entries of some rows to ``out``, row after row; an entry is ``size`` bytes."""

def count_entries(
    ends: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray | None,
    group: np.ndarray,
    weight: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add each row times its weight to ``counts`` (columns, classes) at its class; without ``data`` values are 1."""

def judge_logits(
    logits: np.ndarray, group: np.ndarray, weight: np.ndarray, n_logits: int, wrong: np.ndarray, losses: np.ndarray
) -> None:
    """Write the log loss (rows, models) of several models' logits to ``losses``, its weighted gradient to ``wrong``.

    Row i has ``n_logits`` logits for each model; a single logit is for the second of two classes.
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
    """Write rows ``start .. stop-1`` of a sparse matrix times ``dense`` to ``out``; without ``data`` values are 1.

    The entries of row i are ``indices[ends[i] : ends[i + 1]]``; the width of ``dense`` is a multiple of 8.
    """

def order_entries(indices: np.ndarray, width: int) -> np.ndarray:
    """Indices that sort the entries by column (stable); columns are below ``width``."""

def unite_rows(
    ends: np.ndarray,
    ids: np.ndarray,
    part_ends: np.ndarray,
    parts: np.ndarray,
    seen: np.ndarray,
    out: np.ndarray | None,
    out_ends: np.ndarray,
) -> None:
    """Write the distinct parts of the entries of each row; without ``out`` they are only counted.

    The parts of entry ``e`` are ``parts[part_ends[e] : part_ends[e + 1]]``. ``seen`` (columns,) begins with -1.
    """

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
    """Write how far the residuals of sets ``start .. stop-1`` of columns exceed chance to ``out`` (sets, width).

    ``levels`` is (columns, rows), and a row with a negative level is in no cell. ``wrong`` and ``chance`` (rows, width)
    are summed in every cell of a set; ``sums`` (2, cells, width) is scratch space.
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

    Each row is left out: in its own class the counts are smaller by its weight. Columns that no other row has are
    skipped, and the number of other columns is added to ``remaining``. ``totals`` are the counts of all classes, and
    ``logs`` the logarithms of the smoothed counts.
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
    """Sort the entries of rows ``start .. stop-1`` by column, in place; ``more_...`` are scratch arrays."""
