"""The statistics of a model: rows of each class, records and a sample of rows; the class prior; evidence by part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.logspace import log
from priory.core.sparse_rows import SparseRows
from priory.core.statistics import (
    ROW_SUM_TOLERANCE,
    Statistics,
    find_axis_length,
    find_members,
    is_increasing,
    register_record,
)
from priory.errors import DataError, KindError
from priory.model.cells import Cells, RowSample, TextCells
from priory.text.normal_forms import Document
from priory.text.text_model import TextModel
from priory.text.token_bags import AnyDocuments, count_letters
from priory.text.token_counts import BagCounts
from priory.text.token_features import MIN_FEATURE_COUNT, TokenFeatures

ClassPrior = str | Mapping[Hashable, float] | Sequence[float] | Array  # "estimated", "uniform", or probabilities

ResolvedPrior = str | Array  # "estimated", "uniform", or probabilities of the classes in order


def check_class_prior(class_prior: ClassPrior, classes: Array) -> ResolvedPrior:
    """Validate a declared prior: "estimated", "uniform", or probabilities in the order of ``classes``."""
    if isinstance(class_prior, str):
        if class_prior not in ("estimated", "uniform"):
            raise DataError(f"class_prior is {class_prior!r}; use 'estimated', 'uniform', or probabilities.")
        return class_prior
    if isinstance(class_prior, Mapping):
        absent = [c for c in classes.tolist() if c not in class_prior]
        if absent:
            raise DataError(f"class_prior has no probability for class {absent[0]!r}.")
        class_prior = [class_prior[c] for c in classes.tolist()]
    return check_class_probabilities(class_prior, len(classes))


def check_class_probabilities(class_prior: ArrayLike, n_classes: int) -> Array:
    """Validate probabilities: one for each class, non-negative, summing to 1."""
    prior = np.asarray(class_prior, dtype=float)
    # these messages begin like scikit-learn's
    if prior.shape != (n_classes,):
        raise DataError(f"Number of priors must match number of classes: {prior.size} for {n_classes} classes.")
    if not (prior >= 0).all():
        raise DataError(f"Priors must be non-negative; they are {prior.tolist()}.")
    if not np.isclose(prior.sum(), 1.0):
        raise DataError(f"The sum of the priors should be 1; it is {prior.sum():g}.")
    return prior


def log_class_prior(n: Array, class_prior: ResolvedPrior, rows_of_empty_class: float = 0.5) -> Array:
    """Log probability of each class before a row is read; ``n`` is the weight of the rows learned of each class.

    A class without rows counts as ``rows_of_empty_class`` rows.

    >>> np.exp(log_class_prior(np.array([3.0, 1.0]), "estimated")).round(2).tolist()
    [0.75, 0.25]
    """
    if isinstance(class_prior, str):
        # so that an empty class is not impossible
        counts = np.where(n > 0, n, rows_of_empty_class)
        uniform = class_prior == "uniform" or not counts.any()
        return np.full(len(n), -np.log(len(n))) if uniform else log(counts / counts.sum())
    return log(class_prior)


@register_record("Seen", axes={"classes": "c", "n": "c"}, dtypes={"classes": ""})
@dataclass(frozen=True, eq=False)
class ModelStatistics(Statistics):
    """The rows of each class, and for each block of columns one record for every candidate family."""

    frame_fields: ClassVar[tuple[str, ...]] = ("classes", "declared")

    classes: Array  # (classes,), sorted
    n: Array  # (classes,), the weight of the rows of each class
    parts: tuple[Any, ...]  # for tables, parts[block][candidate] is a record
    sample: RowSample | None = None  # rows to derive corrections from
    # sorted: classes that remain even without rows
    declared: Array = field(default_factory=lambda: np.array([], dtype=object))

    def find_fault(self) -> str | None:
        if len(self.n) == 0 or not is_increasing(self.classes):
            return "the classes are not sorted, or one of them is there twice"
        if not is_increasing(self.declared) or not find_members(self.declared, self.classes).all():
            return "the declared classes are not sorted, or one of them is not a class"
        for part in _flatten_parts(self.parts):
            if not isinstance(part, Statistics) or find_axis_length(part, "c") != len(self.n):
                return "a part has other classes than the whole"
            # (columns, classes) or (classes,): no column has more rows than the model
            if not (self.n + ROW_SUM_TOLERANCE * (1 + self.n.max()) >= _count_rows(part).T).all():
                return "a part has seen more rows than there were"
        if self.sample is not None and not _can_hold(self.n, self.sample):
            return "it keeps rows that it has not learned"
        return None

    def align(self, other: ModelStatistics) -> tuple[ModelStatistics, ModelStatistics]:
        """Return both records over the union of their classes."""
        if not np.array_equal(self.declared, other.declared):
            return self.declare_classes(other.declared).align(other.declare_classes(self.declared))
        if np.array_equal(self.classes, other.classes):
            return self, other
        if (self.classes.dtype.kind in "OUS") != (other.classes.dtype.kind in "OUS"):
            raise KindError(
                f"classes {self.classes.tolist()[:3]} and {other.classes.tolist()[:3]} are of different types; "
                "use strings or numbers for all labels."
            )
        classes = np.union1d(self.classes, other.classes)
        return self._expand_classes(classes), other._expand_classes(classes)

    def _expand_classes(self, classes: Array) -> ModelStatistics:
        wide = self.regroup_classes(np.searchsorted(classes, self.classes), len(classes))
        return replace(wide, classes=classes)

    def declare_classes(self, labels: Array) -> ModelStatistics:
        """Declare labels as classes, in addition to the ones declared before; they remain even without rows."""
        if not len(labels) or np.array_equal(labels, self.declared):
            return self
        classes = np.union1d(self.classes, labels)
        wide = self if len(classes) == len(self.classes) else self._expand_classes(classes)
        return replace(wide, declared=np.union1d(self.declared, labels).astype(labels.dtype, copy=False))

    def drop_absent_classes(self) -> ModelStatistics:
        """Drop the classes without rows, unless they were declared."""
        if (self.n > 0).all():
            return self
        kept = np.flatnonzero((self.n > 0) | find_members(self.classes, self.declared))
        return self if len(kept) == len(self.n) else self.take_classes(kept)


def _can_hold(n: Array, sample: RowSample) -> bool:
    """Whether the sample has at most ``n`` rows of each class."""
    if sample.group.max(initial=0) >= len(n):
        return False
    kept = sample.n
    return bool((kept <= n[: len(kept)] + ROW_SUM_TOLERANCE * (1 + n.max())).all())


def _count_rows(record: Any) -> Array:
    """Number of rows in a record, (classes,) or (classes, columns), including values outside the family's support."""
    return np.asarray(record.n + getattr(record, "outside", 0.0))


