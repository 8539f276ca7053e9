"""Rows of tables with columns of different kinds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.input_guard import MAX_SAMPLE_WEIGHT, check_same_columns, name_cells
from priory.core.statistics import count_columns, list_record_types
from priory.errors import DataError, KindError, NotLearnedError
from priory.families.base import ESTIMATES
from priory.learning.row_kind import Parameters, Purpose, RowKind, check_calibration, warn_user
from priory.model.cells import Cells
from priory.model.column_profile import Profiles, make_example_table
from priory.model.model_statistics import ModelStatistics, check_class_prior
from priory.model.open_table import OpenTable
from priory.model.schema import ColumnBlock, Schema, TextbookFamilies, drop_open_parts, read_known_table, split_row
from priory.model.table_model import Model, make_empty_statistics, observe_cells, rearrange_blocks
from priory.tables.dates import drop_empty_parts, join_date_names
from priory.tables.number_formats import find_odd_cell
from priory.tables.table import Table
from priory.tables.table_reading import list_rows_as_dicts, read_table
from priory.text.text_model import is_valid_alpha

if TYPE_CHECKING:
    from priory.calibration.calibrator import Calibrator
    from priory.text.tokenizer import Tokenizer

NO_COLUMNS = Schema(())


@dataclass(frozen=True, eq=False)
class TableRows(RowKind[Table]):
    """Rows of tables: the parameters of `priory.NaiveBayes`, and the columns."""

    calibrates: ClassVar[bool] = True

    parameters: Parameters
    schema: Schema = NO_COLUMNS  # without names: nothing was read yet
    has_names: bool = False
    first_columns: int | None = None  # how many columns the first table had, where later rows have brought more

    # -- the columns ---------------------------------------------------------------------------------------------

    @property
    def attributes(self) -> dict[str, Any]:
        if not self.schema.names:
            return {}
        known: dict[str, Any] = {"n_features_in_": len(self.schema.names), "_schema": self.schema}
        if self.has_names:
            known["feature_names_in_"] = np.array(self.schema.names, dtype=object)
        return known if self.first_columns is None else known | {"first_columns_": self.first_columns}

    def with_attributes(self, attributes: Mapping[str, Any]) -> Self:
        schema: Schema = attributes["_schema"]
        names = tuple(attributes.get("feature_names_in_", schema.names))
        if names != schema.names or attributes["n_features_in_"] != len(names):
            raise DataError("the number or the names of the columns do not fit the schema.")
        return replace(
            self,
            schema=schema,
            has_names="feature_names_in_" in attributes,
            first_columns=attributes.get("first_columns_"),
        )

    def with_parameters(self, declared: Self) -> Self:
        columns = self.schema, self.has_names, self.first_columns
        return self if self.parameters is declared.parameters else type(self)(declared.parameters, *columns)

    @property
    def n_columns(self) -> int:
        return len(self.schema.names)

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        families = self.parameters.families
        if isinstance(families, TextbookFamilies):
            return list(names)
        declared = families if isinstance(families, Mapping) else dict.fromkeys(names, families)
        found = {name: declared.get(name, "auto") for name in strings}
        automatic = [name for name, family in found.items() if isinstance(family, str) and family == "auto"]
        return list(dict.fromkeys([*dates, *automatic]))

    def find_zones(self) -> dict[str, str]:
        return self.schema.find_zones()

    def with_profiles(self, names: Sequence[str], profiles: Profiles) -> Self:
        example = make_example_table(names, profiles)
        schema = Schema.of(example, self.parameters.families, self.parameters.alpha)
        return replace(self, schema=schema, has_names=True)

    # -- reading -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        p = self.parameters
        if p.estimate not in ESTIMATES:
            raise DataError(f"estimate is {p.estimate!r}; use one of {', '.join(ESTIMATES)}.")
        if p.new_columns not in ("learn", "ignore", "error"):
            raise DataError(f"new_columns is {p.new_columns!r}; use 'learn', 'ignore' or 'error'.")
        if p.alpha is not None and not is_valid_alpha(p.alpha):
            raise DataError(f"alpha is {p.alpha!r}; use a number from 0 to {MAX_SAMPLE_WEIGHT:g}, or None.")
        if isinstance(p.class_prior, str) and p.class_prior not in ("estimated", "uniform"):
            raise DataError(f"class_prior is {p.class_prior!r}; use 'estimated', 'uniform', or probabilities.")
        check_calibration(p)

    def read(self, X: object, purpose: Purpose, learned: ModelStatistics | None = None) -> tuple[Self, Table]:
        if purpose == "fit":
            table = read_table(X)
            _check_not_empty(table)
            table.check_finite()
            schema = Schema.of(table, self.parameters.families, self.parameters.alpha)
            return type(self)(self.parameters, schema, table.has_names), table
        table, rows = read_known_table(X, self.schema, is_counted=purpose != "answer"), self
        if purpose != "answer":
            rows, table = self._read_more(table, purpose == "learn")
        table = drop_open_parts(table, rows.schema)
        rows._check_known(table, learned)
        if purpose != "answer":
            schema = rows.schema.add_columns(table, self.parameters.families, self.parameters.alpha)
            rows = rows if schema is rows.schema else replace(rows, schema=schema)
        return rows, table

    def _check_known(self, table: Table, learned: ModelStatistics | None) -> None:
        """Raise an error if known columns are missing or changed; warn of ignored columns."""
        if new := self._list_new_columns(table):
            filled = dict(zip(table.names, table.find_filled_columns(), strict=True))
            extra = [name for name in new if filled[name]]
            if extra:
                warn_user(f"ignoring columns the model does not know: {extra[:10]}")
        if not table.has_names and len(table.names) != len(self.schema.names):
            raise DataError(
                f"X has {len(table.names)} features, but NaiveBayes is expecting {len(self.schema.names)} features as "
                "input."
            )
        if learned is not None:
            self._check_label_types(table, learned)
        table.check_finite()

    def _read_more(self, table: Table, learns: bool) -> tuple[Self, Table]:
        """Match more rows to the columns: absent ones are missing in every row, new ones follow ``new_columns``."""
        if learns and (renamed := self._rename(lambda names: join_date_names(names, table.names))) is not self:
            return renamed._read_more(table, learns)
        new_columns = self.parameters.new_columns
        new = self._list_new_columns(table)
        if not learns and new_columns != "ignore":
            _check_columns_were_learned(table, new)
        if new_columns == "error" or not (table.has_names and self.has_names):
            if learns and new:
                raise DataError(f"column {new[0]!r} is new; set new_columns to 'learn' or 'ignore', or leave it out.")
            return self, table
        rows = self
        if new_columns == "learn" and learns and new:
            if table.rows > 1:  # of a stream of single rows this is expected
                warn_user(f"learning columns the model did not know: {new[:10]}")
            names = self.schema.names
            first = len(names) if self.first_columns is None else self.first_columns
            rows = replace(self, schema=replace(self.schema, names=(*names, *new)), first_columns=first)
        return rows, table.add_missing_columns(rows.schema.names)

    def _rename(self, rename: Callable[[Sequence[str]], tuple[str, ...]]) -> Self:
        """Rename columns of dates to their parts, or back, in the same places."""
        # first_columns counts names, so it changes if a date becomes several parts
        names, first = self.schema.names, self.first_columns
        if (renamed := rename(names)) == names:
            return self
        first = None if first is None else len(rename(names[:first]))
        return replace(self, schema=replace(self.schema, names=renamed), first_columns=first)

    def _list_new_columns(self, table: Table) -> list[str]:
        if not (table.has_names and self.has_names):
            return []
        known = set(self.schema.names)
        return [name for name in table.names if name not in known]

    def _check_label_types(self, table: Table, learned: ModelStatistics) -> None:
        """Raise an error if a column of strings holds numbers now, or the other way round."""
        # positions of the model's columns in the table
        kinds, positions = table.column_kinds(), table.find_columns(self.schema.names)
        places = dict(zip(self.schema.names, positions, strict=True))
        for name, values in self.list_categories(learned).items():
            found, is_text = kinds[table.names[places[name]]], values.dtype.kind in "OUS"
            if len(values) and found == ("number" if is_text else "label"):
                row = next((i for i in range(table.rows) if table.get_cell(i, places[name]) is not None), None)
                if row is not None:
                    value = table.get_cell(row, places[name])
                    expected = "labels such as" if is_text else "numbers such as"
                    raise KindError(
                        f"row {row}, column {name!r} holds {value!r}; the model has learned {expected} "
                        f"{values.tolist()[0]!r} there: give the same type."
                    )

    def list_categories(self, learned: ModelStatistics) -> dict[str, Array]:
        """Map each column of labels to the labels learned."""
        return {
            name: counts.values
            for block, records in zip(self.schema.blocks, learned.parts, strict=True)
            if block.kind == "label"
            for name, counts in zip(block.names, records[0], strict=True)
        }

    def wrap_row(self, x: Any, learns: bool) -> list[object]:
        """Wrap a dict as a table of one row; to answer, with the columns of the model only."""
        if not isinstance(x, Mapping):
            raise KindError(f"x is a {type(x).__name__}; give one row as a dict of column to cell.")
        if self.n_columns:
            row = split_row(name_cells(x), self.schema, learns)
            takes_new = learns and self.parameters.new_columns != "ignore"
            return [row if takes_new else {name: row.get(name) for name in self.schema.names}]
        families = self.parameters.families
        row = name_cells(x)
        return [
            {**row, **{name: None for name in families if name not in row}} if isinstance(families, Mapping) else row
        ]

    def list_rows(self, X: object) -> list[dict[str, object]] | None:
        names = self.schema.names
        if not self.has_names:
            if not isinstance(X, np.ndarray) or X.dtype.kind not in "iuf" or X.shape[1:] != (len(names),):
                return None
            return [dict(zip(names, row, strict=True)) for row in X.tolist()]
        rows, known = list_rows_as_dicts(X), set(names)
        # dates and new columns are read from tables, and so are columns that stand twice
        n_columns = getattr(X, "shape", (0, len(known)))[1:] or (0,)
        is_known = rows is not None and n_columns[0] <= len(known) and all(row.keys() <= known for row in rows)
        return rows if is_known else None

    def read_cells(self, batch: Table) -> list[Cells]:
        return self.schema.read_cells(drop_open_parts(batch, self.schema))

    def describe_cell(self, batch: Table, row: int, error: NotLearnedError) -> str:
        if not error.path:
            return super().describe_cell(batch, row, error)
        block = self.schema.blocks[error.path[0]]
        within = error.path[2:] or error.index[1:]  # labels have a record for each column, numbers one for all
        name = block.names[within[0] if within and block.kind != "text" else 0]
        error.column = name
        names = self.schema.names
        value = batch.get_cell(row, batch.find_columns(names)[names.index(name)])
        return f"column {name!r}, {error.subject or repr(value)},"

    # -- learning ------------------------------------------------------------------------------------------------

    def count(self, batch: Table, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        cells = self.read_cells(batch)
        learned = observe_cells(self.schema, cells, classes, group, weight)
        if not self.memory:
            return learned
        return replace(learned, sample=self.sample(cells, classes, group, weight, self.memory)[0])

    def place(self, statistics: ModelStatistics, columns: Self) -> ModelStatistics:
        return rearrange_blocks(statistics, columns.schema, self.schema)

    def join(self, other: Self) -> Self:
        # dates may be known by different parts, such as with hours in one of them only
        self = self._rename(lambda names: join_date_names(names, other.schema.names))
        other = other._rename(lambda names: join_date_names(names, self.schema.names))
        check_same_columns(Parameters(**self.attributes), Parameters(**other.attributes))
        mine, theirs = self.parameters.alpha, other.parameters.alpha
        if mine != theirs:
            raise DataError(f"the models have different alphas ({mine} and {theirs}); declare one to merge them.")
        if difference := self.schema.describe_difference(other.schema):
            raise DataError(f"the models differ: {difference}; merge models of the same columns and families.")
        return replace(self, schema=self.schema.join(other.schema), has_names=self.has_names or other.has_names)

    def settle(self, statistics: ModelStatistics) -> tuple[Self, ModelStatistics]:
        """Drop columns without cells: columns of the first table become empty, later ones disappear."""
        held = Model(self.schema, statistics).find_filled_columns()
        known = self.schema.keep_columns(held)
        left = rearrange_blocks(statistics, self.schema, known)
        first = self.first_columns
        if first is not None:
            # names[:first] are the columns of the first table
            names, filled = known.names, {name for block in known.blocks for name in block.names}
            kept = (*names[:first], *(name for name in names[first:] if name in filled))
            known, first = replace(known, names=kept), None if len(kept) == first else first
        declared = self.parameters.families if isinstance(self.parameters.families, Mapping) else ()
        rows = replace(self, schema=known, first_columns=first)
        return rows._rename(lambda names: drop_empty_parts(names, held, declared)), left

    def check_learned(self, statistics: ModelStatistics) -> None:
        filled = Model(self.schema, statistics).find_filled_columns()
        empty = [name for name in self.schema.names if name not in filled]
        if not filled:
            raise DataError("every cell of X is missing; there is nothing to learn from.")
        if empty:
            warn_user(f"columns without a single value say nothing: {empty[:10]}")
        for name, values in self.list_categories(statistics).items():
            odd = find_odd_cell(values.tolist()) if values.dtype.kind in "OUS" else None
            if odd is not None:
                warn_user(f"column {name!r} is learned as labels because of {odd!r}; make it None to learn numbers")
        if (statistics.n <= 1).all():
            warn_user("no class has two rows: how far each spreads is guessed")

    # -- answering -----------------------------------------------------------------------------------------------

    def model(self, statistics: ModelStatistics) -> Model:
        p = self.parameters
        prior = check_class_prior(p.class_prior, statistics.classes)
        return Model(self.schema, statistics, p.estimate, prior)

    def open(self, statistics: ModelStatistics) -> OpenTable | None:
        model = self.model(statistics)
        return OpenTable(model, self.parameters.new_columns) if OpenTable.can_open(model) else None

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        """Check that every candidate family of every block has a record of its own type."""
        schema, parts = self.schema, statistics.parts
        # Texts first: no file can allocate more buckets than it holds counts for.
        if len(schema.blocks) != len(parts) or not all(map(_has_possible_texts, schema.blocks, parts)):
            return "a block of columns has no record, or a text another one"
        empty = make_empty_statistics(schema, statistics.classes[:1])
        # columns of each block; the records must have as many
        widths = [len(block.names) for block in schema.blocks]
        fits = (
            0 < (1 if self.first_columns is None else self.first_columns) <= len(schema.names)
            and list_record_types(empty.parts) == list_record_types(parts)
            and all(count_columns(r, d) == d for records, d in zip(parts, widths, strict=True) for r in records)
            and (statistics.sample is None or schema.can_keep(statistics.sample.blocks))
        )
        return None if fits else "the records do not match the columns"

    # -- the sample that corrections are derived from ------------------------------------------------------------

    @property
    def column_names(self) -> list[tuple[str, ...]]:
        return [block.names for block in self.schema.blocks]

    def keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        return [block.keep_cells(x) for block, x in zip(self.schema.blocks, cells, strict=False)]

    def calibrator(self) -> Calibrator:
        """The fitter of corrections, which uses all kept rows."""
        from priory.calibration.calibrator import Calibrator  # answers do without it

        return Calibrator(sys.maxsize, keeps_rows=self.memory > 0)

    @property
    def tokenizers(self) -> list[Tokenizer]:
        texts = [block.text_family() for block in self.schema.blocks if block.kind == "text"]
        return [family.build_model().vocabulary.tokenizer for family in texts]


def _check_columns_were_learned(table: Table, new: Sequence[str]) -> None:
    """Raise an error if a row to forget has a cell in a column that was never learned."""
    for name in new:
        place = table.names.index(name)
        row = next((row for row in range(table.rows) if table.get_cell(row, place) is not None), None)
        if row is not None:
            value = table.get_cell(row, place)
            raise NotLearnedError(
                f"row {row}: column {name!r}, {value!r}, was never learned; forget only rows that were learned, or "
                "leave the column out; the model is unchanged.",
                row=row,
            )


def _check_not_empty(table: Table) -> None:
    if not table.names:
        raise DataError(f"0 feature(s) (shape=({table.rows}, 0)) while a minimum of 1 is required: X has no columns.")
    if not table.rows:
        raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.")


def _has_possible_texts(block: ColumnBlock, records: tuple[object, ...]) -> bool:
    """Whether the record of a column of texts fits its text model."""
    if block.kind != "text":
        return True
    return len(records) == 1 and block.text_family().build_model().find_fault(records[0]) is None
