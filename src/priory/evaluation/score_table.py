"""Scores written out: a table for a terminal, a dictionary for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from priory.core.terminal_width import display_width, pad_to_width
from priory.evaluation.intervals import Interval
from priory.models.explanation import format_value

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores

OVERALL_SCORES = {  # the scores of all rows together, and how they are written
    "accuracy": ("accuracy", ".1%"),
    "log_loss": ("log loss", ".3f"),
    "brier": ("Brier score", ".3f"),
    "calibration_error": ("calibration error", ".1%"),
}


def format_scores(scores: Scores) -> str:
    """The scores beside the base rate, the verdict, and the classes (the worst of them if there are many)."""
    overall: list[tuple[str, ...]] = [(f"{len(scores.truth)} rows", "score", "95 % interval", "base rate")]
    for name, (title, form) in OVERALL_SCORES.items():
        score, base = getattr(scores, name), scores.beside(name)
        interval = f"{score.low:{form}} to {score.high:{form}}"
        overall.append((title, f"{score.value:{form}}", interval, "" if base is None else f"{base:{form}}"))
    worst = scores.worst()
    title = "class" if len(worst) == len(scores.classes) else f"worst {len(worst)} of {len(scores.classes)} classes"
    classes: list[tuple[str, ...]] = [(title, "rows", "precision", "recall", "F1", "ROC area")]
    for one in worst:
        each = (one.precision, one.recall, one.f1, one.roc_area)
        classes.append((format_value(one.label), f"{one.rows:g}", *(_format_score(score.value) for score in each)))
    return "\n".join([*align_text_columns(overall), "", scores.verdict, "", *align_text_columns(classes)])


def scores_to_dict(scores: Scores) -> dict[str, Any]:
    """Lists, numbers and strings; what is infinite or undefined is None."""
    return {
        "rows": len(scores.truth),
        "classes": [_to_json_value(label) for label in scores.classes],
        **{name: _to_json_value(getattr(scores, name)) for name in OVERALL_SCORES},
        "base_rate": _to_json_value(scores.base._asdict()),
        "gain": _to_json_value(scores.gain),
        "verdict": scores.verdict,
        "bayes_rate": _to_json_value(scores.bayes_rate),
        "confusion": scores.confusion.tolist(),
        "per_class": [_to_json_value(one._asdict()) for one in scores.per_class],
    }


def align_text_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns of equal width: the first begins at the left, the others end at the right.

    >>> print("\\n".join(align_text_columns([("class", "rows"), ("a", "12")])))
    class  rows
    a        12
    """
    first, *others = (max(map(display_width, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join(
            [pad_to_width(row[0], first), *(cell.rjust(w) for cell, w in zip(row[1:], others, strict=True))]
        ).rstrip()
        for row in rows
    ]


def _to_json_value(value: Any) -> Any:
    if isinstance(value, Interval):
        return _to_json_value(value._asdict())
    if isinstance(value, dict):
        return {name: _to_json_value(inner) for name, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _format_score(score: float) -> str:
    """A score of a class; where there is no row to judge by there is none."""
    return "undefined" if math.isnan(score) else f"{score:.3f}"
