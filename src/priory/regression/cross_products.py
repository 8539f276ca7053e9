"""The sufficient statistics of linear regression: the number of rows, and the sums and cross products of the columns.

    n,  Σ z,  Σ z z'        with  z = (y, x) - origin,  the target first

Sums about an origin near the data keep 15 digits where raw products keep none (mean 1e8, standard deviation 1). The
origin does not change a result beyond rounding; ``+`` brings both records to one origin and to the same terms.

A column with missing cells has a second term, a flag: a missing cell has z = 0 and its flag is 1. The value that
replaces a missing cell (the mean of the cells present) is therefore a function of the statistics, and is forgotten
together with the rows.

>>> seen = accumulate_products([[1.0], [2.0], [np.nan], [4.0]], [1.0, 2.0, 3.0, 4.0])
>>> [f"{t.column} {t.kind}" for t in seen.terms], seen.centre().round(3).tolist()
(['0 value', '0 missing'], [2.5, 2.333, 0.0])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from priory.core.blas_threads import limit_blas_threads
from priory.core.registration import register_record
from priory.core.sharding import map_shards, sum_shards
from priory.core.statistics import ROUNDING_TOLERANCE, Statistics
from priory.core.typing import Array
from priory.errors import DataError, NotLearnedError

PRODUCT_BLOCK_ROWS = 1 << 12  # rows multiplied at once: they stay in the cache
MIN_COLUMN_SPREAD, MAX_CELL_MAGNITUDE = 1e-150, 1e150  # beyond these the square underflows or overflows
FORGOTTEN_SPREAD_TOLERANCE = 1e-9  # relative to the products: how far below zero rounding may push a variance
FAR_ORIGIN_RATIO = 1e-6  # of the products: with less scatter than this the origin is too far from the rows


@register_record("Term", reveals="the values of its columns that are labels")
class Term(NamedTuple):
    """One column of the design matrix: a column's ``value``, its ``missing`` flag, or one ``level`` of a category."""

    column: Hashable
    kind: str = "value"
    level: str | None = None

    @property
    def missing_flag(self) -> Term:
        return Term(self.column, "missing")


