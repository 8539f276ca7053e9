"""Check that two models can be merged: same type, same columns."""

from __future__ import annotations

from priory.errors import DataError


def check_same_type(model: object, other: object) -> None:
    """Raise an error unless both models have the same type."""
    if type(other) is not type(model):
        raise DataError(
            f"a {type(model).__name__} cannot be merged with a {type(other).__name__}; merge models of the same type."
        )


def check_same_columns(model: object, other: object) -> None:
    """Raise an error unless both fitted models have the same columns, by number and names."""
    numbers = [int(getattr(fitted, "n_features_in_", 0)) for fitted in (model, other)]
    if numbers[0] != numbers[1]:
        raise DataError(
            f"one model has {_format_count(numbers[0])}, the other {_format_count(numbers[1])}; "
            "merge models of the same columns."
        )
    names = [list(getattr(fitted, "feature_names_in_", ())) for fitted in (model, other)]
    if names[0] and names[1] and names[0] != names[1]:
        place = next(j for j, (one, two) in enumerate(zip(*names, strict=True)) if one != two)
        raise DataError(
            f"column {place} is {names[0][place]!r} in one model and {names[1][place]!r} in the other; "
            "merge models of the same columns, in the same order."
        )


def describe_difference(name: str, value: object, other: object, max_length: int = 40) -> str:
    """Describe how two models differ in a parameter."""
    shown = [repr(v) for v in (value, other)]
    return f"{name} differs" if max(map(len, shown)) > max_length else f"{name} is {shown[0]} and {shown[1]}"


def _format_count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"
