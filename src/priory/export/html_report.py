"""The report: a self-contained HTML page with the scores, the evidence and the mistakes of a model."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy
import sklearn
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory import __version__, plots
from priory.core.typing import Classifier, Label
from priory.evaluation.scores import Scores
from priory.export import report_sections
from priory.export.report_page import N_COLOURS, mark_safe, render_page
from priory.export.strongest_evidence import ClassEvidence, find_strongest_evidence, lists_tokens
from priory.model.ledger_output import format_value
from priory.plots.canvas import render_inline_svg

if TYPE_CHECKING:
    from markupsafe import Markup

    from priory.estimators.multi_label import MultiLabelClassifier
    from priory.leakage.findings import Findings


MAX_REPORT_CLASSES = 12  # classes shown
MAX_REPORT_TABLES = 12  # columns whose probabilities are shown
EVIDENCE_OF_TOKENS = (
    "Words that are common in a class and rare in the others, with their counts in the class and in all classes."
)
EVIDENCE_OF_COLUMNS = (
    "The evidence of each column for a class against all other classes together, after corrections, averaged over "
    "rows of the class."
)


@dataclass(frozen=True)
class Report:
    """An HTML page, displayed by notebooks or saved to a file. It contains rows of the data."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page to a file."""
        file = Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        return (
            # a sandboxed frame: the styles of the page and of the notebook do not mix
            f'<iframe srcdoc="{escape(self.html)}" sandbox title="report" width="100%" height="720" frameborder="0">'
            "</iframe>"
        )


@dataclass(frozen=True)
class ReportSubject:
    """Description of the data and the model, for the title of a report.

    Parameters
    ----------
    source : str
        The source files of the rows.
    target : str
        The predicted column. By default the name of ``y``, or the target that the model was trained on.
    model_file : str
        The file of the model.
    rows_learned : int, optional
        The number of learned rows, if the rows of the report are a sample of them.
    command : str
        The command that reproduces the report.
    """

    source: str = ""
    target: str = ""
    model_file: str = ""
    rows_learned: int | None = None
    command: str = ""


def report(
    model: Classifier,
    X: object,
    y: ArrayLike,
    findings: Findings | None = None,
    *,
    learned: bool = True,
    scores: Scores | None = None,
    curve: Mapping[int, Scores] | None = None,
    subject: ReportSubject | None = None,
) -> Report:
    """Create a report on a fitted model: its scores, its evidence and its mistakes.

    Parameters
    ----------
    model : a fitted classifier
        One of Priory's, or any classifier of scikit-learn.
    X, y : rows and their labels
    findings : Findings, optional
        The findings of an audit of the data.
    learned : bool
        Whether the model has learned these rows. Then they are predicted out of sample: by the model without the row
        or, for a model that cannot leave rows out, by cross-validation.
    scores : Scores, optional
        The result of ``model.evaluate(X, y)`` for these rows, if it is already known.
    curve : dict of int to Scores, optional
        The learning curve: scores by number of training rows.
    subject : ReportSubject, optional
        The description of the data in the title.

    Returns
    -------
    Report
        The page.
    """
    labels, subject = np.asarray(y), subject or ReportSubject()
    # never in-sample scores
    scored = (
        report_sections.score_learned_rows(model, X, labels, scores)
        if learned
        else report_sections.score_held_out_rows(model, X, labels)
    )
    groups = _encode_groups(labels, scored.scores)
    page = {
        **_describe_subject(model, y, subject),
        **_describe_rows(scored, len(labels), subject),
        **_describe_overall(scored.scores),
        "scored": scored.scores.has_enough_rows,
        "calibration": report_sections.describe_calibration(scored.compared),
        "class_calibration": report_sections.describe_class_calibration(scored.scores, MAX_REPORT_CLASSES),
        "figures": _draw_figures(scored, curve or {}) if scored.scores.has_enough_rows else {},
        **_describe_classes(scored.scores),
        **_describe_evidence(model, X, labels, scored.scores),
        **report_sections.describe_mistakes(model, X, scored.scores, learned),
        "columns": report_sections.describe_columns(model, X, *groups),
        "pairs": report_sections.describe_pairs(X, groups[0]),
        "tables": mark_safe(model.tables_.to_html(MAX_REPORT_TABLES)) if hasattr(model, "tables_") else None,
        "privacy": report_sections.describe_membership(model) if learned else None,
        "findings": None if findings is None else mark_safe(findings.to_html()),
        "labels": [],
    }
    return Report(render_page(page))


