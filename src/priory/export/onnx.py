"""A scoring plan as an ONNX graph, for runtimes without Python.

A model of numbers takes ``X``, doubles (rows, columns) with NaN for missing cells. With labels or texts there is one
input for each column: doubles (rows, 1), strings (rows, 1) with "" for missing cells, and of a text its tokens (rows,
tokens) with "" behind them, and its length in letters as "NAME letters" (rows, 1). Outputs are ``label`` and
``probabilities``.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy import ndarray as Array

import priory
from priory.errors import DataError, MissingDependencyError
from priory.export import scoring_plan as steps
from priory.export.plan_sources import compile_plan
from priory.export.scoring_plan import ScoringPlan, encode_cell
from priory.families.gaussian import MAX_ABS_Z

ONNX_OPSET, ML_OPSET = 17, 3
SERIES_OF_LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # of log gamma, above 8


def to_onnx(fitted: Any, with_rows: bool = True) -> Any:
    """Return the model as an ``onnx.ModelProto`` with the probabilities of ``predict_proba``, up to rounding.

    Needs the extra ``onnx``. Without training rows (``with_rows=False``) cells that are missing are read as missing. A
    model that ONNX cannot express raises DataError, which names an alternative.
    """
    return write_graph(compile_plan(fitted, with_rows))


def write_graph(plan: ScoringPlan) -> Any:
    """The graph of a plan, as an ``onnx.ModelProto``."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingDependencyError("to_onnx needs onnx: pip install 'priory[onnx]'.") from None
    if any(len(tokens.pairs) or len(tokens.characters) for tokens in plan.tokens):
        raise DataError(
            "hashed pairs and characters of words cannot be exported to ONNX; train with pairs=False, analyzer='word'."
        )
    for code in plan.codes:
        if isinstance(code, steps.Values) and "" in code.values:
            name = plan.columns[code.column].name
            raise DataError(f"column {name!r} has the label '', which ONNX inputs give to missing cells; rename it.")
    return PlanGraph(onnx, plan).build()


class OnnxGraph:
    """Collects nodes and constants; a call adds a node and returns the name of its output."""

    def __init__(self, onnx: ModuleType, prefix: str) -> None:
        self.onnx, self.prefix = onnx, prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_constant(self, value: Array) -> str:
        name = f"{self.prefix}c{len(self.constants)}"
        if value.dtype.kind in "OU":
            tensor = self.onnx.helper.make_tensor(
                name, self.onnx.TensorProto.STRING, value.shape, [str(v).encode() for v in value.ravel()]
            )
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        self.constants.append(tensor)
        return name

    def __call__(self, operator: str, *inputs: str | float | Array, output: str = "", **attributes: object) -> str:
        """Add a node with these inputs: names of outputs, or numbers and arrays, which become constants."""
        names = [i if isinstance(i, str) else self.add_constant(np.asarray(i)) for i in inputs]
        name = output or f"{self.prefix}n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def total(self, value: str, axis: int, keep: bool = False) -> str:
        """Sum over an axis."""
        return self("ReduceSum", value, np.array([axis]), keepdims=int(keep))

    def add(self, terms: Sequence[str]) -> str:
        """Sum of several outputs."""
        return self("Sum", *terms) if len(terms) > 1 else terms[0]

    def add_integers(self, terms: Sequence[str]) -> str:
        """Sum of several outputs of integers, which ``Sum`` does not take."""
        first, *others = terms
        for other in others:
            first = self("Add", first, other)
        return first

    def log_of_one_and(self, value: str) -> str:
        """log(1 + value), also of small values."""
        whole = self("Add", value, 1.0)
        lost = self("Sub", self("Sub", whole, 1.0), value)
        return self("Sub", self("Log", whole), self("Div", lost, whole))

    def reshape(self, value: str, *shape: int) -> str:
        """Reshape; 0 keeps an axis."""
        return self("Reshape", value, np.array(shape, dtype=np.int64))

    def as_integers(self, value: str) -> str:
        """Cast to int64."""
        return self("Cast", value, to=self.onnx.TensorProto.INT64)

    def as_doubles(self, value: str) -> str:
        """Cast to double."""
        return self("Cast", value, to=self.onnx.TensorProto.DOUBLE)


