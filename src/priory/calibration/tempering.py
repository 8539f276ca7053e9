"""Tempering: how much weight each part of a model deserves.

Naive Bayes counts correlated evidence twice, so its probabilities are too close to 0 and 1. Tempering gives one weight
to each part (a column, a text, the class prior), and to texts an exponent of their length:

    log p(c | x)  =  Σ_b  w_b len_b(x)^(-g_b) log p(x_b | c)  -  log Z,      w_b >= 0

Weights are not negative: a part that carries no information is worth nothing, and less than nothing would be a claim
that the rows cannot support. A priori the weights are near their common mean, and each is the more probable the nearer
it is to zero. Tempered naive Bayes is the centre of all regressions: `TemperedCentre` fits it for every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeCounts, CodeEvidence
from priory.calibration.corrections import MAX_EXPONENT, MAX_WEIGHT, Tempering
from priory.calibration.encoded_rows import EncodedRows, look_up_codes
from priory.calibration.logit_terms import to_logits
from priory.calibration.members import MemberPool
from priory.calibration.solvers import minimise_cost
from priory.core.logspace import log_normalise, normalise
from priory.model.model_statistics import EvidenceTerms

PRECISION_ABOUT_MEAN = 1.0  # of weights about their common mean
PRECISION_OF_SHIFT = 4.0  # of the shift (w_0 - 1) log p(c), in nats
WEIGHT_COST = 0.25  # rate of the exponential prior of a weight
USUAL_EXPONENT, PRECISION_OF_EXPONENT = 0.5, 100.0  # strong prior: a few unusual texts must not decide
MAX_TEMPERING_STEPS = 60
EXPONENTS = np.geomspace(0.01, 1.0, 21)  # of all evidence, for few rows
PRECISION_OF_LOG_EXPONENT = 0.1  # about zero: weak


def fit_tempering(
    terms: EvidenceTerms, group: Array, weight: Array, with_information: bool = True, near: Tempering | None = None
) -> Tempering:
    """Return the MAP tempering; ``terms`` come from models that have not learned the row.

    ``near`` is where the search starts. The precision, which further updates need, includes the Fisher information of
    the rows only ``with_information``.
    """
    evidence = PartEvidence.of(terms, group, weight)
    parts = terms.values.shape[2]
    # theta is (weights, exponents), both (parts,); spread is the prior precision about centre
    spread = np.zeros(2 * parts)
    log_prior = evidence.values[0, :, 0]  # centred, and equal for all rows
    spread[0], spread[parts:] = PRECISION_OF_SHIFT * (1 + float(log_prior @ log_prior)), 1.0
    centre = np.zeros(2 * parts)
    centre[0] = 1.0
    centre[parts + evidence.texts], spread[parts + evidence.texts] = USUAL_EXPONENT, PRECISION_OF_EXPONENT

    def penalty(theta: Array) -> tuple[float, Array]:
        """Minus the log prior, and its gradient."""
        away, columns = theta - centre, theta[1:parts]
        slope = spread * away
        about_mean = columns - columns.mean() if parts > 1 else columns
        cost = 0.5 * slope @ away + 0.5 * PRECISION_ABOUT_MEAN * about_mean @ about_mean + WEIGHT_COST * columns.sum()
        slope[1:parts] += PRECISION_ABOUT_MEAN * about_mean + WEIGHT_COST
        return float(cost), slope

    start = np.concatenate([[1.0], np.full(parts - 1, 1 / np.sqrt(max(parts - 1, 1))), np.zeros(parts)])
    start[parts + evidence.texts] = USUAL_EXPONENT
    theta = evidence.minimise(penalty, start if near is None else np.concatenate([near.weights, near.exponents]))
    precision = np.repeat([PRECISION_ABOUT_MEAN, 1.0], parts)
    precision[0] = spread[0]
    if with_information:
        precision += evidence.information(theta)
    return Tempering(theta[:parts], theta[parts:], precision)


def fit_one_exponent(terms: EvidenceTerms, group: Array, weight: Array) -> Tempering:
    """Return a tempering with one weight for all parts but the class prior, by the left-out log loss of few rows.

    The loss is smoothed: each row counts a little as a row of any class, because even if all left-out rows are answered
    right, the next one may not be.
    """
    values = terms.relative_to_best
    prior, evidence, n = values[:, :, 0], values[:, :, 1:].sum(axis=2), weight.sum()
    target = np.full(prior.shape, 1 / (n + 2) / prior.shape[1])  # (rows, classes)
    target[np.arange(len(group)), group] += 1 - 1 / (n + 2)
    losses = [-weight @ (target * log_normalise(prior + power * evidence)).sum(axis=1) for power in EXPONENTS]
    penalty = PRECISION_OF_LOG_EXPONENT / 2 * np.log(EXPONENTS) ** 2
    tempering = Tempering.prior(values.shape[2])
    tempering.weights[1:] = EXPONENTS[int(np.argmin(losses + penalty))]
    return tempering


class PartEvidence(NamedTuple):
    """The evidence of parts for rows of known classes, centred over the classes."""

    values: Array  # (rows, classes, parts)
    log_lengths: Array  # (rows, texts)
    texts: Array  # (texts,): the parts that have lengths
    group: Array  # (rows,)
    weight: Array  # (rows,)

    @classmethod
    def of(cls, terms: EvidenceTerms, group: Array, weight: Array) -> PartEvidence:
        values = terms.relative_to_best - terms.relative_to_best.mean(axis=1, keepdims=True)
        texts = np.flatnonzero((terms.lengths != 1.0).any(axis=0))
        precise = len(texts) > 0  # log likelihoods of long texts need double precision
        return cls(
            values if precise else values.astype(np.float32), np.log(terms.lengths[:, texts]), texts, group, weight
        )

    def minimise(self, penalty: Callable[[Array], tuple[float, Array]], start: Array) -> Array:
        """Return the weights (not negative) and exponents with the smallest log loss plus penalty."""
        parts = self.values.shape[2]
        rows, flat = np.arange(len(self.group)), self.values.reshape(-1, parts)
        columns = np.ones(parts, dtype=self.values.dtype)  # one for parts without a length
        columns[self.texts] = 0.0

        def cost(theta: Array) -> tuple[float, Array]:
            # (rows, classes): columns in one product, then each text with its own power of the length
            logits = (flat @ (columns * theta[:parts]).astype(flat.dtype)).reshape(self.values.shape[:2]).astype(float)
            shrink = np.exp(-self.log_lengths * theta[parts + self.texts])
            for t, part in enumerate(self.texts):
                logits += theta[part] * shrink[:, t, None] * self.values[:, :, part]
            answer = log_normalise(logits)
            wrong = np.exp(answer)
            wrong[rows, self.group] -= 1
            wrong *= self.weight[:, None]
            slope = np.zeros(2 * parts)  # the gradient with respect to weights and exponents
            slope[:parts] = flat.T @ wrong.astype(flat.dtype).ravel()
            for t, part in enumerate(self.texts):
                said = (wrong * self.values[:, :, part]).sum(axis=1) * shrink[:, t]
                slope[part] = said.sum()
                slope[parts + part] = -theta[part] * said @ self.log_lengths[:, t]
            added, pull = penalty(theta)
            return float(added - self.weight @ answer[rows, self.group]), slope + pull

        # scale the variables so that the curvature is about equal in all directions
        unit = 1 / np.sqrt(1 + self.information(start)) if len(self.texts) else np.ones(2 * parts)
        lower = np.repeat([0.0, -MAX_EXPONENT], parts)
        upper = np.repeat([MAX_WEIGHT, MAX_EXPONENT], parts)

        def scaled_cost(z: Array) -> tuple[float, Array]:
            value, slope = cost(z * unit)
            return value, slope * unit

        tolerance = 1e-12 if parts <= 3 else 1e-6
        return unit * minimise_cost(
            scaled_cost, start / unit, tolerance, MAX_TEMPERING_STEPS, lower / unit, upper / unit
        )

    def information(self, theta: Array) -> Array:
        """(2 parts,): the diagonal of the Fisher information about weights and exponents."""
        parts = self.values.shape[2]
        lengths = np.zeros((len(self.group), parts))
        lengths[:, self.texts] = self.log_lengths
        values = self.values * np.exp(-lengths * theta[parts:])[:, None]
        # (rows, classes, 1); the information about a weight is the variance of its evidence under p
        p = np.exp(log_normalise(values @ theta[:parts]))[:, :, None]
        spread = (p * values**2).sum(axis=1) - (p * values).sum(axis=1) ** 2  # (rows, parts)
        return np.concatenate([self.weight @ spread, self.weight @ (spread * (theta[:parts] * lengths) ** 2)])


# -- the pool of members ----------------------------------------------------------------------------------------------

EXPONENT_PRECISION = 0.1  # of the Gaussian prior of the log exponents
MIN_EXPONENT = 1e-3  # members with less are dropped
MAX_EXPONENT_STEPS, TOLERANCE = 200, 1e-9
MAX_SHARE_STEPS = 200
PRIOR_ROWS = 0.1  # pseudo-counts of the pool and of the base rate
# Of the gain over the base rate, in nats, the charge is put down to chance; the rest is the more credible, the larger
# it is against the scale.
CHARGE, SCALE = 4.0, 2.0


def pool_answers(answers: Array, exponents: Array) -> Array:
    """(rows, classes): the geometric mean of members' log probabilities (members, rows, classes)."""
    return log_normalise(np.tensordot(exponents, answers, axes=1))


