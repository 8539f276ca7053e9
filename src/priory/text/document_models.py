"""Three models of a document, each a function of the same token counts, and their log weights per token and class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, final

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import gammaln, log, log_or_zero
from priory.core.sparse_rows import SparseRows, multiply_entries
from priory.text.sparse_counts import CountTable, SparseCounts, check_dense_size, make_csr
from priory.text.token_counts import BagCounts

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class SparseTable:
    """A table (tokens, classes): ``shown[w] * by_class[c]``, plus the sparse matrix ``own``."""

    own: csr_array
    by_class: Array  # (classes,)
    shown: Array  # (tokens,): 0 for tokens without counts, else 1

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.shown), len(self.by_class)

    def __len__(self) -> int:
        return len(self.shown)

    def take_rows(self, tokens: Array) -> Array:
        """Weights of some tokens, (some tokens, classes)."""
        check_dense_size(len(tokens), len(self.by_class))
        return np.asarray(self.own[tokens].toarray() + self.shown[tokens, None] * self.by_class)

    def sum(self, axis: int) -> Array:
        """The sum over all tokens (``axis=0``)."""
        assert axis == 0
        return np.asarray(self.own.sum(axis=0) + self.shown.sum() * self.by_class)

    def multiply_rows(self, rows: csr_array) -> Array:
        """Product of sparse rows (rows, tokens) with the table, (rows, classes)."""
        # distribute over both parts of the table, without expanding it to a dense array
        product: Array = (rows @ self.own).toarray()
        return product + np.outer(rows @ self.shown, self.by_class)

    def measure_spread(self) -> Array:
        """Range of the weights of each token, (tokens,), assuming that its lowest class has count zero."""
        highest = np.full(len(self), self.by_class.max(initial=-np.inf))
        token = np.repeat(np.arange(len(self)), np.diff(self.own.indptr))
        np.maximum.at(highest, token, self.own.data + self.by_class[self.own.indices])
        return self.shown * (highest - self.by_class.min(initial=np.inf))


WeightTable = Array | SparseTable  # (tokens, classes)


def map_by_class(counts: CountTable, function: Callable[..., Array], *by_class: Array) -> WeightTable:
    """Apply ``function(count, *by_class)`` to every cell; ``by_class`` are arrays (classes,)."""
    if not isinstance(counts, SparseCounts):
        return function(counts, *by_class)
    empty = np.broadcast_to(function(np.zeros(counts.n_classes), *by_class), counts.n_classes)
    # (entries,): the difference from a count of zero
    own = function(counts.values, *(numbers[counts.classes] for numbers in by_class)) - empty[counts.classes]
    matrix = make_csr((own, counts.classes, np.append(0, counts.ends)), counts.shape)
    return SparseTable(matrix, empty, np.ones(len(counts)))


def silence_tokens(table: WeightTable, counts: CountTable) -> WeightTable:
    """Set the weights of tokens without counts to zero."""
    shown = np.asarray(counts.any(axis=1))
    if isinstance(table, SparseTable):
        return replace(table, shown=shown.astype(float))
    return np.where(shown[:, None], table, 0.0)


def score_entries(ends: Array, tokens: Array, values: Array, table: WeightTable) -> Array:
    """Product of sparse rows of tokens with a table (tokens, classes): (rows, classes)."""
    if not isinstance(table, SparseTable):
        return multiply_entries(ends, tokens, values, table)
    return table.multiply_rows(make_csr((values, tokens, ends), (len(ends) - 1, len(table))))


def take_token_rows(table: WeightTable, tokens: Array) -> Array:
    """Weights of some tokens, (some tokens, classes)."""
    return table.take_rows(tokens) if isinstance(table, SparseTable) else np.asarray(table[tokens])


def measure_spread(table: WeightTable) -> Array:
    """Range of the weights of each token, (tokens,)."""
    if isinstance(table, SparseTable):
        return table.measure_spread()
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(table.max(axis=1) - table.min(axis=1), posinf=1e3))


MIN_LOG_PROBABILITY = -1e4  # finite, but its exponential is zero
TOKEN_ALPHA_GRID = 2.0 ** np.arange(-10, 3)


class TokenWeights(NamedTuple):
    """The weights of a bag of words: one for each token and class, and a constant for each class."""

    table: WeightTable  # (tokens, classes)
    constant: Array  # (classes,)


class DocumentRows:
    """Documents as sparse rows of tokens with the class of each, prepared for leave-one-out.

    An *entry* is one token of one document. A token *vanishes* with a document if it occurs in no other document.
    """

    def __init__(
        self, indptr: Array, ids: Array, x: Array, group: Array, words: BagCounts, tokens_vanish: bool = True
    ) -> None:
        row = np.repeat(np.arange(len(group)), np.diff(indptr))  # the document of each entry
        x = np.minimum(x, words.counts[ids, group[row]])  # less only if tokens were dropped while learning
        kept = x > 0
        if not kept.all():
            row, ids, x = row[kept], ids[kept], x[kept]
        self.row, self.ids, self.x, self.group, self.tokens_vanish = row, ids, x, group, tokens_vanish
        self.own_class = group[self.row]
        self.ends = np.append(0, np.cumsum(np.bincount(self.row, minlength=len(group))))
        # (entries,): tokens that occur in no other document are ignored once the document is left out, and vanish
        # from a growing vocabulary. The sums below are (documents,).
        alone = words.counts.sum(axis=1)[self.ids] == self.x
        self.length = self.sum_by_document(self.x)
        self.n_alone = self.sum_by_document(alone.astype(float))
        self.n_vanished = self.n_alone if tokens_vanish else np.zeros(len(group))
        self.alone_length = self.sum_by_document(np.where(alone, self.x, 0.0))
        self.remaining_length = self.length - self.alone_length

    def score(self, table: WeightTable) -> Array:
        """Sum of ``x table[token]`` over the tokens of each document, (documents, classes)."""
        return score_entries(self.ends, self.ids, self.x, table)

    def sum_by_document(self, values: Array) -> Array:
        """Sum of values (entries,) over the tokens of each document, (documents,)."""
        return np.bincount(self.row, values, minlength=len(self.group))

    def add_to_own_class(self, scores: Array, values: Array) -> None:
        """Add values (documents,) to the scores (documents, classes) of each document's own class, in place."""
        scores[np.arange(len(self.group)), self.group] += values

    def replace_own_class(self, others: Array, own: Array) -> Array:
        """Broadcast ``others`` to (documents, classes), with ``own`` (documents,) at each document's own class."""
        wide = np.array(np.broadcast_to(others, (len(self.group), others.shape[-1])))
        wide[np.arange(len(self.group)), self.group] = own
        return wide


