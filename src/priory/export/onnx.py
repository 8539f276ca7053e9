"""A fitted classifier as an ONNX graph of plain operators, for places where there is no Python.

The graph takes ``X``, a table of doubles (rows, columns), missing cells NaN, and gives ``label`` and ``probabilities``.
What it can hold: the classifiers of arrays that score by products or bells, and `NaiveBayes` on numbers whose columns
are explained by Bernoulli, Poisson, Gaussian or Histogram.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import priory
from priory.core.typing import Array
from priory.errors import DataError, Missing
from priory.estimators.naive_bayes import NaiveBayes
from priory.families import Bernoulli, Gaussian, Histogram, Poisson
from priory.families.poisson import LARGEST
from priory.models import naive_bayes as model
from priory.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB, PoissonNB

OPSET = 17
STATE = {"seen_", "n_features_in_", "feature_names_in_", "clock_", "_schema", "_kind", "notes"}


class Graph:
    """Nodes and constants; every method adds a node and gives the name of what comes out of it."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
            tensor = self.onnx.helper.make_tensor(
                name, self.onnx.TensorProto.STRING, value.shape, [str(v).encode() for v in value]
            )
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        self.constants.append(tensor)
        return name

    def __call__(self, operator: str, *inputs: Any, output: str = "", **attributes: Any) -> str:
        names = [i if isinstance(i, str) else self.constant(np.asarray(i)) for i in inputs]
        name = output or f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def columns(self, places: Array) -> str:
        """Some columns of the table."""
        return self("Gather", "X", np.asarray(places, dtype=np.int64), axis=1)

    def by_class(self, x: str) -> str:
        """(rows, columns) as (rows, 1, columns), to be held against (classes, columns)."""
        return self("Unsqueeze", x, np.array([1]))

    def summed(self, terms: str) -> str:
        """Over the columns, the last axis."""
        return self("ReduceSum", terms, np.array([-1]), keepdims=0)


def to_onnx(fitted: Any) -> Any:
    """The model as an ``onnx.ModelProto``; its probabilities are those of ``predict_proba`` to rounding.

    Needs the extra ``onnx``. What ONNX has no operators for is refused, with what to do instead.
    """
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise Missing("to_onnx needs onnx: pip install 'priory[onnx]'.") from None
    joint_of = JOINTS.get(type(fitted))
    if joint_of is None:
        raise DataError(
            f"a {type(fitted).__name__} has no ONNX form; these have: {', '.join(kind.__name__ for kind in JOINTS)}."
        )
    more = sorted(vars(fitted).keys() - fitted.get_params(deep=False).keys() - STATE)
    if more:
        raise DataError(f"{more[0]} changes what the model answers and has no ONNX form; fit the model without it.")
    graph, classes = Graph(onnx), fitted.classes_
    log_prior = fitted._log_prior()[None]
    joint = graph("Add", joint_of(fitted, graph), log_prior)
    ruled_out = graph("IsInf", graph("ReduceMax", joint, axes=[1], keepdims=1), detect_positive=0)
    graph("Softmax", graph("Where", ruled_out, log_prior, joint), axis=1, output="probabilities")
    best = graph("ArgMax", "probabilities", axis=1, keepdims=0)
    labels = classes.astype(np.int64) if classes.dtype.kind in "iuf" else classes
    graph("Gather", graph.constant(labels), best, output="label")
    return _proto(onnx, graph, fitted.n_features_in_, labels)


def _proto(onnx: Any, graph: Graph, columns: int, labels: Array) -> Any:
    kinds = onnx.TensorProto
    label = {"b": kinds.BOOL, "i": kinds.INT64}.get(labels.dtype.kind, kinds.STRING)
    value = onnx.helper.make_tensor_value_info
    outputs = [
        value("label", label, ["rows"]),
        value("probabilities", kinds.DOUBLE, ["rows", len(labels)]),
    ]
    made = onnx.helper.make_graph(
        graph.nodes, "priory", [value("X", kinds.DOUBLE, ["rows", columns])], outputs, graph.constants
    )
    proto = onnx.helper.make_model(
        made,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=8,
        producer_name="priory",
        producer_version=priory.__version__,
    )
    onnx.checker.check_model(proto)
    return proto


# -- log p(x | c), rows by classes -------------------------------------------------------------------------------------


def _of_table(fitted: NaiveBayes, graph: Graph) -> str:
    schema = fitted._schema
    place = {name: j for j, name in enumerate(schema.names)}
    scores = []
    for choice in model.chosen(schema, fitted.seen_, fitted.average):
        names = schema.blocks[choice.block].names
        written = TERMS.get(type(choice.family))
        if written is None or choice.matters is not None:
            what = "averaging over columns" if choice.matters is not None else type(choice.family).__name__
            raise DataError(f"column {names[choice.places[0]]!r}: {what} has no ONNX form; declare another family.")
        x = graph.columns(np.array([place[names[j]] for j in choice.places]))
        scores.append(written(graph, x, choice.family, choice.seen, fitted.estimate))
    return graph("Sum", *scores)


def _bernoulli(graph: Graph, x: str, family: Bernoulli, seen: Any, estimate: str) -> str:
    yes, no = (family.log_likelihood(seen, np.full((1, seen.n.shape[-1]), v), estimate)[0] for v in (1.0, 0.0))
    cells = graph.by_class(x)
    known = graph("Where", graph("Equal", cells, 0.0), no, graph("Where", graph("IsNaN", cells), 0.0, -np.inf))
    return graph.summed(graph("Where", graph("Equal", cells, 1.0), yes, known))


