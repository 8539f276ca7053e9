"""Calibration section of a report: overall, and by class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from priory.evaluation.reliability import calibration_error, compute_reliability_bins
from priory.evaluation.scores import Scores
from priory.export.report_scores import ANSWERS, UNCORRECTED
from priory.export.small_figures import draw_reliability
from priory.models.ledger_formatting import format_value

CLASS_BINS = 10


def describe_calibration(compared: dict[str, Scores]) -> str:
    """Say whether the model is calibrated, and compare it with the other model in ``compared``."""
    scores, error = compared[ANSWERS], compared[ANSWERS].calibration_error
    certainty, accuracy = float(np.average(scores.certainty, weights=scores.weight)), scores.accuracy.value
    if error.low == 0:  # not significantly miscalibrated
        found = "The answers are as certain as they should be, as far as these rows show"
    else:
        found = "The answers are too certain" if certainty > accuracy else "The answers are not certain enough"
    other = next(one for name, one in compared.items() if name != ANSWERS)
    comparison = (
        "Before corrections (the plain line) they were"
        if UNCORRECTED in compared
        else "With all log-odds multiplied by one number (one temperature) they would be"
    )
    return (
        f"{found}: {certainty:.1%} certain on average, {accuracy:.1%} right. The calibration error is "
        f"{error.value:.1%} and the log loss {scores.log_loss.value:.3f}. {comparison} "
        f"{other.calibration_error.value:.1%} and {other.log_loss.value:.3f}."
    )


def describe_class_calibration(
    scores: Scores, max_classes: int, mark_safe: Callable[[str], str]
) -> list[dict[str, str]]:
    """Return, for each class, its mean probability, its share of the rows, and its calibration error."""
    shown = [scores.classes.index(one.label) for one in scores.worst(max_classes)]
    rows = []
    for c in shown:
        p, is_class = np.exp(scores.log_probabilities[:, c]), scores.truth == c  # (rows,) each
        bins = compute_reliability_bins(p, is_class, scores.weight, CLASS_BINS)
        error, label = calibration_error(bins, scores.rows), format_value(scores.classes[c])
        mean, share = float(np.average(p, weights=scores.weight)), float(scores.shares[c])
        title = f"the share of {label} against its probability; the calibration error is {error.value:.1%}"
        rows.append(
            {
                "label": label,
                "mean": f"{mean:.1%}",
                "share": f"{share:.1%}",
                "error": f"{error.value:.1%}",
                "low": f"{error.low:.1%}",
                "high": f"{error.high:.1%}",
                "figure": mark_safe(draw_reliability(bins, title)),
            }
        )
    return rows
