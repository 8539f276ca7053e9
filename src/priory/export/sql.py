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
from priory.tables.dates import DAY, HOUR, PART_NAMES, WEEKDAY

IMPOSSIBLE, RULED_OUT = -1e304, -1e303  # stands for minus infinity, with which databases raise errors
LOWEST_EXPONENT = -700  # PostgreSQL raises an error where exp underflows
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
    least: str = "LEAST"
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

    def largest(self, texts: Sequence[str]) -> str:
        """The largest of several expressions."""
        return f"{self.greatest}({', '.join(texts)})" if len(texts) > 1 else texts[0]

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
    "sqlite": Dialect("sqlite", "REAL", "TEXT", _signed, "", greatest="MAX", least="MIN", has_nan=False),
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


def _operator(form: str) -> Callable[..., Formula]:
    return lambda formula, *others: formula.apply(form, *others)


@dataclass(frozen=True, eq=False)
class Formula:
    """Expressions in an array (1, classes) or (1, classes, nodes), with the operators of arrays."""

    writer: SqlWriter
    texts: Array

    __array_ufunc__ = None  # arrays leave operators to formulas
    __add__, __radd__ = _operator("({}+{})"), _operator("({1}+{0})")
    __sub__, __rsub__ = _operator("({}-{})"), _operator("({1}-{0})")
    __mul__, __rmul__ = _operator("({}*{})"), _operator("({1}*{0})")
    __truediv__, __rtruediv__ = _operator("({}/{})"), _operator("({1}/{0})")
    __gt__, __ge__, __le__, equals = map(_operator, ("{}>{}", "{}>={}", "{}<={}", "{}={}"))
    __and__, choose = _operator("{} AND {}"), _operator("CASE WHEN {} THEN {} ELSE {} END")

    def apply(self, form: str, *others: Any) -> Formula:
        """A form with these texts and others; numbers become literals."""
        number = np.frompyfunc(self.writer.dialect.number, 1, 1)
        given = [o.texts if isinstance(o, Formula) else number(_bounded(np.asarray(o, dtype=float))) for o in others]
        return Formula(self.writer, np.frompyfunc(form.format, 1 + len(given), 1)(self.texts, *given))

    def call(self, function: str) -> Formula:
        """A function of one number: Log, Exp or Floor."""
        lowest = self.writer.dialect.number(float(LOWEST_EXPONENT))
        exp = f"exp({self.writer.dialect.greatest}({{}}, {lowest}))"
        return self.apply({"Log": "ln({})", "Exp": exp, "Floor": "floor({})"}[function])

    def clip(self, low: float, high: float) -> Formula:
        """No less than ``low`` and no more than ``high``."""
        d = self.writer.dialect
        return self.apply(f"{d.least}({d.greatest}({{}}, {{}}), {{}})", low, high)

    def guard(self, inside: Formula, otherwise: float) -> Formula:
        """The same: cases that are not chosen are not computed."""
        return self

    def name_once(self, inside: Formula | None = None) -> Formula:
        """The names of these expressions as columns of a step before."""
        parts, guarded = self.writer.parts, self if inside is None else inside.apply("CASE WHEN {} THEN {} END", self)
        names = [f"f{len(parts) + k}" for k in range(guarded.texts.size)]
        parts += [f"{text} AS {name}" for text, name in zip(guarded.texts.ravel(), names, strict=True)]
        return Formula(self.writer, np.array(names, dtype=object).reshape(guarded.texts.shape))

    def add_axis(self) -> Formula:
        """With an axis of nodes."""
        return Formula(self.writer, self.texts[..., None])

    def drop_axis(self) -> Formula:
        """Without the axis of nodes."""
        return Formula(self.writer, self.texts[..., 0])

    def largest(self, axis: int) -> Formula:
        """The largest over an axis, which stays."""
        return self._join(self.writer.dialect.largest, axis)

    def total(self, axis: int) -> Formula:
        """The sum over the axis of nodes."""
        return self._join(lambda texts: f"({'+'.join(texts)})", axis).drop_axis()

    def _join(self, join: Callable[[Sequence[str]], str], axis: int) -> Formula:
        rows = np.moveaxis(self.texts, axis, -1)
        joined = [join(own) for own in rows.reshape(-1, rows.shape[-1]).tolist()]
        return Formula(self.writer, np.expand_dims(np.array(joined, dtype=object).reshape(rows.shape[:-1]), axis))


