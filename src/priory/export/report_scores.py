"""The sections of a report about scores and calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np

from priory.calibration.calibration_maps import fit_calibration_map
from priory.core.logspace import log
from priory.core.typing import Array, Classifier
from priory.estimators.calibrated import predict_out_of_fold
from priory.evaluation.curves import calibration_error, compute_reliability_bins
from priory.evaluation.scores import Scores
from priory.export.report_page import draw_reliability
from priory.export.strongest_evidence import take_input_rows
from priory.model.ledger_output import format_value

if TYPE_CHECKING:
    from priory.core.typing import MatrixLike


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


UNCORRECTED, ANSWERS, ONE_TEMPERATURE = "plain", "as it answers", "with one temperature"


@runtime_checkable
class SelfEvaluatingModel(Protocol):
    """A model that can score itself out of sample on rows that it has learned."""

    def evaluate(self, X: object, y: Array) -> Scores: ...


@runtime_checkable
class CorrectedModel(Protocol):
    """A model that may have corrections."""

    def without_corrections(self) -> Classifier: ...


@runtime_checkable
class LeavingOutModel(Protocol):
    """A model with leave-one-out predictions."""

    @property
    def classes_(self) -> Array: ...

    def leave_one_out(self, X: object, y: Array) -> Array: ...


class ReportScores(NamedTuple):
    """Scores of a model, how its rows were predicted, and scores to compare with.

    ``compared`` has two entries: the model without and with its corrections or, if it has none, the model as it is and
    with temperature scaling.
    """

    scores: Scores
    method: str
    compared: dict[str, Scores]


def score_learned_rows(model: Classifier, X: object, y: Array, known: Scores | None = None) -> ReportScores:
    """Score rows that the model has learned, each predicted out of sample.

    ``known`` is the result of ``model.evaluate``, if it has been computed already.
    """
    if not isinstance(model, SelfEvaluatingModel | LeavingOutModel):
        scores = Scores.of(y, predict_out_of_fold(model, cast("MatrixLike", X), y), model.classes_, logs=True)
        return ReportScores(scores, "each fifth judged by a model of the other four", _compare(scores, None))
    if not isinstance(model, SelfEvaluatingModel):
        scores, plain = _score_leave_one_out(model, X, y), None
    else:
        scores = model.evaluate(X, y) if known is None else known
        plain = _score_leave_one_out(model, X, y, scores.positions) if isinstance(model, LeavingOutModel) else None
    return ReportScores(scores, "each judged by the model without it", _compare(scores, plain))


def score_held_out_rows(model: Classifier, X: object, y: Array) -> ReportScores:
    """Score rows that the model has not learned."""
    scores, plain = Scores.of(y, _predict_log_proba(model, X), model.classes_, logs=True), None
    if isinstance(model, CorrectedModel) and hasattr(model, "corrections_"):
        plain = Scores.of(y, _predict_log_proba(model.without_corrections(), X), model.classes_, logs=True)
    return ReportScores(scores, "none of them learned by the model", _compare(scores, plain))


def cross_fit_temperature(scores: Scores) -> Scores:
    """Apply temperature scaling to each half of the rows, fitted on the other half."""
    log_p, half = scores.log_probabilities.copy(), np.arange(len(scores.truth)) % 2 == 0  # even and odd rows
    for part in (half, ~half):
        fitted = fit_calibration_map("temperature", scores.log_probabilities[~part], scores.truth[~part])
        log_p[part] = fitted(log_p[part])
    return replace(scores, log_probabilities=log_p)


def _compare(scores: Scores, plain: Scores | None) -> dict[str, Scores]:
    # corrections that change nothing are not worth a comparison
    if plain is not None and not np.allclose(plain.log_probabilities, scores.log_probabilities):
        return {UNCORRECTED: plain, ANSWERS: scores}
    return {ANSWERS: scores, ONE_TEMPERATURE: cross_fit_temperature(scores)}


def _score_leave_one_out(model: LeavingOutModel, X: object, y: Array, positions: Array | None = None) -> Scores:
    rows, labels = (X, y) if positions is None else (take_input_rows(X, positions), y[positions])
    return Scores.of(labels, model.leave_one_out(rows, labels), model.classes_, logs=True)


def _predict_log_proba(model: Classifier, X: object) -> Array:
    if hasattr(model, "predict_log_proba"):
        return np.asarray(model.predict_log_proba(X))
    return log(np.asarray(model.predict_proba(X)))
