"""What a model can mean: counts that are counts, classes that are sorted, sums that agree.

A checksum says that a file is as it was written, not that it was written in good faith. So everything that comes out of
a file is compared with what its class declares, with the shapes its fields share, and with what was learned beside it.
The same is asked of a model before it is saved: a file that is written can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from priory.bag_of_words.tokenizer import is_valid_vocabulary
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import ModelFileError
from priory.storage.registry import FAMILY_PATHS, RECORD_PATHS, find_stored_name, import_stored_class

FIELD_SHAPES = {  # c classes, d columns (e: or one for all), v values, k bytes, p terms
    "Buckets": {"n": "c", "counts": "vc"},
    "Events": {"n": "cd", "events": "cd", "log_factorials": "cd", "outside": "cd"},
    "Moments": {"n": "cd", "first": "cd", "second": "cd", "origin": "cd", "unit": "d"},
    "Occurrences": {"n": "c", "tokens": "cd"},
    "OccurrencesAndPresence": {"n": "c"},
    "Positives": {"n": "cd", "total": "cd", "log_total": "cd", "outside": "cd"},
    "Products": {"n": "", "first": "p", "second": "pp", "origin": "p"},
    "Scatter": {"n": "c", "first": "cd", "second": "cdd", "origin": "cd", "unit": "d"},
    "Seen": {"classes": "c", "n": "c"},
    "Successes": {"n": "cd", "successes": "cd", "log_ways": "cd", "outside": "cd"},
    "Tally": {"values": "v", "counts": "cv"},
    "TokenCounts": {"n": "c", "tokens": "cd", "shares": "cd", "log_ways": "c"},
    "Trials": {"n": "ce", "successes": "cd", "outside": "ce"},
    "Words": {"n": "c", "arena": "k", "ends": "v", "counts": "vc"},
}
FIELD_DTYPES = {("Words", "arena"): "u1", ("Words", "ends"): "i8", ("Seen", "classes"): "", ("Tally", "values"): ""}
RECORDS_NOT_FINITE = {"Diagnostics", "Honest"}
ROW_SUM_TOLERANCE = 1e-6  # of the rows seen: how far sums over the same rows may differ


def check_value(value: Any, where: str, finite: bool = True) -> None:
    """Raise BadModel, with the place, for what cannot be."""
    if isinstance(value, (np.ndarray, float)) and finite:
        numbers = np.asarray(value)
        extremes = [numbers.min(initial=0.0), numbers.max(initial=0.0)] if numbers.dtype.kind == "f" else []
        if not np.isfinite(extremes).all():
            raise ModelFileError(
                f"{where} holds {numbers[~np.isfinite(numbers)].flat[0]}; only finite numbers can be learned."
            )
    elif isinstance(value, dict):
        for key, item in value.items():
            check_value(item, f"{where}[{key!r}]", finite)
    elif find_stored_name(type(value)) in RECORD_PATHS:
        _check_record(value, find_stored_name(type(value)), where, finite)
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            check_value(item, f"{where}[{i}]", finite)


def _check_record(record: Any, name: str, where: str, finite: bool) -> None:
    for field, hint in _find_field_types(name).items():
        inside = getattr(record, field)
        if not matches_type_hint(inside, hint):
            raise ModelFileError(f"{where}.{field} is a {type(inside).__name__}; a {name} holds something else there.")
        check_value(inside, f"{where}.{field}", finite and name not in RECORDS_NOT_FINITE)
    if name in FIELD_SHAPES:
        _check_shapes(record, name, where)
    if isinstance(record, Statistics):
        for field in record.count_fields:
            if (np.asarray(getattr(record, field)) < 0).any():
                raise ModelFileError(f"{where}.{field} is negative; counts never are.")
    if name in RECORD_VALIDATORS and not RECORD_VALIDATORS[name](record):
        raise ModelFileError(f"{where} is no {name}: {RECORD_VALIDATORS[name].__doc__}")


@cache
def _find_field_types(name: str) -> dict[str, Any]:
    """The fields of a record and what each may hold."""
    kind = import_stored_class(name)
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else kind._fields
    hints = get_type_hints(kind)
    return {field: hints[field] for field in names if get_origin(hints[field]) is not ClassVar}


def matches_type_hint(value: Any, hint: Any) -> bool:
    """Whether a value is what a type hint says.

    >>> matches_type_hint((1, 2), tuple[int, int]), matches_type_hint(("a", 2), tuple[str, ...]), matches_type_hint(True, float | None), matches_type_hint(1, float)
    (True, False, False, True)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(matches_type_hint(value, option) for option in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is tuple and inside[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(matches_type_hint, value, inside))
    if origin in (tuple, list, frozenset):
        return isinstance(value, origin) and all(matches_type_hint(item, inside[0]) for item in value)
    if origin is type:
        return isinstance(value, type) and issubclass(value, get_origin(inside[0]) or inside[0])
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return isinstance(value, origin or (NoneType if hint is None else hint))


def _check_shapes(record: Any, name: str, where: str) -> None:
    sizes: dict[str, int] = {}
    for field, axes in FIELD_SHAPES[name].items():
        array = np.asarray(getattr(record, field))
        kind = FIELD_DTYPES.get((name, field), "f8")
        if kind and array.dtype != np.dtype(kind):
            raise ModelFileError(f"{where}.{field} holds {array.dtype} instead of {np.dtype(kind)}.")
        alike = array.ndim == len(axes) and all(
            size == sizes.setdefault(axis, size) for axis, size in zip(axes, array.shape, strict=True)
        )
        if not alike:
            raise ModelFileError(
                f"{where}.{field} has the shape {array.shape}, which does not go with its other fields."
            )
    if sizes.get("e", 1) not in (1, sizes.get("d", 1)):
        raise ModelFileError(f"{where} has sums for {sizes['e']} columns, and others for {sizes['d']}.")


# -- what each record is -----------------------------------------------------------------------------------------------


def _is_valid_block(block: Any) -> bool:
    """every column has one name and one kind, and its candidates are families."""
    candidates = [c if isinstance(c, type) else type(c) for c in block.candidates]
    named = len(set(block.names)) == len(block.names) > 0 and len(candidates) > 0
    return named and all(find_stored_name(c) in FAMILY_PATHS for c in candidates)


def _is_valid_moments(moments: Any) -> bool:
    """squares are not negative, and a unit is above nought."""
    return bool((moments.unit > 0).all() and (moments.second >= 0).all())


def _is_valid_occurrences(record: Any) -> bool:
    """occurrences and presence are of the same documents."""
    return all(np.array_equal(part.n, record.n) for part in (record.occurrences, record.presence))


def _is_valid_products(products: Any) -> bool:
    """there is a sum for the target and for each term."""
    terms = set(products.terms)
    return products.n >= 0 and len(products.first) == len(products.terms) + 1 == len(terms) + 1


def _is_valid_scatter(scatter: Any) -> bool:
    """squares are not negative, and a unit is above nought."""
    return bool((scatter.unit > 0).all() and (np.diagonal(scatter.second, axis1=-2, axis2=-1) >= 0).all())


def _is_valid_schema(schema: Any) -> bool:
    """every column has a name of its own, and is in one block at most."""
    placed = [name for block in schema.blocks for name in block.names]
    names = set(schema.names)
    return len(names) == len(schema.names) and len(set(placed)) == len(placed) and names >= set(placed)


def _is_valid_statistics(statistics: Any) -> bool:
    """classes are sorted, each there once, and no part has seen more rows than there were."""
    slack = ROW_SUM_TOLERANCE * (1 + statistics.n.max(initial=0.0))
    parts = list(_flatten_parts(statistics.parts))
    counted = all(isinstance(part, Statistics) and _count_classes(part) == len(statistics.n) for part in parts)
    return (
        len(statistics.n) > 0
        and _is_increasing(statistics.classes)
        and counted
        and all(bool((statistics.n + slack >= _count_rows(part).T).all()) for part in parts)
    )


def _is_valid_value_counts(value_counts: Any) -> bool:
    """values are sorted, each there once, and counts are not negative."""
    return _is_increasing(value_counts.values) and not (value_counts.counts < 0).any()


def _is_valid_trials(trials: Any) -> bool:
    """there are no more successes than trials."""
    return bool((trials.successes <= trials.n + ROW_SUM_TOLERANCE * (1 + np.abs(trials.n))).all())


def _is_valid_token_counts(token_counts: Any) -> bool:
    """words are UTF-8, one after the other, each there once; counts are not negative."""
    counted = token_counts.missed >= 0 and token_counts.counts.min(initial=0.0) >= 0
    return counted and is_valid_vocabulary(token_counts.arena, token_counts.ends) and _is_utf8(token_counts.arena)


RECORD_VALIDATORS: dict[str, Callable[[Any], bool]] = {
    "Block": _is_valid_block,
    "Moments": _is_valid_moments,
    "OccurrencesAndPresence": _is_valid_occurrences,
    "Products": _is_valid_products,
    "Scatter": _is_valid_scatter,
    "Schema": _is_valid_schema,
    "Seen": _is_valid_statistics,
    "Tally": _is_valid_value_counts,
    "Trials": _is_valid_trials,
    "Words": _is_valid_token_counts,
}


def _flatten_parts(parts: Any) -> Iterator[Any]:
    for part in parts:
        if type(part) is tuple:
            yield from _flatten_parts(part)
        else:
            yield part


def _count_classes(record: Any) -> int:
    """How many classes a record is of."""
    field, axes = next((f, axes) for f, axes in FIELD_SHAPES[find_stored_name(type(record))].items() if "c" in axes)
    return int(getattr(record, field).shape[axes.index("c")])


def _count_rows(record: Any) -> Array:
    """The rows that a record has seen of each class."""
    outside = getattr(record, "outside", 0.0)
    return np.asarray(record.n + outside)


def _is_increasing(values: Array) -> bool:
    """Whether values are sorted and differ; of one kind, so that they can be compared."""
    if values.dtype.kind == "O":
        items = values.tolist()
        return len({type(v) for v in items}) <= 1 and all(a < b for a, b in pairwise(items))
    return bool((values[1:] > values[:-1]).all()) and values.dtype.kind in "biufUS"


def _is_utf8(arena: Array) -> bool:
    """Whether bytes are UTF-8."""
    text = pa.LargeStringArray.from_buffers(1, pa.py_buffer(np.array([0, len(arena)])), pa.py_buffer(arena))
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
