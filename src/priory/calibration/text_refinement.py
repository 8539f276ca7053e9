"""Refine a model of texts: a logistic regression over words, and over pairs and characters if they help.

Of few texts naive Bayes has the token shares of all of them as prior: words that no class has seen tell nothing.

    score(text, c)  =  sum over its n tokens of [log(N(t, c) + s p(t)) - log(s p(t)) - log(N(c) + s)] / sqrt(n)

N counts texts of unit length by class, p(t) are the shares of all texts together, and s is ten times what an average
class has. With the same number of virtual texts for each token instead, 20,000 tokens outweigh a few hundred words, and
each word that a class lacks is an argument for the class with the shorter texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence, RowFolds
from priory.calibration.corrections import CalibratableModel, Corrections, Tempering
from priory.calibration.logit_terms import to_classes, to_logits
from priory.calibration.members import NO_PAIRS, LinearMember, MemberPool
from priory.calibration.solvers import StrengthSearch, TokenRegression, search_strength, solve_regression
from priory.calibration.table_encoding import TableEncoding
from priory.calibration.tempering import MAX_ROWS_TO_TEMPER, fit_share_of_one, fit_tempering
from priory.core.logspace import log_normalise
from priory.core.sharding import space_evenly
from priory.core.sparse_rows import SparseRows, sum_entries, sum_entries_by_class
from priory.model.cells import Cells, TextCells, take_rows
from priory.model.document_model import DocumentModel
from priory.model.model_statistics import EvidenceTerms
from priory.text.token_bags import TokenBags
from priory.text.token_features import MIN_FEATURE_COUNT, TokenFeatures

MIN_SHARE_ONE_BY_ONE = 0.9  # of the rows: from this share on, the others are left out all at once
MAX_FEW_TEXTS = 2000  # with more texts, the counts of each class are enough
MAX_CELLS = 1 << 24  # entries times classes


def collect_text_terms(
    model: CalibratableModel, cells: Sequence[Cells], group: Array, weight: Array, fold: Array, models: Sequence[int]
) -> list[EvidenceTerms]:
    """Return, for each fold in ``models`` (-1 for none), the evidence of texts without that fold and without the row.

    Rows of weight one are left out one by one if the model can; others fold by fold, or all at once if they are few.
    """
    if isinstance(model, DocumentModel):
        compiled = model.leave_parts_out(cells, group, weight, [np.where(fold == k, weight, 0.0) for k in models])
        if compiled is not None:
            return compiled
    one_by_one = (weight == 1) & model.can_leave_one_out
    together = np.where(one_by_one.mean() >= MIN_SHARE_ONE_BY_ONE, 0, fold)  # (rows,): groups left out together
    found = []
    for k in models:
        # three kinds of rows: in the fold itself, left out one by one, and left out in groups
        out, rest = np.flatnonzero(fold == k), np.flatnonzero((fold != k) & ~one_by_one)
        without = model.forget(take_rows(cells, out), group[out], weight[out]) if len(out) else model
        pieces = [(out, without.evidence_terms(take_rows(cells, out)))] if len(out) else []
        single = np.flatnonzero((fold != k) & one_by_one)
        if len(single):
            pieces.append((single, without.leave_one_out_evidence(take_rows(cells, single), group[single])))
        for other in np.unique(together[rest]):
            rows = rest[together[rest] == other]
            some = take_rows(cells, rows)
            pieces.append((rows, without.forget(some, group[rows], weight[rows]).evidence_terms(some)))
        found.append(_put_together(pieces, len(group), without.estimated_log_prior()))
    return found


def _put_together(pieces: list[tuple[Array, EvidenceTerms]], rows: int, log_prior: Array) -> EvidenceTerms:
    """Combine the terms of pieces (rows, terms) into the terms of all rows.

    The class prior is equal for all rows: a prior without the row would give its class away.
    """
    _, first = pieces[0]
    values, lengths = np.empty((rows, *first.values.shape[1:])), np.empty((rows, *first.lengths.shape[1:]))
    for at, terms in pieces:
        values[at], lengths[at] = terms.values, terms.lengths
    values[:, :, 0] = log_prior
    return EvidenceTerms(values, lengths)


TOKEN_STRENGTHS = tuple(100 * 10 ** (-0.5 * k) for k in range(7))
"""From 100 to 0.1. Weaker ones fit the texts of one collection better, and the texts of another year or place worse."""

PairChoice = Literal["auto"] | bool


class FinerTokens(NamedTuple):
    """Which tokens a regression may weigh besides words."""

    pairs: PairChoice
    characters: bool  # n-grams of characters in words, if they help


NO_FINER_TOKENS = FinerTokens(pairs=False, characters=False)
MAX_FINER_WEIGHTS = 1 << 21  # pairs, or n-grams, times classes; with more, "auto" does without them
MAX_WORDS_TO_SPLIT = 100  # in a text on average; of longer ones characters cost much and tell little
MIN_TEXTS_FOR_FINER_TOKENS = 350  # fewer seldom show a clear gain, and trying takes as long as all else
MAX_TEXTS_TO_SCREEN, FOLDS_TO_SCREEN = 3000, 3  # finer tokens that do not help these are not tried on all
# Finer tokens must be better than words alone by this many standard errors, and this share of the loss of the base rate
# (where words nearly suffice, smaller gains do not transfer to other collections).
MIN_ERRORS_TO_GAIN = 2.5  # because the best of three is compared
MIN_SHARE_OF_BASE_LOSS = 0.02
KEPT_SMOOTHING = 1.0
MAX_CELLS_TO_TEMPER = 1 << 20  # rows times classes
TINY = 1e-30  # avoids a division by zero


class Reach(NamedTuple):
    """How far a regression goes from naive Bayes: far for texts like those learned, less for texts from elsewhere."""

    hold: float  # penalty on the direction of the mean text, relative to other directions
    share: float = 1.0  # of its weights that are used; one half is the geometric mean of both answers
    max_few: int = MAX_FEW_TEXTS  # texts, up to which the token shares of all of them are the prior


SAME_SOURCE, OTHER_TEXTS, OTHER_MAILBOXES = Reach(1.0), Reach(20.0), Reach(20.0, 0.5, 300)


def refine_texts(
    model: CalibratableModel,
    cells: Sequence[Cells],
    group: Array,
    order: RowFolds,
    judged: Array,
    finer: FinerTokens,
    reach: Reach,
) -> Corrections:
    """Fit corrections to texts that the model has learned; the folds ``judged`` are left out in turn."""
    [column] = cells
    assert isinstance(column, TextCells)
    assert isinstance(column.data, TokenBags)
    bags = [TextCells(replace(column.data, pairs=None))]
    terms = collect_text_terms(model, bags, group, order.weight, order.fold, [*judged.tolist(), -1])
    texts = LeftOutTexts(group, order.weight, [np.flatnonzero(order.fold == k) for k in judged], terms)
    few = _has_few_texts(model, column.data, order.weight, reach.max_few)
    chosen = _choose_features(TextFitter(texts, model, column.data, reach, few), finer)
    own = texts.judged, group[texts.judged]  # the index of the true class of each validation row
    refined = log_normalise(to_classes(chosen.search.left_out))[own]
    pool = MemberPool(np.ones(1), fit_share_of_one(refined, -texts.base_losses, order.weight[texts.judged]))
    tokens = (chosen.features,) if chosen.is_refined else ()
    tempering, no_codes = _take_parts(chosen.centre.tempering, 2), TableEncoding.of(cells, order.weight)
    log_prior = model.estimated_log_prior()
    evidence = CodeEvidence(tempering.weights[:1], log_prior, np.zeros((len(log_prior), 0)), np.zeros(0))
    return Corrections(tempering, no_codes, evidence, (chosen.make_member(len(log_prior)),), pool, tokens)


def _has_few_texts(model: CalibratableModel, bags: TokenBags, weight: Array, max_few: int) -> bool:
    """Whether texts are few, and given with the token of each, but for those that are alone in their class."""
    n = model.statistics.n
    is_small = n.sum() <= max_few and len(bags.ids) * len(n) <= MAX_CELLS
    return bool(is_small and n.sum() - weight.sum() <= (n == 1).sum())


def _choose_features(fitter: TextFitter, finer: FinerTokens) -> RefinedTexts:
    """Fit to words, or to words and finer tokens if that helps texts that are left out."""
    [words] = fitter.model.choose_token_features(1 if fitter.few else MIN_FEATURE_COUNT)
    known, bags = words, fitter.bags
    if finer.pairs and bags.pairs is not None:
        known = words.add_pairs(bags.pairs)
    if finer.pairs is True:
        return fitter.fit(known)
    if len(bags) < MIN_TEXTS_FOR_FINER_TOKENS:
        return fitter.fit(words)
    most = MAX_FINER_WEIGHTS // fitter.texts.n_classes
    candidates = [known] if 0 < len(known.pairs) <= most else []
    if finer.characters and len(bags.ids) <= MAX_WORDS_TO_SPLIT * len(bags) and len(bags.ends):
        spelled = words.add_characters(bags, most)
        candidates += [replace(spelled, pairs=f.pairs) for f in (words, *candidates) if len(spelled.characters)]
    if not candidates:
        return fitter.fit(words)
    screen = fitter.take_rows(MAX_TEXTS_TO_SCREEN).take_folds(FOLDS_TO_SCREEN)
    tried = [screen.fit(features) for features in (words, *candidates)]
    best = min(tried, key=screen.measure_loss)
    alone = fitter.fit(words)
    if best is tried[0]:
        return alone
    rich = fitter.fit(best.features)
    return rich if fitter.gains_clearly(rich, alone) else alone


@dataclass(frozen=True, eq=False)
class LeftOutTexts:
    """Texts with their classes and the out-of-sample scores of naive Bayes on their words."""

    group: Array  # (rows,)
    weight: Array  # (rows,)
    folds: list[Array]  # the rows of each validation fold
    terms: list[EvidenceTerms]  # without each of these folds, and without none; never with the row itself

    @property
    def n_classes(self) -> int:
        return int(self.terms[0].values.shape[1])

    @cached_property
    def judged(self) -> Array:
        """The rows of all validation folds."""
        return np.concatenate(self.folds)

    @cached_property
    def base_logits(self) -> Array:
        """(rows, classes): the log prior, without the row's fold."""
        logits = self.terms[-1].values[:, :, 0].copy()
        for rows, terms in zip(self.folds, self.terms, strict=False):
            logits[rows] = terms.values[rows, :, 0]
        return logits

    @property
    def base_prior(self) -> Array:
        """(classes,): the log prior of all rows."""
        return np.asarray(self.terms[-1].values[0, :, 0])

    @cached_property
    def base_losses(self) -> Array:
        """(validation rows,): the log loss of the base rate."""
        return -log_normalise(self.base_logits)[self.judged, self.group[self.judged]]

    def take_rows(self, rows: Array) -> LeftOutTexts:
        """Select some rows, in increasing order."""
        folds = [np.flatnonzero(np.isin(rows, fold)) for fold in self.folds]
        return LeftOutTexts(self.group[rows], self.weight[rows], folds, [terms[rows] for terms in self.terms])

    def list_learned(self) -> list[Array]:
        """Return the training rows of each model: without each validation fold, and all."""
        everything = np.arange(len(self.group))
        return [*(np.setdiff1d(everything, rows, assume_unique=True) for rows in self.folds), everything]


