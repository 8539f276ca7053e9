"""Column section of a report: the family of each column, its missing share, and a small histogram."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from priory.core.typing import Array
from priory.errors import PrioryError
from priory.evaluation.regression_scores import format_quantity
from priory.export.small_figures import draw_stacked_bars
from priory.models.ledger_formatting import format_value
from priory.models.table import Column
from priory.models.table_reading import read_table

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
