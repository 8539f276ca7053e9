"""A buffer of single rows in front of the statistics, which are brought up to date when they are read.

    statistics  =  the statistics before  +  rows learned since  -  rows forgotten since

A `RowBuffer` holds the rows that the statistics lack, a model that has learned them in place
(`priory.model.open_model`), and the sample of rows as it is now. Learning, forgetting and answering cost what the row
is. The rows are counted in one batch when the statistics are read, or when they take too much memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic

import numpy as np

from priory.calibration.corrections import Corrections, Succession
from priory.calibration.row_corrections import RowCorrections, step_tempering
from priory.core.logspace import log_normalise_row
from priory.core.typing import Array
from priory.learning.learned import Learned, settle
from priory.model.cells import hash_value
from priory.model.model_statistics import ModelStatistics
from priory.model.open_model import OpenModel, OpenSample, RowT
from priory.model.row_sample import RowSample, finish_row_hash
from priory.text.text_model import open_kernel
from priory.text.token_features import SingleTextReader, TokenFeatures, make_pair_hasher
from priory.text.tokenizer import Tokenizer

MAX_PENDING_BYTES = 1 << 26  # of rows that the record lacks
MAX_REMEMBERED_ROWS = 100_000  # rows learned one at a time whose hashes are remembered


class RowBuffer(Generic[RowT]):
    """What single rows have changed since they were last counted into the record."""

    def __init__(self, model: OpenModel[RowT], learned: Learned) -> None:
        statistics = learned.statistics
        self.model, self.labels = model, statistics.classes.tolist()
        self.is_limited = learned.rows.is_calibrated  # whether answers are limited by the number of rows
        self._succession: Succession | None = None  # until the next row
        self.sample: OpenSample[RowT] | None = None
        self.corrections: BufferCorrections | None = None  # None: not derived yet, or not valid any more
        self._group = {label: group for group, label in enumerate(self.labels)}
        self._label_type = type(self.labels[0])
        self._label_hashes = [hash_value(label) for label in self.labels]
        self._remembered: OrderedDict[int, int] = OrderedDict()  # how often each of the last rows was learned
        self.restart(statistics)
        if learned.corrections is not None or not learned.rows.is_calibrated:
            is_derived = statistics.sample is not None and (
                statistics.find_derived("corrections") is learned.corrections
            )
            self.corrections = follow_corrections(learned, is_derived)

    @classmethod
    def open(cls, learned: Learned) -> RowBuffer[Any] | None:
        """A buffer in front of what was learned; None if a row would cost as much as all that was learned."""
        model = learned.rows.open(learned.statistics)
        return None if model is None else cls(model, learned)

    def restart(self, statistics: ModelStatistics) -> None:
        """Go on from a record that has all rows."""
        self.learned: list[tuple[RowT, int]] = []
        self.forgotten: list[tuple[RowT, int]] = []
        self.pending_bytes = 0
        self._new: dict[int, int] = {}  # how often each row was learned since
        self.sample = None if statistics.sample is None else OpenSample(statistics.sample)

    @property
    def has_pending_rows(self) -> bool:
        """Whether the record lacks rows."""
        return bool(self.learned or self.forgotten)

    @property
    def is_full(self) -> bool:
        """Whether the rows that the record lacks take too much memory."""
        return self.pending_bytes > MAX_PENDING_BYTES

    def find_group(self, label: object) -> int | None:
        """The number of a class; None if it is new, or a label of another type."""
        plain = label.item() if isinstance(label, np.generic) else label
        return self._group.get(plain) if type(plain) is self._label_type else None

    def hash_row(self, row: RowT, group: int) -> int:
        """The hash of a row and its class: that of `priory.model.row_sample`, if there is a sample."""
        if self.sample is None:
            return hash((row, group))
        return finish_row_hash(self._label_hashes[group], self.model.hash_row(row))

    def learn(self, row: RowT, group: int) -> None:
        """Learn a row; the tempering learns from the answer to it before the model does."""
        row_hash = self.hash_row(row, group)
        if self.corrections is not None:
            self.corrections.learn(self.model, row, group, row_hash)
        self._learn_row(row, group, row_hash)

    def learn_all(self, rows: Sequence[RowT], groups: Sequence[int]) -> None:
        """Learn rows; the tempering learns from the answers to all of them before the model does."""
        hashes = list(map(self.hash_row, rows, groups))
        if self.corrections is not None:
            for row, group, row_hash in zip(rows, groups, hashes, strict=True):
                self.corrections.learn(self.model, row, group, row_hash)
        for row, group, row_hash in zip(rows, groups, hashes, strict=True):
            self._learn_row(row, group, row_hash)

    def _learn_row(self, row: RowT, group: int, row_hash: int) -> None:
        self.model.learn(row, group)
        self._succession = None
        self.learned.append((row, group))
        self.pending_bytes += self.model.measure_row(row)
        self._new[row_hash] = self._new.get(row_hash, 0) + 1
        self._remembered[row_hash] = self._remembered.get(row_hash, 0) + 1
        if len(self._remembered) > MAX_REMEMBERED_ROWS:
            self._remembered.popitem(last=False)
        if self.sample is not None and (changes := self.sample.add(row_hash, row, group)):
            self._count_changes(changes)

    def forget(self, row: RowT, group: int) -> bool:
        """Forget a row; False, and nothing has changed, if that is for the record to decide.

        It is where the row may not have been learned, and where it is the last of its class.
        """
        row_hash = self.hash_row(row, group)
        is_known = row_hash in self._remembered or (self.sample is not None and row_hash in self.sample)
        if self.model.n[group] <= 1 or (self.sample is not None and not self.sample.can_remove(row_hash)):
            return False
        if not self.model.forget(row, group, is_known, is_new=row_hash in self._new):
            return False
        self._succession = None
        for counts in (self._remembered, self._new):
            if counts.get(row_hash, 0) > 1:
                counts[row_hash] -= 1
            else:
                counts.pop(row_hash, None)
        self.forgotten.append((row, group))
        self.pending_bytes += self.model.measure_row(row)
        if self.corrections is not None and self.corrections.has_seen(row_hash):
            self.corrections = None
        if self.sample is not None and (changes := self.sample.remove(row_hash)):
            self._count_changes(changes)
        return True

    def _count_changes(self, changes: int) -> None:
        """Kept rows came or went: the corrections may have to be derived anew."""
        assert self.sample is not None
        if self.corrections is not None:
            self.corrections.changes += changes
            if self.corrections.changes > self.corrections.refresh_after * len(self.sample):
                self.corrections = None

    def log_probabilities(self, row: RowT) -> Array | None:
        """(classes,): log p(c | x); None if that is for the record to say. ``corrections`` must be there."""
        assert self.corrections is not None
        if not self.is_limited:
            joint = self.model.log_joint(row)
            return None if joint is None else log_normalise_row(joint, self.model.log_prior)
        answer = self.corrections.log_probabilities(self.model, row)
        if answer is None:
            return None
        if self._succession is None:
            self._succession = Succession(float(self.model.n.sum()), self.model.estimated_log_prior())
        answer = self._succession.limit(answer)
        shift = self.model.find_prior_shift()
        return answer if shift is None else log_normalise_row(answer + shift, self.model.log_prior)

    # -- the statistics ------------------------------------------------------------------------------------------

    @property
    def needs_statistics(self) -> bool:
        """Whether something has to be derived from statistics with all rows before the buffer can answer."""
        return self.corrections is None or (self.corrections.needs_families and self.model.needs_record)

    def prepare_answer(self, learned: Learned) -> Learned:
        """Derive what is not valid any more, from statistics with all rows: corrections and, if needed, families."""
        if self.corrections is None:
            learned = learned.use_corrections(learned.derive_corrections())
            self.corrections = follow_corrections(learned, is_fresh=True)
        if self.corrections.needs_families and self.model.needs_record:
            self.model.follow_record(learned.model(), learned.rows.parameters.refresh_after)
        return learned

    def count_into(self, before: Learned) -> Learned | None:
        """What was learned, with the rows, the sample and the corrections of the buffer; None if nothing is left."""
        total = replace(before.statistics, sample=None)
        if self.learned:
            total = total + self._observe(before, self.learned)
        if self.forgotten:
            total = total - self._observe(before, self.forgotten)
        if self.sample is not None:

            def sample(rows: Sequence[RowT], group: Array, memory: int) -> RowSample:
                return before.rows.sample(self.model.make_cells(rows), before.classes, group, None, memory)[0]

            total = replace(total, sample=self.sample.close(sample))
        if self.corrections is None:
            after = before.drop_corrections()
        else:
            after = replace(before, corrections=self.corrections.corrections, changes=self.corrections.changes)
        return settle(after, total)

    def _observe(self, before: Learned, pending: Sequence[tuple[RowT, int]]) -> ModelStatistics:
        rows, group = zip(*pending, strict=True)
        counted: ModelStatistics = before.model().observe(
            self.model.make_cells(rows), np.array(group, dtype=np.int32), None
        )
        return counted


def follow_corrections(learned: Learned, is_fresh: bool) -> BufferCorrections:
    """Corrections for single rows; ``is_fresh`` if they were derived from the statistics as they are."""
    sample, rows = learned.statistics.sample, learned.rows
    seen = set(sample.hashes.tolist()) if is_fresh and sample is not None else None
    changes, share = 0 if is_fresh else learned.changes, rows.parameters.refresh_after
    return BufferCorrections(learned.corrections, rows.tokenizers, share, changes, seen)


class BufferCorrections:
    """The corrections in use, and which rows they have seen."""

    def __init__(
        self,
        corrections: Corrections | None,  # None if there are too few rows for any
        tokenizers: Sequence[Tokenizer],  # of each text
        refresh_after: float,
        changes: int,  # kept rows that came or went since the corrections were derived
        seen: set[int] | None,  # the hashes of the rows they were derived from; None if that is not known
    ) -> None:
        self.refresh_after, self.changes, self.seen = refresh_after, changes, seen
        self.rows = None if corrections is None else RowCorrections(corrections)
        self.tempers_columns = _tempers_columns(corrections, len(tokenizers))
        self.tempers = corrections is not None and (not corrections.members or bool(tokenizers))
        chosen = zip(corrections.tokens, tokenizers, strict=True) if corrections and corrections.tokens else ()
        self.finders = [TokenFinder(tokens, tokenizer) for tokens, tokenizer in chosen]

    @property
    def corrections(self) -> Corrections | None:
        """The corrections as they are now."""
        return None if self.rows is None else self.rows.corrections

    @property
    def needs_families(self) -> bool:
        """Whether answers are those of the model's families, corrected or not."""
        return self.rows is None or self.tempers_columns

    def learn(self, model: OpenModel[RowT], row: RowT, group: int, row_hash: int) -> None:
        """Predict, then learn: the tempering learns from the answer to a row before the model has learned it.

        That of columns is as it was derived.
        """
        if self.rows is None or not self.tempers or self.tempers_columns:
            return
        tempering = self.rows.corrections.tempering
        self.rows.update_tempering(step_tempering(tempering, model.evidence(row), group))
        if self.seen is not None:
            self.seen.add(row_hash)

    def has_seen(self, row_hash: int) -> bool:
        """Whether the corrections may depend on a row."""
        return self.rows is not None and (self.seen is None or row_hash in self.seen)

    def log_probabilities(self, model: OpenModel[RowT], row: RowT) -> Array | None:
        """(classes,): log p(c | x) with the estimated class prior; None if that is for the record to say."""
        if self.rows is None or self.tempers_columns:
            found = model.column_evidence(row)
            if found is None:
                return None
            if self.rows is not None:
                return self.rows.log_probabilities((), found, ())
            return log_normalise_row(found.values.sum(axis=1), model.estimated_log_prior)
        texts = model.list_texts(row) if self.finders else ()
        tokens = [finder.find(text) for finder, text in zip(self.finders, texts, strict=False)]
        evidence = model.evidence(row) if self.tempers else None
        return self.rows.log_probabilities(model.list_coded_cells(row), evidence, tokens)


