"""The score of a bag of words on texts, each left out in closed form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.typing import Array
from priory.estimators.text_classifier import TextClassifier

MAX_DOCUMENTS_SCORED = 20_000  # documents scored, for the effect of what was found


def log_joint_leave_one_out(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """log p(c, document) by the words of all other documents, but for some words; classes are 0, 1, …"""
    model = TextClassifier(stop_words=list(stop_words) if stop_words else None).fit(documents, labels)
    joint = np.full((len(documents), int(labels.max()) + 1), -np.inf)
    joint[:, model.classes_] = model.leave_one_out(documents, labels)
    return joint


def mark_correct_documents(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """Which documents are given their class so."""
    return np.asarray(log_joint_leave_one_out(documents, labels, stop_words).argmax(axis=1) == labels)
