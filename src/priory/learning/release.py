"""Release a model of a table with differential privacy: counts with discrete noise over declared domains.

Two tables that differ in one row give the same release with probabilities that differ by a factor of at most e^epsilon.
One row adds one to the count of its class and to one cell of each column, so the budget is split and the parts add up:

    classes     a fifth        the number of rows of each class
    tempering   a fifth        how much the columns deserve to be believed, chosen on the kept rows (if there are any)
    columns     the rest       each column an equal part: its values (or bins) and missing cells, in each class

The noise is a discrete Laplace distribution, sampled exactly in integers, so no bits of floating-point numbers leak.
Everything after the noise is post-processing: counts are projected to the noisy number of rows, a column counts for as
much of its evidence as exceeds what noise alone would show, and bins are few where rows are.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.calibration.corrections import CalibratedModel, Corrections, Tempering
from priory.core.statistics import find_members
from priory.core.value_counts import ValueCounts
from priory.errors import DataError
from priory.families.histogram import Histogram
from priory.learning.learned import Learned
from priory.learning.row_kind import Parameters
from priory.learning.table_rows import TableRows
from priory.model.model_statistics import ModelStatistics
from priory.tables.dates import split_part_name

Domain = Sequence[Any]  # the possible labels of a column, or the bounds (low, high) of its numbers
MIN_EPSILON = 0.0001
CLASS_SHARE, TEMPERING_SHARE = Fraction(1, 5), Fraction(1, 5)
TRIED_FACTORS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
MIN_RELEASED_BINS, MAX_RELEASED_BINS, ROWS_PER_NOISE = 3, 32, 6.0
BIN_BITS = 40  # precision of the centres of bins
LOSS_UNIT = 1000  # integers for a nat of log loss
MAX_LOSS, MAX_NOISE_PER_ROW, MARGIN_OF_LIMIT = 5.0, 0.005, 1.2  # losses count up to so many nats
MIN_GAIN = 0.6  # of each next temperature, in units of the noise: a model of noise answers with the base rate
NOISE_DEVIATIONS = 1.0  # by how many standard deviations a column has to differ from noise


@dataclass(frozen=True)
class Noise:
    """Discrete Laplace noise; ``source`` is the operating system's, unless an experiment is to be repeatable."""

    source: Random

    def draw(self, epsilon: Fraction) -> int:
        """An integer z with probability proportional to e^(-epsilon |z|), exactly.

        Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy.
        """
        s, t = epsilon.numerator, epsilon.denominator
        while True:
            # a geometric number of steps of size 1 / t, in parts of e^-1, divided by s
            u = self.source.randrange(t)
            if not self._is_exp(Fraction(u, t)):
                continue
            whole = 0
            while self._is_exp(Fraction(1)):
                whole += 1
            size, is_negative = (u + t * whole) // s, self.source.randrange(2)
            if size or not is_negative:
                return -size if is_negative else size

    def _is_exp(self, gamma: Fraction) -> bool:
        """True with probability e^-gamma, for gamma from 0 to 1: the series of e^-gamma as coin flips."""
        k = 1
        while self.source.randrange(gamma.denominator * k) < gamma.numerator:
            k += 1
        return k % 2 == 1

    def add(self, counts: Array, epsilon: Fraction) -> Array:
        """Counts, each with noise of its own."""
        return np.reshape([int(n) + self.draw(epsilon) for n in counts.ravel().tolist()], counts.shape).astype(float)

    def choose(self, costs: Sequence[int], sensitivity: int, epsilon: Fraction) -> int:
        """The position of the smallest cost after noise (report noisy max); later ones have to be better than noise."""
        scale = epsilon / (2 * sensitivity)
        noisy = [cost + self.draw(scale) + math.ceil(i * MIN_GAIN / scale) for i, cost in enumerate(costs)]
        return noisy.index(min(noisy))


def release_counts(
    learned: Learned, epsilon: float, domains: Mapping[str, Domain], classes: Sequence[Any], source: Random | None
) -> Learned:
    """A model with noisy counts over declared domains; raises DataError for what was not declared."""
    if not isinstance(epsilon, int | float | np.number) or not MIN_EPSILON <= epsilon < math.inf:
        raise DataError(f"epsilon is {epsilon!r}; give a number from {MIN_EPSILON}, such as 1.")
    _check_releasable(learned, domains, classes)
    noise, budget = Noise(secrets.SystemRandom() if source is None else source), Fraction(str(float(epsilon)))
    columns = _list_counts(learned)  # in the order of the table
    for_tempering = TEMPERING_SHARE * budget if learned.statistics.sample is not None else Fraction(0)
    for_column = (budget - CLASS_SHARE * budget - for_tempering) / max(len(columns), 1)
    labels = np.array(sorted(classes))
    exact = _take_classes(learned, labels, learned.statistics.n)
    n = _shrink_to_equal(noise.add(exact, CLASS_SHARE * budget), _find_variance(CLASS_SHARE * budget))
    parts, weights, families = {}, {}, {}
    for name, (kind, counts) in columns.items():
        groups = _take_classes(learned, labels, counts.counts.astype(float))
        values, placed = _place_values(kind, counts, groups, domains[name], _choose_bins(n, for_column))
        missing = exact[:, None] - groups.sum(axis=1, keepdims=True)
        noisy = noise.add(np.hstack([placed, np.maximum(missing, 0.0)]), for_column)
        weights[name] = _measure_signal(noisy, n, for_column)
        parts[name] = ValueCounts.of(values, np.floor(_project(noisy, n))[:, :-1])
        families[name] = "categorical" if kind == "label" else Histogram(bits=BIN_BITS)
    made = _build(learned, families, parts, labels, n, list(weights.values()), epsilon)
    return made if learned.statistics.sample is None else _temper(made, learned, noise, for_tempering)


