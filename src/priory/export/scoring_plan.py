"""A fitted model as a small program of a few kinds of steps, which SQL, JavaScript and ONNX graphs are made from.

    readers    cells become codes (bins, values), numbers (curves, standard units) or bags of tokens
    terms      tables, cells of pairs, slopes, a quadratic form, trees, densities and texts add to the logits
    finish     the share of the base rate, rows with gaps, the limit by the number of rows, and a declared prior

Codes that look up are never negative: the last two of a column are a missing cell and an unknown label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.calibration import logit_terms
from priory.calibration.corrections import CalibratedModel, Corrections
from priory.calibration.encoded_rows import N_NEAREST, OTHER_LABEL
from priory.calibration.table_encoding import (
    MAX_STANDARD_SCORE,
    N_LEVELS,
    RANK_STEPS,
    ColumnCodes,
    TableEncoding,
)
from priory.core.logspace import log_normalise
from priory.core.value_counts import VALUE_BITS, round_to_bits
from priory.errors import DataError
from priory.families.base import BinTerm, ColumnTerm, DensityTerm
from priory.families.gaussian import MAX_ABS_Z
from priory.model.cells import LabelCells, NumberCells
from priory.model.model_statistics import MIN_RELATIVE_LOG_LIKELIHOOD
from priory.tables.dates import split_part_name

SERIES_OF_LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


@dataclass(frozen=True)
class InputColumn:
    """A column that a row gives; a part of a date is read from the date."""

    name: str
    kind: str  # "number", "label" or "text"
    source: str  # the column of the table
    part: str = ""  # of a date


@dataclass(frozen=True, eq=False)
class Bins:
    """The code of a number: how many of the cuts it reaches; then one for a missing cell."""

    column: int
    cuts: Array
    missing: int


@dataclass(frozen=True, eq=False)
class Values:
    """The code of a value: its place among the values; then one for a missing cell, and one for other values."""

    column: int
    values: list[Any]


Code = Bins | Values


@dataclass(frozen=True, eq=False)
class Polyline:
    """A number by straight lines between knots, constant beyond them; ``missing`` where it is missing."""

    column: int
    knots: Array
    heights: Array
    missing: float = 0.0


@dataclass(frozen=True)
class Standard:
    """A number less the centre, in units, between -limit and limit; 0 where it is missing."""

    column: int
    centre: float = 0.0
    unit: float = 1.0
    limit: float = np.inf


Number = Polyline | Standard


@dataclass(frozen=True, eq=False)
class Tokens:
    """How a text becomes tokens, and the tokens (or buckets of their hashes) that have weights."""

    column: int
    tokenizer: Any
    words: list[str]
    pairs: Array  # buckets of pairs of words
    characters: Array  # buckets of n-grams of characters in words
    n_buckets: tuple[int, int]  # of pairs, of n-grams of characters
    lengths: tuple[int, int]  # of n-grams of characters


@dataclass(frozen=True, eq=False)
class CodeTerm:
    """A weight for each code."""

    code: int
    table: Array  # (codes, classes)


@dataclass(frozen=True, eq=False)
class PairTerm:
    """A weight for each cell of a pair of codes, by their coarse levels."""

    codes: tuple[int, int]
    levels: tuple[Array, Array]  # the level of each code
    table: Array  # (levels of the first, levels of the second, classes)


@dataclass(frozen=True, eq=False)
class Linear:
    """A slope for each number."""

    numbers: list[int]
    slopes: Array  # (numbers, classes)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``constant - factor |root (numbers - mean)|^2 / 2`` of each class."""

    numbers: list[int]
    means: Array
    roots: Array
    constants: Array
    factor: float


@dataclass(frozen=True, eq=False)
class Trees:
    """Oblivious trees: a leaf is the number whose bits, the first test highest, are the outcomes of the tests.

    A number passes if its code is above the test's, and a value if it is equal.
    """

    tests: Array  # (trees, depth, 2): code of this plan, and its value
    leaves: Array  # (trees, leaves, classes)


