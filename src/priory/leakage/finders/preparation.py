"""Find preparation leakage: pipeline steps that were fitted to the test rows.

Each step is fitted again twice, to the training rows and to both tables. A fitted attribute that agrees with the second
fit but not with the first depends on the test rows: a vocabulary, a mean, a maximum, a choice of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy import ndarray as Array
from scipy.sparse import vstack
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from priory.errors import DataError
from priory.leakage.audit_tables import AuditData
from priory.leakage.findings import Finding, Severity, Suspicion

FITTED_VALUE_TOLERANCE = 1e-9


def find(data: AuditData) -> Iterator[Suspicion]:
    if data.pipeline is None:
        return
    if not data.n_test:
        raise DataError("pipeline needs the test table: audit(train, test, pipeline=...).")
    inputs = _take_features(data, 0), _take_features(data, 1)
    labels = _decode_target(data)
    for name, step in _list_steps(data.pipeline):
        leaked = _find_leaked_attributes(step, *inputs, labels, data.n_train)
        if leaked:
            yield Suspicion(None, partial(_build_finding, name, leaked))
        if not hasattr(step, "transform"):
            break
        inputs = step.transform(inputs[0]), step.transform(inputs[1])


def _build_finding(name: str, leaked: dict[str, str]) -> Finding:
    return Finding(
        Severity.HIGH,
        "preparation",
        f"step {name!r} was also fitted to the test rows: {', '.join(leaked)}",
        "Fit the whole pipeline to the training rows only: pipeline.fit(train).",
        columns=(name,),
        examples=tuple(f"{attribute}: {reason}" for attribute, reason in leaked.items()),
    )


def _take_features(data: AuditData, side: int) -> object:
    """Return the training (0) or test (1) table, with the columns that the pipeline was fitted on."""
    table = data.raw_features[side]
    names = getattr(data.pipeline, "feature_names_in_", None)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or names is None:
        return table
    features: object = frame[list(names)].to_native()
    return features


def _decode_target(data: AuditData) -> Array | None:
    """Return the target values, of the training rows only if the test table has no target."""
    if data.target is None:
        return None
    codes, values = data.target.codes_and_values
    return values[codes] if (codes >= 0).all() else values[codes[: data.n_train]]


def _list_steps(pipeline: BaseEstimator) -> Iterator[tuple[str, Any]]:
    """Yield the steps of a pipeline in order; a single transformer is its own step."""
    for name, step in getattr(pipeline, "steps", [(type(pipeline).__name__, pipeline)]):
        if step is not None and step != "passthrough":
            yield name, step


def _find_leaked_attributes(
    step: BaseEstimator, train: object, test: object, labels: Array | None, n_train: int
) -> dict[str, str]:
    """Return the fitted attributes of the step that depend on the test table, each with a reason."""
    # refit to the training rows alone, and to both tables
    from_train = collect_fitted_attributes(clone(step).fit(train, None if labels is None else labels[:n_train]))
    all_labels = labels if labels is not None and len(labels) > n_train else None
    can_fit_both = all_labels is not None or not get_tags(step).target_tags.required
    from_both = (
        collect_fitted_attributes(clone(step).fit(stack_tables(train, test), all_labels)) if can_fit_both else {}
    )
    leaked = {}
    for attribute, value in collect_fitted_attributes(step).items():
        if attribute in from_train and not is_same_fitted_value(value, from_train[attribute]):
            extra = _format_extra_entries(value, from_train[attribute])
            if extra or (attribute in from_both and is_same_fitted_value(value, from_both[attribute])):
                leaked[attribute] = extra or "as fitted to train and test together"
    return leaked


def stack_tables(train: Any, test: Any) -> object:
    """Concatenate two tables of the same type."""
    frame = nw.from_native(train, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        joined: object = nw.concat([frame, nw.from_native(test, eager_only=True)]).to_native()
        return joined
    if hasattr(train, "tocsr"):
        return vstack([train, test]).tocsr()
    if isinstance(train, list) and isinstance(test, list):
        return [*train, *test]
    return np.concatenate([np.asarray(train), np.asarray(test)])


def collect_fitted_attributes(estimator: BaseEstimator, path: str = "") -> dict[str, object]:
    """Return the fitted attributes of an estimator and of nested estimators, by path."""
    found: dict[str, object] = {}
    for name, value in vars(estimator).items():
        if name.endswith("_") and not name.startswith("_"):
            found.update(_walk_fitted_values(value, f"{path}{name}"))
    return found


def _walk_fitted_values(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield a fitted value with its path, or the fitted values of the estimators inside of it."""
    if isinstance(value, BaseEstimator):
        yield from collect_fitted_attributes(value, f"{path}.").items()
    elif isinstance(value, list | tuple) and any(isinstance(v, BaseEstimator | list | tuple) for v in value):
        named = isinstance(value, tuple) and isinstance(value[0], str)  # (name, estimator, columns)
        for k, part in enumerate(value):
            yield from _walk_fitted_values(part, f"{path}.{value[0] if named else k}")
    elif isinstance(value, Mapping | np.ndarray | int | float | list | set):
        yield path, value


def is_same_fitted_value(a: object, b: object) -> bool:
    """Whether two fitted attributes are equal up to rounding; mappings are compared by their keys only."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys()
    try:
        x, y = np.asarray(a), np.asarray(b)
    except ValueError:  # lists of arrays of different lengths
        if not isinstance(a, Sequence) or not isinstance(b, Sequence):
            return False
        return len(a) == len(b) and all(is_same_fitted_value(p, q) for p, q in zip(a, b, strict=True))
    if x.shape != y.shape:
        return False
    if x.dtype.kind in "fc" or y.dtype.kind in "fc":
        return bool(np.allclose(x, y, rtol=FITTED_VALUE_TOLERANCE, atol=FITTED_VALUE_TOLERANCE, equal_nan=True))
    return bool((x == y).all())


def _format_extra_entries(value: object, train_value: object) -> str:
    """Describe the entries of a vocabulary that no training row has, or return ""."""
    if not isinstance(value, Mapping) or not isinstance(train_value, Mapping):
        return ""
    extra = [str(key) for key in value if key not in train_value]
    examples = ", ".join(map(repr, extra[:3]))
    return f"{len(extra):,} entries that no training row has, such as {examples}" if extra else ""
