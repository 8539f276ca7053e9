"""`TextClassifier`: from strings to a verdict at the speed of counting, every word accountable."""

from __future__ import annotations

import copy
import secrets
import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.averaged_models import averaged
from priory.bag_of_words.documents import Batch, Document, documents_of
from priory.bag_of_words.models import MODELS, Bag, Rows, Weights, sparse_rows
from priory.bag_of_words.token_counts import Words
from priory.bag_of_words.tokenizer import Tokens
from priory.bag_of_words.vocabulary import Fixed, Growing, Hashed, Vocabulary, stop_words
from priory.calibration import stacking as corrections
from priory.calibration.feature_encoding import Encoding
from priory.calibration.smoothing_search import by_leaving_out, sample
from priory.calibration.stacking import Kind
from priory.calibration.tempering import Terms, text_lengths
from priory.core.logspace import log_normalise
from priory.core.typing import Array
from priory.errors import DataError, Stale
from priory.estimators.base import encoded
from priory.estimators.self_calibrating import Judged
from priory.models.explanation import Ledger, Ledgers, Line
from priory.models.naive_bayes import Seen, given_prior, log_prior
from priory.models.token_evidence import Evidence, strongest, token_lines

SAMPLE = 2048  # texts that a tempering is fitted to


@dataclass(frozen=True)
class Texts:
    """Documents, read once."""

    documents: Batch

    @property
    def rows(self) -> int:
        return len(self.documents)


