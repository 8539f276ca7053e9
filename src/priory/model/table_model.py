"""Naive Bayes: log p(c | x) = log p(c) + Σ_j log p(x_j | c) − log p(x), from one record of what was learned.

    model = schema + statistics

A `Model` holds both, with the declared class prior and the kind of parameter estimate. Everything else is a function of
these: the family of each column, the probability that each column depends on the class, and the terms of the sum above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import log_sum_exp
from priory.core.sparse_rows import SparseRows
from priory.families import Text
from priory.families.base import AnyFamily
from priory.families.dirichlet import DIRICHLET_ALPHA_GRID
from priory.families.text import TextStatistics
from priory.model.cells import Cells, TextCells, find_filled, take_columns, take_rows
from priory.model.family_choice import (
    FamilyChoice,
    argmax_evidence,
    leave_out_block,
)
from priory.model.model_statistics import (
    EvidenceTerms,
    ModelStatistics,
    ResolvedPrior,
    log_class_prior,
    measure_text_lengths,
    observe_cells,
)
from priory.model.schema import Schema, family_with_prior, instantiate_family
from priory.text.token_features import MIN_FEATURE_COUNT, TokenFeatures

MAX_ROWS_TO_LEAVE_ONE_OUT, MAX_CLASSES_TO_LEAVE_ONE_OUT = 50_000, 64
MIN_SMOOTHING_SHARE = 0.05  # virtual rows per value, relative to the smallest class: fewer are not reported
LEAVE_ONE_OUT_CHUNK_CELLS = 1 << 20  # terms computed at a time: a few hundred megabytes


@dataclass(frozen=True, eq=False)
class Model:
    """Naive Bayes for a table: declared parameters and learned statistics."""

    schema: Schema
    statistics: ModelStatistics
    estimate: str = "predictive"
    class_prior: ResolvedPrior = "estimated"

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return self.statistics.classes

    @property
    def n_parts(self) -> int:
        """Number of columns; each is one term of the log joint."""
        return len(self.schema.names)

    @property
    def can_leave_one_out(self) -> bool:
        """Whether to leave out rows one by one.

        With many rows or classes, or texts without a closed form, leaving out whole folds is as unbiased, and faster.
        """
        texts = [block.text_family() for block in self.schema.blocks if block.kind == "text"]
        quick = all(text.leaves_out_in_closed_form(self.estimate) for text in texts)
        few = len(self.classes) <= MAX_CLASSES_TO_LEAVE_ONE_OUT and self.statistics.n.sum() <= MAX_ROWS_TO_LEAVE_ONE_OUT
        return quick and bool(few)

    def observe(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ModelStatistics:
        """Statistics of rows, over the classes of this model."""
        return observe_cells(self.schema, cells, self.classes, group, weight)

    @property
    def encoded_widths(self) -> list[int]:
        """Number of columns of each block that corrections encode; texts are not encoded."""
        return [0 if block.kind == "text" else len(block.names) for block in self.schema.blocks]

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without some learned rows: ``total - part``."""
        return replace(self, statistics=self.statistics - self.observe(cells, group, weight))

    def learn_sample_alone(self, cells: Sequence[Cells], group: Array, weight: Array | None, n: Array) -> Self:
        """The model with the texts of a sample alone, and its ``n`` (classes,) rows; its columns stay as they are."""
        texts, blocks = self.take_texts()
        counted = texts.observe([cells[b] for b in blocks], group, weight)
        parts = dict(enumerate(self.statistics.parts)) | dict(zip(blocks, counted.parts, strict=True))
        return replace(self, statistics=replace(self.statistics, n=n, parts=tuple(parts.values())))

    # -- the prior -----------------------------------------------------------------------------------------------

    def log_prior(self) -> Array:
        """The declared log p(c), (classes,)."""
        return log_class_prior(self.statistics.n, self.class_prior)

    def estimated_log_prior(self) -> Array:
        """log p(c) estimated from the learned rows, (classes,)."""
        return log_class_prior(self.statistics.n, "estimated")

    # -- the families --------------------------------------------------------------------------------------------

    def compute_evidence(self) -> list[list[tuple[AnyFamily, Array]]]:
        """For each block, the candidates with their priors and their log evidence (columns,)."""
        blocks = []
        for block, records in zip(self.schema.blocks, self.statistics.parts, strict=True):
            families = [family_with_prior(c, record) for c, record in zip(block.candidates, records, strict=True)]
            blocks.append([(f, f.evidence(record)) for f, record in zip(families, records, strict=True)])
        return blocks

    def choices(self) -> list[FamilyChoice]:
        """The family with the largest evidence for every column, as a function of the statistics."""
        return self.statistics.derive("chosen", lambda _: self._best_choices(), self.schema)

    def _best_choices(self) -> list[FamilyChoice]:
        choices = []
        for b, candidates in enumerate(self.compute_evidence()):
            # evidence (candidates, columns) -> the best candidate of each column
            best = argmax_evidence(np.array([evidence for _, evidence in candidates]))
            for k in range(len(candidates)):
                positions = np.flatnonzero(best == k)
                if len(positions):
                    choices.append(self._make_choice(b, k, positions))
        return choices

    def describe_smoothing(self) -> str:
        """Describe the number of virtual rows per value, if it is large compared to the learned rows; otherwise ""."""
        n = self.statistics.n
        # the number of virtual rows from which they are worth reporting
        least = MIN_SMOOTHING_SHARE * n[n > 0].min(initial=np.inf)
        if self.estimate == "ml" or least > DIRICHLET_ALPHA_GRID.max():
            return ""
        found = [
            choice.family.count_virtual_rows(j) or 0.0
            for choice in self.choices()
            if isinstance(self.schema.blocks[choice.block].candidates[0], type)  # an instance has declared virtual rows
            for j in range(len(choice.positions))
        ]
        if max(found, default=0.0) < least:
            return ""
        numbers = sorted({min(filter(None, found)), max(found)})
        return f"{' to '.join(f'{number:g}' for number in numbers)} virtual rows of each value"

    def _make_choice(self, b: int, k: int, positions: Array) -> FamilyChoice:
        """Choose candidate ``k`` for some columns of block ``b``."""
        record = take_columns(self.statistics.parts[b][k], positions)
        return FamilyChoice(b, positions, family_with_prior(self.schema.blocks[b].candidates[k], record), record)

    def find_filled_columns(self) -> set[str]:
        """The columns with at least one learned cell."""
        names: set[str] = set()
        for block, (record, *_) in zip(self.schema.blocks, self.statistics.parts, strict=True):
            names.update(name for name, filled in zip(block.names, find_filled(record), strict=True) if filled)
        return names

    # -- scores --------------------------------------------------------------------------------------------------

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        """log p(c, x) up to a constant for each row, (rows, classes)."""
        # (rows, classes)
        joint = np.repeat(self.log_prior()[None], len(cells[0]), axis=0)
        for choice in self.choices():
            joint += choice.score(cells[choice.block].view_columns(choice.positions), self.estimate)
        return joint

    def log_likelihood_terms(self, cells: Sequence[Cells]) -> Array:
        """log p(x_j | c), (rows, classes, columns), with the columns in the order of the schema."""
        terms = np.zeros((len(cells[0]), len(self.classes), len(self.schema.names)))
        places = self.schema.find_places()
        for choice in self.choices():
            block = cells[choice.block].take_columns(choice.positions)
            columns = places[choice.block][choice.positions]
            terms[:, :, columns] = choice.log_likelihood(block.data, self.estimate)
        return terms

    def log_density(self, cells: Sequence[Cells]) -> Array:
        """log p(x), the sum over all classes, (rows,)."""
        return log_sum_exp(self.log_joint(cells), axis=1)

    def leave_one_out_density(self, cells: Sequence[Cells], group: Array) -> Array:
        """log p(x) of learned rows, each by the model without it, (rows,)."""
        return log_sum_exp(self.leave_one_out(cells, group), axis=1)

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """Log-likelihood of the class prior and every column, per row and class."""
        return self._make_evidence_terms(self.log_likelihood_terms(cells), cells)

    def _make_evidence_terms(self, terms: Array, cells: Sequence[Cells]) -> EvidenceTerms:
        """Prepend the estimated class prior to terms (rows, classes, columns), and add the lengths of texts."""
        # The prior includes all rows, even if a row is left out: one row less in its own class would reveal the class.
        prior = np.repeat(self.estimated_log_prior()[None], len(terms), axis=0)
        lengths = np.ones((len(terms), 1 + terms.shape[2]))  # (rows, 1 + columns)
        for places, x in zip(self.schema.find_places(), cells, strict=False):
            if isinstance(x, TextCells):
                lengths[:, 1 + places[0]] = measure_text_lengths(x.data)
        return EvidenceTerms(np.concatenate([prior[:, :, None], terms], axis=2), lengths)

    def find_parts(self) -> list[Array]:
        """Positions of each block's columns among the parts of the evidence."""
        return self.schema.find_places()

    def take_texts(self) -> tuple[Model, list[int]]:
        """The model of the text columns alone, and the indices of their blocks."""
        blocks = [b for b, block in enumerate(self.schema.blocks) if block.kind == "text"]
        chosen = tuple(self.schema.blocks[b] for b in blocks)
        schema = Schema(tuple(name for block in chosen for name in block.names), chosen)
        statistics = replace(self.statistics, parts=tuple(self.statistics.parts[b] for b in blocks))
        return replace(self, schema=schema, statistics=statistics), blocks

    def count_values(self, block: int, column: int) -> tuple[Array, Array] | None:
        """The learned values of a column and their counts (classes, values); None if values are not counted."""
        for candidate, record in zip(self.schema.blocks[block].candidates, self.statistics.parts[block], strict=True):
            counted = instantiate_family(candidate).value_counts(record)
            if counted is not None:
                return counted[column].values, counted[column].counts
        return None

    def choose_token_features(self, min_count: int = MIN_FEATURE_COUNT) -> tuple[TokenFeatures, ...]:
        """For each column of texts, the tokens that corrections may have weights for."""
        return tuple(family.choose_features(record, min_count) for family, record, _ in self._list_texts())

    def encode_tokens(self, features: Sequence[TokenFeatures], cells: Sequence[Cells]) -> list[SparseRows]:
        """Encode the documents of each column of texts as sparse rows over these tokens."""
        texts = [(family, cells[b]) for family, _, b in self._list_texts()]
        return [
            family.encode_features(chosen, x.data)
            for chosen, (family, x) in zip(features, texts, strict=True)
            if isinstance(x, TextCells)
        ]

    def _list_texts(self) -> list[tuple[Text, TextStatistics, int]]:
        """Family, statistics and block index of each column of texts."""
        blocks = enumerate(zip(self.schema.blocks, self.statistics.parts, strict=True))
        return [(block.text_family(), records[0], b) for b, (block, records) in blocks if block.kind == "text"]

    # -- leave-one-out scores of learned rows --------------------------------------------------------------------

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        """Leave-one-out log p(c, x), (rows, classes): each row (of weight one) is scored by the model without it."""
        joint = self.leave_one_out_prior(group)
        # in chunks of rows, to bound the memory of the terms (rows, classes, columns)
        step = max(1, LEAVE_ONE_OUT_CHUNK_CELLS // (len(self.schema.names) * len(self.classes)))
        for start in range(0, len(group), step):
            part = slice(start, start + step)
            joint[part] += self.leave_one_out_terms(take_rows(cells, part), group[part]).sum(axis=2)
        return joint

    def leave_one_out_prior(self, group: Array) -> Array:
        """log p(c) with one row less in each row's own class, (rows, classes)."""
        own, place = np.unique(group, return_inverse=True)
        counts = np.repeat(self.statistics.n[None], len(own), axis=0)  # (classes of the rows, classes)
        counts[np.arange(len(own)), own] -= 1
        return np.stack([log_class_prior(n, self.class_prior) for n in counts])[place]

    def leave_one_out_terms(self, cells: Sequence[Cells], group: Array) -> Array:
        """Leave-one-out log p(x_j | c), (rows, classes, columns)."""
        terms = np.zeros((len(group), len(self.classes), len(self.schema.names)))
        blocks = zip(self.schema.blocks, self.schema.find_places(), self.statistics.parts, cells, strict=False)
        for block, places, records, x in blocks:
            if isinstance(x, TextCells):
                terms[:, :, places] = block.text_family().leave_one_out(records[0], x.data, group, self.estimate)
            else:
                terms[:, :, places] = leave_out_block(block, records, x, group, self.estimate)
        return terms

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """Leave-one-out `evidence_terms`: each row is scored by the model without it."""
        return self._make_evidence_terms(self.leave_one_out_terms(cells, group), cells)