class SqlWriter:
    """Writes the steps of one plan."""

    def __init__(self, plan: ScoringPlan, dialect: Dialect) -> None:
        self.plan, self.dialect = plan, dialect
        classes = range(len(plan.classes))
        self.kept = [c for c in classes if c or plan.has_impossible or len(classes) == 1]  # else below the first
        self.expressions: list[tuple[str, str]] = []  # the common table expressions
        self.parts: list[str] = []  # columns that several logits read
        self.cells = [f"x{k}" for k in range(len(plan.columns))]

    def write(self, table: str) -> str:
        plan, d = self.plan, self.dialect
        name = ".".join(map(d.name_of, table.split("."))) if table else d.name_of("rows")
        row, taken = "priory_row", {column.source.lower() for column in plan.columns}
        while row in taken:
            row += "_"
        # the number comes first: databases that allow two columns of one name read the first of them
        self._select("priory_input", [f"row_number() OVER () AS {row}", "t.*"], f"{name} t")
        self._select("priory_cells", self._read_cells(row), "priory_input")
        if plan.gaps is not None and len(plan.gaps.weight):
            self._score(self._complete_rows(plan.gaps), "share")
        else:
            self._score("priory_cells", f"{d.number(1.0)} AS share")
        if plan.gaps is not None:
            self._pool_gaps(plan.gaps)
        self._finish()
        body = ",\n".join(f"{n} AS{d.materialized} (\n{text}\n)" for n, text in self.expressions)
        labels = " ".join(f"WHEN {k} THEN {self._label(label)}" for k, label in enumerate(plan.classes))
        shown = [f"CASE priory_answers.best {labels} END AS {d.name_of('prediction')}"]
        shown += [f"priory_answers.p{c} AS {d.name_of(f'P({label})')}" for c, label in enumerate(plan.classes)]
        notes = [f"Probabilities of a Priory model, for {d.name}.", *plan.list_notes()]
        head = "".join(f"-- {note}\n" for note in notes)
        return (
            f"{head}WITH {body}\nSELECT priory_input.*, {', '.join(shown)}\nFROM priory_input JOIN priory_answers "
            f"ON priory_answers.priory_row = priory_input.{row}\nORDER BY priory_input.{row}\n"
        )

    def _select(self, name: str, columns: Sequence[str], source: str) -> None:
        """Append a step."""
        self.expressions.append((name, f"SELECT {', '.join(columns)} FROM {source}"))

    def _label(self, value: Any) -> str:
        if isinstance(value, bool | int | float | np.number):
            return str(value).upper() if isinstance(value, bool) else repr(value)
        return self.dialect.literal(value)

    # -- cells ----------------------------------------------------------------------------------------------------

    def _read_cells(self, row: str) -> list[str]:
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
        return shown

    def _code(self, code: int) -> str:
        """The code of a cell; it is an expression of the cell."""
        step, d = self.plan.codes[code], self.dialect
        cell = self.cells[step.column]
        if isinstance(step, steps.Bins):
            return f"CASE WHEN {cell} IS NULL THEN {step.missing} ELSE {d.count_reached(step.cuts.tolist(), cell)} END"
        listed = " ".join(f"WHEN {d.literal(value)} THEN {k}" for k, value in enumerate(step.values))
        known = f"CASE {cell} {listed} ELSE {len(step.values) + 1} END" if listed else str(len(step.values) + 1)
        return f"CASE WHEN {cell} IS NULL THEN {len(step.values)} ELSE {known} END"

    def _number(self, number: int) -> str:
        step, n, d = self.plan.numbers[number], self.dialect.number, self.dialect
        cell = self.cells[step.column]
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

    def _has_gap(self, gaps: steps.Gaps) -> str:
        places = [self.plan.codes[gaps.codes[j]].column for j in gaps.columns]
        return (" AND " if gaps.only_together else " OR ").join(f"{self.cells[p]} IS NULL" for p in places)

    def _complete_rows(self, gaps: steps.Gaps) -> str:
        """Join the nearest training rows to rows with gaps."""
        d = self.dialect
        columns = [self.plan.codes[code].column for code in gaps.codes]
        every = range(len(gaps.codes))
        ranks = [[encode_cell(self.plan.codes[gaps.ranks[j]], cell) for cell in gaps.cells[j]] for j in every]
        rows = []
        for k in range(len(gaps.weight)):
            values = [str(k), d.number(float(gaps.weight[k]))]
            values += [d.literal(gaps.cells[j][k]) for j in every] + [str(ranks[j][k]) for j in every]
            rows.append(values)
        names = ["k", "weight", *(f"v{j}" for j in every), *(f"q{j}" for j in every)]
        if d.quote == "`":
            rows[0] = [f"{value} AS {name}" for value, name in zip(rows[0], names, strict=True)]
            self.expressions.append(("priory_values", " UNION ALL ".join(f"SELECT {', '.join(row)}" for row in rows)))
        else:
            listed = ",\n".join(f"({', '.join(row)})" for row in rows)
            self.expressions.append((f"priory_values({', '.join(names)})", f"VALUES {listed}"))
        kinds = [d.real if self.plan.columns[p].kind == "number" else d.text for p in columns]
        cells = [f"CAST(v{j} AS {kinds[j]}) AS v{j}" for j in every]
        self._select("priory_kept", ["k", "weight", *cells, *(f"q{j}" for j in every)], "priory_values")
        ranked = [f"{self._code(gaps.ranks[j])} AS r{j}" for j in every]
        gap_cells = [self.cells[p] for p in columns]
        self._select("priory_gaps", ["priory_row", *gap_cells, *ranked], f"priory_cells WHERE {self._has_gap(gaps)}")
        away = []
        for j in every:
            far = f"g.r{j}-t.q{j}"
            is_number = isinstance(self.plan.codes[gaps.ranks[j]], steps.Bins)
            same = f"({far})*({far})" if is_number else f"CASE WHEN {far}=0 THEN 0 ELSE {gaps.other_label} END"
            is_gap = f"CASE WHEN g.{gap_cells[j]} IS NULL THEN 0 ELSE {same} END"
            away.append(is_gap if j in gaps.columns else same)
        nth = f"row_number() OVER (PARTITION BY g.priory_row ORDER BY {'+'.join(away)}, t.k) AS nth"
        self._select("priory_near", ["g.priory_row", "t.k", "t.weight", nth], "priory_gaps g CROSS JOIN priory_kept t")
        share = "weight / sum(weight) OVER (PARTITION BY priory_row) AS share"
        self._select("priory_nearest", ["priory_row", "k", share], f"priory_near WHERE nth <= {gaps.n_nearest}")
        filled = {columns[j]: j for j in gaps.columns}
        shown = [
            f"COALESCE(c.{cell}, t.v{filled[p]}) AS {cell}" if p in filled else f"c.{cell}"
            for p, cell in enumerate(self.cells)
        ]
        self._select(
            "priory_completed",
            ["c.priory_row", f"COALESCE(n.share, {d.number(1.0)}) AS share", *shown],
            "priory_cells c LEFT JOIN priory_nearest n ON n.priory_row = c.priory_row "
            "LEFT JOIN priory_kept t ON t.k = n.k",
        )
        return "priory_completed"

    def _pool_gaps(self, gaps: steps.Gaps) -> None:
        """Average the answers to completed rows, and pool them with tempered naive Bayes."""
        d, classes = self.dialect, range(len(self.plan.classes))
        means = [f"ln(sum(share*p{c})) AS g{c}" for c in classes]
        self._select("priory_mean", ["priory_row", *means], "priory_mixed GROUP BY priory_row")
        sums = [list[str]() for _ in classes]
        for term in gaps.tables:
            self._add_look_up(sums, term.table, self._code(term.code))
        tempered = self._add_up(sums, gaps.constant)
        columns = [self.plan.codes[code].column for code in gaps.codes]
        lacking = "+".join(f"CASE WHEN {self.cells[columns[j]]} IS NULL THEN 1 ELSE 0 END" for j in gaps.columns)
        present = "+".join(f"CASE WHEN {self.cells[columns[j]]} IS NULL THEN 0 ELSE 1 END" for j in gaps.counted)
        shown = [f"{text} AS t{c}" for c, text in enumerate(tempered)]
        m = f"{d.number(1.0)}*({lacking})/(({lacking})+({present})) AS m"
        self._select("priory_tempered", ["priory_row", *shown, m], f"priory_cells WHERE {self._has_gap(gaps)}")
        power, one = "*".join(["t.m"] * gaps.power), d.number(1.0)
        shown = [
            f"CASE WHEN t.m IS NULL THEN a.g{c} ELSE ({one}-{power})*a.g{c}+{power}*t.t{c} END AS l{c}" for c in classes
        ]
        source = "priory_mean a LEFT JOIN priory_tempered t ON t.priory_row = a.priory_row"
        self._select("priory_pooled", ["a.priory_row", *shown], source)
        self._softmax("priory_pooled", "priory_mixed_all", list(classes), 1.0, "priory_row")

    # -- logits ---------------------------------------------------------------------------------------------------

    def _score(self, source: str, share: str) -> None:
        plan, n, sums = self.plan, self.dialect.number, [list[str]() for _ in self.plan.classes]
        is_relative, cells = not plan.has_impossible, dict[str, None]()
        numbers = {k for term in plan.terms if isinstance(term, steps.Linear | steps.Quadratic) for k in term.numbers}
        for k, term in enumerate(plan.terms):
            match term:
                case steps.CodeTerm(code, table):
                    self._add_look_up(sums, table, f"c{code}")
                case steps.PairTerm((a, b), (first, second), table):
                    flat = table[first][:, second].reshape(-1, len(sums))
                    self._add_look_up(sums, flat, f"c{a}*{len(second)}+c{b}")
                case steps.Linear(places, slopes):
                    for own, weights in zip(sums, (slopes - slopes[:, :1] * is_relative).T.tolist(), strict=True):
                        own += [f"{n(w)}*n{p}" for w, p in zip(weights, places, strict=True) if w]
                case steps.Trees(tests, tables):
                    self.parts += [f"{self._leaf(tree)} AS t{k}_{i}" for i, tree in enumerate(tests.tolist())]
                    for i, leaves in enumerate(tables):
                        self._add_look_up(sums, leaves, f"t{k}_{i}")
                case steps.Quadratic():
                    self.parts += self._away(k, term)
                    for c, own in enumerate(sums):
                        squares = "+".join(f"a{k}_{c}_{i}*a{k}_{c}_{i}" for i in range(len(term.numbers)))
                        own.append(f"{n(term.constants[c])}-{n(term.factor / 2)}*({squares})")
                case steps.Density():
                    cell = Formula(self, np.array([[self.cells[term.column]]], dtype=object))
                    found = steps.log_density(term, cell, cell.apply("{} IS NULL"))
                    for own, text in zip(sums, found.texts[0], strict=True):
                        own.append(text)
                    cells[self.cells[term.column]] = None
        shown = ["priory_row", share, *(f"{self._code(code)} AS c{code}" for code in plan.list_codes())]
        shown += [f"{self._number(number)} AS n{number}" for number in sorted(numbers)]
        self._select("priory_codes", [*shown, *cells], source)
        if self.parts:
            self._select("priory_parts", ["priory_codes.*", *self.parts], "priory_codes")
        logits = [f"{text} AS l{c}" for c, text in enumerate(self._add_up(sums, plan.constant)) if c in self.kept]
        origin = "priory_parts" if self.parts else "priory_codes"
        self._select("priory_logits", ["priory_row", "share", *logits], origin)
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

    def _add_up(self, sums: list[list[str]], constant: Array) -> list[str]:
        """The logit of each class, below the first class unless a class may be impossible."""
        is_relative = not self.plan.has_impossible
        # of a quadratic form and densities the first class is subtracted as it stands
        found, first = [], "+".join(f"({text})" for text in sums[0]) if is_relative else ""
        base = _bounded(constant - (constant[0] if is_relative else 0.0))
        for c, own in enumerate(sums):
            text = "+".join([self.dialect.number(base[c]), *(f"({part})" for part in own)])
            found.append(f"{text}-({first})" if first and c else text)
        return found

    # -- probabilities --------------------------------------------------------------------------------------------

    def _softmax(self, source: str, target: str, logits: list[int], share: float, passed: str) -> None:
        """Probabilities p0, p1, ... from logits; those that are not listed are zero."""
        d, classes = self.dialect, range(len(self.plan.classes))
        n, least = d.number, d.number(float(LOWEST_EXPONENT))
        listed = [f"l{c}" if c in logits else n(0.0) for c in classes]
        self._select(f"{target}_top", [f"{source}.*", f"{d.largest(listed)} AS top"], source)
        exps = [f"exp({d.greatest}({logit}-top, {least})) AS e{c}" for c, logit in enumerate(listed)]
        self._select(f"{target}_exp", [passed, "top", *exps], f"{target}_top")
        total = "+".join(f"e{c}" for c in classes)
        fallback = np.exp(self.plan.fallback - np.logaddexp.reduce(self.plan.fallback))
        shown = [passed]
        for c in classes:
            own = f"e{c}/({total})"
            if self.plan.has_impossible:
                own = f"CASE WHEN top<{n(RULED_OUT)} THEN {n(fallback[c])} ELSE {own} END"
            mixed = own if share == 1 else f"{n(share)}*({own})+{n((1 - share) * self.plan.base[c])}"
            shown.append(f"{mixed} AS p{c}")
        self._select(target, shown, f"{target}_exp")

    def _finish(self) -> None:
        plan, d, answers = self.plan, self.dialect, [f"p{c}" for c in range(len(self.plan.classes))]
        source = "priory_mixed" if plan.gaps is None else "priory_mixed_all"
        if plan.limit is not None:
            self._select("priory_best", [f"{source}.*", f"{self._find_best()} AS best"], source)
            rivals = (1 - plan.limit.base) * (plan.limit.n_rows + 1)
            bound = d.look_up((1 / np.maximum(rivals, 1e-300)).tolist(), "best")
            top, shown = d.largest(answers), []
            for p, base in zip(answers, plan.limit.base, strict=True):
                raised = f"{d.greatest}({p}, {d.number(base)}*({bound}))"
                shown.append(f"CASE WHEN {p}={top} THEN {p} ELSE {raised} END AS {p}")
            self._select("priory_limited", ["priory_row", *shown], "priory_best")
            source = "priory_limited"
        factors = np.exp(np.where(np.isfinite(plan.shift), plan.shift, -np.inf))
        shifted = [f"{p}*{d.number(factor)}" for p, factor in zip(answers, factors, strict=True)]
        shown = [f"{text}/({'+'.join(shifted)}) AS {p}" for text, p in zip(shifted, answers, strict=True)]
        self._select("priory_final", ["priory_row", *shown], source)
        # without groups, SQLite joins rows of many nested expressions without an index: quadratic
        one_each = " GROUP BY priory_row" if d.name == "sqlite" else ""
        best = f"{self._find_best()} AS best"
        self._select("priory_answers", ["priory_row", *answers, best], f"priory_final{one_each}")

    def _find_best(self) -> str:
        """The first of the likeliest classes."""
        answers = [f"p{c}" for c in range(len(self.plan.classes))]
        listed = " ".join(f"WHEN {p} THEN {c}" for c, p in enumerate(answers))
        return f"CASE {self.dialect.largest(answers)} {listed} ELSE 0 END"


def _bounded(numbers: Array) -> Array:
    """Numbers with a large negative one for minus infinity."""
    return np.where(np.isneginf(numbers), IMPOSSIBLE, numbers)


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
    unit, letter, first = ("HOUR", "H", 0) if part == HOUR else ("MONTH", "m", 1)
    number = f"EXTRACT({unit} FROM {source})"
    if d.name == "sqlite":
        number = f"CAST(strftime('%{letter}', {source}) AS INTEGER)"
    if part == WEEKDAY:  # 2000-01-01 was a Saturday
        number, first = f"MOD(MOD({day}+5,7)+7,7)", 0
    listed = " ".join(f"WHEN {k} THEN {d.literal(label)}" for k, label in enumerate(PART_NAMES[part], start=first))
    return f"CASE {number} {listed} END"
