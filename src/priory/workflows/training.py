"""Train in one pass over files: columns by a first chunk, all rows counted; the model with its scores and audit."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

import priory
from priory.core.display_table import join_words
from priory.core.input_guard import describe_similar_labels
from priory.errors import DataError, suggest_name
from priory.sources import FileReader, FileRows, RowChunk, column_types
from priory.sources.byte_streams import format_path, peek_first, read_ahead
from priory.sources.cell_parsing import mask_missing_cells
from priory.sources.column_inference import InferredColumns, infer_columns, looks_like_data
from priory.sources.column_types import InputRows, ModelColumns, TargetReader
from priory.sources.discovery import format_names
from priory.text.mail import MAIL_FLAG_MESSAGES
from priory.workflows import model_files
from priory.workflows.explanations import list_strongest_evidence
from priory.workflows.model_files import Callbacks, FileOptions, FileTask
from priory.workflows.out_of_core import DrawnRows
from priory.workflows.row_counting import CountedRows, RowCounter, TrainingOptions, TrainingPlan, count_rows

if TYPE_CHECKING:
    from priory.evaluation.regression_scores import RegressionScores
    from priory.evaluation.scores import Scores
    from priory.export.html_report import Report
    from priory.leakage.findings import Findings
    from priory.model.ledger_output import JSONValue
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.workflows.model_files import Paths, TableOrTextClassifier


MAX_AUDIT_BYTES = 1 << 20  # of the sample: an audit takes a hundred times the memory of its rows
MIN_ROWS_FOR_CURVE = 100
CURVE_SHARES = (0.05, 0.2, 0.5, 0.8)


@dataclass
class TrainingResult:
    """A trained model with its scores, evidence and the findings of the audit.

    Attributes
    ----------
    model : NaiveBayes or TextClassifier
    n_rows : int
        The number of rows that were learned.
    families : dict of str to str
        For each column the family that explains it best.
    empty_columns : list of str
        Columns that were left out because they are empty.
    identifiers : dict of str to str
        Columns that were left out because they identify rows instead of describing them, with the reason.
    unreadable_files : tuple of str
        Files that were left out because they may not be read, where ``ReadOptions(keep_going=True)`` asks for that.
    sample, labels : rows as the library takes them and their labels, or None
        Drawn uniformly from all rows; None after a plain training.
    scores : Scores or None
        Of the sample, each row predicted by the model without it.
    findings : Findings or None
        What the leakage audit found in the sample.
    evidence : dict of str to list of (str, float)
        For each class the words or columns with the strongest evidence, in decibans, as in the report.
    source : str
        The names of the files.
    """

    model: TableOrTextClassifier
    n_rows: int
    families: dict[str, str]
    empty_columns: list[str]
    identifiers: dict[str, str] = field(default_factory=dict)
    unreadable_files: tuple[str, ...] = ()
    sample: InputRows | None = None
    labels: Array | None = None
    scores: Scores | None = None
    findings: Findings | None = None
    evidence: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    source: str = ""

    @property
    def classes(self) -> dict[str, float]:
        """The number of rows of each class, the largest first."""
        counts = zip(self.model.classes_.tolist(), self.model.class_count_.tolist(), strict=True)
        return dict(sorted(counts, key=lambda pair: -pair[1]))

    def as_dict(self) -> dict[str, JSONValue]:
        """Everything but the model and the rows, for JSON."""
        return {
            "rows": self.n_rows,
            "classes": self.classes,
            "columns": self.families,
            "left_out": [*self.empty_columns, *self.identifiers],
            "sampled": 0 if self.labels is None else len(self.labels),
            "scores": None if self.scores is None else self.scores.to_dict(),
            "evidence": self.evidence,
            "audit": None if self.findings is None else json.loads(self.findings.to_json()),
        }

    def report(self, command: str = "") -> Report:
        """The HTML report about the model on the sample; after a plain training there is none.

        ``command`` makes the report again; it is shown in the last section.
        """
        from priory.export.html_report import ReportSubject, report

        if self.sample is None or self.labels is None:
            raise DataError(
                "a plain training keeps no rows to report on; train without plain, or call report(model, X, y)"
            )
        subject = ReportSubject(self.source, str(self.model.target_), rows_learned=self.n_rows, command=command)
        curve = draw_report_curve(self.model, self.sample, self.labels) if self.n_rows == len(self.labels) else {}
        return report(
            self.model, self.sample, self.labels, self.findings, scores=self.scores, curve=curve, subject=subject
        )


def draw_report_curve(model: TableOrTextClassifier, rows: InputRows, labels: Array) -> dict[int, Scores]:
    """The learning curve on all rows that a model has learned; empty for fewer than 100 rows."""
    if len(labels) < MIN_ROWS_FOR_CURVE:
        return {}
    sizes = sorted({max(len(model.classes_), round(share * len(labels))) for share in CURVE_SHARES})
    return priory.score_by_rows(model, rows, labels, sizes)


def evaluate_on_sample(
    result: TrainingResult, sample: InputRows, labels: Array, options: TrainingOptions, callbacks: Callbacks
) -> None:
    """Derive the corrections of the model, and add scores, evidence and findings to the result."""
    pa.default_memory_pool().release_unused()  # memory of the blocks that were read
    model, result.sample, result.labels = result.model, sample, labels
    if model.calibrate:
        keeps_rows = model.statistics_.sample is not None  # with memory=0, corrections are fitted to the sample
        with callbacks.activity("fitting corrections"):
            model.refresh() if keeps_rows else model.refresh(sample, labels)
    with callbacks.activity(f"judging {len(labels):,} rows by models that have not learned them"):
        result.scores = model.evaluate(sample, labels)
    result.evidence = list_strongest_evidence(model, sample, labels)
    if options.audit:
        with callbacks.activity("looking for leakage"):
            result.findings = audit_sample(sample, labels)


def audit_sample(sample: InputRows, labels: Array) -> Findings:
    """Audit the sample, or its first rows if they are long."""
    size = sum(map(len, sample)) if isinstance(sample, list) else sample.nbytes
    n_audited = min(len(labels), max(100, len(labels) * MAX_AUDIT_BYTES // max(size, 1)))
    return priory.audit(sample[:n_audited], target=labels[:n_audited])


MAX_WEIGHTS_SHOWN = 12
MAX_ROWS_OF_RARE_CLASS, MIN_ROWS_TO_NAME_RARE_CLASSES, MAX_CLASSES_NAMED = 2, 50, 10


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
    source : str
        The names of the files.
    """

    model: BayesianLinearRegression
    n_rows: int
    families: dict[str, str]
    left_out: list[str]
    scores: RegressionScores | None = None
    findings: Findings | None = None
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
    if not model_files.is_regression(model):
        raise DataError(f"{format_path(rows.files[0].path)}: no row has a number to predict; give rows with the target")
    model.target_, model.missing_ = target, tuple(sorted(columns.missing))
    model.formats_ = tuple(columns.formats.items())
    result = RegressionResult(
        model,
        sample.rows,
        dict(columns.kinds),
        [*inferred.empty, *inferred.identifiers, *texts],
        source=model_files.describe_source(rows),
    )
    if judge and not options.plain:
        _judge_on_sample(result, sample, rows.files[0], columns, task, options)
    if texts:
        callbacks.notify(f"a regression does not read texts; left out {', '.join(map(repr, texts))}")
    if counted.n_unlabelled:
        callbacks.notify(f"skipped {model_files.format_count(counted.n_unlabelled, 'row')} without a number to predict")
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


