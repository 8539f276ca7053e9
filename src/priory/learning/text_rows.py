"""Rows that are texts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.input_guard import check_frame, describe_difference
from priory.core.logspace import log_normalise
from priory.errors import DataError, KindError, NotLearnedError
from priory.learning.row_kind import Parameters, Purpose, RowKind, check_calibration, warn_user
from priory.model.cells import TEXT_COLUMN_NAMES, Cells, RowSample, TextCells, choose_text_memory
from priory.model.document_model import DocumentModel, observe_documents
from priory.model.model_statistics import ModelStatistics, check_class_prior
from priory.model.open_model import OpenTexts
from priory.text.documents import DocumentBatch, check_documents, read_documents
from priory.text.normal_forms import Document
from priory.text.text_model import TextModel
from priory.text.token_bags import AnyDocuments, TokenBags
from priory.text.token_features import read_kept_bags
from priory.text.tokenizer import Tokenizer, load_stop_words
from priory.text.vocabulary import VOCABULARY_PARAMETERS, Vocabulary, build_vocabulary, find_unmatched_entries

if TYPE_CHECKING:
    from priory.calibration.calibrator import Calibrator
    from priory.learning.learned import Learned
    from priory.learning.unlabelled_texts import TextChoice

TOKEN_PARAMETERS = (  # what decides which tokens are counted
    *("ngram_range", "analyzer", "lowercase", "min_token_length", "stem", "extra_tokens", "reader", "stop_words"),
    *("vocabulary", "unknown", "buckets", "max_tokens"),
)
MAX_TEXTS_TO_CALIBRATE = 2048  # texts that a tempering is fitted to


def take_text_column(X: object) -> object:
    """Take the texts of a table with one column, or of an array (rows, 1); return other input unchanged."""
    check_frame(X)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        if X.shape[1] != 1:
            raise KindError(f"X is an array with {X.shape[1]} columns; give one column of texts: X[:, 0].")
        return X[:, 0].tolist()
    if not hasattr(type(X), "columns") and not hasattr(type(X), "column_names"):
        return X  # a list, a series or a stream of texts
    from priory.tables.frame_reading import take_only_column  # it imports narwhals

    return take_only_column(X)


@dataclass(frozen=True)
class TextBatch:
    """Documents, read once."""

    documents: DocumentBatch

    @property
    def rows(self) -> int:
        return len(self.documents)

    def take_rows(self, rows: Array) -> TextBatch:
        """Select documents by position."""
        return TextBatch([self.documents[row] for row in rows.tolist()])


@dataclass(frozen=True, eq=False)
class TextRows(RowKind[TextBatch]):
    """Rows of texts: the parameters of `priory.TextClassifier`, and the salt of the hash."""

    calibrates: ClassVar[bool] = True

    parameters: Parameters
    salt: int | None = None  # None: nothing was read yet
    name: str | None = None  # of the column, where the model was trained from files

    # -- the columns ---------------------------------------------------------------------------------------------

    @property
    def attributes(self) -> dict[str, Any]:
        if self.salt is None:
            return {}
        known: dict[str, Any] = {"n_features_in_": 1, "salt_": self.salt}
        if self.name is not None:
            known["feature_names_in_"] = np.array([self.name], dtype=object)
        return known

    def with_attributes(self, attributes: Mapping[str, Any]) -> Self:
        if attributes["n_features_in_"] != 1:
            raise DataError(f"n_features_in_ is {attributes['n_features_in_']}; a text is one column.")
        [name] = attributes.get("feature_names_in_", [None])
        return replace(self, salt=attributes["salt_"], name=name)

    @property
    def n_columns(self) -> int:
        return 0 if self.salt is None else 1

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary, as declared."""
        p = self.parameters
        tokenizer = Tokenizer(
            lowercase=p.lowercase,
            analyzer="word" if p.analyzer == "auto" else p.analyzer,
            min_token_length=p.min_token_length,
            ngram_range=(p.ngram_range[0], p.ngram_range[1]),
            stop_words=load_stop_words(p.stop_words),
            stem=p.stem,
            extra_tokens=p.extra_tokens,
            reader=p.reader,
        )
        declared = {name: getattr(p, name) for name in VOCABULARY_PARAMETERS}
        return build_vocabulary(tokenizer, salt=self.salt or 0, **declared)

    @cached_property
    def text_model(self) -> TextModel:
        """The text model, as declared."""
        return TextModel(self.parameters.model, self.parameters.alpha, self.vocabulary)

    # -- reading -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        p = self.parameters
        if p.pairs not in ("auto", True, False):
            raise DataError(f"pairs is {p.pairs!r}; use 'auto', True or False.")
        check_calibration(p)
        if p.refine not in ("auto", True, False):
            raise DataError(f"refine is {p.refine!r}; use 'auto', True or False.")
        self.text_model  # noqa: B018  # it checks what it is made of

    def read(self, X: object, purpose: Purpose, learned: ModelStatistics | None = None) -> tuple[Self, TextBatch]:
        batch = TextBatch(read_documents(check_documents(take_text_column(X)), self.parameters.reader))
        if purpose != "fit":
            return self, batch
        if not batch.rows:
            raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: X has no documents.")
        self.warn_of_unmatched_entries()
        return type(self)(self.parameters, 0 if self.parameters.salt is None else self.parameters.salt), batch

    def warn_of_unmatched_entries(self) -> None:
        """Warn of entries of a fixed vocabulary that no text can match."""
        if self.parameters.vocabulary is None:
            return
        unmatched = find_unmatched_entries(self.vocabulary.tokenizer, tuple(self.parameters.vocabulary))
        if unmatched:
            warn_user(
                f"{unmatched[0]!r} in the vocabulary can never match: no text has such a token; "
                "see min_token_length, ngram_range, analyzer and stop_words."
            )

    def wrap_row(self, x: Document, learns: bool) -> list[Document]:
        return [x]

    def list_rows(self, X: object) -> list[Document] | None:
        return X if isinstance(X, list) else None

    def read_cells(self, batch: TextBatch) -> list[Cells]:
        return [TextCells(batch.documents)]

    # -- learning ------------------------------------------------------------------------------------------------

    def count(self, batch: TextBatch, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        cells = self.read_cells(batch)
        if not self._keeps_all(batch, weight):
            learned = observe_documents(self.text_model, batch.documents, classes, group, weight)
            if not self.memory:
                return learned
            return replace(learned, sample=self.sample(cells, classes, group, weight, self.memory)[0])
        bags = self._read_bags(batch.documents)  # they are read once, to be counted and to be kept
        learned = observe_documents(self.text_model, bags, classes, group, weight)
        sample, rows = RowSample.of(self.column_names, cells, classes, group, weight, self.memory, None)
        return replace(learned, sample=sample.with_cells([TextCells(bags[rows])]))

    def _keeps_all(self, batch: TextBatch, weight: Array | None) -> bool:
        """Whether the sample will hold all texts, so that counting it gives the same statistics."""
        is_whole = weight is None or bool((weight == weight.round()).all())
        return self.is_calibrated and batch.rows <= self.memory and self.parameters.max_tokens is None and is_whole

    def join(self, other: Self) -> Self:
        ours, theirs = self.text_model, other.text_model
        if ours.vocabulary == theirs.vocabulary and ours.binary == theirs.binary:
            return self if self.name is not None or other.name is None else replace(self, name=other.name)
        # name the first parameter that differs
        own, others = ({**vars(rows.parameters), "salt": rows.salt} for rows in (self, other))
        compared = [*TOKEN_PARAMETERS, *(["model"] if ours.binary != theirs.binary else [])]
        differing = next((name for name in compared if own[name] != others[name]), "salt")
        difference = describe_difference(differing, own[differing], others[differing])
        raise DataError(f"the models read texts differently: {difference}; merge models of the same tokens.")

    def prune(self, statistics: ModelStatistics) -> ModelStatistics:
        """Keep the ``max_tokens`` most frequent tokens; the counts bound the error."""
        if self.parameters.max_tokens is None or not self.vocabulary.grows:
            return statistics
        [words] = statistics.parts
        return replace(statistics, parts=(words.drop_rare_tokens(self.parameters.max_tokens),))

    # -- answering -----------------------------------------------------------------------------------------------

    def model(self, statistics: ModelStatistics) -> DocumentModel:
        p = self.parameters
        prior = check_class_prior(p.class_prior, statistics.classes)
        return DocumentModel(self.text_model, statistics, prior)

    def answer(self, learned: Any, cells: Sequence[Cells]) -> Array:
        answers = super().answer(learned, cells)
        choice = find_choice(learned)
        if choice is None or choice.table is None:
            return answers
        [kept] = self.keep_cells(cells)
        assert isinstance(kept.data, TokenBags)
        own = choice.table.log_probabilities(kept.data, self.vocabulary)
        calibrated = learned.calibrated()
        prior, estimated = calibrated.model.log_prior(), calibrated.model.estimated_log_prior()
        # the estimated prior is limited and pooled; a declared prior replaces it afterwards
        pooled = choice.pool_answers(own, log_normalise(answers - (prior - estimated)))
        limited = pooled if calibrated.succession is None else calibrated.succession.limit(pooled)
        return log_normalise(limited + (prior - estimated), prior)

    def open(self, statistics: ModelStatistics) -> OpenTexts | None:
        if self.parameters.unlabelled:  # answers depend on all texts together
            return None
        model = self.model(statistics)
        return OpenTexts(model) if OpenTexts.can_open(model) else None

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        if fault := self.text_model.find_fault(statistics.parts[0] if len(statistics.parts) == 1 else None):
            return fault
        sample = statistics.sample
        return None if sample is None or self._can_keep(sample.blocks) else "the texts it keeps are of another kind"

    def _can_keep(self, blocks: Sequence[Cells]) -> bool:
        bags = blocks[0].data if len(blocks) == 1 else None
        return isinstance(bags, TokenBags) and self.vocabulary.can_read(bags)

    # -- the sample that corrections are derived from ------------------------------------------------------------

    @property
    def column_names(self) -> list[tuple[str, ...]]:
        return [TEXT_COLUMN_NAMES]

    def keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        return [TextCells(self._read_bags(column.data)) for column in cells if isinstance(column, TextCells)]

    @property
    def finer_tokens(self) -> tuple[bool | Literal["auto"], bool]:
        """Whether corrections may weigh pairs of words, and characters; in mail neither carries over."""
        p = self.parameters
        is_mail = p.reader != "text"
        return p.pairs is True or (not is_mail and p.pairs), p.analyzer == "auto" and not is_mail

    def _read_bags(self, documents: AnyDocuments) -> TokenBags:
        """Tokenise documents for the sample, with pairs of words if corrections may use them."""
        return read_kept_bags(self.vocabulary, documents, bool(self.parameters.refine and self.finer_tokens[0]))

    @property
    def usual_memory(self) -> int:
        return choose_text_memory(None, self.parameters.refine)

    def calibrator(self) -> Calibrator:
        from priory.calibration.calibrator import Calibrator  # answers do without it
        from priory.calibration.text_refinement import OTHER_MAILBOXES, OTHER_TEXTS, SAME_SOURCE, FinerTokens

        refine = self.parameters.refine
        # refined corrections have many weights; tempering alone has a few
        max_texts = sys.maxsize if refine else MAX_TEXTS_TO_CALIBRATE
        elsewhere = OTHER_TEXTS if self.parameters.reader == "text" else OTHER_MAILBOXES
        reach = SAME_SOURCE if refine is True else elsewhere
        return Calibrator(max_texts, bool(refine), FinerTokens(*self.finer_tokens), reach)

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return [self.vocabulary.tokenizer]


# -- texts without labels ----------------------------------------------------------------------------------------------

NO_CLASS = np.array([0])


def count_unlabelled(rows: RowKind[Any], texts: object) -> ModelStatistics:
    """Count texts without label: one class, and a sample of their bags."""
    batch = rows.read(texts, "answer")[1]
    return rows.count(batch, NO_CLASS, np.zeros(batch.rows, dtype=np.int32), None)


def learn_unlabelled(before: Learned, part: ModelStatistics) -> Learned:
    """What was learned, and texts without label."""
    return replace(before, unlabelled=part if before.unlabelled is None else before.unlabelled + part)


def forget_unlabelled(before: Learned, part: ModelStatistics) -> Learned:
    """What was learned without some texts that had no label."""
    if before.unlabelled is None:
        raise NotLearnedError("no text without a label was learned; the model is unchanged.")
    left = before.unlabelled - part
    return replace(before, unlabelled=left if left.n.any() else None)


def find_choice(learned: Learned) -> TextChoice | None:
    """The decision about texts without label, made once for each record; None if the model does not take any."""
    if not getattr(learned.rows.parameters, "unlabelled", False):
        return None
    from priory.learning.unlabelled_texts import choose_texts

    key = repr(learned.rows.parameters), learned.unlabelled
    return learned.statistics.derive("text choice", lambda _: choose_texts(learned), *key)
