"""The sections of a report about columns and about the worst mistakes."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from priory.core.typing import Array, Label
from priory.errors import PrioryError
from priory.evaluation.regression_scores import format_quantity
from priory.evaluation.scores import Scores
from priory.export.report_page import draw_stacked_bars
from priory.export.strongest_evidence import ExplainingModel, take_input_rows
from priory.model.ledger import Ledger, LedgerLine
from priory.model.ledger_output import DECIBANS_PER_NAT, format_value
from priory.tables.table import Column
from priory.tables.table_reading import read_table

MAX_REPORT_MISTAKES = 8
MAX_LINES_OF_A_MISTAKE = 8  # besides the prior
MAX_REPORT_TEXT_LENGTH = 5000  # characters shown

MarkSafe = Callable[[str], str]


def describe_mistakes(
    model: object, X: object, scores: Scores, learned: bool, mark_safe: MarkSafe
) -> dict[str, object]:
    """Return the rows whose true class had the lowest probability, each with its evidence."""
    wrong = np.flatnonzero(scores.answer != scores.truth)
    # the most surprising first: -log p(truth)
    worst = wrong[np.argsort(-scores.surprise[wrong], kind="stable")][:MAX_REPORT_MISTAKES]
    how = "Rows whose true class was given the lowest probability; many have a wrong label. Rows are counted from 0."
    if isinstance(model, ExplainingModel):
        how += " The evidence is from the model without the row." if learned else ""
    return {
        "mistakes": [_describe_mistake(model, X, scores, int(row), learned, mark_safe) for row in worst],
        "mistakes_how": how,
    }


def _describe_mistake(
    model: object, X: object, scores: Scores, row: int, learned: bool, mark_safe: MarkSafe
) -> dict[str, object]:
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
    if not isinstance(model, ExplainingModel):
        return mistake
    example = take_input_rows(X, np.array([position]))
    ledger = (_forget_row(model, example, truth) if learned else model).explain(example)[0]
    text = None if ledger.text is None else mark_safe(ledger.marked(answer, truth, MAX_REPORT_TEXT_LENGTH))
    total = f"{ledger.log_odds(answer, truth) * DECIBANS_PER_NAT:+.1f}"
    return mistake | {"lines": _list_largest(ledger, answer, truth), "text": text, "total": total}


def _list_largest(ledger: Ledger, answer: Label, truth: Label) -> list[dict[str, object]]:
    """Return the prior, the lines of largest weight, and the sum of the others."""
    decibans = [weight * DECIBANS_PER_NAT for weight in ledger.weights(answer, truth)]
    prior, *lines = zip(ledger.entries(), decibans, strict=True)
    largest = sorted(lines, key=lambda pair: -abs(pair[1]))
    shown = [_format_line(line, weight) for line, weight in (prior, *largest[:MAX_LINES_OF_A_MISTAKE])]
    others = [weight for _, weight in largest[MAX_LINES_OF_A_MISTAKE:]]
    if others:
        shown.append({"name": f"{len(others)} others", "value": "", "decibans": math.fsum(others)})
    return shown


def _format_line(line: LedgerLine, decibans: float) -> dict[str, object]:
    if line.spans:
        value = "" if len(line.spans) == 1 else f"{len(line.spans)} times"
    else:
        value = "" if line.value == "" else format_value(line.value)
    return {"name": format_value(line.name), "value": value, "decibans": decibans}


def _forget_row(model: ExplainingModel, example: object, label: Label) -> ExplainingModel:
    """Return the model without the row, or unchanged if it cannot forget or would lose the class."""
    # a shallow copy: `forget` replaces the statistics of the twin only
    twin: Any = copy.copy(model)
    try:
        twin.forget(example, [label])
    except (AttributeError, PrioryError):
        return model
    without: ExplainingModel = twin
    return without if label in getattr(twin, "classes_", ()) else model


N_BINS = 16
MAX_VALUES_DRAWN = 8
MAX_REPORT_COLUMNS = 200


def describe_columns(
    model: object, X: object, group: Array, n_classes: int, mark_safe: Callable[[str], str]
) -> list[dict[str, str]]:
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
        rows.append(row | _describe_cells(columns.get(report.name), report.name, group, n_classes, mark_safe))
    return rows


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


def _describe_cells(
    column: Column | None, name: str, group: Array, n_classes: int, mark_safe: Callable[[str], str]
) -> dict[str, str]:
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
