"""What each model must have learned: records of the right kind, for as many columns as it has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

import numpy as np

from priory.errors import ModelFileError
from priory.storage.registry import collect_learned_attributes, find_stored_name, import_stored_class
from priory.storage.validation import FIELD_SHAPES, check_value, matches_type_hint

FREE_CATEGORY_CELLS, MAX_CELLS_PER_COUNT = (
    1 << 20,
    64,
)  # counts of categories that nobody may have shown: in all, for each that is there
ARRAY_MODEL_RECORDS = {  # the records of the classifiers of arrays
    "BernoulliNB": ("Trials",),
    "ComplementNB": ("Occurrences",),
    "GammaNB": ("Positives", "Trials"),
    "GaussianBayes": ("Scatter",),
    "GaussianNB": ("Moments",),
    "MultinomialNB": ("Occurrences",),
    "PoissonNB": ("Events",),
}
REQUIRED_ATTRIBUTES = {
    "NaiveBayes": ("statistics_", "n_features_in_", "_schema"),
    "TextClassifier": ("statistics_", "n_features_in_", "salt_"),
    "GaussianNB": ("statistics_", "n_features_in_", "_kind"),
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
    name, learned = find_stored_name(type(model)), collect_learned_attributes(model)
    for attribute, value in learned.items():
        if not matches_type_hint(value, _find_attribute_types(name).get(attribute, Any)):
            raise ModelFileError(f"{name}.{attribute} is a {type(value).__name__}; it is something else.")
        check_value(value, f"{name}.{attribute}")
    for attribute in REQUIRED_ATTRIBUTES.get(name, ("statistics_", "n_features_in_")) if learned else ():
        if attribute not in learned:
            raise ModelFileError(f"{name} has no {attribute}.")
    if not 0 < learned.get("clock_", 1.0) <= 1:
        raise ModelFileError(f"{name}.clock_ is {learned['clock_']}; decays are above 0 and at most 1.")
    if hasattr(model, "_check_parameters"):
        model._check_parameters()
    if learned and not MODEL_VALIDATORS.get(name, _is_valid_array_model)(model):
        raise ModelFileError(f"{name}.statistics_ does not go with the columns and parameters of the model.")


@cache
def _find_attribute_types(name: str) -> dict[str, Any]:
    """What each attribute is declared to be."""
    return {**get_type_hints(import_stored_class(name)), "clock_": float, "n_features_in_": int}


def _is_valid_array_model(model: Any) -> bool:
    parts = model.statistics_.parts
    kinds = tuple(find_stored_name(type(part)) for part in parts)
    return kinds == ARRAY_MODEL_RECORDS[find_stored_name(type(model))] and all(
        _count_columns(part) == model.n_features_in_ for part in parts
    )


def _is_valid_categorical(model: Any) -> bool:
    """Categories are whole numbers, and the table of all of them is in proportion to what was seen."""
    parts = model.statistics_.parts
    whole = all(
        find_stored_name(type(p)) == "Tally" and p.values.dtype.kind == "i" and (p.values >= 0).all() for p in parts
    )
    if not whole or len(parts) != model.n_features_in_:
        return False
    cells = len(model.statistics_.n) * float(model.n_categories_.astype(float).sum())
    if cells > FREE_CATEGORY_CELLS + MAX_CELLS_PER_COUNT * sum(p.counts.size for p in parts):
        raise ModelFileError(
            f"CategoricalNB needs {cells:,.0f} counts, and few are there; number the categories from 0."
        )
    return True


def _is_valid_table(model: Any) -> bool:
    """A record for every candidate of every block, of the kind its family makes."""
    from priory.models.model_statistics import make_empty_statistics

    schema, seen = model._schema, model.statistics_
    if not all(map(_is_valid_hashed_text, schema.blocks, seen.parts)):
        return False
    zero = make_empty_statistics(schema, seen.classes[:1])
    columns = [len(block.names) for block in schema.blocks]
    return (
        len(schema.names) == model.n_features_in_
        and _list_record_names(zero.parts) == _list_record_names(seen.parts)
        and all(_count_columns(r, d) == d for records, d in zip(seen.parts, columns, strict=True) for r in records)
    )


def _is_valid_hashed_text(block: Any, records: Any) -> bool:
    """Whether a column of hashed texts has counts for all of its buckets: no file makes room for more than it holds."""
    buckets = getattr(block.candidates[0], "buckets", None)
    return buckets is None or (_list_record_names(records) == ("Buckets",) and len(records[0]) == buckets)


def _is_valid_text(model: Any) -> bool:
    parts = model.statistics_.parts
    if model.n_features_in_ != 1:
        return False
    if model.buckets is not None:
        return _list_record_names(parts) == ("Buckets",) and len(parts[0]) == model.buckets
    return 1 <= len(parts) <= 2 and set(_list_record_names(parts)) == {"Words"}


def _is_valid_linear(model: Any) -> bool:
    return find_stored_name(type(model.statistics_)) == "Products"


def _is_valid_logistic(model: Any) -> bool:
    classes, columns = len(model.classes_), model.n_features_in_
    lines = (model._spread.shape[1], columns + 1)
    return (
        (model._gaussian is None or find_stored_name(type(model._gaussian)) == "Laplace")
        and (model._draws is None or model._draws.shape[1:] == lines)
        and model._mean.shape == lines
        and model._spread.shape[0] == classes
        and model._centre.shape == model._unit.shape == (columns,)
        and bool((model._unit > 0).all())
    )


MODEL_VALIDATORS: dict[str, Callable[[Any], bool]] = {
    "BayesianLinearRegression": _is_valid_linear,
    "BayesianLogisticRegression": _is_valid_logistic,
    "CategoricalNB": _is_valid_categorical,
    "NaiveBayes": _is_valid_table,
    "TextClassifier": _is_valid_text,
}


def _list_record_names(parts: Any) -> Any:
    """The names of records, however deep they lie."""
    return tuple(_list_record_names(p) for p in parts) if type(parts) is tuple else find_stored_name(type(parts))


def _count_columns(record: Any, default: int = 1) -> int:
    """How many columns a record is of; one that knows no columns stands for ``alone``."""
    if type(record) is tuple:
        return len(record)
    for field, axes in FIELD_SHAPES[find_stored_name(type(record))].items():
        if "d" in axes:
            return int(np.shape(getattr(record, field))[axes.index("d")])
    return default
