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

from priory.bag_of_words.tokenizer import distinct
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import BadModel
from priory.storage.registry import FAMILIES, RECORDS, class_of, name_of

SHAPES = {  # c classes, d columns (e: or one for all), v values, k bytes, p terms
    "Buckets": {"n": "c", "counts": "vc"},
    "Events": {"n": "cd", "events": "cd", "log_factorials": "cd", "outside": "cd"},
    "Moments": {"n": "cd", "first": "cd", "second": "cd", "origin": "cd", "unit": "d"},
    "Occurrences": {"n": "c", "tokens": "cd"},
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
KINDS = {("Words", "arena"): "u1", ("Words", "ends"): "i8", ("Seen", "classes"): "", ("Tally", "values"): ""}
NEED_NOT_BE_FINITE = {"Diagnostics", "Honest"}
ROUNDING = 1e-6  # of the rows seen: how far sums over the same rows may differ


def check(value: Any, where: str, finite: bool = True) -> None:
    """Raise BadModel, with the place, for what cannot be."""
    if isinstance(value, (np.ndarray, float)) and finite:
        numbers = np.asarray(value)
        extremes = [numbers.min(initial=0.0), numbers.max(initial=0.0)] if numbers.dtype.kind == "f" else []
        if not np.isfinite(extremes).all():
            raise BadModel(
                f"{where} holds {numbers[~np.isfinite(numbers)].flat[0]}; only finite numbers can be learned."
            )
    elif isinstance(value, dict):
        for key, item in value.items():
            check(item, f"{where}[{key!r}]", finite)
    elif name_of(type(value)) in RECORDS:
        _check_record(value, name_of(type(value)), where, finite)
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            check(item, f"{where}[{i}]", finite)


def _check_record(record: Any, name: str, where: str, finite: bool) -> None:
    for field, hint in _declared(name).items():
        inside = getattr(record, field)
        if not fits(inside, hint):
            raise BadModel(f"{where}.{field} is a {type(inside).__name__}; a {name} holds something else there.")
        check(inside, f"{where}.{field}", finite and name not in NEED_NOT_BE_FINITE)
    if name in SHAPES:
        _check_shapes(record, name, where)
    if isinstance(record, Statistics):
        for field in record.tallied:
            if (np.asarray(getattr(record, field)) < 0).any():
                raise BadModel(f"{where}.{field} is negative; counts never are.")
    if name in RULES and not RULES[name](record):
        raise BadModel(f"{where} is no {name}: {RULES[name].__doc__}")


@cache
def _declared(name: str) -> dict[str, Any]:
    """The fields of a record and what each may hold."""
    kind = class_of(name)
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else kind._fields
    hints = get_type_hints(kind)
    return {field: hints[field] for field in names if get_origin(hints[field]) is not ClassVar}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a type hint says.

    >>> fits((1, 2), tuple[int, int]), fits(("a", 2), tuple[str, ...]), fits(True, float | None), fits(1, float)
    (True, False, False, True)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is tuple and inside[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(fits, value, inside))
    if origin in (tuple, list, frozenset):
        return isinstance(value, origin) and all(fits(item, inside[0]) for item in value)
    if origin is type:
        return isinstance(value, type) and issubclass(value, inside[0])
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return isinstance(value, origin or (NoneType if hint is None else hint))


def _check_shapes(record: Any, name: str, where: str) -> None:
    sizes: dict[str, int] = {}
    for field, axes in SHAPES[name].items():
        array = np.asarray(getattr(record, field))
        kind = KINDS.get((name, field), "f8")
        if kind and array.dtype != np.dtype(kind):
            raise BadModel(f"{where}.{field} holds {array.dtype} instead of {np.dtype(kind)}.")
        alike = array.ndim == len(axes) and all(
            size == sizes.setdefault(axis, size) for axis, size in zip(axes, array.shape, strict=True)
        )
        if not alike:
            raise BadModel(f"{where}.{field} has the shape {array.shape}, which does not go with its other fields.")
    if sizes.get("e", 1) not in (1, sizes.get("d", 1)):
        raise BadModel(f"{where} has sums for {sizes['e']} columns, and others for {sizes['d']}.")


# -- what each record is -----------------------------------------------------------------------------------------------


def _block(block: Any) -> bool:
    """every column has one name and one kind, and its candidates are families."""
    candidates = [c if isinstance(c, type) else type(c) for c in block.candidates]
    named = len(set(block.names)) == len(block.names) > 0 and len(candidates) > 0
    return named and all(name_of(c) in FAMILIES for c in candidates)


def _moments(moments: Any) -> bool:
    """squares are not negative, and a unit is above nought."""
    return bool((moments.unit > 0).all() and (moments.second >= 0).all())


def _products(products: Any) -> bool:
    """there is a sum for the target and for each term."""
    terms = set(products.terms)
    return products.n >= 0 and len(products.first) == len(products.terms) + 1 == len(terms) + 1


def _scatter(scatter: Any) -> bool:
    """squares are not negative, and a unit is above nought."""
    return bool((scatter.unit > 0).all() and (np.diagonal(scatter.second, axis1=-2, axis2=-1) >= 0).all())


def _schema(schema: Any) -> bool:
    """every column has a name of its own, and is in one block at most."""
    placed = [name for block in schema.blocks for name in block.names]
    names = set(schema.names)
    return len(names) == len(schema.names) and len(set(placed)) == len(placed) and names >= set(placed)


def _seen(seen: Any) -> bool:
    """classes are sorted, each there once, and no part has seen more rows than there were."""
    slack = ROUNDING * (1 + seen.n.max(initial=0.0))
    parts = list(_flat(seen.parts))
    counted = all(isinstance(part, Statistics) and _groups(part) == len(seen.n) for part in parts)
    return (
        len(seen.n) > 0
        and _increasing(seen.classes)
        and counted
        and all(bool((seen.n + slack >= _rows(part).T).all()) for part in parts)
    )


def _tally(tally: Any) -> bool:
    """values are sorted, each there once, and counts are not negative."""
    return _increasing(tally.values) and not (tally.counts < 0).any()


def _trials(trials: Any) -> bool:
    """there are no more successes than trials."""
    return bool((trials.successes <= trials.n + ROUNDING * (1 + np.abs(trials.n))).all())


def _words(words: Any) -> bool:
    """words are UTF-8, one after the other, each there once; counts are not negative."""
    counted = words.missed >= 0 and words.counts.min(initial=0.0) >= 0
    return counted and distinct(words.arena, words.ends) and _is_text(words.arena)


RULES: dict[str, Callable[[Any], bool]] = {
    "Block": _block,
    "Moments": _moments,
    "Products": _products,
    "Scatter": _scatter,
    "Schema": _schema,
    "Seen": _seen,
    "Tally": _tally,
    "Trials": _trials,
    "Words": _words,
}


def _flat(parts: Any) -> Iterator[Any]:
    for part in parts:
        if type(part) is tuple:
            yield from _flat(part)
        else:
            yield part


def _groups(record: Any) -> int:
    """How many classes a record is of."""
    field, axes = next((f, axes) for f, axes in SHAPES[name_of(type(record))].items() if "c" in axes)
    return int(getattr(record, field).shape[axes.index("c")])


def _rows(record: Any) -> Array:
    """The rows that a record has seen of each class."""
    outside = getattr(record, "outside", 0.0)
    return np.asarray(record.n + outside)


def _increasing(values: Array) -> bool:
    """Whether values are sorted and differ; of one kind, so that they can be compared."""
    if values.dtype.kind == "O":
        items = values.tolist()
        return len({type(v) for v in items}) <= 1 and all(a < b for a, b in pairwise(items))
    return bool((values[1:] > values[:-1]).all()) and values.dtype.kind in "biufUS"


def _is_text(arena: Array) -> bool:
    """Whether bytes are UTF-8."""
    text = pa.LargeStringArray.from_buffers(1, pa.py_buffer(np.array([0, len(arena)])), pa.py_buffer(arena))
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
