"""Requests and answers, from which the OpenAPI description is made, and errors as problem details (RFC 9457)."""

from __future__ import annotations

import sqlite3
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import Response

from priory.errors import (
    MissingDependencyError,
    ModelFileError,
    ModelTooLargeError,
    NotLearnedError,
    PrioryError,
    ServiceError,
    StaleModelError,
)
from priory.service.labelled_rows import Row, RowLabel

PROBLEM_TYPE = "application/problem+json"
MAX_DETAIL_LENGTH = 500  # characters
RETRY_SECONDS = "1"  # the header Retry-After


def find_status(error: Exception) -> int:
    """Return the HTTP status of an error; 500 for an unexpected one."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, HTTPException):
        return error.status_code
    # from specific to general: most of these are also PrioryError or OSError
    if isinstance(error, NotLearnedError | StaleModelError):
        return 409
    if isinstance(error, MissingDependencyError):
        return 501
    if isinstance(error, ModelTooLargeError):
        return 413
    if isinstance(error, MemoryError):
        return 507
    if isinstance(error, sqlite3.Error | OSError):  # disk errors
        return 503
    return 422 if isinstance(error, PrioryError | ModelFileError) else 500


def make_problem_response(error: Exception) -> Response:
    """Return the response to a failed request; the message of an unexpected error is not included."""
    status = find_status(error)
    detail = " ".join(str(error).split())[:MAX_DETAIL_LENGTH] if isinstance(error, PrioryError) else ""
    phrase = HTTPStatus(status).phrase
    headers = dict(getattr(error, "headers", None) or {})
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = RETRY_SECONDS
    if status == 413:
        headers["Connection"] = "close"  # the rest of the body is not read
    body = msgspec.json.encode(ProblemDetails(phrase, status, detail or phrase))
    return Response(body, status, headers, PROBLEM_TYPE)


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
EventId = Annotated[int, Meta(ge=1, le=2**53, description="The id from the answer to a change.")]
Share = Annotated[float, Meta(ge=0, le=1)]
Cost = Annotated[float, Meta(ge=0, le=1e12)]


class RowsMessage(Struct, forbid_unknown_fields=True):
    """Texts for a model of texts, or rows for a model of a table."""

    texts: Texts | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET


class PredictMessage(RowsMessage):
    """Rows to predict, and the decision rule."""

    top: Annotated[int, Meta(ge=1, description="Give the probabilities of this many classes only.")] | None = None
    costs: (
        Annotated[
            dict[str, dict[str, Cost]],
            Meta(description="Costs by true class and answer; an unnamed mistake costs 1."),
        ]
        | None
    ) = None
    reject: Annotated[Cost, Meta(description="The cost of no answer, for Chow's rule.")] | None = None
    certainty: Annotated[Share, Meta(description="Give no answer below this probability.")] | None = None


class LabelledMessage(RowsMessage, kw_only=True):
    """Rows with their labels."""

    labels: Labels


class ForgetMessage(RowsMessage):
    """Labelled rows, or the id of a learn event, to forget and erase."""

    labels: Labels | UnsetType = UNSET
    id: EventId | UnsetType = UNSET


class UndoMessage(Struct, forbid_unknown_fields=True):
    """The id of the event to undo; by default the last learn event."""

    id: EventId | UnsetType = UNSET


class EvaluateMessage(RowsMessage):
    """Labelled rows to score; without rows, the model is cross-validated on the rows that it keeps."""

    labels: Labels | UnsetType = UNSET
    learned: bool = False  # whether the model has learned these rows


class AuditMessage(RowsMessage):
    """Rows to search for leakage, optionally with labels and test rows."""

    labels: Labels | UnsetType = UNSET
    test: RowsMessage | UnsetType = UNSET
    groups: str | None = None  # the name of a column
    time: str | None = None  # the name of a column


class CreateMessage(Struct, forbid_unknown_fields=True):
    """A new model: its kind, and the parameters of ``TextClassifier`` or ``NaiveBayes``."""

    kind: Literal["text", "table"]
    parameters: dict[str, Any] = {}


class ModelInfo(Struct):
    """Description of a model; ``version`` is the number of its last change."""

    name: str
    kind: Literal["text", "table"]
    version: int
    rows: float
    classes: list[RowLabel | float]
    class_rows: list[float]  # rows of each class
    columns: dict[str, str]  # kinds by name
    parameters: dict[str, Any]


class ModelList(Struct):
    models: list[ModelInfo]


class Prediction(Struct):
    """The prediction for one row; the label is null if the model abstains."""

    label: RowLabel | float | None
    probability: float
    probabilities: dict[str, float]


class PredictAnswer(Struct):
    model: str
    version: int
    predictions: list[Prediction]


class ExplainAnswer(Struct):
    """The ledger of each row: the prior, and the evidence of each word or column in decibans."""

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
    """One change: who requested it, when, and its state. Content is included only for the scope learn."""

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
    """Changes, newest first; pass ``before`` as a query parameter to get the next page."""

    model: str
    version: int
    events: list[EventInfo]
    before: int | None


class ReceiptsAnswer(Struct):
    """Receipts of forgotten rows, oldest first; pass the last counter as ``after`` to get the next page."""

    model: str
    receipts: list[dict[str, Any]]


class StatusAnswer(Struct):
    status: str
    models: int


class ProblemDetails(Struct):
    """Problem details of an error (RFC 9457)."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
