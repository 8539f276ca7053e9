"""Corrections of single rows: the same predictions as `Corrections`, without the overhead of NumPy tables.

Codes, levels and weights are looked up in lists and dictionaries that are made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.calibration.corrections import Corrections
from priory.calibration.members import EncodedRow, EncodedRows, RowCodes
from priory.calibration.tempering import MAX_EXPONENT, MAX_WEIGHT, Tempering
from priory.core._kernel import rows as kernel
from priory.core.logspace import log_normalise_row
from priory.core.sparse_rows import SparseRows
from priory.model.cells import Cells
from priory.model.model_statistics import MIN_RELATIVE_LOG_LIKELIHOOD
from priory.model.open_model import RowEvidence

ONE_MEMBER = np.ones(1)


class RowCorrections:
    """Corrections with their weights laid out for single rows."""

    def __init__(self, corrections: Corrections) -> None:
        self.corrections = corrections
        encoding, evidence = corrections.encoding, corrections.evidence
        self.columns = [RowCodes(column) for column in encoding.columns]
        completed = () if corrections.gaps is None else corrections.gaps.is_completed[: len(self.columns)]
        self.completed = np.flatnonzero(completed).tolist()  # the columns whose gaps are completed
        if evidence is not None:
            token_widths = [len(known) for known in corrections.tokens]
            self.opened = [term.open(encoding, token_widths) for term in corrections.terms]
            self.base = evidence.log_prior

    def update_tempering(self, tempering: Tempering) -> None:
        """Replace the tempering."""
        self.corrections = replace(self.corrections, tempering=tempering)

    def has_gap(self, cells: Sequence[Any]) -> bool:
        """Whether a cell is missing in a column whose gaps are completed."""
        return any(cells[j] is None or cells[j] != cells[j] for j in self.completed)

    def complete_row(
        self, cells: Sequence[Cells], evidence: RowEvidence | None, tokens: Sequence[Array], log_prior: Array
    ) -> Array:
        """(classes,): log p(c | x) of a row with gaps; ``cells`` are the blocks of a table of one row."""
        corrections = self.corrections
        no_texts = np.zeros(len(log_prior))
        logits = no_texts if evidence is None else weigh_evidence(corrections.tempering, evidence.take_texts())
        features = [
            make_token_row(chosen, len(known)) for chosen, known in zip(tokens, corrections.tokens, strict=True)
        ]
        rows = EncodedRows(corrections.encoding, cells, lambda: features, logits[None], corrections.evidence)
        return np.asarray(corrections.log_probabilities(rows, log_prior)[0])

    def log_probabilities(self, cells: Sequence[Any], evidence: RowEvidence | None, tokens: Sequence[Array]) -> Array:
        """(classes,): log p(c | x), given the cells of the columns that have codes.

        ``evidence`` has the log likelihoods of the class prior and the texts; it is needed if there are texts.
        ``tokens`` are the feature indices of each text.
        """
        tempering, pool = self.corrections.tempering, self.corrections.pool
        if pool is None:
            assert evidence is not None
            if not evidence.values[:, 1:].any():
                return log_normalise_row(evidence.values[:, 0])  # the class prior itself
            return log_normalise_row(weigh_evidence(tempering, evidence))
        row = EncodedRow(self.columns, cells, tokens)
        logits = np.zeros((2, len(self.base)))  # of the base rate, and of the pooled members
        logits[0] = self.base
        for add_logits in self.opened:
            add_logits(row, logits[1])
        if evidence is not None:
            logits[1] += weigh_evidence(tempering, evidence.take_texts())
        kernel.mix_members(logits, ONE_MEMBER, pool.share, answer := np.empty(logits.shape[1]))
        return answer


def make_token_row(chosen: Array, width: int) -> SparseRows:
    """A sparse row of unit length, with the token features of one text."""
    values = np.full(len(chosen), 1 / sqrt(max(len(chosen), 1)), dtype=np.float32)
    return SparseRows(np.array([0, len(chosen)]), chosen.astype(np.int32), values, width)


def weigh_evidence(tempering: Tempering, evidence: RowEvidence) -> Array:
    """(classes,): the sum of the weighted log likelihoods of the parts."""
    logits = np.zeros(len(evidence.values))
    kernel.weigh_parts(
        evidence.values,
        evidence.parts,
        evidence.lengths,
        tempering.weights,
        tempering.exponents,
        MIN_RELATIVE_LOG_LIKELIHOOD,
        logits,
    )
    return logits


def step_tempering(tempering: Tempering, evidence: RowEvidence, group: int, count: float = 1.0) -> Tempering:
    """Return the tempering after one more row, by one damped Fisher scoring step.

    ``evidence`` comes from a model that has not learned the row. The row's Fisher information about weights and
    exponents is added to the precision, and the step is the gradient of its log loss divided by the precision: the more
    rows were learned, the smaller the step. The row occurs ``count`` times.
    """
    stepped = Tempering(tempering.weights.copy(), tempering.exponents.copy(), tempering.precision.copy())
    kernel.step_parts(
        evidence.values,
        evidence.parts,
        evidence.lengths,
        group,
        count,
        MIN_RELATIVE_LOG_LIKELIHOOD,
        MAX_WEIGHT,
        MAX_EXPONENT,
        stepped.weights,
        stepped.exponents,
        stepped.precision,
    )
    return stepped
