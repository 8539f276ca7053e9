"""Handlers of the API: one function for each route."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy import ndarray as Array
from starlette.responses import Response

import priory
from priory.errors import DataError, PrioryError, ServiceError
from priory.evaluation.decisions import ABSTAIN, Costs, decide
from priory.evaluation.scores import Scores
from priory.service import changes, messages
from priory.service.journal import Event, ModelEntry
from priory.service.labelled_rows import ModelKind, RowLabel, convert_to_input, decode_row_batch
from priory.service.mail_filter import check_label
from priory.service.model_store import ModelStore, ServedModel, make_estimator
from priory.workflows.model_files import load_classifier

if TYPE_CHECKING:
    from priory.workflows.model_files import TableOrTextClassifier

MAX_EVENTS_PER_PAGE = 1000
MAX_LEDGER_CELLS = 2_000_000  # words x classes of one request, at about 80 bytes each

_encoder = msgspec.json.Encoder()


# -- about the service -----------------------------------------------------------------------------------------------


async def get_health(call: messages.Call) -> messages.StatusAnswer:
    """Report that the process is alive."""
    return messages.StatusAnswer("alive", len(call.service.store.models))


async def get_readiness(call: messages.Call) -> messages.StatusAnswer:
    """Report that a model is fitted and the disk can be written."""
    await asyncio.to_thread(call.service.check_ready)
    return messages.StatusAnswer("ready", len(call.service.store.models))


async def get_metrics(call: messages.Call) -> Response:
    """Return the figures of the service for Prometheus."""
    return Response(call.service.metrics.format(), media_type="text/plain; version=0.0.4")


async def get_openapi(call: messages.Call) -> Response:
    """Return this description."""
    return Response(call.service.openapi, media_type="application/json")


# -- models ----------------------------------------------------------------------------------------------------------


async def list_models(call: messages.Call) -> messages.ModelList:
    """List the models."""
    return messages.ModelList([describe_model(model) for _, model in sorted(call.service.store.models.items())])


async def get_model(call: messages.Call) -> messages.ModelInfo:
    """Describe a model: its rows, classes, columns and version."""
    return describe_model(call.model)


async def delete_model(call: messages.Call) -> changes.ChangeAnswer:
    """Delete a model and erase all its rows."""
    return await call.change(changes.DeleteRequest)


async def download_model(call: messages.Call) -> Response:
    """Return the model as a file for ``priory.load`` and the command line."""
    model = call.model
    body = await call.run(call.service.pack_model, model)
    # names of models consist of letters, digits, - and _, so no quoting is needed
    headers = {"Content-Disposition": f'attachment; filename="{model.entry.name}.priory"', "ETag": f'"{model.version}"'}
    return Response(body, media_type="application/octet-stream", headers=headers)


def describe_model(model: ServedModel) -> messages.ModelInfo:
    """Return the description of a model."""
    estimator, entry = model.estimator, model.entry
    classes = estimator.classes_.tolist() if model.is_fitted else []
    counts = estimator.class_count_.tolist() if model.is_fitted else []
    columns: dict[str, str] = {}
    if model.is_fitted:
        columns = {"text": "text"} if entry.kind == "text" else dict(estimator.column_kinds_)
    parameters = msgspec.json.decode(entry.parameters)
    return messages.ModelInfo(entry.name, entry.kind, model.version, model.n_rows, classes, counts, columns, parameters)


# -- answers ---------------------------------------------------------------------------------------------------------


async def handle_predict(call: messages.Call) -> Response:
    """Predict rows: the probability of every class, or the class of lowest expected cost."""
    message = await call.read_rows_message(messages.PredictMessage)
    rows, wants_lines = call.read_rows(message), call.wants_lines

    # runs in the prediction thread, so that encoding does not block the event loop
    def finish(model: ServedModel, probabilities: Array) -> bytes:
        predictions = choose_answers(probabilities, model.estimator.classes_, message)
        call.service.metrics.count_traffic(call.name, "answer", [str(answer.label) for answer in predictions])
        if wants_lines:
            return _encoder.encode_lines(predictions)
        return _encoder.encode(messages.PredictAnswer(call.name, model.version, predictions))

    body = await call.service.batcher.predict(call.name, rows, finish)
    call.service.metrics.count("priory_rows_total", len(rows), operation="predict")
    return Response(body, media_type=messages.LINES_TYPE if wants_lines else messages.MESSAGE_TYPE)


def choose_answers(probabilities: Array, classes: Array, message: messages.PredictMessage) -> list[messages.Prediction]:
    """Return the answer for each row (None: abstain) and the probabilities of the most probable classes."""
    labels = classes.tolist()
    names = [str(label) for label in labels]
    rows = probabilities.tolist()
    orders = np.argsort(-probabilities, axis=1, kind="stable").tolist()  # (rows, classes), most probable first
    if message.costs is None and message.reject is None and message.certainty is None:
        chosen = [labels[order[0]] for order in orders]
    else:
        named = {(truth, answer): c for truth, row in (message.costs or {}).items() for answer, c in row.items()}
        costs = Costs(named).tabulate(names, np.ones(len(names))).mistakes  # (true, answer)
        decided = decide(probabilities, classes, cost=costs, reject=message.reject, certainty=message.certainty)
        chosen = [None if label is ABSTAIN else label for label in decided.labels]
    return [
        messages.Prediction(label, row[order[0]], {names[c]: row[c] for c in order[: message.top]})
        for label, row, order in zip(chosen, rows, orders, strict=True)
    ]


async def handle_explain(call: messages.Call) -> messages.ExplainAnswer:
    """Explain each row by its ledger; for texts with the position of each word."""
    message, model = await call.read_rows_message(messages.RowsMessage), call.model
    rows = call.read_rows(message)
    model.check_fitted()
    if len(rows) > messages.MAX_EXPLAINED_ROWS:
        raise DataError(f"explain takes up to {messages.MAX_EXPLAINED_ROWS} rows at a time")
    # an upper bound before any work: the ledger has a line for each distinct word and class
    n_words = sum(len(set(re.findall(r"\w+", str(row)))) for row in rows.rows)
    if n_words * len(model.estimator.classes_) > MAX_LEDGER_CELLS:
        raise ServiceError(413, "the explanation would have too many lines (words x classes); send less text")

    def explain_rows() -> list[dict[str, Any]]:
        ledgers = model.estimator.explain(convert_to_input(rows, model.estimator))
        return [ledger.to_dict() for ledger in ledgers]

    return messages.ExplainAnswer(call.name, model.version, await call.run(explain_rows))


async def handle_evaluate(call: messages.Call) -> messages.EvaluateAnswer:
    """Score a model, with intervals, on the given rows or by cross-validation on the rows that it keeps."""
    message, model = await call.read_rows_message(messages.EvaluateMessage), call.model
    model.check_fitted()
    estimator = model.estimator
    if isinstance(message.labels, UnsetType):
        scores = await call.run(estimator.evaluate)
        return messages.EvaluateAnswer(call.name, model.version, int(model.n_rows), scores.to_dict())
    rows = call.read_rows(message, message.labels)
    labels = rows.targets
    model.check_row_count(len(rows))

    def judge() -> Scores:
        table = convert_to_input(rows, estimator)
        if message.learned:
            return estimator.evaluate(table, labels)
        unknown = set(labels) - set(estimator.classes_.tolist())
        if unknown:
            raise DataError(f"the model has no class {sorted(map(str, unknown))[0]!r}")
        return Scores.of(labels, estimator.predict_log_proba(table), estimator.classes_, logs=True)

    scores = await call.run(judge)
    return messages.EvaluateAnswer(call.name, model.version, len(rows), scores.to_dict())


async def get_history(call: messages.Call) -> messages.HistoryAnswer:
    """Return the changes of a model, newest first."""
    model = call.model
    before = call.read_query_number("before", 2**53, 2**53)
    limit = call.read_query_number("limit", 100, MAX_EVENTS_PER_PAGE)
    with_content = "content" in call.request.query_params
    if with_content and not call.identity.may("learn"):
        raise ServiceError(403, "the content of the history needs the scope learn")
    journal = call.service.store.reader

    def read() -> list[messages.EventInfo]:
        events = journal.read_events(model.entry.number, before, limit, True, with_rows=with_content)
        return [_describe_event(event) for event in events]

    events = await call.run(read)
    # a full page: there may be older events
    last = events[-1].id if len(events) == limit and limit else None
    return messages.HistoryAnswer(call.name, model.version, events, last)


async def get_receipts(call: messages.Call) -> messages.ReceiptsAnswer:
    """Return the receipts of a model; they do not show the rows."""
    model, after = call.model, call.read_query_number("after", -1, 2**53)
    read = call.service.store.reader.read_receipts
    bodies = await call.run(read, model.entry.number, after, MAX_EVENTS_PER_PAGE)
    return messages.ReceiptsAnswer(call.name, [msgspec.json.decode(body) for body in bodies])


def _describe_event(event: Event) -> messages.EventInfo:
    content: list[object] | UnsetType = UNSET
    labels: list[RowLabel] | UnsetType = UNSET
    if event.body is not None:
        rows = decode_row_batch(event.body)
        content, labels = list(rows.rows), list(rows.labels or ())
    return messages.EventInfo(
        event.number,
        event.operation,
        event.n_rows,
        event.teacher,
        datetime.fromtimestamp(event.time, UTC).isoformat(timespec="milliseconds"),
        event.target,
        event.undone_by,
        event.erasure != "no",
        content,  # type: ignore[arg-type]
        labels,
    )


# -- changes ---------------------------------------------------------------------------------------------------------


async def handle_learn(call: messages.Call) -> changes.ChangeAnswer:
    """Learn labelled rows; the answer is sent once they are on disk. A mail with a new label needs ``new_class``."""
    message = await call.read_rows_message(messages.LabelledMessage)
    rows = call.read_rows(message, message.labels)
    # a mistyped label on the command line of a mail filter must not create a class
    if call.content_type == messages.MAIL_TYPE and "new_class" not in call.request.query_params:
        check_label(str(message.labels[0]), describe_model(call.model).classes)
    return await call.change(changes.LearnRequest, rows=rows)


async def handle_forget(call: messages.Call) -> changes.ChangeAnswer:
    """Forget rows as if they had never been learned, and erase their content."""
    message = await call.read_rows_message(messages.ForgetMessage)
    if not isinstance(message.id, UnsetType):
        if not (message.texts is message.rows is message.labels is UNSET):
            raise DataError("give an id, or rows with their labels, not both")
        return await call.change(changes.ForgetRequest, target=message.id)
    if isinstance(message.labels, UnsetType):
        raise DataError("give the labels of the rows, or the id that learn answered")
    return await call.change(changes.ForgetRequest, rows=call.read_rows(message, message.labels))


async def handle_undo(call: messages.Call) -> changes.ChangeAnswer:
    """Undo an earlier learn or undo event."""
    message = await call.read_message(messages.UndoMessage)
    target = None if isinstance(message.id, UnsetType) else message.id
    return await call.change(changes.UndoRequest, target=target)


MODEL_FILE_TYPE = "application/octet-stream"
SUFFIX_BY_TYPE = {  # formats to train on, with the suffix of the temporary file
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/x-ndjson": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
    "application/mbox": ".mbox",
}


async def create_model_handler(call: messages.Call) -> Response:
    """Create a model; an existing model with the same name and parameters is left unchanged."""
    if messages.MODEL_NAME_PATTERN.fullmatch(call.name) is None:
        raise DataError("the name of a model has 1 to 64 letters, digits, - or _")
    body = await call.request.body()
    content_type = call.content_type or (messages.MESSAGE_TYPE if body.lstrip()[:1] in (b"{", b"") else MODEL_FILE_TYPE)
    known = call.service.store.models.get(call.name)
    if content_type == messages.MESSAGE_TYPE:
        message = messages.decode_message(body, messages.CreateMessage)
        # raises for unknown parameters before anything is written
        make_estimator(message.kind, message.parameters)
        parameters = msgspec.json.encode(message.parameters, order="deterministic")
        if known is not None and (known.entry.kind, known.entry.parameters) == (message.kind, parameters):
            return _make_response(call, known, 200)
        request = changes.CreateRequest(call.name, call.identity.name, kind=message.kind, parameters=parameters)
    elif content_type == MODEL_FILE_TYPE or content_type in SUFFIX_BY_TYPE:
        base = await call.run(_read_upload, call, body, content_type)
        request = changes.CreateRequest(
            call.name, call.identity.name, kind=base.entry.kind, parameters=base.entry.parameters, base=base
        )
    else:
        raise ServiceError(415, f"give one of {', '.join([messages.MESSAGE_TYPE, MODEL_FILE_TYPE, *SUFFIX_BY_TYPE])}")
    await call.service.change(request)
    return _make_response(call, call.model, 201)


def _make_response(call: messages.Call, model: ServedModel, status: int) -> Response:
    headers = {"Location": f"/v1/models/{model.entry.name}"} if status == 201 else None
    return Response(msgspec.json.encode(describe_model(model)), status, headers, messages.MESSAGE_TYPE)


@contextmanager
def write_upload(store: ModelStore, body: bytes, name: str) -> Iterator[Path]:
    """Write an upload to a temporary file with the suffix of ``name``; errors show ``name`` instead of its path."""
    with tempfile.TemporaryDirectory(dir=store.scratch_folder) as folder:
        # the name of the upload is not used as a path, except for its suffix
        path = Path(folder, f"upload{Path(name).suffix.lower()}")
        path.write_bytes(body)
        try:
            yield path
        except (PrioryError, ValueError, TypeError) as error:
            status = 422 if messages.find_status(error) == 500 else messages.find_status(error)
            raise ServiceError(status, str(error).replace(str(path), name)) from None


def _read_upload(call: messages.Call, body: bytes, content_type: str) -> ServedModel:
    """Load a model from an uploaded file, or train one on it."""
    name = "upload" + SUFFIX_BY_TYPE.get(content_type, ".priory")
    with write_upload(call.service.store, body, name) as path:
        if content_type == MODEL_FILE_TYPE:
            estimator = load_classifier(path)
        else:
            estimator = priory.workflows.train(path, target=call.request.query_params.get("target"), judge=False).model
    return make_base(call.name, estimator)


def make_base(name: str, estimator: TableOrTextClassifier) -> ServedModel:
    """A model that begins as a file."""
    estimator.__dict__.pop("notes", None)
    kind: ModelKind = "text" if isinstance(estimator, priory.TextClassifier) else "table"
    # for display: values that JSON does not have are shown by their repr
    parameters = msgspec.json.encode(estimator.get_params(), enc_hook=repr, order="deterministic")
    return ServedModel(ModelEntry(0, name, kind, parameters, True), estimator, 0)
