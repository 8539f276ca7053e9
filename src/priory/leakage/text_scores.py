"""Leave-one-out scores of texts by a bag of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.typing import Array
from priory.estimators.text_classifier import TextClassifier

MAX_DOCUMENTS_SCORED = 20_000  # documents used to measure the effect of a finding


def sample_documents(documents: list[str], labels: Array) -> tuple[list[str], Array]:
    """Return about `MAX_DOCUMENTS_SCORED` evenly spaced documents with their labels, or all if there are fewer."""
    step = max(1, len(documents) // MAX_DOCUMENTS_SCORED)
    return documents[::step], labels[::step]


def log_joint_leave_one_out(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """Return log p(class, document) from all other documents, (documents, classes); classes are 0, 1, ..."""
    model = TextClassifier(stop_words=list(stop_words) if stop_words else None, calibrate=False).fit(documents, labels)
    joint = np.full((len(documents), int(labels.max()) + 1), -np.inf)  # -inf for classes outside of the sample
    joint[:, model.classes_] = model.leave_one_out(documents, labels)
    return joint


def mark_correct_documents(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """Whether each document is classified correctly by all other documents, without ``stop_words``: (documents,)."""
    return np.asarray(log_joint_leave_one_out(documents, labels, stop_words).argmax(axis=1) == labels)