@dataclass(frozen=True, eq=False)
class Density:
    """A formula of a column of numbers; see `DensityTerm`."""

    column: int
    form: str
    parameters: dict[str, Array]
    unit: float
    weight: float = 1.0
    is_relative: bool = False  # below the likeliest class, bounded


@dataclass(frozen=True, eq=False)
class TextSum:
    """Naive Bayes of a text, below its likeliest class and tempered, and the weights of its features."""

    tokens: int
    table: Array  # (words, classes)
    constant: Array  # (classes,)
    is_binary: bool
    weight: float  # 1 and exponent 0 without tempering
    exponent: float  # of the length in thousands of letters
    is_relative: bool
    skips_empty: bool
    feature: Array  # (words,): whether a word is a feature of the regression
    feature_table: Array  # (words + pairs + n-grams of characters, classes)


PlanTerm = CodeTerm | PairTerm | Linear | Quadratic | Trees | Density | TextSum


@dataclass(frozen=True, eq=False)
class Gaps:
    """Rows with gaps are completed by their nearest training rows, and pooled with tempered naive Bayes."""

    columns: list[int]  # whose gaps are completed: places in `codes`
    only_together: bool  # whether they count as gaps only in a row without any cell
    texts: list[int]  # texts that count among the gaps
    codes: list[int]  # of all columns
    counted: list[int]  # columns of several codes, whose cells count where they are there: places in `codes`
    constant: Array  # (classes,)
    tables: list[CodeTerm]  # tempered naive Bayes, besides the texts
    power: int  # of the share of gaps
    ranks: list[int]  # codes that tell how far cells are apart: of bins the squared difference; none without rows
    weight: Array  # (kept rows,): none without rows
    cells: list[list[Any]]  # (columns, kept rows)
    n_nearest: int
    other_label: int


@dataclass(frozen=True, eq=False)
class Limit:
    """The rule of succession: the classes that are not the likeliest keep ``base / (1 - base of it) / (n + 1)``."""

    n_rows: float
    base: Array  # (classes,): probabilities


@dataclass(eq=False)
class ScoringPlan:
    """The steps of a fitted classifier."""

    classes: list[Any]
    columns: list[InputColumn]
    codes: list[Code] = field(default_factory=list)
    numbers: list[Number] = field(default_factory=list)
    tokens: list[Tokens] = field(default_factory=list)
    terms: list[PlanTerm] = field(default_factory=list)
    constant: Array = field(default_factory=lambda: np.zeros(0))  # (classes,)
    fallback: Array = field(default_factory=lambda: np.zeros(0))  # log probabilities if no class is possible
    share: float = 1.0  # of the terms; the base rate has the rest
    base: Array = field(default_factory=lambda: np.zeros(0))  # (classes,): probabilities
    gaps: Gaps | None = None
    limit: Limit | None = None
    shift: Array = field(default_factory=lambda: np.zeros(0))  # (classes,): declared less estimated log prior
    prior: Array = field(default_factory=lambda: np.zeros(0))  # (classes,): the declared one, if nothing is possible
    notes: list[str] = field(default_factory=list)  # what people should know about the export

    def add(self, steps: list[Any], step: Any) -> int:
        """Append a step, and return its place."""
        steps.append(step)
        return len(steps) - 1

    def list_notes(self) -> list[str]:
        """What the export holds, and how it answers gaps, one line each."""
        notes, n_rows = (
            [" ".join(note.split()) for note in self.notes],
            0 if self.gaps is None else len(self.gaps.weight),
        )
        if self.tokens:
            notes.append("The words of the training texts that the model weighs are in it.")
        if n_rows:
            return [*notes, f"The cells of {n_rows} training rows are in it: they complete rows with gaps."]
        read = "." if self.gaps is None else "; cells that are missing are read as missing."
        return [*notes, f"No training row is in it{read}"]

    @property
    def has_impossible(self) -> bool:
        """Whether a cell may rule out a class."""
        tables = [term.table for term in self.terms if isinstance(term, CodeTerm)]
        forms = [term.form for term in self.terms if isinstance(term, Density)]
        prior = [self.constant, self.prior, self.fallback]
        return any(np.isneginf(table).any() for table in (*tables, *prior)) or any(
            form in ("gamma", "amount", "events", "count") for form in forms
        )

    def list_codes(self) -> list[int]:
        """The codes that terms look up."""
        used: set[int] = set()
        for term in self.terms:
            match term:
                case CodeTerm(code, _):
                    used.add(code)
                case PairTerm(codes, _, _):
                    used.update(codes)
                case Trees(tests, _):
                    used.update(tests[..., 0].ravel().tolist())
        return sorted(used)

    def add_column_term(self, column: int, term: ColumnTerm, weight: float = 1.0, is_relative: bool = False) -> None:
        """Add the term of one column to the plan."""
        if isinstance(term, DensityTerm):
            parameters = {name: np.array(value, dtype=float) for name, value in term.parameters.items()}
            if term.form == "gamma":  # nodes without any weight
                weighs = np.isfinite(parameters["constant"]) & np.isfinite(parameters["scale"])
                for name, nothing in (("constant", -1e300), ("shape", 1.0), ("power", 0.0), ("scale", 1.0)):
                    parameters[name] = np.where(weighs, parameters[name], nothing)
            self.terms.append(Density(column, term.form, parameters, term.unit, weight, is_relative))
            return
        table = np.array(term.table, dtype=float).T
        if is_relative:
            best = table.max(axis=1, keepdims=True)
            table = np.maximum(table - np.where(np.isfinite(best), best, 0.0), MIN_RELATIVE_LOG_LIKELIHOOD)
        zero = np.zeros((1, table.shape[1]))
        if isinstance(term, BinTerm):
            code: Code = Bins(column, np.asarray(term.cuts, dtype=float), len(term.cuts) + 1)
            table = np.concatenate([table, zero])
        else:
            code = Values(column, term.values.tolist())
            table = np.concatenate([table[:-1], zero, table[-1:]])
        self.terms.append(CodeTerm(self.add(self.codes, code), weight * table))