def _tempers_columns(corrections: Corrections | None, n_texts: int) -> bool:
    """Whether corrections are weights of all that a model says, its columns included."""
    return corrections is not None and not corrections.members and len(corrections.tempering.weights) > 1 + n_texts


class TokenFinder:
    """The tokens of one text at a time that corrections give a weight to."""

    def __init__(self, tokens: TokenFeatures, tokenizer: Tokenizer) -> None:
        self.reader = SingleTextReader(tokenizer)
        self.kernel = open_kernel(tokens.arena, tokens.ends, np.zeros((len(tokens.ends), 1)), tokenizer)
        nodes = self.kernel.first_nodes
        self.column = np.full(max(2 * len(nodes), int(nodes.max(initial=0)) + 1), -1)
        self.column[nodes] = np.arange(len(nodes))
        self.tokens, self.pairs = tokens, make_pair_hasher(tokenizer) if len(tokens.pairs) else None

    def find(self, text: str | bytes) -> Array:
        """The numbers of the tokens of a text, and of its pairs of words, each once."""
        nodes, _ = self.kernel.find(*self.reader.prepare(text))
        columns = self.column[nodes[nodes < len(self.column)]]
        if self.pairs is not None:
            columns = np.append(columns, self.tokens.find_pairs(self.pairs.list_buckets(text)))
        return np.asarray(columns[columns >= 0])
