"""Joint distribution of a few discrete variables as a table: marginalise by summing, condition by dividing.

P(x)     = Σ_y P(x, y)
P(x | y) = P(x, y) / P(y)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from priory.core.display_table import DisplayTable, format_cell
from priory.errors import DataError
from priory.probability.rules import PROBABILITY_TOLERANCE, check_distribution


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
