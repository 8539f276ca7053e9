"""Training in one pass: the columns by a first chunk, all rows counted on threads, a sample to correct the model by.

Texts are counted before there is a model: importing what models need takes as long as counting half a gigabyte, and
is done on another thread at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from priory.bag_of_words.tokenizer import Tokenizer
from priory.core.display_table import join_words
from priory.errors import DataError
from priory.models.row_sample import choose_text_memory
from priory.sources import FileRows, ReadOptions, RowChunk
from priory.sources.byte_streams import format_path
from priory.sources.column_inference import InferredColumns, infer_columns
from priory.sources.column_types import (
    ColumnOptions,
    ModelColumns,
    declare_column_families,
    find_binary_columns,
    find_declared_family,
)
from priory.sources.discovery import format_names
from priory.sources.label_reading import MAX_NUMERIC_LABELS, LabelReader, looks_continuous
from priory.sources.mail import MAIL_FLAG_MESSAGES
from priory.sources.prefetch import peek_first, read_ahead
from priory.workflows.callbacks import SILENT, Callbacks, format_count, note_coerced_cells
from priory.workflows.class_weights import declare_class_prior
from priory.workflows.model_files import (
    choose_columns,
    describe_source,
    open_paths,
    read_sample_rows,
    set_training_columns,
)
from priory.workflows.out_of_core import (
    DrawnRows,
    LabelledBatch,
    TextWorker,
    add_worker_statistics,
    count_batches,
    learn_batches,
    set_statistics,
)
from priory.workflows.regression_training import RegressionResult, train_regression
from priory.workflows.training_results import TrainingOptions, TrainingResult, evaluate_on_sample

if TYPE_CHECKING:
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.workflows.model_files import Paths, TableOrTextClassifier


def train(
    paths: Paths,
    *,
    target: str | None = None,
    options: TrainingOptions | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    callbacks: Callbacks = SILENT,
) -> TrainingResult | RegressionResult:
    """Learn a model from files of any size, in one pass.

    A single column of texts gives a `TextClassifier`, any other table a `NaiveBayes`. A target that looks like a number
    to predict (more than 20 different numbers) gives a `BayesianLinearRegression`, unless ``labels_as_text`` insists on
    classes.

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
    rows = open_paths(paths, read, callbacks)
    return train_on_rows(rows, choose_columns(columns, target), options or TrainingOptions(), callbacks)


def train_on_rows(
    rows: FileRows,
    column_options: ColumnOptions,
    options: TrainingOptions,
    callbacks: Callbacks,
    *,
    judge: bool = True,
) -> TrainingResult | RegressionResult:
    """Learn a model from files that are open already; ``judge`` it too, unless the training is plain."""
    target, names = column_options.find_target(rows), column_options.find_features(rows)
    first, chunks = peek_first(read_ahead(rows.read_chunks((target, *names))))
    inferred = infer_columns(first, names, column_options)
    if not column_options.labels_as_text and not options.textbook and looks_continuous(first, target, column_options):
        _note_regression(target, callbacks)
        _note_columns(inferred, callbacks)
        chosen = replace(column_options, target=target)
        return train_regression(rows, chunks, inferred, chosen, options, callbacks, judge=judge)
    columns = inferred.columns
    labels, sample = LabelReader(target, column_options), DrawnRows(options.sample_rows)
    batches = _read_labelled_batches(chunks, columns, labels, sample)
    if options.textbook:
        model: TableOrTextClassifier = _make_textbook_model(columns, column_options, options, first)
        learn_batches(model, batches)
    else:
        model = _learn_model(batches, columns, column_options, options)
    n_coerced = dict(columns.n_coerced)
    _check_classes(model, rows, callbacks)
    declare_class_prior(model, options.class_prior, options.class_weight)
    set_training_columns(model, columns, target)
    unreadable = [path for file in rows.files for path in getattr(file, "unreadable", [])]
    result = TrainingResult(
        model,
        sample.rows,
        describe_families(model),
        inferred.empty,
        unreadable,
        inferred.identifiers,
        source=describe_source(rows),
    )
    if judge and not options.plain:
        sampled = read_sample_rows(sample, columns, replace(column_options, target=target), rows)
        evaluate_on_sample(result, *sampled, options, callbacks)
    _note_columns(inferred, callbacks)
    _note_repairs(rows, labels, n_coerced, callbacks)
    return result


