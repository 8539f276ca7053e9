"""HTML report about a model on rows of files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Unpack

from priory.errors import DataError
from priory.workflows.judging import DEFAULT_FOLDS, JudgingOptions, SideColumns, make_splits
from priory.workflows.model_files import (
    FileOptions,
    FileTask,
    count_known_rows,
    describe_source,
    get_model_columns,
    load_classifier,
    make_task,
    read_all_labelled_rows,
)
from priory.workflows.training_results import audit_sample, draw_report_curve

if TYPE_CHECKING:
    from priory.export.report import Report
    from priory.workflows.model_files import ModelOrPath, Paths


class ReportResult(NamedTuple):
    """An HTML report, which ``page.save(path)`` writes, and the number of labelled rows that it is about."""

    page: Report
    n_rows: int


def report(
    model: ModelOrPath,
    paths: Paths | FileTask,
    *,
    learned: bool = False,
    peers: bool = False,
    audit: bool = True,
    command: str = "",
    **given: Unpack[FileOptions],
) -> ReportResult:
    """Write an HTML report about a model on the rows of files, which have to fit into memory.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several, or a FileTask
    learned : bool
        Whether the model has learned these rows. Then each row is predicted by a model that has not learned it, and
        there is a learning curve.
    peers : bool
        Whether to compare with scikit-learn's logistic regression and gradient boosting, fitted to the same folds; for
        rows that the model has ``learned``.
    audit : bool
        Whether to look for leakage in the rows.
    command : str
        The command that makes the report again, for its last section.
    **given
        The target and how the files are read, as for `FileTask`.

    Returns
    -------
    ReportResult
        The page, and the number of rows.
    """
    from priory.export.report import ReportSubject
    from priory.export.report import report as make_report

    task = make_task(paths, given)
    trained, rows, callbacks = load_classifier(model, task.key), task.open(), task.callbacks
    task = task.fill_target(trained)
    table, labels = read_all_labelled_rows(trained, rows, task)
    file = os.path.basename(model) if isinstance(model, str | os.PathLike) else ""
    subject = ReportSubject(describe_source(rows), str(task.columns.target), file, command=command)
    scores, compared, curve, findings = None, {}, {}, None
    if peers:
        if not learned:
            raise DataError("peers are fitted to folds of rows that the model has learned; say that it has")
        from priory.workflows.peers import score_peers

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
