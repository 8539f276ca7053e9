"""What each model must have learned: records of the right kind, for as many columns as it has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

import numpy as np

from priory.errors import BadModel
from priory.storage.registry import class_of, learned_by, name_of
from priory.storage.validation import SHAPES, check, fits

FREE_CELLS, MOST_CELLS = 1 << 20, 64  # counts of categories that nobody may have shown: in all, for each that is there
PARTS = {  # the records of the classifiers of arrays
    "BernoulliNB": ("Trials",),
    "ComplementNB": ("Occurrences",),
    "GammaNB": ("Positives", "Trials"),
    "GaussianBayes": ("Scatter",),
    "GaussianNB": ("Moments",),
    "MultinomialNB": ("Occurrences",),
    "PoissonNB": ("Events",),
}
NEEDED = {
    "NaiveBayes": ("seen_", "n_features_in_", "_schema"),
    "TextClassifier": ("seen_", "n_features_in_", "salt_"),
    "GaussianNB": ("seen_", "n_features_in_", "_kind"),
    "BayesianLogisticRegression": (
        "classes_",
        "n_features_in_",
        "_mean",
        "_spread",
        "_centre",
        "_unit",
        "_gaussian",
        "_draws",
    ),
}


def check_model(model: Any) -> None:
    """Raise BadModel, with the place, for a model that cannot be."""
    name, learned = name_of(type(model)), learned_by(model)
    for attribute, value in learned.items():
        if not fits(value, _hints(name).get(attribute, Any)):
            raise BadModel(f"{name}.{attribute} is a {type(value).__name__}; it is something else.")
        check(value, f"{name}.{attribute}")
    for attribute in NEEDED.get(name, ("seen_", "n_features_in_")) if learned else ():
        if attribute not in learned:
            raise BadModel(f"{name} has no {attribute}.")
    if not 0 < learned.get("clock_", 1.0) <= 1:
        raise BadModel(f"{name}.clock_ is {learned['clock_']}; decays are above 0 and at most 1.")
    if hasattr(model, "_check_parameters"):
        model._check_parameters()
    if learned and not PROPER.get(name, _is_of_arrays)(model):
        raise BadModel(f"{name}.seen_ does not go with the columns and parameters of the model.")


@cache
def _hints(name: str) -> dict[str, Any]:
    """What each attribute is declared to be."""
    return {**get_type_hints(class_of(name)), "clock_": float, "n_features_in_": int}


def _is_of_arrays(model: Any) -> bool:
    parts = model.seen_.parts
    kinds = tuple(name_of(type(part)) for part in parts)
    return kinds == PARTS[name_of(type(model))] and all(_columns(part) == model.n_features_in_ for part in parts)


def _is_categorical(model: Any) -> bool:
    """Categories are whole numbers, and the table of all of them is in proportion to what was seen."""
    parts = model.seen_.parts
    whole = all(name_of(type(p)) == "Tally" and p.values.dtype.kind == "i" and (p.values >= 0).all() for p in parts)
    if not whole or len(parts) != model.n_features_in_:
        return False
    cells = len(model.seen_.n) * float(model.n_categories_.astype(float).sum())
    if cells > FREE_CELLS + MOST_CELLS * sum(p.counts.size for p in parts):
        raise BadModel(f"CategoricalNB needs {cells:,.0f} counts, and few are there; number the categories from 0.")
    return True


def _is_table(model: Any) -> bool:
    """A record for every candidate of every block, of the kind its family makes."""
    from priory.models.naive_bayes import nothing

    schema, seen = model._schema, model.seen_
    zero = nothing(schema, seen.classes[:1])
    columns = [len(block.names) for block in schema.blocks]
    return (
        len(schema.names) == model.n_features_in_
        and _kinds(zero.parts) == _kinds(seen.parts)
        and all(_columns(r, d) == d for records, d in zip(seen.parts, columns, strict=True) for r in records)
    )


def _is_text(model: Any) -> bool:
    parts = model.seen_.parts
    if model.n_features_in_ != 1:
        return False
    if model.buckets is not None:
        return _kinds(parts) == ("Buckets",) and len(parts[0]) == model.buckets
    return 1 <= len(parts) <= 2 and set(_kinds(parts)) == {"Words"}


def _is_line(model: Any) -> bool:
    return name_of(type(model.seen_)) == "Products"


def _is_logistic(model: Any) -> bool:
    classes, columns = len(model.classes_), model.n_features_in_
    lines = (model._spread.shape[1], columns + 1)
    return (
        (model._gaussian is None or name_of(type(model._gaussian)) == "Laplace")
        and (model._draws is None or model._draws.shape[1:] == lines)
        and model._mean.shape == lines
        and model._spread.shape[0] == classes
        and model._centre.shape == model._unit.shape == (columns,)
        and bool((model._unit > 0).all())
    )


PROPER: dict[str, Callable[[Any], bool]] = {
    "BayesianLinearRegression": _is_line,
    "BayesianLogisticRegression": _is_logistic,
    "CategoricalNB": _is_categorical,
    "NaiveBayes": _is_table,
    "TextClassifier": _is_text,
}


def _kinds(parts: Any) -> Any:
    """The names of records, however deep they lie."""
    return tuple(_kinds(p) for p in parts) if type(parts) is tuple else name_of(type(parts))


def _columns(record: Any, alone: int = 1) -> int:
    """How many columns a record is of; one that knows no columns stands for ``alone``."""
    if type(record) is tuple:
        return len(record)
    for field, axes in SHAPES[name_of(type(record))].items():
        if "d" in axes:
            return int(np.shape(getattr(record, field))[axes.index("d")])
    return alone
