import numpy as np

def code_counts(
    codes: np.ndarray, starts: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int
) -> np.ndarray:
    """How often each class showed each value; column j's value v is cell ``starts[j] + v``; negative is missing."""

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

def student_mixture(
    x: np.ndarray,
    inverse_unit: np.ndarray,
    centre: np.ndarray,
    precision: np.ndarray,
    power: np.ndarray,
    constant: np.ndarray,
    inclusion: np.ndarray,
) -> np.ndarray:
    """Sum over columns of ``log(1 - r + r p(x | class) / p(x))``, r how far the column matters; NaN adds nothing.

    The densities are those of `student`; the last row of each table is that of all classes together.
    """

def value_counts(
    x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int, bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of one column at ``bits`` significant binary digits, in order, and their counts per class."""