@dataclass(frozen=True)
class BagOfWords(ABC):
    """A model of documents with additive smoothing ``alpha``."""

    alpha: float = 1.0

    binary: ClassVar[bool] = False  # whether a token counts once for each document

    @abstractmethod
    def compute_weights(self, words: BagCounts) -> TokenWeights:
        """Weights of every token for every class, and the constants of the classes."""

    @abstractmethod
    def leave_one_out(self, words: BagCounts, rows: DocumentRows) -> Array:
        """Scores ``constant + Σ x table``, (documents, classes), from the counts without each document; alpha > 0."""

    @classmethod
    def choose_alpha(cls, words: BagCounts) -> float:
        """The alpha with the largest evidence, with a Dirichlet prior for each class."""
        return float(TOKEN_ALPHA_GRID[int(np.argmax(log_dirichlet_evidence(words.counts, TOKEN_ALPHA_GRID)))])


class TokenDrawBag(BagOfWords):
    """Tokens drawn independently from the distribution of the class: θ = (count + alpha) / (total + alpha V)."""

    def compute_weights(self, words: BagCounts) -> TokenWeights:
        total = words.counts.sum(axis=0) + self.alpha * len(words)  # zero for a class without tokens and smoothing
        table = map_by_class(words.counts, lambda count, mass: log(count + self.alpha) - log_or_zero(mass), total)
        return TokenWeights(table, np.zeros(len(words.n)))

    def leave_one_out(self, words: BagCounts, rows: DocumentRows) -> Array:
        scores = _score_own_tokens_left_out(self.alpha, words, rows)
        # tokens of each class (classes,), and virtual tokens of the remaining vocabulary (documents,)
        total, room = words.counts.sum(axis=0), self.alpha * (len(words) - rows.n_vanished)
        mass = rows.replace_own_class(total + room[:, None], total[rows.group] - rows.length + room)
        return scores - rows.remaining_length[:, None] * log_or_zero(mass)


@final
class BinaryBag(TokenDrawBag):
    """Tokens drawn independently, each counted once per document: the default."""

    binary = True

    def leave_exact_rows_out(
        self, counts: Array, rows: SparseRows, group: Array, weight: Array, tokens_vanish: bool
    ) -> Array:
        """Compiled `leave_one_out`, for documents whose tokens were all counted, with these weights.

        ``counts`` are (tokens, classes); documents of weight zero are not among them.
        """
        scores, remaining = rows.score_left_out(counts, group, weight, self.alpha)
        sizes, left = np.diff(rows.ends), np.full(len(group), len(counts))  # (rows,): of the tokens, how many are left
        if tokens_vanish:  # those that no other document has
            left = counts.any(axis=1).sum() - np.where(weight > 0, sizes - remaining, 0)
        mass = counts.sum(axis=0) + self.alpha * left[:, None]  # (rows, classes): tokens of each class, less the row's
        mass[np.arange(len(group)), group] -= weight * sizes
        return scores - remaining[:, None] * log_or_zero(mass)


