"""Training in one pass: columns by a first chunk, all rows counted on lanes, a sample to be honest on.

Texts are counted before there is a model: importing what models need takes as long as counting half a gigabyte, and
is done meanwhile.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from priory.bag_of_words.tokenizer import Tokenizer
from priory.cli.terminal import print_note, show_activity
from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import FileRows, RowChunk
from priory.sources.byte_streams import format_path
from priory.sources.column_types import ColumnOptions, LabelReader, ModelColumns, declare_column_families, infer_columns
from priory.sources.discovery import format_names
from priory.sources.prefetch import peek_first, read_ahead
from priory.workflows.out_of_core import (
    LabelledBatch,
    RowSample,
    TextWorker,
    add_worker_statistics,
    count_batches,
    learn_batches,
)

if TYPE_CHECKING:
    from priory.cli.model_files import TableOrTextClassifier

MAX_AUDIT_BYTES = 1 << 20  # bytes of the sample
ROWS_TO_FIND_EVIDENCE = 500  # rows of the sample that say which columns tell most


@dataclass
class TrainingResult:
    """A model, the sample it was judged on, and what there is to say."""

    model: TableOrTextClassifier
    rows: int
    empty_columns: list[str]
    n_unlabelled: int
    families: dict[str, str]
    sample: Any = None
    labels: Array | None = None
    scores: Any = None
    findings: Any = None
    evidence: dict[str, list[tuple[str, float]]] = field(default_factory=dict)

    @property
    def classes(self) -> dict[str, float]:
        counts = zip(self.model.classes_.tolist(), self.model.class_count_.tolist(), strict=True)
        return dict(sorted(counts, key=lambda pair: -pair[1]))

    @property
    def n_sampled(self) -> int:
        return 0 if self.labels is None else len(self.labels)

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "classes": self.classes,
            "columns": self.families,
            "left_out": self.empty_columns,
            "sampled": self.n_sampled,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "evidence": self.evidence,
            "audit": None if self.findings is None else json.loads(self.findings.to_json()),
        }

    def report(self) -> Any:
        import priory

        assert self.labels is not None
        return priory.report(self.model, self.sample, self.labels, findings=self.findings)


def train_model(rows: FileRows, column_options: ColumnOptions, options: dict[str, Any]) -> TrainingResult:
    """Everything ``train`` does between reading options and writing files."""
    target, names = column_options.find_target(rows), column_options.find_features(rows)
    first, chunks = peek_first(read_ahead(rows.read_chunks((target, *names))))
    columns, empty = infer_columns(first, names, column_options)
    labels, sample = LabelReader(target, column_options), RowSample(options["sample"])
    model = _learn_model(read_labelled_batches(chunks, columns, labels, sample), columns, column_options, options)
    from priory.cli.model_files import set_training_columns

    _check_classes(model, rows)
    set_training_columns(model, columns, target)
    done = TrainingResult(model, sample.rows, empty, labels.n_unlabelled, describe_families(model))
    if not options["plain_"]:
        _evaluate_model(done, sample, columns, column_options, rows, options)
    return done


def read_labelled_batches(
    chunks: Iterator[RowChunk], columns: ModelColumns, labels: LabelReader, sample: RowSample
) -> Iterator[LabelledBatch]:
    """Chunks as batches to be learned; a sample of the rows is kept on the way."""
    for chunk in chunks:
        group, labelled = labels.read(chunk)
        if len(group):
            sample.add(labelled.batch)
            yield LabelledBatch(columns.read(labelled), group, labels.names)


def _learn_model(
    stream: Iterator[LabelledBatch], columns: ModelColumns, column_options: ColumnOptions, options: dict[str, Any]
) -> TableOrTextClassifier:
    """A model of all rows."""
    if not columns.is_one_text:
        model = _make_model(columns, column_options, options)
        learn_batches(model, stream)
        return model
    first, stream = peek_first(stream)
    lane = partial(
        TextWorker, Tokenizer(ngram_range=(1, options["ngrams"]), cjk=True), _is_binary(options), options["most"]
    )
    importing = threading.Thread(target=import_module, args=("priory.estimators.text_classifier",))
    importing.start()
    try:
        lanes = count_batches(stream, lane)
    finally:
        importing.join()  # before anything else imports: two threads at once would meet modules half made
    model = _make_model(columns, column_options, options)
    model._read(first.rows, reset=True)
    model.statistics_ = add_worker_statistics(lanes)
    return model


def _is_binary(options: dict[str, Any]) -> bool:
    """Whether a word counts once a text; of the usual model that is known without importing the others."""
    if options["model"] in (None, "binary"):
        return True
    from priory.bag_of_words.models import BAG_MODELS

    return BAG_MODELS[options["model"]].binary


def _make_model(columns: ModelColumns, column_options: ColumnOptions, options: dict[str, Any]) -> TableOrTextClassifier:
    """A model for these columns, its families declared so that every chunk is read alike."""
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier

    alpha, average, refine = options["alpha"], options["average"], options["refine"]
    if columns.is_one_text:
        return TextClassifier(
            options["model"] or "binary",
            average=average,
            alpha=1.0 if alpha is None else alpha,
            ngram_range=(1, options["ngrams"]),
            cjk=True,
            max_tokens=options["most"],
            calibrate=False,
            refine=bool(refine),
        )
    for name in ("model", "most"):
        if options[name] is not None:
            raise DataError(f"--{name} is for a single column of texts, and there are {format_names(columns.names)}")
    return NaiveBayes(
        declare_column_families(columns, column_options),
        average=average,
        alpha=alpha,
        calibrate=False,
        refine="auto" if refine is None else refine,
        structure="naive" if refine is False else "auto",
    )


def describe_families(model: TableOrTextClassifier) -> dict[str, str]:
    """For each column the family that explains it."""
    from priory.estimators.text_classifier import TextClassifier

    if isinstance(model, TextClassifier):
        return {str(model.feature_names_in_[0]): f"text, {len(model._counts_in_use()):,} different words"}
    return {report.name: report.family.lower() for report in model.schema_.values()}


def _check_classes(model: TableOrTextClassifier, rows: FileRows) -> None:
    if len(model.classes_) == 1:
        label = str(model.classes_[0])
        raise DataError(f"{format_path(rows.files[0].path)}: only one class {label!r}; a choice needs two")
    if (model.class_count_ <= 1).all():
        print_note("no class has two rows: how far each spreads is guessed")


def _evaluate_model(
    result: TrainingResult,
    sample: RowSample,
    columns: ModelColumns,
    column_options: ColumnOptions,
    rows: FileRows,
    options: dict[str, Any],
) -> None:
    """Make the model honest on the sample, and say how good it is."""
    import pyarrow as pa

    from priory.cli.model_files import read_sample_rows

    pa.default_memory_pool().release_unused()  # what reading took
    result.sample, result.labels = read_sample_rows(
        sample, columns, replace(column_options, target=result.model.target_), rows
    )
    with show_activity(f"leaving out each of {len(result.labels):,} rows in turn"):
        result.model.set_params(calibrate="loo").refresh(result.sample, result.labels)
        corrected = hasattr(result.model, "corrections_")
        result.scores = result.model.evaluate(*(() if corrected else (result.sample, result.labels)))
    result.evidence = find_strongest_evidence(result.model, result.sample, result.labels)
    if not options["no_audit"]:
        with show_activity("looking for leakage"):
            result.findings = audit_sample(result)


def audit_sample(result: TrainingResult) -> Any:
    """Findings of the sample, or of some of it if its rows are long: an audit takes a hundred times their memory."""
    import priory

    rows, labels = result.sample, result.labels
    assert labels is not None
    size = sum(map(len, rows)) if isinstance(rows, list) else rows.nbytes
    some = min(len(labels), max(100, len(labels) * MAX_AUDIT_BYTES // max(size, 1)))
    return priory.audit(rows[:some] if isinstance(rows, list) else rows.slice(0, some), target=labels[:some])


def find_strongest_evidence(
    model: TableOrTextClassifier, rows: Any, labels: Array
) -> dict[str, list[tuple[str, float]]]:
    """For each class what speaks most for it: words, or columns on average over the rows of the class."""
    from priory.estimators.text_classifier import TextClassifier
    from priory.models.explanation import DECIBANS_PER_NAT
    from priory.models.table_reading import read_table

    if isinstance(model, TextClassifier):
        return {
            str(label): [(e.token, round(e.decibans, 1)) for e in model.evidence(label, 6)] for label in model.classes_
        }
    some = read_table(rows.slice(0, ROWS_TO_FIND_EVIDENCE))
    terms = model._model().log_likelihood_terms(model._schema.read_cells(some))
    told = {}
    for c, label in enumerate(model.classes_.tolist()):
        own = labels[: some.rows] == label
        if own.any():
            others = (terms[own].sum(axis=1) - terms[own, c]) / (len(model.classes_) - 1)
            weight = np.nan_to_num(
                (terms[own, c] - others).mean(axis=0) * DECIBANS_PER_NAT, posinf=999.0, neginf=-999.0
            )
            best = np.argsort(-weight, kind="stable")[:6]
            told[str(label)] = [(model._schema.names[j], round(float(weight[j]), 1)) for j in best if weight[j] > 0]
    return told
