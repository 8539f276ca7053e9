"""Convert errors to problem details (RFC 9457), without revealing internals."""

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
MAX_DETAIL_LENGTH = 500  # characters
RETRY_SECONDS = "1"  # the header Retry-After


def find_status(error: Exception) -> int:
    """Return the HTTP status of an error; 500 for an unexpected one."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, HTTPException):
        return error.status_code
    # from specific to general: most of these are also PrioryError or OSError
    if isinstance(error, NotLearnedError | StaleModelError):
        return 409
    if isinstance(error, MissingDependencyError):
        return 501
    if isinstance(error, ModelTooLargeError):
        return 413
    if isinstance(error, MemoryError):
        return 507
    if isinstance(error, sqlite3.Error | OSError):  # disk errors
        return 503
    return 422 if isinstance(error, PrioryError | ModelFileError) else 500


def make_problem_response(error: Exception) -> Response:
    """Return the response to a failed request; the message of an unexpected error is not included."""
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
