"""Handlers of the API: one function for each route."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from starlette.responses import Response

import priory
from priory.core.typing import Array, ReturnT
from priory.errors import DataError, ServiceError
from priory.evaluation.decisions import ABSTAIN, decide
from priory.evaluation.scores import Scores
from priory.model.ledger_output import convert_ledger_to_dict
from priory.service.changes import (
    ChangeAnswer,
    DeleteRequest,
    ForgetRequest,
    LearnRequest,
    UndoRequest,
)
from priory.service.journal import Event
from priory.service.labelled_rows import RowLabel, convert_to_input, decode_row_batch
from priory.service.mail_filter import check_label
from priory.service.messages import (
    MAX_EXPLAINED_ROWS,
    AuditAnswer,
    AuditMessage,
    EvaluateAnswer,
    EvaluateMessage,
    EventInfo,
    ExplainAnswer,
    ForgetMessage,
    HistoryAnswer,
    LabelledMessage,
    ModelInfo,
    ModelList,
    PredictAnswer,
    Prediction,
    PredictMessage,
    RowsMessage,
    StatusAnswer,
    UndoMessage,
)
from priory.service.model_store import ServedModel
from priory.service.request_reading import LINES_TYPE, MAIL_TYPE, MESSAGE_TYPE, Call

MAX_EVENTS_PER_PAGE = 1000
MAX_LEDGER_CELLS = 2_000_000  # words x classes of one request, at about 80 bytes each
SAFE_PAGE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"}

_encoder = msgspec.json.Encoder()


# -- about the service -----------------------------------------------------------------------------------------------


async def get_health(call: Call) -> StatusAnswer:
    """Report that the process is alive."""
    return StatusAnswer("alive", len(call.service.store.models))


async def get_readiness(call: Call) -> StatusAnswer:
    """Report that a model is fitted and the disk can be written."""
    await asyncio.to_thread(call.service.check_ready)
    return StatusAnswer("ready", len(call.service.store.models))


async def get_metrics(call: Call) -> Response:
    return Response(call.service.metrics.format(), media_type="text/plain; version=0.0.4")


async def get_openapi(call: Call) -> Response:
    return Response(call.service.openapi, media_type="application/json")


# -- models ----------------------------------------------------------------------------------------------------------


async def list_models(call: Call) -> ModelList:
    return ModelList([describe_model(model) for _, model in sorted(call.service.store.models.items())])


async def get_model(call: Call) -> ModelInfo:
    return describe_model(call.model)


async def delete_model(call: Call) -> ChangeAnswer:
    """Delete a model and erase all its rows."""
    request = DeleteRequest(call.name, call.identity.name, call.key, await call.hash_request())
    return await call.service.change(request)


async def download_model(call: Call) -> Response:
    """Return the model as a file for ``priory.load`` and the command line."""
    model = call.model
    body = await _run_in_thread(call, call.service.pack_model, model)
    # names of models consist of letters, digits, - and _, so no quoting is needed
    headers = {"Content-Disposition": f'attachment; filename="{model.entry.name}.priory"', "ETag": f'"{model.version}"'}
    return Response(body, media_type="application/octet-stream", headers=headers)


def describe_model(model: ServedModel) -> ModelInfo:
    """Return the description of a model."""
    estimator, entry = model.estimator, model.entry
    classes = estimator.classes_.tolist() if model.is_fitted else []
    counts = estimator.class_count_.tolist() if model.is_fitted else []
    columns: dict[str, str] = {}
    if model.is_fitted:
        columns = {"text": "text"} if entry.kind == "text" else dict(estimator.column_kinds_)
    parameters = msgspec.json.decode(entry.parameters)
    return ModelInfo(entry.name, entry.kind, model.version, model.n_rows, classes, counts, columns, parameters)


# -- answers ---------------------------------------------------------------------------------------------------------


async def handle_predict(call: Call) -> Response:
    """Predict rows: the probability of every class, or the class of lowest expected cost."""
    message = await call.read_rows_message(PredictMessage)
    rows, wants_lines = call.read_rows(message), call.wants_lines

    # runs in the prediction thread, so that encoding does not block the event loop
    def finish(model: ServedModel, probabilities: Array) -> bytes:
        predictions = choose_answers(probabilities, model.estimator.classes_, message)
        if wants_lines:
            return _encoder.encode_lines(predictions)
        return _encoder.encode(PredictAnswer(call.name, model.version, predictions))

    body = await call.service.batcher.predict(call.name, rows, finish)
    call.service.metrics.count("priory_rows_total", len(rows), operation="predict")
    return Response(body, media_type=LINES_TYPE if wants_lines else MESSAGE_TYPE)


def choose_answers(probabilities: Array, classes: Array, message: PredictMessage) -> list[Prediction]:
    """Return the answer for each row (None: abstain) and the probabilities of the most probable classes."""
    labels = classes.tolist()
    names = [str(label) for label in labels]
    rows = probabilities.tolist()
    orders = np.argsort(-probabilities, axis=1, kind="stable").tolist()  # (rows, classes), most probable first
    if message.costs is None and message.reject is None and message.certainty is None:
        chosen = [labels[order[0]] for order in orders]
    else:
        costs = _read_costs(message.costs, names)
        decided = decide(probabilities, classes, cost=costs, reject=message.reject, certainty=message.certainty)
        chosen = [None if label is ABSTAIN else label for label in decided.labels]
    return [
        Prediction(label, row[order[0]], {names[c]: row[c] for c in order[: message.top]})
        for label, row, order in zip(chosen, rows, orders, strict=True)
    ]


def _read_costs(costs: dict[str, dict[str, float]] | None, names: list[str]) -> Array | None:
    if costs is None:
        return None
    unknown = [name for name in [*costs, *(answer for row in costs.values() for answer in row)] if name not in names]
    if unknown:
        raise DataError(f"costs: the model has no class {unknown[0]!r}")
    return np.array([[costs.get(i, {}).get(j, float(i != j)) for j in names] for i in names])  # (true, answer)


async def handle_explain(call: Call) -> ExplainAnswer:
    """Explain each row by its ledger; for texts with the position of each word."""
    message, model = await call.read_rows_message(RowsMessage), call.model
    rows = call.read_rows(message)
    model.check_fitted()
    if len(rows) > MAX_EXPLAINED_ROWS:
        raise DataError(f"explain takes up to {MAX_EXPLAINED_ROWS} rows at a time")
    # an upper bound before any work: the ledger has a line for each distinct word and class
    n_words = sum(len(set(re.findall(r"\w+", str(row)))) for row in rows.rows)
    if n_words * len(model.estimator.classes_) > MAX_LEDGER_CELLS:
        raise ServiceError(413, "the explanation would have too many lines (words x classes); send less text")

    def explain_rows() -> list[dict[str, object]]:
        ledgers = model.estimator.explain(convert_to_input(rows, model.estimator))
        return [convert_ledger_to_dict(ledger) for ledger in ledgers]  # type: ignore[misc]

    return ExplainAnswer(call.name, model.version, await _run_in_thread(call, explain_rows))


async def handle_evaluate(call: Call) -> EvaluateAnswer:
    """Score a model, with intervals, on the given rows or by cross-validation on the rows that it keeps."""
    message, model = await call.read_rows_message(EvaluateMessage), call.model
    model.check_fitted()
    estimator = model.estimator
    if isinstance(message.labels, UnsetType):
        scores = await _run_in_thread(call, estimator.evaluate)
        return EvaluateAnswer(call.name, model.version, int(model.n_rows), scores.to_dict())
    rows, labels = call.read_rows(message, message.labels), list(message.labels)
    model.check_row_count(len(rows))

    def judge() -> Scores:
        table = convert_to_input(rows, estimator)
        if message.learned:
            return estimator.evaluate(table, labels)
        unknown = set(labels) - set(estimator.classes_.tolist())
        if unknown:
            raise DataError(f"the model has no class {sorted(map(str, unknown))[0]!r}")
        return Scores.of(labels, estimator.predict_log_proba(table), estimator.classes_, logs=True)

    scores = await _run_in_thread(call, judge)
    return EvaluateAnswer(call.name, model.version, len(rows), scores.to_dict())


async def handle_audit(call: Call) -> AuditAnswer:
    """Search rows for leakage."""
    message, model = await call.read_rows_message(AuditMessage), call.model
    rows = call.read_rows(message, message.labels)
    test = None if isinstance(message.test, UnsetType) else call.read_rows(message.test)

    def look() -> list[dict[str, object]]:
        train = convert_to_input(rows, model.estimator)
        other = None if test is None else convert_to_input(test, model.estimator)
        labels = None if rows.labels is None else list(rows.labels)
        return json.loads(priory.audit(train, other, labels, message.groups, message.time).to_json())

    found = await _run_in_thread(call, look)
    return AuditAnswer(found if isinstance(found, list) else [found])


async def handle_report(call: Call) -> Response:
    """Return an HTML report of the model on labelled rows that it has not learned."""
    message, model = await call.read_rows_message(LabelledMessage), call.model
    rows = call.read_rows(message, message.labels)
    model.check_row_count(len(rows))

    def write() -> str:
        from priory.export import html_report

        table, labels = convert_to_input(rows, model.estimator), list(rows.labels or ())
        subject = html_report.ReportSubject(f"{len(rows)} rows", "label", model.entry.name)
        return str(html_report.report(model.estimator, table, labels, learned=False, subject=subject).html)

    page = await _run_in_thread(call, write)
    return Response(page, media_type="text/html; charset=utf-8", headers=SAFE_PAGE_HEADERS)


async def get_history(call: Call) -> HistoryAnswer:
    """Return the changes of a model, newest first."""
    model = call.model
    before = call.read_query_number("before", 2**53, 2**53)
    limit = call.read_query_number("limit", 100, MAX_EVENTS_PER_PAGE)
    with_content = "content" in call.request.query_params
    if with_content and not call.identity.may("learn"):
        raise ServiceError(403, "the content of the history needs the scope learn")
    store = call.service.store

    def read() -> list[EventInfo]:
        # one read connection is shared by all threads
        with store.reader_lock:
            events = store.reader.read_events(model.entry.number, before, limit, True, with_rows=with_content)
        return [_describe_event(event) for event in events]

    events = await _run_in_thread(call, read)
    # a full page: there may be older events
    last = events[-1].id if len(events) == limit and limit else None
    return HistoryAnswer(call.name, model.version, events, last)


def _describe_event(event: Event) -> EventInfo:
    content: list[object] | UnsetType = UNSET
    labels: list[RowLabel] | UnsetType = UNSET
    if event.body is not None:
        rows = decode_row_batch(event.body)
        content, labels = list(rows.rows), list(rows.labels or ())
    return EventInfo(
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


async def handle_learn(call: Call) -> ChangeAnswer:
    """Learn labelled rows; the answer is sent once they are on disk. A mail with a new label needs ``new_class``."""
    message = await call.read_rows_message(LabelledMessage)
    rows = call.read_rows(message, message.labels)
    # a mistyped label on the command line of a mail filter must not create a class
    if call.content_type == MAIL_TYPE and "new_class" not in call.request.query_params:
        check_label(str(message.labels[0]), describe_model(call.model).classes)
    request = LearnRequest(call.name, call.identity.name, call.key, await call.hash_request(), rows=rows)
    return await call.service.change(request)


async def handle_forget(call: Call) -> ChangeAnswer:
    """Forget rows as if they had never been learned, and erase their content."""
    message = await call.read_rows_message(ForgetMessage)
    base = call.name, call.identity.name, call.key, await call.hash_request()
    if not isinstance(message.id, UnsetType):
        if not (message.texts is message.rows is message.labels is UNSET):
            raise DataError("give an id, or rows with their labels, not both")
        return await call.service.change(ForgetRequest(*base, target=message.id))
    if isinstance(message.labels, UnsetType):
        raise DataError("give the labels of the rows, or the id that learn answered")
    return await call.service.change(ForgetRequest(*base, rows=call.read_rows(message, message.labels)))


async def handle_undo(call: Call) -> ChangeAnswer:
    """Undo an earlier learn or undo event."""
    message = await call.read_message(UndoMessage)
    target = None if isinstance(message.id, UnsetType) else message.id
    request = UndoRequest(call.name, call.identity.name, call.key, await call.hash_request(), target=target)
    return await call.service.change(request)


async def _run_in_thread(call: Call, function: Callable[..., ReturnT], *arguments: object) -> ReturnT:
    return await call.service.run_slowly(function, *arguments)
