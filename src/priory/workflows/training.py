"""Training in one pass: the columns by a first chunk, all rows counted on threads, a sample to correct the model by.

Texts are counted before there is a model: importing what models need takes as long as counting half a gigabyte, and
is done on another thread at the same time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from priory.bag_of_words.tokenizer import Tokenizer
from priory.core.typing import Array
from priory.errors import DataError
from priory.models.explanation import DECIBANS_PER_NAT, Ledgers
from priory.sources import FileRows, ReadOptions, RowChunk
from priory.sources.byte_streams import format_path
from priory.sources.column_types import (
    ColumnOptions,
    InputRows,
    LabelReader,
    ModelColumns,
    declare_column_families,
    infer_columns,
)
from priory.sources.discovery import format_names
from priory.sources.mail import MAIL_FLAG_MESSAGES
from priory.sources.prefetch import peek_first, read_ahead
from priory.workflows.callbacks import SILENT, Callbacks, format_count
from priory.workflows.model_files import choose_columns, open_paths, read_sample_rows, set_training_columns
from priory.workflows.out_of_core import (
    DEFAULT_SAMPLE_ROWS,
    LabelledBatch,
    RowSample,
    TextWorker,
    add_worker_statistics,
    count_batches,
    learn_batches,
    set_statistics,
)

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores
    from priory.export.report import Report
    from priory.leakage.findings import Findings
    from priory.workflows.explanation import JSONValue
    from priory.workflows.model_files import Paths, TableOrTextClassifier

MAX_AUDIT_BYTES = 1 << 20  # of the sample: an audit takes a hundred times the memory of its rows
ROWS_TO_FIND_EVIDENCE = 500  # rows of the sample over which the evidence of columns is averaged
MAX_EVIDENCE_PER_CLASS = 6
MAX_EVIDENCE_DECIBANS = 999.0


@dataclass(frozen=True)
class TrainingOptions:
    """How a model is learned.

    Parameters
    ----------
    plain : bool
        Learn the statistics only: no corrections, no scores, no audit.
    audit : bool
        Look for leakage in the sample.
    refine : bool, optional
        Correct naive Bayes with a logistic regression. By default tables are corrected where that helps, texts are not.
    average : bool
        Average over all sets of columns or words, so that each counts as much as it matters.
    alpha : float, optional
        Virtual examples of each value or word. By default 1 for texts, and for tables the choice of each family.
    text_model : "binary", "multinomial", "bernoulli", "poisson" or "complement", optional
        How words count, where the only column is a text; "binary" by default.
    ngrams : int
        The longest run of words that counts as one token, where the only column is a text.
    max_tokens : int, optional
        The number of different words to keep while learning, where the only column is a text.
    sample_rows : int
        The number of rows, drawn uniformly from all, that the model is corrected, scored and audited with.
    """

    plain: bool = False
    audit: bool = True
    refine: bool | None = None
    average: bool = False
    alpha: float | None = None
    text_model: str | None = None
    ngrams: int = 1
    max_tokens: int | None = None
    sample_rows: int = DEFAULT_SAMPLE_ROWS


@dataclass
class TrainingResult:
    """A trained model and what there is to know about it.

    Attributes
    ----------
    model : NaiveBayes or TextClassifier
    n_rows : int
        The number of rows that were learned.
    families : dict of str to str
        For each column the family that explains it best.
    empty_columns : list of str
        Columns that were left out because they are empty.
    unreadable_files : list of str
        Files that were left out because they may not be read, where ``ReadOptions(keep_going=True)`` asks for that.
    sample, labels : rows as the library takes them and their labels, or None
        Drawn uniformly from all rows; None after a plain training.
    scores : Scores or None
        Of the sample, each row predicted by the model without it.
    findings : Findings or None
        What the leakage audit found in the sample.
    evidence : dict of str to list of (str, float)
        For each class the words or columns that speak most for it, and their weight in decibans.
    """

    model: TableOrTextClassifier
    n_rows: int
    families: dict[str, str]
    empty_columns: list[str]
    unreadable_files: list[str]
    sample: InputRows | None = None
    labels: Array | None = None
    scores: Scores | None = None
    findings: Findings | None = None
    evidence: dict[str, list[tuple[str, float]]] = field(default_factory=dict)

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
            "left_out": self.empty_columns,
            "sampled": 0 if self.labels is None else len(self.labels),
            "scores": None if self.scores is None else self.scores.to_dict(),
            "evidence": self.evidence,
            "audit": None if self.findings is None else json.loads(self.findings.to_json()),
        }

    def report(self) -> Report:
        """The HTML report about the model on the sample."""
        import priory

        assert self.labels is not None
        return priory.report(self.model, self.sample, self.labels, findings=self.findings)


def train(
    paths: Paths,
    *,
    target: str | None = None,
    options: TrainingOptions | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    callbacks: Callbacks = SILENT,
) -> TrainingResult:
    """Learn a model from files of any size, in one pass.

    A single column of texts gives a `TextClassifier`, any other table a `NaiveBayes`.

    Parameters
    ----------
    paths : one path or several
        CSV, TSV, JSON lines, Parquet or Arrow files, folders, mailboxes, patterns, or "-" for standard input.
    target : str, optional
        The column to predict; a folder with one folder for each class needs none.
    options : TrainingOptions, optional
        How the model is learned.
    columns : ColumnOptions, optional
        What the columns are, as far as it should not be inferred from the first block of rows.
    read : ReadOptions, optional
        How the files are read.
    callbacks : Callbacks

    Returns
    -------
    TrainingResult
        The model, and what ``priory train`` prints about it.

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
    rows = open_paths(paths, read, callbacks)
    return train_on_rows(rows, choose_columns(columns, target), options or TrainingOptions(), callbacks)


