"""A report on a fitted classifier as one self-contained HTML page: how good it is, and why it answers as it does."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from priory import plots
from priory.calibration.calibration_maps import fit_calibration_map
from priory.core.typing import Array, Label, MatrixLike
from priory.errors import MissingDependencyError, PrioryError
from priory.estimators.calibrated import predict_out_of_fold
from priory.estimators.sklearn_compat import take_table_rows
from priory.evaluation.intervals import Interval
from priory.evaluation.score_table import OVERALL_SCORES
from priory.evaluation.scores import Scores
from priory.leakage.findings import Findings
from priory.models.explanation import DECIBANS_PER_NAT, Ledger, LedgerLine, format_value
from priory.models.token_evidence import TokenEvidence
from priory.plots.canvas import render_inline_svg

TableRows = object  # whatever the model was fitted on: an array, a DataFrame, a list of dicts or texts

MAX_REPORT_CLASSES = 12
MAX_REPORT_EVIDENCE = 10  # lines of evidence for each class
MAX_REPORT_MISTAKES = 8  # mistakes, and lines of evidence for each of them
EVIDENCE_SAMPLE_ROWS = 300  # rows over which the evidence of columns is averaged
MAX_REPORT_TEXT_LENGTH = 5000  # characters


class FittedClassifier(Protocol):
    """A fitted classifier; what else it can do (``explain``, ``leave_one_out``, ...) is found out where it is used."""

    classes_: Array


@dataclass(frozen=True)
class Report:
    """An HTML page, which a notebook shows and `save` writes. It contains rows of the data."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; returns its path."""
        file = Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" sandbox style="width:100%;height:45rem;border:0"></iframe>'


def report(model: FittedClassifier, X: TableRows, y: ArrayLike, findings: Findings | None = None) -> Report:
    """A page on how good a fitted classifier is on the rows it was trained on, each predicted by a model without it.

    Parameters
    ----------
    model : classifier
        A fitted classifier of priory or scikit-learn.
    X : table
        The training rows.
    y : array-like of shape (n_rows,)
        Their labels.
    findings : Findings, optional
        The result of `priory.audit` on the same data, which then gets a section of the page.
    """
    scores, method = evaluate_out_of_sample(model, X, y)
    compared = compare_calibration(model, X, y, scores)
    page = {
        "title": type(model).__name__,
        "rows": f"{len(scores.truth):,}",
        "classes": len(scores.classes),
        "method": method,
        **_describe_overall(scores),
        "bayes": _describe_bayes_rate(compared),
        "calibration": _describe_calibration(compared),
        "figures": _draw_figures(scores, compared),
        **_describe_classes(scores),
        **_find_strongest_evidence(model, X, scores),
        **_find_mistakes(model, X, scores),
        "columns": _describe_columns(model),
        "findings": None if findings is None else _mark_safe(findings.to_html()),
    }
    return Report(_load_template().render(page))


# -- scores ------------------------------------------------------------------------------------------------------


def evaluate_out_of_sample(model: FittedClassifier, X: TableRows, y: ArrayLike) -> tuple[Scores, str]:
    """Scores of rows that were predicted by a model that has not learned them, and how that was done."""
    if hasattr(model, "evaluate"):
        return model.evaluate(X, y), "each predicted by the model without it"
    if hasattr(model, "leave_one_out"):
        return _score_leave_one_out(model, X, y), "each predicted by the model without it"
    log_p = predict_out_of_fold(model, cast(MatrixLike, X), np.asarray(y))
    return Scores.of(y, log_p, model.classes_, logs=True), "each fifth predicted by a model of the other four fifths"


def compare_calibration(model: FittedClassifier, X: TableRows, y: ArrayLike, scores: Scores) -> dict[str, Scores]:
    """The uncalibrated and the calibrated answers; if they are the same, the answers and what a temperature gives."""
    if hasattr(model, "evaluate") and hasattr(model, "leave_one_out"):
        plain = _score_leave_one_out(model, X, y)
        if not np.allclose(plain.log_probabilities, scores.log_probabilities):
            return {"uncalibrated": plain, "calibrated": scores}
    return {"as it answers": scores, "with one temperature": cross_fit_temperature(scores)}


def cross_fit_temperature(scores: Scores) -> Scores:
    """The scores after scaling: each half of the rows with the temperature that was fitted to the other half."""
    log_p, half = scores.log_probabilities.copy(), np.arange(len(scores.truth)) % 2 == 0
    for part in (half, ~half):
        log_p[part] = fit_calibration_map("temperature", scores.log_probabilities[~part], scores.truth[~part])(
            log_p[part]
        )
    return Scores(scores.classes, scores.truth, log_p, scores.weight)


def _score_leave_one_out(model: Any, X: TableRows, y: ArrayLike) -> Scores:
    return Scores.of(y, model.leave_one_out(X, y), model.classes_, logs=True)


# -- the parts of the page ---------------------------------------------------------------------------------------