# -- the density of a column -------------------------------------------------------------------------------------------


def log_density(term: Density, x: Any, is_missing: Any) -> Any:
    """(rows, classes): the log density of a number, 0 where it is missing.

    ``x`` is what a target computes with: a node of a graph or an expression of SQL, with the operators of arrays.
    """
    p = {name: values[None] for name, values in term.parameters.items()}  # (1, classes), or (1, classes, nodes)
    inside = x > 0.0
    match term.form:
        case "student" | "normal":
            far = min(MAX_ABS_Z * term.unit, float(np.finfo(float).max))
            z = (x.clip(-far, far) / term.unit - p["centre"]).name_once()
            square, inside = z * z * p["precision"], None
            found = p["constant"] - (log_of_one_and(square) * p["power"] if "power" in p else square / 2.0)
        case "gamma":
            safe = x.guard(inside, 1.0).add_axis()
            nodes = p["constant"] + safe.call("Log") * (p["shape"] - 1)
            nodes = nodes - log_of_one_and(safe / p["scale"]) * p["power"]
            top = nodes.largest(2).name_once(inside)
            found = top.drop_axis() + (nodes - top).call("Exp").total(2).call("Log")
        case "amount":
            safe = x.guard(inside, 1.0)
            found = p["constant"][..., 0] + safe.call("Log") * (p["shape"][..., 0] - 1) - safe * p["rate"][..., 0]
        case _:
            inside = (x >= 0.0) & (x <= 2.0**53) & x.call("Floor").equals(x)
            safe = x.guard(inside, 0.0)
            found = p["constant"] + safe * (-p["slope"] if term.form == "events" else p["slope"])
            found = found + log_gamma(safe + p["shape"]) if term.form == "events" else found
    if inside is not None:
        found = inside.choose(found, -1e300 if term.is_relative else -np.inf)
    if term.is_relative:
        found = (found - found.largest(1)).clip(MIN_RELATIVE_LOG_LIKELIHOOD, 0.0) * term.weight
    return is_missing.choose(0.0, found)


