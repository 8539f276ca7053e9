"""Validate the state of a loaded model: required attributes, declared types, consistent records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import signature
from reprlib import repr as shorten_repr
from typing import Any, Protocol, cast, get_type_hints

from priory.calibration.corrections import Corrections
from priory.core.registration import EstimatorRegistration
from priory.core.typing import Array
from priory.errors import DataError, ModelFileError
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
    "salt_": int,
}
UNFITTED_ATTRIBUTES = {"target_", "missing_"}  # of a model that was trained from files and has forgotten all rows
MISFIT = "does not fit the columns and parameters of the model"
ARRAY_LIKE_PARAMETER = float | Sequence[float] | Array  # what a file can hold of NumPy's ArrayLike


class Estimator(Protocol):
    """Interface of a model that can be stored; its class must be registered too."""

    def get_params(self, deep: bool = True) -> dict[str, object]: ...


def check_model(model: Estimator) -> None:
    """Raise ModelFileError, naming the attribute, if the state of a model is invalid."""
    declared = find_estimator(type(model))
    if declared is None:
        raise ModelFileError(f"it holds a {type(model).__name__}, which is not a model.")
    parameters = model.get_params(deep=False)
    learned = collect_learned_attributes(model, parameters)
    check_attributes(declared, parameters, learned)
    check_consistency(model, declared, learned)


def build_model(
    declared: EstimatorRegistration, parameters: Mapping[str, object], learned: Mapping[str, object]
) -> Estimator:
    """The model of decoded parameters and attributes, which are checked before it is built."""
    model: Any = declared.cls()
    parameters = {**model.get_params(deep=False), **parameters}
    check_attributes(declared, parameters, learned)
    try:
        model.__setstate__({**parameters, **learned})
    except DataError as error:
        raise ModelFileError(f"{declared.name}.statistics_ {MISFIT}: {error}") from None
    check_consistency(model, declared, learned)
    return cast(Estimator, model)


def check_attributes(
    declared: EstimatorRegistration, parameters: Mapping[str, object], learned: Mapping[str, object]
) -> None:
    """Raise ModelFileError, with the place, for a parameter or an attribute that no such model can have."""
    name, known = declared.name, find_parameter_types(declared.cls)
    if unknown := sorted(parameters.keys() - known.keys()):
        raise ModelFileError(f"{name} has no parameters {unknown}.")
    for parameter, value in parameters.items():
        _check_parameter(declared, parameter, value)
    for attribute, value in learned.items():
        _check_attribute(name, attribute, value, find_attribute_types(declared.cls))
    for attribute in declared.required if _is_fitted(learned) else ():
        if attribute not in learned:
            raise ModelFileError(f"{name} has no {attribute}.")
    _check_common_attributes(name, learned)


def check_consistency(model: Estimator, declared: EstimatorRegistration, learned: Mapping[str, object]) -> None:
    """Raise ModelFileError for a model whose checked attributes do not fit together."""
    fault = declared.find_fault(model) if _is_fitted(learned) else None
    if fault:
        raise ModelFileError(f"{declared.name}.statistics_ {MISFIT}: {fault}.")


def _is_fitted(learned: Mapping[str, object]) -> bool:
    return bool(learned.keys() - UNFITTED_ATTRIBUTES)


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
