"""The log likelihood of one column as a small formula: a table of bins or values, or a density.

Exports walk these formulas (`priory.export.scoring_plan`). A missing cell contributes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy import ndarray as Array


@dataclass(frozen=True, eq=False)
class BinTerm:
    """A table over bins; the bin of a number is how many of the cuts it reaches."""

    cuts: Array  # (bins - 1,), increasing
    table: Array  # (classes, bins)


@dataclass(frozen=True, eq=False)
class ValueTerm:
    """A table over values, whose last entry is for all other values."""

    values: Array  # (values,): labels or numbers
    table: Array  # (classes, values + 1)


@dataclass(frozen=True, eq=False)
class DensityTerm:
    """A formula of the number x with parameters of each class.

    "student"   constant - power log(1 + precision z²),  z = x / unit - centre
    "normal"    constant - precision z² / 2
    "gamma"     log Σ_k exp(constant_k + (shape_k - 1) log x - power_k log(1 + x / scale_k)),  x > 0
    "amount"    constant + (shape - 1) log x - rate x,  x > 0
    "events"    lgamma(shape + x) + constant - slope x,  x = 0, 1, 2, ...
    "count"     slope x + constant,  x = 0, 1, 2, ...
    """

    form: str
    parameters: dict[str, Array]  # (classes,) each, or (classes, nodes) for "gamma"
    unit: float = 1.0


ColumnTerm = BinTerm | ValueTerm | DensityTerm
