"""A client of ``priory serve``, for programs that wait (`Client`) and for those that do not (`AsyncClient`).

    with Client("http://127.0.0.1:8000", token="...") as service:
        service.create("mail", "text")
        done = service.learn("mail", ["win cash now"], ["spam"])
        service.predict("mail", ["cash prize"])["predictions"][0]["label"]
        service.forget("mail", id=done["id"])

Rows are texts, or dicts of cells by column name. Every change is sent with an idempotency key: after a lost connection
it is sent again, and carried out once. What the service refuses raises `priory.errors.ServiceError`.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import httpx

from priory.errors import ServiceError

__all__ = ["AsyncClient", "Client"]

DEFAULT_ADDRESS = "http://127.0.0.1:8000"
Answer: TypeAlias = dict[str, Any]  # the JSON object that the service answers
CellValue: TypeAlias = str | int | float | bool | None
RowInput: TypeAlias = Sequence[str] | Sequence[Mapping[str, CellValue]]
LabelInput: TypeAlias = Sequence[str | int | bool]


@dataclass(frozen=True)
class _Request:
    """A request before it is sent; one with a key may be sent again."""

    method: str
    path: str
    json: Answer | None = None
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)

    @property
    def may_be_repeated(self) -> bool:
        return self.method == "GET" or "Idempotency-Key" in self.headers


def _name_rows(rows: RowInput, labels: LabelInput | None = None, **options: Any) -> Answer:
    """The body for rows: texts or cells, with labels and options where they are given."""
    key = "texts" if all(isinstance(row, str) for row in rows) else "rows"
    body: Answer = {key: [row if isinstance(row, str) else dict(row) for row in rows]}
    if labels is not None:
        body["labels"] = list(labels)
    return body | {name: value for name, value in options.items() if value is not None}


def _post(name: str, verb: str, body: Answer) -> _Request:
    return _Request("POST", f"/v1/models/{name}/{verb}", body)


def _change(name: str, verb: str, body: Answer, key: str | None) -> _Request:
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    return _Request("POST", f"/v1/models/{name}/{verb}", body, headers=headers)


def _create(name: str, kind: str, parameters: Mapping[str, Any]) -> _Request:
    return _Request("PUT", f"/v1/models/{name}", {"kind": kind, "parameters": dict(parameters)})


def _upload(name: str, content: bytes, content_type: str, target: str | None) -> _Request:
    query = {} if target is None else {"target": target}
    return _Request("PUT", f"/v1/models/{name}", content=content, headers={"Content-Type": content_type}, query=query)


def _forget(name: str, rows: RowInput | None, labels: LabelInput | None, id: int | None, key: str | None) -> _Request:
    return _change(name, "forget", {"id": id} if rows is None else _name_rows(rows, labels), key)


def _undo(name: str, id: int | None, key: str | None) -> _Request:
    return _change(name, "undo", {} if id is None else {"id": id}, key)


def _delete(name: str, key: str | None) -> _Request:
    return _Request("DELETE", f"/v1/models/{name}", headers={"Idempotency-Key": key or uuid.uuid4().hex})


def _history(name: str, before: int | None, limit: int, content: bool) -> _Request:
    given = {"limit": limit, "before": before, "content": 1 if content else None}
    query = {name: str(value) for name, value in given.items() if value is not None}
    return _Request("GET", f"/v1/models/{name}/history", query=query)


class _Connection:
    """What both clients share: how they connect, and what an answer means."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        socket: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
        retries: int = 3,
    ) -> None:
        self._options: dict[str, Any] = {
            "base_url": "http://localhost" if socket is not None else address,
            "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
            "timeout": timeout,
        }
        self._socket = None if socket is None else os.fspath(socket)
        self._n_retries = retries

    def _make_arguments(self, request: _Request) -> dict[str, Any]:
        return {
            "method": request.method,
            "url": request.path,
            "json": request.json,
            "content": request.content,
            "headers": request.headers,
            "params": request.query or None,
        }

    def _choose_delay(self, request: _Request, attempt: int, outcome: httpx.Response | Exception) -> float | None:
        """How long to wait before the request is sent again; None if it is not."""
        is_passing = isinstance(outcome, httpx.TransportError) or (
            isinstance(outcome, httpx.Response) and outcome.status_code == 503
        )
        may_try = is_passing and request.may_be_repeated and attempt < self._n_retries
        return 0.1 * 2**attempt if may_try else None