def train_on_rows(
    rows: FileRows, column_options: ColumnOptions, options: TrainingOptions, callbacks: Callbacks
) -> TrainingResult:
    """Learn a model from files that are open already."""
    target, names = column_options.find_target(rows), column_options.find_features(rows)
    first, chunks = peek_first(read_ahead(rows.read_chunks((target, *names))))
    columns, empty = infer_columns(first, names, column_options)
    labels, sample = LabelReader(target, column_options), RowSample(options.sample_rows)
    model = _learn_model(_read_labelled_batches(chunks, columns, labels, sample), columns, column_options, options)
    _check_classes(model, rows, callbacks)
    set_training_columns(model, columns, target)
    unreadable = [path for file in rows.files for path in getattr(file, "unreadable", [])]
    result = TrainingResult(model, sample.rows, describe_families(model), empty, unreadable)
    if not options.plain:
        sampled = read_sample_rows(sample, columns, replace(column_options, target=target), rows)
        _evaluate_model(result, *sampled, options, callbacks)
    _note_repairs(rows, labels, empty, callbacks)
    return result


def _read_labelled_batches(
    chunks: Iterator[RowChunk], columns: ModelColumns, labels: LabelReader, sample: RowSample
) -> Iterator[LabelledBatch]:
    """Chunks as batches to be learned; rows that pass by are drawn into the sample."""
    for chunk in chunks:
        group, labelled = labels.read(chunk)
        if len(group):
            sample.add(labelled.batch)
            yield LabelledBatch(columns.read(labelled), group, labels.names)


def _learn_model(
    batches: Iterator[LabelledBatch], columns: ModelColumns, column_options: ColumnOptions, options: TrainingOptions
) -> TableOrTextClassifier:
    """A model of all rows."""
    if not columns.is_one_text:
        model = _make_model(columns, column_options, options)
        learn_batches(model, batches)
        return model
    first, batches = peek_first(batches)
    tokenizer = Tokenizer(ngram_range=(1, options.ngrams), cjk=True)
    make_worker = partial(TextWorker, tokenizer, _counts_words_once(options), options.max_tokens)
    importing = threading.Thread(target=import_module, args=("priory.estimators.text_classifier",))
    importing.start()
    try:
        workers = count_batches(batches, make_worker)
    finally:
        importing.join()  # before anything else imports: two threads at once would find half-initialised modules
    model = _make_model(columns, column_options, options)
    set_statistics(model, first.rows, add_worker_statistics(workers))
    return model


def _counts_words_once(options: TrainingOptions) -> bool:
    """Whether a word counts once for each text; for the default model this is known without importing the others."""
    if options.text_model in (None, "binary"):
        return True
    from priory.bag_of_words.models import BAG_MODELS

    return BAG_MODELS[options.text_model].binary


def _make_model(
    columns: ModelColumns, column_options: ColumnOptions, options: TrainingOptions
) -> TableOrTextClassifier:
    """A model for these columns, its families declared so that every chunk is read alike."""
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier

    if columns.is_one_text:
        return TextClassifier(
            options.text_model or "binary",
            average=options.average,
            alpha=1.0 if options.alpha is None else options.alpha,
            ngram_range=(1, options.ngrams),
            cjk=True,
            max_tokens=options.max_tokens,
            calibrate=False,
            refine=bool(options.refine),
        )
    for name, value in (("model", options.text_model), ("max-words", options.max_tokens)):
        if value is not None:
            raise DataError(
                f"--{name} is only for a single column of texts; the columns are {format_names(columns.names)}"
            )
    return NaiveBayes(
        declare_column_families(columns, column_options),
        average=options.average,
        alpha=options.alpha,
        calibrate=False,
        refine="auto" if options.refine is None else options.refine,
        structure="naive" if options.refine is False else "auto",
    )


