"""`TextClassifier`: naive Bayes of texts, with the evidence of every word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.calibration.answer_lines import TextAnswers, finish_text_lines, split_text_answers
from priory.calibration.corrections import CalibratedModel
from priory.core.display_table import DisplayTable
from priory.core.estimator_methods import optional_attribute
from priory.core.statistics import register_estimator
from priory.core.typing import Label
from priory.errors import DataError, NotAvailableError
from priory.estimators.learned_classifier import CorrectedClassifier, find_classifier_fault
from priory.learning.text_rows import TextRows, count_unlabelled, find_choice, forget_unlabelled, learn_unlabelled
from priory.model import ledger
from priory.model.document_model import DocumentModel
from priory.model.model_statistics import ClassPrior, ModelStatistics
from priory.model.two_sided_evidence import weigh_both_sides
from priory.text.normal_forms import Document, Reader
from priory.text.sparse_counts import SparseCounts
from priory.text.token_counts import BagCounts, TokenCounts
from priory.text.tokenizer import Analyzer, find_token_spans
from priory.text.vocabulary import FixedVocabulary, check_words_kept

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from priory.model.probability_tables import ParameterCount, ProbabilityTables


@register_estimator(required=("statistics_", "n_features_in_", "salt_"), find_fault=find_classifier_fault)
@dataclass(eq=False, repr=False)
class TextClassifier(CorrectedClassifier):
    """Naive Bayes for texts: ``str``, UTF-8 ``bytes`` or paths of files, in any iterable.

    Parameters
    ----------
    model : "binary", "multinomial" or "bernoulli"
        A token counts once for each document, or as often as it occurs, or as present or absent.
    alpha : float or "evidence"
        Virtual occurrences of every token. "evidence" chooses the number under which the tokens seen are most
        probable.
    ngram_range : (int, int)
        The shortest and the longest n-grams of words (or of characters).
    analyzer : "auto", "word", "char" or "char_wb"
        Tokens are words, n-grams of characters, or n-grams of characters inside of words. "auto" counts words, and its
        refinement weighs the n-grams of characters in them too where that helps texts that are left out.
    lowercase : bool
        Whether texts are read in lower case.
    min_token_length : int
        The number of characters of the shortest word.
    stem : str, optional
        A language of the Snowball stemmer, such as "english". Needs PyStemmer.
    extra_tokens : str
        Characters that are tokens of their own, such as "!?".
    reader : "text", "mail" or "mail_body"
        Documents are texts; or messages, whose words count with a prefix that says where they stood: headers
        (``from:``), links (``url:``), tags (``html:``), attachments (``part:``, ``file:``), text that is not shown
        (``hidden:``), or that it has capitals (``caps:``). "mail_body" leaves out all headers but the subject.
    stop_words : a language such as "en", or the words themselves, optional
        Words to leave out.
    vocabulary : iterable of str, optional
        Use only these tokens, read as texts are (in lower case, stemmed). Others are ignored, or share one slot if
        ``unknown`` is true.
    unknown : bool
        Whether tokens that are not in ``vocabulary`` share a slot.
    buckets : int, optional
        Hash the tokens into this number of buckets instead of keeping them: fixed memory, no words in the model.
    salt : int, optional
        The key of the hash, by default 0. Models that are to be merged share it; declare a secret number if texts may
        be crafted to collide.
    max_tokens : int, optional
        Keep at most this number of distinct tokens while learning; rare ones are dropped, with a known error bound.
    class_prior : "estimated", "uniform", a dict of class to probability, or one probability for each class in order
        The class probabilities before a text is read.
    calibrate : "loo" or False
        Correct the probabilities by the model's own answers to texts left out, and answer with no odds beyond n + 1 : 1
        after n texts; or leave them as naive Bayes has them.
    refine : "auto", True or False
        Let a logistic regression over the tokens, centred on naive Bayes, correct it as far as that helps texts left
        out. "auto" is careful: a shift of all texts alike, which is what carries over least to texts from elsewhere, is
        held back, and of mail half of it is used. True goes as far as texts like those learned gain from it, and keeps
        more of them (``memory``).
    pairs : "auto", True or False
        Whether the refinement weighs pairs of neighbours too, which are words, single letters, punctuation and emoji:
        if that clearly helps texts that are left out and there are not too many ("auto"), always, or never. "auto"
        leaves them out of mail, where they carry over least to other mailboxes. Only where tokens are single words.
    memory : int, optional
        The number of texts that the model keeps a fair sample of, as bags of tokens, to derive corrections from
        whenever it has learned, forgotten or merged. By default 20,000, 50,000 if ``refine`` is true, and 5,000 if it
        is false. With 0 it keeps none.
    refresh_after : float
        Derive the corrections anew when ``partial_fit`` has changed this share of the kept texts.
    unlabelled : bool
        Whether texts may have no label: ``None`` in ``y``. They, and the token shares of all texts, are used if that
        makes labelled texts that are left out clearly more probable; ``unlabelled_`` tells. For few labels: up to
        2,000 labelled texts. The model keeps a sample of them too, and answers single texts more slowly.

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
    salt_ : int
        The key of the hash.
    statistics_ : ModelStatistics
        Everything that was learned; it adds, subtracts and scales.
    learned_ : Learned
        The statistics with the parameters that they are answered with.
    corrections_ : Corrections
        The corrections in use, if there are any.
    corrections_version_ : str
        A name of the corrections in use; equal names are equal corrections.
    sample_changes_ : int
        The number of kept texts that came or went since the corrections were derived.
    stale_ : tuple of str
        Corrections that were lost because no texts are kept to derive them from.
    unlabelled_ : str
        What was decided about texts without label, and why.
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

    _rows_class = TextRows

    model: str = "binary"
    _: KW_ONLY
    alpha: float | Literal["evidence"] = 1.0
    ngram_range: tuple[int, int] = (1, 1)
    analyzer: Analyzer | Literal["auto"] = "auto"
    lowercase: bool = True
    min_token_length: int = 2
    stem: str | None = None
    extra_tokens: str = ""
    reader: Reader = "text"
    stop_words: str | Iterable[str] | None = None
    vocabulary: Iterable[str] | None = None
    unknown: bool = False
    buckets: int | None = None
    salt: int | None = None
    max_tokens: int | None = None
    class_prior: ClassPrior = "estimated"
    calibrate: Literal["loo", False] = "loo"
    refine: bool | Literal["auto"] = "auto"
    pairs: bool | Literal["auto"] = "auto"
    memory: int | None = None
    refresh_after: float = 0.1
    unlabelled: bool = False

    unlabelled_statistics_: ModelStatistics = field(init=False)  # in model files: of the texts without label

    @classmethod
    def textbook(cls, model: str = "bernoulli", alpha: float = 1.0) -> Self:
        """Make textbook naive Bayes of texts: every word counts, even single letters, and no corrections.

        ``alpha`` is 1 for Laplace's estimate and 0 for relative frequencies.

        >>> reviews = ["I enjoyed the movie.", "The movie was bad."]
        >>> TextClassifier.textbook().fit(reviews, ["good", "bad"]).predict(["I enjoyed it."]).tolist()
        ['good']
        """
        return cls(model, alpha=alpha, min_token_length=1, calibrate=False)

    # -- texts without label -------------------------------------------------------------------------------------

    def fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to all texts, discarding earlier ones; with ``unlabelled`` a label may be None."""
        if not self.unlabelled:
            return super().fit(X, y, sample_weight)
        part, labelled = self._split_unlabelled(X, y, sample_weight)
        super().fit(*labelled)
        return self._change_unlabelled(learn_unlabelled, part)

    def partial_fit(
        self, X: object, y: ArrayLike | None, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more texts; with ``unlabelled`` a label may be None, or ``y`` for all of them."""
        if not self.unlabelled:
            return super().partial_fit(X, y, classes, sample_weight)
        part, (texts, labels, weight) = self._split_unlabelled(X, y, sample_weight)
        if len(texts):
            super().partial_fit(texts, labels, classes, weight)
        return self._change_unlabelled(learn_unlabelled, part)

    def forget(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None, learned_at: float | None = None
    ) -> Self:
        """Forget learned texts, as if the model had never seen them; the label of a text without one is None."""
        if not self.unlabelled:
            return super().forget(X, y, sample_weight, learned_at)
        part, (texts, labels, weight) = self._split_unlabelled(X, y, sample_weight)
        if part is not None:
            forget_unlabelled(self._learned(), part)  # raises before anything is changed
        if len(texts):
            super().forget(texts, labels, weight, learned_at)
        return self._change_unlabelled(forget_unlabelled, part)

    def _split_unlabelled(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[ModelStatistics | None, tuple[list[Document], list[Label], Any]]:
        """The statistics of texts without label, and the other texts with their labels and weights."""
        rows = self._declare()[1]
        texts = list(rows.read(X, "answer")[1].documents)
        labels = [None] * len(texts) if y is None else np.asarray(y, dtype=object).tolist()
        if len(labels) != len(texts):
            raise DataError(f"X has {len(texts)} texts and y {len(labels)} labels; give one for each, or None.")
        others = [row for row, label in enumerate(labels) if label is None]
        known = [(row, label) for row, label in enumerate(labels) if label is not None]
        if others and sample_weight is not None:
            raise DataError("sample_weight is for labelled texts; learn texts without label by themselves.")
        if others and rows.memory and not rows.is_calibrated:
            raise DataError("texts without label need calibrate='loo': they are judged by labelled texts left out.")
        part = count_unlabelled(rows, [texts[row] for row in others]) if others else None
        return part, ([texts[row] for row, _ in known], [label for _, label in known], sample_weight)

    def _change_unlabelled(self, step: Any, part: ModelStatistics | None) -> Self:
        if part is not None:
            self._change(lambda before: step(before, part))
        return self

    @optional_attribute
    def unlabelled_(self) -> str:
        """What was decided about texts without label, and why."""
        choice = find_choice(self._learned())
        if choice is None:
            raise NotAvailableError("the model takes no texts without label; declare unlabelled=True.")
        return choice.note

    # -- what was learned ----------------------------------------------------------------------------------------

    def _model(self) -> DocumentModel:
        """The text model with its counts."""
        model: DocumentModel = self._learned().model()
        return model

    def _counts_in_use(self) -> BagCounts:
        """The counts of the tokens (or buckets) in use, in the order of ``vocabulary_``."""
        model = self._model()
        return model.text.select_counts(model.record)

    def _token_counts(self) -> TokenCounts:
        """The counts of the tokens in use; a hashed model has no tokens."""
        return check_words_kept(self._counts_in_use())

    @property
    def salt_(self) -> int:
        """The salt of the hash."""
        return int(self._find_attribute("salt_"))

    @optional_attribute
    def alpha_(self) -> float:
        """The smoothing in use: as declared, or chosen by the evidence."""
        model = self._model()
        return model.text.choose_alpha(model.record)

    @optional_attribute
    def vocabulary_(self) -> list[str]:
        """The tokens in use."""
        return self._token_counts().tokens()

    @optional_attribute
    def counts_(self) -> Array | scipy.sparse.csr_array:
        """(tokens, classes): documents with each token (or bucket), or occurrences, depending on the model."""
        counts = self._counts_in_use().counts
        return counts.csr.copy() if isinstance(counts, SparseCounts) else counts

    @optional_attribute
    def tables_(self) -> ProbabilityTables:
        """P(class), and P(word | class) of the words that distinguish the classes most; see ``tabulate_words``."""
        from priory.model.probability_tables import tabulate_texts

        model = self._model()
        return tabulate_texts(model.text, model.record, self.classes_, self.class_count_, self.class_prior_)

    @optional_attribute
    def word_probabilities_(self) -> Array:
        """P(word | class) of every class (row) and every token in use (column), in the order of ``vocabulary_``."""
        model = self._model()
        return model.text.word_probabilities(model.record, np.arange(len(self._token_counts()))).T

    def tabulate_words(self, words: Iterable[str] | None = None) -> DisplayTable:
        """P(word | class) of these words, or of all words; with the counts and the formula of each estimate.

        >>> model = TextClassifier.textbook("multinomial").fit(["win cash", "see you"], ["spam", "ham"])
        >>> print(model.tabulate_words(["cash", "you"]))
        P(word | class), multinomial
        text  ham                spam
        cash  (0+1)/(2+4) = 0.1667  (1+1)/(2+4) = 0.3333
        you   (1+1)/(2+4) = 0.3333  (0+1)/(2+4) = 0.1667
        """
        from priory.model.probability_tables import tabulate_words

        model = self._model()
        chosen = self.vocabulary_ if words is None else list(words)
        return tabulate_words(model.text, model.record, self.classes_, chosen)[0]

    @optional_attribute
    def n_parameters_(self) -> ParameterCount:
        """The number of parameters, and how many there were without the naive assumption."""
        from priory.model.probability_tables import count_parameters

        counts = self._counts_in_use()  # a parameter for each token; without the assumption, one for each set of tokens
        return count_parameters(len(counts.n), len(counts), float(len(counts)))

    @optional_attribute
    def n_tokens_(self) -> int:
        """The number of different tokens (or buckets) in use."""
        return len(self._counts_in_use())

    # -- texts as vectors ----------------------------------------------------------------------------------------

    def transform(self, X: object) -> scipy.sparse.csr_array:
        """Encode texts as sparse rows over the tokens in use: presence or counts, depending on the model.

        A fixed vocabulary needs no ``fit``.

        >>> pets = ["I like cats.", "Dogs are friendly.", "Cats and dogs are pets."]
        >>> model = TextClassifier(vocabulary=["cats", "dogs", "pets"])
        >>> model.transform(pets).toarray().astype(int).tolist()
        [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
        """
        rows = self._find_rows()
        if not rows.n_columns:
            rows.warn_of_unmatched_entries()
        documents, counts = rows.read(X, "answer")[1].documents, self._sort_counts_in_use(rows)
        # CSR: the ids and counts of the tokens of each document
        indptr, ids, times = rows.vocabulary.encode(documents, counts)
        values = np.ones(len(ids)) if rows.text_model.binary else times.astype(float)
        return scipy.sparse.csr_array((values, ids, indptr), shape=(len(documents), len(counts)))

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Names of the columns of ``transform``: the tokens."""
        rows = self._find_rows()
        return np.array(rows.vocabulary.name_tokens(self._sort_counts_in_use(rows)), dtype=object)

    def _find_rows(self) -> TextRows:
        """The rows of the fitted model, or as declared before the first text."""
        core, declared = self._declare()
        rows: TextRows = declared if core.state is None else core.state.rows  # type: ignore[assignment]
        return rows

    def _sort_counts_in_use(self, rows: TextRows) -> BagCounts:
        """The counts in use; for a fixed vocabulary also before the first text."""
        vocabulary = rows.vocabulary
        if not rows.n_columns and isinstance(vocabulary, FixedVocabulary):
            return vocabulary.select_counts(vocabulary.count([], np.zeros(0, dtype=int), 1, None, True))
        return self._counts_in_use()

    # -- explaining ----------------------------------------------------------------------------------------------

    def explain(self, X: object, unit: str = "decibans") -> ledger.Ledgers:
        """Explain each text by a ledger of its tokens: the evidence for every class, the count and the places of each.

        ``unit`` is the unit of display: "decibans", "nats", "bits", or "probability" for P(word | class) and factors.
        """
        learned = self._learned()
        ledger.check_unit(unit)
        rows, texts = learned.rows.read([X] if isinstance(X, (str, bytes)) else X, "answer")
        model, cells = learned.calibrated(), rows.read_cells(texts)
        found = split_text_answers(model, cells)
        naive, names = learned.model(), learned.correction_names
        weighed = weigh_both_sides(naive, texts.documents)
        ledgers = [
            replace(
                explain_document(model, naive, document, found, row), unit=unit, corrections=names, sides=weighed[row]
            )
            for row, document in enumerate(texts.documents)
        ]
        choice = find_choice(learned)
        if choice is not None and choice.table is not None:
            # what texts without label did to the log odds, (rows, classes), as one line
            others = rows.answer(learned, cells) - model.log_probabilities(cells)
            lines = [ledger.LedgerLine("(other texts)", "", tuple(row)) for row in others.tolist()]
            ledgers = [replace(one, lines=(*one.lines, line)) for one, line in zip(ledgers, lines, strict=True)]
        return ledger.Ledgers(ledgers)

    def evidence(self, label: Label, max_tokens: int = 20) -> list[ledger.TokenEvidence]:
        """List the tokens with the most evidence for a class: common there, and rare in other classes."""
        model = self._model()
        labels = model.classes.tolist()
        if label not in labels:
            raise DataError(f"no class {label!r}; the model knows {labels[:10]}.")
        bag = model.text.build_bag(model.record)
        return ledger.find_strongest_tokens(self._token_counts(), bag, labels.index(label), labels, max_tokens)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def explain_document(
    calibrated: CalibratedModel, naive: DocumentModel, document: Document, found: TextAnswers, row: int
) -> ledger.Ledger:
    """Make the ledger of a document, given its row in the answers."""
    model, record = naive.text, naive.record
    counted = model.select_counts(record)
    # table (tokens, classes): log-likelihood of each token; constant (classes,): of a text without any
    table, constant = model.token_weights(record)
    spans = find_token_spans(document, model.vocabulary.tokenizer)
    row_of_token = model.vocabulary.number_tokens([token for token, _, _ in spans], counted)
    lines = ledger.make_token_lines(spans, row_of_token, table, model.binary)
    if model.model == "bernoulli":
        # Bernoulli weights are log-odds against absence: show log p(present | c), and absent words in one line
        rows = np.array([row_of_token[line.name] for line in lines], dtype=np.int64)
        lines, constant = ledger.move_absence(lines, constant, np.asarray(counted.counts[rows].any(axis=1)))
    if constant.any():
        lines.append(ledger.LedgerLine("(absent tokens)", "", tuple(constant.tolist())))
    weight = float(found.weights[row])
    lines = [replace(line, log_likelihood=tuple(weight * x for x in line.log_likelihood)) for line in lines]
    if found.features is not None:
        lines = ledger.add_feature_lines(
            lines, document, model.vocabulary.tokenizer, row_of_token, found.features, found.feature_weights
        )
    evidence = np.array([line.log_likelihood for line in lines]).reshape(len(lines), len(constant))
    split = finish_text_lines(calibrated, found, row, evidence)
    lines += [ledger.LedgerLine(name, "", ()) for name in split.sources if isinstance(name, str)]
    weighed = zip(lines, split.lines[0].T.tolist(), strict=True)
    lines = [replace(line, log_likelihood=tuple(by_class)) for line, by_class in weighed]
    text = document if isinstance(document, str) else document.decode()
    prior = ledger.LedgerLine(split.name, "", tuple(split.first[0].tolist()))
    return ledger.Ledger(tuple(naive.classes.tolist()), prior, tuple(lines), text)
