"""Train a Bayesian linear regression in one pass over the rows of files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from priory.errors import DataError
from priory.sources import FileReader, FileRows, RowChunk
from priory.sources.byte_streams import format_path
from priory.sources.column_inference import InferredColumns
from priory.sources.column_types import ModelColumns
from priory.sources.label_reading import TargetReader
from priory.workflows.callbacks import format_count
from priory.workflows.model_files import FileTask, describe_source, is_regression
from priory.workflows.out_of_core import DrawnRows
from priory.workflows.regression import score_regression
from priory.workflows.row_counting import RowCounter, TrainingPlan, count_rows
from priory.workflows.training_results import TrainingOptions, audit_sample

if TYPE_CHECKING:
    from priory.evaluation.regression_scores import RegressionScores
    from priory.leakage.findings import Findings
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.workflows.explanation import JSONValue

MAX_WEIGHTS_SHOWN = 12


@dataclass
class RegressionResult:
    """A trained regression with its scores and the findings of the audit.

    Attributes
    ----------
    model : BayesianLinearRegression
    n_rows : int
        The number of rows that were learned.
    families : dict of str to str
        For each column whether it holds numbers or labels.
    left_out : list of str
        Columns that were not learned: empty ones, identifiers and texts.
    scores : RegressionScores or None
        Scores on rows that the model has not learned (leave-one-out, in closed form).
    findings : Findings or None
        What the leakage audit found in the sample.
    unreadable_files : list of str
        Files that were left out because they may not be read.
    source : str
        The names of the files.
    """

    model: BayesianLinearRegression
    n_rows: int
    families: dict[str, str]
    left_out: list[str]
    scores: RegressionScores | None = None
    findings: Findings | None = None
    unreadable_files: list[str] = field(default_factory=list)
    source: str = ""

    def list_weights(self) -> list[tuple[str, float, float]]:
        """The largest weights: what they belong to, their expected value, and their standard deviation.

        They are sorted by how many standard deviations they are away from zero.
        """
        names, model = self.model.feature_names_in_, self.model
        spread = np.sqrt(np.diag(model.coef_covariance_))
        order = np.argsort(-np.abs(model.coef_) / np.where(spread > 0, spread, 1.0), kind="stable")
        found = []
        for j in order[:MAX_WEIGHTS_SHOWN]:
            term = model.terms_[j]
            column = names[term.column] if isinstance(term.column, int) else term.column
            suffix = {"level": f" = {term.level}", "missing": " is missing"}.get(term.kind, "")
            found.append((f"{column}{suffix}", float(model.coef_[j]), float(spread[j])))
        return found

    def as_dict(self) -> dict[str, JSONValue]:
        """Everything but the model, for JSON."""
        return {
            "kind": "regression",
            "rows": self.n_rows,
            "columns": self.families,
            "left_out": self.left_out,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "weights": [{"term": name, "weight": w, "deviation": s} for name, w, s in self.list_weights()],
            "audit": None if self.findings is None else json.loads(self.findings.to_json()),
        }


def train_regression(
    rows: FileRows,
    chunks: Iterator[RowChunk],
    inferred: InferredColumns,
    task: FileTask,
    options: TrainingOptions,
    *,
    judge: bool = True,
    count: RowCounter = count_rows,
) -> RegressionResult:
    """Learn a regression from chunks of rows, and score it by leave-one-out if ``judge``."""
    target, callbacks = str(task.columns.target), task.callbacks
    columns, texts = _leave_out_texts(rows, inferred.columns)
    counted = count(TrainingPlan(target, columns, task.columns, options, is_regression=True), rows, chunks)
    model, sample = counted.model, counted.sample
    if not is_regression(model):
        raise DataError(f"{format_path(rows.files[0].path)}: no row has a number to predict; give rows with the target")
    model.target_, model.missing_ = target, tuple(sorted(columns.missing))
    result = RegressionResult(
        model,
        sample.rows,
        dict(columns.kinds),
        [*inferred.empty, *inferred.identifiers, *texts],
        unreadable_files=list(counted.unreadable),
        source=describe_source(rows),
    )
    if judge and not options.plain:
        _judge_on_sample(result, sample, rows.files[0], columns, task, options)
    if texts:
        callbacks.notify(f"a regression does not read texts; left out {', '.join(map(repr, texts))}")
    if counted.n_unlabelled:
        callbacks.notify(f"skipped {format_count(counted.n_unlabelled, 'row')} without a number to predict")
    callbacks.note_coerced_cells(counted.n_coerced)
    return result


def _leave_out_texts(rows: FileRows, columns: ModelColumns) -> tuple[ModelColumns, list[str]]:
    texts = [name for name, kind in columns.kinds.items() if kind == "text"]
    kinds = {name: kind for name, kind in columns.kinds.items() if kind != "text"}
    if not kinds:
        raise DataError(
            f"{format_path(rows.files[0].path)}: a regression needs a column of numbers or labels besides the target"
        )
    return replace(columns, kinds=kinds), texts


def _judge_on_sample(
    result: RegressionResult,
    sample: DrawnRows,
    file: FileReader,
    columns: ModelColumns,
    task: FileTask,
    options: TrainingOptions,
) -> None:
    chunk = RowChunk(sample.batch(), file, 0)
    targets, kept = TargetReader(str(task.columns.target), task.columns).read(chunk)
    table = columns.read_arrow_table(kept)
    with task.callbacks.activity(f"judging {len(targets):,} rows by models that have not learned them"):
        result.scores = score_regression(result.model, table, targets, learned=True)
    if options.audit:
        with task.callbacks.activity("looking for leakage"):
            result.findings = audit_sample(table, targets)
