"""Scores written out: a table for a terminal, a dictionary for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from priory.core.terminal_width import padded, width
from priory.evaluation.intervals import Interval
from priory.models.explanation import shown

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores

OVERALL = {  # the scores of all rows together, and how they are written
    "accuracy": ("accuracy", ".1%"),
    "log_loss": ("log loss", ".3f"),
    "brier": ("Brier score", ".3f"),
    "calibration_error": ("calibration error", ".1%"),
}


def as_text(scores: Scores) -> str:
    """The scores beside the base rate, the verdict, and the classes (the worst of them if there are many)."""
    overall: list[tuple[str, ...]] = [(f"{len(scores.truth)} rows", "score", "95 % interval", "base rate")]
    for name, (title, form) in OVERALL.items():
        score, base = getattr(scores, name), scores.beside(name)
        interval = f"{score.low:{form}} to {score.high:{form}}"
        overall.append((title, f"{score.value:{form}}", interval, "" if base is None else f"{base:{form}}"))
    worst = scores.worst()
    title = "class" if len(worst) == len(scores.classes) else f"worst {len(worst)} of {len(scores.classes)} classes"
    classes: list[tuple[str, ...]] = [(title, "rows", "precision", "recall", "F1", "ROC area")]
    for one in worst:
        each = (one.precision, one.recall, one.f1, one.roc_area)
        classes.append((shown(one.label), f"{one.rows:g}", *(_told(score.value) for score in each)))
    return "\n".join([*aligned(overall), "", scores.verdict, "", *aligned(classes)])


def as_dict(scores: Scores) -> dict[str, Any]:
    """Lists, numbers and strings; what is infinite or undefined is None."""
    return {
        "rows": len(scores.truth),
        "classes": [_plain(label) for label in scores.classes],
        **{name: _plain(getattr(scores, name)) for name in OVERALL},
        "base_rate": _plain(scores.base._asdict()),
        "gain": _plain(scores.gain),
        "verdict": scores.verdict,
        "bayes_rate": _plain(scores.bayes_rate),
        "confusion": scores.confusion.tolist(),
        "per_class": [_plain(one._asdict()) for one in scores.per_class],
    }


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns of equal width: the first begins at the left, the others end at the right.

    >>> print("\\n".join(aligned([("class", "rows"), ("a", "12")])))
    class  rows
    a        12
    """
    first, *others = (max(map(width, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join([padded(row[0], first), *(cell.rjust(w) for cell, w in zip(row[1:], others, strict=True))]).rstrip()
        for row in rows
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _told(score: float) -> str:
    """A score of a class; where there is no row to judge by there is none."""
    return "undefined" if math.isnan(score) else f"{score:.3f}"
