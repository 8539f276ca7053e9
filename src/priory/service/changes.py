"""The changes that a request can ask for, and how each of them is planned.

A change is applied to a copy of the model first; a plan holds the result and what the journal has to note. Nothing has
happened until the plan is committed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from priory.errors import DataError, NotLearnedError, ServiceError
from priory.service.journal import Event, Journal, ModelEntry, RowPlace, StoredAnswer
from priory.service.rows import ModelKind, RowBatch, join_row_batches
from priory.service.served_model import ServedModel, create_model, read_change


class ChangeAnswer(msgspec.Struct):
    """What a change did: its id, the number of rows learned or forgotten, and the version of the model with it."""

    model: str
    operation: str
    id: int
    rows: int
    version: int


@dataclass(frozen=True)
class ChangeRequest:
    """A change of one model, asked for by a teacher; a request with a key is carried out once."""

    model: str
    teacher: str
    key: str | None = None
    digest: bytes = b""  # of the whole request, to recognise it by

    @property
    def names_forgotten_rows(self) -> bool:
        """Whether the digest is that of rows which are erased, so that it may not be written to the disk."""
        return False


@dataclass(frozen=True)
class LearnRequest(ChangeRequest):
    rows: RowBatch = field(default_factory=lambda: RowBatch("text", (), ()))


@dataclass(frozen=True)
class ForgetRequest(ChangeRequest):
    """Forget these rows, or those of an earlier learning, and erase them."""

    rows: RowBatch | None = None
    target: int | None = None

    @property
    def names_forgotten_rows(self) -> bool:
        return self.rows is not None


@dataclass(frozen=True)
class UndoRequest(ChangeRequest):
    """Undo an earlier learning or undoing; by default the last learning."""

    target: int | None = None


@dataclass(frozen=True)
class CreateRequest(ChangeRequest):
    """Create a model, with nothing learned or with what ``base`` has learned."""

    kind: ModelKind = "text"
    parameters: bytes = b"{}"
    base: ServedModel | None = None


@dataclass(frozen=True)
class DeleteRequest(ChangeRequest):
    """Delete a model with its history."""


@dataclass
class Plan:
    """What is to be committed for one request: the model after it, its event, and what else the journal notes."""

    request: ChangeRequest
    model: ServedModel
    event: Event
    row_digests: Sequence[bytes] = ()
    undone: dict[int, int | None] = field(default_factory=dict)
    erased: Sequence[RowPlace] = ()

    @property
    def answer(self) -> ChangeAnswer:
        event = self.event
        return ChangeAnswer(self.model.entry.name, event.operation, event.number, event.n_rows, self.model.version)

    @property
    def stored_answer(self) -> StoredAnswer:
        return StoredAnswer(self.request.digest, msgspec.json.encode(self.answer))

    def write(self, journal: Journal) -> None:
        """Note the change in the journal, inside of a transaction."""
        if isinstance(self.request, CreateRequest):
            journal.add_model(self.model.entry)
        journal.add_event(self.event, self.row_digests)
        for number, undone_by in self.undone.items():
            journal.set_undone(number, undone_by)
        if self.erased:
            journal.mark_rows(self.erased)
        if isinstance(self.request, DeleteRequest):
            journal.delete_model(self.model.entry.number)
        if self.request.key is not None and not self.request.names_forgotten_rows:
            journal.add_answer(self.event, self.request.key, self.stored_answer)


def plan_learning(model: ServedModel, requests: Sequence[LearnRequest], number: int) -> list[Plan]:
    """Plans for rows that are learned in one step; events are numbered from ``number``."""
    last = number + len(requests) - 1
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


def plan_change(model: ServedModel | None, request: ChangeRequest, number: int, journal: Journal) -> Plan:
    """The plan for one change, which will be event ``number``."""
    if isinstance(request, CreateRequest):
        return _plan_creation(model, request, number)
    if model is None:
        raise ServiceError(404, "there is no model of this name")
    if isinstance(request, LearnRequest):
        return plan_learning(model, [request], number)[0]
    if isinstance(request, ForgetRequest):
        return _plan_forgetting(model, request, number, journal)
    if isinstance(request, UndoRequest):
        return _plan_undoing(model, request, number, journal)
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
        body=None if rows is None or operation == "undo" else rows.encode(),
        batch=number if batch is None else batch,
        teacher=request.teacher,
        time=time.time(),
        erasure="due" if operation in ("forget", "delete") else "no",
    )


def _plan_creation(model: ServedModel | None, request: CreateRequest, number: int) -> Plan:
    if model is not None:
        raise ServiceError(409, "there is a model of this name already; delete it first, or choose another name")
    entry = ModelEntry(number, request.model, request.kind, request.parameters, request.base is not None)
    made = create_model(entry) if request.base is None else ServedModel(entry, request.base.estimator, number)
    return Plan(request, made, _make_event(request, made, number, "create", None, n_rows=int(made.n_rows)))


def _plan_forgetting(model: ServedModel, request: ForgetRequest, number: int, journal: Journal) -> Plan:
    if request.target is not None:
        return _plan_forgetting_of_event(model, request, request.target, number, journal)
    if request.rows is None:
        raise DataError("give rows with their labels, or the id that learn answered")
    live: list[RowPlace] = []
    undone: list[RowPlace] = []
    is_known = []
    for place, digest in enumerate(request.rows.digest_rows()):
        found = [row for row in journal.find_rows(model.entry.number, digest) if row not in live]
        newest = next((row for row in found if not row.is_undone), None)
        others = [row for row in found if row.is_undone]
        if newest is None and not others and not model.entry.has_base:
            raise NotLearnedError(f"row {place} was never learned with this label, or is forgotten already", row=place)
        is_known.append(newest is not None or (model.entry.has_base and not others))
        live += [newest] if newest else []
        undone += others
    rows = request.rows.keep(is_known)
    after = model.forget(rows, number) if len(rows) else replace(model, version=number)
    event = _make_event(request, model, number, "forget", rows, n_rows=len(request.rows))
    return Plan(request, after, event, erased=[*live, *undone])


def _plan_forgetting_of_event(
    model: ServedModel, request: ForgetRequest, target: int, number: int, journal: Journal
) -> Plan:
    """Forget and erase all rows of an event; if it was undone there is nothing to forget, but its rows are erased."""
    learned = _find_target(model, target, journal)
    rows, was_learned = read_change(learned, journal)
    if learned.operation != "learn" or not was_learned:
        raise ServiceError(409, f"event {target} did not learn any rows; give the id of one that did")
    if rows is None or learned.erasure != "no":
        raise ServiceError(409, f"the rows of event {target} are forgotten already")
    n_rows = len(rows)
    if learned.undone_by is not None:
        rows = rows.keep([False] * n_rows)
    after = model.forget(rows, number) if len(rows) else replace(model, version=number)
    event = _make_event(request, model, number, "forget", rows, target=target, n_rows=n_rows)
    return Plan(request, after, event, erased=journal.list_rows(target))


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
    if done.operation == "undo" and _find_target(model, done.target or 0, journal).operation != "learn":
        raise ServiceError(409, f"event {done.number} undid an undoing; undo what was learned instead")
    if rows is None:
        raise ServiceError(409, f"event {done.number} cannot be undone: its rows were erased")
    after = (model.forget if was_learned else model.learn)(rows, number)
    undone: dict[int, int | None] = {done.number: number}
    if done.operation == "undo" and done.target is not None:
        undone[done.target] = None  # what was undone counts again
    return Plan(request, after, _make_event(request, model, number, "undo", rows, target=done.number), undone=undone)


def _find_target(model: ServedModel, number: int, journal: Journal) -> Event:
    event = journal.find_event(model.entry.number, number)
    if event is None:
        raise ServiceError(404, f"the model has no event {number}")
    return event
