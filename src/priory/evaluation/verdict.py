"""The verdict: one sentence on whether a model beats the base rate, or why it cannot be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from priory.core.typing import Array
from priory.models.ledger_formatting import format_value

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
