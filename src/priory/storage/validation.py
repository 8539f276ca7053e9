"""Validate what was read from a model file: known classes, counts, shapes, finite numbers, consistent attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from numbers import Integral, Real
from reprlib import repr as shorten_repr
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy import ndarray as Array

import priory
from priory.calibration.corrections import Corrections
from priory.core import statistics as registration
from priory.core.statistics import EstimatorRegistration, Registration, SelfChecking, Statistics
from priory.errors import DataError, ModelFileError
from priory.model.model_statistics import ModelStatistics

# Importing these modules registers every class that a file can contain; the cheapest come first.
REGISTERING_MODULES = (
    "priory.families",
    "priory.text.vocabulary",
    "priory.model.schema",
    "priory.calibration.calibrator",
    "priory.regression.cross_products",
    "priory.regression.linear_posterior",
    "priory.regression.logistic_posterior",
    "priory.regression.mcmc",
    "priory.naive_bayes",
)
NOTES_ATTRIBUTE = "notes"  # the attribute of a loaded model that holds the notes of its file


def find_class(name: str) -> Registration | None:
    """Return the registered class of this name, importing modules of priory as needed; None if there is none."""
    if registration.find_registered_name(name) is None and name[:1].isupper() and name in priory.__all__:
        getattr(priory, name)  # imports only the module of this estimator
    for module in REGISTERING_MODULES:
        if registration.find_registered_name(name) is not None:
            break
        import_module(module)
    return registration.find_registered_name(name)


def find_estimator(cls: type) -> EstimatorRegistration | None:
    """Return the registration of an estimator class, or None for any other class."""
    found = registration.find_registration(cls)
    return found if isinstance(found, EstimatorRegistration) else None


def find_record(cls: type) -> Registration | None:
    """Return the registration of a record or family class, or None for any other class."""
    found = registration.find_registration(cls)
    return None if isinstance(found, EstimatorRegistration) else found


def list_estimators() -> list[str]:
    """Return the names of all models that can be saved."""
    # public estimators are imported lazily
    for name in priory.__all__:
        if name[:1].isupper():
            getattr(priory, name)
    import_module("priory.naive_bayes")
    return sorted(name for name, found in registration.BY_NAME.items() if isinstance(found, EstimatorRegistration))


def collect_learned_attributes(model: Any, parameters: dict[str, object]) -> dict[str, object]:
    """The attributes of an estimator besides its parameters and notes, as it would be pickled."""
    return {
        name: value
        for name, value in model.__getstate__().items()
        if name not in parameters and name != NOTES_ATTRIBUTE
    }


MAX_COUNT = 1e100  # largest weight of rows or tokens: sums and squares of counts stay finite
TypeHint = object  # what `typing.get_type_hints` returns: a class, a union, a generic alias, Any


def check_value(value: object, where: str, finite: bool = True) -> None:
    """Raise ModelFileError, naming the attribute, if a value or anything inside of it is invalid."""
    record = find_record(type(value))
    if isinstance(value, (np.ndarray, float)) and finite:
        _check_finite(np.asarray(value), where)
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise ModelFileError(f"{where} is a number of {value.bit_length()} bits; whole numbers have 64 at most.")
    elif isinstance(value, dict):
        for key, item in value.items():
            check_value(item, f"{where}[{key!r}]", finite)
    elif record is not None:
        _check_record(value, record, where, finite and record.finite)
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            check_value(item, f"{where}[{i}]", finite)


def _check_finite(numbers: np.ndarray[Any, Any], where: str) -> None:
    # The extremes are enough, because NaN propagates to both; no mask of the array's size is allocated.
    extremes = [numbers.min(initial=0.0), numbers.max(initial=0.0)] if numbers.dtype.kind == "f" else []
    if not np.isfinite(extremes).all():
        raise ModelFileError(f"{where} holds {numbers[~np.isfinite(numbers)].flat[0]}; numbers must be finite.")


def _check_record(record: object, declared: Registration, where: str, finite: bool) -> None:
    for name, hint in find_field_types(declared.cls).items():
        value = getattr(record, name)
        if not matches_type_hint(value, hint):
            raise ModelFileError(
                f"{where}.{name} is a {type(value).__name__}, which a {declared.name} cannot have there."
            )
        check_value(value, f"{where}.{name}", finite)
    _check_axes(record, declared, where)
    if isinstance(record, Statistics):
        for name in dict.fromkeys([*record.count_fields, "counts"]):
            counts = getattr(record, name, None)
            if not isinstance(counts, np.ndarray):
                continue  # there are none, or they are a record of their own
            if name in record.count_fields and counts.min(initial=0.0) < 0:
                raise ModelFileError(f"{where}.{name} is negative; counts never are.")
            if counts.max(initial=0.0) > MAX_COUNT:
                raise ModelFileError(f"{where}.{name} is {counts.max():g}; counts are at most {MAX_COUNT:g}.")
    fault = record.find_fault() if isinstance(record, SelfChecking) else None
    if fault:
        raise ModelFileError(f"{where} is not a valid {declared.name}: {fault}.")


@cache
def find_field_types(cls: type) -> Mapping[str, TypeHint]:
    """Return the type hints of the fields of a dataclass or NamedTuple."""
    hints = get_type_hints(cls)
    return {name: hints[name] for name in list_fields(cls) if get_origin(hints[name]) is not ClassVar}


def list_fields(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or NamedTuple."""
    names: tuple[str, ...] = tuple(f.name for f in fields(cls)) if is_dataclass(cls) else getattr(cls, "_fields", ())
    return names


