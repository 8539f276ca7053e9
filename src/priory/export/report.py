"""A report for people: one HTML page, nothing else needed, on what a model is worth and why it answers as it does."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from priory import plots
from priory.calibration.calibration_maps import fit_calibration_map
from priory.errors import MissingDependencyError, PrioryError
from priory.estimators.calibrated import predict_out_of_fold
from priory.evaluation.intervals import Interval
from priory.evaluation.score_table import OVERALL_SCORES
from priory.evaluation.scores import Scores
from priory.models.explanation import DECIBANS_PER_NAT, Ledger, LedgerLine, format_value
from priory.plots.canvas import render_inline_svg

MAX_REPORT_CLASSES = 12  # classes shown
MAX_REPORT_EVIDENCE = 10  # pieces of evidence for each
MAX_REPORT_MISTAKES = 8  # and pieces of evidence for each
EVIDENCE_SAMPLE_ROWS = 300  # rows asked for the evidence of columns
MAX_REPORT_TEXT_LENGTH = 5000  # characters of a text shown


@dataclass(frozen=True)
class Report:
    """A page: shown by a notebook, saved for a browser. It holds rows of the data."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page to a file."""
        file = Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" sandbox style="width:100%;height:45rem;border:0"></iframe>'


def report(model: Any, X: Any, y: Any, findings: Any = None) -> Report:
    """What a fitted model is worth on the rows it has learned, each judged by a model without it.

    ``findings`` are those of an audit of the data, if there was one.
    """
    scores, how = evaluate_out_of_sample(model, X, y)
    told = compare_calibration(model, X, y, scores)
    page = {
        "title": type(model).__name__,
        "rows": f"{len(scores.truth):,}",
        "classes": len(scores.classes),
        "how": how,
        **_describe_overall(scores),
        "bayes": _describe_bayes_rate(told),
        "calibration": _describe_calibration(told),
        "figures": _draw_figures(scores, told),
        **_describe_classes(scores),
        **_find_strongest_evidence(model, X, scores),
        **_find_mistakes(model, X, scores),
        "columns": _describe_columns(model),
        "findings": None if findings is None else _mark_safe(findings.to_html()),
    }
    return Report(_load_template().render(page))


# -- judging -----------------------------------------------------------------------------------------------------


def evaluate_out_of_sample(model: Any, X: Any, y: Any) -> tuple[Scores, str]:
    """Scores of rows that the judging model has not seen, and how that was done."""
    if hasattr(model, "evaluate"):
        return model.evaluate(X, y), "each judged by the model without it"
    if hasattr(model, "leave_one_out"):
        return _score_leave_one_out(model, X, y), "each judged by the model without it"
    log_p = predict_out_of_fold(model, X, np.asarray(y))
    return Scores.of(y, log_p, model.classes_, logs=True), "each fifth judged by a model of the other four"


def compare_calibration(model: Any, X: Any, y: Any, scores: Scores) -> dict[str, Scores]:
    """The plain model beside the one that answers; where they are the same, beside what one temperature would do."""
    if hasattr(model, "evaluate") and hasattr(model, "leave_one_out"):
        plain = _score_leave_one_out(model, X, y)
        if not np.allclose(plain.log_probabilities, scores.log_probabilities):
            return {"plain": plain, "as it answers": scores}
    return {"as it answers": scores, "with one temperature": cross_fit_temperature(scores)}


def cross_fit_temperature(scores: Scores) -> Scores:
    """Each half of the rows with the temperature of the other half."""
    log_p, half = scores.log_probabilities.copy(), np.arange(len(scores.truth)) % 2 == 0
    for part in (half, ~half):
        log_p[part] = fit_calibration_map("temperature", scores.log_probabilities[~part], scores.truth[~part])(
            log_p[part]
        )
    return Scores(scores.classes, scores.truth, log_p, scores.weight)


def _score_leave_one_out(model: Any, X: Any, y: Any) -> Scores:
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
    return f"As far as its probabilities can be trusted, even the best answers err {rate} of the time: the Bayes rate."


def _describe_calibration(compared_scores: dict[str, Scores]) -> str:
    (_, first), (after, last) = compared_scores.items()
    sure, right = float(np.average(first.certainty, weights=first.weight)), first.accuracy.value
    if first.calibration_error.low == 0:
        found = "The certainty of the answers is honest as far as these rows can tell"
    else:
        found = "The answers are too certain" if sure > right else "The answers are not certain enough"
    return (
        f"{found}: {sure:.1%} certain on average, {right:.1%} right. {after[0].upper()}{after[1:]}, the calibration "
        f"error is {last.calibration_error.value:.1%} instead of {first.calibration_error.value:.1%}, the log loss "
        f"{last.log_loss.value:.3f} instead of {first.log_loss.value:.3f}."
    )


