"""Exact sums of real numbers: addition without rounding, so that subtraction undoes it bit for bit.

A finite double is a whole number times a power of two, so a sum of doubles is a whole number too. Sums are kept as
limbs of 32 bits in one window for each array, and rounded once, when a mean or a variance is asked for. Products of
columns are summed digit by digit: a `DigitLayout` says how cells are cut into digits whose products are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core._kernel import exact as kernel
from priory.core.sharding import space_evenly
from priory.core.statistics import Statistics, register_record
from priory.errors import DataError, NotLearnedError

LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1
SIGN_BIT = 1 << (LIMB_BITS - 1)
MANTISSA_BITS = 53  # of a double
# No product of three doubles has a bit below 2^-3222, or reaches 2^3072; the rest is room for the number of rows.
MIN_BASE, MAX_TOP = -101, 100
FORGOTTEN_SUM_TOLERANCE = 1e-9  # relative to the part subtracted: a smaller remainder is rounding of scaled sums
SCALED_BITS = 192  # precision of a sum that was scaled
MAX_EXACT_FACTOR = 1 << 29  # integers up to this are multiplied limb by limb


@register_record("ExactSums", dtypes={"limbs": "i8"})
@dataclass(frozen=True, eq=False)
class ExactSums(Statistics):
    """An array of exact sums: element ``i`` is the sum over ``j`` of ``limbs[i, j] * 2 ** (32 * (base + j))``.

    All elements share one window of limbs, the smallest that represents them (no limbs if all are zero). Every limb is
    in ``0 .. 2**32 - 1``, except the last, which has the sign and is in ``-2**31 .. 2**31 - 1``.
    """

    frame_fields: ClassVar[tuple[str, ...]] = ("base",)
    count_fields: ClassVar[tuple[str, ...]] = ()

    limbs: Array  # (..., limbs), int64
    base: int

    # -- construction ----------------------------------------------------------------------------------------------

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Self:
        """Sums that are all zero."""
        return cls(np.zeros((*shape, 0), dtype=np.int64), 0)

    @classmethod
    def from_limbs(cls, limbs: Array, base: int) -> Self:
        """Normalise limbs of any sign and of absolute values below 2**62."""
        return cls._from_cells(kernel.combine(*_cells(limbs, base), *_no_cells(limbs), 1), limbs.shape[:-1])

    @classmethod
    def _from_cells(cls, cells: tuple[Array, int], shape: tuple[int, ...]) -> Self:
        limbs, base = cells
        return cls(limbs.reshape(*shape, limbs.shape[-1]), base)

    @classmethod
    def from_floats(cls, values: ArrayLike) -> Self:
        """Convert finite values exactly."""
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise DataError("an infinite or missing number has no exact sum.")
        if np.abs(values).max(initial=0.0) < SIGN_BIT and (np.floor(values) == values).all():  # counts, mostly
            limbs = values.astype(np.int64)[..., None]
            return cls(limbs, 0) if limbs.any() else cls.zeros(values.shape)
        mantissa, exponent = np.frexp(values)
        return cls.from_scaled(np.ldexp(mantissa, MANTISSA_BITS).astype(np.int64), exponent - MANTISSA_BITS)

    @classmethod
    def from_products(cls, *factors: Array) -> Self:
        """Exact products of finite doubles, element by element."""
        if not all(np.isfinite(f).all() for f in factors):
            raise DataError("an infinite or missing number has no exact sum.")
        # a double is an integer of 53 bits times a power of two, and Python's integers multiply without rounding
        values = [np.frexp(np.asarray(f, dtype=np.float64)) for f in factors]
        mantissa, exponent = np.array(1, dtype=object), np.array(0, dtype=object)
        for m, e in values:
            mantissa = mantissa * np.ldexp(m, MANTISSA_BITS).astype(np.int64).astype(object)
            exponent = exponent + (e - MANTISSA_BITS).astype(object)
        lowest = int(exponent.min(initial=0))
        return cls.from_integers(np.asarray(mantissa << (exponent - lowest)), lowest)

    @classmethod
    def from_scaled(cls, mantissa: Array, exponent: Array) -> Self:
        """``mantissa * 2 ** exponent``, element by element; mantissas are integers of absolute value below 2**62."""
        mantissa = np.asarray(mantissa, dtype=np.int64)
        exponent = np.broadcast_to(np.asarray(exponent, dtype=np.int64), mantissa.shape)
        if not mantissa.any():
            return cls.zeros(mantissa.shape)
        # Each mantissa (up to 62 bits), shifted by up to 31 bits, spans three limbs of the window (elements, limbs).
        places = exponent[mantissa != 0] // LIMB_BITS
        base, top = int(places.min()), int(places.max()) + 3
        limbs = np.zeros((mantissa.size, top - base), dtype=np.int64)
        place = np.where(mantissa != 0, exponent // LIMB_BITS - base, 0).ravel()
        shift, cell = (exponent % LIMB_BITS).ravel(), np.arange(mantissa.size)
        # sign and magnitude: the low half shifted by up to 31 bits stays below 2**63
        size, sign = np.abs(mantissa).ravel(), np.sign(mantissa).ravel()
        low = (size & LIMB_MASK) << shift
        high = (size >> LIMB_BITS) << shift
        limbs[cell, place] = sign * (low & LIMB_MASK)
        limbs[cell, place + 1] = sign * ((low >> LIMB_BITS) + (high & LIMB_MASK))
        limbs[cell, place + 2] = sign * (high >> LIMB_BITS)
        return cls.from_limbs(limbs.reshape(*mantissa.shape, -1), base)

    @classmethod
    def from_integers(cls, values: Array, exponent: int) -> Self:
        """``values * 2 ** exponent``, where the values are Python integers of any size."""
        values = np.asarray(values, dtype=object)
        base, shift = divmod(exponent, LIMB_BITS)
        shifted = [int(v) << shift for v in values.flat]
        width = max((v.bit_length() for v in shifted), default=0) // LIMB_BITS + 1
        digits = b"".join(v.to_bytes(4 * width, "little", signed=True) for v in shifted)
        limbs = np.frombuffer(digits, dtype="<u4").astype(np.int64).reshape(*values.shape, width)
        # two's complement: the last limb is signed
        limbs[..., -1] -= (limbs[..., -1] & SIGN_BIT) << 1
        return cls.from_limbs(limbs, base)

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of sums."""
        return self.limbs.shape[:-1]

    def to_integers(self) -> tuple[Array, int]:
        """Python integers and an exponent, such that each sum is its integer times ``2 ** exponent``."""
        width = 4 * self.limbs.shape[-1]
        digits = (self.limbs & LIMB_MASK).astype("<u4").tobytes()
        integers = np.empty(math.prod(self.shape), dtype=object)
        for i in range(len(integers)):
            integers[i] = int.from_bytes(digits[i * width : (i + 1) * width], "little", signed=True)
        return integers.reshape(self.shape), LIMB_BITS * self.base

    def to_floats(self, exponent: ArrayLike = 0) -> Array:
        """The nearest doubles, in units of ``2 ** exponent``; infinite for a sum beyond the largest double."""
        if self.limbs.shape[-1] == 1 and self.base == 0 and np.ndim(exponent) == 0 and exponent == 0:  # counts, mostly
            return self.limbs[..., 0].astype(np.float64)
        return compute_means(np.ones(self.shape), self, exponent)

    def to_scaled_floats(self) -> tuple[Array, Array]:
        """``mantissa`` and ``exponent`` such that the sums are ``mantissa * 2 ** exponent``, rounded to 53 bits.

        Mantissas are zero or of absolute value in [0.5, 1), so no sum overflows or underflows.
        """
        mantissa, exponent = kernel.split(*_cells(self.limbs, self.base))
        return mantissa.reshape(self.shape), exponent.reshape(self.shape)

    def signs(self) -> Array:
        """-1, 0 or 1 for each sum."""
        if self.limbs.shape[-1] == 0:
            return np.zeros(self.shape, dtype=np.int64)
        return np.where(self.limbs[..., -1] < 0, -1, self.limbs.any(axis=-1).astype(np.int64))

    # -- algebra -----------------------------------------------------------------------------------------------

    def combine(self, other: Self, op: Callable[[Array, Array], Array]) -> Self:
        """Add or subtract (``op`` is np.add or np.subtract), in the smallest window that represents the result."""
        if self.shape != other.shape:
            shape = np.broadcast_shapes(self.shape, other.shape)
            return self._broadcast(shape).combine(other._broadcast(shape), op)
        sign = 1 if op is np.add else -1
        cells = kernel.combine(*_cells(self.limbs, self.base), *_cells(other.limbs, other.base), sign)
        return self._from_cells(cells, self.shape)

    def _broadcast(self, shape: tuple[int, ...]) -> Self:
        return type(self)(np.broadcast_to(self.limbs, (*shape, self.limbs.shape[-1])), self.base)

    def check_subtraction(self, total: Self, part: Self) -> Self:
        return self  # a sum may have any sign

    def clear_cells(self, empty: Array, subtracted: Self) -> Self:
        """Set the cells without rows to zero; raise NotLearnedError if more than rounding is left there.

        A remainder is left if sums were scaled by fractions, or if different values were subtracted than were added.
        """
        left = empty & (self.signs() != 0)
        if not left.any():
            return self
        # in a unit in which neither overflows
        size, part = (np.abs(s.to_floats(_window_top(subtracted))) for s in (self, subtracted))
        wrong = left & ~(size <= FORGOTTEN_SUM_TOLERANCE * part)
        if wrong.any():
            cell = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise NotLearnedError("cannot forget these values: others were learned.", cell)
        return self.from_limbs(np.where(left[..., None], 0, self.limbs), self.base)

    def multiply_exactly(self, factor: float) -> Self:
        """Multiply by any double, without rounding."""
        numerator, denominator = float(factor).as_integer_ratio()
        integers, exponent = self.to_integers()
        return self.from_integers(integers * numerator, exponent - denominator.bit_length() + 1)

    def __mul__(self, weight: float) -> Self:
        """Multiply by a weight: exactly for integers, rounded to 192 bits otherwise; see `scale`."""
        weight = float(weight)
        if weight == math.floor(weight) and abs(weight) <= MAX_EXACT_FACTOR:
            return self.from_limbs(self.limbs * int(weight), self.base)
        return self.scale(*weight.as_integer_ratio())

    __rmul__ = __mul__

    def scale(self, numerator: Array | int, denominator: Array | int) -> Self:
        """Multiply by a ratio of Python integers, rounding each sum to 192 bits.

        This bounds the size of a sum that is scaled repeatedly, and is enough for the square of a double times a count:
        a constant column still has variance zero afterwards.
        """
        integers, exponent = self.to_integers()
        ratios = np.broadcast_arrays(integers, np.asarray(numerator, object), np.asarray(denominator, object))
        cells = [_round_ratio(v * a, b, exponent) for v, a, b in zip(*(r.flat for r in ratios), strict=True)]
        lowest = min((e for _, e in cells), default=0)
        rounded = np.empty(len(cells), dtype=object)
        rounded[:] = [v << (e - lowest) for v, e in cells]
        return self.from_integers(rounded.reshape(self.shape), lowest)

    # -- shapes ----------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Self:
        """Index the array of sums (without ``...``)."""
        return self.from_limbs(self.limbs[index], self.base)

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Reshape the array of sums."""
        return type(self)(self.limbs.reshape(*shape, self.limbs.shape[-1]), self.base)

    def sum(self, axis: int = 0, keepdims: bool = False) -> Self:
        """Sum along one axis (0 or above)."""
        return self.from_limbs(self.limbs.sum(axis=axis, keepdims=keepdims), self.base)

    def regroup_classes(self, index: Array, size: int) -> Self:
        wide = np.zeros((size, *self.limbs.shape[1:]), dtype=np.int64)
        wide[index] = self.limbs
        return type(self)(wide, self.base)

    def take_classes(self, classes: Array) -> Self:
        return self[classes]

    def pool_classes(self) -> Self:
        return self.sum(axis=0, keepdims=True)

    def take_columns(self, columns: Array) -> Self:
        return self.from_limbs(self.limbs[..., columns, :], self.base)

    def place_columns(self, other: Self, places: Array) -> Self:
        kept, placed = self.limbs.copy(), np.zeros((*self.shape, other.limbs.shape[-1]), dtype=np.int64)
        kept[..., places, :] = 0
        placed[..., places, :] = other.limbs
        return self.from_limbs(kept, self.base) + self.from_limbs(placed, other.base)

    # -- files -----------------------------------------------------------------------------------------------------

    def find_fault(self) -> str | None:
        limbs = self.limbs
        if limbs.dtype != np.int64 or limbs.ndim < 1:
            return "its limbs are not an array of 64-bit integers"
        if not limbs.shape[-1]:
            return None if self.base == 0 else "a sum of nothing has a window"
        if not MIN_BASE <= self.base <= self.base + limbs.shape[-1] <= MAX_TOP:
            return "a sum is larger or smaller than doubles can add up to"
        if limbs.size == 0 or limbs[..., :-1].min(initial=0) < 0 or limbs[..., :-1].max(initial=0) > LIMB_MASK:
            return "a limb is out of range"
        if limbs[..., -1].min() < -SIGN_BIT or limbs[..., -1].max() >= SIGN_BIT:
            return "a limb is out of range"
        if self.from_limbs(limbs, self.base).limbs.shape != limbs.shape:
            return "the window of the sums is wider than it needs to be"
        return None


def _round_ratio(numerator: int, denominator: int, exponent: int) -> tuple[int, int]:
    """Round ``numerator / denominator`` to SCALED_BITS bits: an integer and its exponent."""
    if not numerator:
        return 0, 0
    shift = SCALED_BITS + denominator.bit_length() - numerator.bit_length()
    shift = min(shift, exponent - LIMB_BITS * MIN_BASE)  # anything smaller has decayed to zero
    numerator, denominator = numerator << max(shift, 0), denominator << max(-shift, 0)
    return (2 * numerator + denominator) // (2 * denominator), exponent - shift


def find_misshapen_sums(n: Array, *sums: ExactSums) -> str | None:
    """Describe what is wrong with sums, which must have the shape of the counts and be zero where a count is zero."""
    if any(s.shape != n.shape for s in sums):
        return "the sums have other classes or columns than the counts"
    if any(((s.signs() != 0) & (n == 0)).any() for s in sums):
        return "a class without rows has sums"
    return None


def _cells(limbs: Array, base: int) -> tuple[Array, int]:
    """The limbs as (sums, limbs), contiguous, and the base."""
    return np.ascontiguousarray(limbs).reshape(math.prod(limbs.shape[:-1]), limbs.shape[-1]), base


def _no_cells(limbs: Array) -> tuple[Array, int]:
    return np.zeros((math.prod(limbs.shape[:-1]), 0), dtype=np.int64), 0


def _window_top(sums: ExactSums) -> int:
    return LIMB_BITS * (sums.base + sums.limbs.shape[-1])


# -- ratios, rounded once ----------------------------------------------------------------------------------------------


def compute_means(n: Array | ExactSums, first: ExactSums, exponent: ArrayLike = 0) -> Array:
    """``first / n`` in units of ``2 ** exponent``, correctly rounded; NaN where ``n`` is zero."""
    counts, exponents = _flatten(_round(n), first.shape, np.float64), _flatten(exponent, first.shape, np.int64)
    means = kernel.divide(*_cells(first.limbs, first.base), counts, exponents)
    for i, m, s in _iterate_uneven_cells(n, first):
        means[i] = _round_fraction(s / m / Fraction(2) ** int(exponents[i]))
    return means.reshape(first.shape)


def compute_variances(n: Array | ExactSums, first: ExactSums, second: ExactSums, exponent: ArrayLike = 0) -> Array:
    """``(n * second - first ** 2) / n ** 2`` in units of ``2 ** (2 * exponent)``, correctly rounded; NaN for no rows.

    >>> x = np.array([1e8, 1e8 + 1, 1e8 + 2])
    >>> first, second = ExactSums.from_floats(x).sum(), ExactSums.from_products(x, x).sum()
    >>> float(compute_variances(np.array(3.0), first, second))
    0.6666666666666666
    """
    counts, exponents = _flatten(_round(n), first.shape, np.float64), _flatten(exponent, first.shape, np.int64)
    cells = (*_cells(first.limbs, first.base), *_cells(second.limbs, second.base))
    variances = kernel.variances(counts, *cells, exponents)
    for i, m, s, q in _iterate_uneven_cells(n, first, second):
        variances[i] = _round_fraction((q / m - (s / m) ** 2) / Fraction(4) ** int(exponents[i]))
    return variances.reshape(first.shape)


def _round(n: Array | ExactSums) -> Array:
    return n.to_floats() if isinstance(n, ExactSums) else n


def _iterate_uneven_cells(n: Array | ExactSums, *sums: ExactSums) -> Iterator[tuple[Any, ...]]:
    """Yield the index, count and sums of cells whose count is not exactly a double (sums of fractional weights)."""
    if not isinstance(n, ExactSums) or n.limbs.shape[-1] <= 1:
        return
    uneven = np.flatnonzero((n - ExactSums.from_floats(n.to_floats())).signs())
    if not len(uneven):
        return
    taken = [s.reshape((math.prod(s.shape),))[uneven].to_integers() for s in (n, *sums)]
    for k, i in enumerate(uneven):
        yield i, *(int(integers[k]) * Fraction(2) ** exponent for integers, exponent in taken)


def _round_fraction(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _flatten(values: ArrayLike, shape: tuple[int, ...], dtype: type) -> Array:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=dtype), shape)).reshape(-1)


DIGIT_BITS = 23
MAX_DIGITS = 5  # of one cell: a column that needs more has outliers
MAX_DIGIT_EXPONENT = 800  # of the largest digit, so that units and their inverses are normal doubles
N_SAMPLE_RUNS, SAMPLE_RUN_ROWS = 16, 16  # runs of rows of a shard that the choice is based on
FAR_CELL_SHARE, FAR_BITS = 0.02, 8  # share of sampled cells that may exceed the others by more than these bits
SAMPLE_MARGIN = 1.25  # cells may be this much larger than those sampled
MIN_SPARE_BITS = 3  # for cells outside the range of the sample
UNUSED_EXPONENT = 4096  # stands for the lowest bit of zero; larger than any exponent

TakeRows = Callable[[slice | Array], Array]  # returns the rows of a slice or of indices as float64 (rows, columns)


class DigitLayout(NamedTuple):
    """How the cells of each column are split into digits; columns with the most digits come first."""

    order: Array  # (columns,): the original position of each column
    limit: Array  # (columns,): bound of the absolute values, in this order
    columns: Array  # (levels,): number of columns with a digit at this level
    unit: Array  # (levels, columns): the unit of each digit
    digit_column: Array  # (digits,): the original column of each digit
    digit_exponent: Array  # (digits,): the exponent of its unit


def choose_layout(take_rows: TakeRows, part: slice) -> DigitLayout:
    """Choose digits that represent nearly every cell of these rows, from a sample; none for a column out of range."""
    starts = part.start + space_evenly(max(part.stop - part.start - SAMPLE_RUN_ROWS, 0) + 1, N_SAMPLE_RUNS)
    sample = [take_rows(slice(start, min(start + SAMPLE_RUN_ROWS, part.stop))) for start in starts.tolist()]
    top, bottom = measure_exponents(np.concatenate(sample))
    bits = top + 1 - bottom
    n_digits = np.clip(-((-bits - MIN_SPARE_BITS) // DIGIT_BITS), 1, MAX_DIGITS)
    # a third of the spare bits extends the range upwards, the others downwards
    top = top + np.maximum(DIGIT_BITS * n_digits - bits, 0) // 3
    n_digits[np.abs(top) > MAX_DIGIT_EXPONENT] = 0
    order = np.argsort(-n_digits, kind="stable")
    top, n_digits = np.where(n_digits > 0, top, 0)[order], n_digits[order]
    level = np.arange(n_digits.max(initial=0))[:, None]
    exponent, used = top + 1 - DIGIT_BITS * (level + 1), n_digits > level  # (levels, columns)
    return DigitLayout(
        order,
        np.where(n_digits > 0, np.ldexp(1.0, top), 0.0),
        used.sum(axis=1),
        np.ldexp(1.0, exponent),
        np.broadcast_to(order, used.shape)[used],
        exponent[used],
    )


def measure_exponents(sample: Array) -> tuple[Array, Array]:
    """Exponents of the highest and lowest bit of nearly all cells of each column: top and bottom, both (columns,).

    A few outliers are ignored, because a single one could leave no digits for the other cells.

    >>> measure_exponents(np.array([[0.0, 3.0, 0.5], [1.0, 255.0, 0.75]]))
    (array([1, 9, 0]), array([ 0,  0, -2]))
    """
    cells = np.where(np.isfinite(sample), sample, 0.0)
    mantissa, exponent = np.frexp(cells)
    # the mantissa as an integer (rows, columns); x & -x isolates its lowest bit
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest_bit = np.frexp((whole & -whole).astype(float))[1] + exponent - 54  # (rows, columns)
    far = len(cells) * FAR_CELL_SHARE
    sizes, bits = np.sort(np.abs(cells), axis=0), np.sort(np.where(whole == 0, UNUSED_EXPONENT, lowest_bit), axis=0)
    usual, usual_bit = sizes[-1 - int(far)], bits[int(far)]
    with np.errstate(over="ignore"):
        largest = np.where(usual > 0, np.minimum(sizes[-1] * SAMPLE_MARGIN, usual * 2.0**FAR_BITS), sizes[-1])
    top = np.frexp(np.where(np.isfinite(largest), largest, sizes[-1]))[1].astype(np.int64)
    bottom = np.where(usual_bit < UNUSED_EXPONENT, np.maximum(bits[0], usual_bit - FAR_BITS), bits[0])
    empty = ~whole.any(axis=0)
    return np.where(empty, 1, top), np.where(empty, 0, bottom).astype(np.int64)
