"""Requests to change a model, and the plan for each of them.

A change is first applied to a copy of the model. The plan contains the resulting model and the journal entries; it
takes effect when it is committed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from priory.errors import DataError, NotLearnedError, ServiceError
from priory.service.journal import Event, Journal, ModelEntry, RowPlace, StoredAnswer
from priory.service.labelled_rows import ModelKind, RowBatch, join_row_batches
from priory.service.model_store import ServedModel, create_model, read_change
from priory.storage.receipts import Issued, ReceiptBook


class ChangeAnswer(msgspec.Struct, omit_defaults=True):
    """Result of a change: its id, the number of rows learned or forgotten, and the new version of the model.

    A service that signs receipts answers a request to forget with the receipt and, once, with its opening.
    """

    model: str
    operation: str
    id: int  # the number of the event
    rows: int
    version: int
    receipt: dict[str, Any] | None = None
    opening: dict[str, Any] | None = None  # for the person alone; the service does not keep it


@dataclass(frozen=True)
class ChangeRequest:
    """A request to change one model; a request with an idempotency key is carried out once."""

    model: str
    teacher: str
    key: str | None = None
    digest: bytes = b""  # hash of the whole request, to recognise a repetition


@dataclass(frozen=True)
class LearnRequest(ChangeRequest):
    rows: RowBatch = field(default_factory=lambda: RowBatch("text", (), ()))


@dataclass(frozen=True)
class ForgetRequest(ChangeRequest):
    """Forget and erase these rows, or all rows of an earlier learn event."""

    rows: RowBatch | None = None
    target: int | None = None  # the number of a learn event


@dataclass(frozen=True)
class UndoRequest(ChangeRequest):
    """Undo an earlier learn or undo event; by default the last learn event."""

    target: int | None = None


@dataclass(frozen=True)
class CreateRequest(ChangeRequest):
    """Create a model, either empty or as a copy of ``base``."""

    kind: ModelKind = "text"
    parameters: bytes = b"{}"
    base: ServedModel | None = None


@dataclass(frozen=True)
class DeleteRequest(ChangeRequest):
    """Delete a model and its history."""


@dataclass
class Plan:
    """Everything to be committed for one request: the resulting model, its event, and other journal entries."""

    request: ChangeRequest
    model: ServedModel
    event: Event
    row_digests: Sequence[bytes] = ()  # of the learned rows
    undone: dict[int, int | None] = field(default_factory=dict)  # event -> the event that undid it
    erased: Sequence[RowPlace] = ()  # rows to erase from the journal
    issued: Sequence[Issued] = ()  # receipts: the last one is for this change

    @property
    def answer(self) -> ChangeAnswer:
        event, last = self.event, self.issued[-1] if self.issued else None
        given = (None, None) if last is None else (last.receipt, last.opening)
        version = self.model.version
        return ChangeAnswer(self.model.entry.name, event.operation, event.number, event.n_rows, version, *given)

    @property
    def names_forgotten_rows(self) -> bool:
        """Whether the digest of the request covers rows to be erased, so that it must not be written to disk."""
        return isinstance(self.request, ForgetRequest) and self.request.rows is not None

    @property
    def stored_answer(self) -> StoredAnswer:
        """The answer to a repetition, without the opening, which shows the rows."""
        return StoredAnswer(
            self.request.digest, msgspec.json.encode(msgspec.structs.replace(self.answer, opening=None))
        )

    def write(self, journal: Journal) -> None:
        """Write the change to the journal, inside of a transaction."""
        if isinstance(self.request, CreateRequest):
            journal.add_model(self.model.entry)
        journal.add_event(self.event, self.row_digests)
        for number, undone_by in self.undone.items():
            journal.set_undone(number, undone_by)
        if self.erased:
            journal.mark_rows(self.erased)
        for issued in self.issued:
            body = msgspec.json.encode(issued.receipt)
            journal.add_receipt(self.model.entry.number, issued.receipt["counter"], body)
        if isinstance(self.request, DeleteRequest):
            journal.delete_model(self.model.entry.number)
        # the hash of a request that names forgotten rows must not be stored
        if self.request.key is not None and not self.names_forgotten_rows:
            journal.add_answer(self.event, self.request.key, self.stored_answer)


def plan_learning(model: ServedModel, requests: Sequence[LearnRequest], number: int) -> list[Plan]:
    """Plan learn requests that are applied in one step; events are numbered from ``number``."""
    last = number + len(requests) - 1  # all of these events have the same resulting model, at the version of the last
    after = model.learn(join_row_batches([request.rows for request in requests]), last)
    return [
        Plan(
            request,
            after,
            _make_event(request, model, number + place, "learn", request.rows, batch=number),
            request.rows.digest_rows(),
        )
        for place, request in enumerate(requests)
    ]


def plan_change(
    model: ServedModel | None, request: ChangeRequest, number: int, journal: Journal, book: ReceiptBook | None = None
) -> Plan:
    """Plan one change, which will be event ``number``; with a book, what is forgotten gets a receipt."""
    if isinstance(request, CreateRequest):
        return _plan_creation(model, request, number)
    if model is None:
        raise ServiceError(404, "there is no model of this name")
    if isinstance(request, LearnRequest):
        return plan_learning(model, [request], number)[0]
    if isinstance(request, ForgetRequest):
        return _plan_forgetting(model, request, number, journal, book)
    if isinstance(request, UndoRequest):
        return _plan_undoing(model, request, number, journal)
    # DeleteRequest
    event = _make_event(request, model, number, "delete", None)
    return Plan(request, replace(model, version=number), event)


def _make_event(
    request: ChangeRequest,
    model: ServedModel,
    number: int,
    operation: str,
    rows: RowBatch | None,
    *,
    batch: int | None = None,
    target: int | None = None,
    n_rows: int | None = None,
) -> Event:
    return Event(
        number=number,
        model=model.entry.number,
        operation=operation,  # type: ignore[arg-type]
        target=target,
        n_rows=(0 if rows is None else len(rows)) if n_rows is None else n_rows,
        # an undo event has the rows of its target, which may be erased later
        body=None if rows is None or operation == "undo" else rows.encode(),
        batch=number if batch is None else batch,
        teacher=request.teacher,
        time=time.time(),
        erasure="due" if operation in ("forget", "delete") else "no",  # the event itself contains the rows to erase
    )


def _plan_creation(model: ServedModel | None, request: CreateRequest, number: int) -> Plan:
    if model is not None:
        raise ServiceError(409, "there is a model of this name already; delete it first, or choose another name")
    entry = ModelEntry(number, request.model, request.kind, request.parameters, request.base is not None)
    made = create_model(entry) if request.base is None else ServedModel(entry, request.base.estimator, number)
    return Plan(request, made, _make_event(request, made, number, "create", None, n_rows=int(made.n_rows)))


def _plan_forgetting(
    model: ServedModel, request: ForgetRequest, number: int, journal: Journal, book: ReceiptBook | None
) -> Plan:
    if request.target is not None:
        return _plan_forgetting_of_event(model, request, request.target, number, journal, book)
    if request.rows is None:
        raise DataError("give rows with their labels, or the id that learn answered")
    # For each row: forget the newest occurrence that counts, and erase it and every undone occurrence. A model that
    # began as a file may know rows that are not in the journal; the model itself checks those.
    live: list[RowPlace] = []
    undone: list[RowPlace] = []
    is_known = []
    for place, digest in enumerate(request.rows.digest_rows()):
        found = [row for row in journal.find_rows(model.entry.number, digest) if row not in live]
        newest = next((row for row in found if not row.is_undone), None)
        others = [row for row in found if row.is_undone]
        if newest is None and not others and not model.entry.has_base:
            raise NotLearnedError(f"row {place} was never learned with this label, or is forgotten already", row=place)
        # undone occurrences are erased from the journal, but the model does not contain them any more
        is_known.append(newest is not None or (model.entry.has_base and not others))
        live += [newest] if newest else []
        undone += others
    rows = request.rows.keep(is_known)
    after, issued = _forget_rows(model, rows, number, journal, book)
    event = _make_event(request, model, number, "forget", rows, n_rows=len(request.rows))
    return Plan(request, after, event, erased=[*live, *undone], issued=issued)


def _forget_rows(
    model: ServedModel, rows: RowBatch, number: int, journal: Journal, book: ReceiptBook | None
) -> tuple[ServedModel, list[Issued]]:
    """The model without rows, and the receipts that this takes."""
    if not len(rows):
        return replace(model, version=number), []
    if book is None:
        return model.forget(rows, number), []
    receipts = journal.read_receipts(model.entry.number)
    return model.forget_with_receipt(rows, number, book, [msgspec.json.decode(body) for body in receipts[-1:]])


def _plan_forgetting_of_event(
    model: ServedModel, request: ForgetRequest, target: int, number: int, journal: Journal, book: ReceiptBook | None
) -> Plan:
    """Forget and erase all rows of an event; if the event was undone, its rows are only erased."""
    learned = _find_target(model, target, journal)
    rows, was_learned = read_change(learned, journal)
    if learned.operation != "learn" or not was_learned:
        raise ServiceError(409, f"event {target} did not learn any rows; give the id of one that did")
    if rows is None or learned.erasure != "no":
        raise ServiceError(409, f"the rows of event {target} are forgotten already")
    n_rows = len(rows)
    if learned.undone_by is not None:
        rows = rows.keep([False] * n_rows)  # the model does not contain them any more
    after, issued = _forget_rows(model, rows, number, journal, book)
    event = _make_event(request, model, number, "forget", rows, target=target, n_rows=n_rows)
    return Plan(request, after, event, erased=journal.list_rows(target), issued=issued)


def _plan_undoing(model: ServedModel, request: UndoRequest, number: int, journal: Journal) -> Plan:
    if request.target is None:
        done = journal.find_last_learned(model.entry.number)
        if done is None:
            raise ServiceError(409, "there is nothing to undo")
    else:
        done = _find_target(model, request.target, journal)
    if done.operation not in ("learn", "undo"):
        raise ServiceError(409, f"event {done.number} cannot be undone: it is of the kind {done.operation!r}")
    if done.undone_by is not None:
        raise ServiceError(409, f"event {done.number} was undone already, by event {done.undone_by}")
    rows, was_learned = read_change(done, journal)
    # undo of an undo of an undo: refer the user to the original event
    if done.operation == "undo" and _find_target(model, done.target or 0, journal).operation != "learn":
        raise ServiceError(409, f"event {done.number} undid an undoing; undo what was learned instead")
    if rows is None:
        raise ServiceError(409, f"event {done.number} cannot be undone: its rows were erased")
    # the opposite of the event: forget what it learned, learn what it had removed
    after = (model.forget if was_learned else model.learn)(rows, number)
    undone: dict[int, int | None] = {done.number: number}
    if done.operation == "undo" and done.target is not None:
        undone[done.target] = None  # the original event counts again
    return Plan(request, after, _make_event(request, model, number, "undo", rows, target=done.number), undone=undone)


def _find_target(model: ServedModel, number: int, journal: Journal) -> Event:
    event = journal.find_event(model.entry.number, number)
    if event is None:
        raise ServiceError(404, f"the model has no event {number}")
    return event
