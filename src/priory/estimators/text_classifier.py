"""`TextClassifier`: from strings to a verdict at the speed of counting, every word accountable."""

from __future__ import annotations

import copy
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.averaged_models import get_averaged_bag
from priory.bag_of_words.documents import Document, DocumentBatch, check_documents
from priory.bag_of_words.hashed_counts import HashedCounts
from priory.bag_of_words.models import BAG_MODELS, BagOfWords, DocumentRows, TokenWeights, build_unit_rows
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import Tokenizer
from priory.bag_of_words.vocabulary import (
    FixedVocabulary,
    GrowingVocabulary,
    HashedVocabulary,
    Vocabulary,
    load_stop_words,
)
from priory.calibration.calibrator import Calibrator
from priory.calibration.smoothing_search import choose_smoothing
from priory.calibration.stacking import MemberSpec
from priory.core.logspace import log_normalise
from priory.core.registration import list_record_types, register_estimator
from priory.core.sharding import space_evenly
from priory.core.typing import Array
from priory.errors import DataError, StaleModelError
from priory.estimators.self_calibrating import SelfCalibratingClassifier
from priory.models.cells import Cells, TextCells
from priory.models.class_prior import check_class_prior, log_class_prior
from priory.models.evidence_terms import EvidenceTerms, measure_text_lengths
from priory.models.explanation import Ledger, LedgerLine, Ledgers
from priory.models.model_statistics import ModelStatistics
from priory.models.token_evidence import TokenEvidence, find_strongest_tokens, make_token_lines

MAX_TEXTS_TO_CALIBRATE = 2048  # texts that a tempering is fitted to


@dataclass(frozen=True)
class TextTable:
    """Documents, read once."""

    documents: DocumentBatch

    @property
    def rows(self) -> int:
        return len(self.documents)