def _describe_overall(scores: Scores) -> dict[str, Any]:
    better = [gain.low > 0 for gain in scores.gain.values()]
    return {
        "verdict": scores.verdict,
        "mood": "good" if all(better) else "fair" if any(better) else "bad",
        "overall": [
            {"title": title, **_format_interval(getattr(scores, name), form)}
            | {"base": "" if scores.base_score(name) is None else f"{scores.base_score(name):{form}}"}
            for name, (title, form) in OVERALL_SCORES.items()
        ],
    }


def _describe_bayes_rate(compared_scores: dict[str, Scores]) -> str:
    best = min(compared_scores.values(), key=lambda scores: scores.calibration_error.value)
    rate = f"{best.bayes_rate.value:.1%}"
    return (
        f"If its probabilities are right, no classifier can be wrong less often than {rate} of the time "
        "on these columns (the Bayes rate)."
    )


def _describe_calibration(compared_scores: dict[str, Scores]) -> str:
    (_, first), (after, last) = compared_scores.items()
    confidence, accuracy = float(np.average(first.certainty, weights=first.weight)), first.accuracy.value
    if first.calibration_error.low == 0:
        found = "On these rows no difference shows between how confident the answers are and how often they are right"
    else:
        found = "The answers are overconfident" if confidence > accuracy else "The answers are underconfident"
    return (
        f"{found}: {confidence:.1%} confident on average, {accuracy:.1%} right. {after[0].upper()}{after[1:]}, the "
        f"calibration error is {last.calibration_error.value:.1%} instead of {first.calibration_error.value:.1%}, "
        f"the log loss {last.log_loss.value:.3f} instead of {first.log_loss.value:.3f}."
    )


def _draw_figures(scores: Scores, compared_scores: dict[str, Scores]) -> dict[str, Any]:
    draw: dict[str, tuple[Callable[[], Any], str]] = {
        "reliability": (lambda: plots.reliability_diagram(compared_scores), "reliability diagram"),
        "histogram": (lambda: plots.score_histogram(scores), "histogram of confidence"),
        "confusion": (lambda: plots.confusion_matrix(scores), "confusion matrix"),
        "roc": (lambda: plots.roc_curves(scores), "ROC curves"),
    }
    return {name: _mark_safe(render_inline_svg(*figure)) for name, figure in draw.items()}


def _describe_classes(scores: Scores) -> dict[str, Any]:
    worst = scores.worst(MAX_REPORT_CLASSES)
    each = [
        {
            "label": format_value(one.label),
            "rows": f"{one.rows:g}",
            "scores": [_format_interval(s, ".2f") for s in (one.precision, one.recall, one.f1, one.roc_area)],
        }
        for one in worst
    ]
    return {"each": each, "fewer": len(worst) < len(scores.classes)}


def _find_strongest_evidence(model: FittedClassifier, X: TableRows, scores: Scores) -> dict[str, Any]:
    """The strongest evidence for each class: tokens for a model of texts, columns for one of tables."""
    labels = [one.label for one in scores.worst(MAX_REPORT_CLASSES)]
    if hasattr(model, "evidence") and getattr(model, "buckets", None) is None:
        explanation = (
            "Tokens that are frequent in a class and rare elsewhere, "
            "with the number of their occurrences in the class and in all classes."
        )
        found = {label: _format_tokens(model.evidence(label, MAX_REPORT_EVIDENCE), label) for label in labels}
    elif hasattr(model, "explain") and not hasattr(model, "evidence"):
        explanation = "The evidence of each column for a class against its strongest rival, averaged over its rows."
        found = _average_column_evidence(model, X, scores, labels)
    else:
        explanation, found = "", {}
    return {
        "strongest": [(format_value(label), lines) for label, lines in found.items() if lines],
        "strongest_explanation": explanation,
    }


def _format_tokens(evidence: Sequence[TokenEvidence], label: Label) -> list[dict[str, Any]]:
    return [
        {
            "name": format_value(e.token),
            "value": f"{e.counts[label]:g} of {sum(e.counts.values()):g}",
            "decibans": e.decibans,
        }
        for e in evidence
    ]


def _average_column_evidence(
    model: Any, X: TableRows, scores: Scores, labels: list[Any]
) -> dict[Any, list[dict[str, Any]]]:
    """For each class the columns whose evidence for it, averaged over a sample of its rows, is strongest."""
    rows = np.random.default_rng(0).permutation(len(scores.truth))[:EVIDENCE_SAMPLE_ROWS]
    ledgers = list(zip(model.explain(_take_rows(X, rows)), scores.truth[rows], strict=True))
    found = {}
    for label in labels:
        of_class = [ledger for ledger, c in ledgers if scores.classes[c] == label]
        if of_class:
            weights = np.mean([ledger.weights(label)[1:] for ledger in of_class], axis=0)
            lines = [
                _format_evidence_line(line.name, "", w) for line, w in zip(of_class[0].lines, weights, strict=True)
            ]
            found[label] = _take_largest(lines, MAX_REPORT_EVIDENCE)
    return found