def _read_labelled_batches(
    chunks: Iterator[RowChunk], columns: ModelColumns, labels: LabelReader, sample: DrawnRows
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
    memory = 0 if options.plain else choose_text_memory(options.memory, _choose_refinement(options))
    make_worker = partial(TextWorker, tokenizer, _counts_words_once(options), options.max_tokens, memory)
    importing = threading.Thread(target=import_module, args=("priory.estimators.text_classifier",))
    importing.start()
    try:
        workers = count_batches(batches, make_worker)
    finally:
        importing.join()  # before anything else imports: two threads at once would find half-initialised modules
    model = _make_model(columns, column_options, options)
    set_statistics(model, first.rows, add_worker_statistics(workers))
    return model


def _choose_refinement(options: TrainingOptions) -> bool | Literal["auto"]:
    """As declared, or as far as it helps."""
    return "auto" if options.refine is None else options.refine


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
            calibrate=False if options.plain else "loo",
            refine=_choose_refinement(options),
            memory=options.memory,
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
        calibrate=False if options.plain else "loo",
        memory=options.memory,
        refine=_choose_refinement(options),
        structure="naive" if options.refine is False else "auto",
    )


def _make_textbook_model(
    columns: ModelColumns, column_options: ColumnOptions, options: TrainingOptions, first: RowChunk
) -> NaiveBayes:
    """Naive Bayes as the book has it, its families declared so that every chunk is read alike."""
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.models.textbook_families import TextbookFamilies

    rule = TextbookFamilies(options.m)
    binary = find_binary_columns(first, columns)
    families = {name: rule.choose_family(name, kind, name in binary) for name, kind in columns.kinds.items()}
    declared = {name: given for name, given in column_options.types.items() if find_declared_family(given)}
    return NaiveBayes.textbook(options.m).set_params(families=families | declared)


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


def _note_regression(target: str, callbacks: Callbacks) -> None:
    callbacks.notify(
        f"the target {target!r} has more than {MAX_NUMERIC_LABELS} different numbers, so this is a regression; "
        "to take each number for a class, use --classes"
    )


def _note_columns(inferred: InferredColumns, callbacks: Callbacks) -> None:
    """Note which columns were not learned, and what was learned of dates."""
    for name in inferred.empty:
        callbacks.notify(f"column {name!r} is empty and was left out")
    for name, parts in inferred.dates.items():
        callbacks.notify(f"column {name!r} holds dates; learned as {join_words(parts) or 'nothing: all are the same'}")
    if inferred.identifiers:
        reasons = ", ".join(f"{name!r} ({reason})" for name, reason in inferred.identifiers.items())
        callbacks.notify(f"left out what looks like identifiers: {reasons}")


def _note_repairs(rows: FileRows, labels: LabelReader, n_coerced: dict[str, int], callbacks: Callbacks) -> None:
    """Count in notes what was repaired."""
    note_coerced_cells(n_coerced, callbacks)
    skipped = sum(getattr(file, "skipped", 0) for file in rows.files)
    if skipped:
        callbacks.notify(f"padded or skipped {format_count(skipped, 'malformed row')}")
    if labels.n_unlabelled:
        callbacks.notify(f"skipped {format_count(labels.n_unlabelled, 'row')} without a label")
    for file in rows.files:
        for flag, count in getattr(file, "flags", {}).items():
            callbacks.notify(f"{format_count(count, 'message')}: {MAIL_FLAG_MESSAGES[flag]}")
