"""What training is told and what it returns: its options, and the result with scores, evidence and findings."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from priory.core.typing import Array
from priory.models.explanation import DECIBANS_PER_NAT, Ledgers
from priory.sources.column_types import InputRows
from priory.workflows.callbacks import Callbacks
from priory.workflows.out_of_core import DEFAULT_SAMPLE_ROWS

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores
    from priory.export.report import Report
    from priory.leakage.findings import Findings
    from priory.workflows.explanation import JSONValue
    from priory.workflows.model_files import TableOrTextClassifier

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


def evaluate_on_sample(
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
