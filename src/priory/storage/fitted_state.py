"""Validate the state of a loaded model: required attributes, declared types, consistent records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import signature
from reprlib import repr as shorten_repr
from typing import Any, Protocol, get_type_hints

from priory.calibration.corrections import Corrections
from priory.core.registration import EstimatorRegistration, count_columns, list_record_types
from priory.core.typing import Array
from priory.errors import ModelFileError
from priory.models.model_statistics import ModelStatistics
from priory.storage.registry import collect_learned_attributes, find_estimator
from priory.storage.validation import TypeHint, check_value, matches_type_hint

# Attributes that estimators do not declare in their class body: scikit-learn's own, and properties.
COMMON_ATTRIBUTES: Mapping[str, TypeHint] = {
    "statistics_": ModelStatistics,
    "n_features_in_": int,
    "feature_names_in_": Array,
    "clock_": float,
    "stale_": tuple[str, ...],
    "sample_changes_": int,
    "corrections_": Corrections,
    "alpha_": float,
}
UNFITTED_ATTRIBUTES = {
    "target_",
    "missing_",
}  # what a model from files has left without rows
ARRAY_LIKE_PARAMETER = float | Sequence[float] | Array  # the subset of ArrayLike that a file can hold


class Estimator(Protocol):
    """Interface of a model that can be stored; its class must be registered too."""

    def get_params(self, deep: bool = True) -> dict[str, object]: ...


def check_model(model: Estimator) -> None:
    """Raise ModelFileError, naming the attribute, if the state of a model is invalid."""
    declared = find_estimator(type(model))
    if declared is None:
        raise ModelFileError(f"it holds a {type(model).__name__}, which is not a model.")
    name, parameters = declared.name, model.get_params(deep=False)
    learned = collect_learned_attributes(model, parameters)
    for parameter, value in parameters.items():
        _check_parameter(declared, parameter, value)
    for attribute, value in learned.items():
        _check_attribute(name, attribute, value, find_attribute_types(declared.cls))
    is_fitted = bool(learned.keys() - UNFITTED_ATTRIBUTES)
    for attribute in declared.required if is_fitted else ():
        if attribute not in learned:
            raise ModelFileError(f"{name} has no {attribute}.")
    _check_common_attributes(name, learned)
    # values that the types allow but the model does not
    if hasattr(model, "_check_parameters"):
        model._check_parameters()
    if is_fitted and not _is_consistent(model, declared):
        raise ModelFileError(f"{name}.statistics_ does not fit the columns and parameters of the model.")


def _check_parameter(declared: EstimatorRegistration, parameter: str, value: object) -> None:
    """Raise if a parameter does not have its declared type or a valid value."""
    if not matches_type_hint(value, find_parameter_types(declared.cls)[parameter]):
        allowed = signature(declared.cls).parameters[parameter].annotation
        raise ModelFileError(f"{declared.name}.{parameter} is {shorten_repr(value)}; use {allowed}.")
    check_value(value, f"{declared.name}.{parameter}")


def _check_attribute(name: str, attribute: str, value: object, types: Mapping[str, TypeHint]) -> None:
    """Raise if a learned attribute is undeclared, or does not have its declared type or a valid value."""
    if attribute not in types:
        raise ModelFileError(f"{name} does not learn an attribute {attribute!r}.")
    if not matches_type_hint(value, types[attribute]):
        raise ModelFileError(f"{name}.{attribute} is a {type(value).__name__}, which is not its declared type.")
    check_value(value, f"{name}.{attribute}")


def _check_common_attributes(name: str, learned: Mapping[str, Any]) -> None:
    """Raise if the clock, the number of columns or their names are invalid."""
    clock, columns, names = (learned.get(key) for key in ("clock_", "n_features_in_", "feature_names_in_"))
    if clock is not None and not 0 < clock <= 1:
        raise ModelFileError(f"{name}.clock_ is {clock}; it must be above 0 and at most 1.")
    if names is not None and not (names.shape == (columns,) and all(isinstance(n, str) for n in names)):
        raise ModelFileError(f"{name}.feature_names_in_ does not fit the columns of the model.")
    if columns is not None and columns < 0:
        raise ModelFileError(f"{name}.n_features_in_ is {columns}; it must be 0 or more.")


@cache
def find_parameter_types(cls: type) -> Mapping[str, TypeHint]:
    """Return the declared types of the parameters of an estimator."""
    return get_type_hints(cls.__init__, localns={"ArrayLike": ARRAY_LIKE_PARAMETER})  # type: ignore[misc]


@cache
def find_attribute_types(cls: type) -> Mapping[str, TypeHint]:
    """Return the declared types of the learned attributes of an estimator."""
    return {**COMMON_ATTRIBUTES, **get_type_hints(cls)}


def _is_consistent(model: Any, declared: EstimatorRegistration) -> bool:
    """Whether the records are of the declared types and have a value for every column.

    Models without declared records check themselves. A class prior that does not fit the classes raises DataError.
    """
    # evaluated only for the errors that it raises
    if hasattr(model, "_log_prior"):
        model._log_prior()
    if not declared.records:
        return bool(model._is_consistent())
    parts = model.statistics_.parts
    return list_record_types(parts) == declared.records and all(
        count_columns(part) == model.n_features_in_ for part in parts
    )