def _draw_figures(scores: Scores, compared_scores: dict[str, Scores]) -> dict[str, Any]:
    draw: dict[str, tuple[Callable[[], Any], str]] = {
        "reliability": (lambda: plots.reliability_diagram(compared_scores), "reliability diagram"),
        "histogram": (lambda: plots.score_histogram(scores), "histogram of certainty"),
        "confusion": (lambda: plots.confusion_matrix(scores), "confusion matrix"),
        "roc": (lambda: plots.roc_curves(scores), "ROC curves"),
    }
    return {name: _mark_safe(render_inline_svg(*how)) for name, how in draw.items()}


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


def _find_strongest_evidence(model: Any, X: Any, scores: Scores) -> dict[str, Any]:
    """What speaks most for each class: tokens of a model of texts, columns of a table."""
    labels = [one.label for one in scores.worst(MAX_REPORT_CLASSES)]
    if hasattr(model, "evidence") and getattr(model, "buckets", None) is None:
        how = (
            "Tokens seen often in a class and seldom elsewhere; beside them how much of what was seen of them is there."
        )
        found = {label: _format_tokens(model.evidence(label, MAX_REPORT_EVIDENCE), label) for label in labels}
    elif hasattr(model, "explain") and not hasattr(model, "evidence"):
        how = "How much each column says for a class, on average over its rows, against the strongest other class."
        found = _average_column_evidence(model, X, scores, labels)
    else:
        how, found = "", {}
    return {
        "strongest": [(format_value(label), lines) for label, lines in found.items() if lines],
        "strongest_how": how,
    }


def _format_tokens(evidence: Sequence[Any], label: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": format_value(e.token),
            "value": f"{e.counts[label]:g} of {sum(e.counts.values()):g}",
            "decibans": e.decibans,
        }
        for e in evidence
    ]


def _average_column_evidence(model: Any, X: Any, scores: Scores, labels: list[Any]) -> dict[Any, list[dict[str, Any]]]:
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


def _find_mistakes(model: Any, X: Any, scores: Scores) -> dict[str, Any]:
    """The rows whose truth was called least probable, with the ledger of the model that has not seen them."""
    wrong = np.flatnonzero(scores.answer != scores.truth)
    worst = wrong[np.argsort(-scores.surprise[wrong], kind="stable")][:MAX_REPORT_MISTAKES]
    how = "Rows whose truth was called least probable. A wrong label is often among them."
    if hasattr(model, "explain"):
        how += " The evidence is that of the model without the row."
    return {"mistakes": [_describe_mistake(model, X, scores, int(row)) for row in worst], "mistakes_how": how}


def _describe_mistake(model: Any, X: Any, scores: Scores, row: int) -> dict[str, Any]:
    truth, answer = scores.classes[scores.truth[row]], scores.classes[scores.answer[row]]
    told = {"row": row, "truth": format_value(truth), "answer": format_value(answer), "text": None, "lines": []}
    told["p"] = f"p = {np.exp(-scores.surprise[row]):.2g}" if scores.surprise[row] < 690 else "p < 1e-299"
    if not hasattr(model, "explain"):
        return told
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
    return told | {
        "lines": [lines[0], *largest, *others],
        "text": text,
        "total": f"{sum(weights) * DECIBANS_PER_NAT:+.1f}",
    }


def _take_rows(X: Any, rows: Any) -> Any:
    """Some rows of a table of any kind."""
    if isinstance(X, Mapping):
        return {name: [column[row] for row in rows] for name, column in X.items()}
    if hasattr(X, "take") and hasattr(X, "schema"):  # a pyarrow table, which scikit-learn before 1.8 cannot index
        return X.take(rows)
    return _safe_indexing(X, rows)


def _format_times(token: LedgerLine) -> str:
    return "" if len(token.spans) == 1 else f"{len(token.spans)} times"


def _forget_row(model: Any, example: Any, label: Any) -> Any:
    """The model as if it had never seen the row, or as it is if it cannot forget."""
    twin = copy.copy(model)
    try:
        return twin.forget(example, [label])
    except (AttributeError, PrioryError):
        return model


def _describe_columns(model: Any) -> list[dict[str, str]]:
    rows = []
    for column in getattr(model, "schema_", {}).values():
        (family, bits), (other, less) = [*sorted(column.bits.items(), key=lambda e: -e[1]), ("", None), ("", None)][:2]
        row = {"name": format_value(column.name), "family": column.family if column.bits else family or column.kind}
        rows.append(row | {"bits": _format_bits(bits), "other": other, "less": _format_bits(less)})
    return rows


# -- writing -----------------------------------------------------------------------------------------------------


def _format_interval(score: Interval, format_spec: str) -> dict[str, str]:
    return {name: f"{value:{format_spec}}" for name, value in score._asdict().items()}


def _format_evidence_line(name: str, value: Any, weight: float) -> dict[str, Any]:
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


def _mark_safe(html: str) -> Any:
    """HTML that is escaped already."""
    return _import_jinja2().utils.markupsafe.Markup(html)


def _load_template() -> Any:
    jinja2 = _import_jinja2()
    loader = jinja2.PackageLoader("priory.export", "templates")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "report.html"
    )


def _import_jinja2() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError("a report needs jinja2: pip install 'priory[report]'.", name=error.name) from None
    return jinja2
