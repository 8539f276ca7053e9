"""The pages about models: the list, uploads, the overview with its scores, the audit, the history."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.responses import Response

import priory
from priory import plots
from priory.errors import DataError, PrioryError, ServiceError
from priory.evaluation.comparison import compare_scores
from priory.export.report_sections import describe_membership, list_overall_scores
from priory.export.strongest_evidence import ClassEvidence, find_strongest_evidence
from priory.service.changes import DeleteRequest, ForgetRequest, UndoRequest
from priory.service.handlers import describe_model
from priory.service.journal import Event
from priory.service.labelled_rows import Row, RowBatch, convert_to_input, decode_row_batch
from priory.service.messages import MODEL_NAME_PATTERN
from priory.service.model_store import ModelStore, ServedModel
from priory.service.pages import page_state
from priory.service.pages.page_call import PageCall, list_classes, render_figure
from priory.service.pages.page_state import Judgement, TrainingJob
from priory.service.predictions import predict_rows
from priory.workflows.model_files import format_count
from priory.workflows.training import describe_families

MAX_EVIDENCE_ROWS = 1000
MAX_EVIDENCE_LINES = 8
MAX_JUDGED_CLASSES = 12  # shown


def judge_model(store: ModelStore, model: ServedModel) -> Judgement:
    """Evaluate a model by cross-validation on the rows that it keeps, for the template scores.html."""
    found: Judgement = {"version": model.version, "evidence": _find_evidence(store, model), "problem": ""}
    try:
        scores = model.estimator.evaluate()
    except PrioryError as error:
        return found | {"problem": str(error)}
    if not scores.has_enough_rows:
        return found | {"problem": scores.verdict}
    return found | {
        "verdict": scores.verdict,
        "n_rows": len(scores.truth),
        "scores": list_overall_scores(scores),
        "calibration": render_figure(
            lambda: plots.reliability_diagram(scores), "calibration: right answers against certainty"
        ),
        "confusion": render_figure(lambda: plots.confusion_matrix(scores), "confusion: true classes against answers"),
    }


def _find_evidence(store: ModelStore, model: ServedModel) -> tuple[tuple[str, list[ClassEvidence]], ...]:
    rows = page_state.read_latest_rows(store, model, MAX_EVIDENCE_ROWS)
    if not len(rows) and model.entry.kind == "table":
        return ()  # the model began as a file, so the journal has no rows
    labels = np.array(rows.labels, dtype=object)
    table = convert_to_input(rows, model.estimator)
    try:
        found = find_strongest_evidence(model.estimator, table, labels)
    except PrioryError:
        return ()
    shown = list(found.items())[:MAX_JUDGED_CLASSES]
    return tuple((str(label), lines[:MAX_EVIDENCE_LINES]) for label, lines in shown)


EVENTS_PER_PAGE = 50
OPERATIONS = ("learn", "undo", "forget")
MAX_AUDIT_ROWS = 5000
MAX_PREVIEW_ROWS = 3
MAX_DIFFERENCES = 20


async def show_models(call: PageCall) -> Response:
    models = [describe_model(model) for _, model in sorted(call.service.store.models.items())]
    return call.render(
        "models.html", models=models, suffixes=",".join((*page_state.UPLOAD_SUFFIXES, page_state.MODEL_SUFFIX))
    )


# -- uploads ---------------------------------------------------------------------------------------------------------


async def start_training(call: PageCall) -> Response:
    """Read a file from the body of the request, and learn it in the background."""
    query = call.query
    name, file_name = query.get("model", "").strip(), query.get("file", "")[:200]
    if MODEL_NAME_PATTERN.fullmatch(name) is None:
        raise DataError("the name of a model has 1 to 64 letters, digits, - or _")
    if name not in call.service.store.models and not call.identity.may("admin"):
        raise ServiceError(403, "creating a model needs a token with the scope admin")
    body = await call.request.body()
    if not body:
        raise DataError("choose a file that is not empty")
    target, label = (query.get(field, "").strip() or None for field in ("target", "label"))
    job = TrainingJob(name, call.identity.name, file_name, target, label)
    call.state.add_job(job)
    task = asyncio.create_task(call.run(page_state.run_training_job, call.service, job, body))
    call.state.tasks.add(task)  # asyncio itself keeps only a weak reference
    task.add_done_callback(call.state.tasks.discard)
    return call.render("training.html", job=job)


async def show_training(call: PageCall) -> Response:
    job = call.state.jobs.get(str(call.request.path_params["job"]))
    if job is None:
        raise ServiceError(404, "this upload is not known any more")
    return call.render("training.html", job=job)


async def delete_model_page(call: PageCall) -> Response:
    form = await call.read_form()
    model = call.model
    if form.get("name") != model.entry.name:
        raise DataError("type the name of the model to delete it")
    await call.change(DeleteRequest)
    call.state.queues.pop(model.entry.number, None)
    return Response(status_code=204, headers={"HX-Redirect": "/"})


# -- overview --------------------------------------------------------------------------------------------------------


async def show_model(call: PageCall) -> Response:
    model = call.model
    families: dict[str, str] = {}
    if model.is_fitted:
        if model.entry.kind == "table" or hasattr(model.estimator, "feature_names_in_"):
            families = await call.run(describe_families, model.estimator)
        else:
            families = {"text": f"text, {model.estimator.n_tokens_:,} different words"}
    return call.render("model.html", model=describe_model(model), families=families)


async def show_scores(call: PageCall) -> Response:
    """Show the slow part of the overview, which is computed once for each version of the model."""
    model, known = call.model, call.state.judgements
    key = model.entry.number, model.version
    if key not in known:
        model.check_fitted()
        for other in [other for other in known if other[0] == key[0]]:
            del known[other]  # it may show rows that were forgotten since
        known[key] = asyncio.create_task(call.run(judge_model, call.service.store, model))
        while len(known) > page_state.MAX_JUDGEMENTS:
            known.popitem(last=False)
    try:
        # other requests may wait for the same task
        judgement = await asyncio.shield(known[key])
    except Exception:
        known.pop(key, None)
        raise
    return call.render("scores.html", model=describe_model(model), judgement=judgement)


async def show_privacy(call: PageCall) -> Response:
    """Measure how well the answers tell which rows were learned; asked for by a button, because it takes seconds."""
    model = call.model
    model.check_fitted()
    found = await call.run(describe_membership, model.estimator)
    return call.render("privacy.html", model=describe_model(model), found=found)


# -- audit -----------------------------------------------------------------------------------------------------------


async def show_audit(call: PageCall) -> Response:
    return call.render("audit.html", model=describe_model(call.model), max_rows=MAX_AUDIT_ROWS)


async def run_audit(call: PageCall) -> Response:
    """Search the latest rows for leakage."""
    model, store = call.model, call.service.store

    def look() -> tuple[int, Any]:
        rows = page_state.read_latest_rows(store, model, MAX_AUDIT_ROWS)
        if len(rows) < 2:
            raise DataError("the journal has too few rows of this model to audit")
        return len(rows), priory.audit(convert_to_input(rows, model.estimator), target=rows.targets)

    n_rows, findings = await call.run(look)
    return call.render("findings.html", n_rows=n_rows, findings=findings)


# -- two models ------------------------------------------------------------------------------------------------------


async def show_compare(call: PageCall) -> Response:
    models = sorted(call.service.store.models.items())
    others = [name for name, model in models if model.is_fitted and model.entry.kind == call.model.entry.kind]
    return call.render(
        "compare.html", model=describe_model(call.model), others=others, suffixes=",".join(page_state.UPLOAD_SUFFIXES)
    )


async def compare(call: PageCall) -> Response:
    """Let two models answer the rows of a file, or typed ones."""
    models = call.model, call.service.store.get(call.query.get("other", ""))
    if models[0].entry.kind != models[1].entry.kind:
        raise DataError("a model of texts and a model of tables do not answer the same rows; choose another")
    file_name, target = call.query.get("file", "")[:200], call.query.get("target", "").strip() or None
    body = await call.request.body()

    def answer() -> dict[str, object]:
        read = [page_state.read_given_rows(call.service, model, body, file_name, target) for model in models]
        return compare_models(models, [rows for rows, _ in read], read[0][1])

    return call.render("compared.html", **await call.run(answer))


def compare_models(
    models: Sequence[ServedModel], rows: Sequence[Sequence[str | Row]], labels: list[str]
) -> dict[str, object]:
    """What two models answer to the same rows, for the template compared.html: scores, and the largest differences."""
    names = [model.entry.name for model in models]
    classes = sorted({str(label) for model in models for label in list_classes(model)})
    shares = np.zeros((2, len(rows[0]), len(classes)))  # (models, rows, classes of either)
    for share, model, own in zip(shares, models, rows, strict=True):
        model.check_row_count(len(own))
        places = [classes.index(str(label)) for label in list_classes(model)]
        share[:, places] = predict_rows(model, RowBatch(model.entry.kind, tuple(own)))
    given, sure = np.array(classes, dtype=object)[shares.argmax(axis=2)], shares.max(axis=2)  # (models, rows)
    largest = np.argsort(-np.abs(shares[0] - shares[1]).sum(axis=1), kind="stable")[:MAX_DIFFERENCES]
    scores = [priory.Scores.of(labels, share, classes) for share in shares] if labels else []
    shown = labels or [""] * len(rows[0])
    return {
        "names": names,
        "n_rows": len(rows[0]),
        "n_different": int((given[0] != given[1]).sum()),
        "verdict": compare_scores(*scores).describe(*names) if scores else "",
        "scores": list(zip(*map(list_overall_scores, scores), strict=True)),
        "rows": [
            (i + 1, format_row(rows[0][i]), shown[i], list(zip(given[:, i], sure[:, i], strict=True)))
            for i in largest.tolist()
        ],
    }


# -- traffic ---------------------------------------------------------------------------------------------------------


async def show_traffic(call: PageCall) -> Response:
    """Show the requests and answers of each hour; classes that the model does not know any more are not named."""
    metrics = call.service.metrics
    hours = metrics.list_traffic(call.name)
    return call.render("traffic.html", model=describe_model(call.model), hours=hours, max_hours=metrics.max_hours)


# -- history ---------------------------------------------------------------------------------------------------------


async def show_history(call: PageCall) -> Response:
    return await _render_history(call, "history.html")


async def _render_history(call: PageCall, template: str, done: str = "") -> Response:
    model, store = call.model, call.service.store
    before = call.read_query_number("before", page_state.LATEST_EVENT, page_state.LATEST_EVENT)

    operation, teacher = (call.query.get(name, "").strip() for name in ("operation", "teacher"))
    may_teach = call.identity.may("learn")

    def read() -> list[tuple[Event, list[tuple[str, str]]]]:
        which = model.entry.number, before, EVENTS_PER_PAGE, True, may_teach, operation, teacher
        events = store.reader.read_events(*which)
        return [(event, _preview_rows(event)) for event in events]

    events = await call.run(read)
    return call.render(
        template,
        model=describe_model(model),
        events=events,
        before=events[-1][0].number if len(events) == EVENTS_PER_PAGE else math.nan,
        has_more=len(events) == EVENTS_PER_PAGE,
        may_teach=may_teach,
        operations=OPERATIONS,
        operation=operation,
        teacher=teacher,
        done=done,
    )


def _preview_rows(event: Event) -> list[tuple[str, str]]:
    """Return the first rows of an event as text, with their labels."""
    if event.body is None:
        return []
    batch = decode_row_batch(event.body)
    pairs = list(zip(batch.rows, batch.labels or [""] * len(batch), strict=True))[:MAX_PREVIEW_ROWS]
    return [(format_row(row), "without label" if label is None else str(label)) for row, label in pairs]


def format_row(row: object) -> str:
    """Format a row in one line.

    >>> format_row({"age": 4, "town": None})
    'age 4'
    """
    if isinstance(row, dict):
        return ", ".join(f"{name} {cell}" for name, cell in row.items() if cell is not None)
    return str(row)


async def undo_from_history(call: PageCall) -> Response:
    number = (await call.read_form()).read_number("id")
    await call.change(UndoRequest, target=number)
    return await _render_history(call, "events.html", f"Change {number} is undone.")


async def forget_from_history(call: PageCall) -> Response:
    """Forget and erase all rows of one learn event."""
    number = (await call.read_form()).read_number("id")
    answer = await call.change(ForgetRequest, target=number)
    call.state.queues.pop(call.model.entry.number, None)  # it may still contain the rows
    return await _render_history(
        call, "events.html", f"Forgotten: {format_count(answer.rows, 'row')} of change {number}."
    )
