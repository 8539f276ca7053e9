"""The mutable part of a classifier: a reference to what was learned, and a buffer of single rows.

What was learned is a frozen value. A change makes a new one, which takes the place of the old one in a single step; if
it raises, nothing has happened. Changes of one classifier wait for each other, so no row is lost. An answer is computed
from the value as it was when it was asked for.

Single rows are the exception: a new value for every row would cost more than the row. They are learned in place, by the
buffer, under the lock. Reading the value counts them first.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.core.atomic_state import LockOwner
from priory.core.logspace import normalise
from priory.core.typing import Label
from priory.learning.learned import LabelEncoder, Learned, answer, forget, learn_more
from priory.learning.row_buffer import RowBuffer
from priory.learning.row_kind import RowKind

MAX_BUFFERED_ROWS = 64  # of a batch: more of them are counted as quickly into the statistics


class CountingClassifier(LockOwner):
    """What was learned (``state``), under the parameters that were declared last."""

    def __init__(self, state: Learned | None = None) -> None:
        super().__init__()
        self.declared: RowKind[Any] | None = None  # None: the parameters have to be declared again
        self.buffer: RowBuffer[Any] | None = None
        self._state = state

    @property
    def changes_in_place(self) -> bool:  # type: ignore[override]
        """Whether another thread may be learning a single row in place."""
        return self.buffer is not None

    @property
    def state(self) -> Learned | None:
        """What was learned, including the rows of the buffer; None before the first row."""
        buffer = self.buffer
        if buffer is not None and buffer.has_pending_rows:
            with self.lock:
                # checked again under the lock: another thread may have counted them
                if self.buffer is not None and self.buffer.has_pending_rows:
                    self._count_buffer(self.buffer)
        return self._state

    @property
    def has_learned(self) -> bool:
        """Whether any row was learned."""
        return self._state is not None

    def declare(self, rows: RowKind[Any] | None) -> None:
        """Change the parameters, after counting the buffer; None if they are not known yet."""
        with self.lock:
            state = self.state
            self.declared, self.buffer = rows, None
            if state is not None and rows is not None:
                self._state = state.with_parameters(rows)

    def change(self, step: Callable[[Learned | None], Learned | None]) -> None:
        """Set ``state = step(state)``; if that raises, the state is unchanged."""
        with self.lock:
            self._state = step(self.state)
            self.buffer = None

    def prepare_standby(self) -> bool:
        """Derive corrections and standby sets; return False if the state has changed meanwhile."""
        state = self.state
        if state is None:
            return False
        ready = state.prepare_standby()
        with self.lock:
            if self._state is not state or (self.buffer is not None and self.buffer.has_pending_rows):
                return False
            self._state, self.buffer = ready, None
            return True

    def learn_batch(
        self,
        rows: RowKind[Any],
        X: object,
        encode: LabelEncoder,
        sample_weight: object,
        classes: Array | None,
        strict: bool,
    ) -> None:
        """Learn a batch: by the buffer if it is small, without new classes or columns."""
        with self.lock:
            # the buffer learns rows of weight one, of classes already known
            is_plain = sample_weight is None and classes is None and not strict
            if is_plain and self._buffer_batch(X, encode, learns=True):
                return
            self.change(
                lambda before: learn_more(
                    before, rows, X, encode, sample_weight, classes=classes, strict=strict, tempers=True
                )
            )

    def forget_batch(
        self, X: object, encode: LabelEncoder, sample_weight: object = None, learned_at: float | None = None
    ) -> None:
        """Forget a batch: by the buffer if it is small, and if its counts show that it was learned."""
        with self.lock:
            # opening a model for single rows costs its whole vocabulary, more than subtracting the batch
            is_open = self.buffer is not None or (self._state is not None and not self._state.rows.tokenizers)
            is_plain = sample_weight is None and learned_at is None
            if is_open and is_plain and self._buffer_batch(X, encode, learns=False):
                return
            self.change(lambda before: before and forget(before, X, encode, sample_weight, learned_at))

    def _buffer_batch(self, X: object, encode: LabelEncoder, learns: bool) -> bool:
        """Learn or forget a few rows in the buffer; return False, changing nothing, if the statistics are needed."""
        buffer, state = self._open_buffer() if has_few_rows(X) else None, self._state
        if buffer is None or state is None or state.needs_declared_classes or not (learns or state.is_exact):
            return False
        listed = state.rows.list_rows(X)
        if listed is None:
            return False
        rows = [buffer.model.read_row(x, learns=True) for x in listed]
        labels, group = encode(state.classes, False)
        if any(row is None for row in rows) or len(labels) > len(state.classes) or len(group) != len(rows):
            return False
        if learns:
            buffer.learn_all(rows, group.tolist())
        elif not buffer.forget_all(rows, group.tolist()):
            return False
        if buffer.is_full:
            self._count_buffer(buffer)
        return True

    # -- rows one at a time --------------------------------------------------------------------------------------

    def learn_row(self, rows: RowKind[Any], x: object, y: Label, encode: LabelEncoder) -> None:
        """Learn one row: by the buffer, unless it has a new class or column."""
        with self.lock:
            buffer = self._open_buffer()
            if buffer is not None:
                group, row = buffer.find_group(y), buffer.model.read_row(x, learns=True)
                if group is not None and row is not None:
                    buffer.learn(row, group)
                    if buffer.is_full:
                        self._count_buffer(buffer)
                    return
            known = rows if self._state is None else self._state.rows
            self.change(lambda before: learn_more(before, rows, known.wrap_row(x, learns=True), partial(encode, [y])))

    def forget_row(self, x: object, y: Label, encode: LabelEncoder) -> None:
        """Forget one row: by the buffer, unless only the full statistics can tell whether it was learned."""
        with self.lock:
            buffer = self._open_buffer()
            state = self._state
            assert state is not None
            if buffer is not None and state.is_exact:
                group, row = buffer.find_group(y), buffer.model.read_row(x, learns=True)
                if group is not None and row is not None and buffer.forget(row, group):
                    if buffer.is_full:
                        self._count_buffer(buffer)
                    return
            one = partial(encode, [y])
            self.change(lambda before: before and forget(before, before.rows.wrap_row(x, learns=True), one))

    def answer_row(self, x: object) -> dict[Label, float]:
        """The probability of each class for one row; empty before the first row was learned."""
        with self.lock:
            buffer = self._open_buffer()
            if buffer is not None and buffer.needs_statistics:
                self.state  # noqa: B018  # brings it up to date
                buffer = self._open_buffer()  # another one if a column has lost its last cell
            if buffer is not None and self._state is not None:
                row = buffer.model.read_row(x, learns=False)
                if row is not None:
                    self._state = buffer.prepare_answer(self._state)
                    log_p = buffer.log_probabilities(row)
                    if log_p is not None:
                        return dict(zip(buffer.labels, np.exp(log_p).tolist(), strict=True))
            state = self.state
            if state is None:
                return {}
            [probabilities] = answer(state, state.rows.wrap_row(x, learns=False), normalise)
            return dict(zip(state.classes.tolist(), probabilities.tolist(), strict=True))

    def _open_buffer(self) -> RowBuffer[Any] | None:
        if self.buffer is None and self._state is not None:
            self.buffer = RowBuffer.open(self._state)
        return self.buffer

    def _count_buffer(self, buffer: RowBuffer[Any]) -> None:
        """Count the rows of the buffer; it stays open unless classes or columns have changed."""
        before = self._state
        assert before is not None
        after = buffer.count_into(before)
        self._state, self.buffer = after, None
        if after is not None and after.rows.column_names == before.rows.column_names:
            buffer.restart(after.statistics)
            self.buffer = buffer


def has_few_rows(X: object) -> bool:
    """Whether a batch is known to be small before it is read."""
    try:
        return isinstance(X, Sized) and 0 < len(X) <= MAX_BUFFERED_ROWS
    except TypeError:  # sparse arrays and scalars have no length
        return False
