"""The schema of a table: its columns, their kinds and candidate families; and tables read as a schema knows them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Literal

import numpy as np
from numpy import ndarray as Array

from priory.core.statistics import register_record
from priory.core.typing import ColumnKind
from priory.core.value_counts import CategoricalCells
from priory.errors import DataError, KindError
from priory.families import Bernoulli, Categorical, Gaussian, Text
from priory.families.base import AnyFamily, ColumnFamily, auto_candidates, families_by_name, is_registered_family
from priory.model.cells import BlockRecord, Cells, LabelCells, NumberCells, TextCells
from priory.tables.dates import (
    DATE_PART_ENDINGS,
    ORDERED_FORMATS,
    Dates,
    convert_written,
    find_unread_dates,
    is_zone,
    list_dates,
    list_parts,
    name_date_part,
    parse_date_strings,
    split_part_name,
)
from priory.tables.number_formats import NumberFormat
from priory.tables.table import Column, Table, make_part_column
from priory.tables.table_reading import read_table
from priory.text.token_bags import TokenBags, make_empty_bags

# With this prior the posterior mean of the variance is Σ (x - μ)² / n, and the mean has practically no virtual rows.
MAXIMUM_LIKELIHOOD_GAUSSIAN = Gaussian(location=0.0, strength=1e-300, shape=1.0, scale=0.0)

ValuePriors = Mapping[str, Mapping[Hashable, float]]  # column -> value -> its prior probability


@register_record("TextbookFamilies")
@dataclass(frozen=True)
class TextbookFamilies:
    """Families as in a textbook: Categorical for labels, Bernoulli for 0 and 1, Gaussian for other numbers.

    Parameters
    ----------
    m : float or "laplace"
        Virtual examples of each column; "laplace" adds one for each value, and 0 gives relative frequencies.
    p : dict of column to dict of value to probability, optional
        The prior share of each value of a column; all its values must be given. By default shares are equal.

    Examples
    --------
    >>> TextbookFamilies(m=3, p={"wind": {"weak": 0.5, "strong": 0.5}}).choose_family("wind", "label", False)
    Categorical(alpha=array([1.5, 1.5]), values=array(['strong', 'weak'], dtype='<U6'), m=None)
    """

    m: float | Literal["laplace"] = 0.0
    p: ValuePriors | None = None

    def __post_init__(self) -> None:
        if self.m != "laplace" and (isinstance(self.m, str) or not 0 <= self.m < np.inf):
            raise DataError(f"m is {self.m!r}; use a number of virtual examples from 0, or 'laplace'.")
        for name, shares in (self.p or {}).items():
            if self.m == 0 or self.m == "laplace":
                raise DataError(f"p says what the virtual examples of {name!r} are; give their number m as well.")
            if not np.isclose(sum(shares.values()), 1.0) or min(shares.values()) < 0:
                raise DataError(
                    f"p of column {name!r} sums to {sum(shares.values()):g}; give each value its share of 1."
                )

    def __hash__(self) -> int:
        return hash(self.m)

    def choose_family(self, name: str, kind: str, is_binary: bool) -> AnyFamily:
        """The family of a column; ``is_binary`` is true if it holds only the numbers 0 and 1."""
        shares = (self.p or {}).get(name)
        if kind == "text":
            return Text("bernoulli", alpha=1.0 if self.m == "laplace" else self.m / 2)
        # numbers with declared shares are treated as labels, except 0 and 1
        if kind == "label" or (shares is not None and not (is_binary and set(shares) == {0, 1})):
            return self._choose_categorical(shares)
        if not is_binary:
            return MAXIMUM_LIKELIHOOD_GAUSSIAN
        share_of_one = 0.5 if shares is None else shares[1]
        return Bernoulli(1.0, 1.0) if self.m == "laplace" else Bernoulli.m_estimate(self.m, share_of_one)

    def _choose_categorical(self, shares: Mapping[Hashable, float] | None) -> Categorical:
        if self.m == "laplace":
            return Categorical(alpha=1.0)
        if shares is None:
            return Categorical(m=self.m)
        return Categorical(alpha=self.m * np.array(list(shares.values())), values=list(shares))


Candidate = type[AnyFamily] | AnyFamily  # a class gets an empirical prior; an instance is a declared prior
FamilyLike = str | Candidate  # "auto", the name of a family, a class or an instance
FamiliesLike = FamilyLike | Mapping[str, FamilyLike] | TextbookFamilies  # one for all columns, or one for each


@register_record("Block")
@dataclass(frozen=True)
class ColumnBlock:
    """Columns with the same candidates, which are counted together."""

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
        """The cells of this block, given the position of each column in the table."""
        columns = [positions[name] for name in self.names]
        if self.kind == "text":
            return TextCells(table.texts(columns[0]))
        return LabelCells(table.labels(columns)) if self.kind == "label" else NumberCells(table.numbers(columns))

    def list_families(self) -> str:
        """The names of the candidates."""
        return "/".join(_family_class(c).__name__ for c in self.candidates)

    def has_candidates_of(self, other: ColumnBlock) -> bool:
        """Whether both blocks have equal candidates, including declared priors."""
        return [*map(_describe_candidate, self.candidates)] == [*map(_describe_candidate, other.candidates)]

    def takes_columns_of(self, other: ColumnBlock) -> bool:
        """Whether the columns of both blocks are counted together; each text column has its own block."""
        return self.kind == other.kind != "text" and self.has_candidates_of(other)

    def make_missing_cells(self, n_rows: int) -> Cells:
        """Make rows whose cells are all missing."""
        columns = len(self.names)
        if self.kind == "text":
            return TextCells(make_empty_bags(n_rows))
        if self.kind == "label":
            values = tuple(np.array([], dtype=object) for _ in self.names)
            return LabelCells(CategoricalCells(np.full((n_rows, columns), -1, dtype=np.int32), values))
        return NumberCells(np.full((n_rows, columns), np.nan))

    def match_columns(self, other: ColumnBlock) -> tuple[Array, Array]:
        """Positions of the columns that both blocks have: in the other block, and in this one."""
        at = {name: j for j, name in enumerate(other.names)}
        places = [place for place, name in enumerate(self.names) if name in at]
        return np.array([at[self.names[place]] for place in places], dtype=int), np.array(places, dtype=int)

    def gather_cells(self, blocks: Sequence[ColumnBlock], cells: Sequence[Cells], n_rows: int) -> Cells:
        """Collect the cells of this block's columns from other blocks; columns that none of them has are missing."""
        gathered = self.make_missing_cells(n_rows)
        for block, given in zip(blocks, cells, strict=True):
            columns, places = self.match_columns(block)
            if len(columns):
                gathered = gathered.place_columns(given.take_columns(columns), places)
        return gathered.drop_absent_values()

    def can_keep(self, cells: Cells) -> bool:
        """Whether cells may come from ``keep_cells``."""
        if self.kind == "text":
            bags = cells.data
            return isinstance(bags, TokenBags) and self.text_family().build_model().vocabulary.can_read(bags)
        kind = LabelCells if self.kind == "label" else NumberCells
        return isinstance(cells, kind) and cells.find_missing().shape[1] == len(self.names)

    def keep_cells(self, cells: Cells) -> Cells:
        """Convert cells to the form that a sample of rows stores: texts become bags of tokens."""
        if not isinstance(cells, TextCells):
            return cells
        return TextCells(self.text_family().build_model().vocabulary.read_bags(cells.data))

    def text_family(self) -> Text:
        """The family of a column of texts."""
        family = instantiate_family(self.candidates[0])
        assert isinstance(family, Text), f"{self.list_families()} is not a family of texts"
        return family