def log_of_one_and(x: Any) -> Any:
    """log(1 + x), also of small x."""
    whole = x + 1.0
    return whole.call("Log") - (whole - 1.0 - x) / whole


def log_gamma(z: Any) -> Any:
    """Stirling's series above 8, and the recurrence below."""
    s, product, series = z + 8.0, z, z * 0.0
    for i in range(1, 8):
        product = product * (z + float(i))
    inverse = 1.0 / (s * s)
    for k in SERIES_OF_LOG_GAMMA[::-1]:
        series = series * inverse + k
    return (s - 0.5) * s.call("Log") - s + series / s + 0.5 * np.log(2 * np.pi) - product.call("Log")


# -- from a fitted model ---------------------------------------------------------------------------------------------


def start_plan(columns: Sequence[InputColumn], calibrated: CalibratedModel) -> ScoringPlan:
    """A plan with the class prior, the limit and the declared prior of a model."""
    model, succession = calibrated.model, calibrated.succession
    estimated, prior = model.estimated_log_prior(), model.log_prior()
    limit = None
    if succession is not None:
        limit = Limit(succession.n_rows, np.exp(log_normalise(succession.log_prior)))
    classes = model.classes.tolist()
    with np.errstate(invalid="ignore"):
        shift = prior - estimated
    plan = ScoringPlan(classes, list(columns), constant=estimated.copy(), fallback=estimated, limit=limit)
    plan.base, plan.shift, plan.prior = np.exp(log_normalise(estimated)), shift, log_normalise(prior)
    return plan


def add_naive_bayes(plan: ScoringPlan, calibrated: CalibratedModel, places: dict[str, int]) -> None:
    """Add the terms of naive Bayes, each with its weight if the model is tempered."""
    model: Any = calibrated.model
    tempering = None if calibrated.corrections is None else calibrated.corrections.tempering
    if tempering is not None and tempering.weights[0] != 1.0:
        raise DataError(
            f"a table of {len(plan.classes):,} classes whose prior is weighed cannot be exported; export "
            "model.without_corrections()."
        )
    part_of = {(b, j): part for b, parts in enumerate(model.find_parts()) for j, part in enumerate(parts.tolist())}
    for choice in model.choices():
        names = model.schema.blocks[choice.block].names
        if model.schema.blocks[choice.block].kind == "text":
            continue
        terms = choice.family.column_terms(choice.statistics, model.estimate)
        for k, j in enumerate(choice.positions.tolist()):
            if terms is None:
                raise DataError(
                    f"column {names[j]!r}: {type(choice.family).__name__} has no formula to export; declare another "
                    "family, or set_params(estimate='mean')."
                )
            weight = 1.0 if tempering is None else float(tempering.weights[1 + part_of[choice.block, j]])
            plan.add_column_term(places[names[j]], terms[k], weight, tempering is not None)


# -- corrections -----------------------------------------------------------------------------------------------------


def add_pooled_members(plan: ScoringPlan, corrections: Corrections, places: Sequence[int]) -> list[int]:
    """Add the pooled members of a table; ``places`` are the columns with codes. Return the place of each code."""
    assert corrections.pool is not None
    assert corrections.evidence is not None
    encoding = corrections.encoding
    codes = [
        plan.add(plan.codes, _make_code(place, column)) for place, column in zip(places, encoding.columns, strict=True)
    ]
    commons = _add_common(plan, encoding, codes)
    plan.constant = np.zeros(len(plan.classes))
    plan.share, plan.base = corrections.pool.share, np.exp(log_normalise(corrections.evidence.log_prior))
    for term in corrections.terms:
        match term:
            case logit_terms.CodeTable(table):
                plan.constant = plan.constant + table[0]
                plan.terms += split_code_table(encoding, table, codes)
            case logit_terms.CellTable(pairs, table):
                plan.terms += _split_cells(encoding, pairs.tolist(), table, commons)
            case logit_terms.Slopes(slopes, of_scores) if len(slopes):
                plan.terms.append(Linear(_add_numbers(plan, encoding, places, of_scores), slopes))
            case logit_terms.QuadraticForm(means, roots, constants, factor):
                scores = _add_numbers(plan, encoding, places, True)
                plan.terms.append(Quadratic(scores, means, roots, constants, factor))
            case logit_terms.TreeSum():
                plan.terms.append(_add_trees(plan, encoding, places, commons, term))
    return codes


