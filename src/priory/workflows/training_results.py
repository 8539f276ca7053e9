"""Options of training, and its result: the model with scores, evidence and findings."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

import priory
from priory.core.typing import Array
from priory.errors import DataError
from priory.model.model_statistics import ClassWeight
from priory.sources.column_types import InputRows
from priory.workflows.class_files import DeclaredPrior
from priory.workflows.model_files import Callbacks
from priory.workflows.out_of_core import DEFAULT_SAMPLE_ROWS

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores
    from priory.export.html_report import Report
    from priory.leakage.findings import Findings
    from priory.model.ledger_output import JSONValue
    from priory.workflows.model_files import TableOrTextClassifier

MAX_AUDIT_BYTES = 1 << 20  # of the sample: an audit takes a hundred times the memory of its rows
MAX_EVIDENCE_SHOWN = 6  # of each class
MIN_ROWS_FOR_CURVE = 100
CURVE_SHARES = (0.05, 0.2, 0.5, 0.8)


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
        Correct naive Bayes with a logistic regression. By default where that helps.
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
    memory : int, optional
        The number of rows that the model keeps a fair sample of, to derive its corrections from; by default 5,000, and
        20,000 texts. With 0 it keeps none.
    textbook : bool
        Naive Bayes as in the textbook: no families chosen by the data, and no corrections.
    m : float or "laplace"
        With ``textbook``: the virtual examples of each column; "laplace" is one for each value.
    sample_rows : int
        The number of rows, drawn uniformly from all, that the model is scored and audited with.
    class_prior : "uniform", or dict of class to probability, optional
        How probable the classes are where the model will be used; by default as in the rows that it learns.
    class_weight : "balanced", or dict of class to weight, optional
        How much the rows of a class count: the weight multiplies the prior. With "balanced" all classes are equally
        probable.
    """

    plain: bool = False
    audit: bool = True
    refine: bool | None = None
    average: bool = False
    alpha: float | None = None
    text_model: str | None = None
    ngrams: int = 1
    max_tokens: int | None = None
    memory: int | None = None
    sample_rows: int = DEFAULT_SAMPLE_ROWS
    textbook: bool = False
    m: float | Literal["laplace"] = 0.0
    class_prior: DeclaredPrior | None = None
    class_weight: ClassWeight | None = None


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
    unreadable_files : list of str
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
    unreadable_files: list[str]
    identifiers: dict[str, str] = field(default_factory=dict)
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
    return priory.audit(take_first_rows(sample, n_audited), target=labels[:n_audited])


def take_first_rows(rows: InputRows, count: int) -> InputRows:
    return rows[:count] if isinstance(rows, list) else rows.slice(0, count)


def list_strongest_evidence(
    model: TableOrTextClassifier, rows: InputRows, labels: Array
) -> dict[str, list[tuple[str, float]]]:
    """The words or columns with the strongest evidence for each class, as in the report, in decibans."""
    from priory.export.strongest_evidence import find_strongest_evidence

    return {
        str(label): [(one.name, round(one.decibans, 1)) for one in evidence[:MAX_EVIDENCE_SHOWN]]
        for label, evidence in find_strongest_evidence(model, rows, labels).items()
    }
