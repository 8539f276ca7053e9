"""Evidence for and against each class, kept apart, and how usual both are among texts that were left out.

A sum of log odds cannot tell a text with strong evidence for two classes from one with weak evidence. So the evidence
of a text for class c, and against it, is summed over its strongest tokens only: words that are added to a text can
raise one sum, but they take nothing from the other. Both are compared with the sums of learned texts of class c, each
from the counts without it. If texts are exchangeable, a text of class c has a share of at most s with probability at
most s (conformal prediction), so that the shares are error rates.

References
----------
Robinson, G. (2003). A statistical approach to the spam problem. Linux Journal 107.
Vovk, V., Gammerman, A. and Shafer, G. (2005). Algorithmic learning in a random world.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import ndarray as Array

from priory.core.typing import Label
from priory.model.document_model import DocumentModel
from priory.model.ledger import SideOfClass
from priory.model.ledger_output import DECIBANS_PER_NAT
from priory.model.model_statistics import ModelStatistics
from priory.text.sparse_counts import is_kept_sparse
from priory.text.token_bags import AnyDocuments, TokenBags

STRONGEST_TOKENS = 10  # on each side
PRIOR_DOCUMENTS = 0.5  # virtual documents with a token, and as many without it
REFERENCE_TEXTS = 1000  # of each class


def weigh_both_sides(model: DocumentModel, documents: AnyDocuments) -> list[dict[Label, SideOfClass]]:
    """Weigh the evidence of each text for and against each class; empty if the model keeps no texts to compare with."""
    if model.statistics.sample is None or is_kept_sparse(len(model.classes)) or len(model.classes) < 2:
        return [{} for _ in range(len(documents))]
    references = model.statistics.derive("references", partial(_find_references, model), model.text)
    counts, n = _get_document_counts(model)
    indptr, ids, _ = model.text.vocabulary.encode(documents, model.text.select_counts(model.record))
    sums = [_sum_strongest(_find_log_odds(counts[ids], n, c), indptr).tolist() for c in range(len(n))]
    sides = [
        [reference.compare(*own) for own in of_class] for reference, of_class in zip(references, sums, strict=True)
    ]
    return [dict(zip(model.classes.tolist(), of_text, strict=True)) for of_text in zip(*sides, strict=True)]


@dataclass(frozen=True, eq=False)
class ReferenceTexts:
    """Evidence of left-out texts of a class for and against it, each sorted."""

    evidence_for: Array
    evidence_against: Array

    def compare(self, evidence_for: float, evidence_against: float) -> SideOfClass:
        """Compare a text with the texts of the class."""
        n = len(self.evidence_for)
        lower = int(np.searchsorted(self.evidence_for, evidence_for, side="right"))
        higher = n - int(np.searchsorted(self.evidence_against, evidence_against, side="left"))
        return SideOfClass(evidence_for, evidence_against, (1 + lower) / (1 + n), (1 + higher) / (1 + n), n)


def _find_references(model: DocumentModel, statistics: ModelStatistics) -> list[ReferenceTexts]:
    """Weigh kept texts of each class, each left out; kept texts are in the order of their hashes, which is random."""
    sample = statistics.sample
    assert sample is not None
    counts, n = _get_document_counts(model)
    bags, found = sample.blocks[0].data, []
    assert isinstance(bags, TokenBags)
    for c in range(len(n)):
        rows = np.flatnonzero(sample.group == c)[:REFERENCE_TEXTS]
        indptr, ids, _ = model.text.vocabulary.encode(bags[rows], model.text.select_counts(model.record))
        # all tokens (tokens,), from counts with one text of the class less: each text has its own tokens once
        odds = _find_log_odds(counts, n, c, float(sample.weight[rows].mean()) if len(rows) else 0.0)[ids]
        sides = _sum_strongest(odds, indptr)
        found.append(ReferenceTexts(np.sort(sides[:, 0]), np.sort(sides[:, 1])))
    return found


def _get_document_counts(model: DocumentModel) -> tuple[Array, Array]:
    """Documents of each class with each token (tokens, classes), and documents of each class."""
    counts = model.text.select_counts(model.record)
    return np.asarray(counts.counts), counts.n


def _find_log_odds(counts: Array, n: Array, c: int, left_out: float = 0.0) -> Array:
    """Decibans of each token for class ``c`` against all others, (tokens,), with some texts of the class left out."""
    own = np.maximum(np.minimum(counts[:, c], n[c]) - left_out, 0.0)
    others = np.minimum(counts, n).sum(axis=1) - np.minimum(counts[:, c], n[c])
    own_rate = (own + PRIOR_DOCUMENTS) / (max(n[c] - left_out, 0.0) + 2 * PRIOR_DOCUMENTS)
    other_rate = (others + PRIOR_DOCUMENTS) / (n.sum() - n[c] + 2 * PRIOR_DOCUMENTS)
    return np.asarray(DECIBANS_PER_NAT * np.log(own_rate / other_rate))


def _sum_strongest(odds: Array, edges: Array) -> Array:
    """(texts, 2): decibans for and against, each over a text's strongest tokens on its side.

    ``odds`` (all tokens,) are of the texts one after another; text i has the tokens from edges[i] to edges[i + 1].
    """
    n_texts = len(edges) - 1
    text = np.repeat(np.arange(n_texts), np.diff(edges))
    odds, rank = odds[np.lexsort((odds, text))], np.arange(len(odds))  # within each text from against to for
    is_for = (odds > 0) & (rank >= edges[1:][text] - STRONGEST_TOKENS)
    is_against = (odds < 0) & (rank < edges[:-1][text] + STRONGEST_TOKENS)
    sums = [np.bincount(text[side], np.abs(odds[side]), n_texts) for side in (is_for, is_against)]
    return np.stack(sums, axis=1)