def _find_mistakes(model: FittedClassifier, X: TableRows, scores: Scores) -> dict[str, Any]:
    """The rows whose true class got the lowest probability, with the evidence of the model without them."""
    wrong = np.flatnonzero(scores.answer != scores.truth)
    worst = wrong[np.argsort(-scores.surprise[wrong], kind="stable")][:MAX_REPORT_MISTAKES]
    explanation = "The rows whose true class got the lowest probability. Wrong labels are often among them."
    if hasattr(model, "explain"):
        explanation += " The evidence is that of the model without the row."
    mistakes = [_describe_mistake(model, X, scores, int(row)) for row in worst]
    return {"mistakes": mistakes, "mistakes_explanation": explanation}


def _describe_mistake(model: FittedClassifier, X: TableRows, scores: Scores, row: int) -> dict[str, Any]:
    truth, answer = scores.classes[scores.truth[row]], scores.classes[scores.answer[row]]
    mistake = {"row": row, "truth": format_value(truth), "answer": format_value(answer), "text": None, "lines": []}
    mistake["p"] = f"p = {np.exp(-scores.surprise[row]):.2g}" if scores.surprise[row] < 690 else "p < 1e-299"
    if not hasattr(model, "explain"):
        return mistake
    example = _take_rows(X, [row])
    ledger: Ledger = _forget_row(model, example, truth).explain(example)[0]
    weights = ledger.weights(answer, truth)
    values = [_format_times(line) if line.spans else line.value for line in ledger.entries()]
    lines = [
        _format_evidence_line(line.name, v, w) for line, v, w in zip(ledger.entries(), values, weights, strict=True)
    ]
    largest = _take_largest(lines[1:], MAX_REPORT_MISTAKES)
    rest = (
        math.fsum(weights) * DECIBANS_PER_NAT - lines[0]["decibans"] - math.fsum(line["decibans"] for line in largest)
    )
    others = (
        [_format_evidence_line(f"{len(lines) - 1 - len(largest)} others", "", rest / DECIBANS_PER_NAT)]
        if len(lines) - 1 > MAX_REPORT_MISTAKES
        else []
    )
    text = None if ledger.text is None else _mark_safe(ledger.marked(answer, truth, MAX_REPORT_TEXT_LENGTH))
    return mistake | {
        "lines": [lines[0], *largest, *others],
        "text": text,
        "total": f"{sum(weights) * DECIBANS_PER_NAT:+.1f}",
    }


def _take_rows(X: TableRows, rows: ArrayLike) -> TableRows:
    """Some rows of a table of any kind."""
    if isinstance(X, Mapping):
        return {name: [column[row] for row in np.asarray(rows)] for name, column in X.items()}
    if hasattr(X, "take") and hasattr(X, "schema"):  # a pyarrow table, which scikit-learn 1.6 cannot index
        arrow: TableRows = X.take(rows)
        return arrow
    taken: TableRows = take_table_rows(X, rows)
    return taken


def _format_times(token: LedgerLine) -> str:
    return "" if len(token.spans) == 1 else f"{len(token.spans)} times"


def _forget_row(model: Any, row: TableRows, label: Label) -> Any:
    """A copy of the model that has not learned the row, or the model itself if it cannot forget."""
    twin = copy.copy(model)
    try:
        return twin.forget(row, [label])
    except (AttributeError, PrioryError):
        return model


def _describe_columns(model: FittedClassifier) -> list[dict[str, str]]:
    """For each column of a table the family that explains it best, and the next best."""
    rows = []
    for column in getattr(model, "schema_", {}).values():
        ranked = sorted(column.bits.items(), key=lambda family: -family[1])
        (family, bits), (other, other_bits) = [*ranked, ("", None), ("", None)][:2]
        row = {"name": format_value(column.name), "family": column.family if column.bits else family or column.kind}
        rows.append(row | {"bits": _format_bits(bits), "other": other, "other_bits": _format_bits(other_bits)})
    return rows


# -- writing -----------------------------------------------------------------------------------------------------


def _format_interval(score: Interval, format_spec: str) -> dict[str, str]:
    return {name: f"{value:{format_spec}}" for name, value in score._asdict().items()}


def _format_evidence_line(name: str, value: object, weight: float) -> dict[str, Any]:
    return {
        "name": format_value(name),
        "value": "" if value == "" else format_value(value),
        "decibans": float(weight) * DECIBANS_PER_NAT,
    }


def _take_largest(lines: list[dict[str, Any]], max_lines: int) -> list[dict[str, Any]]:
    finite = [line for line in lines if np.isfinite(line["decibans"])]
    return sorted(finite, key=lambda line: -abs(line["decibans"]))[:max_lines]


def _format_bits(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.2f}"


def _mark_safe(html: str) -> str:
    """HTML that the template must not escape again."""
    markup: str = _import_jinja2().utils.markupsafe.Markup(html)
    return markup


def _load_template() -> Any:
    jinja2 = _import_jinja2()
    loader = jinja2.PackageLoader("priory.export", "templates")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "report.html"
    )


def _import_jinja2() -> ModuleType:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError("a report needs jinja2: pip install 'priory[report]'.", name=error.name) from None
    return jinja2
