"""Messages: bodies of requests and answers, how requests are read, and errors as problem details (RFC 9457)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from priory import errors
from priory.core.typing import ReturnT
from priory.errors import DataError, PrioryError, ServiceError
from priory.service.labelled_rows import Row, RowBatch, RowLabel
from priory.service.model_store import ServedModel
from priory.service.tokens import Identity
from priory.sources.json_lines import check_unique_keys
from priory.text.mail import read_mail

if TYPE_CHECKING:
    from priory.service.changes import ChangeAnswer, ChangeRequest
    from priory.service.server import Service


PROBLEM_TYPE = "application/problem+json"
MAX_DETAIL_LENGTH = 500  # characters
RETRY_SECONDS = "1"  # the header Retry-After


STATUSES: tuple[tuple[type[Exception], int], ...] = (  # from specific to general: the first that fits an error counts
    (errors.NotLearnedError, 409),
    (errors.StaleModelError, 409),
    (errors.MissingDependencyError, 501),
    (errors.ModelTooLargeError, 413),
    (MemoryError, 507),
    (sqlite3.Error, 503),
    (OSError, 503),  # of the disk
    (PrioryError, 422),
)


def find_status(error: Exception) -> int:
    """Return the HTTP status of an error; 500 for an unexpected one."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, HTTPException):
        return error.status_code
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def describe_problem(error: Exception) -> str:
    """Say in one line what went wrong; the message of an unexpected error is not shown."""
    detail = " ".join(str(error).split())[:MAX_DETAIL_LENGTH] if isinstance(error, PrioryError) else ""
    return detail or HTTPStatus(find_status(error)).phrase


def make_problem_response(error: Exception) -> Response:
    """Return the response to a failed request."""
    status = find_status(error)
    headers = dict(getattr(error, "headers", None) or {})
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = RETRY_SECONDS
    if status == 413:
        headers["Connection"] = "close"  # the rest of the body is not read
    body = msgspec.json.encode(ProblemDetails(HTTPStatus(status).phrase, status, describe_problem(error)))
    return Response(body, status, headers, PROBLEM_TYPE)


MAX_ROWS_PER_REQUEST = 10_000
MAX_EXPLAINED_ROWS = 100