def describe_families(model: TableOrTextClassifier) -> dict[str, str]:
    """For each column the family that explains it best."""
    from priory.estimators.text_classifier import TextClassifier

    if isinstance(model, TextClassifier):
        return {str(model.feature_names_in_[0]): f"text, {model.n_tokens_:,} different words"}
    return {report.name: report.family.lower() for report in model.schema_.values()}


def _check_classes(model: TableOrTextClassifier, rows: FileRows, callbacks: Callbacks) -> None:
    if len(model.classes_) == 1:
        label = str(model.classes_[0])
        raise DataError(
            f"{format_path(rows.files[0].path)}: all rows have the label {label!r}; give rows of two or more classes"
        )
    if (model.class_count_ <= 1).all():
        callbacks.notify("no class has two rows; how much the values of a class vary is only a guess")


def _evaluate_model(
    result: TrainingResult, sample: InputRows, labels: Array, options: TrainingOptions, callbacks: Callbacks
) -> None:
    """Correct the model by the sample, and add scores, evidence and findings to the result."""
    pa.default_memory_pool().release_unused()  # what reading took
    model, result.sample, result.labels = result.model, sample, labels
    with callbacks.activity(f"leaving out each of {len(labels):,} rows in turn"):
        model.set_params(calibrate="loo").refresh(sample, labels)
        result.scores = model.evaluate() if hasattr(model, "corrections_") else model.evaluate(sample, labels)
    result.evidence = find_strongest_evidence(model, sample, labels)
    if options.audit:
        with callbacks.activity("looking for leakage"):
            result.findings = _audit_sample(sample, labels)


def _audit_sample(sample: InputRows, labels: Array) -> Findings:
    """What the audit finds in the sample, or in the first part of it if its rows are long."""
    import priory

    size = sum(map(len, sample)) if isinstance(sample, list) else sample.nbytes
    n_audited = min(len(labels), max(100, len(labels) * MAX_AUDIT_BYTES // max(size, 1)))
    return priory.audit(take_first_rows(sample, n_audited), target=labels[:n_audited])


def take_first_rows(rows: InputRows, count: int) -> InputRows:
    return rows[:count] if isinstance(rows, list) else rows.slice(0, count)


def find_strongest_evidence(
    model: TableOrTextClassifier, rows: InputRows, labels: Array
) -> dict[str, list[tuple[str, float]]]:
    """For each class the words that speak most for it, or the columns on average over the rows of the class."""
    from priory.estimators.text_classifier import TextClassifier

    if isinstance(model, TextClassifier):
        return {
            str(label): [(e.token, round(e.decibans, 1)) for e in model.evidence(label, MAX_EVIDENCE_PER_CLASS)]
            for label in model.classes_
        }
    return _average_column_evidence(model.explain(take_first_rows(rows, ROWS_TO_FIND_EVIDENCE)), labels)


def _average_column_evidence(ledgers: Ledgers, labels: Array) -> dict[str, list[tuple[str, float]]]:
    """For each class its columns by their weight, on average over its rows, against the mean of the other classes."""
    names, classes = [line.name for line in ledgers[0].lines], ledgers[0].classes
    terms = np.array([[line.log_likelihood for line in ledger.lines] for ledger in ledgers])  # (rows, columns, classes)
    found = {}
    for c, label in enumerate(classes):
        own = terms[labels[: len(terms)] == label]
        if len(own):
            others = (own.sum(axis=2) - own[:, :, c]) / (len(classes) - 1)
            decibans = (own[:, :, c] - others).mean(axis=0) * DECIBANS_PER_NAT
            weight = np.nan_to_num(decibans, posinf=MAX_EVIDENCE_DECIBANS, neginf=-MAX_EVIDENCE_DECIBANS)
            best = np.argsort(-weight, kind="stable")[:MAX_EVIDENCE_PER_CLASS]
            found[str(label)] = [(names[j], round(float(weight[j]), 1)) for j in best if weight[j] > 0]
    return found


def _note_repairs(rows: FileRows, labels: LabelReader, empty_columns: list[str], callbacks: Callbacks) -> None:
    """Count in notes what was left out or repaired."""
    for name in empty_columns:
        callbacks.notify(f"column {name!r} is empty and was left out")
    skipped = sum(getattr(file, "skipped", 0) for file in rows.files)
    if skipped:
        callbacks.notify(f"padded or skipped {format_count(skipped, 'malformed row')}")
    if labels.n_unlabelled:
        callbacks.notify(f"skipped {format_count(labels.n_unlabelled, 'row')} without a label")
    for file in rows.files:
        for flag, count in getattr(file, "flags", {}).items():
            callbacks.notify(f"{count:,} of the messages {MAIL_FLAG_MESSAGES[flag]}")