def _make_code(place: int, column: ColumnCodes) -> Code:
    if column.is_number:
        cuts = find_thresholds(column.edges_or_labels, lambda x: round_to_bits(x, VALUE_BITS))
        return Bins(place, cuts, column.n_codes - 1)
    return Values(place, column.edges_or_labels.tolist())


def _add_common(plan: ScoringPlan, encoding: TableEncoding, codes: Sequence[int]) -> list[int]:
    """The code of each column in which rare labels are unknown ones, added to the plan."""
    return [
        plan.add(plan.codes, Values(plan.codes[code].column, column.edges_or_labels[: len(column.levels)].tolist()))
        if column.n_rare
        else code
        for code, column in zip(codes, encoding.columns, strict=True)
    ]


def find_thresholds(heights: Array, curve: Callable[[Array], Array]) -> Array:
    """The smallest number at which an increasing curve reaches each height, so that exports need not compute it."""
    # bisection over the floats themselves, in the order of their bits
    low = np.full(len(heights), _order_floats(np.array([-np.finfo(float).max]))[0])
    high = -low
    for _ in range(65):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reaches = curve(_restore_floats(middle)) >= heights
        low, high = np.where(reaches, low, middle), np.where(reaches, middle, high)
    return np.asarray(_restore_floats(high))


def _order_floats(x: Array) -> Array:
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _restore_floats(order: Array) -> Array:
    return np.where(order < 0, np.iinfo(np.int64).min - order, order).view(float)


def split_code_table(encoding: TableEncoding, table: Array, codes: Sequence[int]) -> list[CodeTerm]:
    """The table of each column's codes, from (1 + codes, classes); an unknown label adds nothing."""
    zero = np.zeros((1, table.shape[1]))
    parts = np.split(table[1:], encoding.starts[1:-1]) if codes else []
    return [
        CodeTerm(code, part if column.is_number else np.concatenate([part, zero]))
        for code, part, column in zip(codes, parts, encoding.columns, strict=True)
    ]


def _split_cells(encoding: TableEncoding, pairs: list[list[int]], table: Array, codes: Sequence[int]) -> list[PlanTerm]:
    levels = [np.append(column.levels, [N_LEVELS - 1, N_LEVELS]) for column in encoding.columns]
    found: list[PlanTerm] = []
    for (i, j), cells in zip(pairs, table.reshape(len(pairs), N_LEVELS, N_LEVELS, -1), strict=True):
        padded = np.pad(cells, ((0, 1), (0, 1), (0, 0)))  # nothing for unknown labels
        found.append(PairTerm((codes[i], codes[j]), (levels[i], levels[j]), padded))
    return found


def _add_numbers(plan: ScoringPlan, encoding: TableEncoding, places: Sequence[int], of_scores: bool) -> list[int]:
    """Add the normal scores of all numbers, or the standardised numbers, once; return their places."""
    kind = Polyline if of_scores else Standard
    known = {number.column: k for k, number in enumerate(plan.numbers) if isinstance(number, kind)}
    numbers = [(place, column) for place, column in zip(places, encoding.columns, strict=True) if column.is_number]
    for place, column in numbers:
        if place not in known:
            curve = (column.knots, column.scores) if len(column.knots) > 1 else (np.zeros(1), np.zeros(1))
            standard = Standard(place, float(column.mean), float(column.deviation), MAX_STANDARD_SCORE)
            known[place] = plan.add(plan.numbers, Polyline(place, *curve) if of_scores else standard)
    return [known[place] for place, _ in numbers]


