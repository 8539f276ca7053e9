"""Predictions beside the rows they are for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from priory.cli.model_files import TableOrTextClassifier
from priory.core.typing import Array
from priory.estimators.text_classifier import TextClassifier
from priory.models.explanation import DECIBANS_PER_NAT
from priory.sources import RowChunk
from priory.sources.column_types import ModelColumns

MAX_CERTAINTY_DECIBANS = 9999.9  # decibans: JSON knows no infinity
PREDICTION_COLUMNS = ("label", "probability", "certainty")


def add_predictions(
    model: TableOrTextClassifier,
    columns: ModelColumns,
    chunk: RowChunk,
    threshold: float | None = None,
    counts: Counter[str] | None = None,
) -> Any:
    """The chunk with three more columns."""
    rows = columns.read(chunk)
    if counts is not None:
        counts["never seen"] += count_unknown_labels(model, rows)
    log_proba = model.predict_log_proba(rows)
    best = log_proba.argmax(axis=1)
    probability = np.exp(log_proba.max(axis=1))
    labels = pa.array([str(label) for label in model.classes_[best]], pa.string())
    if threshold is not None:
        labels = pa.compute.if_else(pa.array(probability >= threshold), labels, pa.scalar(None, pa.string()))
    added = (labels, pa.array(probability.round(6)), pa.array(certainty(log_proba, best).round(1)))
    batch = chunk.batch
    for name, column in zip(PREDICTION_COLUMNS, added, strict=True):
        batch = batch.append_column(find_free_name(name, chunk.file.names), column)
    return batch


def count_unknown_labels(model: TableOrTextClassifier, rows: Any) -> int:
    """How many cells of labels hold what the model has never seen: they were smoothed."""
    if isinstance(model, TextClassifier):
        return 0
    count, places = 0, dict(zip(rows.names, rows.columns, strict=True))
    for block, (tallies, *_) in zip(model._schema.blocks, model.statistics_.parts, strict=True):
        for name, tally in zip(block.names, tallies, strict=True) if block.kind == "label" else ():
            codes, values = places[name].labels
            count += int((~np.isin(values, tally.values))[codes[codes >= 0]].sum())
    return count


def find_free_name(name: str, used_names: tuple[str, ...]) -> str:
    while name in used_names:
        name = f"predicted_{name}"
    return name


def certainty(log_proba: Array, best: Array) -> Array:
    """The log-odds of the best class against all others together, in decibans; always finite."""
    own = np.arange(len(best)), best
    others = log_proba.copy()
    others[own] = -np.inf
    with np.errstate(divide="ignore"):
        against = np.logaddexp.reduce(others, axis=1)
    return np.clip(
        np.nan_to_num((log_proba[own] - against) * DECIBANS_PER_NAT, posinf=MAX_CERTAINTY_DECIBANS),
        -MAX_CERTAINTY_DECIBANS,
        MAX_CERTAINTY_DECIBANS,
    )