class TextClassifier(Judged):
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
    _closed = False

    def __init__(
        self,
        model: str = "binary",
        *,
        average: bool = False,
        alpha: Any = 1.0,
        ngrams: tuple[int, int] = (1, 1),
        unit: Any = "word",
        lowercase: bool = True,
        least: int = 2,
        stem: str | None = None,
        extra: str = "",
        cjk: bool = False,
        stop_words: Any = None,
        vocabulary: Any = None,
        unknown: bool = False,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        buckets: int | None = None,
        salt: int | None = None,
        most: int | None = None,
        class_prior: Any = "estimated",
        calibrate: Any = "loo",
        refine: bool = False,
    ) -> None:
        self.model = model
        self.average = average
        self.alpha = alpha
        self.ngrams = ngrams
        self.unit = unit
        self.lowercase = lowercase
        self.least = least
        self.stem = stem
        self.extra = extra
        self.cjk = cjk
        self.stop_words = stop_words
        self.vocabulary = vocabulary
        self.unknown = unknown
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.buckets = buckets
        self.salt = salt
        self.most = most
        self.class_prior = class_prior
        self.calibrate = calibrate
        self.refine = refine

    # -- what was declared ---------------------------------------------------------------------------------------

    def _vocabulary(self) -> Vocabulary:
        """Which tokens are remembered, as declared."""
        span = (self.ngrams[0], self.ngrams[1])
        stop = stop_words(self.stop_words)
        tokens = Tokens(self.lowercase, self.unit, self.least, span, stop, self.stem, self.extra, self.cjk)
        grown = Growing(tokens, self.min_df, self.max_df, self.max_features, self.most)
        if self.buckets is None and self.vocabulary is None:
            return grown
        if not grown.grows or (self.buckets is not None and self.vocabulary is not None):
            raise DataError(
                "buckets, vocabulary and pruning (min_df, max_df, max_features) do not go together; use one."
            )
        if self.buckets is not None:
            return Hashed(tokens, self.buckets, getattr(self, "salt_", 0))
        return Fixed(tokens, tuple(self.vocabulary), self.unknown)

    def _bag(self) -> Bag:
        return self._kind()(self.alpha_)

    def _kind(self) -> type[Bag]:
        return averaged(self.model) if self.average else MODELS[self.model]

    @property
    def alpha_(self) -> float:
        """The smoothing in use: as declared, as the evidence asks, or as ``fit`` chose it by leaving texts out."""
        if self.alpha == "evidence":
            return self._kind().strength(self._used())
        return float(self.__dict__["alpha_"] if self.alpha == "loo" else self.alpha)

    def _check_parameters(self) -> None:
        if self.model not in MODELS:
            raise DataError(f"model is {self.model!r}; use one of {', '.join(MODELS)}.")
        number = isinstance(self.alpha, (int, float)) and np.isfinite(self.alpha) and self.alpha >= 0
        if not number and self.alpha not in ("evidence", "loo"):
            raise DataError(f"alpha is {self.alpha!r}; use a number from 0, 'evidence' or 'loo'.")
        if self.average and number and not self.alpha > 0:
            raise DataError("averaging over sets of tokens needs a prior: use alpha above 0.")
        self._kind()
        self._vocabulary()

    # -- learning ------------------------------------------------------------------------------------------------

    def _finish(self, table: Texts, group: Array, weight: Array | None) -> None:
        self.__dict__.pop("alpha_", None)
        if self.alpha == "loo":
            rows = sample(table.rows, weight, 500 if self._vocabulary().grows else 100)
            some, own = Texts([table.documents[i] for i in rows]), group[rows]

            def honest(alpha: float) -> Array:
                self.__dict__["alpha_"] = alpha
                return self._left_out_of(some, own)

            self.__dict__["alpha_"] = by_leaving_out(honest, own)
        super()._finish(table, group, weight)

    def _read(self, X: Any, reset: bool) -> Texts:
        self._check_parameters()
        texts = Texts(documents_of(X))
        if reset:
            if not texts.rows:
                raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: X has no documents.")
            self.n_features_in_ = 1
            self.salt_ = secrets.randbits(63) if self.salt is None else self.salt
        return texts

    def _classes_for(self, classes: Any, first: bool) -> Array | None:
        if classes is not None:
            given = np.unique(np.asarray(classes))
            return given if first else np.union1d(self.classes_, given)
        return None if first else self.classes_

    def _observe(self, table: Texts, classes: Array, group: Array, weight: Array | None) -> Seen:
        documents = np.bincount(group, weight, minlength=len(classes)).astype(float)
        once = MODELS[self.model].once
        return Seen(classes, documents, self._vocabulary().count(table.documents, group, len(classes), weight, once))

    def _check_alike(self, other: Self) -> None:
        super()._check_alike(other)
        alike = self._vocabulary() == other._vocabulary() and MODELS[self.model].once == MODELS[other.model].once
        if not alike:
            raise DataError("the models read texts differently; only models with the same tokens can be merged.")

    # -- what was learned ----------------------------------------------------------------------------------------

    def _used(self) -> Any:
        """The counts of the tokens in use."""
        vocabulary = self._vocabulary()
        return self._seen().derived("in use", lambda s: vocabulary.in_use(s.parts, float(s.n.sum())), vocabulary)

    def _words(self) -> Words:
        """The same, in a model that can spell them; sorted, or in the order they were declared."""
        if self.buckets is not None:
            raise Stale("a hashed model keeps no words; leave out buckets to have them.")
        used: Words = self._used()
        return used.ordered() if self.vocabulary is None else used

    @property
    def vocabulary_(self) -> list[str]:
        """The tokens in use."""
        return self._words().tokens()

    @property
    def counts_(self) -> Array:
        """For each token (or bucket) and class the documents that show it, or its occurrences, as the model asks."""
        counts: Array = self._used().counts if self.buckets is not None else self._words().counts
        return counts

    def _weights(self) -> Weights:
        by = (self.model, self.average, self.alpha, self.__dict__.get("alpha_"))
        weights: Weights = self._used().derived("weights", lambda u: self._bag().weights(u), *by)
        return weights

    @property
    def inclusion_probability_(self) -> dict[str, float]:
        """For each token the probability that it depends on the class at all."""
        words = self._words()
        bag = averaged(self.model)(self.alpha_)
        return dict(zip(words.tokens(), bag.inclusion(words).tolist(), strict=True))

    def _log_prior(self) -> Array:
        if not MODELS[self.model].prior and len(self.classes_) > 1:
            return np.zeros(len(self.classes_))
        return log_prior(self.seen_, given_prior(self.class_prior, self.classes_))

    # -- correcting ----------------------------------------------------------------------------------------------

    def _cells(self, table: Texts) -> list[Any]:
        return [table.documents]

    def _rows(self, cells: list[Any], encoding: Encoding | None, group: Array | None = None) -> corrections.Rows:
        documents = cells[0]
        scores = self._scores(documents) if group is None else self._scores_without(documents, group)
        before = np.repeat(self._seen_prior()[None], len(documents), axis=0)
        lengths = np.column_stack([np.ones(len(documents)), text_lengths(documents)])
        return corrections.Rows(
            Terms(np.stack([before, scores], axis=2), lengths), cells, encoding, lambda: [self._token_rows(documents)]
        )

    def _seen_prior(self) -> Array:
        return super()._seen_prior() if MODELS[self.model].prior else np.zeros(len(self.classes_))

    def _token_rows(self, documents: Batch) -> csr_array:
        words = self._used()
        indptr, ids, _ = reading.encode(documents, words.index(self.unit), self._vocabulary().tokens)
        return sparse_rows(indptr, ids, words)

    def _observe_cells(self, cells: list[Any], group: Array, weight: Array | None) -> Seen:
        return self._observe(Texts(cells[0]), self.classes_, group, weight)

    def _parts(self) -> int:
        return 1

    def _kinds(self, rows: int, encoding: Encoding, used: int) -> list[Kind]:
        return [Kind("naive", "columns" if self.refine else "")]

    def _most(self) -> int:
        return sys.maxsize if self.refine else SAMPLE

    # -- answering -----------------------------------------------------------------------------------------------

    def _log_joint(self, table: Texts) -> Array:
        return self._scores(table.documents) + self._log_prior()

    def _scores(self, documents: Batch) -> Array:
        weights, once = self._weights(), MODELS[self.model].once
        scores = self._vocabulary().score(documents, self._used(), weights.table, once)
        return np.asarray(scores + weights.constant)

    def explain(self, X: Any) -> Ledgers:
        """For each text the ledger of its tokens: what each said, how often, and in which places."""
        check_is_fitted(self, "seen_")
        self._words()
        texts = self._read([X] if isinstance(X, (str, bytes)) else X, reset=False)
        scale, prior, rest = self._believed([texts.documents])
        return Ledgers(
            [
                self._ledger(document, believed, prior, more)
                for document, believed, more in zip(texts.documents, scale[:, 1], rest, strict=True)
            ]
        )

    def _ledger(self, document: Document, believed: float, prior: Array, more: Array) -> Ledger:
        table, constant = (believed * weights for weights in self._weights())
        place = self._used().derived("places", lambda u: {token: j for j, token in enumerate(u.tokens())})
        lines = token_lines(document, self._vocabulary().tokens, place, table, MODELS[self.model].once)
        if constant.any():
            lines.append(Line("(absent tokens)", "", tuple(constant.tolist())))
        if not np.allclose(more, 0.0, atol=1e-9):
            lines.append(Line("(together)", "", tuple(more.tolist())))
        text = document if isinstance(document, str) else document.decode()
        return Ledger(tuple(self.classes_.tolist()), Line("prior", "", tuple(prior.tolist())), tuple(lines), text)

    def evidence(self, label: Any, most: int = 20) -> list[Evidence]:
        """The tokens that speak most for a class: often seen there, and telling."""
        check_is_fitted(self, "seen_")
        labels = self.classes_.tolist()
        if label not in labels:
            raise DataError(f"no class {label!r}; the model knows {labels[:10]}.")
        return strongest(self._words(), self._bag(), labels.index(label), labels, most)

    def leave_one_out(self, X: Any, y: Any) -> Array:
        """log p(c | text) of every learned text, from the model without it: words only it had vanish with it."""
        check_is_fitted(self, "seen_")
        return self._left_out_of(self._read(X, reset=False), encoded(y, self.classes_)[1])

    def _left_out_of(self, table: Texts, group: Array) -> Array:
        if not self._leaves_one_out():
            return self._leave_one_out_slowly(table, group)
        prior = np.stack([self._prior_without(c) for c in range(len(self.classes_))])[group]
        return log_normalise(self._scores_without(table.documents, group) + prior, self._log_prior())

    def _leaves_one_out(self) -> bool:
        return self._vocabulary().grows and self.alpha_ > 0 and self.alpha != "evidence"

    def _scores_without(self, documents: Batch, group: Array) -> Array:
        bag, words = self._bag(), self._used()
        indptr, ids, x = reading.encode(documents, words.index(self.unit), self._vocabulary().tokens)
        return bag.without(words, Rows(indptr, ids, np.ones(len(x)) if bag.once else x, group, words))

    def _leave_one_out_slowly(self, texts: Texts, group: Array) -> Array:
        """By plain subtraction: where what is left out may change the vocabulary or the smoothing."""
        answers = np.empty((texts.rows, len(self.classes_)))
        for i, document in enumerate(texts.documents):
            one = Texts([document])
            less = _copy_with(self, self.seen_ - self._observe(one, self.classes_, group[i : i + 1], None))
            answers[i] = log_normalise(less._log_joint(one), less._log_prior())[0]
        return answers

    def _prior_without(self, c: int) -> Array:
        one = np.zeros(len(self.classes_))
        one[c] = 1.0
        return _copy_with(self, Seen(self.classes_, self.seen_.n - one, ()))._log_prior()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _copy_with(model: TextClassifier, seen: Seen) -> TextClassifier:
    twin = copy.copy(model)
    twin.seen_ = seen
    return twin