@register_record("Products", axes={"n": "", "first": "p", "second": "pp", "origin": "p"})
@dataclass(frozen=True, eq=False)
class CrossProducts(Statistics):
    """The number of rows, and the sums and products of target and terms about the origin.

    All arrays have the target first, then the terms: their size is ``1 + terms``, called ``width`` below.
    """

    frame_fields: ClassVar[tuple[str, ...]] = ("origin", "terms")

    n: Array  # (): the total weight of the rows
    first: Array  # (width,): Σ z
    second: Array  # (width, width): Σ z z'
    origin: Array  # (width,): zero for levels and flags
    terms: tuple[Term, ...]

    def find_fault(self) -> str | None:
        if self.n < 0 or not len(self.first) == len(self.terms) + 1 == len(set(self.terms)) + 1:
            return "there is not one sum for the target and one for each term"
        if not all(term.kind in ("value", "missing", "level") for term in self.terms):
            return "a term is neither a value nor a level nor a missing flag"
        if np.abs(self.origin).max(initial=0.0) > MAX_CELL_MAGNITUDE or np.diagonal(self.second).min(initial=0.0) < 0:
            return "a sum of squares is negative, or the origin is too far away"
        return None

    def find_missing_flags(self) -> list[tuple[int, int]]:
        """Return the positions of each value that has a missing flag, and of that flag."""
        place = {term: i for i, term in enumerate(self.terms, start=1)}
        return [
            (i, place[term.missing_flag])
            for term, i in place.items()
            if term.kind == "value" and term.missing_flag in place
        ]

    def rebase(self, origin: Array) -> CrossProducts:
        """Return the statistics of the same rows about another origin: ``z' = z + shift`` in every cell present."""
        if (self.origin == origin).all():
            return self
        shift = np.where(self.count_present() > 0, self.origin - origin, 0.0)
        # (1, z') = step @ (1, z), so the moments of (1, z'), (1 + width, 1 + width), are step @ moments @ step.T
        step = np.eye(1 + len(shift))
        step[1:, 0] = shift
        for value, flag in self.find_missing_flags():
            step[1 + value, 1 + flag] = -shift[value]  # a missing cell stays at zero
        moved = step @ np.block([[self.n, self.first], [self.first[:, None], self.second]]) @ step.T
        return replace(self, first=moved[0, 1:], second=(moved[1:, 1:] + moved[1:, 1:].T) / 2, origin=origin)

    def add_terms(self, terms: Iterable[Term]) -> CrossProducts:
        """Return the statistics of the same rows with more terms, which are zero in every row."""
        new = tuple(dict.fromkeys([*self.terms, *terms]))[len(self.terms) :]
        if not new:
            return self
        more = len(new)
        return CrossProducts(
            self.n,
            np.pad(self.first, (0, more)),
            np.pad(self.second, (0, more)),
            np.pad(self.origin, (0, more)),
            self.terms + new,
        )

    def reorder_terms(self, terms: tuple[Term, ...]) -> CrossProducts:
        """Return the same statistics with the terms in another order."""
        if terms == self.terms:
            return self
        place = {term: i for i, term in enumerate(self.terms, start=1)}
        order = [0, *(place[term] for term in terms)]
        return CrossProducts(self.n, self.first[order], self.second[np.ix_(order, order)], self.origin[order], terms)

    def align(self, other: CrossProducts) -> tuple[CrossProducts, CrossProducts]:
        """Return both records over the terms of both, each column about the origin of the record with more cells."""
        ours, theirs = ({t.column for t in r.terms if t.kind == "value"} for r in (self, other))
        if ours != theirs:
            raise DataError(
                f"cannot combine numbers in {_format_columns(ours)} with numbers in {_format_columns(theirs)}."
            )
        a, b = self.add_terms(other.terms), other.add_terms(self.terms)
        b = b.reorder_terms(a.terms)
        origin = np.where(a.count_present() >= b.count_present(), a.origin, b.origin)
        return a.rebase(origin), b.rebase(origin)

    def check_subtraction(self, total: CrossProducts, part: CrossProducts) -> CrossProducts:
        left: CrossProducts = super().check_subtraction(total, part)
        negative = np.diag(left.scatter()) < -FORGOTTEN_SPREAD_TOLERANCE * np.diag(total.second)  # (width,)
        if negative.any():
            at = int(np.argmax(negative))
            name = "the target" if at == 0 else f"column {left.terms[at - 1].column!r}"
            message = f"cannot forget these rows: they have more spread in {name} than was learned."
            raise NotLearnedError(message, (at,))
        # A column with no cells left has sums of zero, not of rounding; the origin must not reveal a forgotten row.
        some = left.count_present() > 0
        kept = replace(left, first=left.first * some, second=left.second * np.outer(some, some))
        return replace(kept.rebase(kept.centre()), origin=kept.centre() * some)

    def count_present(self) -> Array:
        """Return the weight of the cells that are not missing, for the target and each term."""
        n = np.full(len(self.first), float(self.n))
        for value, flag in self.find_missing_flags():
            n[value] -= self.first[flag]
        return np.where(n > ROUNDING_TOLERANCE * self.n, n, 0.0)

    def centre(self) -> Array:
        """Return the mean of the cells present, for the target and values; zero for levels and flags."""
        n = self.count_present()
        values = np.array([True, *(term.kind == "value" for term in self.terms)])
        return np.where(values, self.origin + self.first / np.where(n > 0, n, 1.0), 0.0)

    def scatter(self) -> Array:
        """Return the products about the mean, as (width, width)."""
        return np.asarray(self.second - np.outer(self.first, self.first) / max(float(self.n), np.finfo(float).tiny))