@register_record("Schema")
@dataclass(frozen=True)
class Schema:
    """All columns in their original order; ``blocks`` contain the columns whose kind is known.

    The blocks depend only on the kinds and candidates of the columns, not on when they became known: columns with the
    same candidates form one block, and blocks are in the order of their first columns.
    """

    names: tuple[str, ...]
    blocks: tuple[ColumnBlock, ...] = ()
    zones: tuple[tuple[str, str], ...] = ()  # the time zones of columns of dates that have one, in the order of names
    # the notation of columns that are written as text, such as 1.234,5 or 31/12/2024, in the order of names
    formats: tuple[tuple[str, str], ...] = ()

    def can_keep(self, cells: Sequence[Cells]) -> bool:
        """Whether these cells are valid in a sample of rows."""
        return len(cells) == len(self.blocks) and all(b.can_keep(c) for b, c in zip(self.blocks, cells, strict=True))

    def find_fault(self) -> str | None:
        placed = [name for block in self.blocks for name in block.names]
        if len(set(self.names)) != len(self.names):
            return "two columns have the same name"
        if len(set(placed)) != len(placed) or not set(self.names) >= set(placed):
            return "a column is in two blocks, or in a block only"
        dates = {split_part_name(name)[0] for name in placed}
        if len(dict(self.zones)) != len(self.zones) or not all(c in dates and is_zone(z) for c, z in self.zones):
            return "a time zone is not one, or not of a column of dates"
        if len(dict(self.formats)) != len(self.formats) or not all(
            c in dates and _is_format(f) for c, f in self.formats
        ):
            return "a notation of numbers or dates is not one, or not of a column"
        return None

    @classmethod
    def of(cls, table: Table, families: FamiliesLike, alpha: float | None) -> Schema:
        if not isinstance(families, TextbookFamilies):
            families = _assign_families(families, table.names)
        elif unknown := [name for name in families.p or () if name not in table.names]:
            raise DataError(f"p names column {unknown[0]!r}, which is not in the table.")
        return cls(table.names).add_columns(table, families, alpha)

    def add_columns(self, table: Table, families: FamiliesLike, alpha: float | None) -> Schema:
        """Add columns that were empty until now."""
        known = self._map_columns()
        if len(known) == len(self.names):
            return self
        rule = families if isinstance(families, TextbookFamilies) else None
        wanted = {} if isinstance(families, TextbookFamilies) else _assign_families(families, self.names)
        places = dict(zip(self.names, table.find_columns(self.names), strict=True))
        kinds, filled = table.column_kinds(), table.find_filled_columns()
        new: dict[str, ColumnBlock] = {}
        zones, formats = dict(self.zones), dict(self.formats)
        for name in self.names:
            place = places[name]
            if name not in known and filled[place]:
                kind = kinds[table.names[place]]
                family: FamilyLike = wanted.get(name, "auto")
                is_date_part = bool(split_part_name(name)[1])  # never prose, even if an hour has three words
                is_prose = family == "auto" and kind == "label" and not is_date_part and table.is_prose(place)
                if rule is not None:
                    kind = "text" if is_prose else kind
                    family = rule.choose_family(name, kind, kind == "number" and table.is_binary(place))
                elif is_prose:
                    family = Text
                new[name] = ColumnBlock((name,), *_resolve_candidates(family, name, kind, alpha))
                if zone := table.get_zone(place):
                    zones[split_part_name(name)[0]] = zone
                if form := table.get_format(place):
                    formats[split_part_name(name)[0]] = form
        return self._arrange_blocks({**known, **new}, zones, formats) if new else self

    def keep_columns(self, names: Collection[str]) -> Schema:
        """Mark all columns except these as empty."""
        known = self._map_columns()
        kept = {name: block for name, block in known.items() if name in names}
        return self if len(kept) == len(known) else self._arrange_blocks(kept, dict(self.zones), dict(self.formats))

    def join(self, other: Schema) -> Schema:
        """Union of the known columns of two schemas that do not conflict."""
        known, more = self._map_columns(), other._map_columns()
        if known.keys() >= more.keys():
            return self
        zones, formats = dict(other.zones + self.zones), dict(other.formats + self.formats)
        return self._arrange_blocks({**more, **known}, zones, formats)

    def find_zones(self) -> dict[str, str]:
        """The time zone of each column of dates that is known, "" if it has none."""
        parts = [split_part_name(name) for block in self.blocks for name in block.names]
        return {column: "" for column, part in parts if part} | dict(self.zones)

    def _map_columns(self) -> dict[str, ColumnBlock]:
        """The block of each known column."""
        return {name: block for block in self.blocks for name in block.names}

    def _arrange_blocks(
        self, known: Mapping[str, ColumnBlock], zones: Mapping[str, str], formats: Mapping[str, str]
    ) -> Schema:
        """The schema with these columns, each of the kind and with the candidates of the block it is mapped to."""
        found: list[tuple[ColumnBlock, list[str]]] = []  # what the columns of each block are like, and their names
        for name in self.names:
            if name in known:
                like = known[name]
                # the first block with the same kind and candidates, or a new one
                place = next((i for i, (block, _) in enumerate(found) if block.takes_columns_of(like)), len(found))
                if place == len(found):
                    found.append((like, []))
                found[place][1].append(name)
        written = dict.fromkeys(split_part_name(name)[0] for name in self.names if name in known)
        return Schema(
            self.names,
            tuple(replace(block, names=tuple(names)) for block, names in found),
            *(tuple((column, of[column]) for column in written if column in of) for of in (zones, formats)),
        )

    def describe_difference(self, other: Schema) -> str:
        """Describe the first difference from another schema; "" if there is none. Empty columns match any column."""
        if self.names != other.names:
            return f"the columns are {_format_names(self.names)} and {_format_names(other.names)}"
        known, others = self._map_columns(), other._map_columns()
        for name in [name for name in self.names if name in known and name in others]:
            mine, theirs = known[name], others[name]
            if mine.kind != theirs.kind:
                return f"column {name!r} holds {mine.kind}s in one and {theirs.kind}s in the other"
            if mine.list_families() != theirs.list_families():
                return f"the families of column {name!r} are {mine.list_families()} and {theirs.list_families()}"
            if not mine.has_candidates_of(theirs):
                return f"the families of column {name!r} have different priors"
        zones, other_zones = self.find_zones(), other.find_zones()
        for column in zones.keys() & other_zones.keys():
            if zones[column] != other_zones[column]:
                shown = [zone or "no time zone" for zone in (zones[column], other_zones[column])]
                return f"column {column!r} holds dates of {shown[0]} in one and of {shown[1]} in the other"
        return ""

    def find_places(self) -> list[Array]:
        """Positions of each block's columns among the names of the schema."""
        place = {name: j for j, name in enumerate(self.names)}
        return [np.array([place[name] for name in block.names], dtype=int) for block in self.blocks]

    def read_cells(self, table: Table) -> list[Cells]:
        """Read the cells of each block; columns are found by name, and their kinds are checked."""
        places = dict(zip(self.names, table.find_columns(self.names), strict=True))
        kinds = table.column_kinds()
        for block in self.blocks:
            for name in block.names:
                found = kinds[table.names[places[name]]]
                if block.kind == "number" and found == "label":
                    row = next(i for i in range(table.rows) if table.get_cell(i, places[name]) is not None)
                    value = table.get_cell(row, places[name])
                    raise KindError(f"row {row}, column {name!r} holds {value!r}; this column is numbers.")
        # a table of empty columns still has rows: represent them by a block without columns
        return [block.read_cells(table, places) for block in self.blocks] or [NumberCells(np.zeros((table.rows, 0)))]


