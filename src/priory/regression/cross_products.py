"""What linear regression remembers of its rows: how many, and the sums and products of the columns.

    n,  Σ z,  Σ z z'        with  z = (y, x) - origin,  the target first

Sums about an origin near the data keep 15 digits where raw products keep none (mean 1e8, sd 1). The origin does not
change a result beyond rounding; ``+`` puts both records about one origin and over the same terms.

A missing cell has its own term: its value is nought *about the origin*, and its flag is 1. So what a missing cell is
taken for (the mean of the cells present) is a function of the record, and is forgotten with the rows.

>>> seen = observe([[1.0], [2.0], [np.nan], [4.0]], [1.0, 2.0, 3.0, 4.0])
>>> [f"{t.column} {t.kind}" for t in seen.terms], seen.centre().round(3).tolist()
(['0 value', '0 missing'], [2.5, 2.333, 0.0])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from priory.core.blas_threads import one_blas_thread
from priory.core.sharding import over_shards, totals
from priory.core.statistics import DUST, Statistics
from priory.core.typing import Array
from priory.errors import DataError, NotSeen

BLOCK = 1 << 12  # rows whose products are taken at once: they stay in the cache
TINY, HUGE = 1e-150, 1e150  # the square of anything beyond is nought or infinite
LOST = 1e-9  # of the products: a forgotten part may not hold more spread than this beyond what was learned


class Term(NamedTuple):
    """One column of the design: a column's ``value``, its ``missing`` flag, or one ``level`` of a category."""

    column: Hashable
    kind: str = "value"
    level: str | None = None

    @property
    def flag(self) -> Term:
        return Term(self.column, "missing")


@dataclass(frozen=True, eq=False)
class Products(Statistics):
    """Rows seen, and the sums and products of target and terms about the origin."""

    frame: ClassVar[tuple[str, ...]] = ("origin", "terms")

    n: Array
    first: Array
    second: Array
    origin: Array  # of the target, then of each term; only values have one: levels and flags are counted from nought
    terms: tuple[Term, ...]

    def flags(self) -> list[tuple[int, int]]:
        """Where a value stands, and where its flag does."""
        place = {term: i for i, term in enumerate(self.terms, start=1)}
        return [(i, place[term.flag]) for term, i in place.items() if term.kind == "value" and term.flag in place]

    def rebased(self, origin: Array) -> Products:
        """The same rows about another origin: ``z' = z + shift`` in every cell that is present."""
        if (self.origin == origin).all():
            return self
        shift = np.where(self.present() > 0, self.origin - origin, 0.0)
        step = np.eye(1 + len(shift))
        step[1:, 0] = shift
        for value, flag in self.flags():
            step[1 + value, 1 + flag] = -shift[value]
        moved = step @ np.block([[self.n, self.first], [self.first[:, None], self.second]]) @ step.T
        return replace(self, first=moved[0, 1:], second=(moved[1:, 1:] + moved[1:, 1:].T) / 2, origin=origin)

    def widened(self, terms: Iterable[Term]) -> Products:
        """The same rows over more terms, nought in each of the new ones."""
        new = tuple(dict.fromkeys([*self.terms, *terms]))[len(self.terms) :]
        if not new:
            return self
        more = len(new)
        return Products(
            self.n,
            np.pad(self.first, (0, more)),
            np.pad(self.second, (0, more)),
            np.pad(self.origin, (0, more)),
            self.terms + new,
        )

    def reordered(self, terms: tuple[Term, ...]) -> Products:
        if terms == self.terms:
            return self
        place = {term: i for i, term in enumerate(self.terms, start=1)}
        order = [0, *(place[term] for term in terms)]
        return Products(self.n, self.first[order], self.second[np.ix_(order, order)], self.origin[order], terms)

    def aligned(self, other: Products) -> tuple[Products, Products]:
        """Over all terms of both, about the origin of the record with more cells."""
        ours, theirs = ({t.column for t in r.terms if t.kind == "value"} for r in (self, other))
        if ours != theirs:
            raise DataError(f"cannot combine numbers in {_named(ours)} with numbers in {_named(theirs)}.")
        a, b = self.widened(other.terms), other.widened(self.terms)
        b = b.reordered(a.terms)
        origin = np.where(a.present() >= b.present(), a.origin, b.origin)
        return a.rebased(origin), b.rebased(origin)

    def guarded(self, total: Products, part: Products) -> Products:
        left: Products = super().guarded(total, part)
        lost = np.diag(left.scatter()) < -LOST * np.diag(total.second)
        if lost.any():
            at = int(np.argmax(lost))
            what = "the target" if at == 0 else f"column {left.terms[at - 1].column!r}"
            raise NotSeen(f"cannot forget these rows: more spread of {what} than was learned would go.", (at,))
        some = left.present() > 0  # a column of which no cell is left has sums of nought, not of rounding
        kept = replace(left, first=left.first * some, second=left.second * np.outer(some, some))
        return replace(kept.rebased(kept.centre()), origin=kept.centre() * some)  # not about a row that is forgotten

    def present(self) -> Array:
        """How many cells of the target and of each term are not missing."""
        n = np.full(len(self.first), float(self.n))
        for value, flag in self.flags():
            n[value] -= self.first[flag]
        return np.where(n > DUST * self.n, n, 0.0)

    def centre(self) -> Array:
        """The mean of the cells present, for target and values; nought for levels and flags."""
        n = self.present()
        values = np.array([True, *(term.kind == "value" for term in self.terms)])
        return np.where(values, self.origin + self.first / np.where(n > 0, n, 1.0), 0.0)

    def scatter(self) -> Array:
        """Products about the mean."""
        return np.asarray(self.second - np.outer(self.first, self.first) / max(float(self.n), np.finfo(float).tiny))


