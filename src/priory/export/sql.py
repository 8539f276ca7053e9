"""A scoring plan as one SQL query that answers every row of a table.

The query reads the table once and numbers its rows (``priory_row``). Each step is a common table expression: cells,
rows completed, codes and numbers, leaves of trees, logits, probabilities. Names and literals are quoted; nothing is
executed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.errors import DataError
from priory.export import scoring_plan as steps
from priory.export.scoring_plan import ScoringPlan, encode_cell
from priory.families.gaussian import MAX_ABS_Z
from priory.tables.dates import DAY, HOUR, PART_NAMES, WEEKDAY

IMPOSSIBLE, RULED_OUT = -1e304, -1e303  # stands for minus infinity, with which databases raise errors
LOWEST_EXPONENT = -700  # PostgreSQL raises an error where exp underflows
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # of log gamma, above 8
MAX_COLUMNS_OF_QUERY = 1600  # of one step


@dataclass(frozen=True)
class Dialect:
    """How a database writes literals, arrays and functions."""

    name: str
    real: str
    text: str
    number: Callable[[float], str]
    array: str  # a look-up in an array of numbers; empty if the database has none
    bucket: str = ""  # how many of sorted numbers are reached
    greatest: str = "GREATEST"
    materialized: str = " MATERIALIZED"
    quote: str = '"'
    has_nan: bool = True

    def name_of(self, name: str) -> str:
        """Quote an identifier."""
        if "\0" in name:
            raise DataError(f"the name {name!r} holds a zero byte, which no database takes; rename the column.")
        if self.quote == "`":
            return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
        return '"' + name.replace('"', '""') + '"'

    def fold(self, name: str) -> str | bytes:
        """What the database tells names apart by: 63 bytes, or letters of any case."""
        return name.encode()[:63] if self.name == "postgres" else name.lower()

    def literal(self, value: Any) -> str:
        """Quote a value."""
        if value is None:
            return "NULL"
        if isinstance(value, bool | np.bool_):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int | float | np.number):
            return self.number(float(value))
        text = str(value)
        if "\0" in text:
            raise DataError(f"the label {text!r} holds a zero byte, which no database takes; rename it.")
        if self.quote == "`":
            escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
            return f"'{escaped}'"
        return "'" + text.replace("'", "''") + "'"

    def look_up(self, numbers: Sequence[float], code: str) -> str:
        """The number at a code, counted from zero."""
        if len(numbers) == 1:
            return self.number(numbers[0])
        if self.array:
            return self.array.format(",".join(_plain(x) for x in numbers), code)
        return _halve(0, len(numbers), lambda k: f"{code}>={k}", lambda k: self.number(numbers[k]))

    def count_reached(self, cuts: Sequence[float], cell: str) -> str:
        """How many of the cuts a number reaches."""
        if not len(cuts):
            return "0"
        if self.bucket:
            return self.bucket.format(cell, ",".join(_plain(x) for x in cuts))
        return _halve(0, len(cuts) + 1, lambda k: f"{cell}>={self.number(cuts[k - 1])}", str)


def _signed(x: float) -> str:
    """A number in parentheses if it is negative: two signs in a row begin a comment."""
    return f"({_plain(x)})" if np.signbit(x) else _plain(x)


def _plain(x: float) -> str:
    text = repr(float(x))
    return text if "e" in text else text + "e0"


def _halve(low: int, high: int, reaches: Callable[[int], str], leaf: Callable[[int], str]) -> str:
    """Nested cases that find a place by bisection."""
    if high - low == 1:
        return leaf(low)
    middle = (low + high) // 2
    below, above = _halve(low, middle, reaches, leaf), _halve(middle, high, reaches, leaf)
    return f"CASE WHEN {reaches(middle)} THEN {above} ELSE {below} END"


DIALECTS = {
    "duckdb": Dialect("duckdb", "DOUBLE", "VARCHAR", _signed, "([{0}])[({1})+1]"),
    "postgres": Dialect(
        "postgres", "DOUBLE PRECISION", "TEXT", lambda x: f"float8 '{float(x)!r}'", "('{{{0}}}'::float8[])[({1})+1]",
        "width_bucket({0},'{{{1}}}'::float8[])",
    ),
    "sqlite": Dialect("sqlite", "REAL", "TEXT", _signed, "", greatest="MAX", has_nan=False),
    "bigquery": Dialect(
        "bigquery", "FLOAT64", "STRING", _signed, "[{0}][OFFSET({1})]", "RANGE_BUCKET({0},[{1}])", materialized="",
        quote="`",
    ),
}  # fmt: skip


def write_sql(plan: ScoringPlan, table: str, dialect: str) -> str:
    """Return a query that answers the rows of a table with probabilities and the likeliest class."""
    check_sql(plan, dialect)
    return SqlWriter(plan, DIALECTS[dialect]).write(table)


def check_sql(plan: ScoringPlan, dialect: str) -> None:
    """Raise an error if a plan has no query in this dialect."""
    if dialect not in DIALECTS:
        raise DataError(f"dialect is {dialect!r}; use one of {', '.join(DIALECTS)}.")
    if plan.tokens:
        name = plan.columns[plan.tokens[0].column].name
        raise DataError(f"column {name!r} holds texts, which SQL cannot split into words; export to js, html or onnx.")
    known: dict[str | bytes, str] = {}
    for source in dict.fromkeys(column.source for column in plan.columns):
        other = known.setdefault(DIALECTS[dialect].fold(source), source)
        if other != source:
            raise DataError(f"columns {other!r} and {source!r} are the same name to {dialect}; rename one of them.")
    if len(plan.classes) > MAX_COLUMNS_OF_QUERY // 4 or len(plan.codes) + len(plan.numbers) > MAX_COLUMNS_OF_QUERY:
        raise DataError("the model has too many classes or columns for one query; export to js or onnx.")


class SqlWriter:
    """Writes the steps of one plan."""

    def __init__(self, plan: ScoringPlan, dialect: Dialect) -> None:
        self.plan, self.dialect = plan, dialect
        classes = range(len(plan.classes))
        self.kept = [c for c in classes if c or plan.has_impossible or len(classes) == 1]  # else below the first
        self.expressions: list[tuple[str, str]] = []  # the common table expressions
        self.cells = [f"x{k}" for k in range(len(plan.columns))]

    def write(self, table: str) -> str:
        plan, d = self.plan, self.dialect
        name = ".".join(map(d.name_of, table.split("."))) if table else d.name_of("rows")
        row, taken = "priory_row", {column.source.lower() for column in plan.columns}
        while row in taken:
            row += "_"
        # the number comes first: databases that allow two columns of one name read the first of them
        self.expressions.append(("priory_input", f"SELECT row_number() OVER () AS {row}, t.* FROM {name} t"))
        self.expressions.append(("priory_cells", self._read_cells(row)))
        source = "priory_cells"
        has_rows = plan.gaps is not None and len(plan.gaps.weight) > 0
        if has_rows:
            source = self._complete_rows()
        share = "share" if has_rows else f"{d.number(1.0)} AS share"
        self._score(source, share)
        if plan.gaps is not None:
            self._pool_gaps()
        self._finish()
        body = ",\n".join(f"{n} AS{d.materialized} (\n{text}\n)" for n, text in self.expressions)
        labels = " ".join(f"WHEN {k} THEN {self._label(label)}" for k, label in enumerate(plan.classes))
        shown = [f"CASE priory_answers.best {labels} END AS {d.name_of('prediction')}"]
        shown += [f"priory_answers.p{c} AS {d.name_of(f'P({label})')}" for c, label in enumerate(plan.classes)]
        head = "".join(f"-- {' '.join(note.split())}\n" for note in self._list_notes())
        return (
            f"{head}WITH {body}\nSELECT priory_input.*, {', '.join(shown)}\nFROM priory_input JOIN priory_answers "
            f"ON priory_answers.priory_row = priory_input.{row}\nORDER BY priory_input.{row}\n"
        )

    def _list_notes(self) -> list[str]:
        gaps = self.plan.gaps
        notes = [f"Probabilities of a Priory model, for {self.dialect.name}.", *self.plan.notes]
        if gaps is not None and len(gaps.weight):
            notes.append(f"It holds the cells of {len(gaps.weight)} training rows, which complete rows with gaps.")
        elif gaps is not None:
            notes.append("Gaps are read as missing: it holds no training rows to complete them from.")
        return notes

    def _label(self, value: Any) -> str:
        if isinstance(value, bool | int | float | np.number):
            return str(value).upper() if isinstance(value, bool) else repr(value)
        return self.dialect.literal(value)

    # -- cells ----------------------------------------------------------------------------------------------------

    def _read_cells(self, row: str) -> str:
        d, shown = self.dialect, [f"{row} AS priory_row"]
        for cell, column in zip(self.cells, self.plan.columns, strict=True):
            source = d.name_of(column.source)
            if column.part:
                found = _read_date_part(d, source, column.part)
            elif column.kind == "number":
                found = f"CAST({source} AS {d.real})"
                found = f"NULLIF({found}, CAST('NaN' AS {d.real}))" if d.has_nan else found
            else:
                found = f"CAST({source} AS {d.text})"
            shown.append(f"{found} AS {cell}")
        return f"SELECT {', '.join(shown)} FROM priory_input"

    def _code(self, code: int, prefix: str = "") -> str:
        """The code of a cell; it is an expression of the cell."""
        step, d = self.plan.codes[code], self.dialect
        cell = prefix + self.cells[step.column]
        if isinstance(step, steps.Bins):
            return f"CASE WHEN {cell} IS NULL THEN {step.missing} ELSE {d.count_reached(step.cuts.tolist(), cell)} END"
        listed = " ".join(f"WHEN {d.literal(value)} THEN {k}" for k, value in enumerate(step.values))
        known = f"CASE {cell} {listed} ELSE {len(step.values) + 1} END" if listed else str(len(step.values) + 1)
        return f"CASE WHEN {cell} IS NULL THEN {len(step.values)} ELSE {known} END"

    def _number(self, number: int, prefix: str = "") -> str:
        step, n, d = self.plan.numbers[number], self.dialect.number, self.dialect
        cell = prefix + self.cells[step.column]
        if isinstance(step, steps.Polyline):
            x, y = step.knots, step.heights
            slopes = np.diff(y) / np.diff(x)

            def line(k: int) -> str:
                if k in (0, len(x)):
                    return n(y[0] if k == 0 else y[-1])
                return f"{n(y[k - 1])}+{n(slopes[k - 1])}*({cell}-{n(x[k - 1])})"

            found, missing = _halve(0, len(x) + 1, lambda k: f"{cell}>={n(x[k - 1])}", line), step.missing
        else:
            found = f"({cell}/2-{n(step.centre / 2)})/{n(step.unit / 2)}"
            if np.isfinite(step.limit):
                far = step.limit * step.unit
                low, high = n(step.centre - far), n(step.centre + far)
                found = (f"CASE WHEN {cell}>={high} THEN {n(step.limit)} WHEN {cell}<={low} THEN {n(-step.limit)} "
                         f"ELSE {found} END")  # fmt: skip
            missing = 0.0
        return f"CASE WHEN {cell} IS NULL THEN {d.number(missing)} ELSE {found} END"

    # -- rows with gaps -------------------------------------------------------------------------------------------

    def _has_gap(self, prefix: str = "") -> str:
        gaps = self.plan.gaps
        assert gaps is not None
        places = [self.plan.codes[gaps.codes[j]].column for j in gaps.columns]
        return (" AND " if gaps.only_together else " OR ").join(f"{prefix}{self.cells[p]} IS NULL" for p in places)

    def _complete_rows(self) -> str:
        """Join the nearest training rows to rows with gaps."""
        gaps, d = self.plan.gaps, self.dialect
        assert gaps is not None
        columns = [self.plan.codes[code].column for code in gaps.codes]
        every = range(len(gaps.codes))
        ranks = [[encode_cell(self.plan.codes[gaps.ranks[j]], cell) for cell in gaps.cells[j]] for j in every]
        rows = []
        for k in range(len(gaps.weight)):
            values = [str(k), d.number(float(gaps.weight[k]))]
            values += [d.literal(gaps.cells[j][k]) for j in every] + [str(ranks[j][k]) for j in every]
            rows.append(values)
        names = ["k", "weight", *(f"v{j}" for j in every), *(f"q{j}" for j in every)]
        shown = ["k", "weight"]
        for j in every:
            kind = d.real if self.plan.columns[columns[j]].kind == "number" else d.text
            shown.append(f"CAST(v{j} AS {kind}) AS v{j}")
        shown += [f"q{j}" for j in every]
        if d.quote == "`":
            first = ", ".join(f"{value} AS {name}" for value, name in zip(rows[0], names, strict=True))
            listed = " UNION ALL ".join([f"SELECT {first}", *(f"SELECT {', '.join(row)}" for row in rows[1:])])
            kept = f"SELECT {', '.join(shown)} FROM ({listed})"
        else:
            listed = ",\n".join(f"({', '.join(row)})" for row in rows)
            self.expressions.append((f"priory_values({', '.join(names)})", f"VALUES {listed}"))
            kept = f"SELECT {', '.join(shown)} FROM priory_values"
        self.expressions.append(("priory_kept", kept))
        ranked = ", ".join(f"{self._code(gaps.ranks[j])} AS r{j}" for j in every)
        gap_cells = ", ".join(self.cells[p] for p in columns)
        self.expressions.append(
            ("priory_gaps", f"SELECT priory_row, {gap_cells}, {ranked} FROM priory_cells WHERE {self._has_gap()}")
        )
        away = []
        for j in every:
            far = f"g.r{j}-t.q{j}"
            same = (
                f"({far})*({far})"
                if isinstance(self.plan.codes[gaps.ranks[j]], steps.Bins)
                else f"CASE WHEN {far}=0 THEN 0 ELSE {gaps.other_label} END"
            )
            away.append(
                f"CASE WHEN g.{self.cells[columns[j]]} IS NULL THEN 0 ELSE {same} END" if j in gaps.columns else same
            )
        self.expressions.append((
            "priory_near",
            "SELECT g.priory_row, t.k, t.weight, row_number() OVER (PARTITION BY g.priory_row ORDER BY "
            f"{'+'.join(away)}, t.k) AS nth FROM priory_gaps g CROSS JOIN priory_kept t",
        ))  # fmt: skip
        self.expressions.append((
            "priory_nearest",
            "SELECT priory_row, k, weight / sum(weight) OVER (PARTITION BY priory_row) AS share FROM priory_near "
            f"WHERE nth <= {gaps.n_nearest}",
        ))  # fmt: skip
        filled = {columns[j]: j for j in gaps.columns}
        shown = [
            f"COALESCE(c.{cell}, t.v{filled[p]}) AS {cell}" if p in filled else f"c.{cell}"
            for p, cell in enumerate(self.cells)
        ]
        self.expressions.append((
            "priory_completed",
            f"SELECT c.priory_row, COALESCE(n.share, {d.number(1.0)}) AS share, {', '.join(shown)} FROM priory_cells c "
            "LEFT JOIN priory_nearest n ON n.priory_row = c.priory_row LEFT JOIN priory_kept t ON t.k = n.k",
        ))  # fmt: skip
        return "priory_completed"

    def _pool_gaps(self) -> None:
        """Average the answers to completed rows, and pool them with tempered naive Bayes."""
        gaps, d = self.plan.gaps, self.dialect
        assert gaps is not None
        classes = range(len(self.plan.classes))
        sums = ", ".join(f"ln(sum(share*p{c})) AS g{c}" for c in classes)
        self.expressions.append(("priory_mean", f"SELECT priory_row, {sums} FROM priory_mixed GROUP BY priory_row"))
        tempered = self._sum_tables(gaps.tables, gaps.constant, lambda code: self._code(code), range(len(classes)))
        columns = [self.plan.codes[code].column for code in gaps.codes]
        lacking = "+".join(f"CASE WHEN {self.cells[columns[j]]} IS NULL THEN 1 ELSE 0 END" for j in gaps.columns)
        present = "+".join(f"CASE WHEN {self.cells[columns[j]]} IS NULL THEN 0 ELSE 1 END" for j in gaps.counted)
        shown = ", ".join(f"{text} AS t{c}" for c, text in zip(classes, tempered, strict=True))
        self.expressions.append((
            "priory_tempered",
            f"SELECT priory_row, {shown}, {d.number(1.0)}*({lacking})/(({lacking})+({present})) AS m FROM priory_cells "
            f"WHERE {self._has_gap()}",
        ))  # fmt: skip
        power = "*".join(["t.m"] * gaps.power)
        one = d.number(1.0)
        shown = ", ".join(
            f"CASE WHEN t.m IS NULL THEN a.g{c} ELSE ({one}-{power})*a.g{c}+{power}*t.t{c} END AS l{c}" for c in classes
        )
        self.expressions.append((
            "priory_pooled",
            f"SELECT a.priory_row, {shown} FROM priory_mean a LEFT JOIN priory_tempered t "
            "ON t.priory_row = a.priory_row",
        ))  # fmt: skip
        self._softmax("priory_pooled", "priory_mixed_all", list(classes), 1.0, "priory_row")

    # -- logits ---------------------------------------------------------------------------------------------------

    def _score(self, source: str, share: str) -> None:
        plan, terms = self.plan, self.plan.terms
        codes = plan.list_codes()
        numbers = sorted(
            {n for term in terms if isinstance(term, steps.Linear | steps.Quadratic) for n in term.numbers}
        )
        densities = sorted({term.column for term in terms if isinstance(term, steps.Density)})
        shown = ["priory_row", share, *(f"{self._code(code)} AS c{code}" for code in codes)]
        shown += [f"{self._number(n)} AS n{n}" for n in numbers] + [self.cells[p] for p in densities]
        self.expressions.append(("priory_codes", f"SELECT {', '.join(shown)} FROM {source}"))
        extra: list[str] = []
        sums: list[list[str]] = [[] for _ in plan.classes]
        for k, term in enumerate(terms):
            if isinstance(term, steps.Trees):
                extra += [f"{self._leaf(tree)} AS t{k}_{i}" for i, tree in enumerate(term.tests.tolist())]
                for i, leaves in enumerate(term.leaves):
                    self._add_look_up(sums, leaves, f"t{k}_{i}")
            elif isinstance(term, steps.Quadratic):
                extra += self._away(k, term)
                half = self.dialect.number(term.factor / 2)
                for c in range(len(sums)):
                    squares = "+".join(f"a{k}_{c}_{i}*a{k}_{c}_{i}" for i in range(len(term.numbers)))
                    sums[c].append(f"{self.dialect.number(term.constants[c])}-{half}*({squares})")
            elif isinstance(term, steps.Density) and term.form == "gamma":
                tops = [f"{_find_top_node(self.dialect, term, self.cells[term.column], c)}" for c in range(len(sums))]
                extra += [f"{top} AS m{k}_{c}" for c, top in enumerate(tops)]
            elif isinstance(term, steps.PairTerm):
                (a, b), (first, second) = term.codes, term.levels
                flat = term.table[first][:, second].reshape(-1, len(sums))
                self._add_look_up(sums, flat, f"c{a}*{len(second)}+c{b}")
        if extra:
            self.expressions.append(("priory_parts", f"SELECT priory_codes.*, {', '.join(extra)} FROM priory_codes"))
        tables = [term for term in terms if isinstance(term, steps.CodeTerm)]
        found = self._sum_tables(tables, plan.constant, lambda code: f"c{code}", range(len(sums)), sums)
        shown = [f"{found[c]} AS l{c}" for c in self.kept]
        origin = "priory_parts" if extra else "priory_codes"
        self.expressions.append(("priory_logits", f"SELECT priory_row, share, {', '.join(shown)} FROM {origin}"))
        self._softmax("priory_logits", "priory_mixed", self.kept, plan.share, "priory_row, share")

    def _leaf(self, tree: list[list[int]]) -> str:
        found = []
        for k, (code, value) in enumerate(tree):
            sign = ">" if isinstance(self.plan.codes[code], steps.Bins) else "="
            found.append(f"CASE WHEN c{code}{sign}{value} THEN {1 << len(tree) - 1 - k} ELSE 0 END")
        return "+".join(found)

    def _away(self, k: int, term: steps.Quadratic) -> list[str]:
        n, found = self.dialect.number, []
        for c, (mean, root) in enumerate(zip(term.means, term.roots, strict=True)):
            for i, weights in enumerate(root):
                shown = "+".join(f"{n(w)}*n{p}" for w, p in zip(weights, term.numbers, strict=True) if w)
                found.append(f"{shown or n(0.0)}-({n(weights @ mean)}) AS a{k}_{c}_{i}")
        return found

    def _add_look_up(self, sums: list[list[str]], table: Array, code: str) -> None:
        for c in range(len(sums)):
            numbers = table[:, c] - (0.0 if self.plan.has_impossible else table[:, 0])
            if numbers.any():
                sums[c].append(self.dialect.look_up(_bounded(numbers).tolist(), code))

    def _sum_tables(
        self,
        tables: Sequence[steps.CodeTerm],
        constant: Array,
        code: Callable[[int], str],
        classes: range,
        sums: list[list[str]] | None = None,
    ) -> list[str]:
        """The logit of each class, below the first class unless a class may be impossible."""
        sums = [[] for _ in classes] if sums is None else sums
        n, is_relative = self.dialect.number, not self.plan.has_impossible
        for table in tables:
            self._add_look_up(sums, table.table, code(table.code))
        for k, term in enumerate(self.plan.terms if code(0) == "c0" else ()):
            if isinstance(term, steps.Linear):
                for c in classes:
                    slopes = term.slopes[:, c] - (term.slopes[:, 0] if is_relative else 0.0)
                    sums[c] += [f"{n(s)}*n{p}" for s, p in zip(slopes.tolist(), term.numbers, strict=True) if s]
            elif isinstance(term, steps.Density):
                densities = _write_density(self.dialect, term, self.cells[term.column], [f"m{k}_{c}" for c in classes])
                for c in classes:
                    sums[c].append(densities[c])
        # of a quadratic form and densities the first class is subtracted as it stands
        found, first = [], "+".join(f"({text})" for text in sums[0]) if is_relative else ""
        base = _bounded(constant - (constant[0] if is_relative else 0.0))
        for c in classes:
            text = "+".join([n(base[c]), *(f"({part})" for part in sums[c])])
            found.append(f"{text}-({first})" if first and c else text)
        return found

    # -- probabilities --------------------------------------------------------------------------------------------

    def _softmax(self, source: str, target: str, logits: list[int], share: float, passed: str) -> None:
        """Probabilities p0, p1, ... from logits; those that are not listed are zero."""
        d, classes = self.dialect, range(len(self.plan.classes))
        n = d.number
        listed = [f"l{c}" for c in logits] + ([n(0.0)] if len(logits) < len(classes) else [])
        top = f"{d.greatest}({', '.join(listed)})" if len(listed) > 1 else listed[0]
        self.expressions.append((f"{target}_top", f"SELECT {source}.*, {top} AS top FROM {source}"))
        least = n(float(LOWEST_EXPONENT))
        exps = [f"exp({d.greatest}({f'l{c}' if c in logits else n(0.0)}-top, {least})) AS e{c}" for c in classes]
        self.expressions.append((f"{target}_exp", f"SELECT {passed}, top, {', '.join(exps)} FROM {target}_top"))
        total = "+".join(f"e{c}" for c in classes)
        fallback = np.exp(self.plan.fallback - np.logaddexp.reduce(self.plan.fallback))
        shown = []
        for c in classes:
            own = f"e{c}/({total})"
            if self.plan.has_impossible:
                own = f"CASE WHEN top<{n(RULED_OUT)} THEN {n(fallback[c])} ELSE {own} END"
            mixed = own if share == 1 else f"{n(share)}*({own})+{n((1 - share) * self.plan.base[c])}"
            shown.append(f"{mixed} AS p{c}")
        self.expressions.append((target, f"SELECT {passed}, {', '.join(shown)} FROM {target}_exp"))

    def _finish(self) -> None:
        plan, n, classes = self.plan, self.dialect.number, range(len(self.plan.classes))
        source = "priory_mixed" if plan.gaps is None else "priory_mixed_all"
        if plan.limit is not None:
            best = self._find_best()
            self.expressions.append(("priory_best", f"SELECT {source}.*, {best} AS best FROM {source}"))
            rivals = (1 - plan.limit.base) * (plan.limit.n_rows + 1)
            bound = self.dialect.look_up((1 / np.maximum(rivals, 1e-300)).tolist(), "best")
            top = (
                self.dialect.look_up([0.0], "0")
                if len(classes) == 1
                else f"{self.dialect.greatest}({', '.join(f'p{c}' for c in classes)})"
            )
            shown = []
            for c in classes:
                least = f"{n(plan.limit.base[c])}*({bound})"
                shown.append(f"CASE WHEN p{c}={top} THEN p{c} ELSE {self.dialect.greatest}(p{c}, {least}) END AS p{c}")
            self.expressions.append(("priory_limited", f"SELECT priory_row, {', '.join(shown)} FROM priory_best"))
            source = "priory_limited"
        factors = np.exp(np.where(np.isfinite(plan.shift), plan.shift, -np.inf))
        total = "+".join(f"p{c}*{n(factors[c])}" for c in classes)
        shown = [f"p{c}*{n(factors[c])}/({total}) AS p{c}" for c in classes]
        self.expressions.append(("priory_final", f"SELECT priory_row, {', '.join(shown)} FROM {source}"))
        # without groups, SQLite joins rows of many nested expressions without an index: quadratic
        one_each = " GROUP BY priory_row" if self.dialect.name == "sqlite" else ""
        self.expressions.append(
            ("priory_answers", f"SELECT priory_row, {', '.join(f'p{c}' for c in classes)}, {self._find_best()} AS best "
             f"FROM priory_final{one_each}")
        )  # fmt: skip

    def _find_best(self) -> str:
        """The first of the likeliest classes."""
        classes = range(len(self.plan.classes))
        if len(classes) == 1:
            return "0"
        top = f"{self.dialect.greatest}({', '.join(f'p{c}' for c in classes)})"
        return f"CASE {top} {' '.join(f'WHEN p{c} THEN {c}' for c in classes)} ELSE 0 END"


def _bounded(numbers: Array) -> Array:
    """Numbers with a large negative one for minus infinity."""
    return np.where(np.isneginf(numbers), IMPOSSIBLE, numbers)


def _list_nodes(d: Dialect, term: steps.Density, cell: str, c: int) -> list[str]:
    """The logs that a Gamma density of unknown shape adds up, but for nodes without any weight."""
    n, p = d.number, term.parameters
    return [
        f"{n(k)}+({n(s - 1)})*ln({cell})-{n(w)}*({_log_of_one_and(d, f'({cell}/{n(b)})')})"
        for k, s, w, b in zip(*(p[x][c] for x in ("constant", "shape", "power", "scale")), strict=True)
        if np.isfinite(k) and k > -1e5 and np.isfinite(b)
    ]


def _log_of_one_and(d: Dialect, x: str) -> str:
    """log(1 + x), also of small x."""
    whole = f"({d.number(1.0)}+{x})"
    return f"ln({whole})-(({whole}-{d.number(1.0)})-{x})/{whole}"


def _find_top_node(d: Dialect, term: steps.Density, cell: str, c: int) -> str:
    nodes = _list_nodes(d, term, cell, c)
    top = f"{d.greatest}({', '.join(nodes)})" if len(nodes) > 1 else nodes[0]
    return f"CASE WHEN {cell}>{d.number(0.0)} THEN {top} END"


def _write_density(d: Dialect, term: steps.Density, cell: str, tops: list[str]) -> list[str]:
    """The log density of each class, 0 for a missing cell; ``tops`` name the largest nodes."""
    n, p, found = d.number, term.parameters, []
    is_count = f"{cell}>={n(0.0)} AND {cell}<={n(2.0**53)} AND floor({cell})={cell}"
    inside = {"gamma": f"{cell}>{n(0.0)}", "amount": f"{cell}>{n(0.0)}", "events": is_count, "count": is_count}
    far = min(MAX_ABS_Z * term.unit, float(np.finfo(float).max))
    least = "LEAST" if d.greatest == "GREATEST" else "MIN"
    for c, top in enumerate(tops):
        match term.form:
            case "student" | "normal":
                near = f"{least}({d.greatest}({cell}, {n(-far)}), {n(far)})"
                z = f"({near}/{n(term.unit)}-({n(p['centre'][c])}))"
                square = f"{n(p['precision'][c])}*{z}*{z}"
                value = f"{n(p['constant'][c])}-" + (
                    f"{n(p['power'][c])}*ln({n(1.0)}+{square})" if "power" in p else f"({square})/2"
                )
            case "gamma":
                lowest = n(float(LOWEST_EXPONENT))
                nodes = [f"exp({d.greatest}({node}-{top}, {lowest}))" for node in _list_nodes(d, term, cell, c)]
                value = f"{top}+ln({'+'.join(nodes)})"
            case "amount":
                value = f"{n(p['constant'][c, 0])}+({n(p['shape'][c, 0] - 1)})*ln({cell})-{n(p['rate'][c, 0])}*{cell}"
            case "events":
                z = f"({cell}+{n(p['shape'][c])})"
                value = f"{_log_gamma(d, z)}+{n(p['constant'][c])}-{n(p['slope'][c])}*{cell}"
            case _:
                value = f"{n(p['constant'][c])}+{n(p['slope'][c])}*{cell}"
        if term.form in inside:
            value = f"CASE WHEN {inside[term.form]} THEN {value} ELSE {n(IMPOSSIBLE)} END"
        found.append(f"CASE WHEN {cell} IS NULL THEN {n(0.0)} ELSE {value} END")
    if not term.is_relative:
        return found
    top = f"{d.greatest}({', '.join(found)})"
    return [f"{n(term.weight)}*{d.greatest}({text}-{top}, {n(-1e4)})" for text in found]


def _log_gamma(d: Dialect, z: str) -> str:
    """Stirling's series above 8, and the recurrence below."""
    n, s = d.number, f"({z}+{d.number(8.0)})"
    series = "+".join(f"({n(k)})/({'*'.join([s] * (2 * i + 1))})" for i, k in enumerate(STIRLING))
    below = "+".join(f"ln({z}+{n(float(i))})" for i in range(8))
    return f"(({s}-{n(0.5)})*ln({s})-{s}+{n(0.5 * np.log(2 * np.pi))}+{series}-({below}))"


