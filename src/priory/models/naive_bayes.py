"""Naive Bayes: log p(c | x) = log p(c) + Σ_j log p(x_j | c) − log p(x), from one record of what was seen.

    model = schema + statistics

The functions here are the whole of naive Bayes: `observe_table` makes the record, `choose_families` asks it which family explains each
column, `log_joint` and `log_likelihood_terms` answer for new rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priory.bag_of_words.token_counts import TokenCounts
from priory.core.logspace import log
from priory.core.registration import find_axis_length, register_record
from priory.core.sharding import ColumnSubset
from priory.core.statistics import ROW_SUM_TOLERANCE, Statistics, is_increasing
from priory.core.typing import Array
from priory.errors import DataError, KindError, NotLearnedError
from priory.families import Text
from priory.families.base import ColumnFamily, GroupedRows
from priory.families.value_counts import CategoricalCells
from priory.models.feature_averaging import INCLUSION_TOLERANCE, averaged_terms, column_inclusion, pool_records
from priory.models.schema import (
    ColumnBlock,
    Schema,
    family_with_prior,
    instantiate_family,
    matches_candidate,
    take_columns,
)
from priory.models.table import Table

EVIDENCE_TIE_TOLERANCE = 1e-6  # nats


@register_record("Seen", axes={"classes": "c", "n": "c"}, dtypes={"classes": ""})
@dataclass(frozen=True, eq=False)
class ModelStatistics(Statistics):
    """What a classifier remembers: the rows of each class, and a record for every part of the model."""

    frame_fields: ClassVar[tuple[str, ...]] = ("classes",)

    classes: Array  # sorted
    n: Array
    parts: tuple[Any, ...]

    def find_fault(self) -> str | None:
        if len(self.n) == 0 or not is_increasing(self.classes):
            return "the classes are not sorted, or one of them is there twice"
        for part in _flatten_parts(self.parts):
            if not isinstance(part, Statistics) or find_axis_length(part, "c") != len(self.n):
                return "a part has other classes than the whole"
            if not (self.n + ROW_SUM_TOLERANCE * (1 + self.n.max()) >= _count_rows(part).T).all():
                return "a part has seen more rows than there were"
        return None

    def align(self, other: ModelStatistics) -> tuple[ModelStatistics, ModelStatistics]:
        """Over the classes of both."""
        if np.array_equal(self.classes, other.classes):
            return self, other
        if (self.classes.dtype.kind in "OUS") != (other.classes.dtype.kind in "OUS"):
            raise KindError(
                f"classes {self.classes.tolist()[:3]} and {other.classes.tolist()[:3]} are of different kinds."
            )
        classes = np.union1d(self.classes, other.classes)
        return self._expand_classes(classes), other._expand_classes(classes)

    def _expand_classes(self, classes: Array) -> ModelStatistics:
        wide = self.regroup_classes(np.searchsorted(classes, self.classes), len(classes))
        return replace(wide, classes=classes)


def _count_rows(record: Any) -> Array:
    """The rows that a record has seen: (classes,) or (classes, columns)."""
    return np.asarray(record.n + getattr(record, "outside", 0.0))


def _flatten_parts(parts: tuple[Any, ...]) -> Iterator[object]:
    for part in parts:
        if type(part) is tuple:
            yield from _flatten_parts(part)
        else:
            yield part


class FamilyChoice(NamedTuple):
    """Columns of one block that one family explains best, and, in an average, how far each of them matters."""

    block: int
    positions: Array  # within the block
    family: ColumnFamily
    statistics: Any
    inclusion_weights: Array | None = None

    def column_log_likelihoods(self, x: Any, estimate: str) -> Array:
        """log p(x_j | c) for each row, class and column."""
        if self.inclusion_weights is None:
            return self.family.log_likelihood(self.statistics, x, estimate)
        return averaged_terms(self.family, self.statistics, x, estimate, self.inclusion_weights)

    def score(self, x: Any, estimate: str) -> Array:
        """The terms summed over the columns."""
        if self.inclusion_weights is None:
            return self.family.score(self.statistics, x, estimate)
        return self.family.averaged_score(
            self.statistics, pool_records(self.statistics), x, estimate, self.inclusion_weights
        )


def observe_table(schema: Schema, table: Table, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
    """The statistics of the rows: for each class, and each candidate of each block."""
    return observe_cells(schema, schema.read_cells(table), classes, group, weight)


def observe_cells(
    schema: Schema, blocks: list[Any], classes: Array, group: Array, weight: Array | None
) -> ModelStatistics:
    """The same for the cells of each block."""
    rows = GroupedRows(np.ones(len(group)), group, len(classes))
    n = np.bincount(rows.group, weight, minlength=len(classes)).astype(float)
    parts = tuple(
        tuple(instantiate_family(c).observe(cells, rows.group, len(classes), weight) for c in block.candidates)
        for block, cells in zip(schema.blocks, blocks, strict=True)
    )
    return ModelStatistics(classes, n, parts)


def make_empty_statistics(schema: Schema, classes: Array) -> ModelStatistics:
    """The zero of the algebra: no rows seen."""
    parts = tuple(
        tuple(
            instantiate_family(c).observe(_make_empty_cells(block), np.zeros(0, dtype=np.int32), len(classes))
            for c in block.candidates
        )
        for block in schema.blocks
    )
    return ModelStatistics(classes, np.zeros(len(classes)), parts)


def add_empty_blocks(schema: Schema, statistics: ModelStatistics) -> ModelStatistics:
    """The record with a zero for every block it does not have yet."""
    zero = make_empty_statistics(schema, statistics.classes)
    return replace(statistics, parts=statistics.parts + zero.parts[len(statistics.parts) :])


def compute_evidence(schema: Schema, statistics: ModelStatistics) -> list[list[tuple[ColumnFamily, Array]]]:
    """For each block, each candidate with its prior and its log evidence of every column."""
    blocks = []
    for block, records in zip(schema.blocks, statistics.parts, strict=True):
        families = [family_with_prior(c, record) for c, record in zip(block.candidates, records, strict=True)]
        blocks.append([(f, f.evidence(record)) for f, record in zip(families, records, strict=True)])
    return blocks


def choose_families(schema: Schema, statistics: ModelStatistics, average: bool = False) -> list[FamilyChoice]:
    """Every column with the family of the largest evidence. A function of the record, so it forgets with it."""
    if average:
        return statistics.derive("averaged", lambda s: _weigh_columns(schema, s), schema)
    return statistics.derive("chosen", lambda s: _choose_best_families(schema, s), schema)


def _choose_best_families(schema: Schema, statistics: ModelStatistics) -> list[FamilyChoice]:
    choices = []
    for b, candidates in enumerate(compute_evidence(schema, statistics)):
        best = argmax_evidence(np.array([evidence for _, evidence in candidates]))
        for k in range(len(candidates)):
            places = np.flatnonzero(best == k)
            if len(places):
                choices.append(_make_choice(schema, statistics, b, k, places))
    return choices


def _make_choice(schema: Schema, statistics: ModelStatistics, b: int, k: int, places: Array) -> FamilyChoice:
    """Some columns of block ``b``, explained by its candidate ``k``."""
    record = take_columns(statistics.parts[b][k], places)
    return FamilyChoice(b, places, family_with_prior(schema.blocks[b].candidates[k], record), record)


def _weigh_columns(schema: Schema, statistics: ModelStatistics) -> list[FamilyChoice]:
    """The columns that surely matter as they are, those that may with how far they do; the rest say nothing.

    A text is as many features as it has tokens: it is averaged over all sets of them.
    """
    choices = []
    for whole in choose_families(schema, statistics):
        if isinstance(whole.family, Text):
            choices.append(whole._replace(family=whole.family.with_token_averaging()))
            continue
        k = next(k for k, c in enumerate(schema.blocks[whole.block].candidates) if matches_candidate(whole.family, c))
        matters = column_inclusion(whole.family, whole.statistics)
        sure = matters > 1 - INCLUSION_TOLERANCE
        maybe = ~sure & (matters > INCLUSION_TOLERANCE)
        if sure.any():
            choices.append(_make_choice(schema, statistics, whole.block, k, whole.positions[sure]))
        if maybe.any():
            choice = _make_choice(schema, statistics, whole.block, k, whole.positions[maybe])
            choices.append(choice._replace(inclusion_weights=matters[maybe]))
    return choices


def inclusion_probability(schema: Schema, statistics: ModelStatistics) -> dict[str, float]:
    """For each column the probability that it depends on the class; nought for one that is empty.

    A text does if any of its tokens does.
    """
    found = dict.fromkeys(schema.names, 0.0)
    for name, tokens in token_inclusion(schema, statistics).items():
        found[name] = float(1 - np.prod([1 - r for r in tokens.values()]))
    for choice in choose_families(schema, statistics):
        names = schema.blocks[choice.block].names
        if isinstance(choice.family, Text):
            continue
        for j, r in zip(choice.positions, column_inclusion(choice.family, choice.statistics), strict=True):
            found[names[j]] = float(r)
    return found


def token_inclusion(schema: Schema, statistics: ModelStatistics) -> dict[str, dict[str, float]]:
    """For each column of texts, and each of its tokens, the probability that the token depends on the class."""
    return {
        schema.blocks[choice.block].names[0]: choice.family.inclusion_probability(choice.statistics)
        for choice in choose_families(schema, statistics)
        if isinstance(choice.family, Text)
    }


def argmax_evidence(evidence: Array) -> Array:
    """The first of the best along the first axis: evidence that differs by rounding is a tie, and the simplest wins."""
    defined = np.nan_to_num(evidence, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.argmax(defined >= defined.max(axis=0) - EVIDENCE_TIE_TOLERANCE, axis=0)


def find_filled_columns(schema: Schema, statistics: ModelStatistics) -> set[str]:
    """The columns of which at least one cell was seen."""
    names: set[str] = set()
    for block, (record, *_) in zip(schema.blocks, statistics.parts, strict=True):
        if isinstance(record, TokenCounts):
            shown = [len(record) > 0]
        elif isinstance(record, tuple):
            shown = [len(tally.values) > 0 for tally in record]
        else:
            shown = (record.n + getattr(record, "outside", 0.0)).any(axis=0)
        names.update(name for name, some in zip(block.names, shown, strict=True) if some)
    return names


def check_class_prior(class_prior: Any, classes: Array) -> Any:
    """A declared class prior, checked: "estimated", "uniform", or a probability for each class."""
    if isinstance(class_prior, str):
        return class_prior
    if isinstance(class_prior, Mapping):
        absent = [c for c in classes.tolist() if c not in class_prior]
        if absent:
            raise DataError(f"class_prior says nothing of class {absent[0]!r}.")
        class_prior = [class_prior[c] for c in classes.tolist()]
    prior = np.asarray(class_prior, dtype=float)
    if prior.shape != classes.shape:
        raise DataError(f"class_prior has {prior.size} probabilities for {len(classes)} classes.")
    if not (prior >= 0).all() or not np.isclose(prior.sum(), 1.0):
        raise DataError(f"class_prior is {prior.tolist()}; probabilities are not negative and add up to 1.")
    return prior


def log_class_prior(statistics: ModelStatistics, class_prior: Any) -> Array:
    """Log probability of each class before its row is seen. A class without rows counts as half a row."""
    if isinstance(class_prior, str) and class_prior == "uniform":
        return np.full(len(statistics.n), -np.log(len(statistics.n)))
    if isinstance(class_prior, str):
        n = np.where(statistics.n > 0, statistics.n, 0.5)
        return log(n / n.sum())
    return log(class_prior)


def log_joint(
    schema: Schema, statistics: ModelStatistics, table: Table, estimate: str, prior: Any, average: bool = False
) -> Array:
    """log p(c, x) for each row and class, up to what all classes of a row share."""
    cells = schema.read_cells(table)
    joint = np.repeat(log_class_prior(statistics, prior)[None], table.rows, axis=0)
    for choice in choose_families(schema, statistics, average):
        block = cells[choice.block]
        if len(choice.positions) < len(schema.blocks[choice.block].names):
            block = (
                ColumnSubset(block, choice.positions)
                if isinstance(block, np.ndarray)
                else _take_cell_columns(block, choice.positions)
            )
        joint += choice.score(block, estimate)
    return joint


def log_likelihood_terms(
    schema: Schema, statistics: ModelStatistics, table: Table, estimate: str, average: bool = False
) -> Array:
    """log p(x_j | c) for each row, class and column, the columns in the order of the schema."""
    return log_likelihood_terms_of_cells(schema, statistics, schema.read_cells(table), table.rows, estimate, average)


def log_likelihood_terms_of_cells(
    schema: Schema, statistics: ModelStatistics, cells: list[Any], rows: int, estimate: str, average: bool = False
) -> Array:
    """The same for the cells of each block."""
    out = np.zeros((rows, len(statistics.classes), len(schema.names)))
    place = {name: j for j, name in enumerate(schema.names)}
    for choice in choose_families(schema, statistics, average):
        names = schema.blocks[choice.block].names
        block = _take_cell_columns(cells[choice.block], choice.positions)
        out[:, :, [place[names[j]] for j in choice.positions]] = choice.column_log_likelihoods(block, estimate)
    return out


def add_class_to_error(error: NotLearnedError, classes: Array) -> NotLearnedError:
    """The error with the class it speaks of."""
    label = f" in class {classes.tolist()[error.index[0]]!r}" if error.index and error.index[0] < len(classes) else ""
    return NotLearnedError(f"{str(error).rstrip('.')}{label}; the model is as it was.", error.index)


def _take_cell_columns(block: Any, places: Array) -> Any:
    if isinstance(block, list):  # texts are one column
        return block
    if isinstance(block, CategoricalCells):
        return CategoricalCells(block.codes[:, places], tuple(block.values[int(j)] for j in places))
    return block[:, places]


def _make_empty_cells(block: ColumnBlock) -> Any:
    d = len(block.names)
    if block.kind == "text":
        return []
    if block.kind == "label":
        return CategoricalCells(np.zeros((0, d), dtype=np.int32), tuple(np.array([], dtype=object) for _ in range(d)))
    return np.zeros((0, d))
