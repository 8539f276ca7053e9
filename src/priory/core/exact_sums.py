"""Exact sums of real numbers: addition without rounding, so that what is subtracted again was never there.

A finite double is a whole number times a power of two, so a sum of doubles, or of products of doubles, is a whole
number too. `ExactSums` keeps an array of such numbers. ``+`` and ``-`` never round: the order and the grouping of the
summands do not matter, and equal values have equal bytes. A sum is rounded once, when it is read.

>>> a = ExactSums.from_floats(np.array([1e300, 1.0]))
>>> b = ExactSums.from_floats(np.array([1.0, 1e-300]))
>>> (a + b - a).to_floats().tolist()
[1.0, 1e-300]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from priory.core.registration import register_record
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import DataError

LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1
SIGN_BIT = 1 << (LIMB_BITS - 1)
MANTISSA_BITS = 53  # of a double
# No product of three doubles has a bit below 2^-3222, or reaches 2^3072; the rest is room for the number of rows.
MIN_BASE, MAX_TOP = -101, 100
MAX_EXACT_FACTOR = 1 << 30  # whole numbers up to this are multiplied limb by limb


@register_record("ExactSums", dtypes={"limbs": "i8"})
@dataclass(frozen=True, eq=False)
class ExactSums(Statistics):
    """An array of exact sums: element ``i`` is the sum of ``limbs[i, j] * 2 ** (32 * (base + j))`` over ``j``.

    All elements share one window of limbs. It is the smallest one that holds them, with none if all are zero. Every
    limb is in ``0 .. 2**32 - 1`` but the last, which has the sign and is in ``-2**31 .. 2**31 - 1``.
    """

    frame_fields: ClassVar[tuple[str, ...]] = ("base",)
    count_fields: ClassVar[tuple[str, ...]] = ()

    limbs: Array  # (..., limbs), int64
    base: int

    # -- making ----------------------------------------------------------------------------------------------------

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Self:
        """Sums of nothing."""
        return cls(np.zeros((*shape, 0), dtype=np.int64), 0)

    @classmethod
    def from_limbs(cls, limbs: Array, base: int) -> Self:
        """The sums that these limbs stand for, whatever their sizes and signs (below 2**62)."""
        return cls(*trim_window(carry_limbs(limbs), base))

    @classmethod
    def from_floats(cls, values: ArrayLike) -> Self:
        """The values themselves; they must be finite."""
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise DataError("an infinite or missing number has no exact sum.")
        mantissa, exponent = np.frexp(values)
        return cls.from_scaled(np.ldexp(mantissa, MANTISSA_BITS).astype(np.int64), exponent - MANTISSA_BITS)

    @classmethod
    def from_products(cls, *factors: Array) -> Self:
        """The products of finite doubles, element by element."""
        values = [np.frexp(np.asarray(f, dtype=np.float64)) for f in factors]
        mantissa, exponent = np.array(1, dtype=object), np.array(0, dtype=object)
        for m, e in values:
            mantissa = mantissa * np.ldexp(m, MANTISSA_BITS).astype(np.int64).astype(object)
            exponent = exponent + (e - MANTISSA_BITS).astype(object)
        lowest = int(exponent.min(initial=0))
        return cls.from_integers(np.asarray(mantissa << (exponent - lowest)), lowest)

    @classmethod
    def from_scaled(cls, mantissa: Array, exponent: Array) -> Self:
        """``mantissa * 2 ** exponent``, element by element; mantissas are whole numbers below 2**62 in size."""
        mantissa = np.asarray(mantissa, dtype=np.int64)
        exponent = np.broadcast_to(np.asarray(exponent, dtype=np.int64), mantissa.shape)
        if not mantissa.any():
            return cls.zeros(mantissa.shape)
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
        limbs[..., -1] -= (limbs[..., -1] & SIGN_BIT) << 1
        return cls.from_limbs(limbs, base)

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of sums."""
        return self.limbs.shape[:-1]

    def to_integers(self) -> tuple[Array, int]:
        """Python integers and an exponent: every sum is its integer times ``2 ** exponent``."""
        width = 4 * self.limbs.shape[-1]
        digits = (self.limbs & LIMB_MASK).astype("<u4").tobytes()
        integers = np.empty(int(np.prod(self.shape)), dtype=object)
        for i in range(len(integers)):
            integers[i] = int.from_bytes(digits[i * width : (i + 1) * width], "little", signed=True)
        return integers.reshape(self.shape), LIMB_BITS * self.base

    def to_floats(self) -> Array:
        """The nearest doubles; infinity for a sum beyond the largest of them."""
        integers, exponent = self.to_integers()
        return divide_exactly(integers, np.ones(self.shape, dtype=object), exponent)

    def to_scaled_floats(self) -> tuple[Array, Array]:
        """``mantissa`` and ``exponent`` with sums of ``mantissa * 2 ** exponent``, rounded to 53 bits.

        The mantissas are doubles in [0.5, 1), with a sign, or zero: no sum is too large or too small for them.
        """
        integers, exponent = self.to_integers()
        bits = np.array([int(v).bit_length() for v in integers.flat], dtype=np.int64).reshape(self.shape)
        mantissa, carried = np.frexp(divide_exactly(integers, np.ones(self.shape, dtype=object), -bits))
        return mantissa, np.where(mantissa != 0, carried + bits + exponent, 0)

    def signs(self) -> Array:
        """-1, 0 or 1 for each sum."""
        if self.limbs.shape[-1] == 0:
            return np.zeros(self.shape, dtype=np.int64)
        return np.where(self.limbs[..., -1] < 0, -1, self.limbs.any(axis=-1).astype(np.int64))

    # -- the algebra -----------------------------------------------------------------------------------------------

    def align(self, other: Self) -> tuple[Self, Self]:
        """Both in one window; a window without limbs fits any other."""
        if self.base == other.base and self.limbs.shape[-1] == other.limbs.shape[-1]:
            return self, other
        windows = [s for s in (self, other) if s.limbs.shape[-1]]
        base = min(s.base for s in windows)
        top = max(s.base + s.limbs.shape[-1] for s in windows)
        return self._widen(base, top), other._widen(base, top)

    def _widen(self, base: int, top: int) -> Self:
        width = self.limbs.shape[-1]
        if not width:
            return type(self)(np.zeros((*self.shape, top - base), dtype=np.int64), base)
        below, above = self.base - base, top - self.base - width
        return type(self)(np.pad(self.limbs, [(0, 0)] * len(self.shape) + [(below, above)]), base)

    def combine(self, other: Self, op: Callable[[Array, Array], Array]) -> Self:
        return self.from_limbs(op(self.limbs, other.limbs), self.base)

    def check_subtraction(self, total: Self, part: Self) -> Self:
        return self  # a sum may have any sign

    def __mul__(self, weight: float) -> Self:
        """The sums times a weight.

        A whole number is exact, as so many repeated summands. Any other weight is not: each sum is rounded to 53 bits
        and multiplied as doubles are, however large or small it is. Then one factor is worth at most two roundings
        (2**-52 of the sum), and the sum needs no more limbs the more often it is scaled.
        """
        weight = float(weight)
        if weight == np.floor(weight) and abs(weight) <= MAX_EXACT_FACTOR:
            return self.from_limbs(self.limbs * int(weight), self.base)
        mantissa, exponent = self.to_scaled_floats()
        mantissa, carried = np.frexp(mantissa * weight)
        exponent = exponent + carried - MANTISSA_BITS
        kept = exponent >= LIMB_BITS * MIN_BASE  # anything smaller has decayed to nothing
        return self.from_scaled(np.where(kept, np.ldexp(mantissa, MANTISSA_BITS), 0.0), np.where(kept, exponent, 0))

    __rmul__ = __mul__

    # -- shapes ----------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Self:
        """Some of the sums, by an index of their array (without ``...``)."""
        return type(self)(*trim_window(self.limbs[index], self.base))

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """The same sums in an array of another shape."""
        return type(self)(self.limbs.reshape(*shape, self.limbs.shape[-1]), self.base)

    def sum(self, axis: int = 0, keepdims: bool = False) -> Self:
        """The sums along one axis, which counts from the first."""
        return self.from_limbs(self.limbs.sum(axis=axis, keepdims=keepdims), self.base)

    def regroup_classes(self, index: Array, size: int) -> Self:
        wide = np.zeros((size, *self.limbs.shape[1:]), dtype=np.int64)
        wide[index] = self.limbs
        return type(self)(wide, self.base)

    def pool_classes(self) -> Self:
        return self.sum(axis=0, keepdims=True)

    def take_columns(self, columns: Array) -> Self:
        return type(self)(*trim_window(self.limbs[..., columns, :], self.base))

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
        if trim_window(limbs, self.base)[0].shape != limbs.shape:
            return "the window of the sums is wider than it needs to be"
        return None


