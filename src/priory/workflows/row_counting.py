"""Count the rows of files into statistics, in one pass.

Texts are counted before the model is made: importing its modules takes as long as counting half a gigabyte, and runs on
another thread at the same time.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias

import priory
from priory.errors import DataError
from priory.learning.counting import add_parts
from priory.model.cells import choose_text_memory
from priory.sources import FileRows, RowChunk, column_types
from priory.sources.column_types import ColumnOptions, LabelReader, ModelColumns, TargetReader
from priory.sources.discovery import format_names
from priory.text.document_models import BAG_MODELS
from priory.text.tokenizer import Tokenizer
from priory.workflows import out_of_core
from priory.workflows.model_files import DeclaredPrior
from priory.workflows.out_of_core import DrawnRows, LabelledBatch, TextWorker

if TYPE_CHECKING:
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.workflows.model_files import FileModel, TableOrTextClassifier


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
        Texts: correct naive Bayes by a logistic regression on words, even where texts to come may be of another kind,
        or not at all; by default where it helps.
    alpha : float, optional
        Smoothing: virtual examples of each value or word. By default 1 for texts, and for tables the choice of each
        family.
    text_model : "binary", "multinomial" or "bernoulli", optional
        Texts: how words count: "binary" (the default), "multinomial" or "bernoulli".
    ngrams : int
        Texts: the longest run of words that counts as one token, from 1 (the default) to 5.
    max_tokens : int, optional
        Texts: the number of different words to keep while learning.
    memory : int, optional
        The number of rows that the model keeps a fair sample of, to derive its corrections from; by default 5,000, and
        20,000 texts. With 0 it keeps none.
    sample_rows : int
        The number of rows, drawn uniformly from all, that the model is scored and audited with; 5,000 by default.
    class_prior : "uniform", or dict of class to probability, optional
        How probable the classes are where the model will be used; by default as in the rows that it learns.
    """

    plain: bool = False
    audit: bool = True
    refine: bool | None = None
    alpha: float | None = None
    text_model: str | None = None
    ngrams: int = 1
    max_tokens: int | None = None
    memory: int | None = None
    sample_rows: int = out_of_core.DEFAULT_SAMPLE_ROWS
    class_prior: DeclaredPrior | None = None


@dataclass(frozen=True)
class TrainingPlan:
    """The columns and options chosen from the first rows, by which any file can be counted on its own."""

    target: str
    columns: ModelColumns
    column_options: ColumnOptions
    options: TrainingOptions
    is_regression: bool = False

    def find_source_columns(self, rows: FileRows) -> tuple[str, ...]:
        """List the columns to read from the files."""
        return tuple(dict.fromkeys([self.target, *self.columns.find_sources(rows.names)]))


@dataclass(frozen=True)
class CountedRows:
    """Statistics of some files, and counts of their defects; the sum does not depend on the order of the files."""

    model: FileModel | None  # None where no row has a label
    sample: DrawnRows
    n_unlabelled: int = 0
    n_skipped: int = 0
    n_coerced: Counter[str] = field(default_factory=Counter)  # cells, by column
    flags: Counter[str] = field(default_factory=Counter)  # messages, by what was odd about them
    unreadable: tuple[str, ...] = ()
    mapped: frozenset[str] = frozenset()  # labels that were replaced by others

    def __add__(self, other: CountedRows) -> CountedRows:
        return CountedRows(
            add_parts((self.model, other.model), _add_models),
            self.sample + other.sample,
            self.n_unlabelled + other.n_unlabelled,
            self.n_skipped + other.n_skipped,
            self.n_coerced + other.n_coerced,
            self.flags + other.flags,
            tuple(sorted(self.unreadable + other.unreadable)),
            self.mapped | other.mapped,
        )


def _add_models(model: FileModel, other: FileModel) -> FileModel:
    """Add two models; a vocabulary stays within its declared size."""
    if not hasattr(model, "learned_"):  # a regression
        return model + other
    parts = model.learned_, other.learned_
    return copy.copy(model).adopt(add_parts(parts), finish=False)  # type: ignore[call-arg]


RowCounter: TypeAlias = Callable[[TrainingPlan, FileRows, Iterator[RowChunk]], CountedRows]


