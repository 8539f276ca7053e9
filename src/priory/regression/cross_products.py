"""The sufficient statistics of linear regression: exact sums of products of columns, about any point."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core import exact_products
from priory.core.exact_sums import ExactSums
from priory.core.statistics import Statistics, register_record
from priory.errors import DataError, NotLearnedError

TERM_KINDS = ("value", "level", "missing")


@register_record("Term", reveals="the values of its columns that are labels")
class Term(NamedTuple):
    """One column of the design matrix: a column's ``value``, its ``missing`` flag, or one ``level`` of a category."""

    column: Hashable
    kind: str = "value"
    level: str | None = None

    @property
    def missing_flag(self) -> Term:
        return Term(self.column, "missing")


@register_record("Products")
@dataclass(frozen=True, eq=False)
class CrossProducts(Statistics):
    """Sums of products of all pairs of one, target and terms, in the order of `list_pairs`.

    Terms are in the order of their columns, with the missing flags last. Levels and flags without rows are dropped.
    """

    frame_fields: ClassVar[tuple[str, ...]] = ("terms",)
    count_fields: ClassVar[tuple[str, ...]] = ()

    products: ExactSums  # (pairs,)
    terms: tuple[Term, ...]

    def find_fault(self) -> str | None:
        if self.products.shape != (exact_products.count_pairs(2 + len(self.terms)),) or len(set(self.terms)) != len(
            self.terms
        ):
            return "there is not one sum for each pair of terms"
        if not all(term.kind in TERM_KINDS for term in self.terms):
            return "a term is neither a value nor a level nor a missing flag"
        if not all(Term(term.column) in self.terms for term in self.terms if term.kind == "missing"):
            return "a missing flag belongs to no value"
        return "a sum of squares is negative" if (self.products[self._find_squares()].signs() < 0).any() else None

    @property
    def n(self) -> Array:
        """The total weight of the rows: ()."""
        return self.products[:1].to_floats()[0]

    def _find_squares(self) -> Array:
        """Return the positions of the squares of one, target and terms among the pairs, (2 + terms,)."""
        return np.diagonal(exact_products.index_pairs(2 + len(self.terms)))

    # -- terms -----------------------------------------------------------------------------------------------------

    def find_missing_flags(self) -> list[tuple[int, int]]:
        """Return the positions of each value that has a missing flag, and of that flag; the target is at 0."""
        place = {term: i for i, term in enumerate(self.terms, start=1)}
        return [(place[Term(term.column)], i) for term, i in place.items() if term.kind == "missing"]

    def add_terms(self, terms: Iterable[Term]) -> CrossProducts:
        """Return the statistics of the same rows with more terms, which are zero in every row."""
        return self._take_terms(sort_terms([*self.terms, *terms]))

    def drop_empty_terms(self) -> CrossProducts:
        """Return the statistics without the levels and flags that occur in no row."""
        if all(term.kind == "value" for term in self.terms):
            return self
        some = self.products[self._find_squares()[2:]].signs() > 0
        return self._take_terms(
            tuple(t for t, is_used in zip(self.terms, some, strict=True) if is_used or t.kind == "value")
        )

    def _take_terms(self, terms: tuple[Term, ...]) -> CrossProducts:
        """Return the record of these terms, new ones with sums of zero."""
        if terms == self.terms:
            return self
        place = {term: i for i, term in enumerate(self.terms, start=2)}
        # the old position of each new column; -1 for a term that is new
        order = np.array([0, 1, *(place.get(term, -1) for term in terms)])
        left, right = (order[side] for side in exact_products.list_pairs(len(order)))
        known = (left >= 0) & (right >= 0)
        # (pairs, limbs): the sums of known pairs, zero for new ones
        limbs = self.products.limbs[exact_products.index_pairs(2 + len(self.terms))[left, right]]
        return CrossProducts(ExactSums.from_limbs(np.where(known[:, None], limbs, 0), self.products.base), terms)

    # -- the algebra -----------------------------------------------------------------------------------------------

    def align(self, other: CrossProducts) -> tuple[CrossProducts, CrossProducts]:
        """Return both records over the union of their terms."""
        if self.terms == other.terms:
            return self, other
        ours, theirs = ({t.column for t in r.terms if t.kind == "value"} for r in (self, other))
        if ours != theirs:
            raise DataError(
                f"cannot combine numbers in {_format_columns(ours)} with numbers in {_format_columns(theirs)}."
            )
        # the order of the columns is taken from the record that has more of them
        first, second = (self, other) if _count_columns(self) >= _count_columns(other) else (other, self)
        terms = sort_terms([*first.terms, *second.terms])
        return self._take_terms(terms), other._take_terms(terms)

    def check_subtraction(self, total: CrossProducts, part: CrossProducts) -> CrossProducts:
        """Return ``total - part``, or raise NotLearnedError if no set of rows can have these sums."""
        learned, forgotten, left = (float(record.n) for record in (total, part, self))
        if left < 0:
            message = f"cannot forget {forgotten:g} of {learned:g}: only what was learned can be forgotten."
            raise NotLearnedError(message, subject="it")
        width = 2 + len(self.terms)
        sums, squares = (self.products[at].to_integers() for at in (np.arange(width), self._find_squares()))
        impossible = _find_impossible(*sums, *squares)
        if impossible is not None:
            name = "the target" if impossible == 1 else f"column {self.terms[impossible - 2].column!r}"
            message = f"cannot forget these rows: they have more spread in {name} than was learned."
            raise NotLearnedError(message, (impossible - 1,), subject=name)
        return self.drop_empty_terms()

    # -- means -----------------------------------------------------------------------------------------------------

    def centre(self) -> Array:
        """Return the mean of the cells present, for the target and values; zero for levels and flags."""
        sums, _ = self.products[: 2 + len(self.terms)].to_integers()
        # (1 + terms,): the number of present cells, as exact integers
        n = np.full(1 + len(self.terms), sums[0], dtype=object)
        for value, flag in self.find_missing_flags():
            n[value] -= sums[1 + flag]
        values = np.array([True, *(term.kind == "value" for term in self.terms)]) & (n > 0)
        return np.where(values, exact_products.divide_integers(sums[1:], np.where(values, n, 1)), 0.0)

    def choose_units(self) -> Array:
        """Return a power of two for the target and each term, (1 + terms,); 1 for columns of ordinary magnitude."""
        return self.derive(
            "units", lambda r: exact_products.choose_units(r.products[0], r.products[r._find_squares()[1:]])
        )

    def move_cells(self, step: Array) -> ExactSums:
        """Return the exact products of the same rows with ``step`` (1 + terms,) added to every cell present."""
        flags = [(1 + value, 1 + flag) for value, flag in self.find_missing_flags()]
        return exact_products.move_columns(self.products, np.concatenate([[0.0], step]), flags)