def matches_type_hint(value: object, hint: TypeHint) -> bool:
    """Whether a value matches a type hint.

    >>> matches_type_hint((1, 2), tuple[int, int]), matches_type_hint(("a", 2), tuple[str, ...])
    (True, False)
    >>> matches_type_hint(True, float | None), matches_type_hint(1, float)
    (False, True)
    """
    origin, inside = get_origin(hint), get_args(hint)
    alias_of = getattr(origin or hint, "__value__", None)
    if alias_of is not None:  # a type alias, such as NDArray since NumPy 2.5
        return matches_type_hint(value, alias_of)
    if isinstance(hint, TypeVar):
        return matches_type_hint(value, hint.__bound__ or object)
    if hint is Any or _is_static_protocol(origin or hint):
        return True
    if origin in (Union, UnionType):
        return any(matches_type_hint(value, option) for option in inside)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in inside)
    # a tuple of fixed length, such as tuple[int, str]
    if origin is tuple and inside[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(matches_type_hint, value, inside))
    if origin is type:
        return isinstance(value, type) and issubclass(value, get_origin(inside[0]) or inside[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            matches_type_hint(key, inside[0]) and matches_type_hint(item, inside[1]) for key, item in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Iterable) and origin is not np.ndarray:
        # a string is a sequence of strings only where the hint asks for strings
        if isinstance(value, str) and inside[0] is not str:
            return False
        return isinstance(value, origin) and all(matches_type_hint(item, inside[0]) for item in value)
    # NumPy scalars are allowed, bools are not
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    cls = origin or (NoneType if hint is None else hint)
    return isinstance(cls, type) and isinstance(value, cls)


def _is_static_protocol(hint: TypeHint) -> bool:
    """Whether a hint is a Protocol that cannot be checked at run time."""
    return getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False)


def _check_axes(record: object, declared: Registration, where: str) -> None:
    """Raise unless every array has its declared dtype and axes, and axes of the same letter have the same length."""
    lengths: dict[str, int] = {}
    for name, axes in declared.axes.items():
        value = getattr(record, name)
        dtype = "" if isinstance(value, Statistics) else declared.dtypes.get(name, "f8")
        if dtype and np.asarray(value).dtype != np.dtype(dtype):
            raise ModelFileError(f"{where}.{name} holds {np.asarray(value).dtype} instead of {np.dtype(dtype)}.")
        # axes of the same letter must have the same length
        shape = registration.find_shape(value)
        if len(shape) != len(axes) or any(
            size != lengths.setdefault(axis, size) for axis, size in zip(axes, shape, strict=True)
        ):
            raise ModelFileError(f"{where}.{name} has the shape {shape}, which does not fit its other fields.")
    # axis "e" is either shared by all columns (length 1) or has one entry for each of the "d" columns
    if lengths.get("e", 1) not in (1, lengths.get("d", 1)):
        raise ModelFileError(f"{where} has sums for {lengths['e']} columns, and others for {lengths['d']}.")


# Attributes that estimators do not declare in their class body: scikit-learn's own, and properties.
COMMON_ATTRIBUTES: Mapping[str, TypeHint] = {
    "statistics_": ModelStatistics,
    "n_features_in_": int,
    "feature_names_in_": Array,
    "clock_": float,
    "stale_": tuple[str, ...],
    "released_": tuple[float, ...],
    "sample_changes_": int,
    "corrections_": Corrections,
    "salt_": int,
}
UNFITTED_ATTRIBUTES = {
    "target_",
    "missing_",
    "formats_",
    "separator_",
}  # of a model that was trained from files and has forgotten all rows
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
    parameters = find_parameter_types(cls)
    declared = {name: hint for name, hint in get_type_hints(cls).items() if name not in parameters}
    return {**COMMON_ATTRIBUTES, **declared}
