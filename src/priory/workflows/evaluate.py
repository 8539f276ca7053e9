"""Scores of a model on the rows of files."""

from __future__ import annotations

from typing import Any

import numpy as np

from priory.cli.model_files import Model, columns_of, joined, labelled, loaded, target_of
from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import Rows
from priory.sources.column_types import Labels, Said, inferred
from priory.sources.prefetch import peeked


def labelled_rows(path: str, rows: Rows, said: Said) -> tuple[Model, Any, Array]:
    """The model of a file, and all labelled rows as it takes them."""
    model = loaded(path)
    said = target_of(model, said)
    parts = joined(labelled(rows, columns_of(model), said))
    if not parts:
        raise DataError("no row has a label; there is nothing to judge by")
    return model, *parts[0]


def scored(path: str, rows: Rows, said: Said, learned: bool) -> tuple[Any, int]:
    """The scores, and of how many rows."""
    from priory.evaluation.scores import Scores

    model = loaded(path)
    if learned:
        model, table, labels = labelled_rows(path, rows, said)
        return model.evaluate(table, labels), len(labels)
    said = target_of(model, said)
    answers = [(model.predict_log_proba(part), labels) for part, labels in labelled(rows, columns_of(model), said)]
    logs, labels = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    unknown = sorted(set(labels.tolist()) - set(model.classes_.tolist()))
    if unknown:
        raise DataError(f"the model knows no class {unknown[0]!r}; it knows {model.classes_.tolist()[:10]}")
    return Scores.of(labels, logs, model.classes_, logs=True), len(labels)


def whole_table(rows: Rows, said: Said) -> Any:
    """All rows, the target among them, as one Arrow table: an audit compares every row with every other."""
    import pyarrow as pa

    target = said.target_in(rows)
    first, chunks = peeked(rows.chunks((target, *said.features_in(rows))))
    columns, _ = inferred(first, said.features_in(rows), said)
    labels, parts = Labels(target, said), []
    for chunk in chunks:
        group, kept = labels.read(chunk)
        table = columns.rows(kept)
        table = pa.table({columns.names[0]: table}) if isinstance(table, list) else table
        parts.append(table.append_column(target, pa.array(labels.names[group].tolist(), pa.string())))
    return pa.concat_tables(parts)