def _flatten_parts(parts: tuple[Any, ...]) -> Iterator[object]:
    for part in parts:
        if type(part) is tuple:
            yield from _flatten_parts(part)
        else:
            yield part


# -- what each part of a model contributes -----------------------------------------------------------------------------

MIN_RELATIVE_LOG_LIKELIHOOD = -1e4  # bounds the evidence of a single part
MIN_TEXT_LETTERS = 50  # shorter texts count as this long, so that they do not get a larger weight


def measure_text_lengths(texts: AnyDocuments) -> Array:
    """Lengths in thousands of letters, (rows,), so that weights of typical texts are near one."""
    return np.maximum(count_letters(texts), MIN_TEXT_LETTERS) / 1000


def measure_text_length(text: Document) -> float:
    """`measure_text_lengths` for one text."""
    letters = len(text) if isinstance(text, str) or text.isascii() else len(text.decode("utf-8", "replace"))
    return max(letters, MIN_TEXT_LETTERS) / 1000


def take_documents(cells: Cells) -> AnyDocuments:
    """The documents of a column of texts."""
    assert isinstance(cells, TextCells)
    return cells.data


@dataclass(frozen=True, eq=False)
class EvidenceTerms:
    """log p(x_b | c) of each part b of a model; part 0 is the class prior."""

    values: Array  # (rows, classes, parts)
    lengths: Array  # (rows, parts): the length of a text, 1 for other parts

    def __getitem__(self, rows: Array) -> EvidenceTerms:
        return EvidenceTerms(self.values[rows], self.lengths[rows])

    @property
    def log_joint(self) -> Array:
        """Sum over the parts, (rows, classes): plain naive Bayes."""
        return np.asarray(self.values.sum(axis=2))

    @cached_property
    def relative_to_best(self) -> Array:
        """Each part relative to its best class, (rows, classes, parts), bounded from below."""
        # (rows, 1, parts); -inf if a part rules out every class
        best = self.values.max(axis=1, keepdims=True)
        return np.maximum(self.values - np.where(np.isfinite(best), best, 0.0), MIN_RELATIVE_LOG_LIKELIHOOD)


