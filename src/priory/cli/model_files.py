"""Rows of files as a model takes them, and models as files: what commands do between options and answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from priory.cli.sign import get_required_key
from priory.cli.terminal import print_note, show_activity
from priory.core.typing import Array
from priory.errors import DataError, KindError
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.text_classifier import TextClassifier
from priory.sources import FileRows, ReadOptions, RowChunk, open_files
from priory.sources.byte_streams import format_path
from priory.sources.column_types import ColumnOptions, LabelReader, ModelColumns
from priory.sources.discovery import format_names
from priory.sources.document_files import LABEL_COLUMN, TEXT_COLUMN
from priory.sources.prefetch import read_ahead
from priory.storage import load
from priory.workflows.out_of_core import RowSample

TableOrTextClassifier = NaiveBayes | TextClassifier


def load_classifier(path: str) -> TableOrTextClassifier:
    """The model of a file, if it is one the commands know how to feed."""
    return check_model_type(load(path, key=get_required_key()), path)


def check_model_type(model: Any, path: str) -> TableOrTextClassifier:
    if not isinstance(model, NaiveBayes | TextClassifier):
        raise KindError(
            f"{format_path(path)}: is a {type(model).__name__}; the command line knows NaiveBayes and TextClassifier"
        )
    return model


def set_training_columns(model: TableOrTextClassifier, columns: ModelColumns, target: str) -> None:
    """The model knows by name what it was learned from, and goes into its file with it."""
    model.feature_names_in_ = np.array(columns.names, dtype=object)
    model.target_, model.missing_ = target, tuple(sorted(columns.missing))


def fill_target(model: TableOrTextClassifier, column_options: ColumnOptions) -> ColumnOptions:
    """What was said, with the target the model was trained for where nothing was."""
    from dataclasses import replace

    return (
        column_options
        if column_options.target
        else replace(column_options, target=getattr(model, "target_", LABEL_COLUMN))
    )


def get_model_columns(model: TableOrTextClassifier) -> ModelColumns:
    """The columns a model was trained on."""
    missing = frozenset(getattr(model, "missing_", ()))
    if isinstance(model, TextClassifier):
        names = getattr(model, "feature_names_in_", [TEXT_COLUMN])
        return ModelColumns({str(names[0]): "text"}, missing)
    kinds = {name: block.kind for block in model._schema.blocks for name in block.names}
    declared = model.families if isinstance(model.families, dict) else {}
    return ModelColumns({name: kinds.get(name, "label") for name in model._schema.names}, missing, declared)


def find_needed_columns(rows: FileRows, columns: ModelColumns, *more: str) -> tuple[str, ...]:
    """The columns of the files that a model needs, and these; what is there beside them is said once."""
    absent = [name for name in columns.names if name not in rows.names]
    if absent:
        where = format_path(rows.files[0].path)
        raise DataError(
            f"{where}: has no column {format_names(absent)}, which the model needs; it has {format_names(rows.names)}"
        )
    return tuple(dict.fromkeys([*more, *columns.names]))


def note_unknown_columns(rows: FileRows, columns: ModelColumns, *more: str) -> None:
    extra = [name for name in rows.names if name not in {*columns.names, *more}]
    if extra and not rows.is_documents:
        print_note(f"columns the model does not know are left out: {format_names(extra)}")


def read_labelled_rows(
    rows: FileRows, columns: ModelColumns, column_options: ColumnOptions
) -> Iterator[tuple[Any, Array]]:
    """Chunk by chunk rows as the library takes them, and their labels."""
    target = column_options.find_target(rows)
    labels = LabelReader(target, column_options)
    for chunk in read_ahead(rows.read_chunks(find_needed_columns(rows, columns, target))):
        group, kept = labels.read(chunk)
        if len(group):
            yield columns.read_input_rows(kept), labels.names[group]


def join_labelled_rows(parts: Iterator[tuple[Any, Array]]) -> list[tuple[Any, Array]]:
    """Several pieces of rows and labels as one, or none."""
    pairs = list(parts)
    if not pairs:
        return []
    return [(concatenate_rows([rows for rows, _ in pairs]), np.concatenate([labels for _, labels in pairs]))]


def concatenate_rows(parts: list[Any]) -> Any:
    """Lists of texts, or Arrow tables of the same columns, as one."""
    if isinstance(parts[0], list):
        return [document for part in parts for document in part]
    import pyarrow as pa

    return pa.concat_tables(parts)


def read_sample_rows(
    sample: RowSample, columns: ModelColumns, column_options: ColumnOptions, rows: FileRows
) -> tuple[Any, Array]:
    """A sample as the library takes it: rows, and their labels."""
    labels = LabelReader(str(column_options.target), column_options)
    group, kept = labels.read(RowChunk(sample.batch(), rows.files[0], 0))
    return columns.read_input_rows(kept), labels.names[group]


def refresh_corrections(
    model: TableOrTextClassifier, paths: tuple[str, ...], read_options: ReadOptions, column_options: ColumnOptions
) -> None:
    """Corrections fitted again to rows the model knows; if there are none, it says that it lost them."""
    if paths:
        rows, columns, sample = open_files(list(paths), read_options), get_model_columns(model), RowSample()
        labels = LabelReader(column_options.find_target(rows), column_options)
        for chunk in read_ahead(rows.read_chunks(find_needed_columns(rows, columns, str(column_options.target)))):
            sample.add(labels.read(chunk)[1].batch)
        with show_activity(f"judging {len(sample.keys):,} rows"):
            model.set_params(calibrate="loo").refresh(*read_sample_rows(sample, columns, column_options, rows))
    elif model.stale_:
        print_note(
            f"no longer corrected by what rows said of it ({', '.join(model.stale_)}); --refresh FILE does it again"
        )