def _poisson(graph: Graph, x: str, family: Poisson, seen: Any, estimate: str) -> str:
    """x log θ - θ; log x! is the same for all classes."""
    if estimate == "predictive":
        raise DataError("a rate that is integrated out has no ONNX form: set_params(estimate='mean') first.")
    rate = family.parameters(seen, estimate)
    if (rate <= 0).any():
        raise DataError("a rate of nought has no ONNX form: set_params(estimate='mean') first.")
    rate = np.where(np.isnan(rate), 1.0, rate)
    silent = np.where(seen.n > 0, 1.0, 0.0) if estimate == "ml" else np.ones_like(rate)
    cells = graph.by_class(x)
    terms = graph("Sub", graph("Mul", cells, np.log(rate) * silent), rate * silent)
    inside = graph("And", graph("GreaterOrEqual", cells, 0.0), graph("LessOrEqual", cells, LARGEST))
    inside = graph("And", inside, graph("Equal", graph("Floor", cells), cells))
    outside = graph("Where", graph("IsNaN", cells), 0.0, -np.inf)
    return graph.summed(graph("Where", inside, terms, outside))


def _gaussian(graph: Graph, x: str, family: Gaussian, seen: Any, estimate: str) -> str:
    centre, precision, *power, constant = family._tables(seen, estimate)
    square = _squares(graph, x, seen.unit, centre)
    if power:
        grown = graph("Log", graph("Add", graph("Mul", square, precision), 1.0))
        terms = graph("Sub", constant, graph("Mul", grown, power[0]))
    else:
        terms = graph("Sub", constant, graph("Mul", square, 0.5 * precision))
    terms = graph("Sub", terms, (constant != 0) * np.log(seen.unit))
    return graph.summed(graph("Where", graph("IsNaN", graph.by_class(x)), 0.0, terms))


def _squares(graph: Graph, x: str, unit: Array, centre: Array) -> str:
    away = graph("Sub", graph.by_class(graph("Mul", x, 1.0 / unit)), centre)
    return graph("Mul", away, away)


def _histogram(graph: Graph, x: str, family: Histogram, seen: Any, estimate: str) -> str:
    """The bin of a cell is the number of inner edges that it has reached; a missing cell is one more bin."""
    scores = []
    for j, (edges, table) in enumerate(family._tables(seen, estimate)):
        cell = graph("Gather", x, np.array([j], dtype=np.int64), axis=1)
        reached = graph("Cast", graph("GreaterOrEqual", cell, edges[1:-1][None]), to=graph.onnx.TensorProto.INT64)
        bin_ = graph("ReduceSum", reached, np.array([1]), keepdims=0)
        missing = graph("Squeeze", graph("IsNaN", cell), np.array([1]))
        bin_ = graph("Where", missing, np.array(table.shape[1]), bin_)
        scores.append(graph("Gather", np.vstack([table.T, np.zeros(len(table))]), bin_, axis=0))
    return graph("Sum", *scores)


TERMS: dict[type, Callable[[Graph, str, Any, Any, str], str]] = {
    Bernoulli: _bernoulli,
    Gaussian: _gaussian,
    Histogram: _histogram,
    Poisson: _poisson,
}


def _of_bells(fitted: GaussianNB, graph: Graph) -> str:
    centre, precision, constant = fitted._bells()
    square = _squares(graph, "X", fitted._moments().unit, centre)
    return graph.summed(graph("Sub", constant, graph("Mul", square, 0.5 * precision)))


def _of_switches(fitted: BernoulliNB, graph: Graph) -> str:
    yes = fitted.feature_log_prob_
    with np.errstate(divide="ignore"):
        no = np.log1p(-np.exp(yes))
    if not (np.isfinite(yes).all() and np.isfinite(no).all()):
        raise DataError("a column that rules a class out has no ONNX form; give alpha above 0.")
    there = "X" if fitted.binarize is None else graph("Greater", "X", float(fitted.binarize))
    there = graph("Cast", there, to=graph.onnx.TensorProto.DOUBLE)
    return graph("Add", graph("MatMul", there, (yes - no).T), no.sum(axis=1)[None])


def _of_counts(fitted: MultinomialNB | ComplementNB, graph: Graph) -> str:
    weights = fitted.feature_log_prob_
    if not np.isfinite(weights).all():
        raise DataError("a column that rules a class out has no ONNX form; give alpha above 0.")
    # what the complement does with the prior is its own affair: the prior is added for all models alike
    return graph("Add", graph("MatMul", "X", weights.T), (fitted._class_term() - fitted._log_prior())[None])


def _of_events(fitted: PoissonNB, graph: Graph) -> str:
    return _poisson(graph, graph("Floor", "X"), fitted._belief(), fitted.seen_.parts[0], fitted.estimate)


JOINTS: dict[type, Callable[[Any, Graph], str]] = {
    NaiveBayes: _of_table,
    GaussianNB: _of_bells,
    BernoulliNB: _of_switches,
    MultinomialNB: _of_counts,
    ComplementNB: _of_counts,
    PoissonNB: _of_events,
}