def carry_limbs(limbs: Array) -> Array:
    """Limbs of the same value, all of them in ``0 .. 2**32 - 1`` but the last, which is small and has the sign."""
    limbs = np.concatenate([limbs, np.zeros((*limbs.shape[:-1], 2), dtype=np.int64)], axis=-1)
    for j in range(limbs.shape[-1] - 1):
        limbs[..., j + 1] += limbs[..., j] >> LIMB_BITS
        limbs[..., j] &= LIMB_MASK
    return limbs


def trim_window(limbs: Array, base: int) -> tuple[Array, int]:
    """The smallest window that holds the same values, and its base; the limbs have been carried."""
    if not limbs.any():
        return np.zeros((*limbs.shape[:-1], 0), dtype=np.int64), 0
    limbs = limbs.copy()
    low, top = 0, limbs.shape[-1]
    # the last limb can go where it repeats the sign of the one before it
    while top > 1 and (limbs[..., top - 1] == -(limbs[..., top - 2] >> (LIMB_BITS - 1))).all():
        limbs[..., top - 2] += limbs[..., top - 1] << LIMB_BITS
        top -= 1
    while not limbs[..., low].any():
        low += 1
    return np.ascontiguousarray(limbs[..., low:top]), base + low


# -- ratios, rounded once ----------------------------------------------------------------------------------------------


