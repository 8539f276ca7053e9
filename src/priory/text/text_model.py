"""The text model that `priory.TextClassifier` and text columns share, for batches and for one document at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import text as kernel
from priory.core.display_table import EstimateTable
from priory.core.input_guard import MAX_SAMPLE_WEIGHT
from priory.core.sparse_rows import SparseRows
from priory.core.statistics import ROW_SUM_TOLERANCE, subtract_counts
from priory.errors import DataError
from priory.text import document_models
from priory.text.normal_forms import Document
from priory.text.sparse_counts import SparseCounts, make_dense_counts
from priory.text.token_bags import AnyDocuments
from priory.text.token_counts import BagCounts, TokenCounts
from priory.text.token_features import MIN_FEATURE_COUNT, SingleTextReader, TokenFeatures
from priory.text.tokenizer import Tokenizer
from priory.text.vocabulary import GrowingVocabulary, Vocabulary, check_words_kept

MAX_STRONGEST_WORDS = 20
MIN_EVIDENCE_ALPHA = 1e-3  # the evidence of a model without smoothing is taken at this alpha


def is_valid_alpha(alpha: object) -> bool:
    """Whether ``alpha`` is a number of virtual rows: none, or at most what a row may weigh."""
    return isinstance(alpha, int | float | np.number) and bool(0 <= alpha <= MAX_SAMPLE_WEIGHT)


@dataclass(frozen=True)
class TextModel:
    """A bag of words over a vocabulary.

    >>> from priory.text.tokenizer import Tokenizer
    >>> from priory.text.vocabulary import GrowingVocabulary
    >>> model = TextModel("binary", 1.0, GrowingVocabulary(Tokenizer()))
    >>> record = model.count(["win cash", "lunch?"], np.array([0, 1]), 2)
    >>> model.score(record, ["win lunch"]).round(3).tolist()
    [[-2.526, -2.079]]
    """

    model: str
    alpha: float | Literal["evidence"]
    vocabulary: Vocabulary

    def __post_init__(self) -> None:
        if self.model not in document_models.BAG_MODELS:
            raise DataError(f"model is {self.model!r}; use one of {', '.join(document_models.BAG_MODELS)}.")
        if self.alpha != "evidence" and not is_valid_alpha(self.alpha):
            raise DataError(f"alpha is {self.alpha!r}; use a number from 0, or 'evidence'.")

    def _bag_class(self) -> type[document_models.BagOfWords]:
        return document_models.BAG_MODELS[self.model]

    @property
    def binary(self) -> bool:
        """Whether a token counts once for each document."""
        return document_models.BAG_MODELS[self.model].binary

    def find_fault(self, record: object) -> str | None:
        """Describe what is wrong with a record of this model; None if it is valid."""
        fault = self.vocabulary.find_fault(record)
        if fault or not self.binary or not isinstance(record, BagCounts):
            return fault
        slack = ROW_SUM_TOLERANCE * (1 + record.n.max(initial=0.0))
        is_possible = (record.counts.max(axis=0, initial=0.0) <= record.n + slack).all()
        return None if is_possible else "more documents show a token than there were"

    # -- learning ------------------------------------------------------------------------------------------------

    def count(self, documents: AnyDocuments, group: Array, groups: int, weight: Array | None = None) -> BagCounts:
        """Count documents; ``group`` (documents,) is the class of each, 0 .. groups - 1."""
        return self.vocabulary.count(documents, group, groups, weight, self.binary)

    def select_counts(self, record: BagCounts) -> BagCounts:
        """The counts of the tokens in use."""
        return self.vocabulary.select_counts(record)

    def _prepare_counts(self, record: BagCounts) -> BagCounts:
        """The counts of the tokens in use, dense if the bag of words requires it.

        Sparse counts require that zero counts have the same weight for all tokens of a class: not without smoothing,
        where they are impossible.
        """
        counts = self.select_counts(record)
        return counts.make_dense() if self.alpha == 0 else counts

    def choose_alpha(self, record: BagCounts) -> float:
        """The declared smoothing, or the one with the largest evidence."""
        if self.alpha != "evidence":
            return float(self.alpha)
        bag = self._bag_class()
        return self._prepare_counts(record).derive("alpha", bag.choose_alpha, bag)

    def build_bag(self, record: BagCounts) -> document_models.BagOfWords:
        """Build the bag of words with its smoothing."""
        return self._bag_class()(self.choose_alpha(record))

    def token_weights(self, record: BagCounts) -> document_models.TokenWeights:
        """Weights of the tokens in use for every class, and the constant of every class.

        A declared token (or a bucket) that occurs in no document has weight zero.
        """
        bag = self.build_bag(record)

        def compute_weights(counts: BagCounts) -> document_models.TokenWeights:
            table, constant = bag.compute_weights(counts)
            return document_models.TokenWeights(document_models.silence_tokens(table, counts.counts), constant)

        return self._prepare_counts(record).derive("weights", compute_weights, bag)

    def log_evidence(self, record: BagCounts) -> float:
        """Log evidence of the tokens in use, drawn independently given the class."""
        alpha = max(self.choose_alpha(record), MIN_EVIDENCE_ALPHA)
        return float(document_models.log_dirichlet_evidence(self.select_counts(record).counts, np.array([alpha]))[0])

    # -- words ---------------------------------------------------------------------------------------------------

    def word_probabilities(self, record: BagCounts, rows: Array) -> Array:
        """P(word | class) of tokens, given by their rows: (words, classes)."""
        table = document_models.take_token_rows(self.token_weights(record).table, rows)
        return 1 / (1 + np.exp(-table)) if self.model == "bernoulli" else np.exp(table)

    def find_distinctive_words(self, record: BagCounts, max_words: int = MAX_STRONGEST_WORDS) -> list[str]:
        """The words whose probabilities differ most between the classes, weighted by frequency."""
        counts = check_words_kept(self.select_counts(record))
        # (tokens,): range of the log weights over the classes, times the number of occurrences
        spread = document_models.measure_spread(self.token_weights(record).table)
        best = np.argsort(-spread * counts.counts.sum(axis=1), kind="stable")[:max_words]
        return counts.take_tokens(best).tokens()

    def tabulate_words(self, record: BagCounts, words: Sequence[str]) -> EstimateTable:
        """P(word | class) of some words."""
        counts = check_words_kept(self.select_counts(record))
        row_of_token = self.vocabulary.number_tokens(words, counts)
        unknown = [word for word in words if word not in row_of_token]
        if unknown:
            raise DataError(f"the model has no word {unknown[0]!r}; it may be stemmed, lowered or too rare.")
        rows = np.array([row_of_token[word] for word in words], dtype=np.int64)
        shown = make_dense_counts(counts.take_tokens(rows).counts).T  # (classes, words)
        alpha, total = self.choose_alpha(record), counts.counts.sum(axis=0)
        n, all_virtual = (counts.n, 2 * alpha) if self.model == "bernoulli" else (total, alpha * len(counts))
        shares = self.word_probabilities(record, rows).T
        return EstimateTable(list(words), shares, shown, np.full(shown.shape, alpha), n, np.full(len(n), all_virtual))

    # -- answering -----------------------------------------------------------------------------------------------

    def score(self, record: BagCounts, documents: AnyDocuments) -> Array:
        """log p(document | class) up to a constant for each document, (documents, classes)."""
        table, constant = self.token_weights(record)
        return self.vocabulary.score(documents, self.select_counts(record), table, self.binary) + constant

    def choose_features(self, record: BagCounts, min_count: int = MIN_FEATURE_COUNT) -> TokenFeatures:
        """The tokens in use that occur in at least ``min_count`` documents."""
        choose = partial(TokenFeatures.of, min_count=min_count)
        return self.select_counts(record).derive("features", choose, min_count)

    @property
    def leaves_out_in_closed_form(self) -> bool:
        """Whether leaving a document out changes only the counts of its own tokens."""
        return self.alpha != "evidence" and self.alpha > 0

    def leave_one_out(self, record: BagCounts, documents: AnyDocuments, group: Array) -> Array:
        """Scores of learned documents, each from the record without it, (documents, classes)."""
        if not self.leaves_out_in_closed_form:
            return self._leave_one_out_by_subtraction(record, documents, group)
        exact = self.leave_parts_out(record, documents, group, np.ones(len(group)), [np.zeros(len(group))])
        if exact is not None:
            return exact[0]
        bag, counts = self.build_bag(record), self._prepare_counts(record)
        indptr, ids, occurrences = self.vocabulary.encode(documents, counts)
        x = np.ones(len(ids)) if bag.binary else occurrences
        return bag.leave_one_out(
            counts, document_models.DocumentRows(indptr, ids, x, group, counts, self.vocabulary.grows)
        )

    def leave_parts_out(
        self, record: BagCounts, documents: AnyDocuments, group: Array, weight: Array, parts: Sequence[Array]
    ) -> list[Array] | None:
        """Scores of learned documents by the record without each part and without the document; None if not compiled.

        A part is what is taken from the weights of the documents (documents,); scores are (documents, classes).
        """
        bag, counts = self.build_bag(record), self.select_counts(record)
        table, is_exact = counts.counts, self.leaves_out_in_closed_form and not getattr(counts, "missed", 0.0)
        if not isinstance(bag, document_models.BinaryBag) or isinstance(table, SparseCounts) or not is_exact:
            return None
        indptr, ids, _ = self.vocabulary.encode(documents, counts)
        rows, scores = SparseRows(indptr.astype(np.int64), ids.astype(np.int32), None, len(counts)), []
        for part in parts:
            left = subtract_counts(table, rows.count_by_class(group, part, table.shape[1]))
            scores.append(bag.leave_exact_rows_out(left, rows, group, weight - part, self.vocabulary.grows))
        return scores

    def _leave_one_out_by_subtraction(self, record: BagCounts, documents: AnyDocuments, group: Array) -> Array:
        """Compute ``record - document`` one by one, for models where a document may change the smoothing."""
        classes = len(record.n)
        scores = np.empty((len(documents), classes))
        for i in range(len(documents)):
            one, own = documents[i : i + 1], group[i : i + 1]
            scores[i] = self.score(record - self.count(one, own, classes), one)[0]
        return scores


class OpenCounts:
    """Mutable counts of a text model.

    >>> from priory.text.tokenizer import Tokenizer
    >>> model = TextModel("binary", 1.0, GrowingVocabulary(Tokenizer()))
    >>> texts, group = ["win cash", "lunch?"], np.array([0, 1])
    >>> counts = OpenCounts(model, model.count(texts[:1], group[:1], 2))
    >>> counts.learn("lunch?", 1)
    >>> counts.log_likelihood("win lunch").round(3).tolist()  # equals ``model.score``
    [-2.526, -2.079]
    """

    def __init__(self, model: TextModel, record: BagCounts) -> None:
        assert isinstance(record, TokenCounts)
        tokenizer = model.vocabulary.tokenizer
        self.bag = model.build_bag(record)
        self.reader = SingleTextReader(tokenizer)
        self.kernel = open_counts(record, tokenizer)

    @staticmethod
    def can_open(model: TextModel, record: BagCounts) -> bool:
        """Whether scores depend only on the document's own tokens and a few sums, and no token was dropped."""
        return (
            isinstance(model.vocabulary, GrowingVocabulary)
            and model.vocabulary.max_tokens is None
            and model.vocabulary.tokenizer.stem is None
            and model.alpha != "evidence"
            and model.alpha > 0
            and model.model != "bernoulli"  # absent tokens count too
            and isinstance(record, TokenCounts)
            and record.missed == 0
        )

    def learn(self, document: Document, group: int) -> None:
        """Add a document of class ``group``."""
        text, rule = self.reader.prepare(document)
        self.kernel.learn(text, rule, group, self.bag.binary)

    def forget(self, document: Document, group: int) -> bool:
        """Remove a document and return True; return False, changing nothing, if it cannot have been learned."""
        text, rule = self.reader.prepare(document)
        return self.kernel.forget(text, rule, group, self.bag.binary)

    def log_likelihood(self, document: Document) -> Array:
        """Score of a document, (classes,), equal to `TextModel.score`."""
        text, rule = self.reader.prepare(document)
        sums, length = self.kernel.score(text, rule, self.bag.binary, self.bag.alpha, False)
        if not length:  # there may be no tokens at all
            return np.asarray(sums)
        return np.asarray(sums - length * np.log(self.kernel.totals + self.bag.alpha * self.kernel.n_used))


def open_counts(words: TokenCounts, tokenizer: Tokenizer) -> kernel.OpenCounter:
    """Make mutable counts from a record of token counts."""
    counts = words.counts
    if not isinstance(counts, SparseCounts):
        return open_kernel(words.arena, words.ends, counts, tokenizer)
    entries = counts.ends, counts.classes, counts.values
    return kernel.SparseOpenCounter(counts.n_classes, words.arena, words.ends, *entries, tokenizer.analyzer == "word")


def open_kernel(arena: Array, ends: Array, counts: Array, tokenizer: Tokenizer) -> kernel.OpenCounter:
    """Make mutable counts from a dense array (tokens, classes)."""
    table = np.ascontiguousarray(counts, dtype=float)
    return kernel.OpenCounter(table.shape[1], arena, ends, table, tokenizer.analyzer == "word")
