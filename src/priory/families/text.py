"""Text: a column of texts in a table, modelled as bags of words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from numpy import ndarray as Array

from priory.core.display_table import EstimateTable
from priory.core.typing import ColumnKind
from priory.families.base import ColumnFamily, register_family
from priory.text.text_model import TextModel
from priory.text.token_bags import AnyDocuments, drop_empty_texts, find_nonempty_texts
from priory.text.token_counts import BagCounts
from priory.text.tokenizer import Tokenizer, load_stop_words
from priory.text.vocabulary import VOCABULARY_PARAMETERS, build_vocabulary


@register_family("text", auto_rank=1)
@final
@dataclass(frozen=True)
class Text(ColumnFamily[BagCounts, AnyDocuments]):
    """One column of texts, modelled as bags of words.

    Parameters
    ----------
    model : "binary", "multinomial" or "bernoulli"
        How tokens are counted: once for each document, or as often as they occur, or as present or absent.
    alpha : float or "evidence"
        Virtual occurrences of every token; "evidence" chooses the number that maximises the evidence.
    tokenizer : Tokenizer
        How texts are split into tokens. By default words as in ``CountVectorizer()``, and pairs of characters for
        scripts without spaces.
    stop_words : a language such as "en", or the words themselves, optional
        Words to leave out; they replace the tokenizer's.
    max_tokens : int, optional
        Keep at most this number of distinct tokens while learning; rare ones are dropped.
    vocabulary : sequence of str, optional
        Use only these tokens. Others are ignored, or share one slot if ``unknown`` is true.
    unknown : bool
        Whether tokens that are not in ``vocabulary`` share a slot.
    buckets : int, optional
        Hash the tokens into this number of buckets instead of keeping them: fixed memory, no words in the model.
    salt : int
        The key of the hash. Models must share it to be merged; keep it secret if texts may be crafted to collide.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    McCallum, A. and Nigam, K. (1998). A comparison of event models for naive Bayes text classification.
    Weinberger, K. et al. (2009). Feature hashing for large scale multitask learning.

    Examples
    --------
    >>> seen = Text().observe(["win cash", "lunch?"], np.array([0, 1]), 2)
    >>> Text().log_likelihood(seen, ["win lunch"], "predictive").round(3).tolist()
    [[[-2.526], [-2.079]]]
    """

    model: str = "binary"
    alpha: float | Literal["evidence"] = 1.0
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    stop_words: frozenset[str] | None = None
    max_tokens: int | None = None
    vocabulary: tuple[str, ...] | None = None
    unknown: bool = False
    buckets: int | None = None
    salt: int = 0

    accepted_values: ClassVar[str] = "texts"
    is_discrete: ClassVar[bool] = True
    column_kind: ClassVar[ColumnKind] = "text"

    @classmethod
    def with_alpha(cls, alpha: float) -> Self:
        return cls(alpha=alpha)

    def __post_init__(self) -> None:
        # Lists and names of languages are accepted, and stored as immutable values: they can be hashed and saved.
        object.__setattr__(self, "stop_words", load_stop_words(self.stop_words))
        object.__setattr__(self, "vocabulary", None if self.vocabulary is None else tuple(self.vocabulary))
        self.build_model()

    def build_model(self, estimate: str = "predictive") -> TextModel:
        """Build the declared text model, without smoothing for maximum likelihood ("ml")."""
        tokenizer = self.tokenizer
        if self.stop_words is not None:
            tokenizer = replace(tokenizer, stop_words=self.stop_words)
        declared: dict[str, Any] = {name: getattr(self, name) for name in VOCABULARY_PARAMETERS}
        vocabulary = build_vocabulary(tokenizer, salt=self.salt, **declared)
        return TextModel(self.model, 0.0 if estimate == "ml" else self.alpha, vocabulary)

    # -- learning ------------------------------------------------------------------------------------------------

    def observe(
        self, x: AnyDocuments, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> BagCounts:
        classes = np.zeros(len(x), dtype=np.int32) if group is None else group
        if not (present := find_nonempty_texts(x)).all():  # an empty text is a missing value
            x, classes, weight = (drop_empty_texts(x), classes[present], weight if weight is None else weight[present])
        return self.build_model().count(x, classes, groups, weight)

    @classmethod
    def empirical_prior(cls, statistics: BagCounts) -> Self:
        """The default text model; its smoothing does not depend on the data."""
        return cls()

    # -- answering -----------------------------------------------------------------------------------------------

    def log_likelihood(self, statistics: BagCounts, x: AnyDocuments, estimate: str) -> Array:
        return self.score(statistics, x, estimate)[:, :, None]

    def score(self, statistics: BagCounts, x: AnyDocuments, estimate: str) -> Array:
        """log p(text | class), shape (texts, classes); zero for empty texts, which are missing values."""
        return _zero_where_empty(self.build_model(estimate).score(statistics, x), x)

    def leave_one_out(self, statistics: BagCounts, x: AnyDocuments, group: Array, estimate: str) -> Array:
        """Terms (texts, classes, 1) of learned texts, each from the statistics without it."""
        present = find_nonempty_texts(x)
        terms = np.zeros((len(x), len(statistics.n), 1))
        terms[present, :, 0] = self.build_model(estimate).leave_one_out(statistics, drop_empty_texts(x), group[present])
        return terms

    def evidence(self, statistics: BagCounts) -> Array:
        """Log evidence of the column's tokens, drawn independently given the class."""
        return np.array([self.build_model().log_evidence(statistics)])

    def n_parameters(self, statistics: BagCounts) -> int:
        """Number of parameters of one class: one for each token in use."""
        return len(self.build_model().select_counts(statistics))

    def log2_outcomes(self, statistics: BagCounts) -> float:
        """log2 of the number of outcomes: every set of tokens is one."""
        return float(self.n_parameters(statistics))

    def tabulate(self, statistics: BagCounts, estimate: str) -> list[EstimateTable]:
        """P(word | class) of the words that differ most between classes."""
        model = self.build_model(estimate)
        return [model.tabulate_words(statistics, model.find_distinctive_words(statistics))]


def _zero_where_empty(scores: Array, x: AnyDocuments) -> Array:
    """Set the scores (texts, classes) of empty texts to zero."""
    return np.where(find_nonempty_texts(x)[:, None], scores, 0.0)
