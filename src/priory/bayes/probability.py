"""The rules of probability, from the complement to Bayes' rule, and joint tables to marginalise and condition on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from priory.core.display_table import DisplayTable, format_cell
from priory.errors import DataError

PROBABILITY_TOLERANCE = 1e-9  # allowed rounding error in typed probabilities


def complement(p_a: float) -> float:
    """Return ``P(not A) = 1 - P(A)``.

    >>> complement(0.25)
    0.75
    """
    return 1.0 - check_probability("P(A)", p_a)


def product_rule(p_a_given_b: float, p_b: float) -> float:
    """Return ``P(A ∧ B) = P(A | B) P(B)``.

    >>> product_rule(0.5, 0.5)
    0.25
    """
    return check_probability("P(A|B)", p_a_given_b) * check_probability("P(B)", p_b)


def conditional_probability(p_both: float, p_b: float) -> float:
    """Return ``P(A | B) = P(A ∧ B) / P(B)``.

    >>> conditional_probability(0.12, 0.2)  # of cavity, given toothache
    0.6
    """
    both, b = check_probability("P(A∧B)", p_both), check_probability("P(B)", p_b)
    if b == 0:
        raise DataError("P(B) = 0: P(A|B) is not defined, because B cannot happen.")
    if both > b + PROBABILITY_TOLERANCE:
        raise DataError(f"P(A∧B) = {both:g} is more than P(B) = {b:g}: A and B cannot be likelier than B.")
    return min(both / b, 1.0)  # rounding may exceed 1


def are_independent(p_a: float, p_b: float, p_both: float) -> bool:
    """Return whether ``P(A ∧ B) = P(A) P(B)``.

    >>> are_independent(0.5, 0.5, 0.25), are_independent(0.2, 0.2, 0.12)
    (True, False)
    """
    a, b, both = check_probability("P(A)", p_a), check_probability("P(B)", p_b), check_probability("P(A∧B)", p_both)
    return abs(a * b - both) <= PROBABILITY_TOLERANCE


def sum_rule(p_a: float, p_b: float, p_both: float) -> float:
    """Return ``P(A ∨ B) = P(A) + P(B) - P(A ∧ B)``.

    >>> sum_rule(0.5, 0.5, 0.25)
    0.75
    """
    a, b, both = check_probability("P(A)", p_a), check_probability("P(B)", p_b), check_probability("P(A∧B)", p_both)
    # monotonicity: P(A ∧ B) <= min(P(A), P(B))
    if both > min(a, b) + PROBABILITY_TOLERANCE:
        raise DataError(
            f"P(A∧B) = {both:g} is more than P(A) = {a:g} or P(B) = {b:g}: "
            "A and B together cannot be likelier than either."
        )
    return check_probability("P(A∨B)", a + b - both)


def total_probability(p_b_given: Sequence[float], p_causes: Sequence[float]) -> float:
    """Return ``P(B) = Σ P(B | A_i) P(A_i)`` over causes of which exactly one holds.

    The probability that the first candy is lime, over five kinds of bags:

    >>> total_probability([0, 0.25, 0.5, 0.75, 1], [0.1, 0.2, 0.4, 0.2, 0.1])
    0.5
    """
    if len(p_b_given) != len(p_causes):
        raise DataError(f"{len(p_b_given)} values of P(B|A) for {len(p_causes)} causes: give one for each cause.")
    check_distribution("P(A)", p_causes)
    return sum(product_rule(p, cause) for p, cause in zip(p_b_given, p_causes, strict=True))


def bayes_rule(p_b_given_a: float, p_a: float, p_b: float) -> float:
    """Return ``P(A | B) = P(B | A) P(A) / P(B)``.

    80 % of the students of a course (1 % of all people) and 10 % of all people are in the library. What share of the
    people in the library are students of the course?

    >>> round(bayes_rule(0.8, 0.01, 0.1), 10)
    0.08
    """
    return conditional_probability(product_rule(p_b_given_a, p_a), p_b)


def check_probability(name: str, p: float) -> float:
    """Return ``p`` clipped to [0, 1], or raise if it is not a probability."""
    if not -PROBABILITY_TOLERANCE <= p <= 1 + PROBABILITY_TOLERANCE:
        raise DataError(f"{name} = {p:g} is not a probability: give a number from 0 to 1.")
    return min(max(p, 0.0), 1.0)  # remove rounding errors


def check_distribution(name: str, p: Sequence[float]) -> Sequence[float]:
    """Return ``p``, or raise if it does not sum to one."""
    total = sum(check_probability(name, value) for value in p)
    if abs(total - 1) > PROBABILITY_TOLERANCE:
        raise DataError(f"{name} sums to {total:g}, not 1: give the probability of every case.")
    return p


@dataclass(frozen=True)
class JointTable:
    """Joint probability table of discrete variables.

    Parameters
    ----------
    names : sequence of str
        The variables.
    p : mapping of tuples of values to probabilities
        Each tuple has one value per variable, in order. Omitted combinations have probability 0.

    Examples
    --------
    Toothache and cavity: what is P(cavity | toothache)?

    >>> table = JointTable(
    ...     ["toothache", "cavity"],
    ...     {("yes", "yes"): 0.12, ("yes", "no"): 0.08, ("no", "yes"): 0.08, ("no", "no"): 0.72},
    ... )
    >>> round(table.probability(toothache="yes"), 10), round(table.probability(cavity="yes"), 10)
    (0.2, 0.2)
    >>> print(table.condition(toothache="yes"))
    cavity    P
    yes     0.6
    no      0.4
    >>> table.are_independent("toothache", "cavity")
    False
    """

    names: tuple[str, ...]
    p: Mapping[tuple[Hashable, ...], float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))  # the dataclass is frozen
        if len(set(self.names)) < len(self.names):
            raise DataError(f"the variables are {list(self.names)}; each may be named once.")
        odd = next((cell for cell in self.p if not isinstance(cell, tuple) or len(cell) != len(self.names)), None)
        if odd is not None:
            raise DataError(f"the cell {odd!r} does not have one value for each of {list(self.names)}.")
        check_distribution("the joint table", list(self.p.values()))
        object.__setattr__(self, "p", dict(self.p))

    def __hash__(self) -> int:
        return hash((self.names, tuple(self.p)))  # a dict has no hash; its cells are enough

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[Hashable]]) -> JointTable:
        """Estimate a joint table by the relative frequency of each combination of values.

        >>> JointTable.from_rows(["coin"], [["H"], ["H"], ["T"], ["T"]]).probability(coin="H")
        0.5
        """
        counts: dict[tuple[Hashable, ...], int] = {}
        for row in rows:
            counts[tuple(row)] = counts.get(tuple(row), 0) + 1  # in order of first occurrence
        if not counts:
            raise DataError("there are no rows to count.")
        n = sum(counts.values())
        return cls(tuple(names), {cell: count / n for cell, count in counts.items()})

    def values(self, name: str) -> list[Hashable]:
        """Return the values of a variable, in order of first occurrence."""
        place = self._find_place(name)
        return list(dict.fromkeys(cell[place] for cell in self.p))

    def probability(self, **values: Hashable) -> float:
        """Return the marginal probability that variables have these values."""
        return sum(p for cell, p in self.p.items() if self._agrees(cell, values))

    def marginalise(self, *names: str) -> JointTable:
        """Return the marginal table of some variables, summed over all others."""
        places = [self._find_place(name) for name in names]
        sums: dict[tuple[Hashable, ...], float] = {}
        for cell, p in self.p.items():
            rest = tuple(cell[place] for place in places)  # the values of the kept variables
            sums[rest] = sums.get(rest, 0.0) + p
        return JointTable(names, sums)

    def condition(self, **values: Hashable) -> JointTable:
        """Return the conditional table of the other variables, given the values of some: P(x | y) = P(x, y) / P(y)."""
        given = self.probability(**values)  # P(y)
        if given == 0:
            known = ", ".join(f"{name}={value!r}" for name, value in values.items())
            raise DataError(f"P({known}) = 0: cannot condition on an impossible event.")
        places = [place for place, name in enumerate(self.names) if name not in values]
        cells = {
            tuple(cell[place] for place in places): p / given
            for cell, p in self.p.items()
            if self._agrees(cell, values)
        }
        return JointTable(tuple(self.names[place] for place in places), cells)

    def are_independent(self, a: str, b: str, given: str | Sequence[str] = ()) -> bool:
        """Whether ``P(a, b | given) = P(a | given) P(b | given)`` for all values; ``given`` is one or more names."""
        given = (given,) if isinstance(given, str) else given
        joint = self.marginalise(a, b, *given)
        # for each value of the conditioning variables, with every probability multiplied by P(given) to avoid division:
        for cell in joint.marginalise(*given).p if given else [()]:
            known = dict(zip(given, cell, strict=True))
            p_known = joint.probability(**known)
            for x in joint.values(a) if p_known else []:
                for y in joint.values(b):
                    p_x, p_y = joint.probability(**known, **{a: x}), joint.probability(**known, **{b: y})
                    both = joint.probability(**known, **{a: x, b: y})
                    if abs(both * p_known - p_x * p_y) > PROBABILITY_TOLERANCE:  # P(a, b, z) P(z) = P(a, z) P(b, z)
                        return False
        return True

    def table(self) -> DisplayTable:
        """Return a display table with one row per combination of values."""
        rows = tuple((*(format_cell(value) for value in cell), p) for cell, p in self.p.items())
        return DisplayTable("", (*self.names, "P"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _agrees(self, cell: tuple[Hashable, ...], values: Mapping[str, Hashable]) -> bool:
        return all(cell[self._find_place(name)] == value for name, value in values.items())

    def _find_place(self, name: str) -> int:
        if name not in self.names:
            raise DataError(f"no variable {name!r}; the table has {', '.join(self.names)}.")
        return self.names.index(name)