def fit_pool(answers: Sequence[Array], group: Array, weight: Array) -> MemberPool:
    """Fit the pool to the log probabilities (rows, classes) of the base rate and of each member."""
    rows, others = np.arange(len(group)), np.stack(answers[1:])
    exponents = _fit_exponents(others, group, weight)
    exponents = np.where(exponents < MIN_EXPONENT, 0.0, exponents)
    exponents /= exponents.sum()
    pooled = pool_answers(others, exponents)
    return MemberPool(exponents, fit_share(pooled[rows, group], answers[0][rows, group], weight))


def _fit_exponents(answers: Array, group: Array, weight: Array) -> Array:
    """(members,): the MAP exponents, with a Gaussian prior of their logs."""
    rows = np.arange(len(group))

    def cost(log_exponents: Array) -> tuple[float, Array]:
        exponents = normalise(log_exponents)
        pooled = pool_answers(answers, exponents)
        # wrong (rows, classes) is p - y; slope (members,) is the gradient with respect to the exponents
        wrong = np.exp(pooled)
        wrong[rows, group] -= 1
        slope = np.einsum("nc,mnc->m", wrong * weight[:, None], answers)
        loss = EXPONENT_PRECISION / 2 * log_exponents @ log_exponents - weight @ pooled[rows, group]
        return float(loss), EXPONENT_PRECISION * log_exponents + exponents * (slope - exponents @ slope)

    return normalise(minimise_cost(cost, np.zeros(len(answers)), TOLERANCE, MAX_EXPONENT_STEPS))


