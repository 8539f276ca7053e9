"""Create models: from parameters, from a model file, or by training on an uploaded table or mailbox."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from starlette.responses import Response

import priory
from priory.errors import DataError, PrioryError, ServiceError
from priory.service.changes import CreateRequest
from priory.service.handlers import describe_model
from priory.service.journal import ModelEntry
from priory.service.labelled_rows import ModelKind
from priory.service.messages import CreateMessage, find_status
from priory.service.model_store import ModelStore, ServedModel, make_estimator
from priory.service.request_reading import MESSAGE_TYPE, MODEL_NAME_PATTERN, Call, decode_message
from priory.workflows.model_files import load_classifier

MODEL_FILE_TYPE = "application/octet-stream"
SUFFIX_BY_TYPE = {  # formats to train on, with the suffix of the temporary file
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/x-ndjson": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
    "application/mbox": ".mbox",
}


async def create_model_handler(call: Call) -> Response:
    """Create a model; an existing model with the same name and parameters is left unchanged."""
    if MODEL_NAME_PATTERN.fullmatch(call.name) is None:
        raise DataError("the name of a model has 1 to 64 letters, digits, - or _")
    body = await call.request.body()
    content_type = call.content_type or (MESSAGE_TYPE if body.lstrip()[:1] in (b"{", b"") else MODEL_FILE_TYPE)
    known = call.service.store.models.get(call.name)
    if content_type == MESSAGE_TYPE:
        message = decode_message(body, CreateMessage)
        # raises for unknown parameters before anything is written
        make_estimator(message.kind, message.parameters)
        parameters = msgspec.json.encode(message.parameters, order="deterministic")
        if known is not None and (known.entry.kind, known.entry.parameters) == (message.kind, parameters):
            return _make_response(call, known, 200)
        request = CreateRequest(call.name, call.identity.name, kind=message.kind, parameters=parameters)
    elif content_type == MODEL_FILE_TYPE or content_type in SUFFIX_BY_TYPE:
        _check_is_free(known)
        base = await call.service.run_slowly(_read_upload, call, body, content_type)
        request = CreateRequest(
            call.name, call.identity.name, kind=base.entry.kind, parameters=base.entry.parameters, base=base
        )
    else:
        raise ServiceError(415, f"give one of {', '.join([MESSAGE_TYPE, MODEL_FILE_TYPE, *SUFFIX_BY_TYPE])}")
    await call.service.change(request)
    return _make_response(call, call.model, 201)


def _check_is_free(known: ServedModel | None) -> None:
    if known is not None:
        raise ServiceError(409, "there is a model of this name already; delete it first, or choose another name")


def _make_response(call: Call, model: ServedModel, status: int) -> Response:
    headers = {"Location": f"/v1/models/{model.entry.name}"} if status == 201 else None
    return Response(msgspec.json.encode(describe_model(model)), status, headers, MESSAGE_TYPE)


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
            status = 422 if find_status(error) == 500 else find_status(error)
            raise ServiceError(status, str(error).replace(str(path), name)) from None


def _read_upload(call: Call, body: bytes, content_type: str) -> ServedModel:
    """Load a model from an uploaded file, or train one on it."""
    name = "upload" + SUFFIX_BY_TYPE.get(content_type, ".priory")
    with write_upload(call.service.store, body, name) as path:
        if content_type == MODEL_FILE_TYPE:
            estimator = load_classifier(path)
        else:
            estimator = priory.workflows.train(path, target=call.request.query_params.get("target"), judge=False).model
    estimator.__dict__.pop("notes", None)
    kind: ModelKind = "text" if isinstance(estimator, priory.TextClassifier) else "table"
    return ServedModel(ModelEntry(0, call.name, kind, _encode_parameters(estimator.get_params()), True), estimator, 0)


def _encode_parameters(parameters: dict[str, object]) -> bytes:
    """Encode parameters as JSON for display; other values are shown by their repr."""
    return msgspec.json.encode(parameters, enc_hook=repr, order="deterministic")
