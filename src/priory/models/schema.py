"""What was declared: which columns there are, what they hold, and the families that may explain them.

A schema is fixed before any row is learned. Which of its candidates explains a column best is *not* in it: that is a
function of the statistics, computed when it is needed (see `priory.models.naive_bayes.Model.choices`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from priory.core.registration import register_record
from priory.core.typing import Array, ColumnKind
from priory.errors import DataError, KindError
from priory.families import Text
from priory.families.base import AnyFamily, ColumnFamily
from priory.families.registry import auto_candidates, families_by_name, is_registered_family
from priory.families.value_counts import CategoricalCells
from priory.models.cells import Cells, LabelCells, NumberCells, TextCells
from priory.models.records import BlockRecord
from priory.models.table import Table
from priory.models.textbook_families import TextbookFamilies

Candidate = type[AnyFamily] | AnyFamily  # a class takes its prior from the data; an instance is a declared prior
FamilyLike = str | Candidate  # "auto", the name of a family, a class or an instance
FamiliesLike = FamilyLike | Mapping[str, FamilyLike] | TextbookFamilies  # one for all columns, or for each its own


@register_record("Block")
@dataclass(frozen=True)
class ColumnBlock:
    """Columns that have the same candidates, and are counted together."""

    names: tuple[str, ...]
    kind: ColumnKind
    candidates: tuple[Candidate, ...]

    def find_fault(self) -> str | None:
        if not len(set(self.names)) == len(self.names) > 0:
            return "it has no columns, or two of the same name"
        if not self.candidates or not all(is_registered_family(_family_class(c)) for c in self.candidates):
            return "a candidate is not a registered family"
        return None

    def read_cells(self, table: Table, positions: Mapping[str, int]) -> Cells:
        """The cells of this block's columns, given where each column stands in the table."""
        columns = [positions[name] for name in self.names]
        if self.kind == "text":
            return TextCells(table.texts(columns[0]))
        return LabelCells(table.labels(columns)) if self.kind == "label" else NumberCells(table.numbers(columns))

    def make_empty_cells(self) -> Cells:
        """Cells of no rows."""
        columns = len(self.names)
        if self.kind == "text":
            return TextCells([])
        if self.kind == "label":
            values = tuple(np.array([], dtype=object) for _ in self.names)
            return LabelCells(CategoricalCells(np.zeros((0, columns), dtype=np.int32), values))
        return NumberCells(np.zeros((0, columns)))


@register_record("Schema")
@dataclass(frozen=True)
class Schema:
    """All columns in the order they came; ``blocks`` hold those whose kind is known."""

    names: tuple[str, ...]
    blocks: tuple[ColumnBlock, ...] = ()

    def find_fault(self) -> str | None:
        placed = [name for block in self.blocks for name in block.names]
        if len(set(self.names)) != len(self.names):
            return "two columns have the same name"
        if len(set(placed)) != len(placed) or not set(self.names) >= set(placed):
            return "a column is in two blocks, or in a block only"
        return None

    @classmethod
    def of(cls, table: Table, families: FamiliesLike, alpha: float | None) -> Schema:
        if not isinstance(families, TextbookFamilies):
            families = _assign_families(families, table.names)
        return cls(table.names).add_columns(table, families, alpha)

    def add_columns(self, table: Table, families: FamiliesLike, alpha: float | None) -> Schema:
        """This schema, and the columns that were empty until now."""
        rule = families if isinstance(families, TextbookFamilies) else None
        wanted = {} if isinstance(families, TextbookFamilies) else _assign_families(families, self.names)
        kinds = table.column_kinds()
        places = dict(zip(self.names, table.find_columns(self.names), strict=True))
        known = {name for block in self.blocks for name in block.names}
        groups: dict[tuple[ColumnKind, tuple[Candidate, ...]], list[str]] = {}
        for name in self.names:
            kind = kinds[table.names[places[name]]]
            if name not in known and kind != "empty":
                family: FamilyLike = wanted.get(name, "auto")
                is_prose = family == "auto" and kind == "label" and table.is_prose(places[name])
                if rule is not None:
                    kind = "text" if is_prose else kind
                    family = rule.choose_family(name, kind, kind == "number" and table.is_binary(places[name]))
                elif is_prose:
                    family = Text
                groups.setdefault(_resolve_candidates(family, name, kind, alpha), []).append(name)
        new = [
            ColumnBlock(block, kind, candidates)
            for (kind, candidates), names in groups.items()
            for block in ([tuple(names)] if kind != "text" else [(name,) for name in names])
        ]
        return replace(self, blocks=self.blocks + tuple(new))

    def describe_difference(self, other: Schema) -> str:
        """The first difference from another schema, in words; empty if there is none."""
        if self == other:
            return ""
        if self.names != other.names:
            return f"the columns are {_format_names(self.names)} and {_format_names(other.names)}"
        for name in self.names:
            (kind, families), (other_kind, other_families) = self._describe_column(name), other._describe_column(name)
            if kind != other_kind:
                return f"column {name!r} holds {kind} in one and {other_kind} in the other"
            if families != other_families:
                return f"the families of column {name!r} are {families} and {other_families}"
        return "columns of the same families have different priors, or another order"

    def _describe_column(self, name: str) -> tuple[str, str]:
        """What a column holds, and its candidate families."""
        block = next((block for block in self.blocks if name in block.names), None)
        if block is None:
            return "no cells", ""
        return f"{block.kind}s", "/".join(_family_class(c).__name__ for c in block.candidates)

    def find_places(self) -> list[Array]:
        """For each block where its columns stand among the names of the schema."""
        place = {name: j for j, name in enumerate(self.names)}
        return [np.array([place[name] for name in block.names], dtype=int) for block in self.blocks]

    def read_cells(self, table: Table) -> list[Cells]:
        """The table's cells for each block, the columns found by name and checked to hold what they held."""
        places = dict(zip(self.names, table.find_columns(self.names), strict=True))
        kinds = table.column_kinds()
        for block in self.blocks:
            for name in block.names:
                found = kinds[table.names[places[name]]]
                if block.kind == "number" and found == "label":
                    row = next(i for i in range(table.rows) if table.get_cell(i, places[name]) is not None)
                    value = table.get_cell(row, places[name])
                    raise KindError(f"row {row}, column {name!r} holds {value!r}; this column is numbers.")
        # a table of empty columns still has rows: they are a block of no columns
        return [block.read_cells(table, places) for block in self.blocks] or [NumberCells(np.zeros((table.rows, 0)))]


