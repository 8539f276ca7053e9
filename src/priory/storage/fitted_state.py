"""Whether a fitted model can be true: the attributes it must have, of the declared types, and records that fit it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from numbers import Real
from typing import Any, Protocol, get_type_hints

from priory.core.registration import EstimatorRegistration, count_columns, list_record_types
from priory.errors import ModelFileError
from priory.storage.registry import collect_learned_attributes, find_estimator
from priory.storage.validation import TypeHint, check_value, matches_type_hint


class Estimator(Protocol):
    """What storage needs of a model, besides that its class is registered."""

    def get_params(self, deep: bool = True) -> dict[str, object]: ...


def check_model(model: Estimator) -> None:
    """Raise ModelFileError, with the place, for a model that cannot be true."""
    declared = find_estimator(type(model))
    if declared is None:
        raise ModelFileError(f"it holds a {type(model).__name__}, which is not a model.")
    name, learned = declared.name, collect_learned_attributes(model, model.get_params(deep=False))
    for attribute, value in learned.items():
        if not matches_type_hint(value, _find_attribute_types(declared.cls).get(attribute, Any)):
            raise ModelFileError(f"{name}.{attribute} is a {type(value).__name__}, which it cannot be.")
        check_value(value, f"{name}.{attribute}")
    for attribute in declared.required if learned else ():
        if attribute not in learned:
            raise ModelFileError(f"{name} has no {attribute}.")
    clock = learned.get("clock_", 1.0)
    if not (isinstance(clock, Real) and 0 < float(clock) <= 1):
        raise ModelFileError(f"{name}.clock_ is {clock}; it must be above 0 and at most 1.")
    if hasattr(model, "_check_parameters"):
        model._check_parameters()
    if learned and not _is_consistent(model, declared):
        raise ModelFileError(f"{name}.statistics_ does not fit the columns and parameters of the model.")


@cache
def _find_attribute_types(cls: type) -> Mapping[str, TypeHint]:
    """The declared types of the attributes of an estimator."""
    return {**get_type_hints(cls), "clock_": float, "n_features_in_": int}


def _is_consistent(model: Any, declared: EstimatorRegistration) -> bool:
    """The model's own answer; else whether its records are those declared, each with a value for every column."""
    if not declared.records:
        return bool(model._is_consistent())
    parts = model.statistics_.parts
    return list_record_types(parts) == declared.records and all(
        count_columns(part) == model.n_features_in_ for part in parts
    )
