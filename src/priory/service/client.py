"""Client of ``priory serve``: synchronous (`Client`) and for asyncio (`AsyncClient`).

    with Client("http://127.0.0.1:8000", token="...") as service:
        service.create("mail", "text")
        done = service.learn("mail", ["win cash now"], ["spam"])
        service.predict("mail", ["cash prize"])["predictions"][0]["label"]
        service.forget("mail", id=done["id"])

Rows are texts, or dicts of cells by column name. Every change has an idempotency key, so it can be repeated after a
lost connection and is carried out once. A rejected request raises `priory.errors.ServiceError`.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeAlias, TypeVar

import httpx

from priory.errors import ServiceError

__all__ = ["AsyncClient", "Client"]

DEFAULT_ADDRESS = "http://127.0.0.1:8000"
Answer: TypeAlias = dict[str, Any]  # a JSON object
CellValue: TypeAlias = str | int | float | bool | None
RowInput: TypeAlias = Sequence[str] | Sequence[Mapping[str, CellValue]]
LabelInput: TypeAlias = Sequence[str | int | bool]

# Return types of the calls: the answer itself, or an awaitable of it.
ObjectT = TypeVar("ObjectT")
ListT = TypeVar("ListT")
BytesT = TypeVar("BytesT")


@dataclass(frozen=True)
class Request:
    """A request to be sent, with the options of `httpx.Client.request`.

    ``part`` is the key of the answer to return, if not the whole answer.
    """

    method: str
    path: str
    options: dict[str, Any] = field(default_factory=dict)
    part: str | None = None

    @property
    def line(self) -> tuple[str, str]:
        return self.method, self.path

    @property
    def may_be_repeated(self) -> bool:
        return self.method == "GET" or "Idempotency-Key" in self.options.get("headers", {})

    def read_answer(self, outcome: httpx.Response | Exception) -> Any:
        """Return the answer; raise the connection error, or ServiceError if the service rejected the request."""
        if isinstance(outcome, Exception):
            raise outcome
        if outcome.is_success:
            is_message = outcome.headers.get("content-type", "").startswith("application/json")
            answer: Any = outcome.json() if is_message else outcome.content
            return answer if self.part is None else answer[self.part]
        try:
            detail = str(outcome.json()["detail"])
        except (ValueError, KeyError, TypeError):
            detail = outcome.reason_phrase
        raise ServiceError(outcome.status_code, detail)


def _make_body(rows: RowInput | None, labels: LabelInput | None = None, **options: Any) -> Answer:
    """Return the JSON body for rows (texts or cells), labels and options."""
    body: Answer = {name: value for name, value in options.items() if value is not None}
    if rows is not None:
        key = "texts" if all(isinstance(row, str) for row in rows) else "rows"  # by the kind of the model
        body[key] = [row if isinstance(row, str) else dict(row) for row in rows]
        if labels is not None:
            body["labels"] = list(labels)
    return body


def _make_key(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key or uuid.uuid4().hex}


class ServiceCalls(ABC, Generic[ObjectT, ListT, BytesT]):
    """All calls of the service; `Client` and `AsyncClient` implement how requests are sent."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        socket: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
        retries: int = 3,
    ) -> None:
        self.options: dict[str, Any] = {
            "base_url": "http://localhost" if socket is not None else address,
            "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
            "timeout": timeout,
        }
        self.socket = None if socket is None else os.fspath(socket)
        self.retries = retries

    @abstractmethod
    def send(self, request: Request) -> Any:
        """Send a request, with retries, and read the answer."""

    def choose_delay(self, request: Request, attempt: int, outcome: httpx.Response | Exception) -> float | None:
        """Return the seconds to wait before a retry, or None for no retry (exponential backoff)."""
        # only a repeatable request is retried, and only after a failure that may be temporary
        is_passing = isinstance(outcome, Exception) or outcome.status_code == 503
        may_try = is_passing and request.may_be_repeated and attempt < self.retries
        return 0.1 * 2**attempt if may_try else None

    def list_models(self) -> ListT:
        """Return the descriptions of all models."""
        models: ListT = self.send(Request("GET", "/v1/models", part="models"))
        return models

    def get_model(self, name: str) -> ObjectT:
        """Return the description of a model: rows, classes, version."""
        return self._call("GET", f"/v1/models/{name}")

    def create(self, name: str, kind: str = "text", **parameters: Any) -> ObjectT:
        """Create a model of kind "text" or "table"."""
        return self._call("PUT", f"/v1/models/{name}", {"kind": kind, "parameters": parameters})

    def upload(
        self, name: str, content: bytes, content_type: str = "application/octet-stream", target: str | None = None
    ) -> ObjectT:
        """Create a model from a model file, or by training on a table ("text/csv") or a mailbox."""
        query = None if target is None else {"target": target}
        headers = {"Content-Type": content_type}
        return self._call("PUT", f"/v1/models/{name}", content=content, headers=headers, params=query)

    def download(self, name: str) -> BytesT:
        """Return the model as the bytes of a model file."""
        content: BytesT = self.send(Request("GET", f"/v1/models/{name}/file"))
        return content

    def delete(self, name: str, key: str | None = None) -> ObjectT:
        """Delete a model and all its rows."""
        return self._call("DELETE", f"/v1/models/{name}", headers=_make_key(key))

    def predict(self, name: str, rows: RowInput, **options: Any) -> ObjectT:
        """Predict rows; the options are top, costs, reject and certainty."""
        return self._call("POST", f"/v1/models/{name}/predict", _make_body(rows, **options))

    def explain(self, name: str, rows: RowInput) -> ObjectT:
        """Return the evidence for the prediction of each row."""
        return self._call("POST", f"/v1/models/{name}/explain", _make_body(rows))

    def learn(self, name: str, rows: RowInput, labels: LabelInput, key: str | None = None) -> ObjectT:
        """Learn labelled rows; the answer contains the id with which to undo or forget them."""
        return self._call("POST", f"/v1/models/{name}/learn", _make_body(rows, labels), headers=_make_key(key))

    def forget(
        self,
        name: str,
        rows: RowInput | None = None,
        labels: LabelInput | None = None,
        id: int | None = None,
        key: str | None = None,
    ) -> ObjectT:
        """Forget and erase labelled rows, or all rows of an earlier learn call."""
        body = {"id": id} if rows is None else _make_body(rows, labels)
        return self._call("POST", f"/v1/models/{name}/forget", body, headers=_make_key(key))

    def undo(self, name: str, id: int | None = None, key: str | None = None) -> ObjectT:
        """Undo a change; by default the last learn call."""
        return self._call("POST", f"/v1/models/{name}/undo", _make_body(None, id=id), headers=_make_key(key))

    def evaluate(self, name: str, rows: RowInput | None = None, labels: LabelInput | None = None) -> ObjectT:
        """Score the model on labelled rows, or by cross-validation on the rows that it keeps."""
        return self._call("POST", f"/v1/models/{name}/evaluate", _make_body(rows, labels))

    def get_history(self, name: str, before: int | None = None, limit: int = 100, content: bool = False) -> ObjectT:
        """Return the changes of a model, newest first."""
        given = {"limit": limit, "before": before, "content": 1 if content else None}
        query = {name: str(value) for name, value in given.items() if value is not None}
        return self._call("GET", f"/v1/models/{name}/history", params=query)

    def get_receipts(self, name: str, after: int = -1) -> ObjectT:
        """Return the receipts of forgotten rows, oldest first."""
        return self._call("GET", f"/v1/models/{name}/receipts", params={"after": str(after)} if after >= 0 else None)

    def check_ready(self) -> ObjectT:
        """Return the status of the service; raise ServiceError if no model can answer."""
        return self._call("GET", "/ready")

    def _call(self, method: str, path: str, json: Answer | None = None, **options: Any) -> ObjectT:
        answer: ObjectT = self.send(Request(method, path, {"json": json, **options}))
        return answer