def fit_share(pooled: Array, base: Array, weight: Array) -> float:
    """Fit the share of the pool from the log probabilities of the true classes.

    While the pool has gained only a few nats over the base rate, the rows may be noise: the base rate then gets
    pseudo-counts for up to all of the rows.
    """
    _, nats = _fit_mixture(pooled, base, weight, PRIOR_ROWS)
    noise_rows = weight.sum() * np.exp(-max(nats - CHARGE, 0.0) / SCALE)
    return _fit_mixture(pooled, base, weight, PRIOR_ROWS + noise_rows)[0]


def fit_share_of_one(answers: Array, base: Array, weight: Array) -> float:
    """`fit_share` of a single regression, which gains less by chance than a pool: with the probability of signal."""
    share, nats = _fit_mixture(answers, base, weight, PRIOR_ROWS)
    return float(share / (1 + np.exp((CHARGE - nats) / SCALE)))


def _fit_mixture(pooled: Array, base: Array, weight: Array, base_rows: float) -> tuple[float, float]:
    """The share by expectation maximisation, with pseudo-counts of the base rate, and the gain over it in nats."""
    gain, share = np.exp(np.clip(pooled - base, -700, 700)), 0.5
    for _ in range(MAX_SHARE_STEPS):
        # E step: the expected number of rows that the pool explains; M step: the new share
        own = float(weight @ (share * gain / (share * gain + 1 - share)))
        new = (own + PRIOR_ROWS) / (weight.sum() + base_rows + PRIOR_ROWS)
        done, share = abs(new - share) < 1e-5, new
        if done:
            break
    return share, float(weight @ np.log(share * gain + 1 - share))


