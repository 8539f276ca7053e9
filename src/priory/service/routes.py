"""The table of routes: every address of the API with what it needs and returns, and the OpenAPI description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from priory import __version__
from priory.service import handlers, messages
from priory.service.changes import ChangeAnswer
from priory.service.handlers import MODEL_FILE_TYPE, SUFFIX_BY_TYPE, create_model_handler
from priory.service.messages import (
    LINES_TYPE,
    MAIL_TYPE,
    MAX_KEY_LENGTH,
    MESSAGE_TYPE,
    MODEL_NAME_PATTERN,
    PROBLEM_TYPE,
    Call,
    LineMessage,
    ProblemDetails,
)
from priory.service.tokens import Scope

Handler = Callable[[Call], Awaitable[msgspec.Struct | Response]]
ROW_TYPES = {LINES_TYPE: LineMessage, MAIL_TYPE: bytes}


@dataclass(frozen=True)
class QueryParameter:
    """A parameter in the query string."""

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class ApiRoute:
    """One route: method, path, required scope, and types of request and answer."""

    method: str
    path: str
    handler: Handler
    summary: str
    scope: Scope | None = "read"  # None: no token needed
    message: type | None = None
    other_messages: dict[str, type] | None = None  # by content type, besides JSON
    answer: type | None = None
    answer_type: str = MESSAGE_TYPE
    status: int = 200
    errors: tuple[int, ...] = ()  # besides 400 and 503, which every route may return
    query: tuple[QueryParameter, ...] = ()
    takes_key: bool = False  # the header Idempotency-Key
    needs_body: bool = True


MODEL_PATH = "/v1/models/{name}"
ROW_ERRORS = (400, 404, 409, 413, 415, 422)
LABEL_PARAMETER = QueryParameter("label", "string", "The label, where the body is a mail.")
NEW_CLASS_PARAMETER = QueryParameter("new_class", "string", "If given, the label of a mail may be a new class.")

ROUTES = (
    ApiRoute("GET", "/health", handlers.get_health, "Whether the process is alive", None, answer=messages.StatusAnswer),
    ApiRoute(
        "GET",
        "/ready",
        handlers.get_readiness,
        "Whether a model can answer",
        None,
        answer=messages.StatusAnswer,
        errors=(503,),
    ),
    ApiRoute("GET", "/metrics", handlers.get_metrics, "Figures for Prometheus", answer_type="text/plain"),
    ApiRoute("GET", "/openapi.json", handlers.get_openapi, "This description", None),
    ApiRoute("GET", "/v1/models", handlers.list_models, "List the models", answer=messages.ModelList),
    ApiRoute("GET", MODEL_PATH, handlers.get_model, "Inspect a model", answer=messages.ModelInfo, errors=(404,)),
    ApiRoute(
        "PUT",
        MODEL_PATH,
        create_model_handler,
        "Create a model: declared, from a model file, or trained on an upload",
        "admin",
        message=messages.CreateMessage,
        other_messages={MODEL_FILE_TYPE: bytes, **dict.fromkeys(SUFFIX_BY_TYPE, bytes)},
        answer=messages.ModelInfo,
        status=201,
        errors=(200, 400, 409, 413, 415, 422),
        query=(QueryParameter("target", "string", "The column to predict, where the body is a table."),),
    ),
    ApiRoute(
        "DELETE",
        MODEL_PATH,
        handlers.delete_model,
        "Delete a model and all its rows",
        "admin",
        answer=ChangeAnswer,
        errors=(404, 409),
        takes_key=True,
    ),
    ApiRoute(
        "GET",
        f"{MODEL_PATH}/file",
        handlers.download_model,
        "Download a model as a file",
        "admin",
        answer_type=MODEL_FILE_TYPE,
        errors=(404,),
    ),
    ApiRoute(
        "GET",
        f"{MODEL_PATH}/history",
        handlers.get_history,
        "Who taught what, and when",
        answer=messages.HistoryAnswer,
        errors=(404, 422),
        query=(
            QueryParameter("before", "integer", "Only changes before this one."),
            QueryParameter("limit", "integer", "At most this many."),
            QueryParameter("content", "string", "If given, with the rows themselves; needs the scope learn."),
        ),
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/predict",
        handlers.handle_predict,
        "Predict rows",
        message=messages.PredictMessage,
        other_messages=ROW_TYPES,
        answer=messages.PredictAnswer,
        errors=ROW_ERRORS,
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/explain",
        handlers.handle_explain,
        "Explain predictions",
        message=messages.RowsMessage,
        other_messages=ROW_TYPES,
        answer=messages.ExplainAnswer,
        errors=ROW_ERRORS,
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/learn",
        handlers.handle_learn,
        "Learn labelled rows",
        "learn",
        message=messages.LabelledMessage,
        other_messages=ROW_TYPES,
        answer=ChangeAnswer,
        errors=ROW_ERRORS,
        query=(LABEL_PARAMETER, NEW_CLASS_PARAMETER),
        takes_key=True,
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/forget",
        handlers.handle_forget,
        "Forget rows and erase them",
        "learn",
        message=messages.ForgetMessage,
        other_messages=ROW_TYPES,
        answer=ChangeAnswer,
        errors=ROW_ERRORS,
        query=(LABEL_PARAMETER,),
        takes_key=True,
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/undo",
        handlers.handle_undo,
        "Undo a learning",
        "learn",
        needs_body=False,
        message=messages.UndoMessage,
        answer=ChangeAnswer,
        errors=ROW_ERRORS,
        takes_key=True,
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/evaluate",
        handlers.handle_evaluate,
        "Judge a model",
        needs_body=False,
        message=messages.EvaluateMessage,
        answer=messages.EvaluateAnswer,
        errors=ROW_ERRORS,
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/audit",
        handlers.handle_audit,
        "Look for leakage in rows",
        message=messages.AuditMessage,
        answer=messages.AuditAnswer,
        errors=ROW_ERRORS,
    ),
    ApiRoute(
        "POST",
        f"{MODEL_PATH}/report",
        handlers.handle_report,
        "An HTML report on labelled rows",
        "learn",  # the report shows words of the training rows
        message=messages.LabelledMessage,
        answer_type="text/html",
        errors=ROW_ERRORS,
    ),
)


Description = dict[str, Any]

TEXTS_OR_ROWS: Description = {"oneOf": [{"required": ["texts"]}, {"required": ["rows"]}]}
LABELLED_IF_GIVEN: Description = {"required": ["labels"], **TEXTS_OR_ROWS}
NO_ROWS: Description = {"properties": dict.fromkeys(("texts", "rows", "labels"), False)}  # false: must be absent
RULES: dict[str, Description] = {  # constraints that field types cannot express
    "RowsMessage": TEXTS_OR_ROWS,
    "PredictMessage": TEXTS_OR_ROWS,
    "LabelledMessage": TEXTS_OR_ROWS,
    "AuditMessage": TEXTS_OR_ROWS,
    "EvaluateMessage": {"oneOf": [LABELLED_IF_GIVEN, NO_ROWS]},
    "ForgetMessage": {"oneOf": [LABELLED_IF_GIVEN, {"required": ["id"], **NO_ROWS}]},
}


def describe_api(routes: Sequence[ApiRoute]) -> Description:
    """Return the description as nested dictionaries for JSON."""
    types = [
        t for r in routes for t in (r.message, r.answer, *(r.other_messages or {}).values()) if t not in (None, bytes)
    ]
    _, components = msgspec.json.schema_components([*types, ProblemDetails], ref_template="#/components/schemas/{name}")
    # msgspec describes the fields only
    for name, rule in RULES.items():
        components[name] |= rule
    paths: dict[str, Description] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _describe_route(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Priory", "version": __version__, "summary": "Models that learn, explain and forget."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe_route(route: ApiRoute) -> Description:
    errors = sorted({*route.errors, 400, 503, *((401, 403) if route.scope else ())} - {200})
    described: Description = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "description": route.handler.__doc__ or route.summary,
        "responses": {
            str(route.status): _describe_response(route),
            **({"200": _describe_response(route)} if 200 in route.errors else {}),
            **{str(status): _describe_problem(status) for status in errors},
        },
    }
    if parameters := _describe_parameters(route):
        described["parameters"] = parameters
    if route.scope is not None:
        described["security"] = [{"token": []}, {}]  # a token, or nothing if the service has no tokens
    if route.message is not None:
        content = {MESSAGE_TYPE: route.message, **(route.other_messages or {})}
        bodies = {kind: {"schema": _refer_to(t)} for kind, t in content.items()}
        described["requestBody"] = {"content": bodies, "required": route.needs_body}
    return described


def _describe_response(route: ApiRoute) -> Description:
    schema = {} if route.answer is None else {"schema": _refer_to(route.answer)}
    return {"description": HTTPStatus(route.status).phrase, "content": {route.answer_type: schema}}


def _describe_problem(status: int) -> Description:
    return {"description": HTTPStatus(status).phrase, "content": {PROBLEM_TYPE: {"schema": _refer_to(ProblemDetails)}}}


def _describe_parameters(route: ApiRoute) -> list[Description]:
    described: list[Description] = []
    if "{name}" in route.path:
        schema = {"type": "string", "pattern": f"^{MODEL_NAME_PATTERN.pattern}$"}
        described.append({"name": "name", "in": "path", "required": True, "schema": schema})
    if route.takes_key:
        schema = {"type": "string", "pattern": f"^.{{1,{MAX_KEY_LENGTH}}}$"}
        described.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema})
    return described + [
        {"name": q.name, "in": "query", "required": False, "description": q.description, "schema": {"type": q.type}}
        for q in route.query
    ]


def _refer_to(answer_type: type) -> Description:
    if answer_type is bytes:
        return {"type": "string", "format": "binary"}
    return {"$ref": f"#/components/schemas/{answer_type.__name__}"}
