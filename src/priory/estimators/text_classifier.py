"""`TextClassifier`: from strings to a verdict at the speed of counting, every word accountable."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from priory.bag_of_words.bag_counts import BagCounts
from priory.bag_of_words.documents import Document, DocumentBatch, check_documents
from priory.bag_of_words.text_model import TextModel, TextRecords, is_valid_alpha
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import Tokenizer, load_stop_words
from priory.bag_of_words.vocabulary import Vocabulary, build_vocabulary, check_words_kept
from priory.calibration.calibrator import Calibrator
from priory.calibration.smoothing_search import choose_smoothing
from priory.calibration.stacking import MemberSpec
from priory.core.sharding import space_evenly
from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.self_calibrating import SelfCalibratingClassifier
from priory.models.cells import Cells, TextCells
from priory.models.class_prior import check_class_prior
from priory.models.document_model import DocumentModel
from priory.models.explanation import Ledger, LedgerLine, Ledgers
from priory.models.model_statistics import ModelStatistics
from priory.models.token_evidence import TokenEvidence, find_strongest_tokens, make_token_lines

MAX_TEXTS_TO_CALIBRATE = 2048  # texts that a tempering is fitted to
MAX_TEXTS_TO_CHOOSE_ALPHA = 500  # texts left out to choose alpha="loo", where leaving one out has a closed form
MAX_TEXTS_TO_SUBTRACT = 100  # the same, where each is left out by subtraction


@dataclass(frozen=True)
class TextTable:
    """Documents, read once."""

    documents: DocumentBatch

    @property
    def rows(self) -> int:
        return len(self.documents)


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

    # -- what was declared ---------------------------------------------------------------------------------------

    def _build_vocabulary(self) -> Vocabulary:
        """Which tokens are used, as declared."""
        tokenizer = Tokenizer(
            lowercase=self.lowercase,
            analyzer=self.analyzer,
            min_token_length=self.min_token_length,
            ngram_range=(self.ngram_range[0], self.ngram_range[1]),
            stop_words=load_stop_words(self.stop_words),
            stem=self.stem,
            extra_tokens=self.extra_tokens,
            cjk=self.cjk,
        )
        return build_vocabulary(
            tokenizer,
            min_df=self.min_df,
            max_df=self.max_df,
            max_features=self.max_features,
            max_tokens=self.max_tokens,
            vocabulary=self.vocabulary,
            unknown=self.unknown,
            buckets=self.buckets,
            salt=getattr(self, "salt_", 0),
        )

    def _build_text_model(self) -> TextModel:
        """The text model as declared; ``alpha="loo"`` is 1 until ``fit`` has chosen."""
        alpha = self.__dict__.get("alpha_", 1.0) if self.alpha == "loo" else self.alpha
        return TextModel(self.model, alpha, self.average, self._build_vocabulary())

    @property
    def alpha_(self) -> float:
        """The smoothing in use: as declared, chosen by the evidence, or chosen by ``fit`` by leaving texts out."""
        if self.alpha == "loo":
            return float(self.__dict__["alpha_"])
        return self._build_text_model().choose_alpha(self._records())

    def _check_parameters(self) -> None:
        if not is_valid_alpha(self.alpha) and self.alpha not in ("evidence", "loo"):
            raise DataError(f"alpha is {self.alpha!r}; use a number from 0, 'evidence' or 'loo'.")
        self._build_text_model()

    # -- learning ------------------------------------------------------------------------------------------------

    def _finish_fit(self, table: TextTable, group: Array, weight: Array | None) -> None:
        self.__dict__.pop("alpha_", None)
        if self.alpha == "loo":
            quick = self._build_vocabulary().leaves_out_in_closed_form
            if weight is not None:
                raise DataError(
                    "alpha='loo' leaves out texts of weight one; omit sample_weight, or give alpha a number."
                )
            rows = space_evenly(table.rows, MAX_TEXTS_TO_CHOOSE_ALPHA if quick else MAX_TEXTS_TO_SUBTRACT)
            sample, own = TextTable([table.documents[i] for i in rows]), group[rows]

            def predict_left_out(alpha: float) -> Array:
                self.__dict__["alpha_"] = alpha
                return self._predict_left_out(sample, own)

            self.__dict__["alpha_"] = choose_smoothing(predict_left_out, own)
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
        empty = ModelStatistics(classes, np.zeros(len(classes)), ())
        return DocumentModel(self._build_text_model(), empty).observe(table.documents, classes, group, weight)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        ours, theirs = self._build_text_model(), other._build_text_model()
        if ours.vocabulary != theirs.vocabulary or ours.binary != theirs.binary:
            raise DataError("the models read texts differently; only models with the same tokens can be merged.")

    # -- what was learned ----------------------------------------------------------------------------------------

    def _records(self) -> TextRecords:
        """What was counted."""
        return self._fitted_statistics().parts

    def _counts_in_use(self) -> BagCounts:
        """The counts of the tokens in use."""
        return self._build_text_model().select_counts(self._records())

    def _token_counts(self) -> TokenCounts:
        """The counts of the tokens in use, in the order in which they are shown; a hashed model has no tokens."""
        model = self._build_text_model()
        return check_words_kept(model.vocabulary.sort_counts(model.select_counts(self._records())))

    @property
    def vocabulary_(self) -> list[str]:
        """The tokens in use."""
        return self._token_counts().tokens()

    @property
    def counts_(self) -> Array:
        """For each token (or bucket) and class the documents that show it, or its occurrences, as the model asks."""
        model = self._build_text_model()
        return model.vocabulary.sort_counts(model.select_counts(self._records())).counts

    @property
    def n_tokens_(self) -> int:
        """The number of different tokens (or buckets) in use."""
        return len(self._counts_in_use())

    @property
    def inclusion_probability_(self) -> dict[str, float]:
        """For each token the probability that it depends on the class at all."""
        self._token_counts()
        return self._build_text_model().inclusion_probability(self._records())

    # -- correcting ----------------------------------------------------------------------------------------------

    def _model(self, statistics: ModelStatistics | None = None) -> DocumentModel:
        learned = self._fitted_statistics() if statistics is None else statistics
        return DocumentModel(self._build_text_model(), learned, check_class_prior(self.class_prior, learned.classes))

    def _read_cells(self, table: TextTable) -> list[Cells]:
        return [TextCells(table.documents)]

    def _calibrator(self) -> Calibrator:
        members = [MemberSpec("naive", "columns" if self.refine else "")]
        return Calibrator(sys.maxsize if self.refine else MAX_TEXTS_TO_CALIBRATE, lambda *_: members)

    # -- answering -----------------------------------------------------------------------------------------------

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
        model = self._build_text_model()
        table, constant = (text_weight * weights for weights in model.token_weights(self._records()))
        words = check_words_kept(model.select_counts(self._records()))
        row_of_token = words.derive("places", lambda u: {token: j for j, token in enumerate(u.tokens())})
        lines = make_token_lines(document, model.vocabulary.tokenizer, row_of_token, table, model.binary)
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
        bag = self._build_text_model().build_bag(self._records())
        return find_strongest_tokens(self._token_counts(), bag, labels.index(label), labels, max_tokens)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