def count_rows(plan: TrainingPlan, rows: FileRows, chunks: Iterator[RowChunk], first_file: int = 0) -> CountedRows:
    """Count the chunks of some files; the first has the number ``first_file``."""
    # a counter of its own: the plan is shared by all files
    plan = replace(plan, columns=replace(plan.columns, n_coerced=Counter()))
    sample = DrawnRows(plan.options.sample_rows)
    numbered = _number_chunks(chunks, first_file)
    reader: LabelReader | TargetReader
    if plan.is_regression:
        reader = TargetReader(plan.target, plan.column_options)
        model: FileModel | None = _learn_numbers(numbered, plan.columns, reader, sample)
    else:
        reader = LabelReader(plan.target, plan.column_options)
        batches = _read_labelled_batches(numbered, plan.columns, reader, sample)
        first = next(batches, None)  # shows whether there are any
        model = None if first is None else _learn_model(itertools.chain([first], batches), plan)
    return CountedRows(
        model,
        sample,
        reader.n_unlabelled,
        sum(getattr(file, "skipped", 0) for file in rows.files),
        plan.columns.n_coerced,
        sum((Counter(getattr(file, "flags", {})) for file in rows.files), Counter()),
        tuple(path for file in rows.files for path in getattr(file, "unreadable", [])),
        frozenset(getattr(reader, "mapped", ())),
    )


def _number_chunks(chunks: Iterator[RowChunk], number: int) -> Iterator[tuple[int, RowChunk]]:
    """Pair each chunk with the number of its file."""
    file = None
    for chunk in chunks:
        number += file is not None and chunk.file is not file
        file = chunk.file
        yield number, chunk


def _learn_numbers(
    chunks: Iterator[tuple[int, RowChunk]], columns: ModelColumns, reader: TargetReader, sample: DrawnRows
) -> BayesianLinearRegression | None:
    """Fit a regression to the chunks; None if no row has a target."""
    model = priory.BayesianLinearRegression()
    for number, chunk in chunks:
        targets, labelled = reader.read(chunk)
        if len(targets):
            sample.add(labelled.batch, number)
            model.partial_fit(columns.read_arrow_table(labelled), targets)
    return model if sample.rows else None


def _read_labelled_batches(
    chunks: Iterator[tuple[int, RowChunk]], columns: ModelColumns, labels: LabelReader, sample: DrawnRows
) -> Iterator[LabelledBatch]:
    """Convert chunks to labelled batches, adding their rows to the sample."""
    for number, chunk in chunks:
        group, labelled = labels.read(chunk)
        if len(group):
            sample.add(labelled.batch, number)
            yield LabelledBatch(columns.read(labelled), group, labels.names)


def _learn_model(batches: Iterator[LabelledBatch], plan: TrainingPlan) -> TableOrTextClassifier:
    """Fit a classifier to all batches; a single column of texts is counted while modules are imported."""
    if not plan.columns.is_one_text:
        model = _make_model(plan)
        out_of_core.learn_tables(model, batches)
        return model
    options = plan.options
    tokenizer = Tokenizer(ngram_range=(1, options.ngrams), reader=plan.columns.reader)
    memory = 0 if options.plain else choose_text_memory(options.memory, _choose_refinement(options))
    make_worker = partial(TextWorker, tokenizer, _counts_words_once(options), options.max_tokens, memory)
    importing = threading.Thread(target=import_module, args=("priory.estimators.text_classifier",))
    importing.start()
    try:
        counted = out_of_core.count_texts(batches, make_worker)
    finally:
        importing.join()  # before anything else imports: two threads at once would find half-initialised modules
    model = _make_model(plan)
    out_of_core.learn_texts(model, *counted)
    return model


def _choose_refinement(options: TrainingOptions) -> bool | Literal["auto"]:
    """Return the declared refinement, by default "auto"."""
    return "auto" if options.refine is None else options.refine


def _counts_words_once(options: TrainingOptions) -> bool:
    """Whether a word counts once for each text; known for the default model without importing others."""
    if options.text_model in (None, "binary"):
        return True
    return BAG_MODELS[options.text_model].binary


def _make_model(plan: TrainingPlan) -> TableOrTextClassifier:
    """Make a model for these columns, with declared families, so that every chunk is read alike."""
    columns, options = plan.columns, plan.options
    if columns.is_one_text:
        return priory.TextClassifier(
            options.text_model or "binary",
            alpha=1.0 if options.alpha is None else options.alpha,
            ngram_range=(1, options.ngrams),
            reader=columns.reader,
            max_tokens=options.max_tokens,
            calibrate=False if options.plain else "loo",
            refine=_choose_refinement(options),
            memory=options.memory,
        )
    for name, value in (
        ("model", options.text_model),
        ("max-words", options.max_tokens),
        ("refine" if options.refine else "no-refine", options.refine),
    ):
        if value is not None:
            raise DataError(
                f"--{name} is only for a single column of texts; the columns are {format_names(columns.names)}"
            )
    return priory.NaiveBayes(
        column_types.declare_column_families(columns, plan.column_options),
        alpha=options.alpha,
        calibrate=False if options.plain else "loo",
        memory=options.memory,
    )
