"""The strongest evidence for each class, as shown by the report, the terminal and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import log, log_sum_exp
from priory.core.sharding import space_evenly
from priory.core.typing import Label
from priory.estimators.sklearn_compat import take_table_rows
from priory.model.ledger_output import DECIBANS_PER_NAT

MAX_EVIDENCE_PER_CLASS = 10
MAX_ROWS_TO_EXPLAIN = 500  # rows over which the evidence of columns is averaged, balanced by class


class ClassEvidence(NamedTuple):
    """A word or a column, and its weight of evidence for a class against all others, in decibans.

    For a word, ``own_count`` and ``total_count`` are its counts in the class and in all classes; for a column, None.
    """

    name: str
    decibans: float
    own_count: float | None = None
    total_count: float | None = None


def lists_tokens(model: object) -> bool:
    """Whether a model is one of texts, which knows the strongest tokens of a class."""
    return hasattr(model, "evidence") and hasattr(model, "buckets")


def find_strongest_evidence(model: Any, X: object, labels: Array) -> dict[Label, list[ClassEvidence]]:
    """Return the words or columns with the strongest evidence for each class, strongest first.

    The evidence is the log-likelihood ratio of the class against all other classes together. For a column it is
    averaged over rows of the class, equally many for each class and evenly spaced over ``X``; it is infinite if one of
    the rows has a value that is impossible in all other classes. For a model without explanations the result is empty.
    """
    if lists_tokens(model):
        if model.buckets is not None:  # a hashed model does not store words
            return {}
        return {label: _list_tokens(model, label) for label in model.classes_.tolist()}
    return _average_column_evidence(model, X, labels) if hasattr(model, "explain") else {}


def _list_tokens(model: Any, label: Label) -> list[ClassEvidence]:
    return [
        ClassEvidence(token, decibans, counts[label], sum(counts.values()))
        for token, decibans, counts in model.evidence(label, MAX_EVIDENCE_PER_CLASS)
    ]


def _average_column_evidence(model: Any, X: object, labels: Array) -> dict[Label, list[ClassEvidence]]:
    class_rows = _choose_rows_of_each_class(model.classes_, labels)
    positions = np.concatenate(list(class_rows.values()))
    ledgers = model.explain(take_table_rows(X, positions))
    counts = np.asarray(getattr(model, "class_count_", np.ones(len(model.classes_))), dtype=float)
    names = [line.name for line in ledgers[0].lines if line.columns]
    terms = np.array([[line.log_likelihood for line in ledger.lines if line.columns] for ledger in ledgers])
    found, start = {}, 0
    for c, label in enumerate(model.classes_.tolist()):
        n_rows = len(class_rows.get(c, ()))
        if n_rows:
            # ledgers are grouped by class, in the order of the classes
            decibans = _compare_with_other_classes(terms[start : start + n_rows], c, counts)
            with np.errstate(invalid="ignore"):  # inf - inf: rows that rule out the class, and others
                found[label] = _take_strongest(names, decibans.mean(axis=0))
        start += n_rows
    return found


def _choose_rows_of_each_class(classes: Array, labels: Array) -> dict[int, Array]:
    """Return the positions of evenly spaced rows of each class, as a file may be sorted."""
    per_class = max(1, MAX_ROWS_TO_EXPLAIN // len(classes))
    rows = {c: np.flatnonzero(labels == label) for c, label in enumerate(classes)}
    return {c: own[space_evenly(len(own), per_class)] for c, own in rows.items() if len(own)}


def _compare_with_other_classes(terms: Array, c: int, counts: Array) -> Array:
    """Return the evidence for class ``c`` against the mixture of all others, (rows, columns), weighted by their rows.

    ``terms`` is (rows, columns, classes), ``counts`` is (classes,).
    """
    others = np.arange(len(counts)) != c
    if not others.any():
        return np.zeros(terms.shape[:2])
    weights = counts[others] if counts[others].any() else np.ones(others.sum())  # uniform if the others have no rows
    rivals = log_sum_exp(terms[:, :, others] + log(weights / weights.sum()))  # (rows, columns)
    with np.errstate(invalid="ignore"):  # -inf - -inf: a value impossible in every class is no evidence
        return np.nan_to_num((terms[:, :, c] - rivals) * DECIBANS_PER_NAT, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _take_strongest(names: Sequence[str], decibans: Array) -> list[ClassEvidence]:
    best = np.argsort(-decibans, kind="stable")[:MAX_EVIDENCE_PER_CLASS]
    return [ClassEvidence(names[j], float(decibans[j])) for j in best if decibans[j] > 0]