class Client(ServiceCalls[Answer, list[Answer], bytes]):
    """Synchronous client of the service.

    Parameters
    ----------
    address : str
        The URL of the service.
    token : str, optional
        A token with the scope that the calls need.
    socket : path, optional
        The Unix socket of the service, instead of its address.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        The number of retries after a lost connection, or while the service is too busy.
    """

    _client: httpx.Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def send(self, request: Request) -> Any:
        if self._client is None:
            transport = None if self.socket is None else httpx.HTTPTransport(uds=self.socket)
            self._client = httpx.Client(transport=transport, **self.options)
        for attempt in range(self.retries + 1):
            try:
                outcome: httpx.Response | Exception = self._client.request(
                    request.method, request.path, **request.options
                )
            except httpx.TransportError as error:
                outcome = error
            delay = self.choose_delay(request, attempt, outcome)
            if delay is None:
                break
            time.sleep(delay)
        return request.read_answer(outcome)


class AsyncClient(ServiceCalls[Awaitable[Answer], Awaitable[list[Answer]], Awaitable[bytes]]):
    """Client of the service for asyncio, with the parameters and calls of `Client`."""

    _client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def send(self, request: Request) -> Any:
        if self._client is None:
            transport = None if self.socket is None else httpx.AsyncHTTPTransport(uds=self.socket)
            self._client = httpx.AsyncClient(transport=transport, **self.options)
        for attempt in range(self.retries + 1):
            try:
                outcome: httpx.Response | Exception = await self._client.request(
                    request.method, request.path, **request.options
                )
            except httpx.TransportError as error:
                outcome = error
            delay = self.choose_delay(request, attempt, outcome)
            if delay is None:
                break
            await asyncio.sleep(delay)
        return request.read_answer(outcome)
