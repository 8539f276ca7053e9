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

from priory.bag_of_words.tokenizer import Tokens
from priory.cli.terminal import note, saying
from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import Chunk, Rows
from priory.sources.byte_streams import shown
from priory.sources.column_types import Columns, Labels, Said, families, inferred
from priory.sources.discovery import listed
from priory.sources.prefetch import ahead, peeked
from priory.workflows.out_of_core import Batch, Sample, TextLane, added, fed, learn

if TYPE_CHECKING:
    from priory.cli.model_files import Model

MOST_AUDITED = 1 << 20  # bytes of the sample
TELLING = 500  # rows of the sample that say which columns tell most


@dataclass
class Trained:
    """A model, the sample it was judged on, and what there is to say."""

    model: Model
    rows: int
    empty: list[str]
    unlabelled: int
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
    def sampled(self) -> int:
        return 0 if self.labels is None else len(self.labels)

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "classes": self.classes,
            "columns": self.families,
            "left_out": self.empty,
            "sampled": self.sampled,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "evidence": self.evidence,
            "audit": None if self.findings is None else json.loads(self.findings.to_json()),
        }

    def report(self) -> Any:
        import priory

        return priory.report(self.model, self.sample, self.labels, findings=self.findings)


def trained(rows: Rows, said: Said, options: dict[str, Any]) -> Trained:
    """Everything ``train`` does between reading options and writing files."""
    target, names = said.target_in(rows), said.features_in(rows)
    first, chunks = peeked(ahead(rows.chunks((target, *names))))
    columns, empty = inferred(first, names, said)
    labels, sample = Labels(target, said), Sample(options["sample"])
    model = _learned(batches(chunks, columns, labels, sample), columns, said, options)
    from priory.cli.model_files import remember

    _check_classes(model, rows)
    remember(model, columns, target)
    done = Trained(model, sample.rows, empty, labels.unlabelled, described(model))
    if not options["plain_"]:
        _judge(done, sample, columns, said, rows, options)
    return done


def batches(chunks: Iterator[Chunk], columns: Columns, labels: Labels, sample: Sample) -> Iterator[Batch]:
    """Chunks as batches to be learned; a sample of the rows is kept on the way."""
    for chunk in chunks:
        group, labelled = labels.read(chunk)
        if len(group):
            sample.add(labelled.batch)
            yield Batch(columns.read(labelled), group, labels.names)


def _learned(stream: Iterator[Batch], columns: Columns, said: Said, options: dict[str, Any]) -> Model:
    """A model of all rows."""
    if not columns.is_one_text:
        model = _new(columns, said, options)
        learn(model, stream)
        return model
    first, stream = peeked(stream)
    lane = partial(TextLane, Tokens(ngrams=(1, options["ngrams"]), cjk=True), _once(options), options["most"])
    importing = threading.Thread(target=import_module, args=("priory.estimators.text_classifier",))
    importing.start()
    try:
        lanes = fed(stream, lane)
    finally:
        importing.join()  # before anything else imports: two threads at once would meet modules half made
    model = _new(columns, said, options)
    model._read(first.rows, reset=True)
    model.seen_ = added(lanes)
    return model


def _once(options: dict[str, Any]) -> bool:
    """Whether a word counts once a text; of the usual model that is known without importing the others."""
    if options["model"] in (None, "binary"):
        return True
    from priory.bag_of_words.models import MODELS

    return MODELS[options["model"]].once


def _new(columns: Columns, said: Said, options: dict[str, Any]) -> Model:
    """A model for these columns, its families declared so that every chunk is read alike."""
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier

    alpha, average, refine = options["alpha"], options["average"], options["refine"]
    if columns.is_one_text:
        return TextClassifier(
            options["model"] or "binary",
            average=average,
            alpha=1.0 if alpha is None else alpha,
            ngrams=(1, options["ngrams"]),
            cjk=True,
            most=options["most"],
            calibrate=False,
            refine=bool(refine),
        )
    for name in ("model", "most"):
        if options[name] is not None:
            raise DataError(f"--{name} is for a single column of texts, and there are {listed(columns.names)}")
    return NaiveBayes(
        families(columns, said),
        average=average,
        alpha=alpha,
        calibrate=False,
        refine="auto" if refine is None else refine,
        structure="naive" if refine is False else "auto",
    )


def described(model: Model) -> dict[str, str]:
    """For each column the family that explains it."""
    from priory.estimators.text_classifier import TextClassifier

    if isinstance(model, TextClassifier):
        return {str(model.feature_names_in_[0]): f"text, {len(model._used()):,} different words"}
    return {report.name: report.family.lower() for report in model.schema_.values()}


def _check_classes(model: Model, rows: Rows) -> None:
    if len(model.classes_) == 1:
        label = str(model.classes_[0])
        raise DataError(f"{shown(rows.files[0].path)}: only one class {label!r}; a choice needs two")
    if (model.class_count_ <= 1).all():
        note("no class has two rows: how far each spreads is guessed")


def _judge(done: Trained, sample: Sample, columns: Columns, said: Said, rows: Rows, options: dict[str, Any]) -> None:
    """Make the model honest on the sample, and say how good it is."""
    import pyarrow as pa

    from priory.cli.model_files import drawn

    pa.default_memory_pool().release_unused()  # what reading took
    done.sample, done.labels = drawn(sample, columns, replace(said, target=done.model.target_), rows)
    with saying(f"leaving out each of {len(done.labels):,} rows in turn"):
        done.model.set_params(calibrate="loo").refresh(done.sample, done.labels)
        corrected = hasattr(done.model, "corrections_")
        done.scores = done.model.evaluate(*(() if corrected else (done.sample, done.labels)))
    done.evidence = telling(done.model, done.sample, done.labels)
    if not options["no_audit"]:
        with saying("looking for leakage"):
            done.findings = audited(done)


def audited(done: Trained) -> Any:
    """Findings of the sample, or of some of it if its rows are long: an audit takes a hundred times their memory."""
    import priory

    rows, labels = done.sample, done.labels
    assert labels is not None
    size = sum(map(len, rows)) if isinstance(rows, list) else rows.nbytes
    some = min(len(labels), max(100, len(labels) * MOST_AUDITED // max(size, 1)))
    return priory.audit(rows[:some] if isinstance(rows, list) else rows.slice(0, some), target=labels[:some])


def telling(model: Model, rows: Any, labels: Array) -> dict[str, list[tuple[str, float]]]:
    """For each class what speaks most for it: words, or columns on average over the rows of the class."""
    from priory.estimators.text_classifier import TextClassifier
    from priory.models import naive_bayes as naive
    from priory.models.explanation import DECIBAN
    from priory.models.table import read

    if isinstance(model, TextClassifier):
        return {
            str(label): [(e.token, round(e.decibans, 1)) for e in model.evidence(label, 6)] for label in model.classes_
        }
    some = read(rows.slice(0, TELLING))
    terms = naive.terms(model._schema, model.seen_, some, model.estimate, model.average)
    told = {}
    for c, label in enumerate(model.classes_.tolist()):
        own = labels[: some.rows] == label
        if own.any():
            others = (terms[own].sum(axis=1) - terms[own, c]) / (len(model.classes_) - 1)
            weight = np.nan_to_num((terms[own, c] - others).mean(axis=0) * DECIBAN, posinf=999.0, neginf=-999.0)
            best = np.argsort(-weight, kind="stable")[:6]
            told[str(label)] = [(model._schema.names[j], round(float(weight[j]), 1)) for j in best if weight[j] > 0]
    return told
