"""Find columns that predict the label too well: alone, by a jump in the score, or by their missing cells.

*Skill* is the share of the base rate's errors that a column avoids: 0 for always answering the most common class, 1 for
a copy of the target. All scores are leave-one-out in closed form. A strong column may simply be a good one: the
severity says how strong it is, and the advice is to ask whether it is known when the model is used. Constant columns
are found as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy import ndarray as Array

from priory.leakage import findings
from priory.leakage.audit_tables import AuditColumn, AuditData, BinnedNaiveBayes, ColumnVote
from priory.leakage.findings import Effect, Finding, Severity, Suspicion

OBSERVED_COPY_SKILL = 0.99  # a copy of the label has at least this observed skill,
CERTAIN_COPY_SKILL = 0.9  # and significantly more than this skill
STRONG_SKILL = 0.5  # skill of a column that should be checked
ERROR_JUMP_FACTOR = 2  # the score jumps if a column reduces the errors by this factor
MAX_SUBSET_SHARE = 0.25  # of the columns: so few that do as well as all should be checked
SUBSET_WORSE_P_VALUE = 0.05  # below this p-value a subset is worse than all columns

AVAILABILITY_ADVICE = "Is it known before the outcome, when the model is used? If not, leave it out."


def find(data: AuditData) -> Iterator[Suspicion]:
    for column in data.columns:
        yield from _find_constant_column(data, column)
    if data.labels is None or data.votes is None:
        return
    votes, labels = data.votes, data.labels
    together = votes.mark_correct_rows()
    for j in range(len(data.columns)):
        yield from _find_strong_column(data, votes, j, together)
    for alike in _group_columns_by_gaps(data):
        yield from _find_informative_gaps(data, votes, alike, labels, together)
    yield from _find_sufficient_subset(data, votes, together)


def skill_p_value(errors: float, n_rows: int, base_rate: float, skill: float) -> float:
    """Return the p-value of so few errors under the hypothesis that the skill is at most ``skill``."""
    return findings.binomial_tail(n_rows - errors, n_rows, 1 - (1 - skill) * (1 - base_rate))


def _find_strong_column(data: AuditData, votes: BinnedNaiveBayes, j: int, all_correct: Array) -> Iterator[Suspicion]:
    """Find a column that is nearly always right alone, is better than all others together, or halves their errors."""
    name, n, base = data.columns[j].name, data.n_train, data.base_rate
    alone = votes.mark_correct_by_column(j)  # (rows,)
    errors = int(n - alone.sum())
    strong = skill_p_value(errors, n, base, STRONG_SKILL)
    rest = votes.mark_correct_rows([j]) if strong <= findings.FALSE_ALARM_LEVEL else all_correct
    wrong, wrong_together = float((~rest).sum()), float((~all_correct).sum())
    # three reasons, each with its p-value; the smallest is reported, with Bonferroni's correction
    chances = {
        "is nearly a copy of the label": skill_p_value(errors, n, base, CERTAIN_COPY_SKILL),
        "predicts the label better than all others together": max(strong, findings.mcnemar_p_value(alone, rest)),
        "makes the score jump": max(
            strong, findings.binomial_tail(wrong, wrong + wrong_together, ERROR_JUMP_FACTOR / (1 + ERROR_JUMP_FACTOR))
        ),
    }
    strength = min(chances, key=lambda reason: chances[reason])
    sure = len(chances) * len(votes.votes) * next(iter(chances.values())) <= findings.FALSE_ALARM_LEVEL

    def finding() -> Finding:
        bits, _ = findings.measure_association(votes.votes[j].counts)
        return Finding(
            Severity.HIGH if sure and errors <= (1 - OBSERVED_COPY_SKILL) * n * (1 - base) else Severity.MEDIUM,
            "column",
            f"column {name!r} {strength}: alone it is right in {alone.mean():.1%} of the rows (base rate {base:.1%}, "
            f"{bits:.2f} bits), all other columns together in {rest.mean():.1%}",
            AVAILABILITY_ADVICE,
            columns=(name,),
            examples=_format_largest_bins(data, votes, j),
            interval=findings.clopper_pearson_interval(n - errors, n),
            effect=Effect.of(all_correct, rest),
        )

    yield Suspicion(min(1.0, len(chances) * chances[strength]), finding)


def _format_largest_bins(data: AuditData, votes: BinnedNaiveBayes, j: int) -> tuple[str, ...]:
    """Describe the largest bins of a column: a value, and the most common class of its rows."""
    counts = votes.votes[j].counts
    shown = []
    for b in np.argsort(-counts.sum(axis=0), kind="stable")[:3]:
        column, total = counts[:, b], counts[:, b].sum()
        if total:
            row = int(np.argmax(votes.votes[j].codes[: data.n_train] == b))
            cell = data.columns[j].format_cell(row) or "missing"
            c = int(np.argmax(column))
            near = "like " if data.columns[j].numbers is not None and cell != "missing" else ""
            shown.append(f"{near}{cell}: {data.classes[c]} in {column[c] / total:.1%} of {int(total):,} rows")
    return tuple(shown)


def _find_informative_gaps(
    data: AuditData, votes: BinnedNaiveBayes, column_indices: list[int], labels: Array, all_correct: Array
) -> Iterator[Suspicion]:
    """Find cells that are filled for one class and missing for another: perhaps filled in after the outcome."""
    gaps = data.columns[column_indices[0]].is_missing[: data.n_train]
    vote = ColumnVote.of(gaps.astype(np.int64), 2, labels, votes.prior)
    bits, p = findings.measure_association(vote.counts)
    filled = vote.counts[:, 0] / np.maximum(vote.counts.sum(axis=1), 1)  # (classes,)
    names = tuple(data.columns[j].name for j in column_indices)

    def finding() -> Finding:
        most, least = int(np.argmax(filled)), int(np.argmin(filled))
        sure = [_separation_p_value(vote.counts, skill) <= findings.FALSE_ALARM_LEVEL for skill in (STRONG_SKILL, 0.0)]
        after = "; perhaps filled in after the outcome" if filled[least] == 0 else ""
        return Finding(
            Severity.HIGH if sure[0] else Severity.MEDIUM if sure[1] else Severity.LOW,
            "missing",
            f"missing cells of {_format_names(names)} predict the label ({bits:.2f} bits): {filled[most]:.1%} are "
            f"filled in class {data.classes[most]!r}, {filled[least]:.1%} in class {data.classes[least]!r}{after}",
            "Find out why they are missing. " + AVAILABILITY_ADVICE,
            columns=names,
            interval=findings.clopper_pearson_interval(vote.counts[most, 0], vote.counts[most].sum()),
            effect=Effect.of(all_correct, votes.mark_correct_rows(column_indices)),
        )

    yield Suspicion(p, finding)


def _separation_p_value(counts: Array, skill: float) -> float:
    """Return the p-value of the hypothesis that no class is separated from the others with more than this skill."""
    # rest (classes, bins): rows of all other classes; right (classes,): correct one-versus-rest answers
    n, rest = counts.sum(), counts.sum(axis=0) - counts
    right = np.maximum(counts, rest).sum(axis=1)
    base = np.maximum(counts.sum(axis=1), rest.sum(axis=1)) / n
    chances = [skill_p_value(n - own, int(n), usual, skill) for own, usual in zip(right, base, strict=True)]
    return min(1.0, len(chances) * min(chances))


def _group_columns_by_gaps(data: AuditData) -> Iterator[list[int]]:
    """Group the columns with missing cells by the rows in which they are missing."""
    alike: dict[bytes, list[int]] = {}
    for j, column in enumerate(data.columns):
        gaps = column.is_missing[: data.n_train]
        if gaps.any() and not gaps.all():
            alike.setdefault(np.packbits(gaps).tobytes(), []).append(j)
    yield from alike.values()


def _format_names(names: tuple[str, ...]) -> str:
    return f"{names[0]!r}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _find_sufficient_subset(data: AuditData, votes: BinnedNaiveBayes, all_correct: Array) -> Iterator[Suspicion]:
    """Find a few columns that do as well as all, adding columns one by one, the best first."""
    d, n = len(votes.votes), len(all_correct)
    if (
        d < 1 / MAX_SUBSET_SHARE
        or skill_p_value(n - all_correct.sum(), n, data.base_rate, STRONG_SKILL) > findings.FALSE_ALARM_LEVEL
    ):
        return
    alone = [votes.mark_correct_by_column(j).mean() for j in range(d)]
    order = np.argsort(-np.array(alone), kind="stable")
    # (rows, classes): the columns are added one by one
    joint = np.tile(np.log(np.maximum(votes.prior, 1e-300)), (n, 1))
    scores: list[float] = []
    for j in order[: int(MAX_SUBSET_SHARE * d)]:
        joint += votes.votes[j].score_leave_one_out(votes.class_codes)
        right = joint.argmax(axis=1) == votes.class_codes
        scores.append(float(right.mean()))
        if findings.mcnemar_p_value(all_correct, right) > SUBSET_WORSE_P_VALUE:
            break
    else:
        return
    names = tuple(data.columns[j].name for j in order[: len(scores)])
    yield Suspicion(
        skill_p_value(n - right.sum(), n, data.base_rate, STRONG_SKILL),
        lambda: Finding(
            Severity.LOW,
            "subset",
            f"{len(names)} of {d} columns do as well as all: accuracy {scores[-1]:.3f}, all {all_correct.mean():.3f} "
            f"(adding one at a time: {', '.join(f'{score:.3f}' for score in scores)})",
            "They are very good, or they leak: look at them first. " + AVAILABILITY_ADVICE,
            columns=names,
            interval=findings.clopper_pearson_interval(float(right.sum()), n),
            effect=Effect.of(all_correct, votes.mark_correct_rows(order[: len(scores)].tolist())),
        ),
    )


def _find_constant_column(data: AuditData, column: AuditColumn) -> Iterator[Suspicion]:
    """Find a column with a single value or without any."""
    gaps = column.is_missing[: data.n_train]
    cells = (column.numbers if column.numbers is not None else column.codes_and_values[0])[: data.n_train]
    if not gaps.all() and (gaps.any() or (cells != cells[0]).any()):
        return
    content = "is empty" if gaps.all() else f"holds {column.format_cell(0)!r} in every row"
    yield Suspicion(
        None,
        lambda: Finding(
            Severity.LOW, "constant", f"column {column.name!r} {content}", "Leave it out.", columns=(column.name,)
        ),
    )
