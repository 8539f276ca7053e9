"""Rows of files as a model takes them, and models as files: what commands do between options and answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from priory.cli.sign import required
from priory.cli.terminal import note, saying
from priory.core.typing import Array
from priory.errors import DataError, KindError
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.text_classifier import TextClassifier
from priory.sources import Asked, Chunk, Rows, open_files
from priory.sources.byte_streams import shown
from priory.sources.column_types import Columns, Labels, Said
from priory.sources.discovery import listed
from priory.sources.document_files import LABEL, TEXT
from priory.sources.prefetch import ahead
from priory.storage import load
from priory.workflows.out_of_core import Sample

Model = NaiveBayes | TextClassifier


def loaded(path: str) -> Model:
    """The model of a file, if it is one the commands know how to feed."""
    return known(load(path, key=required()), path)


def known(model: Any, path: str) -> Model:
    if not isinstance(model, NaiveBayes | TextClassifier):
        raise KindError(
            f"{shown(path)}: is a {type(model).__name__}; the command line knows NaiveBayes and TextClassifier"
        )
    return model


def remember(model: Model, columns: Columns, target: str) -> None:
    """The model knows by name what it was learned from, and goes into its file with it."""
    model.feature_names_in_ = np.array(columns.names, dtype=object)
    model.target_, model.missing_ = target, tuple(sorted(columns.missing))


def target_of(model: Model, said: Said) -> Said:
    """What was said, with the target the model was trained for where nothing was."""
    from dataclasses import replace

    return said if said.target else replace(said, target=getattr(model, "target_", LABEL))


def columns_of(model: Model) -> Columns:
    """The columns a model was trained on."""
    missing = frozenset(getattr(model, "missing_", ()))
    if isinstance(model, TextClassifier):
        names = getattr(model, "feature_names_in_", [TEXT])
        return Columns({str(names[0]): "text"}, missing)
    kinds = {name: block.kind for block in model._schema.blocks for name in block.names}
    declared = model.families if isinstance(model.families, dict) else {}
    return Columns({name: kinds.get(name, "label") for name in model._schema.names}, missing, declared)


def wanted(rows: Rows, columns: Columns, *more: str) -> tuple[str, ...]:
    """The columns of the files that a model needs, and these; what is there beside them is said once."""
    absent = [name for name in columns.names if name not in rows.names]
    if absent:
        where = shown(rows.files[0].path)
        raise DataError(f"{where}: has no column {listed(absent)}, which the model needs; it has {listed(rows.names)}")
    return tuple(dict.fromkeys([*more, *columns.names]))


def note_extra(rows: Rows, columns: Columns, *more: str) -> None:
    extra = [name for name in rows.names if name not in {*columns.names, *more}]
    if extra and not rows.is_documents:
        note(f"columns the model does not know are left out: {listed(extra)}")


def labelled(rows: Rows, columns: Columns, said: Said) -> Iterator[tuple[Any, Array]]:
    """Chunk by chunk rows as the library takes them, and their labels."""
    target = said.target_in(rows)
    labels = Labels(target, said)
    for chunk in ahead(rows.chunks(wanted(rows, columns, target))):
        group, kept = labels.read(chunk)
        if len(group):
            yield columns.rows(kept), labels.names[group]


def joined(parts: Iterator[tuple[Any, Array]]) -> list[tuple[Any, Array]]:
    """Several pieces of rows and labels as one, or none."""
    pairs = list(parts)
    if not pairs:
        return []
    return [(together([rows for rows, _ in pairs]), np.concatenate([labels for _, labels in pairs]))]


def together(parts: list[Any]) -> Any:
    """Lists of texts, or Arrow tables of the same columns, as one."""
    if isinstance(parts[0], list):
        return [document for part in parts for document in part]
    import pyarrow as pa

    return pa.concat_tables(parts)


def drawn(sample: Sample, columns: Columns, said: Said, rows: Rows) -> tuple[Any, Array]:
    """A sample as the library takes it: rows, and their labels."""
    labels = Labels(str(said.target), said)
    group, kept = labels.read(Chunk(sample.batch(), rows.files[0], 0))
    return columns.rows(kept), labels.names[group]


def refreshed(model: Model, paths: tuple[str, ...], how: Asked, said: Said) -> None:
    """Corrections fitted again to rows the model knows; if there are none, it says that it lost them."""
    if paths:
        rows, columns, sample = open_files(list(paths), how), columns_of(model), Sample()
        labels = Labels(said.target_in(rows), said)
        for chunk in ahead(rows.chunks(wanted(rows, columns, str(said.target)))):
            sample.add(labels.read(chunk)[1].batch)
        with saying(f"judging {len(sample.keys):,} rows"):
            model.set_params(calibrate="loo").refresh(*drawn(sample, columns, said, rows))
    elif model.stale_:
        note(f"no longer corrected by what rows said of it ({', '.join(model.stale_)}); --refresh FILE does it again")