class ClassModel(ABC):
    """What a model of tables and a model of texts share: a class prior, and parts with a log likelihood each."""

    statistics: ModelStatistics
    class_prior: ResolvedPrior

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return self.statistics.classes

    @abstractmethod
    def observe(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ModelStatistics:
        """Statistics of rows, over the classes of this model."""

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without some learned rows: ``total - part``."""
        left = self.statistics - self.observe(cells, group, weight)
        return replace(self, statistics=left)  # type: ignore[type-var]  # every model is a dataclass

    # -- the prior -----------------------------------------------------------------------------------------------

    def log_prior(self) -> Array:
        """The declared log p(c), (classes,)."""
        return log_class_prior(self.statistics.n, self.class_prior)

    def estimated_log_prior(self) -> Array:
        """log p(c) estimated from the learned rows, (classes,)."""
        return log_class_prior(self.statistics.n, "estimated")

    def leave_one_out_prior(self, group: Array) -> Array:
        """log p(c) with one row less in each row's own class, (rows, classes)."""
        own, place = np.unique(group, return_inverse=True)
        counts = np.repeat(self.statistics.n[None], len(own), axis=0)  # (classes of the rows, classes)
        counts[np.arange(len(own)), own] -= 1
        return np.stack([log_class_prior(n, self.class_prior) for n in counts])[place]

    # -- the tokens of texts -------------------------------------------------------------------------------------

    @abstractmethod
    def list_texts(self) -> list[tuple[TextModel, BagCounts, int]]:
        """The text model, its counts and the block of each column of texts."""

    def choose_token_features(self, min_count: int = MIN_FEATURE_COUNT) -> tuple[TokenFeatures, ...]:
        """For each column of texts, the tokens that corrections may have weights for."""
        return tuple(text.choose_features(record, min_count) for text, record, _ in self.list_texts())

    def encode_tokens(self, features: Sequence[TokenFeatures], cells: Sequence[Cells]) -> list[SparseRows]:
        """Encode the documents of each column of texts as sparse rows over these tokens."""
        pairs = zip(features, self.list_texts(), strict=True)
        return [chosen.encode(take_documents(cells[b]), text.vocabulary) for chosen, (text, _, b) in pairs]

    # -- the parts -----------------------------------------------------------------------------------------------

    @abstractmethod
    def find_parts(self) -> list[Array]:
        """Positions of each block's columns among the parts of the evidence."""

    @abstractmethod
    def log_likelihood_terms(self, cells: Sequence[Cells]) -> Array:
        """log p(x_b | c) of each part b, (rows, classes, parts)."""

    @abstractmethod
    def leave_one_out_terms(self, cells: Sequence[Cells], group: Array) -> Array:
        """Leave-one-out log p(x_b | c), (rows, classes, parts)."""

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """Log-likelihood of the class prior and every part, per row and class."""
        return self._make_evidence_terms(self.log_likelihood_terms(cells), cells)

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """Leave-one-out `evidence_terms`: each row is scored by the model without it."""
        return self._make_evidence_terms(self.leave_one_out_terms(cells, group), cells)

    def _make_evidence_terms(self, terms: Array, cells: Sequence[Cells]) -> EvidenceTerms:
        """Prepend the estimated class prior to terms (rows, classes, parts), and add the lengths of texts."""
        # The prior includes all rows, even if a row is left out: one row less in its own class would reveal the class.
        prior = np.repeat(self.estimated_log_prior()[None], len(terms), axis=0)
        lengths = np.ones((len(terms), 1 + terms.shape[2]))  # (rows, 1 + parts)
        for places, x in zip(self.find_parts(), cells, strict=False):
            if isinstance(x, TextCells):
                lengths[:, 1 + places[0]] = measure_text_lengths(x.data)
        return EvidenceTerms(np.concatenate([prior[:, :, None], terms], axis=2), lengths)
