"""A buffer of single rows in front of the statistics, which are brought up to date when they are read.

    statistics  =  the statistics before  +  rows learned since  -  rows forgotten since

A `RowBuffer` holds the rows that the statistics lack, a model that has learned them in place
(`priory.model.open_model`), and the sample of rows as it is now. Learning, forgetting and answering cost what the row
is. The rows are counted in one batch when the statistics are read, or when they take too much memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Generic

import numpy as np
from numpy import ndarray as Array

from priory.calibration.corrections import Corrections, RowCorrections, Succession, step_tempering
from priory.core.content_hash import hash_value
from priory.core.logspace import log_normalise_row
from priory.learning.learned import Learned, settle
from priory.learning.row_kind import RowKind
from priory.learning.standby import LiveCounts, Standby, can_follow_counts, find_block
from priory.model.cells import NO_LIMIT, RowSample, finish_row_hash
from priory.model.model_statistics import ModelStatistics
from priory.model.open_model import OpenModel, OpenSample, RowT
from priory.text.text_model import open_kernel
from priory.text.token_bags import read_token_rows
from priory.text.token_features import SingleTextReader, TokenFeatures, make_pair_hasher
from priory.text.tokenizer import Tokenizer

MAX_PENDING_BYTES = 1 << 26  # of rows that the record lacks
MAX_ROWS_TO_FOLLOW = 100  # pending rows: more are counted into the statistics before an answer
MAX_REMEMBERED_ROWS = 100_000  # rows learned since the corrections were derived whose hashes are remembered


class RowBuffer(Generic[RowT]):
    """Single rows learned and forgotten since the statistics were last updated."""

    def __init__(self, model: OpenModel[RowT], learned: Learned) -> None:
        statistics = learned.statistics
        self.model, self.labels = model, statistics.classes.tolist()
        self.is_limited = learned.rows.is_calibrated  # whether answers are limited by the number of rows
        self._succession: Succession | None = None  # until the next row
        self.standby = learned.standby
        self._rows = learned.rows
        self.sample: OpenSample[RowT] | None = None
        self.corrections: BufferCorrections | None = None  # None: not derived yet, or not valid any more
        self._group = {label: group for group, label in enumerate(self.labels)}
        self._label_type = type(self.labels[0])
        self._label_hashes = [hash_value(label) for label in self.labels]
        self.restart(statistics)
        if learned.corrections is not None or not learned.rows.is_calibrated:
            is_derived = statistics.sample is not None and (
                statistics.find_derived("corrections") is learned.corrections
            )
            self.corrections = follow_corrections(learned, is_derived)

    @classmethod
    def open(cls, learned: Learned) -> RowBuffer[Any] | None:
        """Open a buffer; None if updating the model by one row would cost as much as counting all rows."""
        model = learned.rows.open(learned.statistics)
        return None if model is None else cls(model, learned)

    def restart(self, statistics: ModelStatistics) -> None:
        """Empty the buffer, after its rows were counted into ``statistics``."""
        self.model.restart(statistics)
        self.learned: list[tuple[RowT, int]] = []
        self.forgotten: list[tuple[RowT, int]] = []
        self.pending_bytes = 0
        self._new: dict[int, int] = {}  # how often each row was learned since
        if self.corrections is not None:
            self.corrections.counts = None
        self.sample = None if statistics.sample is None else OpenSample(statistics.sample)

    @property
    def has_pending_rows(self) -> bool:
        """Whether there are rows to count into the statistics."""
        return bool(self.learned or self.forgotten)

    @property
    def is_full(self) -> bool:
        """Whether pending rows take too much memory."""
        return self.pending_bytes > MAX_PENDING_BYTES

    def find_group(self, label: object) -> int | None:
        """Index of a class; None if it is new, or a label of another type."""
        plain = label.item() if isinstance(label, np.generic) else label
        return self._group.get(plain) if type(plain) is self._label_type else None

    def hash_row(self, row: RowT, group: int) -> int:
        """Hash a row and its class, as `priory.model.cells` does if there is a sample."""
        if self.sample is None:
            return hash((row, group))
        return finish_row_hash(self._label_hashes[group], self.model.hash_row(row))

    def learn(self, row: RowT, group: int) -> None:
        """Learn a row: first the tempering from the model's answer to it, then the model."""
        self.learn_all([row], [group])

    def learn_all(self, rows: Sequence[RowT], groups: Sequence[int]) -> None:
        """Learn rows: first the tempering from the model's answers to all of them, then the model."""
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
        if self.sample is not None and (changes := self.sample.add(row_hash, row, group)):
            self._count_changes(changes)

    def forget(self, row: RowT, group: int) -> bool:
        """Forget a row; return False, changing nothing, if only the full statistics can tell.

        They are needed where the row cannot have been learned, and where it is the last of its class.
        """
        row_hash = self.hash_row(row, group)
        # the last row of a class removes the class, which changes every shape
        if self.model.n[group] <= 1 or (self.sample is not None and not self.sample.can_remove(row_hash)):
            return False
        if not self.model.forget(row, group, is_new=row_hash in self._new):
            return False
        self._succession = None
        copies = self._new.pop(row_hash, 0)
        if copies > 1:
            self._new[row_hash] = copies - 1
        self.forgotten.append((row, group))
        self.pending_bytes += self.model.measure_row(row)
        # a forgotten row must not influence answers through corrections
        self.standby = self.standby.keep_unseen([row_hash])
        if self.corrections is not None and not self.corrections.forget(row_hash):
            self.corrections = follow_standby(self._rows, self.standby)
        if self.sample is not None and (changes := self.sample.remove(row_hash)):
            self._count_changes(changes)
        return True

    def forget_all(self, rows: Sequence[RowT], groups: Sequence[int]) -> bool:
        """Forget rows; return False, changing nothing, if only the full statistics can tell of one of them."""
        corrections, pairs = copy(self.corrections), list(zip(rows, groups, strict=True))
        for place, pair in enumerate(pairs):
            if not self.forget(*pair):
                for row, group in pairs[:place]:
                    self._learn_row(row, group, self.hash_row(row, group))
                self.corrections = corrections
                return False
        return True

    def _count_changes(self, changes: int) -> None:
        """Count changes of the kept rows; invalidate the corrections when they exceed ``refresh_after``."""
        assert self.sample is not None
        if self.corrections is not None:
            self.corrections.changes += changes
            if self.corrections.changes > self.corrections.refresh_after * len(self.sample):
                self.corrections = None

    def log_probabilities(self, row: RowT) -> Array | None:
        """(classes,): log p(c | x); None if the full statistics are needed. ``corrections`` must be set."""
        assert self.corrections is not None
        if not self.is_limited:
            joint = self.model.log_joint(row)
            return None if joint is None else log_normalise_row(joint, self.model.prior.log_declared)
        answer = self.corrections.log_probabilities(self.model, row)
        if answer is None:
            return None
        if self._succession is None:
            self._succession = Succession(float(self.model.n.sum()), self.model.prior.log_estimated())
        answer = self._succession.limit(answer)
        # (classes,): declared minus estimated log prior, if a prior is declared
        shift = self.model.prior.find_shift()
        return answer if shift is None else log_normalise_row(answer + shift, self.model.prior.log_declared)

    # -- the statistics ------------------------------------------------------------------------------------------

    @property
    def needs_statistics(self) -> bool:
        """Whether pending rows have to be counted before the buffer can answer."""
        if self.corrections is None or (self.corrections.needs_families and self.model.needs_record):
            return True
        if not self.corrections.is_behind:
            return False
        return len(self.learned) + len(self.forgotten) > MAX_ROWS_TO_FOLLOW or self._has_new_label()

    def _has_new_label(self) -> bool:
        """Whether a pending row has a label without a code, in a column whose rare labels follow the record."""
        assert self.corrections is not None
        assert self.corrections.rows is not None
        columns = [(j, column) for j, column in enumerate(self.corrections.rows.columns) if column.has_rare]
        rows = (self.model.list_coded_cells(row) for row, _ in (self.learned if columns else ()))
        return any(column.encode(cells[j]) < 0 for cells in rows for j, column in columns)

    def prepare_answer(self, learned: Learned) -> Learned:
        """Derive invalid corrections and, if needed, families, from statistics with all rows."""
        if self.corrections is None:
            self.corrections = follow_standby(learned.rows, learned.standby if learned.find_stand_in() else Standby())
        if self.corrections is None:
            learned = learned.use_corrections(learned.derive_corrections())
            self.corrections = follow_corrections(learned, is_fresh=True)
        if self.corrections.needs_families and self.model.needs_record:
            self.model.follow_record(learned.model(), learned.rows.parameters.refresh_after)
        if self.corrections.is_live:
            self._follow_counts(self.corrections, learned)
        return learned

    def _follow_counts(self, corrections: BufferCorrections, learned: Learned) -> None:
        """Bring the evidence of all rows up to date, if rows were forgotten."""
        assert corrections.corrections is not None
        if corrections.counts is None:
            corrections.counts = LiveCounts(corrections.corrections, learned.model())
        if corrections.is_behind:
            corrections.counts.count_pending(self.learned, self.forgotten, self.model.list_coded_cells)
            corrections.use_evidence(corrections.counts.update(corrections.corrections, self.model.n))

    def count_into(self, before: Learned) -> Learned | None:
        """Add the buffer's rows, sample and corrections to ``before``; None if nothing is left."""
        # the buffer has kept the sample up to date, so only the counts are added
        total = replace(before.statistics, sample=None)
        if self.learned:
            total = total + self._observe(before, self.learned)
        if self.forgotten:
            total = total - self._observe(before, self.forgotten)
        if self.sample is not None:

            def sample(rows: Sequence[RowT], group: Array, memory: int) -> RowSample:
                return before.rows.sample(self.model.make_cells(rows), before.classes, group, None, memory)[0]

            total = replace(total, sample=self.sample.close(sample))
        if self.corrections is None or self.corrections.has_forgotten:
            after = before.drop_corrections()
        else:
            after = replace(before, corrections=self.corrections.corrections, changes=self.corrections.changes)
        return settle(replace(after, standby=self.standby), total)

    def _observe(self, before: Learned, pending: Sequence[tuple[RowT, int]]) -> ModelStatistics:
        rows, group = zip(*pending, strict=True)
        counted: ModelStatistics = before.model().observe(
            self.model.make_cells(rows), np.array(group, dtype=np.int32), None
        )
        return counted


