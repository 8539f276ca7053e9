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
from priory.service.messages import MESSAGE_TYPE, Call, ProblemDetails
from priory.service.tokens import Scope

Handler = Callable[[Call], Awaitable[msgspec.Struct | Response]]
ROW_TYPES = {messages.LINES_TYPE: messages.LineMessage, messages.MAIL_TYPE: bytes}


QueryParameter = tuple[str, str, str]  # name, type and description


@dataclass(frozen=True)
class ApiRoute:
    """One route: method, path, required scope, types of request and answer. Its handler has the description."""

    method: str
    path: str
    handler: Handler
    scope: Scope | None = "read"  # None: no token needed
    message: type | None = None
    other_messages: dict[str, type] | None = None  # by content type, besides JSON
    answer: type | None = None
    answer_type: str = MESSAGE_TYPE
    status: int = 200
    errors: tuple[int, ...] = ()  # besides 400 and 503, which every route may return
    query: tuple[QueryParameter, ...] = ()
    needs_body: bool = True

    @property
    def takes_key(self) -> bool:
        """Whether the header Idempotency-Key has a meaning: every change has one."""
        return self.answer is ChangeAnswer


MODEL_PATH = "/v1/models/{name}"
FILE_PATH = f"{MODEL_PATH}/file"
LEARN_PARAMETERS = (
    ("label", "string", "The label, where the body is a mail."),
    ("new_class", "string", "If given, the label of a mail may be a new class."),
)
TARGET_PARAMETER = ("target", "string", "The column to predict, where the body is a table.")
HISTORY_PARAMETERS = (
    ("before", "integer", "Only changes before this one."),
    ("limit", "integer", "At most this many."),
    ("content", "string", "If given, with the rows themselves; needs the scope learn."),
)


def define_call(
    action: str,
    handler: Handler,
    message: type,
    answer: type,
    scope: Scope = "read",
    query: tuple[QueryParameter, ...] = (),
    needs_body: bool = True,
) -> ApiRoute:
    """A route that asks a model about rows, or changes it; rows may also be lines of JSON or one mail."""
    path, errors, others = f"{MODEL_PATH}/{action}", (400, 404, 409, 413, 415, 422), ROW_TYPES if needs_body else None
    return ApiRoute(
        "POST", path, handler, scope, message, others, answer, errors=errors, query=query, needs_body=needs_body
    )


ROUTES = (
    ApiRoute("GET", "/health", handlers.get_health, None, answer=messages.StatusAnswer),
    ApiRoute("GET", "/ready", handlers.get_readiness, None, answer=messages.StatusAnswer),
    ApiRoute("GET", "/metrics", handlers.get_metrics, answer_type="text/plain"),
    ApiRoute("GET", "/openapi.json", handlers.get_openapi, None),
    ApiRoute("GET", "/v1/models", handlers.list_models, answer=messages.ModelList),
    ApiRoute("GET", MODEL_PATH, handlers.get_model, answer=messages.ModelInfo, errors=(404,)),
    ApiRoute(
        "PUT",
        MODEL_PATH,
        handlers.create_model_handler,
        "admin",
        messages.CreateMessage,
        dict.fromkeys([handlers.MODEL_FILE_TYPE, *handlers.SUFFIX_BY_TYPE], bytes),
        messages.ModelInfo,
        status=201,
        errors=(200, 400, 409, 413, 415, 422),
        query=(TARGET_PARAMETER,),
    ),
    ApiRoute("DELETE", MODEL_PATH, handlers.delete_model, "admin", answer=ChangeAnswer, errors=(404, 409)),
    ApiRoute("GET", FILE_PATH, handlers.download_model, "admin", answer_type=handlers.MODEL_FILE_TYPE, errors=(404,)),
    ApiRoute(
        "GET",
        f"{MODEL_PATH}/history",
        handlers.get_history,
        answer=messages.HistoryAnswer,
        errors=(404, 422),
        query=HISTORY_PARAMETERS,
    ),
    ApiRoute(
        "GET",
        f"{MODEL_PATH}/receipts",
        handlers.get_receipts,
        answer=messages.ReceiptsAnswer,
        errors=(404, 422),
        query=(("after", "integer", "Only receipts with larger numbers."),),
    ),
    define_call("predict", handlers.handle_predict, messages.PredictMessage, messages.PredictAnswer),
    define_call("explain", handlers.handle_explain, messages.RowsMessage, messages.ExplainAnswer),
    define_call("learn", handlers.handle_learn, messages.LabelledMessage, ChangeAnswer, "learn", LEARN_PARAMETERS),
    define_call("forget", handlers.handle_forget, messages.ForgetMessage, ChangeAnswer, "learn", LEARN_PARAMETERS[:1]),
    define_call("undo", handlers.handle_undo, messages.UndoMessage, ChangeAnswer, "learn", needs_body=False),
    define_call(
        "evaluate", handlers.handle_evaluate, messages.EvaluateMessage, messages.EvaluateAnswer, needs_body=False
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
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _describe_route(route: ApiRoute) -> Description:
    errors = sorted({*route.errors, 400, 503, *((401, 403) if route.scope else ())} - {200})
    described: Description = {
        "operationId": route.handler.__name__,
        "summary": (route.handler.__doc__ or "").splitlines()[0],
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
    return {
        "description": HTTPStatus(status).phrase,
        "content": {messages.PROBLEM_TYPE: {"schema": _refer_to(ProblemDetails)}},
    }


def _describe_parameters(route: ApiRoute) -> list[Description]:
    described: list[Description] = []
    if "{name}" in route.path:
        schema = {"type": "string", "pattern": f"^{messages.MODEL_NAME_PATTERN.pattern}$"}
        described.append({"name": "name", "in": "path", "required": True, "schema": schema})
    if route.takes_key:
        schema = {"type": "string", "pattern": f"^.{{1,{messages.MAX_KEY_LENGTH}}}$"}
        described.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema})
    return described + [
        {"name": name, "in": "query", "required": False, "description": description, "schema": {"type": kind}}
        for name, kind, description in route.query
    ]


def _refer_to(answer_type: type) -> Description:
    if answer_type is bytes:
        return {"type": "string", "format": "binary"}
    return {"$ref": f"#/components/schemas/{answer_type.__name__}"}
