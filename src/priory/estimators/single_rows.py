"""`learn_one`, `forget_one`, `predict_one` and `predict_proba_one`: a classifier row by row, by river's convention.

A classifier that can be opened for single rows has a `RowStream`. A row that the stream cannot take (a new class, a new
column, a cell of another kind) goes the ordinary way, as a table of one row. Both ways lead to the same record.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from priory.core.atomic_state import Guard, close_stream, find_guard, settle_state
from priory.core.typing import Array, Label
from priory.estimators.row_stream import RowStream, find_best_label


class SingleRowMethods:
    """Methods for one row at a time, which is a dict of column to cell, or a text."""

    _supervised = _multiclass = True  # what river's pipelines and evaluators ask of a classifier

    # -- what a classifier provides -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def classes_(self) -> Array:
        """The labels, sorted."""

    @abstractmethod
    def _wrap_row(self, x: Any, learns: bool) -> object:
        """One row as a table, to be learned or to be asked about."""

    @abstractmethod
    def _learn_table(self, X: object, y: ArrayLike | None) -> None:
        """Learn from rows, the first ones or more, whatever their classes."""

    @abstractmethod
    def _forget_table(self, X: object, y: ArrayLike | None) -> None:
        """Forget rows."""

    @abstractmethod
    def _answer_table(self, X: object) -> Array:
        """p(c | x) for each row and class."""

    def _make_stream(self) -> RowStream[Any] | None:
        """A stream that begins with what was learned; None if rows go the ordinary way."""
        return None

    def _settle(self) -> None:
        """Count the rows of the stream into the record."""

    def _prepare_answer(self, stream: RowStream[Any]) -> None:
        """Bring the corrections of a stream up to date before it answers."""

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
            self._learn_table(self._wrap_row(x, learns=True), [y])
        return self

    def forget_one(self, x: Any, y: Label) -> Self:
        """Unlearn one row that was learned: the model is as if it had never seen it."""
        guard = find_guard(self)
        with guard.lock:
            stream = self._open_stream(guard)
            if stream is not None and vars(self).get("clock_", 1.0) == 1.0:
                group, row = stream.find_group(y), stream.model.read_row(x, learns=False)
                if group is not None and row is not None and stream.forget(row, group):
                    if stream.is_full:
                        self._settle()
                    return self
            self._forget_table(self._wrap_row(x, learns=False), [y])
        return self

    def predict_proba_one(self, x: Any) -> dict[Label, float]:
        """The probability of each class for one row; empty as long as nothing was learned."""
        guard = find_guard(self)
        with guard.lock:
            stream = self._open_stream(guard)
            if stream is not None:
                row = stream.model.read_row(x, learns=False)
                if row is not None:
                    self._prepare_answer(stream)
                    answer = stream.log_probabilities(row)
                    if answer is not None:
                        return dict(zip(stream.labels, np.exp(answer).tolist(), strict=True))
            if "statistics_" not in vars(self):
                return {}
            probabilities = self._answer_table(self._wrap_row(x, learns=False))[0]
            return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    def predict_one(self, x: Any) -> Label | None:
        """The most probable class of one row; None as long as nothing was learned."""
        return find_best_label(self.predict_proba_one(x))

    def _open_stream(self, guard: Guard[RowStream[Any]]) -> RowStream[Any] | None:
        """The stream of this classifier; None if nothing was learned, or rows go the ordinary way."""
        if guard.stream is None and "statistics_" in vars(self):
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