def follow_corrections(learned: Learned, is_fresh: bool) -> BufferCorrections:
    """Corrections for single rows; ``is_fresh`` if they were derived from the statistics as they are."""
    changes, sample = 0 if is_fresh else learned.changes, learned.statistics.sample
    limit = NO_LIMIT if changes or sample is None else sample.limit
    # a tempering of texts that has learned since depends on all rows
    is_live = (is_fresh or not learned.rows.tokenizers) and can_follow_counts(learned.corrections, learned)
    return BufferCorrections(learned.corrections, learned.rows, changes, limit, is_live)


def follow_standby(rows: RowKind[Any], standby: Standby) -> BufferCorrections | None:
    """The only standby set for single rows; None if there is not exactly one."""
    if len(standby.sets) != 1:
        return None
    [(block, corrections)] = standby.sets.items()
    return BufferCorrections(corrections, rows, 0, standby.limit, standby.is_live, block)


class BufferCorrections:
    """The corrections in use, and the rows that they do not depend on, or by counts alone.

    Live ones were fitted to the kept rows, with the evidence of all rows, which follows counts. A tempering of texts
    that has learned from answers depends on every row; when one is forgotten, it is as it was derived again.
    """

    def __init__(
        self,
        corrections: Corrections | None,  # None if there are too few rows for any
        rows: RowKind[Any],
        changes: int,  # kept rows that came or went since the corrections were derived
        limit: int,  # rows with such a hash, or a larger one, were not kept when they were derived
        is_live: bool,  # whether they depend on such rows by counts alone
        block: int | None = None,  # of kept rows that a standby set has never seen
    ) -> None:
        tokenizers = rows.tokenizers
        self.refresh_after, self.changes, self.limit, self.block = rows.parameters.refresh_after, changes, limit, block
        self.is_live = is_live
        self._derived = corrections  # with the tempering that they were derived with
        self.has_forgotten = block is not None  # whether they are not those that are derived from all rows
        self.is_behind = self.has_forgotten and self.is_live  # whether the evidence of all rows is to be updated
        self.counts: LiveCounts | None = None  # of all rows, if the evidence follows them
        self._unseen: dict[int, int] = {}  # how often each row was learned since, by its hash
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
        """Whether answers use the families of the columns."""
        return self.rows is None or self.tempers_columns

    def learn(self, model: OpenModel[RowT], row: RowT, group: int, row_hash: int) -> None:
        """Update the tempering by the model's answer to a row that it has not learned yet.

        Weights of single columns are left as they were derived.
        """
        if self.rows is None:
            return
        if self.tempers and not self.tempers_columns:
            tempering = self.rows.corrections.tempering
            self.rows.update_tempering(step_tempering(tempering, model.evidence(row), group))
        if len(self._unseen) < MAX_REMEMBERED_ROWS:
            self._unseen[row_hash] = self._unseen.get(row_hash, 0) + 1

    def forget(self, row_hash: int) -> bool:
        """Forget a row; return False if the corrections may depend on it, otherwise than by counts."""
        if self.rows is None:
            return True
        copies = self._unseen.pop(row_hash, 0)
        if copies > 1:
            self._unseen[row_hash] = copies - 1
        is_other = self.block == find_block(row_hash) if row_hash < self.limit else self.is_live
        if self._derived is not None and self.rows.corrections.tempering is not self._derived.tempering:
            self.rows.update_tempering(self._derived.tempering)
            self.has_forgotten = True
        self.has_forgotten = self.has_forgotten or is_other
        self.is_behind = self.is_live and self.has_forgotten
        return copies > 0 or is_other

    def use_evidence(self, corrections: Corrections) -> None:
        """Replace the evidence of all rows."""
        self.rows, self.is_behind = RowCorrections(corrections, self.rows.columns if self.rows else ()), False

    def log_probabilities(self, model: OpenModel[RowT], row: RowT) -> Array | None:
        """(classes,): log p(c | x) with the estimated class prior; None if the full statistics are needed."""
        if self.rows is None or self.tempers_columns:
            found = model.column_evidence(row)
            if found is None:
                return None
            if self.rows is not None:
                return self.rows.log_probabilities((), found, ())
            return log_normalise_row(found.values.sum(axis=1), model.prior.log_estimated)
        texts = model.list_texts(row) if self.finders else ()
        tokens = [finder.find(text) for finder, text in zip(self.finders, texts, strict=False)]
        evidence = model.evidence(row) if self.tempers else None
        cells = model.list_coded_cells(row)
        if self.rows.has_gap(cells):
            return self.rows.complete_row(model.make_cells([row]), evidence, tokens, model.prior.log_estimated())
        return self.rows.log_probabilities(cells, evidence, tokens)


