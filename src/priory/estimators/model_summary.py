"""A fitted classifier at a glance, as a notebook shows it: its classes, its columns, and its corrections."""

from __future__ import annotations

from collections.abc import Sequence

from priory.core.display_table import DisplayTable, format_cell
from priory.core.typing import Array

MAX_SUMMARY_ROWS = 20


def summarise_model(
    title: str, classes: Array, counts: Array, class_prior: Array, families: dict[str, str]
) -> list[DisplayTable]:
    """The classes with their rows and priors and, if there are columns of different families, the columns."""
    rows = [
        (format_cell(label), n, p)
        for label, n, p in zip(classes.tolist(), counts.tolist(), class_prior.tolist(), strict=True)
    ]
    tables = [DisplayTable(title, ("class", "rows", "P(class)"), tuple(rows[:MAX_SUMMARY_ROWS]), _note_more(rows))]
    if families:
        columns = [(format_cell(name), family) for name, family in families.items()]
        tables.append(DisplayTable("", ("column", "family"), tuple(columns[:MAX_SUMMARY_ROWS]), _note_more(columns)))
    return tables


def _note_more(rows: Sequence[object]) -> str:
    return f"and {len(rows) - MAX_SUMMARY_ROWS:,} more" if len(rows) > MAX_SUMMARY_ROWS else ""
