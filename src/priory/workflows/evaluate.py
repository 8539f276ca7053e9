"""Scores of a model on the rows of files."""

from __future__ import annotations

from typing import Any

import numpy as np

from priory.cli.model_files import (
    TableOrTextClassifier,
    fill_target,
    get_model_columns,
    join_labelled_rows,
    load_classifier,
    read_labelled_rows,
)
from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import FileRows
from priory.sources.column_types import ColumnOptions, LabelReader, infer_columns
from priory.sources.prefetch import peek_first


def load_model_and_rows(
    path: str, rows: FileRows, column_options: ColumnOptions
) -> tuple[TableOrTextClassifier, Any, Array]:
    """The model of a file, and all labelled rows as it takes them."""
    model = load_classifier(path)
    column_options = fill_target(model, column_options)
    parts = join_labelled_rows(read_labelled_rows(rows, get_model_columns(model), column_options))
    if not parts:
        raise DataError("no row has a label; there is nothing to judge by")
    return model, *parts[0]


def score_file_rows(path: str, rows: FileRows, column_options: ColumnOptions, leave_one_out: bool) -> tuple[Any, int]:
    """The scores, and of how many rows."""
    from priory.evaluation.scores import Scores

    model = load_classifier(path)
    if leave_one_out:
        model, table, labels = load_model_and_rows(path, rows, column_options)
        return model.evaluate(table, labels), len(labels)
    column_options = fill_target(model, column_options)
    answers = [
        (model.predict_log_proba(part), labels)
        for part, labels in read_labelled_rows(rows, get_model_columns(model), column_options)
    ]
    logs, labels = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    unknown = sorted(set(labels.tolist()) - set(model.classes_.tolist()))
    if unknown:
        raise DataError(f"the model knows no class {unknown[0]!r}; it knows {model.classes_.tolist()[:10]}")
    return Scores.of(labels, logs, model.classes_, logs=True), len(labels)


def read_whole_table(rows: FileRows, column_options: ColumnOptions) -> Any:
    """All rows, the target among them, as one Arrow table: an audit compares every row with every other."""
    import pyarrow as pa

    target = column_options.find_target(rows)
    first, chunks = peek_first(rows.read_chunks((target, *column_options.find_features(rows))))
    columns, _ = infer_columns(first, column_options.find_features(rows), column_options)
    labels, parts = LabelReader(target, column_options), []
    for chunk in chunks:
        group, kept = labels.read(chunk)
        table = columns.read_input_rows(kept)
        table = pa.table({columns.names[0]: table}) if isinstance(table, list) else table
        parts.append(table.append_column(target, pa.array(labels.names[group].tolist(), pa.string())))
    return pa.concat_tables(parts)