def observe(x: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None, terms: Sequence[Term] = ()) -> Products:
    """The record of the rows; a NaN in ``x`` is a missing cell."""
    x, y = np.asarray(x), np.asarray(y)
    terms = tuple(terms) or tuple(Term(i) for i in range(x.shape[1]))
    w = None if weight is None else np.asarray(weight, dtype=float)
    origin = _first_cells(x, y, terms)
    seen = _products(x, y, w, terms, origin)
    if not np.isfinite(seen.second).all():
        check_range(x)
        check_range(y, "the target")
        gaps = tuple(terms[j].flag for j in np.flatnonzero(np.isnan(x).any(axis=0)))
        seen = _products(x, y, w, terms + gaps, np.pad(origin, (0, len(gaps))))
    if not np.isfinite(seen.second).all():
        raise DataError("the products of these rows are infinite: rescale the columns or the weights.")
    if (np.diag(seen.scatter()) < 1e-6 * np.diag(seen.second)).any():  # the first row lies far from the others
        seen = _products(x, y, w, seen.terms, seen.centre())
    if (np.diag(seen.second)[np.diag(seen.second) != 0] < TINY**2).any():
        raise DataError(f"a column spreads over less than {TINY:g}, whose square is nought: rescale it.")
    return seen


def design(x: Array, inputs: Sequence[Term], terms: Sequence[Term], origin: Array) -> Array:
    """The rows of ``x``, whose columns are ``inputs``, over ``terms`` about ``origin``; a missing cell is nought."""
    if tuple(inputs) == tuple(terms):
        return np.asarray(x - origin)
    z, place = np.zeros((len(x), len(terms))), {term: j for j, term in enumerate(terms)}
    for cells, term in zip(x.T, inputs, strict=True):
        z[:, place[term]] += np.nan_to_num(cells - origin[place[term]])
        if term.flag in place:
            z[:, place[term.flag]] = np.isnan(cells)
    return z


def _products(x: Array, y: Array, weight: Array | None, terms: tuple[Term, ...], origin: Array) -> Products:
    inputs, width = terms[: x.shape[1]], len(terms) + 1

    def sums(shard: slice) -> tuple[Array, ...]:
        n, first, second = np.zeros(()), np.zeros(width), np.zeros((width, width))
        for start in range(shard.start, shard.stop, BLOCK):
            rows = slice(start, min(start + BLOCK, shard.stop))
            z = np.empty((len(y[rows]), width))
            z[:, 0] = y[rows] - origin[0]
            z[:, 1:] = design(x[rows], inputs, terms, origin[1:])
            w = np.ones(len(z)) if weight is None else weight[rows]
            n += w.sum()
            with np.errstate(over="ignore", invalid="ignore"):
                first += w @ z
                z = z if weight is None else z * np.sqrt(w)[:, None]
                second += z.T @ z
        return n, first, second

    with one_blas_thread():
        n, first, second = totals(over_shards(sums, len(x)))
    return Products(n, first, second, origin, terms)


def _first_cells(x: Array, y: Array, terms: Sequence[Term]) -> Array:
    """The first cell present of the target and of every value: an origin near the data."""
    if not len(x):
        return np.zeros(1 + len(terms))
    cells = x[0].astype(float)
    for j in np.flatnonzero(np.isnan(cells)):
        cells[j] = x[np.argmax(~np.isnan(x[:, j])), j]
    values = np.array([term.kind == "value" for term in terms], dtype=bool)
    return np.concatenate([y[:1].astype(float), np.where(values & np.isfinite(cells), cells, 0.0)])


def check_range(x: Array, name: str = "") -> None:
    """Numbers whose square is infinite are refused."""
    far = np.abs(x) > HUGE
    if far.any():
        row, *column = (int(i) for i in np.argwhere(far)[0])
        where = name or f"column {column[0]}"
        raise DataError(f"row {row} of {where} holds {x[row, *column]:g}: rescale it, its square is infinite.")


def _named(columns: set[Hashable]) -> str:
    return ", ".join(sorted(map(repr, columns))) or "no column"
