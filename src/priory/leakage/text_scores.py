"""Scores of texts by a bag of words, each text left out of the counts in closed form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.typing import Array
from priory.estimators.text_classifier import TextClassifier

MAX_DOCUMENTS_SCORED = 20_000  # documents on which the effect of a finding is measured


def sample_documents(documents: list[str], labels: Array) -> tuple[list[str], Array]:
    """About `MAX_DOCUMENTS_SCORED` documents, evenly spaced, and their labels; all of them if there are fewer."""
    step = max(1, len(documents) // MAX_DOCUMENTS_SCORED)
    return documents[::step], labels[::step]


def log_joint_leave_one_out(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """log p(c, document) from the words of all other documents, without ``stop_words``; classes are 0, 1, ..."""
    model = TextClassifier(stop_words=list(stop_words) if stop_words else None, calibrate=False).fit(documents, labels)
    joint = np.full((len(documents), int(labels.max()) + 1), -np.inf)
    joint[:, model.classes_] = model.leave_one_out(documents, labels)
    return joint


def mark_correct_documents(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """Which documents are classified correctly by the words of all other documents, without ``stop_words``."""
    return np.asarray(log_joint_leave_one_out(documents, labels, stop_words).argmax(axis=1) == labels)