# -- the parts of the page ---------------------------------------------------------------------------------------


def report_labels(
    view: MultiLabelClassifier, X: object, y: object, *, learned: bool = True, subject: ReportSubject | None = None
) -> Report:
    """Create a report on a model that gives several labels: the scores of each label, and the evidence for it.

    Parameters
    ----------
    view : MultiLabelClassifier
    X, y : rows and their labels
    learned : bool
        Whether the model has learned these rows. Then the rows that it keeps are scored, each left out.
    subject : ReportSubject, optional
        The description of the data in the title.
    """
    truth, subject = view.mark_labels(y), subject or ReportSubject()
    scores = view.evaluate() if learned else view.score_labels(X, y)
    names, shares = view.classes_.tolist(), truth.mean(axis=0)
    common = np.argsort(-shares, kind="stable")[:MAX_REPORT_CLASSES].tolist()
    evidence = {k: find_strongest_evidence(view.model_of(names[k]), X, truth[:, k].astype(int)) for k in common}
    f1, limits = scores.by_label, view.thresholds_.tolist()
    page = {
        **_describe_subject(view.estimator_, y, subject),
        "rows": f"{scores.n_rows:,} rows",
        "how": "each left out" if learned else "which the model has not learned",
        "classes": len(names),
        "shares": f"{len(names):,} labels, {truth.sum(axis=1).mean():.2f} for each row on average",
        "verdict": f"{scores.hamming:.1%} of all answers are wrong, {shares.mean():.1%} if no label was given.",
        "mood": "good" if scores.hamming < shares.mean() else "bad",
        "label_scores": mark_safe(scores.table().to_html()),
        "labels": [
            (name, f"{share:.1%}", f"{limit:.2f}", f"{f1[name]:.3f}")
            for name, share, limit in zip(names, shares, limits, strict=True)
        ],
        "strongest": [(names[k], _format_evidence(found[1])) for k, found in evidence.items() if found.get(1)],
        "strongest_how": EVIDENCE_OF_TOKENS if lists_tokens(view.estimator_) else EVIDENCE_OF_COLUMNS,
        **dict.fromkeys(("summary", "scored", "mistakes", "pairs", "columns", "tables", "findings", "privacy")),
        "figures": {},
    }
    return Report(render_page(page))


def _describe_subject(model: object, y: object, subject: ReportSubject) -> dict[str, object]:
    """Return the title and the list of facts below it."""
    name = getattr(y, "name", None)
    target = subject.target or str(getattr(model, "target_", "" if name is None else name))
    predicted = f"predicting {format_value(target)}" if target else type(model).__name__
    made = datetime.now().astimezone()
    facts = {
        "file": subject.source,
        "target": target,
        "model": f"{type(model).__name__} {subject.model_file}".strip(),
        "made": f"{made:%Y-%m-%d %H:%M %Z}",
    }
    return {
        "title": f"{subject.source}: {predicted}" if subject.source else predicted[0].upper() + predicted[1:],
        "facts": {title: text for title, text in facts.items() if text},
        "command": subject.command,
        "parameters": repr(model),
        "versions": _list_versions(),
    }


def _list_versions() -> str:
    """Return the versions of the libraries that the numbers depend on."""

    packages = {"NumPy": np.__version__, "SciPy": scipy.__version__, "scikit-learn": sklearn.__version__}
    named = [f"priory {__version__}", f"Python {platform.python_version()}"]
    return ", ".join([*named, *(f"{name} {version}" for name, version in packages.items())])