# -- what is declared --------------------------------------------------------------------------------------------------


def _check_releasable(learned: Learned, domains: Mapping[str, Domain], classes: Sequence[Any]) -> None:
    if not isinstance(learned.rows, TableRows):
        raise DataError("words have no declared domain; only models of tables can be released.")
    if learned.released:
        raise DataError("the counts have noise already; release the model that was released.")
    if learned.clock != 1.0:
        raise DataError("rows have decayed; release a model in which every row counts once.")
    if not _are_labels(classes) or len(set(classes)) < 2:
        raise DataError("the classes are not declared; give all possible ones, which are not read from the rows.")
    known = {name for block in learned.rows.schema.blocks for name in block.names}
    if empty := [name for name in learned.rows.schema.names if name not in known]:
        raise DataError(f"column {empty[0]!r} has no values; train without it.")
    for block in learned.rows.schema.blocks:
        for name in block.names:
            if block.kind == "text" or split_part_name(name)[1]:
                raise DataError(f"column {name!r} holds {block.kind}s or dates without a domain; train without it.")
            domain = domains[name] if isinstance(domains, Mapping) and name in domains else None
            if not (_are_labels(domain) if block.kind == "label" else _are_bounds(domain)):
                wanted = "a list of its possible labels" if block.kind == "label" else "its bounds (low, high)"
                given = "no declared domain" if domain is None else f"the domain {domain!r}"
                raise DataError(f"column {name!r} has {given}; give {wanted}, which are not read from rows.")


def _are_labels(domain: Any) -> bool:
    """Whether these are strings, or other scalars."""
    is_list = isinstance(domain, list | tuple | set | np.ndarray)
    return is_list and len({isinstance(v, str) for v in domain}) == 1 and all(map(np.isscalar, domain))


def _are_bounds(pair: Any) -> bool:
    return _are_labels(pair) and len(pair) == 2 and not isinstance(pair[0], str) and 0 < pair[1] - pair[0] < math.inf


def _list_counts(learned: Learned) -> dict[str, tuple[str, ValueCounts]]:
    """The kind of each column, and the counts of its values."""
    rows, found = learned.rows, dict[str, tuple[str, ValueCounts]]()
    assert isinstance(rows, TableRows)
    for block, records in zip(rows.schema.blocks, learned.statistics.parts, strict=True):
        counts = next((record for record in reversed(records) if isinstance(record, tuple)), None)
        if counts is None:
            raise DataError(f"column {block.names[0]!r} has no counts of values: {block.list_families()} was declared.")
        if any((own.counts % 1).any() for own in counts):
            raise DataError("rows have weights; release a model in which every row counts once.")
        found |= {name: (block.kind, own) for name, own in zip(block.names, counts, strict=True)}
    return {name: found[name] for name in rows.schema.names if name in found}


def _take_classes(learned: Learned, labels: Array, counts: Array) -> Array:
    """Rows of an array (classes, ...) for the declared classes; rows of other classes are left out."""
    wide = np.zeros((len(labels), *counts.shape[1:]))
    for c, label in enumerate(learned.classes.tolist()):
        wide[labels == label] = counts[c]
    return wide


def _choose_bins(n: Array, epsilon: Fraction) -> int:
    """Few enough bins that the rows of one exceed the noise, by the noisy number of rows."""
    return int(np.clip(n.sum() / len(n) * float(epsilon) / ROWS_PER_NOISE, MIN_RELEASED_BINS, MAX_RELEASED_BINS))


def _place_values(kind: str, counts: ValueCounts, groups: Array, domain: Domain, bins: int) -> tuple[Array, Array]:
    """The values of a domain (labels, or centres of bins), and the counts (classes, values) there."""
    if kind == "label":
        values = np.array(sorted(set(domain)))
        places = ValueCounts(values, np.zeros((1, len(values)))).find_positions(counts.values)
    else:
        low, high = map(float, domain)
        spacing = ((np.arange(bins) + 0.5) / bins) ** (2 if low == 0 else 1)  # amounts and counts crowd near zero
        values = low + spacing * (high - low)
        places = np.searchsorted((values[1:] + values[:-1]) / 2, counts.values, side="right")  # the nearest value
    placed = np.zeros((len(groups), len(values) + 1))  # the last column is for labels outside the domain
    np.add.at(placed.T, places, groups.T)
    return values, placed[:, :-1]


# -- after the noise ---------------------------------------------------------------------------------------------------


