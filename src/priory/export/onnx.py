"""A scoring plan as an ONNX graph, for runtimes without Python.

A model of numbers takes ``X``, doubles (rows, columns) with NaN for missing cells. With labels or texts there is one
input for each column: doubles (rows, 1), strings (rows, 1) with "" for missing cells, and of a text its tokens (rows,
tokens) with "" behind them, and its length in letters as "NAME letters" (rows, 1). Outputs are ``label`` and
``probabilities``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from types import ModuleType
from typing import Any

import numpy as np
from numpy import ndarray as Array

import priory
from priory.errors import DataError, MissingDependencyError
from priory.export import scoring_plan as steps
from priory.export.plan_sources import compile_plan
from priory.export.scoring_plan import ScoringPlan, encode_cell

ONNX_OPSET, ML_OPSET = 17, 3


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


def _operator(name: str, swapped: bool = False) -> Callable[[Node, Input], Node]:
    def apply(node: Node, other: Input) -> Node:
        return node.graph(name, other, node) if swapped else node.graph(name, node, other)

    return apply


class Node:
    """An output of a graph, with the operators of arrays; whole numbers are int64, others double."""

    __array_ufunc__ = None  # arrays leave operators to nodes

    def __init__(self, graph: OnnxGraph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __radd__ = _operator("Add"), _operator("Add", swapped=True)
    __sub__, __rsub__ = _operator("Sub"), _operator("Sub", swapped=True)
    __mul__, __rmul__ = _operator("Mul"), _operator("Mul", swapped=True)
    __rtruediv__ = _operator("Div", swapped=True)
    __truediv__, __pow__, __matmul__ = _operator("Div"), _operator("Pow"), _operator("MatMul")
    __gt__, __ge__, __le__ = _operator("Greater"), _operator("GreaterOrEqual"), _operator("LessOrEqual")
    __and__, __or__, equals, pick = _operator("And"), _operator("Or"), _operator("Equal"), _operator("Gather")

    def total(self, axis: int, keep: bool = False) -> Node:
        """Sum over an axis."""
        return self.graph("ReduceSum", self, np.array([axis]), keepdims=int(keep))

    def largest(self, axis: int) -> Node:
        """The largest over an axis, which stays."""
        return self.graph("ReduceMax", self, axes=[axis], keepdims=1)

    def clip(self, low: float, high: float) -> Node:
        """No less than ``low`` and no more than ``high``."""
        return self.graph("Max", self.graph("Min", self, high), low)

    def choose(self, then: Input, otherwise: Input) -> Node:
        """One value where this is true, and another where not."""
        return self.graph("Where", self, then, otherwise)

    def guard(self, inside: Node, otherwise: float) -> Node:
        """The same inside, where alone it is used."""
        return inside.choose(self, otherwise)

    def name_once(self, inside: Node | None = None) -> Node:
        """The same, which is used several times."""
        return self

    def add_axis(self) -> Node:
        """With an axis of nodes."""
        return self.graph("Unsqueeze", self, np.array([2]))

    def drop_axis(self, axis: int = 2) -> Node:
        """Without an axis of one."""
        return self.graph("Squeeze", self, np.array([axis]))

    def call(self, function: str) -> Node:
        """A function of one number: Log, Exp, Floor or IsNaN."""
        return self.graph(function, self)

    def reshape(self, *shape: int) -> Node:
        """Reshape; 0 keeps an axis."""
        return self.graph("Reshape", self, np.array(shape, dtype=np.int64))

    def cast(self, kind: type) -> Node:
        """Cast to int64 or double."""
        types = self.graph.onnx.TensorProto
        return self.graph("Cast", self, to=types.INT64 if kind is int else types.DOUBLE)


class OnnxGraph:
    """Collects nodes and constants; a call adds a node and returns its output."""

    def __init__(self, onnx: ModuleType, prefix: str) -> None:
        self.onnx, self.prefix = onnx, prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_constant(self, value: Array) -> Node:
        name = f"{self.prefix}c{len(self.constants)}"
        if value.dtype.kind in "OU":
            cells = [str(v).encode() for v in value.ravel()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, value.shape, cells)
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        self.constants.append(tensor)
        return Node(self, name)

    def __call__(self, operator: str, *inputs: Input, outputs: Sequence[str] = (), **attributes: object) -> Node:
        """Add a node with these inputs: outputs of others, or numbers and arrays, which become constants."""
        nodes = [i if isinstance(i, Node) else self.add_constant(np.asarray(i)) for i in inputs]
        names = outputs or [f"{self.prefix}n{len(self.nodes)}"]
        self.nodes.append(self.onnx.helper.make_node(operator, [node.name for node in nodes], names, **attributes))
        return Node(self, names[-1])


Input = Node | float | Array


class PlanGraph:
    """The walk of one plan as nodes."""

    def __init__(self, onnx: ModuleType, plan: ScoringPlan) -> None:
        # no column may have the name of an output, or of a node
        names = [column.name for column in plan.columns]
        self.names = [f"{name} (column)" if name in ("label", "probabilities") else name for name in names]
        prefix = next(mark for k in range(1, 99) if not any(n.startswith(mark := "_" * k) for n in self.names))
        self.graph, self.plan, self.onnx = OnnxGraph(onnx, prefix), plan, onnx
        self.inputs: list[Any] = []

    def build(self) -> Any:
        """The finished model."""
        graph, plan = self.graph, self.plan
        cells = self._declare_inputs()
        if plan.gaps is None:
            found = self._score(cells, self._score_texts(cells))
        else:
            found = self._score_with_gaps(cells, plan.gaps)
        if plan.limit is not None:
            found = self._limit(found, plan.limit)
        with np.errstate(over="ignore"):
            found = found * np.exp(np.where(np.isfinite(plan.shift), plan.shift, -np.inf))[None]
        answers = graph("Div", found, found.total(1, keep=True), outputs=["probabilities"])
        classes = np.asarray(plan.classes)
        # ONNX labels are integers, bools or strings
        labels = classes.astype(np.int64) if classes.dtype.kind in "iuf" else classes
        graph("Gather", labels, graph("ArgMax", answers, axis=1, keepdims=0), outputs=["label"])
        return self._build_proto(labels)

    def _declare_inputs(self) -> list[Node]:
        types, value, columns = self.onnx.TensorProto, self.onnx.helper.make_tensor_value_info, self.plan.columns
        if all(column.kind == "number" for column in columns):
            self.inputs = [value("X", types.DOUBLE, ["rows", len(columns)])]
            return [self.graph("Gather", self._input("X"), np.array([j]), axis=1) for j in range(len(columns))]
        for name, column in zip(self.names, columns, strict=True):
            kind = types.DOUBLE if column.kind == "number" else types.STRING
            self.inputs.append(value(name, kind, ["rows", None if column.kind == "text" else 1]))
            if column.kind == "text":
                self.inputs.append(value(f"{name} letters", types.DOUBLE, ["rows", 1]))
        return [self._input(name) for name in self.names]

    def _input(self, name: str) -> Node:
        return Node(self.graph, name)

    def _letters(self, column: int) -> Node:
        """(rows, 1): the length of a text."""
        return self._input(f"{self.names[column]} letters")

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

    def _is_missing(self, cells: Sequence[Node], column: int) -> Node:
        """(rows, 1): whether a cell is missing."""
        kind = self.plan.columns[column].kind
        if kind == "label":
            return self._encode_strings(cells[column], [""], [1], 0).equals(1)
        return cells[column].call("IsNaN") if kind == "number" else self._letters(column).equals(0.0)

    def _encode_strings(self, cell: Node, keys: list[str], codes: list[int], other: int) -> Node:
        """The code of each string."""
        given: dict[str, Any] = {"keys_strings": keys, "values_int64s": codes, "default_int64": other}
        return self.graph("LabelEncoder", cell, domain="ai.onnx.ml", **given)

    def _count_reached(self, cuts: Array, cell: Node) -> Node:
        """(rows, 1): how many of the cuts a number reaches; 0 if it is missing."""
        # infinity must not reach the last cut, which is there for columns without any
        bounded = self.graph("Min", cell, np.finfo(float).max)
        return (bounded >= np.append(cuts, np.inf)[None]).cast(int).total(1, keep=True)

    def _code(self, code: int, cells: Sequence[Node]) -> Node:
        """(rows, 1): the code of a cell."""
        step, graph = self.plan.codes[code], self.graph
        cell = cells[step.column]
        if isinstance(step, steps.Bins):
            return cell.call("IsNaN").choose(step.missing, self._count_reached(step.cuts, cell))
        size = len(step.values)
        if self.plan.columns[step.column].kind != "number":
            return self._encode_strings(cell, [*step.values, ""], [*range(size + 1)], size + 1)
        same = cell.equals(np.append(np.asarray(step.values, dtype=float), np.nan)[None]).cast(float)
        place = graph("ArgMax", same, axis=1, keepdims=1)
        found = (same.total(1, keep=True) > 0.0).choose(place, size + 1)
        return cell.call("IsNaN").choose(size, found)

    def _number(self, number: int, cells: Sequence[Node]) -> Node:
        """(rows, 1): a number as a curve has it, or in standard units."""
        step, missing = self.plan.numbers[number], 0.0
        cell = cells[step.column]
        if isinstance(step, steps.Polyline):
            x, y, missing = step.knots, step.heights, step.missing
            slopes, at = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]]), self._count_reached(x, cell)
            start, height, slope = (
                self.graph("Gather", values, at) for values in (np.append(x[0], x), np.append(y[0], y), slopes)
            )
            found = height + slope * (cell.clip(x[0], x[-1]) - start)
        else:
            # by a power of two, so that the centre is not near 0 where the unit is: onnxruntime drops such constants
            scale = np.ldexp(1.0, -np.frexp(step.unit)[1])
            found = (cell * scale - step.centre * scale) / (step.unit * scale)
            found = found.clip(-step.limit, step.limit) if np.isfinite(step.limit) else found
        return cell.call("IsNaN").choose(missing, found)

    # -- terms ----------------------------------------------------------------------------------------------------

    def _score(self, cells: Sequence[Node], texts: Sequence[tuple[Node, Node]]) -> Node:
        """(rows, classes): the probabilities of the terms with the base rate."""
        plan = self.plan
        codes = {code: self._code(code, cells) for code in plan.list_codes()}
        logits = [output for text in texts for output in text]
        logits += [self._term(term, codes, cells) for term in plan.terms if not isinstance(term, steps.TextSum)]
        joint: Any = sum(logits or [self._make_zeros(cells, 1)], start=plan.constant[None])
        # where every class is impossible, the prior is the answer, as in predict_proba
        ruled_out = self.graph("IsInf", joint.largest(1), detect_positive=0)
        answers = self.graph("Softmax", ruled_out.choose(plan.fallback[None], joint), axis=1)
        return answers if plan.share == 1 else answers * plan.share + (1 - plan.share) * plan.base[None]

    def _make_zeros(self, cells: Sequence[Node], width: int) -> Node:
        rows = self.graph("Shape", cells[0], start=0, end=1)
        return self.graph("Expand", np.zeros((1, width)), self.graph("Concat", rows, np.array([width]), axis=0))

    def _term(self, term: steps.PlanTerm, codes: dict[int, Node], cells: Sequence[Node]) -> Any:
        """(rows, classes): what a term adds to the logits."""
        match term:
            case steps.CodeTerm(code, table):
                return self._look_up(table, codes[code])
            case steps.PairTerm((a, b), (first, second), table):
                flat = table[first][:, second].reshape(-1, table.shape[2])
                return self._look_up(flat, codes[a] * len(second) + codes[b])
            case steps.Linear(numbers, slopes):
                return self._stack(numbers, cells) @ slopes
            case steps.Quadratic(numbers, means, roots, constants, factor):
                scores = self._stack(numbers, cells)
                away = [(scores - m[None]) @ np.ascontiguousarray(r.T) for m, r in zip(means, roots, strict=True)]
                squares = self.graph("Concat", *((a * a).total(1, keep=True) for a in away), axis=1)
                return constants[None] - squares * (factor / 2)
            case steps.Trees():
                return self._trees(term, codes)
            case steps.Density():
                return steps.log_density(term, cells[term.column], cells[term.column].call("IsNaN"))

    def _look_up(self, table: Array, code: Node) -> Node:
        return self.graph("Gather", np.asarray(table), code).drop_axis(1)

    def _stack(self, numbers: Sequence[int], cells: Sequence[Node]) -> Node:
        return self.graph("Concat", *(self._number(n, cells) for n in numbers), axis=1)

    def _trees(self, term: steps.Trees, codes: dict[int, Node]) -> Node:
        trees, depth, _ = term.tests.shape
        used = sorted(set(term.tests[..., 0].ravel().tolist()))
        place = np.searchsorted(used, term.tests[..., 0]).ravel()
        every = self.graph("Concat", *(codes[code] for code in used), axis=1)
        tested = self.graph("Gather", every, place, axis=1)  # (rows, tests)
        values = term.tests[..., 1].reshape(1, -1)
        is_number = np.array([isinstance(self.plan.codes[used[k]], steps.Bins) for k in place])[None]
        passed = ((tested > values) & is_number) | (tested.equals(values) & ~is_number)
        bits = passed.cast(int).reshape(-1, trees, depth)
        leaf = (bits * (1 << np.arange(depth)[::-1].copy())).total(2)  # (rows, trees)
        leaves = self.graph("Gather", term.leaves.reshape(trees << depth, -1), leaf + (np.arange(trees)[None] << depth))
        return leaves.total(1)

    def _score_texts(self, cells: Sequence[Node]) -> list[tuple[Node, Node]]:
        """The tempered evidence of each text, and the weights of its features, from its tokens."""
        graph, found = self.graph, []
        for term in self.plan.terms:
            if not isinstance(term, steps.TextSum):
                continue
            step = self.plan.tokens[term.tokens]
            size, cell, letters = len(step.words), cells[step.column], self._letters(step.column)
            at = self._encode_strings(cell, step.words or [""], [*range(size or 1)], size)
            ones = graph("Expand", np.ones((1, 1)), graph("Shape", at))
            counted = graph("ScatterElements", self._make_zeros(cells, size + 1), at, ones, axis=1, reduction="add")
            counted = graph("Slice", counted, np.array([0]), np.array([size]), np.array([1]))
            shown = graph("Min", counted, 1.0)
            score = (shown if term.is_binary else counted) @ term.table + term.constant[None]
            if term.skips_empty:
                score = letters.equals(0.0).choose(0.0, score)
            if term.is_relative:
                length = (graph("Max", letters, 50.0) / 1000.0) ** -term.exponent
                score = graph("Max", score - score.largest(1), -1e4) * length * term.weight
            chosen = shown * term.feature.astype(float)[None]
            norm = graph("Sqrt", graph("Max", chosen.total(1, keep=True), 1.0))
            found.append((score, (chosen @ term.feature_table[:size]) / norm))
        return found

    # -- rows with gaps, and the limit ----------------------------------------------------------------------------

    def _score_with_gaps(self, cells: list[Node], gaps: steps.Gaps) -> Node:
        """Complete rows with gaps by their nearest training rows, score all rows at once, and pool."""
        graph, texts = self.graph, self._score_texts(cells)
        places = [self.plan.codes[code].column for code in gaps.codes]
        missing = [self._is_missing(cells, place) for place in places]
        has_gap = [missing[j].cast(int) for j in gaps.columns]
        no_text = [self._is_missing(cells, place).cast(int) for place in gaps.texts]
        n_gaps = reduce(add, has_gap + (no_text if gaps.only_together else [])).reshape(-1)
        if gaps.only_together:
            n_gaps = n_gaps.equals(len(has_gap + no_text)).cast(int)
        at = graph("NonZero", n_gaps).drop_axis(0)  # (gaps,)
        if len(gaps.weight):
            found, mean = self._answer_completed(cells, texts, missing, places, at, gaps)
        else:
            found = self._score(cells, texts)
            mean = found.pick(at).call("Log")
        terms = [score.pick(at) for score, _ in texts]
        terms += [self._look_up(t.table, self._code(t.code, cells).pick(at)) for t in gaps.tables]
        tempered = reduce(add, terms) + gaps.constant[None]
        lacking = reduce(add, has_gap + no_text)
        every = [*(places[j] for j in gaps.counted), *(tokens.column for tokens in self.plan.tokens)]
        absent = reduce(add, [self._is_missing(cells, place).cast(int) for place in every])
        counted = len(every) - absent + lacking
        m = ((lacking.cast(float) / counted.cast(float)) ** float(gaps.power)).pick(at)
        answers = graph("Softmax", mean * (1.0 - m) + tempered * m, axis=1)
        return graph("ScatterND", found, graph("Unsqueeze", at, np.array([1])), answers)

    def _answer_completed(
        self,
        cells: list[Node],
        texts: list[tuple[Node, Node]],
        missing: list[Node],
        places: list[int],
        at: Node,
        gaps: steps.Gaps,
    ) -> tuple[Node, Node]:
        """The answers to rows as they are, and the log of the mean answer to the completions of rows with gaps."""
        graph, size, k, keys = self.graph, len(gaps.weight), min(gaps.n_nearest, len(gaps.weight)), []
        for j in range(len(places)):
            kept = np.array([[encode_cell(self.plan.codes[gaps.ranks[j]], cell) for cell in gaps.cells[j]]])
            away = self._code(gaps.ranks[j], cells).pick(at) - kept  # (gaps, kept rows)
            is_value = isinstance(self.plan.codes[gaps.ranks[j]], steps.Values)
            key = away.equals(0).choose(0, gaps.other_label) if is_value else away * away
            keys.append(missing[j].pick(at).choose(0, key) if j in gaps.columns else key)
        key = reduce(add, keys) * size + np.arange(size)[None]
        names = [f"nearest{len(graph.nodes)}_keys", f"nearest{len(graph.nodes)}"]
        nearest = graph("TopK", key, np.array([k]), outputs=names, axis=1, largest=0)
        column = graph("Unsqueeze", at, np.array([1]))
        rows = graph("Expand", column, graph("Shape", nearest)).reshape(-1)
        joined = []
        for place, cell in enumerate(cells):
            more = cell.pick(rows)
            if place in [places[j] for j in gaps.columns]:
                j, is_number = places.index(place), self.plan.columns[place].kind == "number"
                shown = [("", np.nan)[is_number] if value is None else value for value in gaps.cells[j]]
                kept = np.array(shown, dtype=float if is_number else object)[:, None]
                more = missing[j].pick(rows).choose(graph("Gather", kept, nearest.reshape(-1)), more)
            joined.append(graph("Concat", cell, more, axis=0))
        answers = self._score(joined, [(self._repeat(a, rows), self._repeat(b, rows)) for a, b in texts])
        n_rows = graph("Shape", cells[0], start=0, end=1)
        found = graph("Slice", answers, np.array([0]), n_rows, np.array([0]))
        rest = graph("Slice", answers, n_rows, np.array([np.iinfo(np.int64).max]), np.array([0]))
        weight = graph("Gather", gaps.weight, nearest)  # (gaps, nearest)
        share = (weight / weight.total(1, keep=True)).add_axis()
        return found, (rest.reshape(-1, k, len(self.plan.classes)) * share).total(1).call("Log")

    def _repeat(self, values: Node, rows: Node) -> Node:
        """The values of all rows, and once more of some."""
        return self.graph("Concat", values, values.pick(rows), axis=0)

    def _limit(self, answers: Node, limit: steps.Limit) -> Node:
        best = self.graph("ArgMax", answers, axis=1, keepdims=1)
        least = limit.base[None] / (limit.n_rows + 1) / self.graph("Gather", np.maximum(1 - limit.base, 1e-300), best)
        limited = answers.equals(answers.largest(1)).choose(answers, self.graph("Max", answers, least))
        return limited / limited.total(1, keep=True)