def divide_exactly(numerator: Array, denominator: Array, exponent: ArrayLike) -> Array:
    """The doubles nearest to ``numerator * 2 ** exponent / denominator``, which are Python integers; NaN for n / 0."""
    divide = np.frompyfunc(_divide_integers, 3, 1)
    return np.asarray(divide(numerator, denominator, np.asarray(exponent, dtype=object)), dtype=np.float64)


def _divide_integers(numerator: int, denominator: int, exponent: int) -> float:
    if denominator == 0:
        return np.nan
    exponent = int(exponent)
    if exponent >= 0:
        numerator <<= exponent
    else:
        denominator <<= -exponent
    try:
        return numerator / denominator  # Python rounds the quotient of two integers correctly, once
    except OverflowError:
        return np.inf if numerator > 0 else -np.inf


def compute_means(n: Array, first: ExactSums, exponent: ArrayLike = 0) -> Array:
    """``first / n`` in units of ``2 ** exponent``, correctly rounded; NaN where ``n`` is zero."""
    rows, rows_exponent = ExactSums.from_floats(n).to_integers()
    sums, sums_exponent = first.to_integers()
    return divide_exactly(sums, rows, sums_exponent - rows_exponent - np.asarray(exponent))


def compute_variances(n: Array, first: ExactSums, second: ExactSums, exponent: ArrayLike = 0) -> Array:
    """``(n * second - first ** 2) / n ** 2`` in units of ``2 ** (2 * exponent)``, correctly rounded; NaN for no rows.

    >>> x = np.array([1e8, 1e8 + 1, 1e8 + 2])
    >>> first, second = ExactSums.from_floats(x).sum(), ExactSums.from_products(x, x).sum()
    >>> float(compute_variances(np.array(3.0), first, second))
    0.6666666666666666
    """
    rows, rows_exponent = ExactSums.from_floats(n).to_integers()
    a, a_exponent = first.to_integers()
    b, b_exponent = second.to_integers()
    common = min(rows_exponent + b_exponent, 2 * a_exponent)
    spread = ((rows * b) << (rows_exponent + b_exponent - common)) - ((a * a) << (2 * a_exponent - common))
    return divide_exactly(spread, rows * rows, common - 2 * rows_exponent - 2 * np.asarray(exponent))