def train(
    paths: Paths | FileTask,
    *,
    options: TrainingOptions | None = None,
    judge: bool = True,
    count: RowCounter = count_rows,
    **given: Unpack[FileOptions],
) -> TrainingResult | RegressionResult:
    """Learn a model from files of any size, in one pass.

    A single column of texts gives a `TextClassifier`, any other table a `NaiveBayes`. A target that looks like a number
    to predict (more than 20 different numbers) gives a `BayesianLinearRegression`, unless ``labels_as_text`` insists on
    classes.

    Parameters
    ----------
    paths : one path or several, or a FileTask
        CSV, TSV, JSON lines, Parquet or Arrow files, folders, mailboxes, patterns, or "-" for standard input.
    options : TrainingOptions, optional
        How the model is learned.
    judge : bool
        Whether to score and audit the model, unless the training is plain.
    count : function
        How all rows are counted; by default on threads; `priory.workflows.counted_files` counts on clusters.
    **given
        The target, which a folder with one folder for each class does not need, and how the files are read, as for
        `FileTask`.

    Returns
    -------
    TrainingResult
        The model, and what ``priory train`` prints about it; a `RegressionResult` where the target is a number.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "mail.csv")
    ...     _ = path.write_text("label,text\\nspam,win cash now\\nham,see you at noon\\nspam,a cash prize now\\n")
    ...     result = train(path, target="label", options=TrainingOptions(plain=True))
    >>> result.n_rows, result.classes, result.families
    (3, {'spam': 2.0, 'ham': 1.0}, {'text': 'text, 8 different words'})
    >>> result.model.predict(["cash"]).tolist()
    ['spam']
    """
    task, options = model_files.make_task(paths, given), options or TrainingOptions()
    rows, column_options, callbacks = task.open(), task.columns, task.callbacks
    if rows.is_documents:  # however short they are
        types = {rows.names[-1]: "text", **column_options.types}
        column_options = replace(column_options, types=types)
    target, names = column_options.find_target(rows), column_options.find_features(rows)
    first, chunks = peek_first(read_ahead(rows.read_chunks((target, *names))))
    if looks_like_data(first, (target, *names)):
        callbacks.notify("the first row looks like data rather than names of columns; if it is, use --no-header")
    if column_options.skip_unlabelled:  # a row without a label, such as a sum at the end, may hold anything
        labels = mask_missing_cells(first.batch.column(target), column_options.missing)
        first = first.keep_rows(np.asarray(labels.is_valid()))
    inferred = infer_columns(first, names, column_options)
    if not column_options.labels_as_text and column_types.looks_continuous(first, target, column_options):
        callbacks.notify(
            f"the target {target!r} has more than {column_types.MAX_NUMERIC_LABELS} different numbers, so this is a "
            "regression; to take each number for a class, use --classes"
        )
        _note_columns(inferred, callbacks)
        task = replace(task, columns=replace(column_options, target=target))
        return train_regression(rows, chunks, inferred, task, options, judge=judge, count=count)
    columns = replace(inferred.columns, reader=rows.reader)
    counted = count(TrainingPlan(target, columns, column_options, options), rows, chunks)
    model = counted.model
    if model is None or model_files.is_regression(model):
        raise DataError("there are no rows to learn from; give labelled rows")
    _check_classes(model, rows, callbacks)
    model_files.declare_class_prior(model, options.class_prior)
    model_files.set_training_columns(model, columns, target)
    result = TrainingResult(
        model,
        counted.sample.rows,
        describe_families(model),
        inferred.empty,
        inferred.identifiers,
        counted.unreadable,
        source=model_files.describe_source(rows),
    )
    if judge and not options.plain:
        sampled = model_files.read_sample_rows(counted.sample, columns, replace(column_options, target=target), rows)
        evaluate_on_sample(result, *sampled, options, callbacks)
    _note_columns(inferred, callbacks)
    _note_repairs(counted, callbacks)
    for label in sorted(column_options.label_map.keys() - counted.mapped):
        likely = suggest_name(label, map(str, model.classes_))
        callbacks.notify(f"--map-label: no row has the label {label!r}{likely}")
    return result