class PlanGraph:
    """The walk of one plan as nodes."""

    def __init__(self, onnx: ModuleType, plan: ScoringPlan) -> None:
        names = {column.name: column.name for column in plan.columns}
        # no column may have the name of an output, or of a node
        self.names = [f"{name} (column)" if name in ("label", "probabilities") else name for name in names]
        prefix = next(mark for k in range(1, 99) if not any(n.startswith(mark := "_" * k) for n in self.names))
        self.graph, self.plan, self.onnx = OnnxGraph(onnx, prefix), plan, onnx
        self.inputs: list[Any] = []

    def build(self) -> Any:
        """The finished model."""
        graph, plan = self.graph, self.plan
        cells = self._declare_inputs()
        found = self._score(cells) if plan.gaps is None else self._score_with_gaps(cells)
        if plan.limit is not None:
            found = self._limit(found)
        with np.errstate(over="ignore"):
            factors = np.exp(np.where(np.isfinite(plan.shift), plan.shift, -np.inf))[None]
        shifted = graph("Mul", found, factors)
        graph("Div", shifted, graph.total(shifted, 1, keep=True), output="probabilities")
        best = graph("ArgMax", "probabilities", axis=1, keepdims=0)
        classes = np.asarray(plan.classes)
        # ONNX labels are integers, bools or strings
        labels = classes.astype(np.int64) if classes.dtype.kind in "iuf" else classes
        graph("Gather", graph.add_constant(labels), best, output="label")
        return self._build_proto(labels)

    def _declare_inputs(self) -> list[str]:
        types, value, columns = self.onnx.TensorProto, self.onnx.helper.make_tensor_value_info, self.plan.columns
        if all(column.kind == "number" for column in columns):
            self.inputs = [value("X", types.DOUBLE, ["rows", len(columns)])]
            return [self.graph("Gather", "X", np.array([j]), axis=1) for j in range(len(columns))]
        for name, column in zip(self.names, columns, strict=True):
            if column.kind == "text":
                self.inputs.append(value(name, types.STRING, ["rows", None]))
                self.inputs.append(value(f"{name} letters", types.DOUBLE, ["rows", 1]))
            else:
                kind = types.DOUBLE if column.kind == "number" else types.STRING
                self.inputs.append(value(name, kind, ["rows", 1]))
        return list(self.names)

    def _build_proto(self, labels: Array) -> Any:
        types, helper = self.onnx.TensorProto, self.onnx.helper
        label = {"b": types.BOOL, "i": types.INT64}.get(labels.dtype.kind, types.STRING)
        value = helper.make_tensor_value_info
        outputs = [value("label", label, ["rows"]), value("probabilities", types.DOUBLE, ["rows", len(labels)])]
        proto = helper.make_model(
            helper.make_graph(self.graph.nodes, "priory", self.inputs, outputs, self.graph.constants),
            opset_imports=[helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
            ir_version=8,
            producer_name="priory",
            producer_version=priory.__version__,
        )
        self.onnx.checker.check_model(proto)
        return proto

    # -- readers --------------------------------------------------------------------------------------------------

    def _is_missing(self, cells: Sequence[str], column: int) -> str:
        """(rows, 1): whether a cell is missing."""
        if self.plan.columns[column].kind == "number":
            return self.graph("IsNaN", cells[column])
        if self.plan.columns[column].kind == "text":
            return self.graph("Equal", f"{cells[column]} letters", 0.0)
        code = self._encode_strings(cells[column], [""], [1], 0)
        return self.graph("Equal", code, np.array(1))

    def _encode_strings(self, cell: str, keys: list[str], codes: list[int], other: int) -> str:
        """The code of each string."""
        return self.graph(
            "LabelEncoder", cell, domain="ai.onnx.ml", keys_strings=keys, values_int64s=codes, default_int64=other
        )

    def _count_reached(self, cuts: Array, cell: str) -> str:
        """(rows, 1): how many of the cuts a number reaches; 0 if it is missing."""
        reached = self.graph("GreaterOrEqual", cell, np.append(cuts, np.inf)[None])
        return self.graph.total(self.graph.as_integers(reached), 1, keep=True)

    def _code(self, code: int, cells: Sequence[str]) -> str:
        """(rows, 1): the code of a cell."""
        step, graph = self.plan.codes[code], self.graph
        cell = cells[step.column]
        if isinstance(step, steps.Bins):
            # infinity must not reach the last cut, which is there for columns without any
            bounded = graph("Min", cell, np.finfo(float).max)
            found, missing = self._count_reached(step.cuts, bounded), step.missing
        elif self.plan.columns[step.column].kind == "number":
            values = np.append(np.asarray(step.values, dtype=float), np.nan)[None]
            same = graph.as_doubles(graph("Equal", cell, values))
            place = graph("ArgMax", same, axis=1, keepdims=1)
            known = graph("Greater", graph.total(same, 1, keep=True), 0.0)
            found, missing = graph("Where", known, place, np.array(len(step.values) + 1)), len(step.values)
        else:
            keys, codes = [*step.values, ""], [*range(len(step.values) + 1)]
            return self._encode_strings(cell, keys, codes, len(step.values) + 1)
        return graph("Where", graph("IsNaN", cell), np.array(missing), found)

    def _number(self, number: int, cells: Sequence[str]) -> str:
        """(rows, 1): a number as a curve has it, or in standard units."""
        step, graph = self.plan.numbers[number], self.graph
        cell = cells[step.column]
        if isinstance(step, steps.Polyline):
            x, y = step.knots, step.heights
            slopes = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
            at = self._count_reached(x, graph("Min", cell, np.finfo(float).max))
            start, height, slope = (
                graph("Gather", values, at) for values in (np.append(x[0], x), np.append(y[0], y), slopes)
            )
            inside = graph("Max", graph("Min", cell, x[-1]), x[0])
            found, missing = graph("Add", height, graph("Mul", slope, graph("Sub", inside, start))), step.missing
        else:
            # by a power of two, so that the centre is not near 0 where the unit is: onnxruntime drops such constants
            scale = np.ldexp(1.0, -np.frexp(step.unit)[1])
            away = graph("Sub", graph("Mul", cell, scale), step.centre * scale)
            found, missing = graph("Div", away, step.unit * scale), 0.0
            if np.isfinite(step.limit):
                found = graph("Max", graph("Min", found, step.limit), -step.limit)
        return graph("Where", graph("IsNaN", cell), missing, found)

    # -- terms ----------------------------------------------------------------------------------------------------

    def _score(self, cells: Sequence[str], texts: Sequence[tuple[str, str]] | None = None) -> str:
        """(rows, classes): the probabilities of the terms with the base rate."""
        graph, plan = self.graph, self.plan
        texts = self._score_texts(cells) if texts is None else texts
        codes = {code: self._code(code, cells) for code in self.plan.list_codes()}
        logits = [output for text in texts for output in text]
        for term in plan.terms:
            found = self._term(term, codes, cells)
            if found is not None:
                logits.append(found)
        # where every class is impossible, the prior is the answer, as in predict_proba
        joint = graph("Add", graph.add(logits), plan.constant[None]) if logits else self._repeat(plan.constant, cells)
        ruled_out = graph("IsInf", graph("ReduceMax", joint, axes=[1], keepdims=1), detect_positive=0)
        answers = graph("Softmax", graph("Where", ruled_out, plan.fallback[None], joint), axis=1)
        if plan.share == 1:
            return answers
        return graph("Add", graph("Mul", answers, plan.share), (1 - plan.share) * plan.base[None])

    def _repeat(self, values: Array, cells: Sequence[str]) -> str:
        rows = self.graph("Shape", cells[0], start=0, end=1)
        return self.graph("Expand", values[None], self.graph("Concat", rows, np.array([len(values)]), axis=0))

    def _term(self, term: steps.PlanTerm, codes: dict[int, str], cells: Sequence[str]) -> str | None:
        graph = self.graph
        match term:
            case steps.CodeTerm(code, table):
                return self._look_up(table, codes[code])
            case steps.PairTerm((a, b), (first, second), table):
                flat = table[first][:, second].reshape(-1, table.shape[2])
                at = graph("Add", graph("Mul", codes[a], np.array(len(second))), codes[b])
                return self._look_up(flat, at)
            case steps.Linear(numbers, slopes):
                return graph("MatMul", self._stack(numbers, cells), slopes)
            case steps.Quadratic(numbers, means, roots, constants, factor):
                scores, sums = self._stack(numbers, cells), []
                for mean, root in zip(means, roots, strict=True):
                    away = graph("MatMul", graph("Sub", scores, mean[None]), np.ascontiguousarray(root.T))
                    sums.append(graph.total(graph("Mul", away, away), 1, keep=True))
                return graph("Sub", constants[None], graph("Mul", graph("Concat", *sums, axis=1), factor / 2))
            case steps.Trees():
                return self._trees(term, codes)
            case steps.Density():
                return self._density(term, cells[term.column])
        return None

    def _look_up(self, table: Array, code: str) -> str:
        return self.graph("Squeeze", self.graph("Gather", np.asarray(table), code), np.array([1]))

    def _stack(self, numbers: Sequence[int], cells: Sequence[str]) -> str:
        return self.graph("Concat", *(self._number(n, cells) for n in numbers), axis=1)

    def _trees(self, term: steps.Trees, codes: dict[int, str]) -> str:
        graph, (trees, depth, _) = self.graph, term.tests.shape
        used = sorted(set(term.tests[..., 0].ravel().tolist()))
        every = graph("Concat", *(codes[code] for code in used), axis=1)
        place = np.searchsorted(used, term.tests[..., 0]).ravel()
        tested = graph("Gather", every, place, axis=1)  # (rows, tests)
        values = term.tests[..., 1].reshape(1, -1)
        is_number = np.array([isinstance(self.plan.codes[used[k]], steps.Bins) for k in place])[None]
        above = graph("And", graph("Greater", tested, values), is_number)
        passed = graph("Or", above, graph("And", graph("Equal", tested, values), ~is_number))
        bits = graph.reshape(graph.as_integers(passed), -1, trees, depth)
        leaf = graph.total(graph("Mul", bits, 1 << np.arange(depth)[::-1].copy()), 2)  # (rows, trees)
        at = graph("Add", leaf, np.arange(trees)[None] << depth)
        return graph.total(graph("Gather", term.leaves.reshape(trees << depth, -1), at), 1)

    def _density(self, term: steps.Density, cell: str) -> str:
        """(rows, classes): the log density, 0 for a missing cell."""
        graph, p = self.graph, {name: value[None] for name, value in term.parameters.items()}
        whole = graph("Equal", graph("Floor", cell), cell)
        count = graph(
            "And", whole, graph("And", graph("GreaterOrEqual", cell, 0.0), graph("LessOrEqual", cell, 2.0**53))
        )
        positive = graph("Greater", cell, 0.0)
        safe = graph("Where", positive, cell, 1.0)
        inside = positive
        if term.form in ("student", "normal"):
            z = graph("Sub", graph("Div", cell, term.unit), p["centre"])
            z = graph("Max", graph("Min", z, MAX_ABS_Z), -MAX_ABS_Z)
            square, inside = graph("Mul", graph("Mul", z, z), p["precision"]), ""
            grown = (
                graph("Mul", graph.log_of_one_and(square), p["power"]) if "power" in p else graph("Mul", square, 0.5)
            )
            found = graph("Sub", p["constant"], grown)
        elif term.form == "gamma":
            x = graph("Unsqueeze", safe, np.array([2]))  # (rows, 1, 1), for (1, classes, nodes)
            shrunk = graph("Mul", graph.log_of_one_and(graph("Div", x, p["scale"])), p["power"])
            nodes = graph("Add", p["constant"], graph("Sub", graph("Mul", graph("Log", x), p["shape"] - 1), shrunk))
            top = graph("ReduceMax", nodes, axes=[2], keepdims=1)
            total = graph.total(graph("Exp", graph("Sub", nodes, top)), 2)
            found = graph("Add", graph("Squeeze", top, np.array([2])), graph("Log", total))
        elif term.form == "amount":
            slope = graph(
                "Sub", graph("Mul", graph("Log", safe), p["shape"][..., 0] - 1), graph("Mul", safe, p["rate"][..., 0])
            )
            found = graph("Add", p["constant"][..., 0], slope)
        else:
            safe, inside = graph("Where", count, cell, 0.0), count
            found = graph(
                "Add", p["constant"], graph("Mul", safe, p["slope"] * (-1.0 if term.form == "events" else 1.0))
            )
            if term.form == "events":
                found = graph("Add", found, self._log_gamma(graph("Add", safe, p["shape"])))
        if inside:
            found = graph("Where", inside, found, -np.inf)
        if term.is_relative:
            top = graph("ReduceMax", found, axes=[1], keepdims=1)
            top = graph("Where", graph("IsInf", top), 0.0, top)
            found = graph("Mul", graph("Max", graph("Sub", found, top), -1e4), term.weight)
        return graph("Where", graph("IsNaN", cell), 0.0, found)

    def _log_gamma(self, z: str) -> str:
        """Stirling's series above 8, and the recurrence below."""
        graph = self.graph
        s = graph("Add", z, 8.0)
        inverse = graph("Reciprocal", s)
        square, series = graph("Mul", inverse, inverse), graph("Mul", inverse, 0.0)
        for k in SERIES_OF_LOG_GAMMA[::-1]:
            series = graph("Add", graph("Mul", series, square), k)
        series = graph("Mul", series, inverse)
        below = graph.add([graph("Log", graph("Add", z, float(i))) for i in range(8)])
        main = graph("Sub", graph("Mul", graph("Sub", s, 0.5), graph("Log", s)), s)
        return graph("Sub", graph("Add", graph("Add", main, series), 0.5 * np.log(2 * np.pi)), below)

    def _score_texts(self, cells: Sequence[str]) -> list[tuple[str, str]]:
        """The tempered evidence of each text, and the weights of its features, from its tokens."""
        graph, found = self.graph, []
        for term in self.plan.terms:
            if not isinstance(term, steps.TextSum):
                continue
            step = self.plan.tokens[term.tokens]
            size, cell = len(step.words), cells[step.column]
            keys, codes = (step.words, [*range(size)]) if size else ([""], [0])
            at = self._encode_strings(cell, keys, codes, size)
            rows = graph("Shape", cell, start=0, end=1)
            empty = graph("Expand", np.zeros((1, size + 1)), graph("Concat", rows, np.array([size + 1]), axis=0))
            ones = graph("Expand", np.ones((1, 1)), graph("Shape", at))
            counted = graph("ScatterElements", empty, at, ones, axis=1, reduction="add")
            counted = graph("Slice", counted, np.array([0]), np.array([size]), np.array([1]))
            shown = graph("Min", counted, 1.0)
            score = graph("Add", graph("MatMul", shown if term.is_binary else counted, term.table), term.constant[None])
            letters = f"{cell} letters"
            if term.skips_empty:
                score = graph("Where", graph("Equal", letters, 0.0), 0.0, score)
            if term.is_relative:
                length = graph("Pow", graph("Div", graph("Max", letters, 50.0), 1000.0), -term.exponent)
                apart = graph("Sub", score, graph("ReduceMax", score, axes=[1], keepdims=1))
                score = graph("Mul", graph("Mul", graph("Max", apart, -1e4), length), term.weight)
            chosen = graph("Mul", shown, term.feature.astype(float)[None])
            norm = graph("Sqrt", graph("Max", graph.total(chosen, 1, keep=True), 1.0))
            found.append((score, graph("Div", graph("MatMul", chosen, term.feature_table[:size]), norm)))
        return found

    # -- rows with gaps, and the limit ----------------------------------------------------------------------------

    def _score_with_gaps(self, cells: list[str]) -> str:
        """Complete rows with gaps by their nearest training rows, score all rows at once, and pool."""
        graph, gaps = self.graph, self.plan.gaps
        assert gaps is not None
        places = [self.plan.codes[code].column for code in gaps.codes]
        missing = {j: self._is_missing(cells, places[j]) for j in range(len(places))}
        has_gap = [graph.as_integers(missing[j]) for j in gaps.columns]
        no_text = [graph.as_integers(self._is_missing(cells, place)) for place in gaps.texts]
        n_gaps = graph.reshape(graph.add_integers(has_gap + (no_text if gaps.only_together else [])), -1)
        if gaps.only_together:
            n_gaps = graph.as_integers(graph("Equal", n_gaps, np.array(len(has_gap + no_text))))
        at = graph("Squeeze", graph("NonZero", n_gaps), np.array([0]))  # (gaps,)
        texts = self._score_texts(cells)
        if len(gaps.weight):
            found, mean = self._answer_completed(cells, texts, missing, places, at)
        else:
            found = self._score(cells, texts)
            mean = graph("Log", graph("Gather", found, at))
        terms = [graph("Gather", score, at) for score, _ in texts]
        terms += [self._look_up(t.table, graph("Gather", self._code(t.code, cells), at)) for t in gaps.tables]
        tempered = graph("Add", graph.add(terms), gaps.constant[None])
        lacking = graph.add_integers(has_gap + no_text)
        every = [*(places[j] for j in gaps.counted), *(tokens.column for tokens in self.plan.tokens)]
        absent = graph.add_integers([graph.as_integers(self._is_missing(cells, place)) for place in every])
        counted = graph("Add", graph("Sub", np.array(len(every)), absent), lacking)
        m = graph("Pow", graph("Div", graph.as_doubles(lacking), graph.as_doubles(counted)), float(gaps.power))
        m = graph("Gather", m, at)
        pooled = graph("Add", graph("Mul", mean, graph("Sub", 1.0, m)), graph("Mul", tempered, m))
        answers = graph("Softmax", pooled, axis=1)
        return graph("ScatterND", found, graph("Unsqueeze", at, np.array([1])), answers)

    def _answer_completed(
        self, cells: list[str], texts: list[tuple[str, str]], missing: dict[int, str], places: list[int], at: str
    ) -> tuple[str, str]:
        """The answers to rows as they are, and the log of the mean answer to the completions of rows with gaps."""
        graph, gaps = self.graph, self.plan.gaps
        assert gaps is not None
        size, k = len(gaps.weight), min(gaps.n_nearest, len(gaps.weight))
        keys = []
        for j in range(len(places)):
            kept = np.array([[encode_cell(self.plan.codes[gaps.ranks[j]], cell) for cell in gaps.cells[j]]])
            away = graph("Sub", graph("Gather", self._code(gaps.ranks[j], cells), at), kept)  # (gaps, kept rows)
            key = graph("Mul", away, away)
            if isinstance(self.plan.codes[gaps.ranks[j]], steps.Values):
                key = graph("Where", graph("Equal", away, np.array(0)), np.array(0), np.array(gaps.other_label))
            if j in gaps.columns:
                key = graph("Where", graph("Gather", missing[j], at), np.array(0), key)
            keys.append(key)
        key = graph("Add", graph("Mul", graph.add_integers(keys), np.array(size)), np.arange(size)[None])
        nearest = f"nearest{len(graph.nodes)}"
        graph.nodes.append(self.onnx.helper.make_node(
            "TopK", [key, graph.add_constant(np.array([k]))], [f"{nearest}_keys", nearest], axis=1, largest=0,
        ))  # fmt: skip
        flat = graph.reshape(nearest, -1)
        shape = graph("Shape", nearest)
        rows = graph.reshape(graph("Expand", graph("Unsqueeze", at, np.array([1])), shape), -1)
        joined = []
        for place, cell in enumerate(cells):
            more = graph("Gather", cell, rows)
            if place in [places[j] for j in gaps.columns]:
                j = places.index(place)
                is_number = self.plan.columns[place].kind == "number"
                fill = np.nan if is_number else ""
                kept = np.array(
                    [fill if cell is None else cell for cell in gaps.cells[j]], dtype=float if is_number else object
                )
                filled = graph("Gather", kept[:, None], flat)
                more = graph("Where", graph("Gather", missing[j], rows), filled, more)
            joined.append(graph("Concat", cell, more, axis=0))
        both = [tuple(graph("Concat", part, graph("Gather", part, rows), axis=0) for part in text) for text in texts]
        answers = self._score(joined, both)  # type: ignore[arg-type]
        n_rows = graph("Shape", cells[0], start=0, end=1)
        found = graph("Slice", answers, np.array([0]), n_rows, np.array([0]))
        rest = graph("Slice", answers, n_rows, np.array([np.iinfo(np.int64).max]), np.array([0]))
        rest = graph.reshape(rest, -1, k, len(self.plan.classes))
        weight = graph("Gather", gaps.weight, nearest)  # (gaps, nearest)
        share = graph("Unsqueeze", graph("Div", weight, graph.total(weight, 1, keep=True)), np.array([2]))
        return found, graph("Log", graph.total(graph("Mul", rest, share), 1))

    def _limit(self, answers: str) -> str:
        graph, limit = self.graph, self.plan.limit
        assert limit is not None
        best = graph("ReduceMax", answers, axes=[1], keepdims=1)
        rivals = graph("Gather", np.maximum(1 - limit.base, 1e-300), graph("ArgMax", answers, axis=1, keepdims=1))
        least = graph("Div", limit.base[None] / (limit.n_rows + 1), rivals)
        limited = graph("Where", graph("Equal", answers, best), answers, graph("Max", answers, least))
        return graph("Div", limited, graph.total(limited, 1, keep=True))