def _describe_rows(scored: report_sections.ReportScores, n_given: int, subject: ReportSubject) -> dict[str, object]:
    n_scored, n_learned = len(scored.scores.truth), subject.rows_learned or n_given
    rows = f"{n_scored:,} rows" if n_scored == n_learned else f"{n_scored:,} of {n_learned:,} rows"
    shares = zip(scored.scores.classes, scored.scores.shares.tolist(), strict=True)
    largest = sorted(shares, key=lambda pair: -pair[1])
    shown = ", ".join(f"{format_value(label)} {share:.1%}" for label, share in largest[:MAX_REPORT_CLASSES])
    more = len(largest) - MAX_REPORT_CLASSES
    return {
        "rows": rows,
        "classes": len(largest),
        "how": scored.method,
        "shares": f"{shown} and {more} more" if more > 0 else shown,
        "class_names": [format_value(label) for label in scored.scores.classes[:N_COLOURS]],
    }


def _describe_overall(scores: Scores) -> dict[str, object]:
    better = [gain.low > 0 for gain in scores.gain.values()]  # significantly better than the base rate
    return {
        "verdict": scores.verdict,
        "summary": report_sections.summarise_scores(scores) if scores.has_enough_rows else "",
        "mood": "good" if all(better) else "fair" if any(better) else "bad",
        "overall": report_sections.list_overall_scores(scores),
        "expected_error": "By its own probabilities, the model expects to be wrong "
        f"{scores.expected_error.value:.1%} of the time; it was wrong {1 - scores.accuracy.value:.1%} of the time.",
    }


def _draw_figures(scored: report_sections.ReportScores, curve: Mapping[int, Scores]) -> dict[str, Markup]:
    scores = scored.scores
    figures = {
        "reliability": render_inline_svg(lambda: plots.reliability_diagram(scored.compared), "reliability diagram"),
        "histogram": render_inline_svg(lambda: plots.score_histogram(scores), "histogram of certainty"),
        "confusion": render_inline_svg(lambda: plots.confusion_matrix(scores), "confusion matrix"),
        "roc": render_inline_svg(lambda: plots.roc_curves(scores), "ROC curves"),
    }
    if curve:
        figures["curve"] = render_inline_svg(lambda: plots.learning_curve(curve), "learning curve")
    return {name: mark_safe(picture) for name, picture in figures.items()}


def _encode_groups(labels: Array, scores: Scores) -> tuple[Array, int]:
    """Return the class of each row, (rows,), and the number of classes."""
    code = {label: c for c, label in enumerate(scores.classes)}
    return np.array([code[label] for label in labels.tolist()], dtype=np.int64), len(code)


def _describe_classes(scores: Scores) -> dict[str, object]:
    worst = scores.worst(MAX_REPORT_CLASSES)
    each = [
        {
            "label": format_value(one.label),
            "rows": f"{one.rows:g}",
            "scores": [
                report_sections.format_interval(s, ".2f") for s in (one.precision, one.recall, one.f1, one.roc_area)
            ],
        }
        for one in worst
    ]
    return {"each": each, "fewer": len(worst) < len(scores.classes)}


def _describe_evidence(model: object, X: object, labels: Array, scores: Scores) -> dict[str, object]:
    evidence = find_strongest_evidence(model, X, labels)
    shown: list[Label] = [one.label for one in scores.worst(MAX_REPORT_CLASSES)]
    return {
        "strongest": [
            (format_value(label), _format_evidence(evidence[label])) for label in shown if evidence.get(label)
        ],
        "strongest_how": EVIDENCE_OF_TOKENS if lists_tokens(model) else EVIDENCE_OF_COLUMNS,
    }


def _format_evidence(evidence: list[ClassEvidence]) -> list[dict[str, object]]:
    return [
        {
            "name": format_value(one.name),
            "value": "" if one.own_count is None else f"{one.own_count:g} of {one.total_count:g}",
            "decibans": one.decibans,
        }
        for one in evidence
    ]