def _is_format(text: object) -> bool:
    """Whether a text is a notation of numbers or dates; files are not trusted."""
    return isinstance(text, str) and (text in ORDERED_FORMATS or NumberFormat.parse(text) is not None)


def _format_names(names: Sequence[str], max_names: int = 5) -> str:
    listed = ", ".join(map(repr, names[:max_names]))
    return f"({listed}, ...)" if len(names) > max_names else f"({listed})"


def _assign_families(families: FamilyLike | Mapping[str, FamilyLike], names: Sequence[str]) -> dict[str, FamilyLike]:
    if isinstance(families, Mapping):
        known = set(names)
        unknown = [name for name in families if name not in known]
        if unknown:
            raise DataError(f"families names column {unknown[0]!r}, which is not in the table.")
        return dict(families)
    return dict.fromkeys(names, families)


def _resolve_candidates(
    family: FamilyLike, name: str, kind: ColumnKind, alpha: float | None
) -> tuple[ColumnKind, tuple[Candidate, ...]]:
    """Resolve a declared family to the kind of the column and its candidates."""
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


def _describe_candidate(candidate: Candidate) -> tuple[object, ...]:
    """The class of a candidate and its declared parameters, in comparable form."""
    if isinstance(candidate, type):
        return (candidate,)
    # arrays as lists, because == on arrays is element-wise
    values = [getattr(candidate, f.name) for f in fields(candidate)]  # type: ignore[arg-type]
    return (type(candidate), *(v.tolist() if isinstance(v, np.ndarray) else v for v in values))


