"""The algebra of learning: what was learned is a frozen value, and every change makes a new one.

    fit       statistics(rows)
    learn     statistics + statistics(rows)
    forget    statistics - statistics(rows)
    a + b     statistics + statistics
    decay     factor * statistics

Corrections are a function of the statistics, which include a fair sample of the rows (`priory.model.cells`):

    fit, refresh    corrections are derived from the statistics
    learn           they stay in use, and their tempering learns from the answers to each batch before it is learned;
                    once the sample has changed by the share ``refresh_after`` they are derived anew
    forget, +       nothing that has seen a forgotten row is used: they are derived anew when they are needed
    decay           they stay in use

With ``memory=0`` no row is kept. Then ``fit`` and ``refresh`` fit corrections to the rows they are given; ``forget``
and ``+`` drop them, and ``stale`` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.calibration.corrections import CalibratedModel, Corrections
from priory.core.input_guard import check_sample_weight, describe_similar_labels, round_weights
from priory.core.logspace import log_normalise
from priory.core.sharding import check_memory, score_shards
from priory.core.statistics import find_members, find_unlearned_row
from priory.errors import DataError, NotLearnedError, StaleModelError
from priory.learning.row_kind import Batch, RowKind, warn_user
from priory.learning.standby import Standby, derive_standby
from priory.model.cells import RowSample, take_rows
from priory.model.model_statistics import ModelStatistics

ANSWERS_AT_A_TIME = 1 << 23  # rows x classes
Normaliser = Callable[[Array, Array], Array]  # makes log p(c | x) or p(c | x) of log p(c, x) and log p(c)
LabelEncoder = Callable[
    ..., tuple[Array, Array]
]  # encode(classes, strict): sorted labels, and the number of each row's


@dataclass(frozen=True, eq=False)
class Learned:
    """Statistics with the columns and parameters that they were counted with."""

    rows: RowKind[Any]
    statistics: ModelStatistics
    corrections: Corrections | None = None  # None: they follow from the statistics, or there are none
    changes: int = 0  # kept rows that came or went since the corrections were derived
    stale: tuple[str, ...] = ()  # corrections that were dropped because no rows are kept to derive them from
    clock: float = 1.0  # the product of all decays
    released: tuple[float, ...] = ()  # epsilons, if noise was added to the counts (`priory.learning.release`)
    standby: Standby = field(default_factory=Standby)  # answers while corrections are derived; not part of a file
    unlabelled: ModelStatistics | None = None  # of texts without label, as one class

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return self.statistics.classes

    def with_parameters(self, declared: RowKind[Any]) -> Learned:
        """A copy with the parameters of ``declared``."""
        rows = self.rows.with_parameters(declared)
        if rows is self.rows:
            return self
        is_same = repr(rows.parameters) == repr(self.rows.parameters)
        return replace(self, rows=rows, standby=self.standby if is_same else Standby())

    def model(self) -> Any:
        """The model of these statistics, uncorrected."""
        return self.rows.model(self.statistics)

    def find_corrections(self) -> Corrections | None:
        """The corrections in use: kept ones, or else a standby set, or else derived from the statistics."""
        if self.corrections is not None:
            return self.corrections
        return self.find_stand_in() or self.derive_corrections()

    def find_stand_in(self) -> Corrections | None:
        """The standby set in use: there is one after kept rows were forgotten, until corrections are derived."""
        is_derived = self.statistics.find_derived("corrections") is not None
        if self.corrections is not None or is_derived or len(self.standby.sets) != 1:
            return None
        [found] = self.standby.sets.values()
        return self.statistics.derive("stand-in", lambda _: found.follow_counts(self.model()), id(found))

    def prepare_standby(self) -> Learned:
        """A copy with its corrections and a standby set for each block of the kept rows; unchanged if it has them."""
        derived = self.derive_corrections()  # a tempering that has learned since depends on all rows
        if self.corrections is derived and len(self.standby.sets) > 1:
            return self
        ready = self.use_corrections(derived)
        return replace(ready, standby=derive_standby(ready))

    def derive_corrections(self) -> Corrections | None:
        """Derive corrections from the kept rows; None if there are none, or too few."""
        sample = self.statistics.sample
        if not self.rows.is_calibrated or sample is None:
            return None
        # cached in the statistics: corrections are a function of record and parameters
        key = repr(self.rows.parameters)
        return self.statistics.derive("corrections", lambda _: self.fit_corrections(sample), key)

    def fit_corrections(self, sample: RowSample) -> Corrections | None:
        """Corrections fitted to a sample of the rows that were learned, with the evidence of all rows.

        What is fitted to the sample is kept with it: a row outside of the sample changes the evidence alone.
        """
        model, calibrator, used = self.model(), self.rows.calibrator(), sample.take_used()

        def fit(_: RowSample) -> Corrections | None:
            return calibrator.fit(model, used.blocks, used.group, used.weight, used.estimate_rows())

        if self.reads_sample_alone():
            depends_on = repr(self.rows.parameters), self.classes.tolist(), self.rows.column_names
            fitted = sample.derive("corrections", fit, *depends_on)
        else:
            fitted = fit(sample)
        return None if fitted is None else fitted.follow_counts(model)

    def reads_sample_alone(self) -> bool:
        """Whether what corrections are fitted to is the kept rows alone."""
        sample = self.statistics.sample
        weight = None if sample is None else sample.weight[: sample.memory]
        return self.rows.calibrator().reads_sample_alone(self.model(), weight)

    def calibrated(self) -> CalibratedModel:
        """The model with its corrections."""
        return CalibratedModel(self.model(), self.find_corrections(), is_limited=self.rows.is_calibrated)

    @property
    def correction_names(self) -> tuple[str, ...]:
        """Names of the corrections applied to answers."""
        corrections = self.find_corrections()
        return () if corrections is None else corrections.names

    @property
    def needs_declared_classes(self) -> bool:
        """Whether classes are to be declared with the next rows, because their probabilities are."""
        return self.rows.parameters.has_class_prior() and len(self.statistics.declared) < len(self.classes)

    def has_fitting_corrections(self) -> bool:
        """Whether the kept corrections, if any, have the shapes of this model."""
        if self.corrections is None:
            return True
        model = self.model()
        return self.corrections.fits_model(len(model.classes), model.n_parts, model.encoded_widths)

    def use_corrections(self, corrections: Corrections | None) -> Learned:
        """A copy with corrections that were just derived."""
        return replace(self, corrections=corrections, changes=0, standby=Standby())

    def drop_corrections(self) -> Learned:
        """Drop the corrections: they are derived again on demand, or listed as ``stale`` without kept rows."""
        # with a sample nothing is lost: corrections follow from it
        lost = self.corrections if self.statistics.sample is None else None
        stale = self.stale if lost is None else tuple(dict.fromkeys((*self.stale, *lost.names)))
        return replace(self, corrections=None, changes=0, stale=stale)

    def join(self, other: Learned) -> tuple[RowKind[Any], ModelStatistics, ModelStatistics]:
        """The union of the columns, and both statistics over it; raises if they cannot be added."""
        rows = self.rows.join(other.rows)
        if self.clock != other.clock:
            raise StaleModelError(f"the models have decayed differently (clock_ {self.clock:g} and {other.clock:g}).")
        # blocks of columns are reordered to the common schema before adding
        return rows, rows.place(self.statistics, self.rows), rows.place(other.statistics, other.rows)

    def __add__(self, other: Learned) -> Learned:
        rows, own, more = self.join(other)
        total = settle(replace(self, rows=rows, released=self.released + other.released), own + more)
        assert total is not None
        both = [part for part in (self.unlabelled, other.unlabelled) if part is not None]
        others = sum(both[1:], both[0]) if both else None
        return replace(total.drop_corrections(), standby=Standby(), unlabelled=others)

    def prune(self) -> Learned:
        """A copy pruned to the declared limits, such as ``max_tokens``."""
        return replace(self, statistics=self.rows.prune(self.statistics))

    @property
    def is_exact(self) -> bool:
        """Whether every learned row counts in full, without decay and without noise."""
        return self.clock == 1.0 and not self.released

    def check_exact(self) -> None:
        """Raise an error if noise was added to the counts, so that nothing can be subtracted."""
        if self.released:
            raise NotLearnedError(
                "the counts of this release have noise, so that no row can be forgotten; forget the row in the model "
                "that was released, and release that again."
            )

    def __sub__(self, part: Learned) -> Learned | None:
        self.check_exact()
        rows, own, less = self.join(part)
        left = settle(replace(self, rows=rows), own - less)
        return None if left is None else replace(left.drop_corrections(), standby=Standby())


def settle(learned: Learned, statistics: ModelStatistics) -> Learned | None:
    """Replace the statistics, dropping classes and columns without rows; None if no class is left."""
    rows, left = learned.rows.settle(statistics)
    left = left.drop_absent_classes()
    return replace(learned, rows=rows, statistics=left) if len(left.classes) else None


# -- learning ----------------------------------------------------------------------------------------------------------


def fit(rows: RowKind[Any], X: object, encode: LabelEncoder, sample_weight: object = None) -> Learned:
    """Learn all rows, then derive corrections."""
    rows, batch = rows.read(X, "fit")
    classes, group = encode()
    weight = check_rows(batch, group, sample_weight)
    learned = make_part(rows, count_batch(rows, batch, classes, group, weight), classes)
    assert learned is not None  # some row has a weight
    if len(learned.classes) < len(classes):  # rows of weight zero, of classes that have no other rows
        kept = np.flatnonzero(find_members(classes, learned.classes)[group])
        batch, group = batch.take_rows(kept), np.searchsorted(learned.classes, classes[group[kept]])
        weight = None if weight is None else weight[kept]
    learned.rows.check_learned(learned.statistics)
    if learned.rows.calibrates:
        _warn_of_similar_labels(learned)
    if not learned.rows.is_calibrated or learned.statistics.sample is not None:
        return learned.use_corrections(learned.derive_corrections())
    # nothing is kept: corrections can be fitted only now
    sample, _ = sample_learned_rows(learned, batch, group, weight)
    return learned.use_corrections(learned.fit_corrections(sample))


def _warn_of_similar_labels(learned: Learned) -> None:
    """Warn of labels that may mean the same: "Spam" beside "spam" is probably one class."""
    classes, counts = learned.classes.tolist(), learned.statistics.n.tolist()
    if isinstance(classes[0], str) and (similar := describe_similar_labels(dict(zip(classes, counts, strict=True)))):
        warn_user(similar)


def count(rows: RowKind[Any], X: object, encode: LabelEncoder, sample_weight: object = None) -> Learned | None:
    """Count rows into a part; None if their total weight is 0 and they declare no class."""
    weighs_nothing = sample_weight is not None and not np.any(np.asarray(sample_weight, dtype=float))
    rows, batch = rows.read(X, "learn" if rows.n_columns else "fit")
    classes, group = encode()
    weight = check_rows(batch, group, None if weighs_nothing else sample_weight)
    counted = count_batch(rows, batch, classes, group, weight)
    # zero counts: such a part may still declare classes
    return make_part(rows, counted - counted if weighs_nothing else counted, classes)


def make_part(rows: RowKind[Any], counted: ModelStatistics, classes: Array) -> Learned | None:
    """Make a part of first counts, with classes that are declared if their probabilities are."""
    counted = counted.declare_classes(classes) if rows.parameters.has_class_prior() else counted
    return settle(Learned(rows, counted), counted)


def count_batch(rows: RowKind[Any], batch: Any, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
    """Count a batch, after checking that its statistics, about two dozen numbers for a class and column, fit."""
    what = f"{len(classes):,} classes x {rows.n_columns:,} columns"
    check_memory(24 * 8 * len(classes) * rows.n_columns, what, "use fewer classes or columns")
    return rows.count(batch, classes, group, weight)


def check_rows(batch: Batch, group: Array, sample_weight: Any) -> Array | None:
    """Return the weights (rows,); raise unless there is one label and one weight for each row."""
    if len(group) != batch.rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {batch.rows}, y {len(group)}."
        )
    weight = check_sample_weight(sample_weight, len(group))
    return None if weight is None else round_weights(weight)


def learn_more(
    before: Learned | None,
    declared: RowKind[Any],
    X: object,
    encode: LabelEncoder,
    sample_weight: object = None,
    *,
    classes: Array | None = None,
    strict: bool = False,
    tempers: bool = False,
) -> Learned | None:
    """Learn more rows; ``classes`` are declared with them, and all of them have to be if ``strict``.

    Corrections that are in use stay in use until enough of the kept rows have changed; with ``tempers`` they learn from
    the batch, and are derived at once if there are none.
    """
    if before is None:
        rows, batch = declared.read(X, "fit")
        known = classes  # None to use its own labels
        if classes is None and strict:
            raise DataError("classes must be passed on the first call to partial_fit.")
    else:
        rows, batch = before.rows.read(X, "learn", before.statistics)
        known = _resolve_more_classes(classes, before.classes, strict)
    labels, group = encode() if known is None else encode(known, strict)
    weight = check_rows(batch, group, sample_weight)
    more = count_batch(rows, batch, labels, group, weight)
    if before is not None and tempers:
        before = _step_tempering(before, batch, labels, group, weight)
    base = Learned(rows, more) if before is None else replace(before, rows=rows)
    total = more if before is None else rows.place(before.statistics, before.rows) + more
    if rows.parameters.has_class_prior():
        total = total.declare_classes(labels)
    elif classes is not None:
        total = total.declare_classes(classes)
    after = settle(base, rows.prune(total))
    if after is None:
        return None
    after = _follow_sample(before, after)
    return after.use_corrections(after.derive_corrections()) if tempers and after.corrections is None else after


def _step_tempering(before: Learned, batch: Any, labels: Array, group: Array, weight: Array | None) -> Learned:
    """Predict, then learn: the tempering of the corrections learns from the answers to a new batch."""
    corrections = before.derive_corrections() if before.corrections is None else before.corrections
    # positions of rows with a known class and a weight; others cannot be scored
    used = np.flatnonzero(find_members(labels, before.classes)[group] & (weight is None or weight > 0))
    if corrections is None or not len(used):
        return before
    # (used,): class indices in the order of the classes already learned
    own = np.searchsorted(before.classes, labels[group[used]])
    cells, counts = take_rows(before.rows.read_cells(batch), used), None if weight is None else weight[used]
    updated = before.rows.calibrator().update(before.model(), corrections, cells, own, counts)
    return replace(before, corrections=updated)


def _resolve_more_classes(classes: Array | None, known: Array, strict: bool) -> Array:
    """The classes of a later batch: known and newly declared ones."""
    if classes is None:
        return known
    if not strict:
        return np.union1d(known, classes)
    if not np.array_equal(classes, known):
        raise DataError(f"`classes={classes}` is not the same as on last call to partial_fit, was: {known}")
    return known


def _follow_sample(before: Learned | None, after: Learned) -> Learned:
    """Count changes of the kept rows; drop the corrections when they exceed ``refresh_after``."""
    if not after.rows.is_calibrated:
        return after
    # without a sample no changes are counted, and the corrections stay in use
    changes, n_kept = after.changes, 0
    sample = after.statistics.sample
    if sample is not None:
        n_kept = len(sample)
        known = None if before is None else before.statistics.sample
        changes += n_kept if known is None else sample.count_changes(known)
    if not after.has_fitting_corrections() or changes > after.rows.parameters.refresh_after * n_kept:
        return after.drop_corrections()
    return replace(after, changes=changes) if changes else after


def forget(
    before: Learned, X: object, encode: LabelEncoder, sample_weight: object = None, learned_at: float | None = None
) -> Learned | None:
    """Unlearn rows; None if nothing is left."""
    before.check_exact()
    rows, batch = before.rows.read(X, "forget", before.statistics)
    labels, group = encode(before.classes, False)
    weight = check_rows(batch, group, sample_weight)
    _check_known_classes(before.classes, labels, group, weight)
    if before.clock != 1.0 and learned_at is None:
        raise StaleModelError(
            f"the model has decayed (clock_ is {before.clock:g}); call forget(..., learned_at=<clock_ then>)."
        )
    # the decay since the rows were learned: they weigh this much now
    scale = 1.0 if learned_at is None or before.clock == 1.0 else before.clock / learned_at
    total = rows.place(before.statistics, before.rows)

    def subtract(n_rows: int) -> ModelStatistics:
        """The statistics without the first rows."""
        some = batch if n_rows == len(group) else batch.take_rows(np.arange(n_rows))
        part = count_batch(rows, some, labels, group[:n_rows], None if weight is None else weight[:n_rows])
        return total - (part if scale == 1.0 else scale * part)

    try:
        left = subtract(len(group))
    except NotLearnedError as found:
        # bisection over prefixes of the rows: the first prefix that cannot be subtracted ends with the row
        row, error = find_unlearned_row(subtract, len(group), found)
        cell, label = rows.describe_cell(batch, row, error), labels.tolist()[group[row]]
        reason = f"{cell} was not learned in class {label!r}, or not this often"
        located = NotLearnedError(
            f"row {row}: {reason}; forget only rows that were learned; the model is unchanged.", row=row
        )
        located.column = error.column
        raise located from None
    after = settle(replace(before, rows=rows), left)
    if after is None:
        return None
    forgotten = rows.hash_rows(rows.read_cells(batch), labels, group).tolist() if before.standby.sets else ()
    return replace(after.drop_corrections(), standby=before.standby.keep_unseen(forgotten))


def _check_known_classes(classes: Array, labels: Array, group: Array, weight: Array | None) -> None:
    """Raise an error for the first row of a class that was never learned."""
    used = np.unique(group if weight is None else group[weight > 0])
    # used: indices of classes with at least one row of positive weight
    unknown = labels[used[~find_members(labels[used], classes)]]
    if len(unknown):
        raise NotLearnedError(
            f"no row of class {unknown.tolist()[0]!r} was ever learned; there is nothing to forget.",
            row=int(np.argmax(labels[group] == unknown[0])),
        )


def decay(before: Learned, factor: float) -> Learned:
    """Multiply the weight of everything learned so far."""
    if not 0 < factor <= 1:
        raise DataError(f"factor is {factor!r}; it must be greater than 0 and at most 1.")
    if factor == 1:
        return before
    others = None if before.unlabelled is None else factor * before.unlabelled
    return replace(before, statistics=factor * before.statistics, clock=before.clock * factor, unlabelled=others)


def derive_anew(
    before: Learned, X: object = None, encode: LabelEncoder | None = None, sample_weight: object = None
) -> Learned:
    """Derive the corrections anew: from the rows that are kept, or from learned rows that are given."""
    if X is not None and encode is not None:
        batch, group, weight = read_learned_rows(before, X, encode, sample_weight)
        corrections = before.fit_corrections(sample_learned_rows(before, batch, group, weight)[0])
    elif before.statistics.sample is None:
        raise StaleModelError("the model keeps no rows; call refresh(X, y) with rows that it has learned.")
    else:
        corrections = before.derive_corrections()
    return replace(before.use_corrections(corrections), stale=())


def finish(total: Learned) -> Learned:
    """Run the last steps of ``fit`` on a sum of parts."""
    whole, rows, sample = total, total.rows, total.statistics.sample
    rows.check_learned(total.statistics)
    if rows.is_calibrated and not rows.memory and sample is not None:  # its rows are not kept any longer
        whole = replace(whole, statistics=replace(total.statistics, sample=None))
        return whole.use_corrections(whole.fit_corrections(sample))
    return whole.use_corrections(whole.derive_corrections())


# -- rows that were learned --------------------------------------------------------------------------------------------


def read_learned_rows(
    learned: Learned, X: object, encode: LabelEncoder, sample_weight: object = None
) -> tuple[Any, Array, Array | None]:
    """Read learned rows: the batch, the class of each row (rows,) and the weights (rows,)."""
    batch = learned.rows.read(X, "answer", learned.statistics)[1]
    group = encode(learned.classes)[1]
    return batch, group, check_rows(batch, group, sample_weight)


def sample_learned_rows(learned: Learned, batch: Batch, group: Array, weight: Array | None) -> tuple[RowSample, Array]:
    """Sample learned rows that the model does not keep; also return their positions in the batch."""
    read = learned.rows.read_cells(batch)
    return learned.rows.sample(read, learned.classes, group, weight, learned.rows.usual_memory)


# -- answering ---------------------------------------------------------------------------------------------------------


def answer(learned: Learned, X: object, normaliser: Normaliser | None = None) -> Array:
    """(rows, classes): log p(c, x), or its normalised form, computed in parts to bound memory."""
    batch = learned.rows.read(X, "answer", learned.statistics)[1]
    shape = batch.rows, len(learned.classes)
    what = f"the answers to {shape[0]:,} rows x {shape[1]:,} classes"
    check_memory(8 * shape[0] * shape[1], what, "ask for fewer rows at a time, or for labels with predict")
    answers = np.empty(shape)
    for part, found in _answer_parts(learned, batch, normaliser):
        answers[part] = found
    return answers


def find_best(learned: Learned, X: object) -> Array:
    """(rows,): index of the most probable class of each row."""
    batch = learned.rows.read(X, "answer", learned.statistics)[1]
    best = np.empty(batch.rows, dtype=np.int64)
    for part, found in _answer_parts(learned, batch, log_normalise):
        best[part] = np.argmax(found, axis=1)
    return best


def _answer_parts(learned: Learned, batch: Any, normaliser: Normaliser | None) -> Iterator[tuple[slice, Array]]:
    """Yield slices of rows with at most ``ANSWERS_AT_A_TIME`` answers, and these (rows, classes)."""
    step = max(1, ANSWERS_AT_A_TIME // max(len(learned.classes), 1))
    for start in range(0, max(batch.rows, 1), step):
        part = slice(start, min(start + step, batch.rows))
        rows = batch if batch.rows <= step else batch.take_rows(np.arange(part.start, part.stop))
        yield part, _answer_part(learned, rows, normaliser)


def _answer_part(learned: Learned, batch: Batch, normaliser: Normaliser | None) -> Array:
    model, cells = learned.model(), learned.rows.read_cells(batch)
    if normaliser is None:
        return np.asarray(model.log_joint(cells))
    prior = model.log_prior()
    if learned.rows.is_calibrated:
        return normaliser(learned.rows.answer(learned, cells), prior)
    # (rows, classes), normalised by row shards on all cores
    joint = model.log_joint(cells)
    return score_shards(lambda part: normaliser(joint[part], prior), *joint.shape)