def _measure_signal(noisy: Array, n: Array, epsilon: Fraction) -> float:
    """The share of the differences between classes that noise and chance alone would not show, from 0 to 1."""
    pooled = np.maximum(noisy.sum(axis=0), 0.0)
    expected = n[:, None] * pooled / max(pooled.sum(), 1.0)  # (classes, cells) if all classes were alike
    # sums of squares of counts, and of Laplace noise, whose squares have the variance 5 v^2
    spread = noisy.size + NOISE_DEVIATIONS * math.sqrt(5 * noisy.size)
    chance = expected.sum() + spread * _find_variance(epsilon)
    return float(max(0.0, 1 - chance / max(((noisy - expected) ** 2).sum(), 1e-300)))


def _find_variance(epsilon: Fraction) -> float:
    """The variance of discrete Laplace noise: 2 q / (1 - q)^2 with q = e^-epsilon."""
    return 2 * math.exp(-float(epsilon)) / math.expm1(-float(epsilon)) ** 2


def _shrink_to_equal(n: Array, variance: float) -> Array:
    """Noisy numbers of rows (classes,), shrunk to equal ones as far as noise explains the differences; at least 1."""
    mean = max(float(n.mean()), 1.0)
    apart = ((n - mean) ** 2).sum()
    share = max(0.0, 1 - (len(n) - 1) * variance / apart) if apart > 0 else 0.0
    return np.maximum(np.rint(mean + share * (n - mean)), 1.0)


def _project(noisy: Array, n: Array) -> Array:
    """The nearest counts (classes, cells) that are not negative and sum to ``n`` in each class."""
    ordered = -np.sort(-noisy, axis=1)
    over = (np.cumsum(ordered, axis=1) - n[:, None]) / np.arange(1, noisy.shape[1] + 1)
    last = (ordered > over).sum(axis=1) - 1  # of the cells that stay positive
    return np.maximum(noisy - over[np.arange(len(n)), last][:, None], 0.0)


def _build(
    learned: Learned,
    families: Mapping[str, Any],
    parts: Mapping[str, ValueCounts],
    labels: Array,
    n: Array,
    weights: Sequence[float],
    epsilon: float,
) -> Learned:
    """A model of the released counts, tempered by how much of each column is signal."""
    changed = {"families": dict(families), "memory": 0, "calibrate": "loo", "alpha": None}
    declared = Parameters(**{**vars(learned.rows.parameters), **changed})
    example = {name: ["" if families[name] == "categorical" else 0.0] for name in families}
    rows = TableRows(declared).read(example, "fit")[0]
    records = tuple((tuple(parts[name] for name in block.names),) for block in rows.schema.blocks)
    made = Learned(rows, ModelStatistics(labels, n, records), released=(float(epsilon),))
    return made.use_corrections(_make_tempering(weights))


def _make_tempering(weights: Sequence[float]) -> Corrections:
    """Corrections that weigh the columns, and leave the class prior as it is."""
    parts = 1 + len(weights)
    return Corrections(Tempering(np.array([1.0, *weights]), np.zeros(parts), np.ones(2 * parts)))


def _choose_limit(n: Array, n_rows: float, epsilon: float) -> int:
    """The largest loss of one row that counts: less where noise would hide the differences of the sums.

    It is large enough that to be sure of the commonest class costs more than the base rate.
    """
    share = n / n.sum()
    least = MARGIN_OF_LIMIT * float(-(share * np.log(share)).sum()) / max(1 - share.max(), 0.05)
    return math.ceil(LOSS_UNIT * max(least, min(MAX_NOISE_PER_ROW * n_rows * epsilon, MAX_LOSS)))


def _temper(made: Learned, learned: Learned, noise: Noise, epsilon: Fraction) -> Learned:
    """Choose one factor for all weights by the log loss on the kept rows, each counted once, with noise."""
    assert learned.statistics.sample is not None
    sample = learned.statistics.sample.take_used()  # with the reserve, one row more may push out many
    assert made.corrections is not None
    assert isinstance(made.rows, TableRows)
    assert isinstance(learned.rows, TableRows)
    old = learned.rows.schema.blocks
    cells = [block.gather_cells(old, sample.blocks, len(sample)) for block in made.rows.schema.blocks]
    labels = learned.classes[sample.group]
    known = np.flatnonzero(find_members(labels, made.classes))
    truth = np.searchsorted(made.classes, labels[known])
    limit = _choose_limit(made.statistics.n, min(float(made.statistics.n.sum()), sample.memory), float(epsilon))
    costs, tried = [], []
    for factor in TRIED_FACTORS:
        tried.append(_make_tempering((factor * made.corrections.tempering.weights[1:]).tolist()))
        log_p = CalibratedModel(made.model(), tried[-1], is_limited=True).log_probabilities(cells)
        costs.append(int(np.minimum(-LOSS_UNIT * log_p[known, truth], limit).astype(np.int64).sum()))
    # one row more adds its loss, and may take away the loss of another, which it has pushed out of the sample
    return made.use_corrections(tried[noise.choose(costs, limit, epsilon)])
