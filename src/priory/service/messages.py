"""What requests and answers look like; the OpenAPI description is made from these classes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from priory.service.rows import Row, RowLabel

MAX_ROWS_PER_REQUEST = 10_000
MAX_EXPLAINED_ROWS = 100

Texts = Annotated[list[str], Meta(min_length=1, max_length=MAX_ROWS_PER_REQUEST, description="One text for each row.")]
Rows = Annotated[
    list[Row],
    Meta(min_length=1, max_length=MAX_ROWS_PER_REQUEST, description="Cells by column name; null is missing."),
]
Labels = Annotated[
    list[RowLabel], Meta(min_length=1, max_length=MAX_ROWS_PER_REQUEST, description="One label for each row.")
]
EventId = Annotated[int, Meta(ge=1, le=2**53, description="The id that a change answered.")]
Share = Annotated[float, Meta(ge=0, le=1)]
Cost = Annotated[float, Meta(ge=0, le=1e12)]


class RowsMessage(Struct, forbid_unknown_fields=True):
    """Texts for a model of texts, or rows for a model of a table."""

    texts: Texts | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET


class PredictMessage(RowsMessage):
    """Rows to predict, and how an answer is chosen."""

    top: Annotated[int, Meta(ge=1, description="Give the probabilities of this many classes only.")] | None = None
    costs: (
        Annotated[
            dict[str, dict[str, Cost]],
            Meta(description="By true class and answer; a mistake that is not named costs 1."),
        ]
        | None
    ) = None
    reject: Annotated[Cost, Meta(description="The cost of no answer, for Chow's rule.")] | None = None
    certainty: Annotated[Share, Meta(description="Give no answer below this probability.")] | None = None


class LabelledMessage(RowsMessage, kw_only=True):
    """Rows with their labels."""

    labels: Labels


class ForgetMessage(RowsMessage):
    """Rows with their labels, or the id of an earlier learning; their content is erased."""

    labels: Labels | UnsetType = UNSET
    id: EventId | UnsetType = UNSET


class UndoMessage(Struct, forbid_unknown_fields=True):
    """What to undo: by default, what was learned last."""

    id: EventId | UnsetType = UNSET


class EvaluateMessage(RowsMessage):
    """Labelled rows that the model has not learned; without any, the rows that it keeps are judged by folds."""

    labels: Labels | UnsetType = UNSET
    learned: bool = False


class AuditMessage(RowsMessage):
    """Rows to look for leakage in, with their labels and test rows if there are any."""

    labels: Labels | UnsetType = UNSET
    test: RowsMessage | UnsetType = UNSET
    groups: str | None = None
    time: str | None = None


class CreateMessage(Struct, forbid_unknown_fields=True):
    """A new model: its kind, and the parameters of ``TextClassifier`` or ``NaiveBayes``."""

    kind: Literal["text", "table"]
    parameters: dict[str, Any] = {}


class ModelInfo(Struct):
    """A model as it is now; ``version`` is the number of the last change."""

    name: str
    kind: Literal["text", "table"]
    version: int
    rows: float
    classes: list[RowLabel | float]
    class_rows: list[float]
    columns: dict[str, str]
    parameters: dict[str, Any]


class ModelList(Struct):
    models: list[ModelInfo]


class Prediction(Struct):
    """The answer to one row: no label where the model abstains."""

    label: RowLabel | float | None
    probability: float
    probabilities: dict[str, float]


class PredictAnswer(Struct):
    model: str
    version: int
    predictions: list[Prediction]


class ExplainAnswer(Struct):
    """For each row its ledger: the prior and one line of evidence for each word or column, in decibans."""

    model: str
    version: int
    explanations: list[dict[str, Any]]


class EvaluateAnswer(Struct):
    model: str
    version: int
    rows: int
    scores: dict[str, Any]


class AuditAnswer(Struct):
    findings: list[dict[str, Any]]


class EventInfo(Struct, omit_defaults=True):
    """One change: who asked for it, when, and what became of it. Content is given to those who may teach."""

    id: int
    operation: str
    rows: int
    teacher: str
    time: str
    target: int | None = None
    undone_by: int | None = None
    is_erased: bool = False
    content: list[str | Row] | UnsetType = UNSET
    labels: list[RowLabel] | UnsetType = UNSET


class HistoryAnswer(Struct):
    """Changes, the newest first; ``before`` is what to ask for the next page with."""

    model: str
    version: int
    events: list[EventInfo]
    before: int | None


class StatusAnswer(Struct):
    status: str
    models: int


class ProblemDetails(Struct):
    """What went wrong (RFC 9457)."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
