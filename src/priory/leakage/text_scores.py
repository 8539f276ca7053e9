"""The score of a bag of words on texts, each left out in closed form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.typing import Array
from priory.estimators.text_classifier import TextClassifier

MOST = 20_000  # documents scored, for the effect of what was found


def without(documents: list[str], labels: Array, words: Sequence[str] | None = None) -> Array:
    """log p(c, document) by the words of all other documents, but for some words; classes are 0, 1, …"""
    model = TextClassifier(stop_words=list(words) if words else None).fit(documents, labels)
    joint = np.full((len(documents), int(labels.max()) + 1), -np.inf)
    joint[:, model.classes_] = model.leave_one_out(documents, labels)
    return joint


def right(documents: list[str], labels: Array, words: Sequence[str] | None = None) -> Array:
    """Which documents are given their class so."""
    return np.asarray(without(documents, labels, words).argmax(axis=1) == labels)