@final
class MultinomialBag(TokenDrawBag):
    """Tokens drawn independently, every occurrence counted."""


@final
class BernoulliBag(BagOfWords):
    """Tokens are present or absent, and both are evidence: p = (documents with it + alpha) / (n + 2 alpha)."""

    binary = True

    def compute_weights(self, words: BagCounts) -> TokenWeights:
        def log_absent(count: Array, n: Array) -> Array:
            # Without smoothing, a token that is in every document cannot be absent: use a large negative number
            # instead of -inf, so that it cancels where the token is present.
            return np.maximum(log(n - count + self.alpha), MIN_LOG_PROBABILITY)

        absent = map_by_class(words.counts, lambda count, n: log_absent(count, n) - log(n + 2 * self.alpha), words.n)
        table = map_by_class(words.counts, lambda count, n: log(count + self.alpha) - log_absent(count, n), words.n)
        return TokenWeights(table, absent.sum(axis=0))

    def leave_one_out(self, words: BagCounts, rows: DocumentRows) -> Array:
        a, n, counts = self.alpha, words.n, words.counts
        own_n, seen = n[rows.group], counts[rows.ids, rows.own_class]  # (documents,), (entries,)
        # Present tokens: as with full counts, corrected in the own class, minus the tokens that vanish.
        present = map_by_class(counts, lambda count, n: np.log(count + a) - np.log(n - count + a), n)
        scores = rows.score(present)
        rows.add_to_own_class(scores, rows.sum_by_document(np.log(seen - rows.x + a) - np.log(seen + a)))
        gone = np.log(a) - rows.replace_own_class(np.log(n + a), np.log(own_n - 1 + a))
        scores -= rows.n_alone[:, None] * gone
        # Absent tokens: in the own class, one document less lacks each token that the document does not have.
        lacking = map_by_class(counts, lambda count, n: np.log(n - count + a), n)
        fewer = map_by_class(counts, lambda count, n: log_or_zero(n - 1 - count + a), n)
        own = fewer.sum(axis=0)[rows.group] + rows.sum_by_document(
            np.log(n[rows.own_class] - seen + a) - log_or_zero(n[rows.own_class] - 1 - seen + a)
        )
        absent = rows.replace_own_class(lacking.sum(axis=0), own)
        absent -= rows.n_vanished[:, None] * rows.replace_own_class(np.log(n + a), np.log(own_n - 1 + a))
        room = (len(words) - rows.n_vanished)[:, None]  # (documents, 1): remaining tokens
        return scores + absent - room * rows.replace_own_class(np.log(n + 2 * a), np.log(own_n - 1 + 2 * a))


BAG_MODELS: dict[str, type[BagOfWords]] = {
    "binary": BinaryBag,
    "multinomial": MultinomialBag,
    "bernoulli": BernoulliBag,
}


def log_dirichlet_evidence(counts: CountTable, alphas: Array) -> Array:
    """Log evidence (alphas,) of counts (tokens, classes), with a Dirichlet prior for each class."""
    positive = counts.values if isinstance(counts, SparseCounts) else counts[counts > 0]
    values, times = np.unique(positive, return_counts=True)  # equal counts contribute equally
    drawn = (gammaln(values + alphas[:, None]) - gammaln(alphas)[:, None]) @ times  # (alphas,)
    mass = alphas[:, None] * max(len(counts), 1)  # (alphas, 1)
    return np.asarray(drawn + (gammaln(mass) - gammaln(mass + counts.sum(axis=0))).sum(axis=1))


def _score_own_tokens_left_out(alpha: float, words: BagCounts, rows: DocumentRows) -> Array:
    """``Σ x log(count + alpha)``, (documents, classes), over the remaining tokens, without the document's counts."""
    scores = rows.score(map_by_class(words.counts, lambda count: np.log(count + alpha)))
    # In the own class the counts are smaller by x; tokens that vanish have only alpha left, in every class.
    seen = words.counts[rows.ids, rows.own_class]
    rows.add_to_own_class(scores, rows.sum_by_document(rows.x * (np.log(seen - rows.x + alpha) - np.log(seen + alpha))))
    return scores - (rows.alone_length * np.log(alpha))[:, None]
