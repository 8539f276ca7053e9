import numpy as np

Limbs = tuple[np.ndarray, int]

def combine(a: np.ndarray, a_base: int, b: np.ndarray, b_base: int, sign: int) -> Limbs:
    """``a + sign * b``; limbs may have any sign and absolute values below 2**61."""

def divide(limbs: np.ndarray, base: int, n: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """``cell / n`` in units of ``2 ** exponent``, correctly rounded; NaN if n is zero."""

def split(limbs: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Mantissas in [0.5, 1) and exponents of the cells, rounded to 53 bits; nothing overflows or underflows."""

def sum_powers(
    x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int, squares: bool = True
) -> tuple[np.ndarray, Limbs, Limbs]:
    """Count, sum and sum of squares per class and column; skips NaN; raises OverflowError(column) for infinity."""

def variances(
    n: np.ndarray, first: np.ndarray, first_base: int, second: np.ndarray, second_base: int, exponent: np.ndarray
) -> np.ndarray:
    """``(n * second - first ** 2) / n ** 2`` in units of ``2 ** (2 * exponent)``, correctly rounded; NaN if n is zero.

    ``second`` is a sum of squares, so it is not negative.
    """