# -- tempered naive Bayes of every fold --------------------------------------------------------------------------------

MAX_ROWS_TO_TEMPER = 2500  # enough for a few dozen weights


@dataclass(frozen=True, eq=False)
class FitRows:
    """The rows that corrections are fitted to, with codes, counts, folds and the evidence of texts."""

    rows: EncodedRows
    counts: CodeCounts
    group: Array  # (rows,)
    weight: Array  # (rows,)
    fold: Array  # (rows,)
    judged: Array  # (validation folds,): the folds that are left out in turn
    texts: list[EvidenceTerms]  # evidence of texts without each validation fold, and without none; never with the row
    column_parts: Array  # (columns,): the index of each column among the parts of the model
    text_parts: Array  # (texts,)
    n_parts: int  # columns and texts, without the class prior

    @property
    def n_classes(self) -> int:
        return len(self.counts.class_total)

    @property
    def models(self) -> list[tuple[int, ...]]:
        """The folds that each model leaves out: one each, and none for the last model."""
        return [*((int(k),) for k in self.judged), ()]

    @property
    def model_of_row(self) -> Array:
        """(rows,): the index of the model that leaves the row out, or -1."""
        place = np.full(self.counts.folds.shape[0], -1)
        place[self.judged] = np.arange(len(self.judged))
        return place[self.fold]

    @property
    def is_alone(self) -> Array:
        """(rows,): whether no other fold has rows of the class, so that the model without the row does not know it."""
        return np.asarray((self.counts.class_total - self.counts.class_folds)[self.fold, self.group] <= 0)

    @property
    def varied_numbers(self) -> Array:
        """(varied numbers,): the columns of numbers that vary, by their place among all of numbers."""
        is_number = self.counts.encoding.is_number
        return (np.cumsum(is_number) - 1)[self.rows.varied[is_number[self.rows.varied]]]

    @property
    def varied_parts(self) -> Array:
        """(parts,): the class prior, the columns that vary, and the texts, among all parts of the model."""
        return np.concatenate([[0], 1 + self.column_parts[self.rows.varied], 1 + self.text_parts])

    def weigh_rare(self, m: int, column_weights: Array) -> Array:
        """(rows, classes): the weighed evidence of rare labels, without the folds of model ``m`` and the row's."""
        encoding, found = self.counts.encoding, np.zeros((len(self.group), self.n_classes))
        weights = np.where(encoding.is_rare, column_weights[encoding.column_of_code], 0.0)
        for fold in np.unique(self.fold) if encoding.is_rare.any() else ():
            at = np.flatnonzero(self.fold == fold)
            table = weights * self.counts.log_ratios(*self.models[m], int(fold))
            found[at] = look_up_codes(table, self.rows.codes[at], encoding.starts)
        return found

    def make_terms(self, m: int, rows: Array) -> EvidenceTerms:
        """Return the evidence of the parts that vary, without the folds of model ``m`` and without each row's fold."""
        varied, n_texts = self.rows.varied, len(self.text_parts)
        values = np.zeros((len(rows), self.n_classes, 1 + len(varied) + n_texts))
        lengths = np.ones((len(rows), values.shape[2]))
        values[:, :, 0] = self.counts.log_prior(*self.models[m])
        starts, own = self.counts.encoding.starts[varied], self.rows.codes[np.ix_(rows, varied)]
        for fold in np.unique(self.fold[rows]):
            at = np.flatnonzero(self.fold[rows] == fold)
            # (classes, codes + 1): the last entry, 0, is for unknown labels (code -1)
            table = np.pad(self.counts.log_ratios(*self.models[m], int(fold)), ((0, 0), (0, 1)))
            cells = table[:, np.where(own[at] >= 0, own[at] + starts, -1)]  # (classes, rows, columns)
            values[at, :, 1 : 1 + len(varied)] = cells.transpose(1, 0, 2)
        if n_texts:
            values[:, :, -n_texts:] = self.texts[m].values[rows][:, :, 1:]
            lengths[:, -n_texts:] = self.texts[m].lengths[rows][:, 1:]
        return EvidenceTerms(values, lengths)


