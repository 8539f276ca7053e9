"""The strongest evidence for each class: the one source of what the report, the terminal and JSON show of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from priory.calibration.succession import LIMIT_NAME
from priory.core.logspace import log, log_sum_exp
from priory.core.sharding import space_evenly
from priory.core.typing import Array, Label
from priory.estimators.sklearn_compat import take_table_rows
from priory.models.explanation import Ledger
from priory.models.ledger_formatting import DECIBANS_PER_NAT
from priory.models.token_evidence import TokenEvidence

MAX_EVIDENCE_PER_CLASS = 10
MAX_ROWS_TO_EXPLAIN = 500  # the evidence of columns is averaged over this number of rows, the same number of each class


@runtime_checkable
class ExplainingModel(Protocol):
    """A model that explains its answers."""

    @property
    def classes_(self) -> Array: ...

    def explain(self, X: object) -> Sequence[Ledger]: ...


@runtime_checkable
class TokenModel(Protocol):
    """A model of texts that knows the strongest tokens of a class."""

    buckets: int | None

    @property
    def classes_(self) -> Array: ...

    def evidence(self, label: Label, max_tokens: int) -> list[TokenEvidence]: ...


class ClassEvidence(NamedTuple):
    """A word or a column, and how far it speaks for a class against all others, in decibans.

    Of a word ``own_count`` and ``total_count`` are the counts in the class and in all classes; of a column, None.
    """

    name: str
    decibans: float
    own_count: float | None = None
    total_count: float | None = None


def find_strongest_evidence(model: object, X: object, labels: Array) -> dict[Label, list[ClassEvidence]]:
    """For each class the words or columns that speak most for it, the strongest first.

    The evidence of a word is what it says for the class against all other classes together, as learned. The evidence of
    a column is the same on average over rows of the class: the same number for each class, evenly spaced over ``X``. It
    is infinite if one of the rows has a value that rules out all other classes. Models that explain nothing have none.
    """
    if isinstance(model, TokenModel):
        if model.buckets is not None:  # a hashed model keeps no words
            return {}
        return {label: _list_tokens(model, label) for label in model.classes_.tolist()}
    if isinstance(model, ExplainingModel):
        return _average_column_evidence(model, X, labels)
    return {}


def take_input_rows(X: object, positions: Array) -> object:
    """Some rows of a table of any kind, or of a list of texts."""
    if isinstance(X, Mapping):
        return {name: [column[row] for row in positions] for name, column in X.items()}
    if hasattr(X, "take") and hasattr(X, "schema"):  # a pyarrow table, which scikit-learn before 1.8 cannot index
        taken: object = X.take(positions)
        return taken
    rows: object = take_table_rows(X, positions)
    return rows


def _list_tokens(model: TokenModel, label: Label) -> list[ClassEvidence]:
    return [
        ClassEvidence(token, decibans, counts[label], sum(counts.values()))
        for token, decibans, counts in model.evidence(label, MAX_EVIDENCE_PER_CLASS)
    ]


def _average_column_evidence(model: ExplainingModel, X: object, labels: Array) -> dict[Label, list[ClassEvidence]]:
    class_rows = _choose_rows_of_each_class(model.classes_, labels)
    positions = np.concatenate(list(class_rows.values()))
    ledgers = model.explain(take_input_rows(X, positions))
    counts = np.asarray(getattr(model, "class_count_", np.ones(len(model.classes_))), dtype=float)
    names = [line.name for line in ledgers[0].lines]
    if names[-1].startswith(LIMIT_NAME) and ledgers[0].lines[-1].value == "":  # no column
        names.pop()
    terms = np.array([[line.log_likelihood for line in ledger.lines[: len(names)]] for ledger in ledgers])
    found, start = {}, 0
    for c, label in enumerate(model.classes_.tolist()):
        n_rows = len(class_rows.get(c, ()))
        if n_rows:
            decibans = _compare_with_other_classes(terms[start : start + n_rows], c, counts)
            with np.errstate(invalid="ignore"):  # no mean if some rows rule out the class, and others all but the class
                found[label] = _take_strongest(names, decibans.mean(axis=0))
        start += n_rows
    return found


def _choose_rows_of_each_class(classes: Array, labels: Array) -> dict[int, Array]:
    """The positions of some rows of each class that has any, evenly spaced: a file may be sorted by its labels."""
    per_class = max(1, MAX_ROWS_TO_EXPLAIN // len(classes))
    rows = {c: np.flatnonzero(labels == label) for c, label in enumerate(classes)}
    return {c: own[space_evenly(len(own), per_class)] for c, own in rows.items() if len(own)}


def _compare_with_other_classes(terms: Array, c: int, counts: Array) -> Array:
    """(rows, columns): the evidence for class number ``c`` against all others together, each by its number of rows.

    ``terms`` is (rows, columns, classes), ``counts`` is (classes,).
    """
    others = np.arange(len(counts)) != c
    if not others.any():
        return np.zeros(terms.shape[:2])
    weights = counts[others] if counts[others].any() else np.ones(others.sum())  # all may have been forgotten
    rivals = log_sum_exp(terms[:, :, others] + log(weights / weights.sum()))
    with np.errstate(invalid="ignore"):  # a value that no class allows says nothing
        return np.nan_to_num((terms[:, :, c] - rivals) * DECIBANS_PER_NAT, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _take_strongest(names: Sequence[str], decibans: Array) -> list[ClassEvidence]:
    best = np.argsort(-decibans, kind="stable")[:MAX_EVIDENCE_PER_CLASS]
    return [ClassEvidence(names[j], float(decibans[j])) for j in best if decibans[j] > 0]
