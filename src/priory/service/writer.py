"""The writer thread: applies waiting changes, commits them together, and then answers (group commit).

Changes that arrive during a commit form the next group, so they share the cost of one synchronised write. Rows of one
model in the same group are learned in one step.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from priory.errors import PrioryError, ServiceError
from priory.service import changes
from priory.service.changes import ChangeAnswer, ChangeRequest, CreateRequest, DeleteRequest, LearnRequest, Plan
from priory.service.journal import StoredAnswer
from priory.service.metrics import Metrics
from priory.service.model_store import ModelStore, ServedModel

MAX_GROUP_SIZE = 512  # requests
MAX_GROUP_ROWS = 4096
MAX_WAITING_REQUESTS = 4096
MAX_KNOWN_FORGETTINGS = 10_000  # answers kept in memory
EVENTS_PER_SNAPSHOT = 2000  # bounds the time of a restart


@dataclass
class _Ticket:
    """A queued request and its outcome."""

    request: ChangeRequest
    future: Future[ChangeAnswer] = field(default_factory=Future)
    arrived: float = field(default_factory=time.perf_counter)
    outcome: ChangeAnswer | Exception | None = None  # set before the future is resolved


class Writer:
    """A thread that carries out all changes of all models, in order of arrival."""

    def __init__(
        self, store: ModelStore, metrics: Metrics | None = None, on_forgetting: Callable[[], None] | None = None
    ) -> None:
        self._store, self._metrics, self._on_forgetting = store, metrics or Metrics(), on_forgetting
        self._tickets: queue.Queue[_Ticket | None] = queue.Queue(MAX_WAITING_REQUESTS)
        self._next_number = store.journal.find_last_number() + 1
        # Answers to requests that name rows to forget, by model and key. They are kept in memory only, because their
        # hashes could reveal the rows; repeated after a restart, such a request fails, as the rows are forgotten.
        self._forgettings: OrderedDict[tuple[str, str], StoredAnswer] = OrderedDict()
        with suppress(OSError, sqlite3.Error):  # retried with the next change
            self._erase_due_rows()
        self._thread = threading.Thread(target=self._run, name="priory-writer", daemon=True)
        self._thread.start()

    def submit(self, request: ChangeRequest) -> Future[ChangeAnswer]:
        """Queue a change; the future is resolved once the change is on disk."""
        ticket = _Ticket(request)
        try:
            self._tickets.put_nowait(ticket)
        except queue.Full:
            raise ServiceError(503, "too many changes are waiting; try again later") from None
        return ticket.future

    def count_waiting(self) -> int:
        return self._tickets.qsize()

    def close(self) -> None:
        """Carry out the queued changes, write snapshots, and stop the thread."""
        self._tickets.put(None)
        self._thread.join()
        for model in self._store.models.values():
            if self._store.count_events_since_snapshot(model):
                with suppress(OSError):
                    self._store.save_snapshot(model)

    # -- groups --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (group := self._take_group()) is not None:
            start = time.perf_counter()
            # skip requests that were cancelled while they waited
            group = [ticket for ticket in group if ticket.future.set_running_or_notify_cancel()]
            for ticket in group:
                self._metrics.observe_stage("queue", start - ticket.arrived)
            self._carry_out(group)
            for ticket in group:
                if isinstance(ticket.outcome, ChangeAnswer):
                    ticket.future.set_result(ticket.outcome)
                else:
                    ticket.future.set_exception(ticket.outcome or ServiceError(503, "the change was not carried out"))
            self._save_late_snapshots(group)

    def _take_group(self) -> list[_Ticket] | None:
        """Wait for a request and return it with others that have arrived; None when closing."""
        first = self._tickets.get()
        if first is None:
            return None
        group, n_rows = [first], _count_rows(first.request)
        while len(group) < MAX_GROUP_SIZE and n_rows < MAX_GROUP_ROWS:
            try:
                ticket = self._tickets.get_nowait()
            except queue.Empty:
                break
            if ticket is None:
                self._tickets.put(None)  # finish this group first, then stop
                break
            group.append(ticket)
            n_rows += _count_rows(ticket.request)
        return group

    def _carry_out(self, group: Sequence[_Ticket]) -> None:
        """Plan and commit a group in one transaction; if it fails, nothing is changed."""
        plans: list[Plan] = []
        # event numbers are assigned while planning, and given back if the transaction fails
        number = self._next_number
        start = time.perf_counter()
        model_seconds = [0.0]
        try:
            with self._store.journal.transaction():
                drafts = dict(self._store.models)  # the models with the changes of this group so far
                for run in _split_runs(group):
                    plans += self._plan_run(run, drafts, model_seconds)
            self._metrics.observe_stage("model", model_seconds[0])
            self._metrics.observe_stage("journal", time.perf_counter() - start - model_seconds[0])
        except Exception as error:
            self._next_number = number  # the numbers of the rolled-back events are used again
            for plan in plans:
                if isinstance(plan.request, CreateRequest) and plan.model.entry.has_base:
                    self._store.remove_snapshot(plan.model.entry)
            for ticket in group:
                ticket.outcome = _describe_disk_error(error)
            return
        for plan in plans:
            self._publish(plan)
        if self._on_forgetting is not None and any(plan.answer.operation in ("forget", "undo") for plan in plans):
            self._on_forgetting()
        try:
            self._erase_due_rows()
        except Exception:
            for ticket in group:
                # the change is committed, but the promise of erasure is not kept yet
                if isinstance(ticket.outcome, ChangeAnswer) and ticket.outcome.operation in ("forget", "delete"):
                    problem = "the rows are forgotten, but could not be erased from the disk yet; it is tried again"
                    ticket.outcome = ServiceError(507, problem)

    def _plan_run(
        self, run: Sequence[_Ticket], drafts: dict[str, ServedModel], model_seconds: list[float]
    ) -> list[Plan]:
        """Plan the requests of one run and write them to the open transaction."""
        tickets = [ticket for ticket in run if not self._answer_again(ticket)]
        if not tickets:
            return []
        name = tickets[0].request.model
        start = time.perf_counter()
        try:
            plans = self._plan_together(tickets, drafts.get(name))
        except sqlite3.Error:
            raise
        except Exception as error:
            if len(tickets) > 1:  # one of them failed: plan each separately
                return [plan for ticket in tickets for plan in self._plan_run([ticket], drafts, model_seconds)]
            # other messages may quote the data
            tickets[0].outcome = (
                error if isinstance(error, PrioryError) else ServiceError(422, "the rows cannot be used")
            )
            return []
        finally:
            model_seconds[0] += time.perf_counter() - start
        for plan, ticket in zip(plans, tickets, strict=True):
            if isinstance(plan.request, CreateRequest) and plan.model.entry.has_base:
                # its rows are not in the journal, so the snapshot must exist before the commit
                self._store.save_snapshot(plan.model)
            plan.write(self._store.journal)
            ticket.outcome = plan.answer
        self._next_number += len(plans)
        if isinstance(plans[-1].request, DeleteRequest):
            del drafts[name]
        else:
            drafts[name] = plans[-1].model
        return plans

    def _plan_together(self, tickets: Sequence[_Ticket], model: ServedModel | None) -> list[Plan]:
        requests = [ticket.request for ticket in tickets]
        learnings = [request for request in requests if isinstance(request, LearnRequest)]
        if model is not None and len(learnings) == len(requests):
            return changes.plan_learning(model, learnings, self._next_number)
        book = self._store.open_book(model)
        return [changes.plan_change(model, requests[0], self._next_number, self._store.journal, book)]

    def _answer_again(self, ticket: _Ticket) -> bool:
        """Whether the key was used before; the ticket then gets the same answer, or 409 if the request differs."""
        key, name = ticket.request.key, ticket.request.model
        if key is None:
            return False
        known = self._forgettings.get((name, key)) or self._store.journal.find_answer(name, key)
        if known is None:
            return False
        if known.digest == ticket.request.digest:
            ticket.outcome = msgspec.json.decode(known.body, type=ChangeAnswer)
        else:
            ticket.outcome = ServiceError(409, "this Idempotency-Key was used for another request; use a new one")
        return True

    # -- afterwards ----------------------------------------------------------------------------------------------

    def _publish(self, plan: Plan) -> None:
        if plan.names_forgotten_rows and plan.request.key is not None:
            self._forgettings[plan.request.model, plan.request.key] = plan.stored_answer
            if len(self._forgettings) > MAX_KNOWN_FORGETTINGS:
                self._forgettings.popitem(last=False)
        self._metrics.count("priory_rows_total", plan.answer.rows, operation=plan.answer.operation)
        if isinstance(plan.request, DeleteRequest):
            self._store.remove(plan.model)
        else:
            self._store.publish(plan.model)

    def _erase_due_rows(self) -> None:
        """Erase forgotten rows, after writing snapshots without them, so that replay does not need them."""
        journal = self._store.journal
        if due := set(journal.list_models_to_erase()):
            for model in self._store.models.values():
                if model.entry.number in due:
                    self._store.save_snapshot(model)
            with journal.transaction():
                journal.erase_due_rows()
            journal.rebuild()
            with journal.transaction():
                journal.note_erasure()

    def _save_late_snapshots(self, group: Sequence[_Ticket]) -> None:
        """Write snapshots of models with many changes since the last one, to keep the next start fast."""
        for name in {ticket.request.model for ticket in group}:
            model = self._store.models.get(name)
            if model is not None and self._store.count_events_since_snapshot(model) >= EVENTS_PER_SNAPSHOT:
                with suppress(OSError):  # the journal is complete; retried with the next group
                    self._store.save_snapshot(model)


def _count_rows(request: ChangeRequest) -> int:
    rows = getattr(request, "rows", None)
    return 1 if rows is None else len(rows)


def _split_runs(group: Sequence[_Ticket]) -> Iterator[list[_Ticket]]:
    """Group learn requests of one model with different keys; other requests are single. The order per model is kept."""
    waiting: dict[str, list[_Ticket]] = {}
    for ticket in group:
        run = waiting.get(ticket.request.model, [])
        is_first_of_its_key = ticket.request.key is None or all(ticket.request.key != t.request.key for t in run)
        if isinstance(ticket.request, LearnRequest) and is_first_of_its_key:
            waiting[ticket.request.model] = [*run, ticket]
            continue
        if run:
            yield waiting.pop(ticket.request.model)
        yield [ticket]
    yield from waiting.values()


def _describe_disk_error(error: Exception) -> ServiceError:
    full = "full" in str(error) or getattr(error, "errno", None) in (27, 28, 122)  # EFBIG, ENOSPC, EDQUOT
    if full:
        return ServiceError(507, "the disk is full: nothing was changed; predictions go on")
    return ServiceError(503, "the journal cannot be written: nothing was changed; predictions go on")
