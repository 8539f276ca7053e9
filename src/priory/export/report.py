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
from priory.calibration.calibration_maps import fitted
from priory.errors import Missing, PrioryError
from priory.estimators.calibrated import out_of_fold
from priory.evaluation.intervals import Interval
from priory.evaluation.score_table import OVERALL
from priory.evaluation.scores import Scores
from priory.models.explanation import DECIBAN, Ledger, Line, shown
from priory.plots.canvas import inline_svg

CLASSES = 12  # classes shown
EVIDENCE = 10  # pieces of evidence for each
MISTAKES = 8  # and pieces of evidence for each
SAMPLE = 300  # rows asked for the evidence of columns
LONGEST = 5000  # characters of a text shown


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
    scores, how = honest(model, X, y)
    told = before_and_after(model, X, y, scores)
    page = {
        "title": type(model).__name__,
        "rows": f"{len(scores.truth):,}",
        "classes": len(scores.classes),
        "how": how,
        **_overall(scores),
        "bayes": _bayes(told),
        "calibration": _calibration(told),
        "figures": _figures(scores, told),
        **_classes(scores),
        **_strongest(model, X, scores),
        **_mistakes(model, X, scores),
        "columns": _columns(model),
        "findings": None if findings is None else _markup(findings.to_html()),
    }
    return Report(_template().render(page))


# -- judging -----------------------------------------------------------------------------------------------------


def honest(model: Any, X: Any, y: Any) -> tuple[Scores, str]:
    """Scores of rows that the judging model has not seen, and how that was done."""
    if hasattr(model, "evaluate"):
        return model.evaluate(X, y), "each judged by the model without it"
    if hasattr(model, "leave_one_out"):
        return _left_out(model, X, y), "each judged by the model without it"
    log_p = out_of_fold(model, X, np.asarray(y))
    return Scores.of(y, log_p, model.classes_, logs=True), "each fifth judged by a model of the other four"


def before_and_after(model: Any, X: Any, y: Any, scores: Scores) -> dict[str, Scores]:
    """The plain model beside the one that answers; where they are the same, beside what one temperature would do."""
    if hasattr(model, "evaluate") and hasattr(model, "leave_one_out"):
        plain = _left_out(model, X, y)
        if not np.allclose(plain.log_probabilities, scores.log_probabilities):
            return {"plain": plain, "as it answers": scores}
    return {"as it answers": scores, "with one temperature": cooled(scores)}


def cooled(scores: Scores) -> Scores:
    """Each half of the rows with the temperature of the other half."""
    log_p, half = scores.log_probabilities.copy(), np.arange(len(scores.truth)) % 2 == 0
    for part in (half, ~half):
        log_p[part] = fitted("temperature", scores.log_probabilities[~part], scores.truth[~part])(log_p[part])
    return Scores(scores.classes, scores.truth, log_p, scores.weight)


def _left_out(model: Any, X: Any, y: Any) -> Scores:
    return Scores.of(y, model.leave_one_out(X, y), model.classes_, logs=True)


# -- the parts of the page ---------------------------------------------------------------------------------------


def _overall(scores: Scores) -> dict[str, Any]:
    better = [gain.low > 0 for gain in scores.gain.values()]
    return {
        "verdict": scores.verdict,
        "mood": "good" if all(better) else "fair" if any(better) else "bad",
        "overall": [
            {"title": title, **_written(getattr(scores, name), form)}
            | {"base": "" if scores.beside(name) is None else f"{scores.beside(name):{form}}"}
            for name, (title, form) in OVERALL.items()
        ],
    }


def _bayes(told: dict[str, Scores]) -> str:
    best = min(told.values(), key=lambda scores: scores.calibration_error.value)
    rate = f"{best.bayes_rate.value:.1%}"
    return f"As far as its probabilities can be trusted, even the best answers err {rate} of the time: the Bayes rate."


def _calibration(told: dict[str, Scores]) -> str:
    (_, first), (after, last) = told.items()
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


def _figures(scores: Scores, told: dict[str, Scores]) -> dict[str, Any]:
    draw: dict[str, tuple[Callable[[], Any], str]] = {
        "reliability": (lambda: plots.reliability_diagram(told), "reliability diagram"),
        "histogram": (lambda: plots.score_histogram(scores), "histogram of certainty"),
        "confusion": (lambda: plots.confusion_matrix(scores), "confusion matrix"),
        "roc": (lambda: plots.roc_curves(scores), "ROC curves"),
    }
    return {name: _markup(inline_svg(*how)) for name, how in draw.items()}


def _classes(scores: Scores) -> dict[str, Any]:
    worst = scores.worst(CLASSES)
    each = [
        {
            "label": shown(one.label),
            "rows": f"{one.rows:g}",
            "scores": [_written(s, ".2f") for s in (one.precision, one.recall, one.f1, one.roc_area)],
        }
        for one in worst
    ]
    return {"each": each, "fewer": len(worst) < len(scores.classes)}


def _strongest(model: Any, X: Any, scores: Scores) -> dict[str, Any]:
    """What speaks most for each class: tokens of a model of texts, columns of a table."""
    labels = [one.label for one in scores.worst(CLASSES)]
    if hasattr(model, "evidence") and getattr(model, "buckets", None) is None:
        how = (
            "Tokens seen often in a class and seldom elsewhere; beside them how much of what was seen of them is there."
        )
        found = {label: _tokens(model.evidence(label, EVIDENCE), label) for label in labels}
    elif hasattr(model, "explain") and not hasattr(model, "evidence"):
        how = "How much each column says for a class, on average over its rows, against the strongest other class."
        found = _average_columns(model, X, scores, labels)
    else:
        how, found = "", {}
    return {"strongest": [(shown(label), lines) for label, lines in found.items() if lines], "strongest_how": how}