def _read_date_part(d: Dialect, source: str, part: str) -> str:
    """A part of a date: a number of days, or a label."""
    day = {
        "duckdb": f"date_diff('day', DATE '2000-01-01', CAST({source} AS DATE))",
        "postgres": f"(CAST({source} AS DATE) - DATE '2000-01-01')",
        "sqlite": f"(julianday(date({source})) - 2451544.5)",
        "bigquery": f"DATE_DIFF(CAST({source} AS DATE), DATE '2000-01-01', DAY)",
    }[d.name]
    if part == DAY:
        return f"CAST({day} AS {d.real})"
    unit = {HOUR: ("HOUR", "%H"), WEEKDAY: ("ISODOW", "%w")}.get(part, ("MONTH", "%m"))
    if d.name == "sqlite":
        number = f"CAST(strftime('{unit[1]}', {source}) AS INTEGER)"
        first = {HOUR: 0, WEEKDAY: 1}.get(part, 1)
    elif d.name == "bigquery":
        number, first = (
            f"EXTRACT({'DAYOFWEEK' if part == WEEKDAY else unit[0]} FROM {source})",
            {HOUR: 0, WEEKDAY: 2}.get(part, 1),
        )
    else:
        number, first = f"EXTRACT({unit[0]} FROM {source})", 0 if part == HOUR else 1
    places = [
        (k + first) % 7 if part == WEEKDAY and d.name == "sqlite" else k + first for k in range(len(PART_NAMES[part]))
    ]
    if part == WEEKDAY and d.name == "bigquery":
        places = [(k + 1) % 7 + 1 for k in range(7)]  # Sunday is 1
    listed = " ".join(f"WHEN {at} THEN {d.literal(label)}" for at, label in zip(places, PART_NAMES[part], strict=True))
    return f"CASE {number} {listed} END"