def describe_families(model: TableOrTextClassifier) -> dict[str, str]:
    """The name of the chosen family of each column."""
    if isinstance(model, priory.TextClassifier):
        return {str(model.feature_names_in_[0]): f"text, {model.n_tokens_:,} different words"}
    return {report.name: report.family.lower() for report in model.schema_.values()}


def _check_classes(model: TableOrTextClassifier, rows: FileRows, callbacks: Callbacks) -> None:
    if len(model.classes_) == 1:
        label = str(model.classes_[0])
        raise DataError(
            f"{format_path(rows.files[0].path)}: all rows have the label {label!r}; give rows of two or more classes"
        )
    counts = dict(zip(map(str, model.classes_), model.class_count_.tolist(), strict=True))
    if similar := describe_similar_labels(counts):
        callbacks.notify(f"{similar}; to join some, use --map-label OLD=NEW or --strip-labels")
    rare = [f"{label!r} ({count:,g})" for label, count in counts.items() if count <= MAX_ROWS_OF_RARE_CLASS]
    if rare and sum(counts.values()) >= MIN_ROWS_TO_NAME_RARE_CLASSES:
        more = f" and {len(rare) - MAX_CLASSES_NAMED} more" if len(rare) > MAX_CLASSES_NAMED else ""
        callbacks.notify(f"classes of one or two rows: {', '.join(rare[:MAX_CLASSES_NAMED])}{more}")
    if (model.class_count_ <= 1).all():
        callbacks.notify("no class has two rows; how much the values of a class vary is only a guess")