def instantiate_family(candidate: Candidate) -> AnyFamily:
    """Instantiate a candidate to observe data; the statistics do not depend on the prior."""
    return candidate() if isinstance(candidate, type) else candidate


def family_with_prior(candidate: Candidate, statistics: BlockRecord) -> AnyFamily:
    """The candidate with its declared prior, or with an empirical prior."""
    return candidate.empirical_prior(statistics) if isinstance(candidate, type) else candidate


# -- tables as a model with this schema reads them: strings, single rows, dates that are all missing -------------------


def read_known_table(X: object, schema: Schema, is_counted: bool = False) -> Table:
    """A table as a model with this schema reads it: dates, also those that are strings, as the parts it knows.

    Dates in rows to be answered are converted to the time zone learned. Those in rows to be counted, learned or
    forgotten, must be of that zone: what is learned does not depend on which batch came first.
    """
    zones = schema.find_zones()
    table = _add_known_parts(_read_known_numbers(read_table(X, None if is_counted else zones), schema), schema)
    for name, column in zip(table.names, table.columns, strict=False):
        learned = zones.get(split_part_name(name)[0])
        if None not in (column.zone, learned) and column.zone != learned:
            raise KindError(
                f"column {split_part_name(name)[0]!r} holds dates of {column.zone or 'no time zone'}; the model has "
                f"learned dates of {learned or 'no time zone'}: convert them."
            )
    return table


