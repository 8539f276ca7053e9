"""Preparation leakage: whether anything a pipeline has fitted depends on the test rows.

Each step is fitted anew twice, to the training rows and to both tables. What the given step holds and the first does
not, but the second does, it has from the test rows: a vocabulary, a mean, a maximum, a choice of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
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
        f"step {name!r} was fitted to the test rows too: {', '.join(leaked)}",
        "Fit the whole pipeline to the training rows alone: pipeline.fit(train).",
        columns=(name,),
        examples=tuple(f"{attribute}: {what}" for attribute, what in leaked.items()),
    )


def _take_features(data: AuditData, side: int) -> Any:
    given = data.raw_features[side]
    names = getattr(data.pipeline, "feature_names_in_", None)
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    return frame[list(names)].to_native() if isinstance(frame, nw.DataFrame) and names is not None else given


def _decode_target(data: AuditData) -> Any:
    """The target as it came, of the training rows alone where the test table has none."""
    if data.target is None:
        return None
    codes, values = data.target.codes_and_values
    return values[codes] if (codes >= 0).all() else values[codes[: data.n_train]]


def _list_steps(pipeline: Any) -> Iterator[tuple[str, Any]]:
    """The steps of a pipeline in order; a lone transformer is its own step."""
    for name, step in getattr(pipeline, "steps", [(type(pipeline).__name__, pipeline)]):
        if step is not None and step != "passthrough":
            yield name, step


def _find_leaked_attributes(step: Any, train: Any, test: Any, labels: Any, n_train: int) -> dict[str, str]:
    """What the step holds that only both tables together explain, attribute by attribute."""
    here = collect_fitted_attributes(clone(step).fit(train, None if labels is None else labels[:n_train]))
    every = labels if labels is not None and len(labels) > n_train else None
    told = every is not None or not get_tags(step).target_tags.required
    both = collect_fitted_attributes(clone(step).fit(stack_tables(train, test), every)) if told else {}
    leaked = {}
    for attribute, value in collect_fitted_attributes(step).items():
        if attribute in here and not is_same_fitted_value(value, here[attribute]):
            beyond = _format_extra_entries(value, here[attribute])
            if beyond or (attribute in both and is_same_fitted_value(value, both[attribute])):
                leaked[attribute] = beyond or "as fitted to train and test together"
    return leaked


def stack_tables(train: Any, test: Any) -> Any:
    frame = nw.from_native(train, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return nw.concat([frame, nw.from_native(test, eager_only=True)]).to_native()
    if hasattr(train, "tocsr"):
        return vstack([train, test]).tocsr()
    return [*train, *test] if isinstance(train, list) else np.concatenate([np.asarray(train), np.asarray(test)])


def collect_fitted_attributes(estimator: Any, path: str = "") -> dict[str, Any]:
    """The fitted attributes of an estimator and of those inside it, by their path."""
    found: dict[str, Any] = {}
    for name, value in vars(estimator).items():
        if name.endswith("_") and not name.startswith("_"):
            found.update(_walk_fitted_values(value, f"{path}{name}"))
    return found


def _walk_fitted_values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, BaseEstimator):
        yield from collect_fitted_attributes(value, f"{path}.").items()
    elif isinstance(value, list | tuple) and any(isinstance(v, BaseEstimator | list | tuple) for v in value):
        named = isinstance(value, tuple) and isinstance(value[0], str)  # (name, estimator, columns)
        for k, part in enumerate(value):
            yield from _walk_fitted_values(part, f"{path}.{value[0] if named else k}")
    elif isinstance(value, Mapping | np.ndarray | int | float | list | set):
        yield path, value


def is_same_fitted_value(a: Any, b: Any) -> bool:
    """Whether two fitted attributes are equal, up to rounding."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys()
    try:
        x, y = np.asarray(a), np.asarray(b)
    except ValueError:
        return len(a) == len(b) and all(is_same_fitted_value(p, q) for p, q in zip(a, b, strict=True))
    if x.shape != y.shape:
        return False
    if x.dtype.kind in "fc" or y.dtype.kind in "fc":
        return bool(np.allclose(x, y, rtol=FITTED_VALUE_TOLERANCE, atol=FITTED_VALUE_TOLERANCE, equal_nan=True))
    return bool((x == y).all())


def _format_extra_entries(value: Any, train_value: Any) -> str:
    """What is in a vocabulary, or among categories, that the training rows do not have."""
    if isinstance(value, Mapping) and isinstance(train_value, Mapping):
        more = [str(key) for key in value if key not in train_value]
        return (
            f"{len(more):,} entries that no training row has, such as {', '.join(map(repr, more[:3]))}" if more else ""
        )
    return ""