def _note_columns(inferred: InferredColumns, callbacks: Callbacks) -> None:
    """Note which columns were left out, and which parts of dates are learned."""
    for name in inferred.empty:
        callbacks.notify(f"column {name!r} is empty and was left out")
    by_form: dict[tuple[str, str], list[str]] = {}
    for name, form in inferred.columns.formats.items():
        by_form.setdefault(("dates" if name in inferred.dates else "numbers", form), []).append(name)
    for (kind, form), names in by_form.items():
        which = f"columns {format_names(names)} hold" if len(names) > 1 else f"column {names[0]!r} holds"
        callbacks.notify(f"{which} {kind} written like {form}")
    for name in inferred.codes:
        callbacks.notify(
            f"column {name!r} has leading zeros and is learned as labels; if it holds numbers, use "
            f"--type {shlex.quote(name)}=numeric"
        )
    for name, parts in inferred.dates.items():
        callbacks.notify(f"column {name!r} holds dates; learned as {join_words(parts) or 'nothing: all are the same'}")
    if inferred.identifiers:
        reasons = ", ".join(f"{name!r} ({reason})" for name, reason in inferred.identifiers.items())
        callbacks.notify(f"left out what looks like identifiers: {reasons}; to learn them, use --keep-ids")


def _note_repairs(counted: CountedRows, callbacks: Callbacks) -> None:
    """Note how many cells, rows and messages were repaired."""
    callbacks.note_coerced_cells(counted.n_coerced)
    if counted.n_skipped:
        callbacks.notify(f"padded or skipped {model_files.format_count(counted.n_skipped, 'malformed row')}")
    if counted.n_unlabelled:
        callbacks.notify(f"skipped {model_files.format_count(counted.n_unlabelled, 'row')} without a label")
    for flag, count in counted.flags.items():
        callbacks.notify(f"{model_files.format_count(count, 'message')}: {MAIL_FLAG_MESSAGES[flag]}")


def score_regression(
    model: BayesianLinearRegression, table: pa.Table, targets: Array, learned: bool
) -> RegressionScores:
    """Score a table; learned rows are left out one by one, in closed form."""
    from priory.evaluation.regression_scores import RegressionScores

    student = model.leave_one_out(table, targets) if learned else model.predictive(table)
    low, high = student.interval(model_files.INTERVAL_LEVEL)
    return RegressionScores(targets, student.location, low, high, model_files.INTERVAL_LEVEL)
