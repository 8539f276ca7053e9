"""Convert ledgers to Shapley values, in the arrays that ``shap.plots`` uses.

The players of the game are the columns, and the value of a coalition is the log-odds of the model if only its columns
are known. In naive Bayes this is a sum: the prior plus the evidence of each column. So the Shapley value of a column is
exactly its line in the ledger, and the base value is the prior: nothing is sampled, and no background data is needed.
Corrections that depend on several columns are a separate column, "(together)".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from priory.core.typing import Array, Label
from priory.errors import DataError, MissingDependencyError


@dataclass(frozen=True)
class ShapleyValues:
    """Contributions of the columns to the log-odds, in nats, with the fields of ``shap.Explanation``.

    For two classes, ``values`` is (rows, columns), and ``base_values + values.sum(axis=1)`` are the log-odds of the
    second class. For more, it is (rows, columns, classes), and the softmax of that sum gives the probabilities. For
    texts, the columns are the tokens of all rows, and a token that does not occur in a row contributes zero.
    """

    values: Array
    base_values: Array
    data: Array  # (rows, columns): the cells, None if a row has no such line
    feature_names: tuple[str, ...]
    output_names: tuple[Label, ...] | Label

    def to_shap(self) -> Any:
        """Convert to a ``shap.Explanation``, for ``shap.plots``."""
        try:
            import shap
        except ImportError:
            raise MissingDependencyError("to_shap needs shap: pip install shap.", name="shap") from None
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if isinstance(self.output_names, tuple) else self.output_names,
        )


def compute_shapley_values(
    classes: tuple[Label, ...], prior: Array, rows: Sequence[Sequence[tuple[str, object, Array]]]
) -> ShapleyValues:
    """Shapley values of rows of lines (name, value, log probabilities of shape (classes,), like ``prior``)."""
    names = tuple(dict.fromkeys(name for lines in rows for name, _, _ in lines))
    place = {name: j for j, name in enumerate(names)}
    terms = np.zeros((len(rows), len(names), len(classes)))
    data = np.full((len(rows), len(names)), None, dtype=object)
    for row, lines in enumerate(rows):
        for name, value, logs in lines:
            terms[row, place[name]] = logs
            data[row, place[name]] = value
    if not (np.isfinite(terms).all() and np.isfinite(prior).all()):
        raise DataError("a cell rules a class out, and what is infinite has no share; use an alpha above 0.")
    base = np.tile(prior, (len(rows), 1))
    if len(classes) == 2:
        return ShapleyValues(terms[..., 1] - terms[..., 0], base[:, 1] - base[:, 0], data, names, classes[1])
    return ShapleyValues(_centre(terms), _centre(base), data, names, classes)


def _centre(logs: Array) -> Array:
    """Subtract the mean over the classes, which does not change probabilities."""
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))
