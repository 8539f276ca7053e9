"""Client of ``priory serve``.

    with Client("http://127.0.0.1:8000", token="...") as service:
        service.create("mail", "text")
        done = service.learn("mail", ["win cash now"], ["spam"])
        service.predict("mail", ["cash prize"])["predictions"][0]["label"]
        service.forget("mail", id=done["id"])

Rows are texts, or dicts of cells by column name. Every change has an idempotency key, so it can be repeated after a
lost connection and is carried out once. A rejected request raises `priory.errors.ServiceError`.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

import httpx

from priory.errors import ServiceError

DEFAULT_ADDRESS = "http://127.0.0.1:8000"
Answer: TypeAlias = dict[str, Any]  # a JSON object
CellValue: TypeAlias = str | int | float | bool | None
RowInput: TypeAlias = Sequence[str] | Sequence[Mapping[str, CellValue]]
LabelInput: TypeAlias = Sequence[str | int | bool]


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


class Client:
    """Client of the service.

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

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        socket: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
        retries: int = 3,
    ) -> None:
        self.retries = retries
        self._client = httpx.Client(
            base_url=address if socket is None else "http://localhost",
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            timeout=timeout,
            transport=None if socket is None else httpx.HTTPTransport(uds=os.fspath(socket)),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def send(self, method: str, path: str, json: Answer | None = None, **options: Any) -> Any:
        """Send a request, with the options of `httpx.Client.request`, and read the answer.

        After a lost connection, or while the service is too busy, a request that may be repeated is sent again, after
        longer and longer pauses. A rejected request raises `priory.errors.ServiceError`.
        """
        may_be_repeated = method == "GET" or "Idempotency-Key" in options.get("headers", {})
        for attempt in range(self.retries + 1):
            try:
                outcome: httpx.Response | Exception = self._client.request(method, path, json=json, **options)
            except httpx.TransportError as error:
                outcome = error
            is_passing = isinstance(outcome, Exception) or outcome.status_code == 503
            if not (is_passing and may_be_repeated and attempt < self.retries):
                break
            time.sleep(0.1 * 2**attempt)
        return _read_answer(outcome)

    def list_models(self) -> list[Answer]:
        """Return the descriptions of all models."""
        return self.send("GET", "/v1/models")["models"]

    def get_model(self, name: str) -> Answer:
        """Return the description of a model: rows, classes, version."""
        return self.send("GET", f"/v1/models/{name}")

    def create(self, name: str, kind: str = "text", **parameters: Any) -> Answer:
        """Create a model of kind "text" or "table"."""
        return self.send("PUT", f"/v1/models/{name}", {"kind": kind, "parameters": parameters})

    def upload(
        self, name: str, content: bytes, content_type: str = "application/octet-stream", target: str | None = None
    ) -> Answer:
        """Create a model from a model file, or by training on a table ("text/csv") or a mailbox."""
        query = None if target is None else {"target": target}
        headers = {"Content-Type": content_type}
        return self.send("PUT", f"/v1/models/{name}", content=content, headers=headers, params=query)

    def download(self, name: str) -> bytes:
        """Return the model as the bytes of a model file."""
        return self.send("GET", f"/v1/models/{name}/file")

    def delete(self, name: str, key: str | None = None) -> Answer:
        """Delete a model and all its rows."""
        return self.send("DELETE", f"/v1/models/{name}", headers=_make_key(key))

    def predict(self, name: str, rows: RowInput, **options: Any) -> Answer:
        """Predict rows; the options are top, costs, reject and certainty."""
        return self.send("POST", f"/v1/models/{name}/predict", _make_body(rows, **options))

    def explain(self, name: str, rows: RowInput) -> Answer:
        """Return the evidence for the prediction of each row."""
        return self.send("POST", f"/v1/models/{name}/explain", _make_body(rows))

    def learn(self, name: str, rows: RowInput, labels: LabelInput, key: str | None = None) -> Answer:
        """Learn labelled rows; the answer contains the id with which to undo or forget them."""
        return self.send("POST", f"/v1/models/{name}/learn", _make_body(rows, labels), headers=_make_key(key))

    def forget(
        self,
        name: str,
        rows: RowInput | None = None,
        labels: LabelInput | None = None,
        id: int | None = None,
        key: str | None = None,
    ) -> Answer:
        """Forget and erase labelled rows, or all rows of an earlier learn call."""
        body = {"id": id} if rows is None else _make_body(rows, labels)
        return self.send("POST", f"/v1/models/{name}/forget", body, headers=_make_key(key))

    def undo(self, name: str, id: int | None = None, key: str | None = None) -> Answer:
        """Undo a change; by default the last learn call."""
        return self.send("POST", f"/v1/models/{name}/undo", _make_body(None, id=id), headers=_make_key(key))

    def evaluate(self, name: str, rows: RowInput | None = None, labels: LabelInput | None = None) -> Answer:
        """Score the model on labelled rows, or by cross-validation on the rows that it keeps."""
        return self.send("POST", f"/v1/models/{name}/evaluate", _make_body(rows, labels))

    def get_history(self, name: str, before: int | None = None, limit: int = 100, content: bool = False) -> Answer:
        """Return the changes of a model, newest first."""
        given = {"limit": limit, "before": before, "content": 1 if content else None}
        query = {name: str(value) for name, value in given.items() if value is not None}
        return self.send("GET", f"/v1/models/{name}/history", params=query)

    def get_receipts(self, name: str, after: int = -1) -> Answer:
        """Return the receipts of forgotten rows, oldest first."""
        return self.send("GET", f"/v1/models/{name}/receipts", params={"after": str(after)} if after >= 0 else None)

    def check_ready(self) -> Answer:
        """Return the status of the service; raise ServiceError if no model can answer."""
        return self.send("GET", "/ready")


def _read_answer(outcome: httpx.Response | Exception) -> Any:
    """Return the answer; raise the connection error, or ServiceError if the service rejected the request."""
    if isinstance(outcome, Exception):
        raise outcome
    if outcome.is_success:
        is_message = outcome.headers.get("content-type", "").startswith("application/json")
        return outcome.json() if is_message else outcome.content
    try:
        detail = str(outcome.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = outcome.reason_phrase
    raise ServiceError(outcome.status_code, detail)