def _read_answer(response: httpx.Response) -> Any:
    """The answer; an error if the service refused."""
    if response.is_success:
        is_message = response.headers.get("content-type", "").startswith("application/json")
        return response.json() if is_message else response.content
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = response.reason_phrase
    raise ServiceError(response.status_code, detail)


class Client(_Connection):
    """A client that waits for each answer.

    Parameters
    ----------
    address : str
        Where the service is.
    token : str, optional
        A token with the scope that the calls need.
    socket : path, optional
        The Unix socket of the service, instead of its address.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        How often a change or a question is sent again after a lost connection, or while the service is too busy.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def close(self) -> None:
        if "_client" in vars(self):
            self._client.close()

    def _connect(self) -> httpx.Client:
        if "_client" not in vars(self):
            transport = None if self._socket is None else httpx.HTTPTransport(uds=self._socket)
            self._client = httpx.Client(transport=transport, **self._options)
        return self._client

    def _send(self, request: _Request) -> Any:
        for attempt in range(self._n_retries + 1):
            try:
                outcome: httpx.Response | Exception = self._connect().request(**self._make_arguments(request))
            except httpx.TransportError as error:
                outcome = error
            delay = self._choose_delay(request, attempt, outcome)
            if delay is None:
                break
            time.sleep(delay)
        if isinstance(outcome, Exception):
            raise outcome
        return _read_answer(outcome)

    def list_models(self) -> list[Answer]:
        """All models."""
        answer: list[Answer] = self._send(_Request("GET", "/v1/models"))["models"]
        return answer

    def get_model(self, name: str) -> Answer:
        """A model: its rows, classes and version."""
        answer: Answer = self._send(_Request("GET", f"/v1/models/{name}"))
        return answer

    def create(self, name: str, kind: str = "text", **parameters: Any) -> Answer:
        """Create a model of kind "text" or "table"."""
        answer: Answer = self._send(_create(name, kind, parameters))
        return answer

    def upload(
        self, name: str, content: bytes, content_type: str = "application/octet-stream", target: str | None = None
    ) -> Answer:
        """Create a model from a model file, or by training on a table ("text/csv") or a mailbox."""
        answer: Answer = self._send(_upload(name, content, content_type, target))
        return answer

    def download(self, name: str) -> bytes:
        """The model as the bytes of a model file."""
        answer: bytes = self._send(_Request("GET", f"/v1/models/{name}/file"))
        return answer

    def delete(self, name: str, key: str | None = None) -> Answer:
        """Delete a model and all its rows."""
        answer: Answer = self._send(_delete(name, key))
        return answer

    def predict(self, name: str, rows: RowInput, **options: Any) -> Answer:
        """Predict rows; the options are top, costs, reject and certainty."""
        answer: Answer = self._send(_post(name, "predict", _name_rows(rows, **options)))
        return answer

    def explain(self, name: str, rows: RowInput) -> Answer:
        """The evidence behind the prediction of each row."""
        answer: Answer = self._send(_post(name, "explain", _name_rows(rows)))
        return answer

    def learn(self, name: str, rows: RowInput, labels: LabelInput, key: str | None = None) -> Answer:
        """Learn labelled rows; the answer has the id to undo or forget them by."""
        answer: Answer = self._send(_change(name, "learn", _name_rows(rows, labels), key))
        return answer

    def forget(
        self,
        name: str,
        rows: RowInput | None = None,
        labels: LabelInput | None = None,
        id: int | None = None,
        key: str | None = None,
    ) -> Answer:
        """Forget labelled rows, or those of an earlier learning, and erase them."""
        answer: Answer = self._send(_forget(name, rows, labels, id, key))
        return answer

    def undo(self, name: str, id: int | None = None, key: str | None = None) -> Answer:
        """Undo a change; by default the last learning."""
        answer: Answer = self._send(_undo(name, id, key))
        return answer

    def evaluate(self, name: str, rows: RowInput | None = None, labels: LabelInput | None = None) -> Answer:
        """Scores on labelled rows, or on those that the model keeps."""
        answer: Answer = self._send(_post(name, "evaluate", {} if rows is None else _name_rows(rows, labels)))
        return answer

    def audit(self, name: str, rows: RowInput, labels: LabelInput | None = None) -> Answer:
        """Look for leakage in rows."""
        answer: Answer = self._send(_post(name, "audit", _name_rows(rows, labels)))
        return answer

    def get_history(self, name: str, before: int | None = None, limit: int = 100, content: bool = False) -> Answer:
        """The changes of a model, the newest first."""
        answer: Answer = self._send(_history(name, before, limit, content))
        return answer

    def check_ready(self) -> Answer:
        """Whether a model can answer; an error if not."""
        answer: Answer = self._send(_Request("GET", "/ready"))
        return answer


class AsyncClient(_Connection):
    """A client for asyncio; the parameters are those of `Client`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    async def close(self) -> None:
        if "_client" in vars(self):
            await self._client.aclose()

    def _connect(self) -> httpx.AsyncClient:
        if "_client" not in vars(self):
            transport = None if self._socket is None else httpx.AsyncHTTPTransport(uds=self._socket)
            self._client = httpx.AsyncClient(transport=transport, **self._options)
        return self._client

    async def _send(self, request: _Request) -> Any:
        for attempt in range(self._n_retries + 1):
            try:
                outcome: httpx.Response | Exception = await self._connect().request(**self._make_arguments(request))
            except httpx.TransportError as error:
                outcome = error
            delay = self._choose_delay(request, attempt, outcome)
            if delay is None:
                break
            await asyncio.sleep(delay)
        if isinstance(outcome, Exception):
            raise outcome
        return _read_answer(outcome)

    async def list_models(self) -> list[Answer]:
        """All models."""
        answer: list[Answer] = (await self._send(_Request("GET", "/v1/models")))["models"]
        return answer

    async def get_model(self, name: str) -> Answer:
        """A model: its rows, classes and version."""
        answer: Answer = await self._send(_Request("GET", f"/v1/models/{name}"))
        return answer

    async def create(self, name: str, kind: str = "text", **parameters: Any) -> Answer:
        """Create a model of kind "text" or "table"."""
        answer: Answer = await self._send(_create(name, kind, parameters))
        return answer

    async def upload(
        self, name: str, content: bytes, content_type: str = "application/octet-stream", target: str | None = None
    ) -> Answer:
        """Create a model from a model file, or by training on a table ("text/csv") or a mailbox."""
        answer: Answer = await self._send(_upload(name, content, content_type, target))
        return answer

    async def download(self, name: str) -> bytes:
        """The model as the bytes of a model file."""
        answer: bytes = await self._send(_Request("GET", f"/v1/models/{name}/file"))
        return answer

    async def delete(self, name: str, key: str | None = None) -> Answer:
        """Delete a model and all its rows."""
        answer: Answer = await self._send(_delete(name, key))
        return answer

    async def predict(self, name: str, rows: RowInput, **options: Any) -> Answer:
        """Predict rows; the options are top, costs, reject and certainty."""
        answer: Answer = await self._send(_post(name, "predict", _name_rows(rows, **options)))
        return answer

    async def explain(self, name: str, rows: RowInput) -> Answer:
        """The evidence behind the prediction of each row."""
        answer: Answer = await self._send(_post(name, "explain", _name_rows(rows)))
        return answer

    async def learn(self, name: str, rows: RowInput, labels: LabelInput, key: str | None = None) -> Answer:
        """Learn labelled rows; the answer has the id to undo or forget them by."""
        answer: Answer = await self._send(_change(name, "learn", _name_rows(rows, labels), key))
        return answer

    async def forget(
        self,
        name: str,
        rows: RowInput | None = None,
        labels: LabelInput | None = None,
        id: int | None = None,
        key: str | None = None,
    ) -> Answer:
        """Forget labelled rows, or those of an earlier learning, and erase them."""
        answer: Answer = await self._send(_forget(name, rows, labels, id, key))
        return answer

    async def undo(self, name: str, id: int | None = None, key: str | None = None) -> Answer:
        """Undo a change; by default the last learning."""
        answer: Answer = await self._send(_undo(name, id, key))
        return answer

    async def evaluate(self, name: str, rows: RowInput | None = None, labels: LabelInput | None = None) -> Answer:
        """Scores on labelled rows, or on those that the model keeps."""
        answer: Answer = await self._send(_post(name, "evaluate", {} if rows is None else _name_rows(rows, labels)))
        return answer

    async def audit(self, name: str, rows: RowInput, labels: LabelInput | None = None) -> Answer:
        """Look for leakage in rows."""
        answer: Answer = await self._send(_post(name, "audit", _name_rows(rows, labels)))
        return answer

    async def get_history(
        self, name: str, before: int | None = None, limit: int = 100, content: bool = False
    ) -> Answer:
        """The changes of a model, the newest first."""
        answer: Answer = await self._send(_history(name, before, limit, content))
        return answer

    async def check_ready(self) -> Answer:
        """Whether a model can answer; an error if not."""
        answer: Answer = await self._send(_Request("GET", "/ready"))
        return answer
