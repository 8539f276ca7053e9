"""Evidence for and against each class, kept apart, and how usual both are among texts that were left out.

A sum of log odds cannot tell a text with strong evidence for two classes from one with weak evidence. So the evidence
of a text for class c, and against it, is summed over its strongest tokens only: words that are added to a text can
raise one sum, but they take nothing from the other. Both sums are compared with those of learned texts of class c, each
from the counts without it. If texts are exchangeable, a text of class c has a share of at most s with probability at
most s (conformal prediction), so that the shares are error rates.

References
----------
Robinson, G. (2003). A statistical approach to the spam problem. Linux Journal 107.
Vovk, V., Gammerman, A. and Shafer, G. (2005). Algorithmic learning in a random world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from priory.core.typing import Array, Label
from priory.model.document_model import DocumentModel
from priory.model.ledger_output import DECIBANS_PER_NAT
from priory.model.model_statistics import ModelStatistics
from priory.text.sparse_counts import is_kept_sparse
from priory.text.token_bags import AnyDocuments, TokenBags

STRONGEST_TOKENS = 10  # on each side
PRIOR_DOCUMENTS = 0.5  # virtual documents with a token, and as many without it
REFERENCE_TEXTS = 300  # of each class
MIN_REFERENCE_TEXTS = 20  # of each class; fewer say nothing about what is usual


@dataclass(frozen=True)
class SideOfClass:
    """The evidence of a text for and against a class in decibans, and how usual both are among texts of the class.

    ``share_for`` is the share of left-out texts of the class with at most as much evidence for it, ``share_against``
    of those with at least as much evidence against it; the text itself counts, so that neither is zero.
    """

    evidence_for: float
    evidence_against: float
    share_for: float
    share_against: float
    n_texts: int

    @property
    def typicality(self) -> float:
        """The probability, at most, that a text of this class is as unusual on its less usual side."""
        return min(1.0, 2 * min(self.share_for, self.share_against))


@dataclass(frozen=True, eq=False)
class ReferenceTexts:
    """Evidence for and against the own class of left-out texts of each class, sorted."""

    evidence_for: tuple[Array, ...]
    evidence_against: tuple[Array, ...]

    def compare(self, c: int, evidence_for: float, evidence_against: float) -> SideOfClass:
        """Compare a text with those of class ``c``."""
        usual_for, usual_against, n = self.evidence_for[c], self.evidence_against[c], len(self.evidence_for[c])
        lower = int(np.searchsorted(usual_for, evidence_for, side="right"))
        higher = n - int(np.searchsorted(usual_against, evidence_against, side="left"))
        return SideOfClass(evidence_for, evidence_against, (1 + lower) / (1 + n), (1 + higher) / (1 + n), n)


def weigh_both_sides(
    model: DocumentModel, documents: AnyDocuments, n_references: int = REFERENCE_TEXTS
) -> list[dict[Label, SideOfClass]]:
    """Weigh the evidence of each text for and against each class; empty if the model keeps no texts to compare with."""
    if model.statistics.sample is None or is_kept_sparse(len(model.classes)):
        return [{} for _ in range(len(documents))]
    reference = model.statistics.derive("both sides", partial(_find_references, model, n_references), n_references)
    counts, n = _get_document_counts(model)
    indptr, ids, _ = model.text.vocabulary.encode(documents, model.text.select_counts(model.records))
    found = []
    for start, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        evidence = _sum_strongest(counts[ids[start:end]], n)  # (2, classes)
        by_class = enumerate(evidence.T.tolist())
        compared = [reference.compare(c, *sides) for c, sides in by_class]
        found.append(dict(zip(model.classes.tolist(), compared, strict=True)))
    return found


def _find_references(model: DocumentModel, n_references: int, statistics: ModelStatistics) -> ReferenceTexts:
    """Weigh kept texts of each class, each left out; kept texts are in the order of their hashes, which is random."""
    sample = statistics.sample
    assert sample is not None
    counts, n = _get_document_counts(model)
    bags = sample.blocks[0].data
    assert isinstance(bags, TokenBags)
    sides: list[Array] = []
    for c in range(len(n)):
        rows = np.flatnonzero(sample.group == c)[:n_references]
        indptr, ids, _ = model.text.vocabulary.encode(bags[rows], model.text.select_counts(model.records))
        weights = sample.weight[rows]
        own = np.zeros((len(rows), 2))
        for i, (start, end) in enumerate(zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)):
            without, rest = counts[ids[start:end]], n.copy()  # (tokens, classes), without the text itself
            without[:, c] = np.maximum(without[:, c] - min(weights[i], 1.0), 0.0)
            rest[c] = max(rest[c] - min(weights[i], 1.0), 0.0)
            own[i] = _sum_strongest(without, rest)[:, c]
        sides.append(np.sort(own, axis=0))
    return ReferenceTexts(tuple(side[:, 0] for side in sides), tuple(side[:, 1] for side in sides))


def _get_document_counts(model: DocumentModel) -> tuple[Array, Array]:
    """Documents of each class with each token (tokens, classes), and documents of each class."""
    counts = model.text.select_counts(model.records)
    return np.asarray(counts.counts), counts.n


def _sum_strongest(counts: Array, n: Array) -> Array:
    """Decibans for (first row) and against each class, (2, classes), over the strongest tokens on each side."""
    # rate of documents with each token, in class c and in all others, (tokens, classes)
    present = np.minimum(counts, n)
    others, n_others = present.sum(axis=1, keepdims=True) - present, n.sum() - n
    own_rate = (present + PRIOR_DOCUMENTS) / (n + 2 * PRIOR_DOCUMENTS)
    other_rate = (others + PRIOR_DOCUMENTS) / (n_others + 2 * PRIOR_DOCUMENTS)
    log_odds = DECIBANS_PER_NAT * np.log(own_rate / other_rate)
    if len(log_odds) > STRONGEST_TOKENS:
        low, high = STRONGEST_TOKENS - 1, len(log_odds) - STRONGEST_TOKENS
        log_odds = np.partition(log_odds, (low, high), axis=0)
        ends = np.concatenate([log_odds[: low + 1], log_odds[max(high, low + 1) :]])
    else:
        ends = log_odds
    return np.stack([np.maximum(ends, 0.0).sum(axis=0), np.maximum(-ends, 0.0).sum(axis=0)])


def explain_doubt(sides: Mapping[Label, SideOfClass], label: Label, doubt: float) -> str:
    """Why a text is not clearly of a class: "young", "unlike" or "contrary"; empty if it is.

    ``doubt`` is the share of texts of a class that may be doubted although they are of that class.
    """
    own = sides.get(label)
    if own is None:
        return ""
    if min(side.n_texts for side in sides.values()) < MIN_REFERENCE_TEXTS:
        return "young"
    if own.typicality >= doubt:
        return ""
    return "contrary" if own.share_against <= own.share_for else "unlike"
