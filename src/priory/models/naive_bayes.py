"""Naive Bayes: log p(c | x) = log p(c) + Σ_j log p(x_j | c) − log p(x), from one record of what was seen.

    model = schema + statistics

The functions here are the whole of naive Bayes: `observe` makes the record, `chosen` asks it which family explains each
column, `log_joint` and `terms` answer for new rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priory.bag_of_words.token_counts import Words
from priory.core.logspace import log
from priory.core.sharding import Picked
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import DataError, KindError, NotSeen
from priory.families import Text
from priory.families.base import Columns, Grouped
from priory.families.value_counts import Coded
from priory.models.feature_averaging import CERTAIN, averaged, inclusion, pooled
from priory.models.schema import Block, Schema, columns_of, is_candidate, observed, with_prior
from priory.models.table import Table

TIE = 1e-6  # nats


@dataclass(frozen=True, eq=False)
class Seen(Statistics):
    """What a classifier remembers: the rows of each class, and a record for every part of the model."""

    frame: ClassVar[tuple[str, ...]] = ("classes",)

    classes: Array  # sorted
    n: Array
    parts: tuple[Any, ...]

    def aligned(self, other: Seen) -> tuple[Seen, Seen]:
        """Over the classes of both."""
        if np.array_equal(self.classes, other.classes):
            return self, other
        if (self.classes.dtype.kind in "OUS") != (other.classes.dtype.kind in "OUS"):
            raise KindError(
                f"classes {self.classes.tolist()[:3]} and {other.classes.tolist()[:3]} are of different kinds."
            )
        classes = np.union1d(self.classes, other.classes)
        return self._over(classes), other._over(classes)

    def _over(self, classes: Array) -> Seen:
        wide = self.regrouped(np.searchsorted(classes, self.classes), len(classes))
        return replace(wide, classes=classes)


class Choice(NamedTuple):
    """Columns of one block that one family explains best, and, in an average, how far each of them matters."""

    block: int
    places: Array  # within the block
    family: Columns
    seen: Any
    matters: Array | None = None

    def terms(self, x: Any, estimate: str) -> Array:
        """log p(x_j | c) for each row, class and column."""
        if self.matters is None:
            return self.family.log_likelihood(self.seen, x, estimate)
        return averaged(self.family, self.seen, x, estimate, self.matters)

    def score(self, x: Any, estimate: str) -> Array:
        """The terms summed over the columns."""
        if self.matters is None:
            return self.family.score(self.seen, x, estimate)
        return self.family.mixed(self.seen, pooled(self.seen), x, estimate, self.matters)


def observe(schema: Schema, table: Table, classes: Array, group: Array, weight: Array | None) -> Seen:
    """The statistics of the rows: for each class, and each candidate of each block."""
    return observe_cells(schema, schema.cells(table), classes, group, weight)


def observe_cells(schema: Schema, blocks: list[Any], classes: Array, group: Array, weight: Array | None) -> Seen:
    """The same for the cells of each block."""
    rows = Grouped(np.ones(len(group)), group, len(classes))
    n = np.bincount(rows.group, weight, minlength=len(classes)).astype(float)
    parts = tuple(
        tuple(observed(c).observe(cells, rows.group, len(classes), weight) for c in block.candidates)
        for block, cells in zip(schema.blocks, blocks, strict=True)
    )
    return Seen(classes, n, parts)


def nothing(schema: Schema, classes: Array) -> Seen:
    """The zero of the algebra: no rows seen."""
    parts = tuple(
        tuple(observed(c).observe(_no_rows(block), np.zeros(0, dtype=np.int32), len(classes)) for c in block.candidates)
        for block in schema.blocks
    )
    return Seen(classes, np.zeros(len(classes)), parts)


def widened(schema: Schema, seen: Seen) -> Seen:
    """The record with a zero for every block it does not have yet."""
    zero = nothing(schema, seen.classes)
    return replace(seen, parts=seen.parts + zero.parts[len(seen.parts) :])


def evidence(schema: Schema, seen: Seen) -> list[list[tuple[Columns, Array]]]:
    """For each block, each candidate with its prior and its log evidence of every column."""
    blocks = []
    for block, records in zip(schema.blocks, seen.parts, strict=True):
        families = [with_prior(c, record) for c, record in zip(block.candidates, records, strict=True)]
        blocks.append([(f, f.evidence(record)) for f, record in zip(families, records, strict=True)])
    return blocks


def chosen(schema: Schema, seen: Seen, average: bool = False) -> list[Choice]:
    """Every column with the family of the largest evidence. A function of the record, so it forgets with it."""
    if average:
        return seen.derived("averaged", lambda s: _weighed(schema, s), schema)
    return seen.derived("chosen", lambda s: _choose(schema, s), schema)


def _choose(schema: Schema, seen: Seen) -> list[Choice]:
    choices = []
    for b, candidates in enumerate(evidence(schema, seen)):
        best = first_best(np.array([evidence for _, evidence in candidates]))
        for k in range(len(candidates)):
            places = np.flatnonzero(best == k)
            if len(places):
                choices.append(_choice(schema, seen, b, k, places))
    return choices


def _choice(schema: Schema, seen: Seen, b: int, k: int, places: Array) -> Choice:
    """Some columns of block ``b``, explained by its candidate ``k``."""
    record = columns_of(seen.parts[b][k], places)
    return Choice(b, places, with_prior(schema.blocks[b].candidates[k], record), record)


def _weighed(schema: Schema, seen: Seen) -> list[Choice]:
    """The columns that surely matter as they are, those that may with how far they do; the rest say nothing.

    A text is as many features as it has tokens: it is averaged over all sets of them.
    """
    choices = []
    for whole in chosen(schema, seen):
        if isinstance(whole.family, Text):
            choices.append(whole._replace(family=whole.family.averaged()))
            continue
        k = next(k for k, c in enumerate(schema.blocks[whole.block].candidates) if is_candidate(whole.family, c))
        matters = inclusion(whole.family, whole.seen)
        sure = matters > 1 - CERTAIN
        maybe = ~sure & (matters > CERTAIN)
        if sure.any():
            choices.append(_choice(schema, seen, whole.block, k, whole.places[sure]))
        if maybe.any():
            choice = _choice(schema, seen, whole.block, k, whole.places[maybe])
            choices.append(choice._replace(matters=matters[maybe]))
    return choices


def inclusion_probability(schema: Schema, seen: Seen) -> dict[str, float]:
    """For each column the probability that it depends on the class; nought for one that is empty.

    A text does if any of its tokens does.
    """
    found = dict.fromkeys(schema.names, 0.0)
    for name, tokens in token_inclusion(schema, seen).items():
        found[name] = float(1 - np.prod([1 - r for r in tokens.values()]))
    for choice in chosen(schema, seen):
        names = schema.blocks[choice.block].names
        if isinstance(choice.family, Text):
            continue
        for j, r in zip(choice.places, inclusion(choice.family, choice.seen), strict=True):
            found[names[j]] = float(r)
    return found


def token_inclusion(schema: Schema, seen: Seen) -> dict[str, dict[str, float]]:
    """For each column of texts, and each of its tokens, the probability that the token depends on the class."""
    return {
        schema.blocks[choice.block].names[0]: choice.family.inclusion(choice.seen)
        for choice in chosen(schema, seen)
        if isinstance(choice.family, Text)
    }


def first_best(evidence: Array) -> Array:
    """The first of the best along the first axis: evidence that differs by rounding is a tie, and the simplest wins."""
    defined = np.nan_to_num(evidence, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.argmax(defined >= defined.max(axis=0) - TIE, axis=0)


def names_seen(schema: Schema, seen: Seen) -> set[str]:
    """The columns of which at least one cell was seen."""
    names: set[str] = set()
    for block, (record, *_) in zip(schema.blocks, seen.parts, strict=True):
        if isinstance(record, Words):
            shown = [len(record) > 0]
        elif isinstance(record, tuple):
            shown = [len(tally.values) > 0 for tally in record]
        else:
            shown = (record.n + getattr(record, "outside", 0.0)).any(axis=0)
        names.update(name for name, some in zip(block.names, shown, strict=True) if some)
    return names


def given_prior(given: Any, classes: Array) -> Any:
    """A declared class prior, checked: "estimated", "uniform", or a probability for each class."""
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        absent = [c for c in classes.tolist() if c not in given]
        if absent:
            raise DataError(f"class_prior says nothing of class {absent[0]!r}.")
        given = [given[c] for c in classes.tolist()]
    prior = np.asarray(given, dtype=float)
    if prior.shape != classes.shape:
        raise DataError(f"class_prior has {prior.size} probabilities for {len(classes)} classes.")
    if not (prior >= 0).all() or not np.isclose(prior.sum(), 1.0):
        raise DataError(f"class_prior is {prior.tolist()}; probabilities are not negative and add up to 1.")
    return prior


def log_prior(seen: Seen, given: Any) -> Array:
    """Log probability of each class before its row is seen. A class without rows counts as half a row."""
    if isinstance(given, str) and given == "uniform":
        return np.full(len(seen.n), -np.log(len(seen.n)))
    if isinstance(given, str):
        n = np.where(seen.n > 0, seen.n, 0.5)
        return log(n / n.sum())
    return log(given)


def log_joint(schema: Schema, seen: Seen, table: Table, estimate: str, prior: Any, average: bool = False) -> Array:
    """log p(c, x) for each row and class, up to what all classes of a row share."""
    cells = schema.cells(table)
    joint = np.repeat(log_prior(seen, prior)[None], table.rows, axis=0)
    for choice in chosen(schema, seen, average):
        block = cells[choice.block]
        if len(choice.places) < len(schema.blocks[choice.block].names):
            block = Picked(block, choice.places) if isinstance(block, np.ndarray) else _columns(block, choice.places)
        joint += choice.score(block, estimate)
    return joint


def terms(schema: Schema, seen: Seen, table: Table, estimate: str, average: bool = False) -> Array:
    """log p(x_j | c) for each row, class and column, the columns in the order of the schema."""
    return terms_of(schema, seen, schema.cells(table), table.rows, estimate, average)


def terms_of(schema: Schema, seen: Seen, cells: list[Any], rows: int, estimate: str, average: bool = False) -> Array:
    """The same for the cells of each block."""
    out = np.zeros((rows, len(seen.classes), len(schema.names)))
    place = {name: j for j, name in enumerate(schema.names)}
    for choice in chosen(schema, seen, average):
        names = schema.blocks[choice.block].names
        block = _columns(cells[choice.block], choice.places)
        out[:, :, [place[names[j]] for j in choice.places]] = choice.terms(block, estimate)
    return out


def named(error: NotSeen, classes: Array) -> NotSeen:
    """The error with the class it speaks of."""
    label = f" in class {classes.tolist()[error.index[0]]!r}" if error.index and error.index[0] < len(classes) else ""
    return NotSeen(f"{str(error).rstrip('.')}{label}; the model is as it was.", error.index)


def _columns(block: Any, places: Array) -> Any:
    if isinstance(block, list):  # texts are one column
        return block
    if isinstance(block, Coded):
        return Coded(block.codes[:, places], tuple(block.values[int(j)] for j in places))
    return block[:, places]


def _no_rows(block: Block) -> Any:
    d = len(block.names)
    if block.kind == "text":
        return []
    if block.kind == "label":
        return Coded(np.zeros((0, d), dtype=np.int32), tuple(np.array([], dtype=object) for _ in range(d)))
    return np.zeros((0, d))
