"""Single rows at the cost of the row, for classifiers whose record is a sum over rows.

A classifier that can be opened for single rows has a `RowStream`. A row that the stream cannot take (a new class, a new
column, a cell of another kind) goes the ordinary way, as a table of one row. Both ways lead to the same record.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from priory.core.atomic_state import Guard, close_stream, find_guard, settle_state
from priory.core.single_rows import SingleRowMethods
from priory.core.typing import Label
from priory.estimators.row_stream import RowStream


class RowStreamMethods(SingleRowMethods):
    """The methods for one row at a time, with a stream."""

    # -- what a classifier provides -------------------------------------------------------------------------------

    def _make_stream(self) -> RowStream[Any] | None:
        """A stream that begins with what was learned; None if rows go the ordinary way."""
        return None

    def _settle(self) -> None:
        """Count the rows of the stream into the record."""

    def _needs_record(self, stream: RowStream[Any]) -> bool:
        """Whether something has to be derived from the record, with all rows, before a stream answers."""
        return False

    def _prepare_answer(self, stream: RowStream[Any]) -> None:
        """Derive from the record what a stream answers with."""

    def _has_learned(self) -> bool:
        return "statistics_" in vars(self)

    # -- rows one at a time --------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Label) -> Self:
        """Learn from one row: a dict of column to cell, or a text.

        The result is that of ``partial_fit`` with the row, at the cost of the row: it does not depend on what was
        learned before. Classes need not be declared.
        """
        guard = find_guard(self)
        with guard.lock:
            stream = self._open_stream(guard)
            if stream is not None:
                group, row = stream.find_group(y), stream.model.read_row(x, learns=True)
                if group is not None and row is not None:
                    stream.learn(row, group)
                    if stream.is_full:
                        self._settle()
                    return self
            return super().learn_one(x, y)

    def forget_one(self, x: Any, y: Label) -> Self:
        """Unlearn one row that was learned: the model is as if it had never seen it."""
        guard = find_guard(self)
        with guard.lock:
            stream = self._open_stream(guard)
            if stream is not None and vars(self).get("clock_", 1.0) == 1.0:
                group, row = stream.find_group(y), stream.model.read_row(x, learns=True)
                if group is not None and row is not None and stream.forget(row, group):
                    if stream.is_full:
                        self._settle()
                    return self
            return super().forget_one(x, y)

    def predict_proba_one(self, x: Any) -> dict[Label, float]:
        """The probability of each class for one row; empty as long as nothing was learned."""
        guard = find_guard(self)
        with guard.lock:
            stream = self._open_stream(guard)
            if stream is not None and self._needs_record(stream):
                settle_state(self)
                stream = self._open_stream(guard)  # another one if a column has lost its last cell
            if stream is not None:
                row = stream.model.read_row(x, learns=False)
                if row is not None:
                    self._prepare_answer(stream)
                    answer = stream.log_probabilities(row)
                    if answer is not None:
                        return dict(zip(stream.labels, np.exp(answer).tolist(), strict=True))
            return super().predict_proba_one(x)

    def _open_stream(self, guard: Guard[RowStream[Any]]) -> RowStream[Any] | None:
        """The stream of this classifier; None if nothing was learned, or rows go the ordinary way."""
        if guard.stream is None and self._has_learned():
            guard.stream = self._make_stream()
        return guard.stream

    # -- the state -----------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        """Whatever is set from outside may change how rows are read: those of the stream are counted first."""
        close_stream(self)
        super().__setattr__(name, value)

    def __getstate__(self) -> object:
        settle_state(self)
        return super().__getstate__()
