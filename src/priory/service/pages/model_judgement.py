"""Evaluation of a model for its overview page: scores, two figures, and the strongest evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from priory import plots
from priory.errors import PrioryError
from priory.evaluation.score_table import OVERALL_SCORES
from priory.evaluation.scores import Scores
from priory.export.strongest_evidence import ClassEvidence, find_strongest_evidence
from priory.service.model_store import ModelStore
from priory.service.pages.learned_rows import read_latest_rows
from priory.service.pages.rendering import render_figure
from priory.service.rows import convert_to_input
from priory.service.served_model import ServedModel

MAX_EVIDENCE_ROWS = 1000
MAX_EVIDENCE_LINES = 8
MAX_JUDGED_CLASSES = 12  # shown


@dataclass(frozen=True)
class ScoreLine:
    """One score with its interval, and the base rate if there is one."""

    title: str
    value: str
    low: str
    high: str
    base: str


@dataclass(frozen=True)
class Judgement:
    """The scores of a model at one version, or the reason why there are none."""

    version: int
    problem: str = ""
    verdict: str = ""
    n_rows: int = 0
    scores: tuple[ScoreLine, ...] = ()
    calibration: Markup | None = None
    confusion: Markup | None = None
    evidence: tuple[tuple[str, list[ClassEvidence]], ...] = ()


def judge_model(store: ModelStore, model: ServedModel) -> Judgement:
    """Evaluate a model by cross-validation on the rows that it keeps."""
    evidence = _find_evidence(store, model)
    try:
        scores = model.estimator.evaluate()
    except PrioryError as error:
        return Judgement(model.version, problem=str(error), evidence=evidence)
    if not scores.has_enough_rows:
        return Judgement(model.version, problem=scores.verdict, evidence=evidence)
    return Judgement(
        model.version,
        "",
        scores.verdict,
        len(scores.truth),
        tuple(_list_scores(scores)),
        render_figure(lambda: plots.reliability_diagram(scores), "calibration: right answers against certainty"),
        render_figure(lambda: plots.confusion_matrix(scores), "confusion: true classes against answers"),
        evidence,
    )


def _list_scores(scores: Scores) -> list[ScoreLine]:
    lines = []
    for name, (title, form) in OVERALL_SCORES.items():
        score, base = getattr(scores, name), scores.base_score(name)
        value, low, high = (format(number, form) for number in score)
        lines.append(ScoreLine(title, value, low, high, "" if base is None else format(base, form)))
    return lines


def _find_evidence(store: ModelStore, model: ServedModel) -> tuple[tuple[str, list[ClassEvidence]], ...]:
    rows = read_latest_rows(store, model, MAX_EVIDENCE_ROWS)
    if not len(rows) and model.entry.kind == "table":
        return ()  # the model began as a file, so the journal has no rows
    labels = np.array(rows.labels, dtype=object)
    table = convert_to_input(rows, model.estimator)
    try:
        found = find_strongest_evidence(model.estimator, table, labels)
    except PrioryError:
        return ()
    shown = list(found.items())[:MAX_JUDGED_CLASSES]
    return tuple((str(label), lines[:MAX_EVIDENCE_LINES]) for label, lines in shown)
