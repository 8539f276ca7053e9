import numpy as np

def add_rows(z: np.ndarray, weight: np.ndarray | None, limbs: np.ndarray, base: int) -> None:
    """Add the products of every row times its weight to ``limbs`` (pairs, limbs), which must be wide enough."""

def cut_digits(
    z: np.ndarray, order: np.ndarray, limit: np.ndarray, unit: np.ndarray, columns: np.ndarray, digits: np.ndarray
) -> np.ndarray:
    """Split every cell into integer multiples of the units of its column, the largest unit first.

    Columns are processed in ``order``. ``unit`` is (levels, columns), and level k has the first ``columns[k]`` columns.
    The digits are written to ``digits`` (rows, digits), level by level. A row fits if no cell exceeds its ``limit`` and
    no remainder is left after the last unit; the digits of other rows are zero. Returns which rows fit, (rows,).
    """

def find_limb_range(z: np.ndarray) -> tuple[bool, int, int]:
    """Whether all cells are finite, and the lowest and highest limb at which a nonzero cell begins."""

def flushes_denormals() -> bool:
    """Whether this thread flushes denormal numbers to zero, a processor mode that some libraries set."""

def place_sums(
    sums: np.ndarray, column: np.ndarray, exponent: np.ndarray, p: int, limbs: np.ndarray, base: int
) -> None:
    """Add ``sums[a, b] * 2 ** (exponent[a] + exponent[b])`` to the pair of columns of digits a and b."""

def transform_sums(limbs: np.ndarray, index: np.ndarray, factor: np.ndarray) -> tuple[np.ndarray, int]:
    """Sums of products of new columns, each the sum of ``factor[i, a]`` times the old column ``index[i, a]``.

    The limbs must be normalised: only the last may be negative. Returns limbs, and the change of their base.
    """