def _format_names(names: Sequence[str], max_names: int = 5) -> str:
    listed = ", ".join(map(repr, names[:max_names]))
    return f"({listed}, ...)" if len(names) > max_names else f"({listed})"


def _assign_families(families: FamilyLike | Mapping[str, FamilyLike], names: Sequence[str]) -> dict[str, FamilyLike]:
    if isinstance(families, Mapping):
        unknown = [name for name in families if name not in names]
        if unknown:
            raise DataError(f"families names column {unknown[0]!r}, which is not in the table.")
        return dict(families)
    return dict.fromkeys(names, families)


def _resolve_candidates(
    family: FamilyLike, name: str, kind: ColumnKind, alpha: float | None
) -> tuple[ColumnKind, tuple[Candidate, ...]]:
    """The kind a column is counted as, and its candidates."""
    if isinstance(family, str) and family == "auto":
        chosen: tuple[Candidate, ...] = auto_candidates(kind)
    elif isinstance(family, str) and family in (by_name := families_by_name()):
        chosen = (by_name[family],)
    elif isinstance(family, ColumnFamily) or (isinstance(family, type) and issubclass(family, ColumnFamily)):
        chosen = (family,)
    else:
        raise DataError(
            f"families of column {name!r} is {family!r}; "
            f"use 'auto', a family, or one of {', '.join(families_by_name())}."
        )
    if chosen[0].whole_row_estimator:
        raise KindError(
            f"{_family_class(chosen[0]).__name__} explains whole rows, and column {name!r} is one of them; "
            f"use {chosen[0].whole_row_estimator}."
        )
    if alpha is not None:
        chosen = tuple(c.with_alpha(alpha) if isinstance(c, type) else c for c in chosen)
    counted = chosen[0].column_kind
    if kind == "label" and counted == "number":
        raise KindError(
            f"column {name!r} holds labels; {_family_class(chosen[0]).__name__} needs {chosen[0].accepted_values}."
        )
    return counted, chosen


def _family_class(candidate: Candidate) -> type[AnyFamily]:
    return candidate if isinstance(candidate, type) else type(candidate)


def matches_candidate(family: AnyFamily, candidate: Candidate) -> bool:
    return type(family) is _family_class(candidate)


def instantiate_family(candidate: Candidate) -> AnyFamily:
    """A family that can observe: the statistics do not depend on the prior."""
    return candidate() if isinstance(candidate, type) else candidate


def family_with_prior(candidate: Candidate, statistics: BlockRecord) -> AnyFamily:
    """The candidate with its declared prior, or the one it takes from the data."""
    return candidate.empirical_prior(statistics) if isinstance(candidate, type) else candidate