def _tempers_columns(corrections: Corrections | None, n_texts: int) -> bool:
    """Whether tempering has a weight for every column."""
    return corrections is not None and not corrections.members and len(corrections.tempering.weights) > 1 + n_texts


class TokenFinder:
    """Finds the tokens of one text that corrections give a weight to."""

    def __init__(self, tokens: TokenFeatures, tokenizer: Tokenizer) -> None:
        self.reader = SingleTextReader(tokenizer)
        self.kernel = open_kernel(tokens.arena, tokens.ends, np.zeros((len(tokens.ends), 1)), tokenizer)
        nodes = self.kernel.first_nodes
        # (token numbers of the kernel,): the column of each token in the corrections, -1 for none
        self.column = np.full(max(2 * len(nodes), int(nodes.max(initial=0)) + 1), -1)
        self.column[nodes] = np.arange(len(nodes))
        self.tokens, self.pairs = tokens, make_pair_hasher(tokenizer) if len(tokens.pairs) else None

    def find(self, text: str | bytes) -> Array:
        """Indices of the distinct tokens, pairs of words and n-grams of characters of a text."""
        nodes, _ = self.kernel.find(*self.reader.prepare(text))
        columns = self.column[nodes[nodes < len(self.column)]]
        if self.pairs is not None:
            columns = np.append(columns, self.tokens.find_pairs(self.pairs.list_buckets(text)))
        if len(self.tokens.characters):
            arena, ends, _ = read_token_rows([text], self.reader.tokenizer)
            columns = np.append(columns, np.unique(self.tokens.split_words(arena, ends)[1]))
        return np.asarray(columns[columns >= 0])
