"""The sections of a report: scores, calibration, columns and the worst mistakes."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy import ndarray as Array
from scipy.stats import rankdata

from priory.calibration.calibration_maps import fit_calibration_map
from priory.core.logspace import log
from priory.core.sharding import space_evenly
from priory.core.typing import Classifier, Label
from priory.errors import PrioryError
from priory.estimators.calibrated import predict_out_of_fold
from priory.estimators.learned_classifier import CorrectedClassifier
from priory.estimators.sklearn_compat import take_table_rows
from priory.evaluation.curves import calibration_error, compute_reliability_bins
from priory.evaluation.intervals import Interval
from priory.evaluation.regression_scores import format_quantity
from priory.evaluation.score_table import OVERALL_SCORES
from priory.evaluation.scores import Scores
from priory.export.report_page import draw_bar, draw_reliability, draw_stacked_bars, mark_safe
from priory.model.ledger import Ledger, LedgerLine
from priory.model.ledger_output import DECIBANS_PER_NAT, format_value
from priory.tables.table import Column
from priory.tables.table_reading import read_table

if TYPE_CHECKING:
    from priory.core.typing import MatrixLike


MAX_REPORT_MISTAKES = 8
MIN_AUDITED_ROWS = 20
MAX_LINES_OF_A_MISTAKE = 8  # besides the prior
MAX_REPORT_TEXT_LENGTH = 5000  # characters shown


def list_overall_scores(scores: Scores) -> list[dict[str, str]]:
    """Return the scores over all rows, each with its interval and the score of the base rate, as text."""
    return [
        {"title": title, **format_interval(getattr(scores, name), form)}
        | {"base": "" if scores.base_score(name) is None else f"{scores.base_score(name):{form}}"}
        for name, (title, form) in OVERALL_SCORES.items()
    ]


def format_interval(score: Interval, format_spec: str) -> dict[str, str]:
    return {name: f"{value:{format_spec}}" for name, value in score._asdict().items()}


SURE = 0.9  # a certainty that a summary calls sure


def summarise_scores(scores: Scores) -> str:
    """Say in plain words how often the model is right, how far its certainty can be trusted, and what it mixes up."""
    right, weight = scores.answer == scores.truth, scores.weight
    common = format_value(scores.classes[int(np.argmax(scores.shares))])
    sentences = [
        f"Of 100 rows that it has not learned, it answers {100 * np.average(right, weights=weight):.0f} correctly; "
        f"always answering {common} would be correct for {100 * float(scores.shares.max()):.0f}."
    ]
    sure = scores.certainty >= SURE
    if sure.any():
        sentences.append(
            f"It is at least {SURE:.0%} sure of {np.average(sure, weights=weight):.0%} of the rows, and "
            f"{np.average(right[sure], weights=weight[sure]):.0%} of those answers are correct."
        )
    if not right.all():
        n = len(scores.classes)
        mixed = np.bincount(scores.truth[~right] * n + scores.answer[~right], minlength=n * n)  # (truth, answer), flat
        truth, answer = divmod(int(np.argmax(mixed)), n)
        sentences.append(
            f"Its most frequent mistake is {format_value(scores.classes[truth])} taken for "
            f"{format_value(scores.classes[answer])}: {mixed.max():,} of {mixed.sum():,} mistakes."
        )
    return " ".join(sentences)


def describe_mistakes(model: object, X: object, scores: Scores, learned: bool) -> dict[str, object]:
    """Return the rows whose true class had the lowest probability, each with its evidence."""
    wrong = np.flatnonzero(scores.answer != scores.truth)
    # the most surprising first: -log p(truth)
    worst = wrong[np.argsort(-scores.surprise[wrong], kind="stable")][:MAX_REPORT_MISTAKES]
    how = "Rows whose true class was given the lowest probability; many have a wrong label. Rows are counted from 0."
    if hasattr(model, "explain"):
        how += " The evidence is from the model without the row." if learned else ""
    return {"mistakes": [_describe_mistake(model, X, scores, int(row), learned) for row in worst], "mistakes_how": how}


def describe_membership(model: object) -> str | None:
    """Say how well the answers tell which rows were learned; None for a model that keeps no rows."""
    sample = getattr(getattr(model, "statistics_", None), "sample", None)
    if not isinstance(model, CorrectedClassifier) or sample is None or len(sample) < MIN_AUDITED_ROWS:
        return None
    audit = model.audit_membership()
    return (
        f"Whoever asks for the probability of a row's class can guess whether the row was learned: the area under the "
        f"ROC curve of this attack is {audit.area:.3f} (0.5 is chance), and at one false alarm in a thousand it "
        f"recognises {audit.caught:.2%} of the rows. Whoever has the model file can read the {audit.rows:,} rows in it."
    )


def _describe_mistake(model: Any, X: object, scores: Scores, row: int, learned: bool) -> dict[str, object]:
    truth, answer = scores.classes[scores.truth[row]], scores.classes[scores.answer[row]]
    position = row if scores.positions is None else int(scores.positions[row])
    surprise = float(scores.surprise[row])
    mistake = {
        "row": position,
        "truth": format_value(truth),
        "answer": format_value(answer),
        "p": f"p = {math.exp(-surprise):.2g}" if surprise < 690 else "p < 1e-299",  # near underflow
        "text": None,
        "lines": [],
    }
    if not hasattr(model, "explain"):
        return mistake
    example = take_table_rows(X, np.array([position]))
    ledger = (_forget_row(model, example, truth) if learned else model).explain(example)[0]
    text = None if ledger.text is None else mark_safe(ledger.marked(answer, truth, MAX_REPORT_TEXT_LENGTH))
    total = f"{ledger.log_odds(answer, truth) * DECIBANS_PER_NAT:+.1f}"
    return mistake | {"lines": list_largest_lines(ledger, answer, truth), "text": text, "total": total}


def list_largest_lines(
    ledger: Ledger, answer: Label | None = None, against: Label | None = None, max_lines: int = MAX_LINES_OF_A_MISTAKE
) -> list[dict[str, object]]:
    """Return the prior, the lines of largest weight, and the sum of the others; by default of the likeliest class."""
    decibans = [weight * DECIBANS_PER_NAT for weight in ledger.weights(answer, against)]
    prior, *lines = zip(ledger.entries(), decibans, strict=True)
    largest = sorted(lines, key=lambda pair: -abs(pair[1]))
    shown = [_format_line(line, weight) for line, weight in (prior, *largest[:max_lines])]
    others = [weight for _, weight in largest[max_lines:]]
    if others:
        shown.append({"name": f"{len(others)} others", "value": "", "decibans": math.fsum(others)})
    return shown


def _format_line(line: LedgerLine, decibans: float) -> dict[str, object]:
    if line.spans:
        value = "" if len(line.spans) == 1 else f"{len(line.spans)} times"
    else:
        value = "" if line.value == "" else format_value(line.value)
    return {"name": format_value(line.name), "value": value, "decibans": decibans}


def _forget_row(model: Any, example: object, label: Label) -> Any:
    """Return the model without the row, or unchanged if it cannot forget or would lose the class."""
    # a shallow copy: `forget` replaces the statistics of the twin only
    twin = copy.copy(model)
    try:
        twin.forget(example, [label])
    except (AttributeError, PrioryError):
        return model
    return twin if label in getattr(twin, "classes_", ()) else model


N_BINS = 16
MAX_VALUES_DRAWN = 8
MAX_REPORT_COLUMNS = 200


def describe_columns(model: object, X: object, group: Array, n_classes: int) -> list[dict[str, str]]:
    """Return the table row of each column; ``group`` is the class of each row of ``X``."""
    schema = getattr(model, "schema_", {})
    texts = {name for name, report in schema.items() if report.kind == "text"}
    columns = _read_columns(X, texts) if schema else {}
    rows = []
    for report in list(schema.values())[:MAX_REPORT_COLUMNS]:
        # the two best families by bits per cell, padded if there are fewer
        (best, bits), (other, less) = [*sorted(report.bits.items(), key=lambda e: -e[1]), ("", None), ("", None)][:2]
        row = {
            "name": format_value(report.name),
            "family": report.family if report.bits else best or report.kind,
            "bits": _format_bits(bits),
            "other": other,
            "less": _format_bits(less),
        }
        rows.append(row | _describe_cells(columns.get(report.name), report.name, group, n_classes))
    return rows


MAX_PAIRS, MAX_PAIRED_COLUMNS, MAX_PAIRED_ROWS = 8, 100, 2000
MIN_CORRELATION = 0.3


def describe_pairs(X: object, group: Array) -> list[dict[str, str]]:
    """Return the pairs of columns of numbers with the strongest rank correlations, in all rows and within classes."""
    read = [(name, column.numbers) for name, column in _read_columns(X, ()).items() if column.numbers is not None]
    chosen = space_evenly(len(group), MAX_PAIRED_ROWS)
    paired = [(name, numbers[chosen]) for name, numbers in read[:MAX_PAIRED_COLUMNS]]
    paired = [(name, numbers) for name, numbers in paired if len(np.unique(numbers[~np.isnan(numbers)])) > 1]
    if len(paired) < 2:
        return []
    ranks = np.column_stack([_rank(numbers) for _, numbers in paired])  # (rows, columns), 0 where missing
    within = ranks - np.stack([ranks[group[chosen] == c].mean(axis=0) for c in range(group.max() + 1)])[group[chosen]]
    overall, inside = (_correlate(each) for each in (ranks, within))  # (columns, columns) each
    strength = np.abs(np.triu(overall, 1))
    largest = np.argsort(-strength, axis=None, kind="stable")[:MAX_PAIRS]
    pairs = [divmod(int(place), len(paired)) for place in largest if strength.flat[place] >= MIN_CORRELATION]
    return [
        {
            "names": f"{format_value(paired[i][0])} and {format_value(paired[j][0])}",
            "overall": f"{overall[i, j]:+.2f}",
            "within": f"{inside[i, j]:+.2f}",
            "bar": mark_safe(draw_bar(strength[i, j], "for" if overall[i, j] > 0 else "against")),
        }
        for i, j in pairs
    ]


def _rank(numbers: Array) -> Array:
    """Return the centred ranks of numbers; a missing one has the mean rank, 0."""
    present, ranks = ~np.isnan(numbers), np.zeros(len(numbers))
    ranks[present] = rankdata(numbers[present])
    ranks[present] -= ranks[present].mean()
    return ranks


def _correlate(ranks: Array) -> Array:
    length = np.sqrt((ranks**2).sum(axis=0))
    correlations: Array = (ranks.T @ ranks) / np.maximum(np.outer(length, length), 1e-300)
    return correlations


def _read_columns(X: object, text_names: Collection[str]) -> dict[str, Column]:
    """Return the columns by name; columns that the model reads as text are text columns."""
    try:
        table = read_table(X)
    except PrioryError:  # an input that is not a table, such as a sparse matrix of counts
        return {}
    if table.matrix is not None:
        return {name: Column("number", numbers=table.matrix[:, j]) for j, name in enumerate(table.names)}
    texts = {name: Column("text", texts=table.texts(j)) for j, name in enumerate(table.names) if name in text_names}
    return dict(zip(table.names, table.columns, strict=True)) | texts


def _describe_cells(column: Column | None, name: str, group: Array, n_classes: int) -> dict[str, str]:
    if column is None:
        return {"missing": "", "figure": "", "values": ""}
    if column.texts is not None:
        n_missing, lengths = sum(not text for text in column.texts), [len(text) for text in column.texts]
        values = f"{np.mean(lengths):,.0f} characters on average" if lengths else ""
        return {"missing": _format_share(n_missing, len(group)), "figure": "", "values": values}
    if column.numbers is not None:
        counts, values = _bin_numbers(column.numbers, group, n_classes)
        missing = np.isnan(column.numbers)
    else:
        assert column.labels is not None
        codes, names = column.labels
        counts, values = _count_values(codes, names, group, n_classes)
        missing = codes < 0
    figure = mark_safe(draw_stacked_bars(counts, f"{name}: {values}")) if len(counts) else ""
    return {"missing": _format_share(int(missing.sum()), len(group)), "figure": figure, "values": values}


def _bin_numbers(numbers: Array, group: Array, n_classes: int) -> tuple[Array, str]:
    """Return the number of rows in bins of equal width, (bins, classes), and a summary of the values."""
    present = ~np.isnan(numbers)  # (rows,)
    if not present.any():
        return np.zeros((0, n_classes)), ""
    values = numbers[present]
    # the outermost bins include everything beyond the central 98 %, so that outliers do not squeeze the others
    low, high = np.quantile(values, [0.01, 0.99])
    n_bins = min(N_BINS, len(np.unique(values)))
    place = np.zeros(len(values)) if high <= low else (np.clip(values, low, high) - low) / (high - low)
    # (present rows,): place is from 0 to 1, and 1 belongs to the last bin
    bins = np.minimum((place * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins * n_classes + group[present], minlength=n_bins * n_classes).reshape(n_bins, n_classes)
    least, middle, most = (format_quantity(float(value)) for value in (values.min(), np.median(values), values.max()))
    return counts, f"{least} to {most}, median {middle}"


def _count_values(codes: Array, names: Array, group: Array, n_classes: int) -> tuple[Array, str]:
    """Return the number of rows of the most common values, (values, classes), and a summary of the values."""
    present = codes >= 0  # (rows,)
    cells = np.bincount(codes[present] * n_classes + group[present], minlength=len(names) * n_classes)
    counts = cells.reshape(-1, n_classes)
    order = np.argsort(-counts.sum(axis=1), kind="stable")[:MAX_VALUES_DRAWN]  # most common first
    listed = ", ".join(format_value(str(names[v])) for v in order[:3])
    more = len(names) - 3
    return counts[order], f"{listed} and {more} more" if more > 0 else listed


def _format_share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if part else "none"


def _format_bits(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.2f}"


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


def describe_class_calibration(scores: Scores, max_classes: int) -> list[dict[str, str]]:
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


class ReportScores(NamedTuple):
    """Scores of a model, how its rows were predicted, and scores to compare with.

    ``compared`` has two entries: the model without and with its corrections or, if it has none, the model as it is and
    with temperature scaling.
    """

    scores: Scores
    method: str
    compared: dict[str, Scores]


def score_learned_rows(model: Any, X: object, y: Array, known: Scores | None = None) -> ReportScores:
    """Score rows that the model has learned, each predicted out of sample.

    ``known`` is the result of ``model.evaluate``, if it has been computed already.
    """
    evaluates, leaves_out = hasattr(model, "evaluate"), hasattr(model, "leave_one_out")
    if not (evaluates or leaves_out):
        scores = Scores.of(y, predict_out_of_fold(model, cast("MatrixLike", X), y), model.classes_, logs=True)
        return ReportScores(scores, "each fifth judged by a model of the other four", _compare(scores, None))
    if not evaluates:
        scores, plain = _score_leave_one_out(model, X, y), None
    else:
        scores = model.evaluate(X, y) if known is None else known
        plain = _score_leave_one_out(model, X, y, scores.positions) if leaves_out else None
    return ReportScores(scores, "each judged by the model without it", _compare(scores, plain))


def score_held_out_rows(model: Classifier, X: object, y: Array) -> ReportScores:
    """Score rows that the model has not learned."""
    scores, plain = Scores.of(y, _predict_log_proba(model, X), model.classes_, logs=True), None
    if isinstance(model, CorrectedClassifier) and hasattr(model, "corrections_"):
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


def _score_leave_one_out(model: Any, X: object, y: Array, positions: Array | None = None) -> Scores:
    rows, labels = (X, y) if positions is None else (take_table_rows(X, positions), y[positions])
    return Scores.of(labels, model.leave_one_out(rows, labels), model.classes_, logs=True)


def _predict_log_proba(model: Classifier, X: object) -> Array:
    if hasattr(model, "predict_log_proba"):
        return np.asarray(model.predict_log_proba(X))
    return log(np.asarray(model.predict_proba(X)))
