"""Paired comparison of two models on the same rows: the difference of their scores, with an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation.intervals import Interval, mean_interval
from priory.evaluation.score_table import align_text_columns
from priory.evaluation.scores import Scores

COMPARED_SCORES = ("accuracy", "log_loss", "brier")


@dataclass(frozen=True)
class Comparison:
    """Scores of the first model minus scores of the second.

    The first model is better where accuracy is positive, and where log loss or Brier score is negative.

    Attributes
    ----------
    accuracy, log_loss, brier : Interval
        The difference with a 95 % interval. The comparison is paired, so rows that are hard for both models do not
        widen the interval.
    """

    accuracy: Interval
    log_loss: Interval
    brier: Interval

    def describe(self, first: str, second: str) -> str:
        """Say in one sentence which model is better."""
        better = {
            "in accuracy": _find_better(self.accuracy, first, second),
            "in log loss": _find_better(self.log_loss, second, first),
        }
        decided = [f"{name} is better {where}" for where, name in better.items() if name]
        undecided = " and ".join(where for where, name in better.items() if not name)
        parts = [*decided, *([f"the difference {undecided} may be chance"] if undecided else [])]
        return f"{first} and {second}: {'; '.join(parts)}."


def compare_scores(first: Scores, second: Scores) -> Comparison:
    """Return the difference between the scores of two models on the same rows.

    >>> good = Scores.of(["a", "b"] * 20, [[0.9, 0.1], [0.2, 0.8]] * 20, ["a", "b"])
    >>> guess = Scores.of(["a", "b"] * 20, [[0.5, 0.5], [0.6, 0.4]] * 20, ["a", "b"])
    >>> f"{compare_scores(good, guess).accuracy:.2f}"
    '0.50 [0.34, 0.66]'
    """
    if first.classes != second.classes or not np.array_equal(first.truth, second.truth):
        raise DataError("the models were judged on different rows or classes; judge both on the same rows")
    pairs = zip(_measure_rows(first).values(), _measure_rows(second).values(), strict=True)
    # cross-validated models share training rows, so their scores vary more than independent ones
    widening = math.sqrt(first.variance_factor)
    return Comparison(*(mean_interval(a - b, first.weight).widen(widening) for a, b in pairs))


def format_comparison(scores: Mapping[str, Scores]) -> str:
    """Format a table of several models on the same rows, each compared with the first."""
    first, *others = scores
    rows = [("model", "accuracy", "log loss", "Brier score", "log loss, difference to the first")]
    for name, one in scores.items():
        difference = "" if name == first else f"{compare_scores(one, scores[first]).log_loss:+.3f}"
        rows.append((name, *_format_scores_of(one), difference))
    sentences = [compare_scores(scores[first], scores[other]).describe(first, other) for other in others]
    return "\n".join([*align_text_columns(rows), "", *sentences])


def format_curve(curve: Mapping[int, Scores]) -> str:
    """Format a table of the scores of models by the number of rows that they learned."""
    rows = [("rows learned", "accuracy", "log loss", "rows judged")]
    for n_rows, scores in curve.items():
        rows.append((f"{n_rows:,}", f"{scores.accuracy:.1%}", f"{scores.log_loss:.3f}", f"{len(scores.truth):,}"))
    return "\n".join(align_text_columns(rows))


def _format_scores_of(scores: Scores) -> tuple[str, str, str]:
    return f"{scores.accuracy.value:.1%}", f"{scores.log_loss.value:.3f}", f"{scores.brier.value:.3f}"


def _measure_rows(scores: Scores) -> dict[str, Array]:
    """Return each score per row, (rows,); its mean over the rows is the score."""
    measured = (scores.answer == scores.truth) * 1.0, scores.surprise, scores.squared_error
    return dict(zip(COMPARED_SCORES, measured, strict=True))


def _find_better(difference: Interval, if_positive: str, if_negative: str) -> str:
    if difference.low > 0:
        return if_positive
    return if_negative if difference.high < 0 else ""
