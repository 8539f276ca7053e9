"""OpenAPI 3.1 description of the API, generated from the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from priory import __version__
from priory.service.messages import ProblemDetails
from priory.service.problems import PROBLEM_TYPE
from priory.service.request_reading import MAX_KEY_LENGTH, MESSAGE_TYPE, MODEL_NAME_PATTERN
from priory.service.routes import ApiRoute

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
