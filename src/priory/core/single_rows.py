"""`learn_one`, `forget_one`, `predict_one` and `predict_proba_one`, following river's interface.

Here a row is a table of one row. Classifiers that count rows have a shorter way (`priory.learning.row_buffer`). A
classifier that cannot learn or forget single rows lacks the method, and says what to use instead.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.input_guard import name_cells
from priory.core.optional_attributes import optional_method
from priory.core.typing import Label
from priory.errors import DataError, KindError


class SingleRowMethods:
    """Methods for one row at a time: a dict from column to cell or, for classifiers of texts, a string."""

    if TYPE_CHECKING:  # an attribute in some classifiers, a property in others

        @property
        def classes_(self) -> Array: ...

    _supervised = _multiclass = True  # read by river's pipelines and evaluators
    _takes_texts = False

    # -- implemented by classifiers -------------------------------------------------------------------------------

    @abstractmethod
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class."""

    def _explain_absence(self, method: str) -> str | None:
        """Why ``learn_one`` or ``forget_one`` is missing, and what to use instead; None if it exists."""
        return None

    def _has_learned(self) -> bool:
        return "classes_" in vars(self)

    def _learn_table(self, X: object, y: ArrayLike) -> None:
        """Learn rows, the first ones or further ones."""
        raise NotImplementedError

    def _forget_table(self, X: object, y: ArrayLike) -> None:
        """Forget rows."""
        raise NotImplementedError

    def _wrap_row(self, x: Any, learns: bool) -> object:
        """Convert one row to a table, with the columns in the order in which they were learned.

        ``learns`` is true if the row is learned or forgotten, false if it is predicted.
        """
        if self._takes_texts and isinstance(x, str | bytes):
            return [x]
        return wrap_named_row(x, vars(self).get("feature_names_in_"), self._has_learned())

    # -- rows one at a time --------------------------------------------------------------------------------------

    @optional_method
    def learn_one(self, x: Any, y: Label) -> Self:
        """Learn one row."""
        self._learn_table(self._wrap_row(x, learns=True), [y])
        return self

    @optional_method
    def forget_one(self, x: Any, y: Label) -> Self:
        """Forget one learned row: the model is then as if it had never been learned."""
        self._forget_table(self._wrap_row(x, learns=True), [y])
        return self

    def predict_proba_one(self, x: Any) -> dict[Label, float]:
        """The probability of each class for one row; empty before anything was learned."""
        if not self._has_learned():
            return {}
        probabilities = np.asarray(self.predict_proba(self._wrap_row(x, learns=False)))[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    def predict_one(self, x: Any) -> Label | None:
        """The most probable class of one row; None before anything was learned."""
        answer = self.predict_proba_one(x)
        return max(answer, key=answer.__getitem__) if answer else None


def wrap_named_row(x: Any, names: Sequence[str] | Array | None, has_learned: bool) -> object:
    """A dict as a table of one row, its columns in the order of ``names``, if those that were learned have any."""
    if not isinstance(x, Mapping):
        raise KindError(f"x is a {type(x).__name__}; give one row as a dict of column to cell.")
    x = name_cells(x)
    known = list(x if names is None else names)
    if set(known) != x.keys():
        name = next(iter(set(known) ^ x.keys()))
        raise DataError(f"the row {'lacks' if name in known else 'has'} column {name!r}; the model knows {known[:10]}.")
    if names is None and has_learned:
        return np.array([list(x.values())])
    import pyarrow as pa  # of all tables the one with names that every installation has

    return pa.table({name: [x[name]] for name in known})
