"""Export a fitted classifier as an ONNX graph of standard operators, for runtimes without Python.

The graph takes ``X``, a table of doubles (rows, columns) with NaN for missing cells, and returns ``label`` and
``probabilities``. Supported are the classifiers of `priory.naive_bayes` that score by matrix products or Gaussian
densities, and `NaiveBayes` on numbers whose families have ``onnx_terms``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy import ndarray as Array

import priory
from priory.core.logspace import log_normalise
from priory.errors import DataError, MissingDependencyError
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.text_classifier import TextClassifier
from priory.families.base import AnyFamily
from priory.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

ONNX_OPSET = 17
EXPORTABLE_ATTRIBUTES = {"statistics_", "n_features_in_", "feature_names_in_", "clock_", "_schema", "_kind", "notes"}


class OnnxGraph:
    """Collects nodes and constants; every method adds one and returns the name of its output."""

    def __init__(self, onnx: ModuleType) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        if value.dtype.kind in "OU":
            tensor = self.onnx.helper.make_tensor(
                name, self.onnx.TensorProto.STRING, value.shape, [str(v).encode() for v in value]
            )
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        self.constants.append(tensor)
        return name

    def __call__(self, operator: str, *inputs: str | float | Array, output: str = "", **attributes: object) -> str:
        """Add a node with these inputs: names of outputs, or numbers and arrays, which become constants."""
        names = [i if isinstance(i, str) else self.add_constant(np.asarray(i)) for i in inputs]
        name = output or f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def gather_columns(self, places: Array) -> str:
        """Select columns of the input table."""
        return self("Gather", "X", np.asarray(places, dtype=np.int64), axis=1)

    def sum_columns(self, terms: str) -> str:
        """Sum over the columns, the last axis."""
        return self("ReduceSum", terms, np.array([-1]), keepdims=0)


def to_onnx(fitted: Any) -> Any:
    """Return the model as an ``onnx.ModelProto`` with the probabilities of ``predict_proba``, up to rounding.

    Needs the extra ``onnx``. A model that ONNX cannot express raises DataError, which names an alternative.
    """
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingDependencyError("to_onnx needs onnx: pip install 'priory[onnx]'.") from None
    export_scores = MODEL_EXPORTERS.get(type(fitted))
    if isinstance(fitted, TextClassifier):
        raise DataError(
            "a TextClassifier cannot be exported to ONNX, which has no operator that splits texts as it does; use its "
            "model file, or export a MultinomialNB of counts."
        )
    if export_scores is None:
        exportable = ", ".join(cls.__name__ for cls in MODEL_EXPORTERS)
        raise DataError(f"a {type(fitted).__name__} cannot be exported to ONNX; these can: {exportable}.")
    if hasattr(fitted, "corrections_"):
        raise DataError("corrections cannot be exported to ONNX; export model.without_corrections().")
    unknown = sorted(fitted.__getstate__().keys() - fitted.get_params(deep=False).keys() - EXPORTABLE_ATTRIBUTES)
    if unknown:
        raise DataError(
            f"{unknown[0]} changes the model's answers and cannot be exported to ONNX; fit the model without it."
        )
    graph, classes = OnnxGraph(onnx), fitted.classes_
    learned = fitted.learned_
    limit = learned.calibrated().succession if isinstance(fitted, NaiveBayes) else None
    declared = learned.model().log_prior()[None]
    log_prior = declared if limit is None else limit.log_prior[None]
    joint = graph("Add", export_scores(fitted, graph), log_prior)
    # where every class is impossible, the prior is the answer, as in predict_proba
    ruled_out = graph("IsInf", graph("ReduceMax", joint, axes=[1], keepdims=1), detect_positive=0)
    answers = graph("Softmax", graph("Where", ruled_out, log_prior, joint), axis=1)
    if limit is not None:
        base = np.exp(log_normalise(limit.log_prior))
        best = graph("ReduceMax", answers, axes=[1], keepdims=1)
        rivals = graph("Gather", 1 - base, graph("ArgMax", answers, axis=1, keepdims=1))
        least = graph("Div", base / (limit.n_rows + 1), rivals)
        limited = graph("Where", graph("Equal", answers, best), answers, graph("Max", answers, least))
        shifted = graph("Mul", limited, np.exp(declared - log_prior))
        answers = graph("Div", shifted, graph("ReduceSum", shifted, np.array([1]), keepdims=1))
    graph("Identity", answers, output="probabilities")
    best = graph("ArgMax", "probabilities", axis=1, keepdims=0)
    # ONNX labels are integers, bools or strings
    labels = classes.astype(np.int64) if classes.dtype.kind in "iuf" else classes
    graph("Gather", graph.add_constant(labels), best, output="label")
    return _build_model_proto(onnx, graph, fitted.n_features_in_, labels)


def _build_model_proto(onnx: ModuleType, graph: OnnxGraph, columns: int, labels: Array) -> Any:
    types = onnx.TensorProto
    label = {"b": types.BOOL, "i": types.INT64}.get(labels.dtype.kind, types.STRING)
    value = onnx.helper.make_tensor_value_info
    outputs = [value("label", label, ["rows"]), value("probabilities", types.DOUBLE, ["rows", len(labels)])]
    inputs = [value("X", types.DOUBLE, ["rows", columns])]
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "priory", inputs, outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", ONNX_OPSET)],
        ir_version=8,
        producer_name="priory",
        producer_version=priory.__version__,
    )
    onnx.checker.check_model(proto)
    return proto


# -- log p(x | c): (rows, classes) -------------------------------------------------------------------------------------


def _export_table(fitted: NaiveBayes, graph: OnnxGraph) -> str:
    model = fitted.learned_.model()
    schema = model.schema
    place = {name: j for j, name in enumerate(schema.names)}
    scores = []
    for choice in model.choices():
        names = schema.blocks[choice.block].names
        x = graph.gather_columns(np.array([place[names[j]] for j in choice.positions]))
        score = _sum_terms(graph, x, choice.family, choice.statistics, fitted.estimate)
        if score is None:
            reason = type(choice.family).__name__
            raise DataError(
                f"column {names[choice.positions[0]]!r}: {reason} cannot be exported to ONNX; declare another family."
            )
        scores.append(score)
    return graph("Sum", *scores)


def _sum_terms(graph: OnnxGraph, x: str, family: AnyFamily, statistics: object, estimate: str) -> str | None:
    """Return the log-likelihood summed over columns, (rows, classes); None if the family cannot be exported."""
    cells = graph("Unsqueeze", x, np.array([1]))  # (rows, 1, columns), to broadcast with (classes, columns)
    terms = family.onnx_terms(graph, cells, statistics, estimate)
    return None if terms is None else graph.sum_columns(graph("Where", graph("IsNaN", cells), 0.0, terms))


def _export_gaussian_nb(fitted: GaussianNB, graph: OnnxGraph) -> str:
    model = fitted.learned_.model()
    centre, precision, constant = model.density_parameters()
    cells = graph("Unsqueeze", graph("Mul", "X", 1.0 / model.moments.units()), np.array([1]))
    difference = graph("Sub", cells, centre)
    square = graph("Mul", difference, difference)  # (rows, classes, columns)
    return graph.sum_columns(graph("Sub", constant, graph("Mul", square, 0.5 * precision)))


def _export_bernoulli_nb(fitted: BernoulliNB, graph: OnnxGraph) -> str:
    yes = fitted.feature_log_prob_  # (classes, columns): log P(x = 1 | c)
    with np.errstate(divide="ignore"):
        no = np.log1p(-np.exp(yes))
    if not (np.isfinite(yes).all() and np.isfinite(no).all()):
        raise DataError("a column that rules a class out cannot be exported to ONNX; use an alpha above 0.")
    present = "X" if fitted.binarize is None else graph("Greater", "X", float(fitted.binarize))
    present = graph("Cast", present, to=graph.onnx.TensorProto.DOUBLE)
    # Σ x log p + (1 - x) log(1 - p) = x (log p - log(1 - p)) + Σ log(1 - p)
    return graph("Add", graph("MatMul", present, (yes - no).T), no.sum(axis=1)[None])


def _export_multinomial_nb(fitted: MultinomialNB | ComplementNB, graph: OnnxGraph) -> str:
    weights = fitted.feature_log_prob_  # (classes, columns)
    if not np.isfinite(weights).all():
        raise DataError("a column that rules a class out cannot be exported to ONNX; use an alpha above 0.")
    # the prior is added to the scores of all models, but ComplementNB does not use it: subtract it here
    model = fitted.learned_.model()
    return graph("Add", graph("MatMul", "X", weights.T), (model.class_term() - model.log_prior())[None])


MODEL_EXPORTERS: dict[type, Callable[[Any, OnnxGraph], str]] = {
    NaiveBayes: _export_table,
    GaussianNB: _export_gaussian_nb,
    BernoulliNB: _export_bernoulli_nb,
    MultinomialNB: _export_multinomial_nb,
    ComplementNB: _export_multinomial_nb,
}
