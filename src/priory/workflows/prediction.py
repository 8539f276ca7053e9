"""Predictions next to the rows they are for, and their summary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

import priory
from priory.core.statistics import find_members
from priory.errors import DataError
from priory.evaluation.decisions import NO_ANSWER, Costs, DecisionRule, LeastCost, make_thresholds
from priory.model.ledger_output import DECIBANS_PER_NAT
from priory.sources import FileRows, RowChunk, writers
from priory.sources.byte_streams import read_ahead
from priory.sources.cell_parsing import make_column, take
from priory.sources.discovery import format_names
from priory.tables.table import Table
from priory.text.documents import PackedDocuments
from priory.workflows import model_files
from priory.workflows.label_files import view_labels
from priory.workflows.model_files import Callbacks, FileOptions, FileTask

if TYPE_CHECKING:
    from priory.estimators.multi_label import MultiLabelClassifier
    from priory.learning.questions import Questions
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.workflows.model_files import FileModel, ModelOrPath, Paths, TableOrTextClassifier


MAX_CLASSES_SUMMARISED = 5
MIN_DRIFT = 0.1  # of the probability of a class, on average over all rows
MIN_DRIFT_DEVIATIONS = 4.0  # beyond what chance explains


@dataclass
class PredictionSummary:
    """Sums over predicted rows.

    Attributes
    ----------
    classes : sequence of str
    training_shares : ndarray of shape (n_classes,)
        The share of each class among the rows that the model has learned.
    n_rows, n_abstained : int
        The number of rows, and of those without an answer.
    answer_counts : ndarray of shape (n_classes,)
        The number of rows with each answer.
    total_probability : ndarray of shape (n_classes,)
        The sum of each class's probability over all rows.
    total_certainty : float
        The sum of the probability of the answer, over all rows that have one.
    total_cost : float
        The expected cost of all answers, where costs were given.
    """

    classes: Sequence[str]
    training_shares: Array
    n_rows: int = 0
    n_abstained: int = 0
    answer_counts: Array = field(init=False)
    total_probability: Array = field(init=False)
    total_certainty: float = 0.0
    total_cost: float | None = None

    def __post_init__(self) -> None:
        self.answer_counts, self.total_probability = np.zeros(len(self.classes)), np.zeros(len(self.classes))

    def add(self, probabilities: Array, answers: Array, cost: Array | None) -> None:
        """Add rows: probabilities of shape (rows, classes), answers of shape (rows,), and expected costs (rows,)."""
        has_answer = answers != NO_ANSWER
        self.n_rows += len(answers)
        self.n_abstained += int((~has_answer).sum())
        self.answer_counts += np.bincount(answers[has_answer], minlength=len(self.classes))
        self.total_probability += probabilities.sum(axis=0)
        self.total_certainty += float(probabilities[has_answer, answers[has_answer]].sum())
        if cost is not None:
            self.total_cost = (self.total_cost or 0.0) + float(cost.sum())

    @property
    def mean_certainty(self) -> float:
        """The probability of the answer, on average over the rows that have one; NaN if none has."""
        n_answered = self.n_rows - self.n_abstained
        return self.total_certainty / n_answered if n_answered else float("nan")

    def find_drift(self) -> list[tuple[str, float, float]]:
        """The classes whose share has changed since training: their share now, and in training.

        The share now is the mean probability. A change counts if it exceeds a tenth and four standard deviations.
        """
        if not self.n_rows:
            return []
        now, then = self.total_probability / self.n_rows, self.training_shares
        chance = np.sqrt(then * (1 - then) / self.n_rows)
        differs = np.abs(now - then) > np.maximum(MIN_DRIFT, MIN_DRIFT_DEVIATIONS * chance)
        order = np.argsort(-np.abs(now - then), kind="stable")
        return [(self.classes[c], float(now[c]), float(then[c])) for c in order if differs[c]]

    def describe(self) -> list[str]:
        """The summary in one line, and one more if there is drift."""
        order = np.argsort(-self.answer_counts, kind="stable")
        answered = [c for c in order if self.answer_counts[c]]
        shares = [f"{self.classes[c]} {self.answer_counts[c] / self.n_rows:.1%}" for c in answered]
        more = len(shares) - MAX_CLASSES_SUMMARISED
        listed = shares[:MAX_CLASSES_SUMMARISED] + ([f"{more} more classes"] if more > 0 else [])
        parts = [f"{model_files.format_count(self.n_rows, 'row')}: {', '.join(listed) or 'no answer'}"]
        if answered:
            parts.append(f"mean probability of the answer {self.mean_certainty:.1%}")
        if self.n_abstained:
            parts.append(f"{self.n_abstained:,} without an answer ({self.n_abstained / self.n_rows:.1%})")
        if self.total_cost is not None:
            parts.append(f"expected cost {self.total_cost:,.2f}")
        drift = [f"{label} {now:.1%} (in training {then:.1%})" for label, now, then in self.find_drift()]
        lines = [f"drift: the classes are not as in training: {', '.join(drift[:MAX_CLASSES_SUMMARISED])}"]
        return ["; ".join(parts), *(lines if drift else [])]


MAX_CERTAINTY_DECIBANS = 9999.9  # JSON has no infinity
LABEL, PROBABILITY, CERTAINTY, EXPECTED_COST = "label", "probability", "certainty", "expected_cost"
LABELS = "labels"  # of a row that may have several


class PredictedRows(ABC):
    """Rows of files with added columns, read and predicted a batch at a time; one can iterate over them once."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.predict_chunks(numbers=True)

    @abstractmethod
    def predict_chunks(self, numbers: bool) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches; with ``numbers``, columns that the model reads as numbers are numbers."""

    @abstractmethod
    def describe(self) -> list[str]:
        """The predictions in a line, or two."""

    def to_table(self) -> pa.Table:
        """All rows as one Arrow table."""
        return pa.Table.from_batches(list(self))

    def write(self, path: str | None, file_format: str | None = None, *, safe: bool = True) -> None:
        """Write all rows to a file, in the format of its suffix, or to standard output where ``path`` is None.

        With ``safe`` a cell of a CSV that a spreadsheet would take for a formula gets an apostrophe in front.
        """
        file_format = writers.find_output_format(path, file_format)
        writers.write_batches(
            self.predict_chunks(numbers=file_format not in writers.TEXT_FORMATS), path, file_format, safe
        )


class Predictions(PredictedRows):
    """Rows of files with added columns: label, probability, certainty, and others on request.

    The rows are read and predicted a batch at a time while one iterates over the Arrow batches, which is possible
    once. Where a file already has a column of one of these names, the new one is called ``predicted_label`` and so on.
    Probability and certainty belong to the label, or to the most probable class where there is no label. Certainty is
    the log-odds against all other classes together, in decibans (10 * log10 of the odds). Columns that the model reads
    as numbers are numbers.

    Parameters
    ----------
    rule : DecisionRule
        How the label is chosen.
    probabilities : bool
        Add a column with the probability of each class.
    n_best : int
        Add this many labels in all, the most probable first, with their probabilities.

    Attributes
    ----------
    n_unknown_labels : int
        The number of cells so far that hold a label the model has never seen.
    summary : PredictionSummary
        Totals over the rows so far.
    """

    def __init__(
        self,
        model: TableOrTextClassifier,
        rows: FileRows,
        callbacks: Callbacks,
        rule: DecisionRule,
        probabilities: bool,
        n_best: int,
    ) -> None:
        self._model, self._rows, self._callbacks = model, rows, callbacks
        self._rule, self._probabilities, self._n_best = rule, probabilities, n_best
        self._columns = model_files.get_model_columns(model)
        self._classes = list_class_names(model)
        self.n_unknown_labels = 0
        self.summary = PredictionSummary(self._classes, model.class_count_ / model.class_count_.sum())

    def predict_chunks(self, numbers: bool) -> Iterator[pa.RecordBatch]:
        # two threads work ahead: one reads the file, the other converts its cells
        chunks = read_ahead(self._rows.read_chunks(self._rows.names))
        for chunk, rows in read_ahead((chunk, self._columns.read(chunk)) for chunk in chunks):
            yield self._predict_chunk(chunk, rows, numbers)
        if self.n_unknown_labels:
            count = model_files.format_count(self.n_unknown_labels, "cell")
            self._callbacks.notify(
                f"{count} with a label that the model has never seen; it says nothing about the class"
            )

    def describe(self) -> list[str]:
        """The summary in one line, and one more if the classes are not as in training."""
        return self.summary.describe()

    def _predict_chunk(self, chunk: RowChunk, rows: Table | PackedDocuments, numbers: bool) -> pa.RecordBatch:
        self.n_unknown_labels += count_unknown_labels(self._model, rows)
        log_proba = self._model.predict_log_proba(rows)  # shape (rows, classes)
        batch = self._convert_numbers(chunk.batch, rows) if numbers and isinstance(rows, Table) else chunk.batch
        return writers.append_columns(batch, self._make_columns(log_proba))

    def _convert_numbers(self, batch: pa.RecordBatch, rows: Table) -> pa.RecordBatch:
        """The batch with numbers, and null for missing cells, in the columns that the model reads as numbers."""
        numbers = {
            name: pa.array(column.numbers, from_pandas=True)
            for name, column in zip(rows.names, rows.columns, strict=True)
            if column.numbers is not None
        }
        return writers.replace_text_columns(batch, numbers)

    def _make_columns(self, log_proba: Array) -> dict[str, pa.Array]:
        """The columns that are added, by name."""
        probabilities = np.exp(log_proba)
        answers, cost = self._rule.choose(probabilities)
        self.summary.add(probabilities, answers, cost)
        # (rows,): the class that probability and certainty belong to
        shown = np.where(answers == NO_ANSWER, log_proba.argmax(axis=1), answers)
        added = {
            LABEL: self._name_classes(answers),
            PROBABILITY: make_column(probabilities[np.arange(len(shown)), shown].round(6)),
            CERTAINTY: make_column(compute_certainty(log_proba, shown).round(1)),
        }
        if cost is not None:
            added[EXPECTED_COST] = make_column(cost.round(6))
        if self._n_best > 1:
            added |= self._rank_other_classes(probabilities, shown)
        if self._probabilities:
            for label, column in zip(self._classes, probabilities.T, strict=True):
                added[writers.find_free_name(f"{PROBABILITY}_{label}", tuple(added))] = make_column(column.round(6))
        return added

    def _rank_other_classes(self, probabilities: Array, shown: Array) -> dict[str, pa.Array]:
        """The most probable classes besides the one that is shown."""
        others = probabilities.copy()
        others[np.arange(len(shown)), shown] = -1.0  # behind all others
        ranked = np.argsort(-others, axis=1, kind="stable")[:, : min(self._n_best, len(self._classes)) - 1]
        added = {}
        for place, classes in enumerate(ranked.T, start=2):
            added[f"{LABEL}_{place}"] = self._name_classes(classes)
            added[f"{PROBABILITY}_{place}"] = make_column(probabilities[np.arange(len(classes)), classes].round(6))
        return added

    def _name_classes(self, answers: Array) -> pa.StringArray:
        """The names of classes, null for `NO_ANSWER`."""
        names = pa.array([*self._classes, None], pa.string())
        return take(names, make_column(np.where(answers == NO_ANSWER, len(self._classes), answers)))


def predict(
    model: ModelOrPath,
    paths: Paths | FileTask,
    *,
    threshold: float | Literal["f1"] | Mapping[str, float] | None = None,
    costs: Costs | None = None,
    top: int = 1,
    probabilities: bool = False,
    **given: Unpack[FileOptions],
) -> Predictions | NumberPredictions | LabelPredictions:
    """Label the rows of files.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several, or a FileTask
        Files, folders, patterns, or "-" for standard input. A model of texts also takes files that are texts, such as
        ``note.txt``, and folders of them: each is a row with the columns path and text.
    threshold : float, or dict of class to float, optional
        Leave the label empty where its probability is below this. With thresholds by class, the label is the class
        that exceeds its threshold by the largest factor, or else the most probable class without a threshold. Where
        a row may have several labels, each from this probability on is given (.5 by default); "f1" chooses it.
    costs : Costs, optional
        What mistakes cost; the label is the answer of least expected cost, or empty where giving none costs less.
    top : int
        How many labels to give, the most probable first: label_2, probability_2 and so on.
    probabilities : bool
        Whether to add the probability of every class, as probability_CLASS.
    **given
        How the files are read, as for `FileTask`.

    Returns
    -------
    Predictions
        The rows with their labels, predicted while they are iterated over or written; `NumberPredictions` where the
        model predicts a number, and `LabelPredictions` where a row may have several labels.
    """
    task = model_files.make_task(paths, given)
    trained = model_files.load_model(model, task.key)
    if model_files.is_regression(trained):
        if threshold is not None or costs is not None or top > 1 or probabilities:
            raise DataError(
                "the model predicts a number; costs, thresholds and probabilities are for models of classes"
            )
        return NumberPredictions(trained, open_rows(trained, task))
    rows = open_rows(trained, task)
    if hasattr(trained, "separator_"):
        if costs is not None or top > 1 or isinstance(threshold, Mapping):
            raise DataError(
                "the model has several labels for each row: give one threshold, or 'f1', no costs and no top"
            )
        view = view_labels(trained, 0.5 if threshold is None else threshold)
        return LabelPredictions(view, rows, probabilities)
    if threshold == "f1":
        raise DataError("the threshold 'f1' is for models with several labels for each row")
    rule = _make_rule(trained, threshold, costs, task.callbacks)
    return Predictions(trained, rows, task.callbacks, rule, probabilities, top)


def ask(model: ModelOrPath, paths: Paths | FileTask, *, n: int = 20, **given: Unpack[FileOptions]) -> AskedRows:
    """Choose rows of files to label next: see `priory.TextClassifier.ask`.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several, or a FileTask
        Rows without labels, which have to fit into memory.
    n : int
        How many rows to choose.
    **given
        How the files are read, as for `FileTask`.
    """
    task = model_files.make_task(paths, given)
    trained = model_files.load_classifier(model, task.key)
    columns, rows = model_files.get_model_columns(trained), open_rows(trained, task)
    chunks = list(rows.read_chunks(rows.names))
    parts = [columns.read_input_rows(chunk) for chunk in chunks]
    texts = [text for part in parts if isinstance(part, list) for text in part]
    with task.callbacks.activity("choosing rows"):
        found = trained.ask(texts or pa.concat_tables([part for part in parts if isinstance(part, pa.Table)]), n)
    batch = pa.concat_batches([chunk.batch for chunk in chunks]).take(pa.array(found.rows))
    added = {"row": make_column(found.rows + 1), "information": make_column(found.information.round(4))}
    return AskedRows(writers.append_columns(batch, added), found)


@dataclass(frozen=True)
class AskedRows(PredictedRows):
    """Rows to label, with their number in the files and the information of their label in nats; and what it gains."""

    batch: pa.RecordBatch
    questions: Questions

    def predict_chunks(self, numbers: bool) -> Iterator[pa.RecordBatch]:
        yield self.batch

    def describe(self) -> list[str]:
        """What to expect of the labels, in one line."""
        return [str(self.questions)]


def open_rows(model: FileModel, task: FileTask) -> FileRows:
    """The rows to predict; columns that the model does not use are noted."""
    columns = model_files.get_model_columns(model)
    rows = task.open_for(columns)
    model_files.find_needed_columns(rows, columns)
    used = {*columns.find_sources(rows.names), getattr(model, "target_", "")}
    extra = [name for name in rows.names if name not in used]
    if extra and not rows.is_documents:
        task.callbacks.notify(f"the model does not use the columns {format_names(extra)}")
    return rows


def _make_rule(
    model: TableOrTextClassifier,
    threshold: float | Mapping[str, float] | None,
    costs: Costs | None,
    callbacks: Callbacks,
) -> DecisionRule:
    classes = list_class_names(model)
    if costs is None:
        return make_thresholds(threshold, classes)
    if threshold is not None:
        raise DataError("costs and thresholds exclude each other; give one of them")
    if costs.positive is None and (costs.false_negative is not None or costs.false_positive is not None):
        positive = classes[costs.find_positive(classes, model.class_count_)]
        callbacks.notify(f"the positive class is {positive!r}, the rarer one in training")
    return LeastCost(costs.tabulate(classes, model.class_count_))


def list_class_names(model: TableOrTextClassifier) -> list[str]:
    """The classes of a model as they are written to files."""
    return [str(label) for label in model.classes_.tolist()]


def count_unknown_labels(model: TableOrTextClassifier, rows: Table | PackedDocuments) -> int:
    """The number of cells that hold a label the model has never seen."""
    if not isinstance(model, priory.NaiveBayes) or not isinstance(rows, Table):
        return 0
    count, columns = 0, dict(zip(rows.names, rows.columns, strict=True))
    for name, known in model.categories_.items():
        labels = columns[name].labels
        if labels is not None:
            codes, values = labels
            count += int((~find_members(values, known))[codes[codes >= 0]].sum())
    return count


def compute_certainty(log_proba: Array, best: Array) -> Array:
    """The log-odds of the best class against all others together, in decibans; always finite.

    ``log_proba`` has shape (rows, classes), ``best`` and the result (rows,).
    """
    own = np.arange(len(best)), best
    others = log_proba.copy()
    others[own] = -np.inf
    with np.errstate(divide="ignore"):
        against = np.logaddexp.reduce(others, axis=1)
    decibans = np.nan_to_num((log_proba[own] - against) * DECIBANS_PER_NAT, posinf=MAX_CERTAINTY_DECIBANS)
    return np.clip(decibans, -MAX_CERTAINTY_DECIBANS, MAX_CERTAINTY_DECIBANS)


class LabelPredictions(PredictedRows):
    """Rows of files with their labels in one column and, on request, the probability of every label."""

    def __init__(self, view: MultiLabelClassifier, rows: FileRows, probabilities: bool) -> None:
        self._view, self._rows, self._probabilities = view, rows, probabilities
        self._columns = model_files.get_model_columns(view.estimator_)
        self.n_rows = self.n_labels = 0

    def predict_chunks(self, numbers: bool) -> Iterator[pa.RecordBatch]:
        names, thresholds, separator = self._view.classes_.tolist(), self._view.thresholds_, self._view.separator
        for chunk in self._rows.read_chunks(self._rows.names):
            p = self._view.predict_proba(self._columns.read_input_rows(chunk))
            given = p >= thresholds
            cells = [separator.join(n for n, g in zip(names, row, strict=True) if g) for row in given]
            added = {LABELS: pa.array(cells, pa.string())}
            for name, column in zip(names, p.T, strict=True) if self._probabilities else ():
                added[f"{PROBABILITY}_{name}"] = make_column(column.round(6))
            self.n_rows, self.n_labels = self.n_rows + len(p), self.n_labels + int(given.sum())
            yield writers.append_columns(chunk.batch, added)

    def describe(self) -> list[str]:
        """The predictions in one line."""
        rows = model_files.format_count(self.n_rows, "row")
        return [f"{rows}: {self.n_labels / max(self.n_rows, 1):.2f} labels for a row, on average"]


PREDICTION, LOW, HIGH = "prediction", "low", "high"


class NumberPredictions(PredictedRows):
    """Rows of files with three added columns: prediction, low and high.

    The rows are read and predicted a batch at a time while one iterates over the Arrow batches, which is possible
    once. The number lies between low and high with a probability of 90 %.

    Attributes
    ----------
    n_rows : int
        The number of rows so far.
    """

    def __init__(self, model: BayesianLinearRegression, rows: FileRows) -> None:
        self._model, self._rows, self._columns = model, rows, model_files.get_model_columns(model)
        self.n_rows, self._total = 0, 0.0

    def describe(self) -> list[str]:
        """The predictions in one line."""
        mean = f": mean prediction {self._total / self.n_rows:.6g}" if self.n_rows else ""
        return [f"{model_files.format_count(self.n_rows, 'row')}{mean}"]

    def predict_chunks(self, numbers: bool) -> Iterator[pa.RecordBatch]:
        for chunk in read_ahead(self._rows.read_chunks(self._rows.names)):
            table, batch = self._columns.read_arrow_table(chunk), chunk.batch
            student = self._model.predictive(table)
            low, high = student.interval(model_files.INTERVAL_LEVEL)
            if numbers:
                batch = writers.replace_text_columns(batch, {n: table[n].combine_chunks() for n in table.column_names})
            added = {PREDICTION: student.location, LOW: low, HIGH: high}
            batch = writers.append_columns(batch, {name: pa.array(round_significantly(v)) for name, v in added.items()})
            self.n_rows, self._total = self.n_rows + batch.num_rows, self._total + float(student.location.sum())
            yield batch


def round_significantly(values: Array, digits: int = 6) -> Array:
    """Round numbers to some significant digits."""
    with np.errstate(divide="ignore"):
        magnitude = np.floor(np.log10(np.abs(np.where(values == 0, 1.0, values))))
    scale = 10.0 ** (digits - 1 - magnitude)
    return np.where(np.isfinite(scale * values), np.round(values * scale) / scale, values)
