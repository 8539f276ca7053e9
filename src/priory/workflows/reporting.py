"""A report about a model on rows of files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from priory.errors import DataError
from priory.sources import ReadOptions
from priory.sources.column_types import ColumnOptions
from priory.workflows.callbacks import SILENT, Callbacks
from priory.workflows.evaluation import check_any_labelled, check_known_labels
from priory.workflows.judging import DEFAULT_FOLDS, JudgingOptions, SideColumns, make_splits
from priory.workflows.model_files import (
    choose_columns,
    count_known_rows,
    describe_source,
    fill_target,
    get_model_columns,
    join_labelled_rows,
    load_classifier,
    open_paths,
    read_labelled_rows,
)
from priory.workflows.peers import score_peers
from priory.workflows.training_results import audit_sample, draw_report_curve

if TYPE_CHECKING:
    from priory.export.report import Report
    from priory.workflows.model_files import ModelOrPath, PathLike, Paths


class ReportResult(NamedTuple):
    """An HTML report, which ``page.save(path)`` writes, and the number of labelled rows that it is about."""

    page: Report
    n_rows: int


def report(
    model: ModelOrPath,
    paths: Paths,
    *,
    learned: bool = False,
    peers: bool = False,
    audit: bool = True,
    command: str = "",
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> ReportResult:
    """An HTML report about a model on the rows of files, which have to fit into memory.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several
    learned : bool
        Whether the model has learned these rows. Then each row is predicted by a model that has not learned it, and
        there is a learning curve.
    peers : bool
        Whether to compare with scikit-learn's logistic regression and gradient boosting, fitted to the same folds; for
        rows that the model has ``learned``.
    audit : bool
        Whether to look for leakage in the rows.
    command : str
        What makes the report again, for its last section.
    target : str, optional
        The column of the labels; by default the one that the model was trained for.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    key : path, optional
        The model file must be signed with this key.
    callbacks : Callbacks

    Returns
    -------
    ReportResult
        The page, and the number of rows.
    """
    from priory.export.report import ReportSubject
    from priory.export.report import report as make_report

    trained, rows = load_classifier(model, key), open_paths(paths, read, callbacks)
    column_options = fill_target(trained, choose_columns(columns, target))
    parts = join_labelled_rows(read_labelled_rows(rows, get_model_columns(trained), column_options, callbacks))
    check_any_labelled(parts)
    table, labels = parts[0]
    check_known_labels(trained, labels)
    file = os.path.basename(model) if isinstance(model, str | os.PathLike) else ""
    subject = ReportSubject(describe_source(rows), str(column_options.target), file, command=command)
    scores, compared, curve, findings = None, {}, {}, None
    if peers:
        if not learned:
            raise DataError("peers are fitted to folds of rows that the model has learned; say that it has")
        with callbacks.activity("fitting scikit-learn's models to the same folds"):
            splits = make_splits(labels, JudgingOptions(DEFAULT_FOLDS), SideColumns(()))
            scores = trained.evaluate(table, labels, folds=splits)
            compared = score_peers(get_model_columns(trained), table, labels, trained.classes_, splits)
    if learned and count_known_rows(trained) == len(labels):
        with callbacks.activity("scoring models of some of the rows"):
            curve = draw_report_curve(trained, table, labels)
    if audit:
        with callbacks.activity("looking for leakage"):
            findings = audit_sample(table, labels)
    with callbacks.activity("writing the report"):
        page = make_report(
            trained,
            table,
            labels,
            findings,
            learned=learned,
            scores=scores,
            compared=compared,
            curve=curve,
            subject=subject,
        )
    return ReportResult(page, len(labels))