class TextCentre(NamedTuple):
    """Tempered naive Bayes, and the regression that is centred on it."""

    tempering: Tempering  # of class prior, words of all texts learned, and features of the sample (with pairs)
    kept_weights: Array | None  # (features, classes): the tempered evidence from the sample, with pairs only
    problem: TokenRegression

    @classmethod
    def of(
        cls,
        rows: SparseRows,
        texts: LeftOutTexts,
        terms: EvidenceTerms,
        learned: Array,
        kept: KeptEvidence | None,
        near: Tempering | None,
        common: Array,
    ) -> TextCentre:
        """Fit to the training rows ``learned``."""
        parts = terms if kept is None else _append_part(terms, kept.left_out)
        some = learned[: min(MAX_ROWS_TO_TEMPER, MAX_CELLS_TO_TEMPER // texts.n_classes)]
        tempering = fit_tempering(parts[some], texts.group[some], texts.weight[some], near is None, near)
        offset = np.ascontiguousarray(to_logits(tempering.logits(parts)), dtype=np.float32)
        kept_weights = None if kept is None else tempering.weights[2] * kept.table
        return cls(tempering, kept_weights, TokenRegression(rows, texts.group, texts.weight, offset, common, learned))


@dataclass(frozen=True, eq=False)
class RefinedTexts:
    """A regression on some token features, with its out-of-fold losses."""

    features: TokenFeatures
    centre: TextCentre  # of all rows
    search: StrengthSearch
    share: float  # of the regression that is used

    @classmethod
    def of(
        cls,
        texts: LeftOutTexts,
        model: CalibratableModel,
        cells: Sequence[Cells],
        features: TokenFeatures,
        reach: Reach,
        few: bool,
    ) -> RefinedTexts:
        """Fit to texts; ``few`` of them have the token shares as prior, unless pairs are counted."""
        [rows] = model.encode_tokens((features,), cells)
        *folds, everything = texts.list_learned()
        refined = drop_single_tokens(rows) if few else rows
        common = find_common_direction(refined, texts.weight, reach.hold)
        count: CountKept | None = KeptEvidence.of if features.n_tokens < len(features) else None
        if few and count is None:
            shares = measure_shares(rows, texts, everything)
            exponent, _ = choose_exponent(shares.left_out, texts.group, texts.weight, texts.base_prior)
            count = partial(measure_shares, exponent=exponent)

        def make_centre(terms: EvidenceTerms, learned: Array, near: Tempering | None) -> TextCentre:
            kept = None if count is None else count(rows, texts, learned)
            return TextCentre.of(refined, texts, terms, learned, kept, near, common)

        centre = make_centre(texts.terms[-1], everything, None)
        of_folds = [
            make_centre(terms, learned, centre.tempering).problem
            for terms, learned in zip(texts.terms, folds, strict=False)
        ]
        found = search_strength(of_folds, texts.folds, TOKEN_STRENGTHS)
        for problem, judged in zip(of_folds, texts.folds, strict=True):
            found.left_out[judged] = reach.share * found.left_out[judged] + (1 - reach.share) * problem.offset[judged]
        return cls(features, centre, found, reach.share)

    @property
    def is_refined(self) -> bool:
        """Whether token features have weights."""
        return bool(np.isfinite(self.search.strength)) or self.centre.kept_weights is not None

    def make_member(self, n_classes: int) -> LinearMember:
        """Return the regression on all rows as a member."""
        weights = np.zeros((1, n_classes))
        if self.is_refined:
            added = self.share * to_classes(solve_regression(self.centre.problem, self.search))
            added += 0.0 if self.centre.kept_weights is None else self.centre.kept_weights
            weights = np.concatenate([weights, added])
        return LinearMember(weights, NO_PAIRS, self.is_refined)


@dataclass(frozen=True, eq=False)
class TextFitter:
    """Fits regressions over tokens to the texts that a model keeps."""

    texts: LeftOutTexts
    model: CalibratableModel
    bags: TokenBags
    reach: Reach
    few: bool  # see `RefinedTexts.of`

    def fit(self, features: TokenFeatures) -> RefinedTexts:
        """Fit a regression over these tokens."""
        return RefinedTexts.of(self.texts, self.model, [TextCells(self.bags)], features, self.reach, self.few)

    def take_rows(self, max_rows: int) -> TextFitter:
        """Take rows that are spaced evenly, if there are too many."""
        if len(self.bags) <= max_rows:
            return self
        rows = space_evenly(len(self.bags), max_rows)
        return replace(self, texts=self.texts.take_rows(rows), bags=self.bags[rows])

    def take_folds(self, n_folds: int) -> TextFitter:
        """Judge by the first folds only."""
        texts = self.texts
        judged = replace(texts, folds=texts.folds[:n_folds], terms=[*texts.terms[:n_folds], texts.terms[-1]])
        return replace(self, texts=judged)

    def measure_loss(self, fitted: RefinedTexts) -> float:
        """The mean log loss of texts left out."""
        judged = self.texts.judged
        return float(np.average(fitted.search.losses[judged], weights=self.texts.weight[judged]))

    def gains_clearly(self, rich: RefinedTexts, simple: RefinedTexts) -> bool:
        """Whether the out-of-fold loss of ``rich`` is smaller by enough, and significantly."""
        weight = self.texts.weight[self.texts.judged]
        gain = (simple.search.losses - rich.search.losses)[self.texts.judged]
        mean = np.average(gain, weights=weight)
        error = np.sqrt(np.average((gain - mean) ** 2, weights=weight) / weight.sum())
        enough = MIN_SHARE_OF_BASE_LOSS * np.average(self.texts.base_losses, weights=weight)
        return bool(mean > max(MIN_ERRORS_TO_GAIN * error, enough))


def find_common_direction(rows: SparseRows, weight: Array, hold: float) -> Array:
    """(features,): the direction of the mean text; its length divides the prior variance along it by ``hold``."""
    mean = rows.multiply_transposed(weight[:, None])[:, 0]
    return np.asarray(mean * (np.sqrt(1 - 1 / hold) / max(float(np.linalg.norm(mean)), TINY)), dtype=np.float32)


class KeptEvidence(NamedTuple):
    """Naive Bayes on words and pairs, counted in the sample of texts that the model keeps."""

    table: Array  # (features, classes): log p(feature | c)
    left_out: Array  # (rows, classes): the score of each row, from the counts without it

    @classmethod
    def of(cls, rows: SparseRows, texts: LeftOutTexts, learned: Array) -> KeptEvidence:
        """Build from rows, some of them already learned."""
        weight = np.zeros(rows.n_rows)
        weight[learned] = texts.weight[learned]
        counts = rows.count_by_class(texts.group, weight, texts.n_classes)
        scores, remaining = rows.score_left_out(counts, texts.group, weight, KEPT_SMOOTHING)
        total, sizes = counts.sum(axis=0) + KEPT_SMOOTHING * len(counts), np.diff(rows.ends)
        # (rows, classes): the log of the total count of each class, without the row in its own class
        mass = np.tile(np.log(total), (len(weight), 1))
        own = np.arange(len(weight)), texts.group
        mass[own] = np.log(np.maximum(total[texts.group] - weight * sizes, KEPT_SMOOTHING))
        left_out = (scores - remaining[:, None] * mass) / np.sqrt(np.maximum(sizes, 1))[:, None]
        return cls(np.log(counts + KEPT_SMOOTHING) - np.log(total), left_out)


CountKept: TypeAlias = Callable[[SparseRows, LeftOutTexts, Array], KeptEvidence]  # of rows, some of them learned


def measure_shares(rows: SparseRows, texts: LeftOutTexts, learned: Array, exponent: float = 1.0) -> KeptEvidence:
    """Naive Bayes on the words of the sample with their shares as prior; the weight of its scores is ``exponent``."""
    weight = np.zeros(rows.n_rows)
    weight[learned] = texts.weight[learned]
    table, left_out = score_by_shares(rows, texts.group, weight, texts.n_classes)
    return KeptEvidence(exponent * table, exponent * left_out)


def drop_single_tokens(rows: SparseRows) -> SparseRows:
    """The same rows without the entries of columns that a single row has, which do not generalise."""
    shared = np.flatnonzero(np.bincount(rows.indices, minlength=rows.width) >= MIN_FEATURE_COUNT)
    kept = rows.take_columns(shared)
    return replace(kept, indices=shared[kept.indices].astype(np.int32), width=rows.width)


def _append_part(terms: EvidenceTerms, values: Array) -> EvidenceTerms:
    """Append a part with length one to the terms."""
    return EvidenceTerms(
        np.concatenate([terms.values, values[:, :, None]], axis=2),
        np.column_stack([terms.lengths, np.ones(len(values))]),
    )


def _take_parts(tempering: Tempering, parts: int) -> Tempering:
    """Return the tempering of the first parts."""
    every = len(tempering.weights)
    precision = np.concatenate([tempering.precision[:parts], tempering.precision[every : every + parts]])
    return replace(
        tempering, weights=tempering.weights[:parts], exponents=tempering.exponents[:parts], precision=precision
    )


# -- few texts: the token shares of all of them as prior ---------------------------------------------------------------


STRENGTH = 10.0  # of the shares, in average classes
SHARE_EXPONENTS = np.geomspace(0.01, 100.0, 41)
SHARE_ROUNDING = 1e-9


def score_by_shares(rows: SparseRows, group: Array, weight: Array, n_classes: int) -> tuple[Array, Array]:
    """What tokens say for each class, (tokens, classes), and the score of each text by the others, (texts, classes).

    Texts of positive weight are counted, all of them are scored; ``rows`` have unit length.
    """
    shape = rows.width, n_classes
    counts = sum_entries_by_class(rows.ends, rows.indices, rows.values.astype(float), group, weight, shape)
    total, shown = counts.sum(axis=0), counts.sum(axis=1)  # (classes,), (tokens,)
    if not total.any():  # no text has a token
        return np.zeros(shape), np.zeros((rows.n_rows, n_classes))
    strength, known = STRENGTH * total.mean(), np.flatnonzero(shown)
    table = np.zeros(shape)
    table[known] = np.log1p(counts[known] * (total.sum() / strength / shown[known])[:, None])
    table[known] -= np.log(total + strength)
    # without the text itself: what it adds to each of its tokens (entries,), and to its class (texts,)
    own, text = (
        np.repeat(weight, np.diff(rows.ends)) * rows.values,
        np.repeat(np.arange(rows.n_rows), np.diff(rows.ends)),
    )
    added, rest = sum_entries(rows.ends, own), shown[rows.indices] - own
    kept = rest > SHARE_ROUNDING  # tokens of other texts
    n_kept, text, tokens, own = sum_entries(rows.ends, kept), text[kept], rows.indices[kept], own[kept]
    others, mass = counts[tokens], np.repeat(total[None], rows.n_rows, axis=0)  # (entries, classes), (texts, classes)
    others[np.arange(len(text)), group[text]] -= own
    mass[np.arange(rows.n_rows), group] -= added
    others *= ((total.sum() - added)[text] / strength / rest[kept])[:, None]  # in virtual texts of the token
    gains = np.log1p(np.maximum(others, 0.0, out=others), out=others)
    sums = np.zeros(mass.shape)
    if len(gains):
        some = np.flatnonzero(n_kept)
        sums[some] = np.add.reduceat(gains, np.append(0, np.cumsum(n_kept[some]))[:-1])
    scores = sums - n_kept[:, None] * np.log(mass + strength)
    return table, scores / np.sqrt(np.maximum(n_kept, 1))[:, None]


def choose_exponent(
    scores: Array, group: Array, weight: Array | None = None, log_prior: Array | float = 0.0
) -> tuple[float, float]:
    """The exponent of scores (texts, classes) with the smallest log loss, and the loss; ``log_prior`` is (classes,).

    One of n + 2 labels counts as any class: that ten texts are answered right proves little.

    >>> choose_exponent(np.array([[9.0, 0.0], [0.0, 9.0]]), np.array([0, 1]))[0] < 0.3
    True
    """
    mistaken, rows = 1.0 / (len(group) + 2.0), np.arange(len(group))
    answers = [log_normalise(exponent * scores + log_prior) for exponent in SHARE_EXPONENTS]
    losses = [
        -np.average((1 - mistaken) * log_p[rows, group] + mistaken * log_p.mean(axis=1), weights=weight)
        for log_p in answers
    ]
    best = int(np.argmin(losses))
    return float(SHARE_EXPONENTS[best]), float(losses[best])