@register_estimator(
    required=("statistics_", "n_features_in_", "salt_"),
    former_names={
        "unit": "analyzer",
        "least": "min_token_length",
        "ngrams": "ngram_range",
        "extra": "extra_tokens",
        "most": "max_tokens",
    },
)
class TextClassifier(SelfCalibratingClassifier[TextTable]):
    """Naive Bayes for texts: ``str``, UTF-8 ``bytes`` or paths of files, in any iterable.

    Parameters
    ----------
    model : "binary", "multinomial", "bernoulli", "poisson" or "complement"
        A token counts once a document, or as often as it occurs; as present or absent; as a rate; or by how badly the
        document fits all other classes.
    average : bool
        Average over all 2^V sets of tokens instead of using them all: a token counts as far as it matters. Not for
        "complement".
    alpha : float, "evidence" or "loo"
        Virtual occurrences of every token; "evidence" takes as many as make what was seen most probable. "loo" lets
        ``fit`` take as many as make texts most probable of their own class when they are left out (at most 500
        of them); from then on that is as good as declared, whatever is learned or forgotten, until the next ``fit``.
    ngrams, unit, lowercase, least, stem, extra, cjk
        What a token is: see `priory.bag_of_words.tokenizer.Tokens`. The defaults are those of ``CountVectorizer()``.
    stop_words : a language such as "en", or the words themselves, optional
    vocabulary : the tokens to use, optional
        Others are ignored, or share one slot if ``unknown`` is true.
    min_df, max_df : int or float
        Only tokens in at least / at most so many documents (a float: such a share of them).
    max_features : int, optional
        Only the tokens that occur most.
    buckets : int, optional
        Hash the tokens into so many buckets instead of keeping them: fixed memory, no words to read in the model.
    salt : int, optional
        The key of the hash; by default drawn anew for each model. Models that are to be merged share it.
    most : int, optional
        Keep no more distinct tokens than this while learning; rare ones are dropped with a known error bound.
    class_prior : "estimated", "uniform", a dict of class to probability, or one probability for each class in order
    calibrate : "loo" or False
        Correct the probabilities by what the model says of texts left out, or leave them as naive Bayes has them.
    refine : bool
        Let a logistic regression over the tokens, centred on naive Bayes, correct it. Takes all texts, and longer.

    Examples
    --------
    >>> model = TextClassifier().fit(["win cash now", "cash prize", "lunch at noon?"], ["spam", "spam", "ham"])
    >>> model.predict(["win a prize", "lunch?"]).tolist()
    ['spam', 'ham']
    >>> model.forget(["cash prize"], ["spam"]).vocabulary_
    ['at', 'cash', 'lunch', 'noon', 'now', 'win']
    """

    salt_: int
    _requires_all_classes = False

    def __init__(
        self,
        model: str = "binary",
        *,
        average: bool = False,
        alpha: Any = 1.0,
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Any = "word",
        lowercase: bool = True,
        min_token_length: int = 2,
        stem: str | None = None,
        extra_tokens: str = "",
        cjk: bool = False,
        stop_words: Any = None,
        vocabulary: Any = None,
        unknown: bool = False,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        buckets: int | None = None,
        salt: int | None = None,
        max_tokens: int | None = None,
        class_prior: Any = "estimated",
        calibrate: Any = "loo",
        refine: bool = False,
    ) -> None:
        self.model = model
        self.average = average
        self.alpha = alpha
        self.ngram_range = ngram_range
        self.analyzer = analyzer
        self.lowercase = lowercase
        self.min_token_length = min_token_length
        self.stem = stem
        self.extra_tokens = extra_tokens
        self.cjk = cjk
        self.stop_words = stop_words
        self.vocabulary = vocabulary
        self.unknown = unknown
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.buckets = buckets
        self.salt = salt
        self.max_tokens = max_tokens
        self.class_prior = class_prior
        self.calibrate = calibrate
        self.refine = refine

    def _is_consistent(self) -> bool:
        """Whether there is one record of tokens, and at most one more; or one of as many buckets as were declared."""
        parts = self.statistics_.parts
        if self.n_features_in_ != 1:
            return False
        if self.buckets is not None:
            return list_record_types(parts) == (HashedCounts,) and len(parts[0]) == self.buckets
        return list_record_types(parts) in ((TokenCounts,), (TokenCounts, TokenCounts))

    # -- what was declared ---------------------------------------------------------------------------------------

    def _build_vocabulary(self) -> Vocabulary:
        """Which tokens are remembered, as declared."""
        span = (self.ngram_range[0], self.ngram_range[1])
        stop = load_stop_words(self.stop_words)
        tokens = Tokenizer(
            self.lowercase, self.analyzer, self.min_token_length, span, stop, self.stem, self.extra_tokens, self.cjk
        )
        grown = GrowingVocabulary(tokens, self.min_df, self.max_df, self.max_features, self.max_tokens)
        if self.buckets is None and self.vocabulary is None:
            return grown
        if not grown.keeps_all_tokens or (self.buckets is not None and self.vocabulary is not None):
            raise DataError(
                "buckets, vocabulary and pruning (min_df, max_df, max_features) do not go together; use one."
            )
        if self.buckets is not None:
            return HashedVocabulary(tokens, self.buckets, getattr(self, "salt_", 0))
        return FixedVocabulary(tokens, tuple(self.vocabulary), self.unknown)

    def _build_bag(self) -> BagOfWords:
        return self._bag_class()(self.alpha_)

    def _bag_class(self) -> type[BagOfWords]:
        return get_averaged_bag(self.model) if self.average else BAG_MODELS[self.model]

    @property
    def alpha_(self) -> float:
        """The smoothing in use: as declared, as the evidence asks, or as ``fit`` chose it by leaving texts out."""
        if self.alpha == "evidence":
            return self._bag_class().choose_alpha(self._counts_in_use())
        return float(self.__dict__["alpha_"] if self.alpha == "loo" else self.alpha)

    def _check_parameters(self) -> None:
        if self.model not in BAG_MODELS:
            raise DataError(f"model is {self.model!r}; use one of {', '.join(BAG_MODELS)}.")
        number = isinstance(self.alpha, (int, float)) and np.isfinite(self.alpha) and self.alpha >= 0
        if not number and self.alpha not in ("evidence", "loo"):
            raise DataError(f"alpha is {self.alpha!r}; use a number from 0, 'evidence' or 'loo'.")
        if self.average and number and not self.alpha > 0:
            raise DataError("averaging over sets of tokens needs a prior: use alpha above 0.")
        self._bag_class()
        self._build_vocabulary()

    # -- learning ------------------------------------------------------------------------------------------------

    def _finish_fit(self, table: TextTable, group: Array, weight: Array | None) -> None:
        self.__dict__.pop("alpha_", None)
        if self.alpha == "loo":
            if weight is not None:
                raise DataError(
                    "alpha='loo' leaves out texts of weight one; omit sample_weight, or give alpha a number."
                )
            rows = space_evenly(table.rows, 500 if self._build_vocabulary().keeps_all_tokens else 100)
            some, own = TextTable([table.documents[i] for i in rows]), group[rows]

            def honest(alpha: float) -> Array:
                self.__dict__["alpha_"] = alpha
                return self._predict_left_out(some, own)

            self.__dict__["alpha_"] = choose_smoothing(honest, own)
        super()._finish_fit(table, group, weight)

    def _read(self, X: Any, reset: bool) -> TextTable:
        self._check_parameters()
        texts = TextTable(check_documents(X))
        if reset:
            if not texts.rows:
                raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: X has no documents.")
            self.n_features_in_ = 1
            self.salt_ = secrets.randbits(63) if self.salt is None else self.salt
        return texts

    def _resolve_classes(self, classes: Any, is_first_call: bool) -> Array | None:
        if classes is not None:
            given = np.unique(np.asarray(classes))
            return given if is_first_call else np.union1d(self.classes_, given)
        return None if is_first_call else self.classes_

    def _observe(self, table: TextTable, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        documents = np.bincount(group, weight, minlength=len(classes)).astype(float)
        once = BAG_MODELS[self.model].binary
        return ModelStatistics(
            classes, documents, self._build_vocabulary().count(table.documents, group, len(classes), weight, once)
        )

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        alike = (
            self._build_vocabulary() == other._build_vocabulary()
            and BAG_MODELS[self.model].binary == BAG_MODELS[other.model].binary
        )
        if not alike:
            raise DataError("the models read texts differently; only models with the same tokens can be merged.")

    # -- what was learned ----------------------------------------------------------------------------------------

    def _counts_in_use(self) -> Any:
        """The counts of the tokens in use."""
        vocabulary = self._build_vocabulary()
        return self._fitted_statistics().derive(
            "in use", lambda s: vocabulary.select_counts(s.parts, float(s.n.sum())), vocabulary
        )

    def _token_counts(self) -> TokenCounts:
        """The same, in a model that can spell them; sorted, or in the order they were declared."""
        if self.buckets is not None:
            raise StaleModelError("a hashed model keeps no words; leave out buckets to have them.")
        used: TokenCounts = self._counts_in_use()
        return used.sort_tokens() if self.vocabulary is None else used

    @property
    def vocabulary_(self) -> list[str]:
        """The tokens in use."""
        return self._token_counts().tokens()

    @property
    def counts_(self) -> Array:
        """For each token (or bucket) and class the documents that show it, or its occurrences, as the model asks."""
        counts: Array = self._counts_in_use().counts if self.buckets is not None else self._token_counts().counts
        return counts

    def _token_weights(self) -> TokenWeights:
        by = (self.model, self.average, self.alpha, self.__dict__.get("alpha_"))
        weights: TokenWeights = self._counts_in_use().derive(
            "weights", lambda u: self._build_bag().compute_weights(u), *by
        )
        return weights

    @property
    def inclusion_probability_(self) -> dict[str, float]:
        """For each token the probability that it depends on the class at all."""
        words = self._token_counts()
        bag = get_averaged_bag(self.model)(self.alpha_)
        return dict(zip(words.tokens(), bag.inclusion_probability(words).tolist(), strict=True))

    def _log_prior(self) -> Array:
        if not BAG_MODELS[self.model].uses_class_prior and len(self.classes_) > 1:
            return np.zeros(len(self.classes_))
        return log_class_prior(self.statistics_.n, check_class_prior(self.class_prior, self.classes_))

    # -- correcting ----------------------------------------------------------------------------------------------

    def _model(self, statistics: ModelStatistics | None = None) -> ClassifierModel:
        return ClassifierModel(self if statistics is None else _copy_with_statistics(self, statistics))

    def _read_cells(self, table: TextTable) -> list[Cells]:
        return [TextCells(table.documents)]

    def _calibrator(self) -> Calibrator:
        members = [MemberSpec("naive", "columns" if self.refine else "")]
        return Calibrator(sys.maxsize if self.refine else MAX_TEXTS_TO_CALIBRATE, lambda *_: members)

    def _estimated_log_prior(self) -> Array:
        uses_prior = BAG_MODELS[self.model].uses_class_prior
        return log_class_prior(self.statistics_.n, "estimated") if uses_prior else np.zeros(len(self.classes_))

    def _encode_tokens(self, documents: DocumentBatch) -> csr_array:
        words = self._counts_in_use()
        indptr, ids, _ = reading.encode_documents(
            documents, words.index(self.analyzer), self._build_vocabulary().tokens
        )
        return build_unit_rows(indptr, ids, words)

    # -- answering -----------------------------------------------------------------------------------------------

    def _score_documents(self, documents: DocumentBatch) -> Array:
        weights, once = self._token_weights(), BAG_MODELS[self.model].binary
        scores = self._build_vocabulary().score(documents, self._counts_in_use(), weights.table, once)
        return np.asarray(scores + weights.constant)

    def explain(self, X: Any) -> Ledgers:
        """For each text the ledger of its tokens: what each said, how often, and in which places."""
        check_is_fitted(self, "statistics_")
        self._token_counts()
        texts = self._read([X] if isinstance(X, (str, bytes)) else X, reset=False)
        split = self._calibrated().split_evidence(self._read_cells(texts))
        return Ledgers(
            [
                self._explain_document(document, weight, split.prior, rest)
                for document, weight, rest in zip(texts.documents, split.weights[:, 1], split.rest, strict=True)
            ]
        )

    def _explain_document(self, document: Document, text_weight: float, prior: Array, correction: Array) -> Ledger:
        table, constant = (text_weight * weights for weights in self._token_weights())
        place = self._counts_in_use().derive("places", lambda u: {token: j for j, token in enumerate(u.tokens())})
        lines = make_token_lines(document, self._build_vocabulary().tokens, place, table, BAG_MODELS[self.model].binary)
        if constant.any():
            lines.append(LedgerLine("(absent tokens)", "", tuple(constant.tolist())))
        if not np.allclose(correction, 0.0, atol=1e-9):
            lines.append(LedgerLine("(together)", "", tuple(correction.tolist())))
        text = document if isinstance(document, str) else document.decode()
        return Ledger(tuple(self.classes_.tolist()), LedgerLine("prior", "", tuple(prior.tolist())), tuple(lines), text)

    def evidence(self, label: Any, max_tokens: int = 20) -> list[TokenEvidence]:
        """The tokens that speak most for a class: often seen there, and telling."""
        check_is_fitted(self, "statistics_")
        labels = self.classes_.tolist()
        if label not in labels:
            raise DataError(f"no class {label!r}; the model knows {labels[:10]}.")
        return find_strongest_tokens(self._token_counts(), self._build_bag(), labels.index(label), labels, max_tokens)

    def _predict_left_out(self, table: TextTable, group: Array) -> Array:
        if not self._can_leave_one_out():
            return self._leave_one_out_by_subtraction(table, group)
        prior = np.stack([self._log_prior_without_row(c) for c in range(len(self.classes_))])[group]
        return log_normalise(self._score_left_out(table.documents, group) + prior, self._log_prior())

    def _can_leave_one_out(self) -> bool:
        return self._build_vocabulary().keeps_all_tokens and self.alpha_ > 0 and self.alpha != "evidence"

    def _score_left_out(self, documents: DocumentBatch, group: Array) -> Array:
        bag, words = self._build_bag(), self._counts_in_use()
        indptr, ids, x = reading.encode_documents(
            documents, words.index(self.analyzer), self._build_vocabulary().tokens
        )
        return bag.leave_one_out(words, DocumentRows(indptr, ids, np.ones(len(x)) if bag.binary else x, group, words))

    def _leave_one_out_by_subtraction(self, texts: TextTable, group: Array) -> Array:
        """By plain subtraction: where what is left out may change the vocabulary or the smoothing."""
        answers = np.empty((texts.rows, len(self.classes_)))
        for i, document in enumerate(texts.documents):
            one = TextTable([document])
            less = _copy_with_statistics(
                self, self.statistics_ - self._observe(one, self.classes_, group[i : i + 1], None)
            )
            answers[i] = log_normalise(less._score_documents(one.documents) + less._log_prior(), less._log_prior())[0]
        return answers

    def _log_prior_without_row(self, c: int) -> Array:
        one = np.zeros(len(self.classes_))
        one[c] = 1.0
        return _copy_with_statistics(self, ModelStatistics(self.classes_, self.statistics_.n - one, ()))._log_prior()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _copy_with_statistics(model: TextClassifier, seen: ModelStatistics) -> TextClassifier:
    twin = copy.copy(model)
    twin.statistics_ = seen
    return twin


class ClassifierModel:
    """A text classifier as calibration sees it."""

    n_parts = 1

    def __init__(self, classifier: TextClassifier) -> None:
        self._classifier = classifier

    @property
    def classes(self) -> Array:
        return self._classifier.classes_

    @property
    def can_leave_one_out(self) -> bool:
        return self._classifier._can_leave_one_out()

    def log_prior(self) -> Array:
        return self._classifier._log_prior()

    def estimated_log_prior(self) -> Array:
        return self._classifier._estimated_log_prior()

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        return self._classifier._score_documents(cells[0].data) + self.log_prior()

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        return self._make_terms(self._classifier._score_documents(cells[0].data), cells)

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        return self._make_terms(self._classifier._score_left_out(cells[0].data, group), cells)

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        return self._classifier._predict_left_out(TextTable(cells[0].data), group)

    def _make_terms(self, scores: Array, cells: Sequence[Cells]) -> EvidenceTerms:
        documents = cells[0].data
        prior = np.repeat(self.estimated_log_prior()[None], len(documents), axis=0)
        lengths = np.column_stack([np.ones(len(documents)), measure_text_lengths(documents)])
        return EvidenceTerms(np.stack([prior, scores], axis=2), lengths)

    def encode_tokens(self, cells: Sequence[Cells]) -> list[csr_array]:
        return [self._classifier._encode_tokens(cells[0].data)]

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ClassifierModel:
        part = self._classifier._observe(TextTable(cells[0].data), self.classes, group, weight)
        return ClassifierModel(_copy_with_statistics(self._classifier, self._classifier.statistics_ - part))