def _find_impossible(sums: Array, sums_exponent: int, squares: Array, squares_exponent: int) -> int | None:
    """Return the first column that violates n Σz² >= (Σz)² (Cauchy-Schwarz), or None; the first sum is n."""
    common = min(sums_exponent, squares_exponent)
    first, second = sums << (sums_exponent - common), squares << (squares_exponent - common)
    wrong = first[0] * second < first * first if first[0] else (second != 0) | (first != 0)
    return int(np.argmax(wrong)) if wrong.any() else None


def sort_terms(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return each term once: columns in order of first occurrence, levels by name, flags last."""
    unique = sorted(dict.fromkeys(terms), key=lambda t: t.kind == "missing")
    column = {name: i for i, name in enumerate(dict.fromkeys(t.column for t in unique))}
    return tuple(
        sorted(unique, key=lambda t: (t.kind == "missing", column[t.column], t.level is None, t.level or "", t.kind))
    )


def _count_columns(record: CrossProducts) -> int:
    return len({term.column for term in record.terms})


def _format_columns(columns: set[Hashable]) -> str:
    return ", ".join(sorted(map(repr, columns))) or "no column"


# -- rows --------------------------------------------------------------------------------------------------------------


def accumulate_products(
    x: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None, terms: Sequence[Term] = ()
) -> CrossProducts:
    """Return the statistics of the rows; a NaN in ``x`` is a missing cell."""
    x, y = np.asarray(x), np.asarray(y)
    inputs = tuple(terms) or tuple(Term(i) for i in range(x.shape[1]))
    w = None if weight is None else np.asarray(weight, dtype=float)
    if w is not None and not w.all():
        x, y, w = x[w > 0], y[w > 0], w[w > 0]
    flags = [inputs[j].missing_flag for j in find_missing_columns(x)]
    design = sort_terms([*inputs, *flags])

    def take_rows(part: slice | Array) -> Array:
        z = np.empty((len(y[part]), 2 + len(design)))
        z[:, 0], z[:, 1] = 1.0, y[part]
        fill_design_matrix(x[part], inputs, design, z[:, 2:])
        return z

    return CrossProducts(
        exact_products.sum_products_of_rows(take_rows, len(y), 2 + len(design), w), design
    ).drop_empty_terms()


def find_missing_columns(x: Array) -> Array:
    """Return the columns with missing cells."""
    with np.errstate(over="ignore", invalid="ignore"):
        # a sum is a cheap filter: it is NaN if any cell is
        suspects = np.flatnonzero(~np.isfinite(x.sum(axis=0))) if x.dtype.kind == "f" else np.empty(0, dtype=int)
    return suspects[np.isnan(x[:, suspects]).any(axis=0)]


def build_design_matrix(
    x: Array, inputs: Sequence[Term], terms: Sequence[Term], origin: Array, unit: ArrayLike = 1.0
) -> Array:
    """Return ``(x - origin) / unit``, where the columns of ``x`` are ``inputs``, as (rows, terms).

    A missing cell is zero. The unit is a power of two, and is divided out first: no difference overflows.
    """
    units = np.broadcast_to(np.asarray(unit, dtype=float), (len(terms),))
    z = np.empty((len(x), len(terms)))
    place = {term: j for j, term in enumerate(terms)}
    at = [place[term] for term in inputs]
    fill_design_matrix(np.asarray(x) / units[at] - (origin / units)[at], inputs, terms, z)
    return z


def fill_design_matrix(x: Array, inputs: Sequence[Term], terms: Sequence[Term], z: Array) -> None:
    """Write ``x``, whose columns are ``inputs``, into ``z`` (rows, terms); a missing cell is zero and has a flag."""
    if tuple(inputs) == tuple(terms):
        z[:] = x
        return
    z[:] = 0.0
    place = {term: j for j, term in enumerate(terms)}
    for cells, term in zip(x.T, inputs, strict=True):
        z[:, place[term]] += np.nan_to_num(cells)
        if term.missing_flag in place:
            z[:, place[term.missing_flag]] = np.isnan(cells)


class CentredProducts(NamedTuple):
    """Sums and products of ``z = ((y, x) - centre) / unit``; a missing cell is zero."""

    n: float
    first: Array  # (1 + terms,): Σ z
    second: Array  # (1 + terms, 1 + terms): Σ z z'

    def scatter(self) -> Array:
        """Return the products about the mean, as (1 + terms, 1 + terms)."""
        return np.asarray(self.second - np.outer(self.first, self.first) / max(self.n, np.finfo(float).tiny))


def centre_products(statistics: CrossProducts, centre: Array, unit: Array) -> CentredProducts:
    """Return the products about ``centre`` in ``unit``, both (1 + terms,), each rounded once."""

    def compute(record: CrossProducts) -> CentredProducts:
        size = np.concatenate([[0], np.frexp(unit)[1] - 1])  # log2 units of the constant, the target and the terms
        left, right = exact_products.list_pairs(len(size))
        # exact sums of all pairs, expanded to a symmetric matrix (2 + terms, 2 + terms)
        matrix = record.move_cells(-centre).to_floats(size[left] + size[right])[exact_products.index_pairs(len(size))]
        return CentredProducts(float(matrix[0, 0]), matrix[0, 1:], matrix[1:, 1:])

    return statistics.derive("centred", compute, centre.tobytes(), unit.tobytes())
