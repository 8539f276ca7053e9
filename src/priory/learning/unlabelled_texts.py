"""Texts without labels: whether they are used is decided by left-out loss, and nothing but counts and bags is kept.

The record of a model has the token totals of its texts without label, and a fair sample of them as bags of tokens, just
as of labelled texts. Whether and how they are used follows from the record: the best candidate (`token_tables`), alone
or pooled with the answers that the model would give without them, is used only if it is better than those by more than
one standard error, text by text, each left out with its fold; its share is the probability that the gain is no chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy import ndarray as Array

from priory.calibration.tempering import fit_share_of_one
from priory.calibration.text_refinement import choose_exponent
from priory.calibration.token_tables import (
    LeftOutAnswers,
    MarkedTexts,
    TokenTable,
    answer_by_candidates,
    assign_text_folds,
    choose_shared_tokens,
    mark_tokens,
)
from priory.core.logspace import log_normalise
from priory.core.sharding import space_evenly
from priory.learning.learned import Learned
from priory.learning.left_out_scores import count_left_out, subtract_part
from priory.model.cells import RowSample, take_rows
from priory.text.token_bags import TokenBags, make_empty_bags

MIN_TEXTS = 4  # with fewer labelled texts there is nothing to choose by
MAX_TEXTS_TO_CHOOSE = 2000  # labelled texts: with more of them, others add nothing
MAX_OTHERS_TO_CHOOSE = 5000  # texts without label that candidates are compared on
MIN_ERRORS = 1.0  # standard errors by which a candidate has to be better
# the same without texts without label, and where labelled texts are not better than the base rate by one
MANY_ERRORS = 2.0
MIN_NATS = 0.005  # and at least, in nats
SHARES = (1.0, 0.5)  # of a candidate in the pooled answer; without other texts the second only


@dataclass(frozen=True, eq=False)
class TextChoice:
    """What was decided about texts without label."""

    table: TokenTable | None  # None: they are not used
    note: str
    share: float = 0.0  # of the table in the pooled answer
    trust: float = 0.0  # share of the pooled answer, against the one without the table

    def pool_answers(self, own: Array, base: Array) -> Array:
        """(texts, classes): log p(c | text) from the table's answers and from those without it."""
        pooled = log_normalise(self.share * own + (1 - self.share) * base)
        return np.asarray(np.logaddexp(pooled + np.log(self.trust), base + np.log1p(-self.trust)))


def take_bags(sample: RowSample | None, max_texts: int) -> TokenBags:
    """At most so many bags of a sample."""
    if sample is None or not len(sample):
        return make_empty_bags(0)
    [column] = take_rows(sample.blocks, space_evenly(len(sample), max_texts))
    assert isinstance(column.data, TokenBags)
    return column.data


def choose_texts(learned: Learned) -> TextChoice:
    """Compare candidates with the model as it is, on labelled texts that are left out."""
    sample, others = learned.statistics.sample, learned.unlabelled
    n_others = 0.0 if others is None else float(others.n.sum())
    name = f"{n_others:,.0f} texts without label"
    if sample is None or len(sample) < MIN_TEXTS or len(np.unique(sample.group)) < 2:
        return TextChoice(None, f"{name}: not used, there are too few labelled texts to judge by")
    if len(sample) > MAX_TEXTS_TO_CHOOSE:
        return TextChoice(None, f"{name}: not used, there are enough labelled texts ({len(sample):,})")
    labelled, kept = take_bags(sample, len(sample)), None if others is None else others.sample
    features, fold = choose_shared_tokens(labelled, take_bags(kept, len(kept or ()))), assign_text_folds(sample.group)

    def read(max_texts: int) -> MarkedTexts:
        pair = labelled, take_bags(kept, max_texts)
        known, more = (mark_tokens(features, bags, learned.rows.vocabulary) for bags in pair)  # type: ignore[attr-defined]
        return MarkedTexts(known, sample.group.astype(np.int64), sample.weight, more, len(learned.classes))

    base, group = answer_left_out_folds(learned, sample, fold), sample.group
    # what an exponent alone would gain is no merit of other texts
    tempered = log_normalise(choose_exponent(base, group)[0] * base)
    base_losses = min(find_losses(base, group), find_losses(tempered, group), key=np.mean)
    base_rate = np.log(len(group) / np.bincount(group))[group]  # (texts,): the losses of the class shares
    has_signal = measure_gain(base_rate - base_losses) > MIN_ERRORS
    note, least = f"{name}: not used, no gain beyond chance", np.inf
    chosen: tuple[LeftOutAnswers, float, float] | None = None
    for answers in answer_by_candidates(read(MAX_OTHERS_TO_CHOOSE), fold):
        for share in SHARES if answers.candidate.weight else SHARES[1:]:
            pooled = log_normalise(share * answers.log_probabilities + (1 - share) * base)
            losses = find_losses(pooled, group)
            gain = base_losses - losses
            errors = MIN_ERRORS if answers.candidate.weight and has_signal else MANY_ERRORS
            if losses.mean() < least and gain.mean() > MIN_NATS and measure_gain(gain) > errors:
                trust = fit_share_of_one(-losses, -find_losses(base, group), np.ones(len(group)))
                least, chosen = float(losses.mean()), (answers, share, trust)
                change = (
                    f"left-out log loss {base_losses.mean():.3f} -> {least:.3f}, by {measure_gain(gain):.1f} errors"
                )
                note = f"{name}: used ({answers.candidate}; {change})"
    table = None if chosen is None else TokenTable.of(read(len(kept or ())), features, chosen[0])
    return TextChoice(table, note, *(() if chosen is None else chosen[1:]))


def measure_gain(gain: Array) -> float:
    """The mean of gains (texts,) in units of its standard error."""
    return float(gain.mean() / max(gain.std() / np.sqrt(len(gain)), 1e-12))


def find_losses(log_probabilities: Array, group: Array) -> Array:
    """(texts,): the log loss of each answer."""
    return np.asarray(-log_probabilities[np.arange(len(group)), group])


def answer_left_out_folds(learned: Learned, sample: RowSample, fold: Array) -> Array:
    """(texts, classes): log p(c | x) of kept texts by the model without their fold, and without other texts."""
    answers = np.empty((len(sample), len(learned.classes)))
    for k in range(int(fold.max()) + 1):
        out = np.flatnonzero(fold == k)
        left_out = sample.take(out)
        rest = replace(subtract_part(learned, count_left_out(learned, left_out)), unlabelled=None)
        answers[out] = rest.calibrated().log_probabilities(left_out.blocks)
    return answers