Texts = Annotated[list[str], Meta(min_length=1, max_length=MAX_ROWS_PER_REQUEST, description="One text for each row.")]
Rows = Annotated[
    list[Row], Meta(min_length=1, max_length=MAX_ROWS_PER_REQUEST, description="Cells by column name; null is missing.")
]
Labels = Annotated[
    list[RowLabel],
    Meta(
        min_length=1,
        max_length=MAX_ROWS_PER_REQUEST,
        description="One label for each row; null for a text without label, if the model is made with unlabelled.",
    ),
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
            dict[str, dict[str, Cost]], Meta(description="Costs by true class and answer; an unnamed mistake costs 1.")
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


MODEL_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_KEY_LENGTH = 255
MAX_INLINE_BYTES = 1 << 16  # larger bodies are decoded in a thread
MESSAGE_TYPE, LINES_TYPE, MAIL_TYPE = "application/json", "application/x-ndjson", "message/rfc822"
MessageT = TypeVar("MessageT", bound=msgspec.Struct)


class LineMessage(msgspec.Struct, forbid_unknown_fields=True):
    """One line of an NDJSON body."""

    text: str | UnsetType = UNSET
    row: Row | UnsetType = UNSET
    label: RowLabel | UnsetType = UNSET


class Call:
    """A request to the API, with its sender and its model."""

    def __init__(self, service: Service, request: Request, identity: Identity) -> None:
        self.service, self.request, self.identity = service, request, identity

    @property
    def name(self) -> str:
        """The name of the model; it is never used in a path."""
        return str(self.request.path_params["name"])

    @property
    def model(self) -> ServedModel:
        return self.service.store.get(self.name)

    @cached_property
    def content_type(self) -> str:
        return self.request.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def wants_lines(self) -> bool:
        """Whether the answer should be NDJSON."""
        return LINES_TYPE in self.request.headers.get("accept", "")

    @property
    def key(self) -> str | None:
        key = self.request.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
            raise ServiceError(400, f"an Idempotency-Key has 1 to {MAX_KEY_LENGTH} characters")
        return key

    async def hash_request(self) -> bytes:
        """Return a hash that distinguishes requests with the same idempotency key; b"" without a key."""
        if self.key is None:
            return b""
        body, query = await self.request.body(), self.request.scope["query_string"].decode("latin-1")
        heading = f"{self.request.method} {self.request.scope['path']}?{query}\n{self.content_type}\n"
        return hashlib.blake2b(heading.encode() + body, digest_size=32).digest()

    async def run(self, function: Callable[..., ReturnT], *arguments: object) -> ReturnT:
        """Run a slow function in a thread."""
        return await self.service.run_slowly(function, *arguments)

    async def change(self, kind: type[ChangeRequest], **what: Any) -> ChangeAnswer:
        """Change the model in the name of the sender; the answer comes once the change is on disk."""
        request = kind(self.name, self.identity.name, self.key, await self.hash_request(), **what)
        return await self.service.change(request)

    def read_query_number(self, name: str, default: int, largest: int) -> int:
        """Return a whole number from 0 to ``largest`` from the query string."""
        given = self.request.query_params.get(name)
        return default if given is None else parse_whole_number(given, name, largest)

    async def read_message(self, message_type: type[MessageT]) -> MessageT:
        """Decode the body as JSON; an empty body is an empty object."""
        if self.content_type not in ("", MESSAGE_TYPE):
            raise ServiceError(415, f"the content type must be {MESSAGE_TYPE}")
        return await self._decode(decode_message, await self.request.body() or b"{}", message_type)

    async def _decode(
        self, decode: Callable[[bytes, type[MessageT]], MessageT], body: bytes, message_type: type[MessageT]
    ) -> MessageT:
        """Decode a body; a large one in a thread, so that the event loop is not blocked."""
        if len(body) <= MAX_INLINE_BYTES:
            return decode(body, message_type)
        return await asyncio.to_thread(decode, body, message_type)

    async def read_rows_message(self, message_type: type[MessageT]) -> MessageT:
        """Decode the body as JSON, as NDJSON with one row per line, or as one mail."""
        if self.content_type == LINES_TYPE:
            return await self._decode(_decode_lines, await self.request.body(), message_type)
        if self.content_type == MAIL_TYPE:
            return await self._decode(self._decode_mail, await self.request.body(), message_type)
        return await self.read_message(message_type)

    def _decode_mail(self, body: bytes, message_type: type[MessageT]) -> MessageT:
        fields: dict[str, object] = {"texts": [read_mail(body, self.model.reader).text]}
        if "label" in self.request.query_params:
            fields["labels"] = [self.request.query_params["label"]]
        return convert_fields(fields, message_type)

    def read_rows(self, message: RowsMessage, labels: list[RowLabel] | UnsetType = UNSET) -> RowBatch:
        """Return the rows of a message, which must be of the kind that the model takes."""
        kind = self.model.entry.kind
        given, other = (message.texts, message.rows) if kind == "text" else (message.rows, message.texts)
        if isinstance(given, UnsetType) or not isinstance(other, UnsetType):
            raise ServiceError(409, f"this model takes {'texts' if kind == 'text' else 'rows'!r}, and nothing else")
        return RowBatch(kind, tuple(given), None if isinstance(labels, UnsetType) else tuple(labels))


def parse_whole_number(text: str, name: str, largest: int = 2**53) -> int:
    """Parse a whole number of a query or a form."""
    if not text.isascii() or not text.isdigit() or len(text) > 16 or int(text) > largest:
        raise DataError(f"{name} must be a whole number from 0 to {largest}")
    return int(text)


def _decode_lines(body: bytes, message_type: type[MessageT]) -> MessageT:
    try:
        lines = msgspec.json.Decoder(LineMessage).decode_lines(body)
        for line in body.split(b"\n"):
            _check_keys(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ServiceError(422, f"the body is not one JSON object in each line: {describe_fault(error)}") from None
    if not 0 < len(lines) <= MAX_ROWS_PER_REQUEST:
        raise DataError(f"give 1 to {MAX_ROWS_PER_REQUEST:,} lines")
    fields: dict[str, object] = {}
    for source, target in (("text", "texts"), ("row", "rows"), ("label", "labels")):
        values = [getattr(line, source) for line in lines]
        if any(value is not UNSET for value in values):
            # a field must be in all lines or in none
            if UNSET in values:
                raise DataError(f"line {values.index(UNSET) + 1} has no {source!r}, and others have one")
            fields[target] = values
    return convert_fields(fields, message_type)


def decode_message(body: bytes, message_type: type[MessageT]) -> MessageT:
    """Decode JSON as a message; the error names the faulty field."""
    try:
        message = msgspec.json.decode(body, type=message_type)
        _check_keys(body)
        return message
    except msgspec.ValidationError as error:
        raise ServiceError(422, f"the body is not as described: {describe_fault(error)}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ServiceError(400, f"the body is not JSON that can be read: {describe_fault(error)}") from None


def _check_keys(body: bytes) -> None:
    """Raise an error for duplicate keys in an object, of which msgspec would take the last."""
    if body.strip():
        json.loads(body, object_pairs_hook=check_unique_keys, parse_int=float)  # float: huge integers are slow to parse


def convert_fields(fields: dict[str, object], message_type: type[MessageT]) -> MessageT:
    try:
        return msgspec.convert(fields, message_type)
    except msgspec.ValidationError as error:
        raise ServiceError(422, f"the body is not as described: {describe_fault(error)}") from None


def describe_fault(error: Exception) -> str:
    """Describe a decoding error without quoting the body."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)[:200]
