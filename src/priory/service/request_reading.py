"""Read requests: decode bodies, check names, and convert rows to the kind that a model takes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request

from priory.errors import DataError, ServiceError
from priory.service.labelled_rows import Row, RowBatch, RowLabel
from priory.service.messages import MAX_ROWS_PER_REQUEST, RowsMessage
from priory.service.model_store import ServedModel
from priory.service.tokens import Identity
from priory.sources.json_lines import check_unique_keys
from priory.text.mail import read_mail

if TYPE_CHECKING:
    from priory.service.application import Service

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

    def read_query_number(self, name: str, default: int, largest: int) -> int:
        """Return a whole number from 0 to ``largest`` from the query string."""
        given = self.request.query_params.get(name)
        if given is None:
            return default
        if not given.isascii() or not given.isdigit() or len(given) > 16 or int(given) > largest:
            raise DataError(f"{name} must be a whole number from 0 to {largest}")
        return int(given)

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
        return read_row_batch(message, labels, self.model.entry.kind)


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


def read_row_batch(message: RowsMessage, labels: list[RowLabel] | UnsetType, kind: str) -> RowBatch:
    given = message.texts if kind == "text" else message.rows
    other = message.rows if kind == "text" else message.texts
    wanted = "texts" if kind == "text" else "rows"
    if isinstance(given, UnsetType) or not isinstance(other, UnsetType):
        raise ServiceError(409, f"this model takes {wanted!r}, and nothing else")
    return RowBatch(
        "text" if kind == "text" else "table", tuple(given), None if isinstance(labels, UnsetType) else tuple(labels)
    )


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
