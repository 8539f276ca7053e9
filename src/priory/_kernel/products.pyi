import numpy as np

def add_rows(z: np.ndarray, weight: np.ndarray | None, limbs: np.ndarray, base: int) -> None:
    """Add the products of every row, times its weight; ``base`` and the number of limbs leave room for all of them."""

def cut_digits(
    z: np.ndarray, order: np.ndarray, limit: np.ndarray, unit: np.ndarray, columns: np.ndarray, digits: np.ndarray
) -> np.ndarray:
    """Cut every cell into whole numbers of the units of its column, the largest unit first.

    The columns are taken in this ``order``. ``unit`` is (levels, columns), and level k takes the first ``columns[k]``
    of them. ``digits`` (rows, digits) gets the digits, level by level. A row fits if none of its cells is above its
    ``limit`` and nothing of them is left after the last unit; the digits of the others are zero. Returns which rows
    fit.
    """

def find_limb_range(z: np.ndarray) -> tuple[bool, int, int]:
    """Whether all cells are finite, and the lowest and highest limb in which a cell that is not zero begins."""

def flushes_denormals() -> bool:
    """Whether this thread takes the smallest numbers for zero, as some libraries make the processor do."""

def place_sums(
    sums: np.ndarray, column: np.ndarray, exponent: np.ndarray, p: int, limbs: np.ndarray, base: int
) -> None:
    """Add ``sums[a, b] * 2 ** (exponent[a] + exponent[b])`` to the pair of the columns of the digits a and b."""

def transform_sums(limbs: np.ndarray, index: np.ndarray, factor: np.ndarray) -> tuple[np.ndarray, int]:
    """The sums of products of new columns, each the sum of ``factor[i, a]`` times the old column ``index[i, a]``.

    The limbs have been carried: only the last may be negative. Returns limbs, and how much their base is above theirs.
    """
