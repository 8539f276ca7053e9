"""Errors as answers: problem details (RFC 9457) that say what to do, and nothing about what is inside."""

from __future__ import annotations

import sqlite3
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from priory.errors import (
    MissingDependencyError,
    ModelFileError,
    ModelTooLargeError,
    NotLearnedError,
    PrioryError,
    ServiceError,
    StaleModelError,
)
from priory.service.messages import ProblemDetails

PROBLEM_TYPE = "application/problem+json"
MAX_DETAIL_LENGTH = 500
RETRY_SECONDS = "1"


def find_status(error: Exception) -> int:
    """The status of HTTP for an error; 500 for those that nobody expected."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, NotLearnedError | StaleModelError):
        return 409
    if isinstance(error, MissingDependencyError):
        return 501
    if isinstance(error, ModelTooLargeError):
        return 413
    if isinstance(error, MemoryError):
        return 507
    if isinstance(error, sqlite3.Error | OSError):  # the disk
        return 503
    return 422 if isinstance(error, PrioryError | ModelFileError) else 500


def make_problem_response(error: Exception) -> Response:
    """The answer to a request that failed; the text of an unexpected error stays inside."""
    status = find_status(error)
    detail = " ".join(str(error).split())[:MAX_DETAIL_LENGTH] if isinstance(error, PrioryError) else ""
    phrase = HTTPStatus(status).phrase
    headers = dict(getattr(error, "headers", None) or {})
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = RETRY_SECONDS
    if status == 413:
        headers["Connection"] = "close"  # the rest of the body is not read
    body = msgspec.json.encode(ProblemDetails(phrase, status, detail or phrase))
    return Response(body, status, headers, PROBLEM_TYPE)