def _add_trees(
    plan: ScoringPlan, encoding: TableEncoding, places: Sequence[int], codes: Sequence[int], trees: logit_terms.TreeSum
) -> Trees:
    """Add bins by the cuts of trees, and return the trees over these codes."""
    of_column, number = list(codes), 0
    for j, column in enumerate(encoding.columns):
        if column.is_number:
            cuts = np.nextafter(trees.cuts[number], np.inf)  # a number is above a cut if it reaches the next float
            of_column[j] = plan.add(plan.codes, Bins(places[j], cuts, int(trees.gaps[number])))
            number += 1
    tests = trees.tests.astype(np.int64)
    tests[..., 0] = np.array(of_column)[tests[..., 0]]
    leaves = trees.factor * trees.leaves.astype(float)
    if leaves.shape[2] != len(plan.classes):  # of two classes, only the second has a logit
        leaves = np.concatenate([np.zeros_like(leaves), leaves], axis=2)
    return Trees(tests, leaves)


def make_gaps(
    plan: ScoringPlan,
    corrections: Corrections,
    codes: list[int],
    text_places: list[int],
    log_prior: Array,
    with_rows: bool,
) -> Gaps | None:
    """How rows with gaps are answered; None if no column varies."""
    gaps, encoding, evidence = corrections.gaps, corrections.encoding, corrections.evidence
    assert evidence is not None
    counted = [j for j, column in enumerate(encoding.columns) if column.n_codes > 2]
    if gaps is None or not counted:
        return None
    commons = _add_common(plan, encoding, codes)
    only_together = not gaps.is_completed[: len(codes)].any()
    has_rows = with_rows and len(gaps.weight) > 0 and not only_together
    ranks = [
        plan.add(plan.codes, _make_ranks(plan.codes[code].column, column)) if column.is_number else code
        for code, column in zip(commons if has_rows else (), encoding.columns, strict=False)
    ]
    cells: list[list[Any]] = []
    for block in gaps.blocks if has_rows else ():
        if isinstance(block, NumberCells):
            columns = np.asarray(block.data, dtype=float).T.tolist()
            cells += [[None if x != x else x for x in column] for column in columns]
        elif isinstance(block, LabelCells):
            for j, values in enumerate(block.data.values):
                shown = [*values.tolist(), None]  # code -1 is a missing cell
                cells.append([shown[code] for code in block.data.codes[:, j].tolist()])
    completed = gaps.is_completed
    tempered = evidence.temper_cells(encoding, log_prior)
    return Gaps(
        columns=counted if only_together else np.flatnonzero(completed[: len(codes)]).tolist(),
        only_together=only_together,
        texts=[t for t, done in zip(text_places, completed[len(codes) :], strict=True) if done or only_together],
        codes=codes,
        counted=counted,
        constant=tempered[0],
        tables=split_code_table(encoding, tempered, codes),
        power=3 if has_rows else 1,
        ranks=ranks,
        weight=gaps.weight if has_rows else np.zeros(0),
        cells=cells,
        n_nearest=N_NEAREST,
        other_label=OTHER_LABEL,
    )


def _make_ranks(place: int, column: ColumnCodes) -> Bins:
    """Ranks as bins; a missing number is below all of them."""
    lowest, highest = np.rint(column.ranks[[0, -1]]).astype(int).tolist() if len(column.knots) else (0, 0)
    heights = np.arange(lowest + 1.0, highest + 1.0)
    cuts = find_thresholds(heights, lambda x: np.rint(np.interp(x, column.knots, column.ranks)))
    return Bins(place, cuts, -(RANK_STEPS // 2) - lowest)


def encode_cell(code: Code, cell: Any) -> int:
    """The code of a training row's cell."""
    if isinstance(code, Bins):
        return code.missing if cell is None else int(np.searchsorted(code.cuts, cell, side="right"))
    if cell is None:
        return len(code.values)
    return code.values.index(cell) if cell in code.values else len(code.values) + 1


def list_input_columns(names: Sequence[str], kinds: dict[str, str]) -> list[InputColumn]:
    """The columns of a table, parts of dates with the column that they are read from."""
    found = []
    for name in names:
        source, part = split_part_name(name)
        found.append(InputColumn(name, kinds.get(name, "label"), source, part))
    return found