def _read_known_numbers(table: Table, schema: Schema) -> Table:
    """A table whose strings are numbers only where the model has learned numbers that were written as text."""
    written = {name: column.written for name, column in zip(table.names, table.columns, strict=False) if column.written}
    if table.matrix is not None or not (schema.formats or written):
        return table
    columns = dict(zip(table.names, table.columns, strict=True))
    for name in (name for block in schema.blocks if written and block.kind != "number" for name in block.names):
        if name in written:
            columns[name] = Column("label", labels=written[name])
    for name, text in schema.formats:
        form, column = NumberFormat.parse(text), columns.get(name)
        if form is not None and column is not None and column.labels is not None:
            codes, values = column.labels
            numbers = np.append(form.read(values.tolist()), np.nan)[codes]
            bad = np.isnan(numbers) & (codes >= 0)
            if bad.any():
                row = int(bad.argmax())
                shown = f"row {row}, column {name!r} holds {values[codes[row]]!r}"
                raise KindError(f"{shown}; this column is numbers, written like {text}.")
            columns[name] = Column("number", numbers, format=text)
    return replace(table, columns=tuple(columns.values()))


def _add_known_parts(table: Table, schema: Schema) -> Table:
    """A table with those parts of its dates that a model knows: of dates that are strings, or all missing.

    A table of days has no hours: they are missing.
    """
    wanted = [name for name in schema.names if name.endswith(DATE_PART_ENDINGS) and name not in table.names]
    if not wanted or not table.has_names or table.matrix is not None:
        return table
    columns, zones = dict(zip(table.names, table.columns, strict=True)), schema.find_zones()
    for name, parts in find_unread_dates(table.names, schema.names).items():
        zone = zones.get(name)
        dates = _read_label_dates(columns.pop(name), name, table.rows, zone, dict(schema.formats).get(name))
        columns |= {name_date_part(name, part): make_part_column(dates, part, zone) for part in parts}
    days = list_dates(columns)
    columns |= {name: Column("empty") for name in wanted if name not in columns and split_part_name(name)[0] in days}
    return Table(table.rows, tuple(columns), True, tuple(columns.values()))


def drop_open_parts(table: Table, schema: Schema) -> Table:
    """A table without dates in the columns that the model has only seen empty: they say nothing to it."""
    opened = [name for name in list_dates(table.names) if name in schema.names and name not in table.names]
    if not opened:
        return table
    dropped = {part for name in opened for part in list_parts(name, table.names)}
    columns = {name: c for name, c in zip(table.names, table.columns, strict=True) if name not in dropped}
    columns |= {name: Column("empty") for name in opened}
    return Table(table.rows, tuple(columns), True, tuple(columns.values()))


def _read_label_dates(column: Column, name: str, n_rows: int, zone: str | None, form: str | None) -> Dates:
    """Dates that were read as labels, in a time zone if they say theirs; all missing if there are none."""
    if column.kind == "empty":
        return np.full(n_rows, np.nan), np.full(n_rows, np.nan)
    if column.labels is None:
        raise KindError(f"column {name!r} holds {column.kind}s; the model has learned dates there.")
    codes, values = column.labels
    written = values.tolist()
    days, hours = parse_date_strings(convert_written(written, name, zone) if zone else written, form)
    bad = np.append(np.isnan(days), False)[codes]  # a missing cell, whose code is -1, is not bad
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"row {row}, column {name!r} holds {values[codes[row]]!r}, which is not a date; give a date.")
    return np.append(days, np.nan)[codes], np.append(hours, np.nan)[codes]


def split_row(row: Mapping[str, object], schema: Schema, is_counted: bool) -> Mapping[str, object]:
    """One row, a dict, with the parts of its dates in the place of the dates.

    >>> from datetime import datetime
    >>> split_row({"when": datetime(2024, 5, 6, 3, 15), "n": 2}, Schema(()), True)["when (hour)"]
    '03:00 to 04:00'
    """
    if not any(isinstance(value, date) for value in row.values()) and not find_unread_dates(row.keys(), schema.names):
        return row
    parts = read_known_table([dict(row)], schema, is_counted)
    return {name: row[name] if name in row else parts.get_cell(0, j) for j, name in enumerate(parts.names)}
