"""`TextClassifier`: naive Bayes straight from strings, with every word accounted for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from priory.bag_of_words.bag_counts import BagCounts
from priory.bag_of_words.documents import Document, DocumentBatch, check_documents
from priory.bag_of_words.languages import load_stop_words
from priory.bag_of_words.sparse_counts import SparseCounts
from priory.bag_of_words.text_model import TextModel, TextRecords, is_valid_alpha
from priory.bag_of_words.token_bags import AnyDocuments, TokenBags
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import Analyzer, Tokenizer
from priory.bag_of_words.vocabulary import (
    FixedVocabulary,
    Vocabulary,
    build_vocabulary,
    check_words_kept,
    find_unmatched_entries,
)
from priory.bag_of_words.word_pairs import read_kept_bags
from priory.calibration.calibrated_model import EvidenceSplit
from priory.calibration.smoothing_search import choose_smoothing
from priory.core.atomic_state import read_state
from priory.core.display_table import DisplayTable
from priory.core.model_matching import describe_difference
from priory.core.optional_attribute import optional_attribute
from priory.core.registration import register_estimator
from priory.core.sharding import space_evenly
from priory.core.typing import Array, Label
from priory.errors import DataError, PrioryWarning, StaleModelError
from priory.estimators.labels import sort_labels
from priory.estimators.scikit_learn import check_is_fitted
from priory.estimators.self_calibrating import SelfCalibratingClassifier
from priory.models.cells import Cells, TextCells
from priory.models.class_prior import ClassPrior, ClassWeight, check_class_weight, resolve_class_prior
from priory.models.document_model import DocumentModel, observe_documents
from priory.models.explanation import Ledger, LedgerLine, Ledgers, check_unit
from priory.models.model_statistics import ModelStatistics
from priory.models.open_texts import OpenTexts
from priory.models.row_sample import TEXT_COLUMN_NAMES, RowSample, choose_text_memory
from priory.models.table_reading import take_text_column
from priory.models.token_evidence import TokenEvidence, find_strongest_tokens, make_token_lines, move_absence

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from priory.calibration.calibrator import Calibrator
    from priory.models.probability_tables import ParameterCount, ProbabilityTables

TOKEN_PARAMETERS = (  # what decides which tokens are counted
    *("ngram_range", "analyzer", "lowercase", "min_token_length", "stem", "extra_tokens", "cjk", "stop_words"),
    *("vocabulary", "unknown", "min_df", "max_df", "max_features", "buckets", "max_tokens"),
)
MAX_TEXTS_TO_CALIBRATE = 2048  # texts that a tempering is fitted to
MAX_TEXTS_TO_CHOOSE_ALPHA = 500  # texts left out to choose alpha="loo", where leaving one out has a closed form
MAX_TEXTS_TO_SUBTRACT = 100  # texts left out to choose alpha="loo", where each is left out by subtraction


@dataclass(frozen=True)
class TextTable:
    """Documents, read once."""

    documents: DocumentBatch

    @property
    def rows(self) -> int:
        return len(self.documents)

    def take_rows(self, rows: Array) -> TextTable:
        """Some of the documents."""
        return TextTable([self.documents[row] for row in rows.tolist()])


@register_estimator(required=("statistics_", "n_features_in_", "salt_"))
class TextClassifier(SelfCalibratingClassifier[TextTable]):
    """Naive Bayes for texts: ``str``, UTF-8 ``bytes`` or paths of files, in any iterable.

    Parameters
    ----------
    model : "binary", "multinomial", "bernoulli", "poisson" or "complement"
        A token counts once for each document, or as often as it occurs; as present or absent; as a rate; or by how
        badly the document fits all other classes.
    average : bool
        Average over all 2^V sets of tokens instead of using them all: a token counts as far as it matters. Not for
        "complement".
    alpha : float, "evidence" or "loo"
        Virtual occurrences of every token. "evidence" chooses the number under which the tokens seen are most
        probable. "loo" lets ``fit`` choose the number under which texts are most probable of their own class when they
        are left out (at most 500 of them); from then on it is as good as declared, until the next ``fit``.
    ngram_range : (int, int)
        The shortest and the longest n-grams of words (or of characters).
    analyzer : "word", "char" or "char_wb"
        Tokens are words, n-grams of characters, or n-grams of characters inside of words.
    lowercase : bool
        Whether texts are read in lower case.
    min_token_length : int
        The number of characters of the shortest word.
    stem : str, optional
        A language of the Snowball stemmer, such as "english". Needs PyStemmer.
    extra_tokens : str
        Characters that are tokens of their own, such as "!?".
    cjk : bool
        Whether runs of scripts without spaces are read as pairs of characters.
    stop_words : a language such as "en", or the words themselves, optional
        Words to leave out.
    vocabulary : iterable of str, optional
        Use only these tokens, read as texts are (in lower case, stemmed). Others are ignored, or share one slot if
        ``unknown`` is true.
    unknown : bool
        Whether tokens that are not in ``vocabulary`` share a slot.
    min_df, max_df : int or float
        Use only tokens in at least / at most this number of documents, or (a float) this share of them.
    max_features : int, optional
        Use only the tokens that occur most often.
    buckets : int, optional
        Hash the tokens into this number of buckets instead of keeping them: fixed memory, no words in the model.
    salt : int, optional
        The key of the hash, by default 0. Models that are to be merged share it; declare a secret number if texts may
        be crafted to collide.
    max_tokens : int, optional
        Keep at most this number of distinct tokens while learning; rare ones are dropped, with a known error bound.
    class_prior : "estimated", "uniform", a dict of class to probability, or one probability for each class in order
    class_weight : "balanced" or a dict of class to weight, optional
        How much the rows of a class count: the weights multiply the estimated class prior, and "balanced" makes all
        classes equally probable. Classes that are not named have the weight 1.
        The class probabilities before a text is read.
    calibrate : "loo" or False
        Correct the probabilities by the model's own answers to texts left out, and answer with no odds beyond n + 1 : 1
        after n texts; or leave them as naive Bayes has them.
    refine : "auto", True or False
        Let a logistic regression over the tokens, centred on naive Bayes, correct it as far as that helps texts left
        out. "auto" is careful: a shift of all texts alike, which is what carries over least to texts from elsewhere, is
        held back. True goes as far as texts like those learned gain from it, and keeps more of them (``memory``).
    pairs : "auto", True or False
        Whether the refinement weighs pairs of neighbouring words too: if that helps much and there are not too many
        ("auto"), always, or never, which is the default: they carry over least to texts from elsewhere. Only where
        tokens are single words.
    memory : int, optional
        The number of texts that the model keeps a fair sample of, as bags of tokens, to derive corrections from
        whenever it has learned, forgotten or merged. By default 20,000, 50,000 if ``refine`` is true, and 5,000 if it
        is false. With 0 it keeps none.
    refresh_after : float
        Derive the corrections anew when ``partial_fit`` has changed this share of the kept texts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        The weight of the documents learned of each class.
    class_prior_ : ndarray of shape (n_classes,)
        The probability of each class before a text is read.
    tables_ : ProbabilityTables
        P(class), and P(word | class) of the words that distinguish the classes most.
    vocabulary_ : list of str
        The tokens in use.
    counts_ : ndarray or sparse array of shape (n_tokens, n_classes)
        For each token (or bucket) the documents of each class that show it, or its occurrences; with more than 64
        classes a sparse array.
    alpha_ : float
        The smoothing in use.
    word_probabilities_ : ndarray of shape (n_classes, n_tokens)
        P(word | class) of every token in use.
    n_parameters_ : ParameterCount
        The number of parameters, and how many there were without the naive assumption.
    inclusion_probability_ : dict of str to float
        For each token the probability that it depends on the class at all.
    salt_ : int
        The key of the hash.
    statistics_ : ModelStatistics
        Everything that was learned; it adds, subtracts and scales.
    corrections_ : Corrections
        The corrections in use, if there are any.
    corrections_version_ : str
        A name of the corrections in use; equal names are equal corrections.
    sample_changes_ : int
        The number of kept texts that came or went since the corrections were derived.
    stale_ : tuple of str
        Corrections that were lost because no texts are kept to derive them from.
    clock_ : float
        The product of all decays so far.
    n_features_in_ : int
        Always 1: the text.

    References
    ----------
    McCallum, A. and Nigam, K. (1998). A comparison of event models for naive Bayes text classification.
    Rennie, J. D. M. et al. (2003). Tackling the poor assumptions of naive Bayes text classifiers.
    Wang, S. and Manning, C. D. (2012). Baselines and bigrams: simple, good sentiment and topic classification.

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
        alpha: float | Literal["evidence", "loo"] = 1.0,
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Analyzer = "word",
        lowercase: bool = True,
        min_token_length: int = 2,
        stem: str | None = None,
        extra_tokens: str = "",
        cjk: bool = False,
        stop_words: str | Iterable[str] | None = None,
        vocabulary: Iterable[str] | None = None,
        unknown: bool = False,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        buckets: int | None = None,
        salt: int | None = None,
        max_tokens: int | None = None,
        class_prior: ClassPrior = "estimated",
        class_weight: ClassWeight | None = None,
        calibrate: Literal["loo", False] = "loo",
        refine: bool | Literal["auto"] = "auto",
        pairs: bool | Literal["auto"] = False,
        memory: int | None = None,
        refresh_after: float = 0.1,
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
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.refine = refine
        self.pairs = pairs
        self.memory = memory
        self.refresh_after = refresh_after

    @classmethod
    def textbook(cls, model: str = "bernoulli", alpha: float = 1.0) -> Self:
        """Naive Bayes of texts as the book has it: every word counts, however short, and nothing is corrected.

        ``alpha`` is 1 for Laplace's estimate and 0 for relative frequencies.

        >>> reviews = ["I enjoyed the movie.", "The movie was bad."]
        >>> TextClassifier.textbook().fit(reviews, ["good", "bad"]).predict(["I enjoyed it."]).tolist()
        ['good']
        """
        return cls(model, alpha=alpha, min_token_length=1, calibrate=False)

    def _is_consistent(self) -> bool:
        """Whether the records can be those of the text model that was declared."""
        return (
            self.n_features_in_ == 1
            and self._build_text_model().find_fault(self.statistics_.parts) is None
            and (self.statistics_.sample is None or self._can_keep(self.statistics_.sample.blocks))
            and self._has_fitting_corrections()
        )

    def _can_keep(self, blocks: Sequence[Cells]) -> bool:
        """Whether a sample of texts can be made of these cells."""
        bags = blocks[0].data if len(blocks) == 1 else None
        return isinstance(bags, TokenBags) and self._build_vocabulary().can_read(bags)

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

    def _check_parameters(self) -> None:
        if not is_valid_alpha(self.alpha) and self.alpha not in ("evidence", "loo"):
            raise DataError(f"alpha is {self.alpha!r}; use a number from 0 to 1e+100, 'evidence' or 'loo'.")
        for name, value in (("refine", self.refine), ("pairs", self.pairs)):
            if value not in ("auto", True, False):
                raise DataError(f"{name} is {value!r}; use 'auto', True or False.")
        check_class_weight(self.class_weight, self.class_prior)
        self._build_text_model()

    # -- learning ------------------------------------------------------------------------------------------------

    def _finish_fit(self, table: TextTable, group: Array, weight: Array | None) -> None:
        self.__dict__.pop("alpha_", None)
        if self.alpha == "loo":
            self._choose_alpha(table, group, weight)
        super()._finish_fit(table, group, weight)

    def _choose_alpha(self, table: TextTable, group: Array, weight: Array | None) -> None:
        """By leaving texts out: what was counted is the same under any alpha."""
        if weight is not None:
            raise DataError("alpha='loo' leaves out texts of weight one; omit sample_weight, or give alpha a number.")
        quick = self._build_vocabulary().leaves_out_in_closed_form
        rows = space_evenly(table.rows, MAX_TEXTS_TO_CHOOSE_ALPHA if quick else MAX_TEXTS_TO_SUBTRACT)
        sample, own = table.take_rows(rows), group[rows]

        def predict_left_out(alpha: float) -> Array:
            self.__dict__["alpha_"] = alpha
            return self._predict_left_out(sample, own)

        self.__dict__["alpha_"] = choose_smoothing(predict_left_out, own)

    def _read(self, X: object, reset: bool) -> TextTable:
        self._check_parameters()
        texts = TextTable(check_documents(take_text_column(X)))
        if reset:
            if not texts.rows:
                raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: X has no documents.")
            self._warn_of_unmatched_entries()
            self.n_features_in_ = 1
            self.salt_ = 0 if self.salt is None else self.salt
        return texts

    def _warn_of_unmatched_entries(self) -> None:
        """Warn of entries of a fixed vocabulary that no text can match."""
        if self.vocabulary is None:
            return
        unmatched = find_unmatched_entries(self._build_vocabulary().tokenizer, tuple(self.vocabulary))
        if unmatched:
            warnings.warn(
                f"{unmatched[0]!r} in the vocabulary can never match: no text has such a token; "
                "see min_token_length, ngram_range, analyzer and stop_words.",
                PrioryWarning,
                stacklevel=4,
            )

    def _resolve_classes(self, classes: ArrayLike | None, is_first_call: bool) -> Array | None:
        if classes is not None:
            given = sort_labels(classes)
            return given if is_first_call else np.union1d(self.classes_, given)
        return None if is_first_call else self.classes_

    def _observe(self, table: TextTable, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        if not self._keeps_all_texts(table, weight):
            return observe_documents(self._build_text_model(), table.documents, classes, group, weight)
        bags = self._read_bags(table.documents)  # they are read once, to be counted and to be kept
        learned = observe_documents(self._build_text_model(), bags, classes, group, weight)
        sample, rows = RowSample.choose_rows(
            self._column_names(), self._read_cells(table), classes, group, weight, self._memory()
        )
        return replace(learned, sample=sample.with_cells([TextCells(bags[rows])]))

    def _keeps_all_texts(self, table: TextTable, weight: Array | None) -> bool:
        """Whether the sample will hold all texts, and counting it is counting them, to the last bit."""
        is_whole = weight is None or bool((weight == np.rint(weight)).all())
        return bool(self.calibrate) and table.rows <= self._memory() and self.max_tokens is None and is_whole

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        ours, theirs = self._build_text_model(), other._build_text_model()
        if ours.vocabulary == theirs.vocabulary and ours.binary == theirs.binary:
            return
        own, others = ({**m.get_params(), "salt": m.salt_} for m in (self, other))
        compared = [*TOKEN_PARAMETERS, *(["model"] if ours.binary != theirs.binary else [])]
        differing = next((name for name in compared if own[name] != others[name]), "salt")
        difference = describe_difference(differing, own[differing], others[differing])
        raise DataError(f"the models read texts differently: {difference}; merge models of the same tokens.")

    def _check_same_columns(self, other: Self) -> None:
        """A model of texts has one column, whatever its name."""

    # -- what was learned ----------------------------------------------------------------------------------------

    def _records(self) -> TextRecords:
        """What was counted."""
        return self._fitted_statistics().parts

    def _counts_in_use(self) -> BagCounts:
        """The counts of the tokens (or buckets) in use, in the order in which they are shown."""
        model = self._build_text_model()
        return model.select_counts(self._records())

    def _token_counts(self) -> TokenCounts:
        """The counts of the tokens in use; a hashed model has no tokens."""
        return check_words_kept(self._counts_in_use())

    @property
    @optional_attribute
    def alpha_(self) -> float:
        """The smoothing in use: as declared, chosen by the evidence, or chosen by ``fit`` by leaving texts out."""
        if self.alpha == "loo":
            if "alpha_" not in vars(self):
                raise StaleModelError("alpha='loo' has not been chosen yet; call fit.")
            return float(vars(self)["alpha_"])
        return self._build_text_model().choose_alpha(self._records())

    @property
    @optional_attribute
    def vocabulary_(self) -> list[str]:
        """The tokens in use."""
        return self._token_counts().tokens()

    @property
    @optional_attribute
    def counts_(self) -> Array | scipy.sparse.csr_array:
        """For each token (or bucket) and class the documents that show it, or its occurrences, as the model asks."""
        counts = self._counts_in_use().counts
        return counts.csr.copy() if isinstance(counts, SparseCounts) else counts

    @property
    @optional_attribute
    def tables_(self) -> ProbabilityTables:
        """P(class), and P(word | class) of the words that distinguish the classes most; see ``tabulate_words``."""
        from priory.models.probability_tables import tabulate_texts

        return tabulate_texts(
            self._build_text_model(), self._records(), self.classes_, self.class_count_, self.class_prior_
        )

    @property
    @optional_attribute
    def word_probabilities_(self) -> Array:
        """P(word | class) of every class (row) and every token in use (column), in the order of ``vocabulary_``."""
        rows = np.arange(len(self._token_counts()))
        return self._build_text_model().word_probabilities(self._records(), rows).T

    def tabulate_words(self, words: Iterable[str] | None = None) -> DisplayTable:
        """P(word | class) of these words, or of all words; with the counts and the formula of each estimate.

        >>> model = TextClassifier.textbook("multinomial").fit(["win cash", "see you"], ["spam", "ham"])
        >>> print(model.tabulate_words(["cash", "you"]))
        P(word | class), multinomial
        text  ham                spam
        cash  (0+1)/(2+4) = 0.1667  (1+1)/(2+4) = 0.3333
        you   (1+1)/(2+4) = 0.3333  (0+1)/(2+4) = 0.1667
        """
        from priory.models.probability_tables import tabulate_words

        check_is_fitted(self)
        chosen = self.vocabulary_ if words is None else list(words)
        return tabulate_words(self._build_text_model(), self._records(), self.classes_, chosen)[0]

    @property
    @optional_attribute
    def n_parameters_(self) -> ParameterCount:
        """The number of parameters, and how many there were without the naive assumption."""
        from priory.models.probability_tables import count_parameters

        counts = self._counts_in_use()  # a parameter for each token; without the assumption, one for each set of tokens
        return count_parameters(len(counts.n), len(counts), float(len(counts)))

    @property
    @optional_attribute
    def n_tokens_(self) -> int:
        """The number of different tokens (or buckets) in use."""
        return len(self._counts_in_use())

    @property
    @optional_attribute
    def inclusion_probability_(self) -> dict[str, float]:
        """For each token the probability that it depends on the class at all."""
        self._token_counts()
        return self._build_text_model().inclusion_probability(self._records())

    # -- texts as vectors ----------------------------------------------------------------------------------------

    def transform(self, X: object) -> scipy.sparse.csr_array:
        """The texts as sparse rows over the tokens in use: whether each occurs, or how often, as the model counts.

        A fixed vocabulary needs no ``fit``.

        >>> pets = ["I like cats.", "Dogs are friendly.", "Cats and dogs are pets."]
        >>> model = TextClassifier(vocabulary=["cats", "dogs", "pets"])
        >>> model.transform(pets).toarray().astype(int).tolist()
        [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
        """
        if "statistics_" not in vars(self):
            self._warn_of_unmatched_entries()
        model, counts = self._build_text_model(), self._sort_counts_in_use()
        documents = self._read(X, reset=False).documents
        indptr, ids, times = model.vocabulary.encode(documents, counts)
        values = np.ones(len(ids)) if model.binary else times.astype(float)
        return scipy.sparse.csr_array((values, ids, indptr), shape=(len(documents), len(counts)))

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """The tokens that the columns of ``transform`` stand for."""
        return np.array(self._build_vocabulary().name_tokens(self._sort_counts_in_use()), dtype=object)

    def _sort_counts_in_use(self) -> BagCounts:
        """The counts in use; of a fixed vocabulary, even before anything was learned."""
        vocabulary = self._build_vocabulary()
        if "statistics_" not in vars(self) and isinstance(vocabulary, FixedVocabulary):
            return vocabulary.select_counts(vocabulary.count([], np.zeros(0, dtype=int), 1, None, True))
        check_is_fitted(self)
        return self._counts_in_use()

    # -- calibrating ---------------------------------------------------------------------------------------------

    def _model(self, statistics: ModelStatistics | None = None) -> DocumentModel:
        statistics = self.statistics_ if statistics is None else statistics
        prior = resolve_class_prior(self.class_prior, self.class_weight, statistics.classes)
        return DocumentModel(self._build_text_model(), statistics, prior)

    def _read_cells(self, table: TextTable) -> list[Cells]:
        return [TextCells(table.documents)]

    def _column_names(self) -> list[tuple[str, ...]]:
        return [TEXT_COLUMN_NAMES]

    def _wrap_row(self, x: Document, learns: bool) -> list[Document]:
        return [x]

    def _open_model(self) -> OpenTexts | None:
        model = self._model()
        return OpenTexts(model) if OpenTexts.can_open(model) else None

    def _list_tokenizers(self) -> list[Tokenizer]:
        return [self._build_vocabulary().tokenizer]

    def _keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        return [TextCells(self._read_bags(column.data)) for column in cells if isinstance(column, TextCells)]

    def _read_bags(self, documents: AnyDocuments) -> TokenBags:
        """Documents as the sample keeps them: with their pairs of words, if these may be weighed."""
        return read_kept_bags(self._build_vocabulary(), documents, bool(self.refine and self.pairs))

    def _memory(self) -> int:
        return choose_text_memory(self.memory, self.refine)

    def _calibrator(self) -> Calibrator:
        from priory.calibration.calibrator import Calibrator  # which answers do without
        from priory.calibration.fitting import FitPlan
        from priory.calibration.text_refinement import NO_HOLD, SHIFT_HOLD

        plan = FitPlan(refine=bool(self.refine), together=False)
        max_texts = sys.maxsize if self.refine else MAX_TEXTS_TO_CALIBRATE
        return Calibrator(max_texts, plan, self.pairs, NO_HOLD if self.refine is True else SHIFT_HOLD)

    # -- explaining ----------------------------------------------------------------------------------------------

    @read_state
    def explain(self, X: object, unit: str = "decibans") -> Ledgers:
        """For each text the ledger of its tokens: how much each counts for every class, how often, and where.

        ``unit`` is what it is shown in: "decibans", "nats", "bits", or "probability" for P(word | class) and factors.
        """
        check_is_fitted(self)
        check_unit(unit)
        self._token_counts()
        texts = self._read([X] if isinstance(X, (str, bytes)) else X, reset=False)
        split = self._calibrated().split_evidence(self._read_cells(texts))
        prior = LedgerLine(split.prior_name, "", tuple(split.prior.tolist()))
        named = self._name_corrections()
        return Ledgers(
            [
                replace(self._explain_document(document, split, row, prior), unit=unit, corrections=named)
                for row, document in enumerate(texts.documents)
            ]
        )

    def _explain_document(self, document: Document, split: EvidenceSplit, row: int, prior: LedgerLine) -> Ledger:
        model, records = self._build_text_model(), self._records()
        words = check_words_kept(model.select_counts(records))
        table, constant = model.token_weights(records)
        row_of_token = words.derive("places", lambda w: {token: row for row, token in enumerate(w.tokens())})
        lines = make_token_lines(document, model.vocabulary.tokenizer, row_of_token, table, model.binary)
        if model.model == "bernoulli":
            rows = np.array([row_of_token[line.name] for line in lines], dtype=np.int64)
            lines, constant = move_absence(lines, constant, np.asarray(words.counts[rows].any(axis=1)))
        if constant.any():
            lines.append(LedgerLine("(absent tokens)", "", tuple(constant.tolist())))
        evidence = np.array([line.log_likelihood for line in lines]).reshape(len(lines), len(constant)).T  # by class
        evidence, names = split.finish_lines(split.weights[row, 1] * evidence[None], slice(row, row + 1))
        lines += [LedgerLine(name, "", ()) for name in names]
        weighed = zip(lines, evidence[0].T.tolist(), strict=True)
        lines = [replace(line, log_likelihood=tuple(by_class)) for line, by_class in weighed]
        text = document if isinstance(document, str) else document.decode()
        return Ledger(tuple(self.classes_.tolist()), prior, tuple(lines), text)

    def evidence(self, label: Label, max_tokens: int = 20) -> list[TokenEvidence]:
        """The tokens that count most for a class: common there, and rare in other classes."""
        check_is_fitted(self)
        labels = self.classes_.tolist()
        if label not in labels:
            raise DataError(f"no class {label!r}; the model knows {labels[:10]}.")
        bag = self._build_text_model().build_bag(self._records())
        return find_strongest_tokens(self._token_counts(), bag, labels.index(label), labels, max_tokens)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
