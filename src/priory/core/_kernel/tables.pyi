import numpy as np

def code_counts(
    codes: np.ndarray, starts: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int
) -> np.ndarray:
    """Counts of each value in each class; value v of column j is cell ``starts[j] + v``; negative codes are missing."""

def group_sums(x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int) -> np.ndarray:
    """Weighted column sums of the rows of each class."""

def lookup(codes: np.ndarray, starts: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Sum over columns of ``table[starts[j] + code, class]`` per row and class; a negative code adds nothing."""

def quadratic(
    x: np.ndarray, inverse_unit: np.ndarray, centre: np.ndarray, precision: np.ndarray, constant: np.ndarray
) -> np.ndarray:
    """Sum over columns of ``constant - precision / 2 * (x / unit - centre)^2`` per row and class; NaN adds nothing."""

def student(
    x: np.ndarray,
    inverse_unit: np.ndarray,
    centre: np.ndarray,
    precision: np.ndarray,
    power: np.ndarray,
    constant: np.ndarray,
) -> np.ndarray:
    """Sum over columns of ``constant - power * log(1 + precision * (x / unit - centre)^2)``; NaN adds nothing."""

def value_counts(
    x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int, bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct values of one column, rounded to ``bits`` significant bits, and their counts per class."""
