"""Scores as a table to read, with a verdict in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy import ndarray as Array

from priory.core.display_table import DisplayTable, display_width, join_html, pad_to_width
from priory.evaluation.intervals import Interval
from priory.model.ledger_output import format_value

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores


# With five rows even five correct answers are not significant: the p-value of a sign test is 2 * 0.5**5 > 5 %.
MIN_ROWS_TO_SCORE = 6
MIN_ROWS_OF_LARGEST_CLASS = 2  # leave-one-out needs another row of the class


def explain_too_few_rows(rows: float, rows_per_class: Array) -> str:
    """Return a sentence that explains why these rows are too few to judge a model, or "" if they are enough.

    ``rows`` is the effective number of rows, ``rows_per_class`` has one entry per class.

    >>> explain_too_few_rows(2, [1, 1])
    'Too few rows to judge the model: 2 rows are scored, and at least 6 are needed.'
    >>> explain_too_few_rows(6, [3, 3])
    ''
    """
    if round(rows, 6) < MIN_ROWS_TO_SCORE:
        number = "1 row is" if rows == 1 else f"{rows:.3g} rows are"
        return f"Too few rows to judge the model: {number} scored, and at least {MIN_ROWS_TO_SCORE} are needed."
    if max(rows_per_class) < MIN_ROWS_OF_LARGEST_CLASS:
        return "Too few rows to judge the model: no two of the scored rows have the same class."
    return ""


def format_verdict(scores: Scores) -> str:
    """Return one sentence: whether the model beats the base rate by more than chance."""
    base = f"always answering {format_value(scores.base.label)}: {scores.base.accuracy:.1%} right"
    match scores.gain["accuracy"].low > 0, scores.gain["log_loss"].low > 0:
        case True, True:
            return f"Beats the base rate ({base}), in accuracy and in log loss."
        case True, False:
            return f"More accurate than the base rate ({base}), but its probabilities are no better."
        case False, True:
            return f"No more accurate than the base rate ({base}), but its probabilities are better."
        case _:
            return f"Does not beat the base rate ({base}): it may not be worth using."


ScoreValue: TypeAlias = "bool | int | float | str | dict[str, ScoreValue] | None"  # as JSON has it

MAX_CONFUSION_CLASSES = 1000  # a larger confusion matrix is left out of the JSON

OVERALL_SCORES = {  # the scores over all rows: title and number format
    "accuracy": ("accuracy", ".1%"),
    "log_loss": ("log loss", ".3f"),
    "brier": ("Brier score", ".3f"),
    "calibration_error": ("calibration error", ".1%"),
}


def format_scores(scores: Scores) -> str:
    """Format the scores beside the base rate, the verdict, and the scores of the classes (the worst if there are many).

    With too few rows only the verdict is shown.
    """
    if not scores.has_enough_rows:
        return scores.verdict
    overall, classes = _list_overall(scores), _list_classes(scores)
    return "\n".join([*align_text_columns(overall), "", scores.verdict, "", *align_text_columns(classes)])


def format_scores_html(scores: Scores) -> str:
    """Format the scores as HTML tables."""
    if not scores.has_enough_rows:
        return DisplayTable(scores.verdict, (), ())._repr_html_()
    tables = [
        DisplayTable(title, head, tuple(rows))
        for title, (head, *rows) in ((scores.verdict, _list_overall(scores)), ("", _list_classes(scores)))
    ]
    return join_html(tables)


def _list_overall(scores: Scores) -> list[tuple[str, ...]]:
    """Return the rows of the table of overall scores and base rates, heading first."""
    overall: list[tuple[str, ...]] = [(f"{len(scores.truth)} rows", "score", "95 % interval", "base rate")]
    for name, (title, form) in OVERALL_SCORES.items():
        score, base = getattr(scores, name), scores.base_score(name)
        interval = f"{score.low:{form}} to {score.high:{form}}"
        overall.append((title, f"{score.value:{form}}", interval, "" if base is None else f"{base:{form}}"))
    return overall


def _list_classes(scores: Scores) -> list[tuple[str, ...]]:
    """Return the rows of the table of classes, heading first."""
    worst = scores.worst()
    title = "class" if len(worst) == len(scores.classes) else f"worst {len(worst)} of {len(scores.classes)} classes"
    classes: list[tuple[str, ...]] = [(title, "rows", "precision", "recall", "F1", "ROC area")]
    for one in worst:
        each = (one.precision, one.recall, one.f1, one.roc_area)
        classes.append((format_value(one.label), f"{one.rows:g}", *(_format_score(score.value) for score in each)))
    return classes


def scores_to_dict(scores: Scores) -> dict[str, Any]:
    """Return the scores as lists, numbers and strings; infinite or undefined values become None.

    With too few rows all scores are None, and the verdict gives the reason. With more than 1,000 classes the confusion
    matrix is None.
    """
    enough = scores.has_enough_rows
    return {
        "rows": len(scores.truth),
        "classes": [_to_json_value(label) for label in scores.classes],
        "enough_rows": enough,
        **{name: _to_json_value(getattr(scores, name)) if enough else None for name in OVERALL_SCORES},
        "base_rate": _to_json_value(scores.base._asdict()),
        "gain": _to_json_value(scores.gain) if enough else None,
        "verdict": scores.verdict,
        "expected_error": _to_json_value(scores.expected_error) if enough else None,
        "confusion": scores.confusion.tolist() if len(scores.classes) <= MAX_CONFUSION_CLASSES else None,
        "per_class": [_to_json_value(one._asdict()) for one in scores.per_class] if enough else None,
    }


def align_text_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return one line per row, with the first column aligned left and the others aligned right.

    >>> print("\\n".join(align_text_columns([("class", "rows"), ("a", "12")])))
    class  rows
    a        12
    """
    # the width of each column
    first, *others = (max(map(display_width, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join(
            [pad_to_width(row[0], first), *(cell.rjust(w) for cell, w in zip(row[1:], others, strict=True))]
        ).rstrip()
        for row in rows
    ]


def _to_json_value(value: object) -> ScoreValue:
    """Convert a value for JSON: an interval to a dictionary, an infinite number to None."""
    if isinstance(value, Interval):
        return _to_json_value(value._asdict())
    if isinstance(value, dict):
        return {str(name): _to_json_value(inner) for name, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _format_score(score: float) -> str:
    """Format the score of a class; NaN (a class without rows) is "undefined"."""
    return "undefined" if math.isnan(score) else f"{score:.3f}"