def _tokens(evidence: Sequence[Any], label: Any) -> list[dict[str, Any]]:
    return [
        {"name": shown(e.token), "value": f"{e.counts[label]:g} of {sum(e.counts.values()):g}", "decibans": e.decibans}
        for e in evidence
    ]


def _average_columns(model: Any, X: Any, scores: Scores, labels: list[Any]) -> dict[Any, list[dict[str, Any]]]:
    rows = np.random.default_rng(0).permutation(len(scores.truth))[:SAMPLE]
    ledgers = list(zip(model.explain(_rows(X, rows)), scores.truth[rows], strict=True))
    found = {}
    for label in labels:
        of_class = [ledger for ledger, c in ledgers if scores.classes[c] == label]
        if of_class:
            weights = np.mean([ledger.weights(label)[1:] for ledger in of_class], axis=0)
            lines = [_line(line.name, "", w) for line, w in zip(of_class[0].lines, weights, strict=True)]
            found[label] = _largest(lines, EVIDENCE)
    return found


def _mistakes(model: Any, X: Any, scores: Scores) -> dict[str, Any]:
    """The rows whose truth was called least probable, with the ledger of the model that has not seen them."""
    wrong = np.flatnonzero(scores.answer != scores.truth)
    worst = wrong[np.argsort(-scores.surprise[wrong], kind="stable")][:MISTAKES]
    how = "Rows whose truth was called least probable. A wrong label is often among them."
    if hasattr(model, "explain"):
        how += " The evidence is that of the model without the row."
    return {"mistakes": [_mistake(model, X, scores, int(row)) for row in worst], "mistakes_how": how}


def _mistake(model: Any, X: Any, scores: Scores, row: int) -> dict[str, Any]:
    truth, answer = scores.classes[scores.truth[row]], scores.classes[scores.answer[row]]
    told = {"row": row, "truth": shown(truth), "answer": shown(answer), "text": None, "lines": []}
    told["p"] = f"p = {np.exp(-scores.surprise[row]):.2g}" if scores.surprise[row] < 690 else "p < 1e-299"
    if not hasattr(model, "explain"):
        return told
    example = _rows(X, [row])
    ledger: Ledger = _without(model, example, truth).explain(example)[0]
    weights = ledger.weights(answer, truth)
    values = [_times(line) if line.places else line.value for line in ledger.entries()]
    lines = [_line(line.name, v, w) for line, v, w in zip(ledger.entries(), values, weights, strict=True)]
    largest = _largest(lines[1:], MISTAKES)
    rest = math.fsum(weights) * DECIBAN - lines[0]["decibans"] - math.fsum(line["decibans"] for line in largest)
    others = [_line(f"{len(lines) - 1 - len(largest)} others", "", rest / DECIBAN)] if len(lines) - 1 > MISTAKES else []
    text = None if ledger.text is None else _markup(ledger.marked(answer, truth, LONGEST))
    return told | {"lines": [lines[0], *largest, *others], "text": text, "total": f"{sum(weights) * DECIBAN:+.1f}"}


def _rows(X: Any, rows: Any) -> Any:
    """Some rows of a table of any kind."""
    if isinstance(X, Mapping):
        return {name: [column[row] for row in rows] for name, column in X.items()}
    return _safe_indexing(X, rows)


def _times(token: Line) -> str:
    return "" if len(token.places) == 1 else f"{len(token.places)} times"


def _without(model: Any, example: Any, label: Any) -> Any:
    """The model as if it had never seen the row, or as it is if it cannot forget."""
    twin = copy.copy(model)
    try:
        return twin.forget(example, [label])
    except (AttributeError, PrioryError):
        return model


def _columns(model: Any) -> list[dict[str, str]]:
    rows = []
    for column in getattr(model, "schema_", {}).values():
        (family, bits), (other, less) = [*sorted(column.bits.items(), key=lambda e: -e[1]), ("", None), ("", None)][:2]
        row = {"name": shown(column.name), "family": column.family if column.bits else family or column.kind}
        rows.append(row | {"bits": _bits(bits), "other": other, "less": _bits(less)})
    return rows


# -- writing -----------------------------------------------------------------------------------------------------


def _written(score: Interval, form: str) -> dict[str, str]:
    return {name: f"{value:{form}}" for name, value in score._asdict().items()}


def _line(name: str, value: Any, weight: float) -> dict[str, Any]:
    return {"name": shown(name), "value": "" if value == "" else shown(value), "decibans": float(weight) * DECIBAN}


def _largest(lines: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    finite = [line for line in lines if np.isfinite(line["decibans"])]
    return sorted(finite, key=lambda line: -abs(line["decibans"]))[:most]


def _bits(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.2f}"


def _markup(html: str) -> Any:
    """HTML that is escaped already."""
    return _jinja2().utils.markupsafe.Markup(html)


def _template() -> Any:
    jinja2 = _jinja2()
    loader = jinja2.PackageLoader("priory.export", "templates")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "report.html"
    )


def _jinja2() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise Missing("a report needs jinja2: pip install 'priory[report]'.", name=error.name) from None
    return jinja2