class Centre(NamedTuple):
    """Tempered naive Bayes of every model: without each validation fold, and of all rows."""

    temperings: list[Tempering]
    evidence: CodeEvidence  # of the model of all rows
    tables: Array  # (models, classes, 1 + codes): tempered log prior, and tempered evidence of each code
    text_logits: Array  # (rows, models, classes)
    logits: Array  # (rows, models, logits): sum of prior, codes and texts


def fit_centre(given: FitRows) -> Centre:
    """Fit the tempering of each model to the rows that it does not leave out."""
    temperings, tables, text_logits, logits = [], [], [], []
    for m, folds in enumerate(given.models):
        rows = np.flatnonzero(~np.isin(given.fold, folds) & ~given.is_alone)[:MAX_ROWS_TO_TEMPER]
        terms = given.make_terms(m, rows)
        narrow = fit_tempering(terms, given.group[rows], given.weight[rows], with_information=not folds)
        tempering = narrow.place_parts(given.varied_parts, 1 + given.n_parts)
        column_weights = tempering.weights[np.append(0, 1 + given.column_parts)]
        prior, ratios = given.counts.log_prior(*folds), given.counts.log_ratios(*folds)
        evidence = CodeEvidence(column_weights, prior, ratios, given.counts.shares)
        encoding = given.counts.encoding
        tables.append((evidence.temper_codes(encoding) - evidence.temper_rare(encoding)).T)
        temperings.append(tempering)
        no_texts = np.zeros((len(given.group), given.n_classes))
        weighed = tempering.weigh_texts(given.texts[m], given.text_parts).sum(axis=2) if given.texts else no_texts
        text_logits.append(weighed + given.weigh_rare(m, column_weights[1:]))
        codes = look_up_codes(tables[-1][:, 1:], given.rows.codes, given.counts.encoding.starts)
        logits.append(to_logits(tables[-1][:, 0] + codes + text_logits[-1]))
    return Centre(temperings, evidence, np.stack(tables), np.stack(text_logits, axis=1), np.stack(logits, axis=1))


def measure_importance(given: FitRows, centre: Centre) -> Array:
    """(models, columns): the tempered evidence of each column for the true class, summed over the rows."""
    starts = given.counts.encoding.starts
    found = []
    for m, folds in enumerate(given.models):
        counts = given.counts.without(*folds)[0]
        found.append(np.add.reduceat((counts * centre.tables[m][:, 1:]).sum(axis=0), starts[:-1]))
    return np.stack(found)