def accumulate_products(
    x: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None, terms: Sequence[Term] = ()
) -> CrossProducts:
    """Return the statistics of the rows; a NaN in ``x`` is a missing cell.

    The sums are taken about the first cell present in each column. They are taken once more if that turns out to have
    missing cells (which need flags), or to lie far from the other rows.
    """
    x, y = np.asarray(x), np.asarray(y)
    terms = tuple(terms) or tuple(Term(i) for i in range(x.shape[1]))
    w = None if weight is None else np.asarray(weight, dtype=float)
    origin = _choose_origin(x, y, terms)
    seen = _sum_about_origin(x, y, w, terms, origin)
    if not np.isfinite(seen.second).all():
        check_range(x)
        check_range(y, "the target")
        flags = tuple(terms[j].missing_flag for j in np.flatnonzero(np.isnan(x).any(axis=0)))
        seen = _sum_about_origin(x, y, w, terms + flags, np.pad(origin, (0, len(flags))))
    if not np.isfinite(seen.second).all():
        raise DataError("the products of these rows are infinite: rescale the columns or the weights.")
    if (np.diag(seen.scatter()) < FAR_ORIGIN_RATIO * np.diag(seen.second)).any():
        seen = _sum_about_origin(x, y, w, seen.terms, seen.centre())
    if (np.diag(seen.second)[np.diag(seen.second) != 0] < MIN_COLUMN_SPREAD**2).any():
        raise DataError(f"a column has a spread of less than {MIN_COLUMN_SPREAD:g}, whose square is zero: rescale it.")
    return seen


def build_design_matrix(x: Array, inputs: Sequence[Term], terms: Sequence[Term], origin: Array) -> Array:
    """Return ``x``, whose columns are ``inputs``, as (rows, terms) about ``origin``; a missing cell is zero."""
    if tuple(inputs) == tuple(terms):
        return np.asarray(x - origin)
    z, place = np.zeros((len(x), len(terms))), {term: j for j, term in enumerate(terms)}
    for cells, term in zip(x.T, inputs, strict=True):
        z[:, place[term]] += np.nan_to_num(cells - origin[place[term]])
        if term.missing_flag in place:
            z[:, place[term.missing_flag]] = np.isnan(cells)
    return z


def _sum_about_origin(
    x: Array, y: Array, weight: Array | None, terms: tuple[Term, ...], origin: Array
) -> CrossProducts:
    """Return the statistics of the rows about a given origin, block by block on all cores."""
    inputs, width = terms[: x.shape[1]], len(terms) + 1

    def sum_shard(shard: slice) -> tuple[Array, ...]:
        n, first, second = np.zeros(()), np.zeros(width), np.zeros((width, width))
        for start in range(shard.start, shard.stop, PRODUCT_BLOCK_ROWS):
            rows = slice(start, min(start + PRODUCT_BLOCK_ROWS, shard.stop))
            z = np.empty((len(y[rows]), width))  # (block rows, width): the target, then the terms
            z[:, 0] = y[rows] - origin[0]
            z[:, 1:] = build_design_matrix(x[rows], inputs, terms, origin[1:])
            w = np.ones(len(z)) if weight is None else weight[rows]
            n += w.sum()
            with np.errstate(over="ignore", invalid="ignore"):
                first += w @ z
                z = z if weight is None else z * np.sqrt(w)[:, None]  # so that z'z is weighted
                second += z.T @ z
        return n, first, second

    with limit_blas_threads():
        n, first, second = sum_shards(map_shards(sum_shard, len(x)))
    return CrossProducts(n, first, second, origin, terms)


def _choose_origin(x: Array, y: Array, terms: Sequence[Term]) -> Array:
    """Return the first cell present of the target and of every value: an origin near the data."""
    if not len(x):
        return np.zeros(1 + len(terms))
    cells = x[0].astype(float)
    for j in np.flatnonzero(np.isnan(cells)):
        cells[j] = x[np.argmax(~np.isnan(x[:, j])), j]
    values = np.array([term.kind == "value" for term in terms], dtype=bool)
    return np.concatenate([y[:1].astype(float), np.where(values & np.isfinite(cells), cells, 0.0)])


def check_range(x: Array, name: str = "") -> None:
    """Raise if a number is so large that its square is infinite."""
    far = np.abs(x) > MAX_CELL_MAGNITUDE
    if far.any():
        row, *column = (int(i) for i in np.argwhere(far)[0])
        where = name or f"column {column[0]}"
        raise DataError(f"row {row} of {where} holds {x[row, *column]:g}, whose square is infinite: rescale it.")


def _format_columns(columns: set[Hashable]) -> str:
    return ", ".join(sorted(map(repr, columns))) or "no column"
