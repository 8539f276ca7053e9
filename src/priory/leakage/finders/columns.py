"""Columns that know the label: alone, all of a sudden, or by what is missing in them; and columns that know nothing.

*Skill* is the share of the base rate's errors that a column avoids: 0 for guessing the commonest class, 1 for a copy of
the target. Every score is leave-one-out in closed form. A strong column may be a good one: severity says how strong,
and the advice is to ask whether it is known when the model is used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.core.typing import Array
from priory.leakage.audit_tables import Cells, Evidence
from priory.leakage.column_votes import Vote, Votes
from priory.leakage.findings import LEVEL, Effect, Finding, Severity, Suspicion
from priory.leakage.significance import association, better, binomial_tail, interval

LABEL = 0.99  # skill that a column shows if it is taken for a form of the label,
COPY = 0.9  # and that it has for sure
STRONG = 0.5  # skill of a column that is worth a question
JUMP = 2  # times fewer errors with a column than without it: a sudden jump
SUBSET = 0.25  # of the columns: so few that do as well as all are worth a question
WORSE = 0.05  # p-value below which some columns do worse than all

ASK = "Is it known before the outcome, when the model is used? If not, leave it out."


def find(evidence: Evidence) -> Iterator[Suspicion]:
    for column in evidence.columns:
        yield from _empty(evidence, column)
    if evidence.labels is None or evidence.votes is None:
        return
    votes, labels = evidence.votes, evidence.labels
    together = votes.right()
    for j in range(len(evidence.columns)):
        yield from _knowing(evidence, votes, j, together)
    for alike in _gaps(evidence):
        yield from _missing(evidence, votes, alike, labels, together)
    yield from _subset(evidence, votes, together)


def skilled(errors: float, rows: int, base: float, skill: float) -> float:
    """The chance of so few errors if the skill were no more than this."""
    return binomial_tail(rows - errors, rows, 1 - (1 - skill) * (1 - base))


def _knowing(evidence: Evidence, votes: Votes, j: int, together: Array) -> Iterator[Suspicion]:
    """A column that alone is right nearly always, or better than all others together, or halves their errors."""
    name, n, base = evidence.columns[j].name, evidence.train, evidence.base
    alone = votes.right_alone(j)
    errors = int(n - alone.sum())
    strong = skilled(errors, n, base, STRONG)
    rest = votes.right([j]) if strong <= LEVEL else together
    wrong, wrong_together = float((~rest).sum()), float((~together).sum())
    chances = {
        "is nearly a copy of the label": skilled(errors, n, base, COPY),
        "knows more of the label than the rest": max(strong, better(alone, rest)),
        "makes the score jump": max(strong, binomial_tail(wrong, wrong + wrong_together, JUMP / (1 + JUMP))),
    }
    what = min(chances, key=lambda reason: chances[reason])
    sure = len(chances) * len(votes.votes) * next(iter(chances.values())) <= LEVEL

    def finding() -> Finding:
        bits, _ = association(votes.votes[j].counts)
        return Finding(
            Severity.HIGH if sure and errors <= (1 - LABEL) * n * (1 - base) else Severity.MEDIUM,
            "column",
            f"column {name!r} {what}: alone it is right in {alone.mean():.1%} of the rows (base rate {base:.1%}, "
            f"{bits:.2f} bits), all other columns together in {rest.mean():.1%}",
            ASK,
            columns=(name,),
            examples=_telling(evidence, votes, j),
            interval=interval(n - errors, n),
            effect=Effect(float(together.mean()), float(rest.mean()), n),
        )

    yield Suspicion(min(1.0, len(chances) * chances[what]), finding)


def _telling(evidence: Evidence, votes: Votes, j: int) -> tuple[str, ...]:
    """The fullest bins: what the column shows, and the class it goes with."""
    counts = votes.votes[j].counts
    shown = []
    for b in np.argsort(-counts.sum(axis=0), kind="stable")[:3]:
        column, total = counts[:, b], counts[:, b].sum()
        if total:
            row = int(np.argmax(votes.votes[j].codes[: evidence.train] == b))
            cell = evidence.columns[j].shown(row) or "missing"
            c = int(np.argmax(column))
            near = "like " if evidence.columns[j].numbers is not None and cell != "missing" else ""
            shown.append(f"{near}{cell}: {evidence.classes[c]} in {column[c] / total:.1%} of {int(total):,} rows")
    return tuple(shown)


def _missing(evidence: Evidence, votes: Votes, alike: list[int], labels: Array, together: Array) -> Iterator[Suspicion]:
    """Cells that are filled for one class and not for another: filled after the outcome?"""
    gaps = evidence.columns[alike[0]].missing[: evidence.train]
    vote = Vote.of(gaps.astype(np.int64), 2, labels, votes.prior)
    bits, p = association(vote.counts)
    filled = vote.counts[:, 0] / np.maximum(vote.counts.sum(axis=1), 1)
    names = tuple(evidence.columns[j].name for j in alike)

    def finding() -> Finding:
        most, least = int(np.argmax(filled)), int(np.argmin(filled))
        sure = [_separates(vote.counts, skill) <= LEVEL for skill in (STRONG, 0.0)]
        after = "; filled after the outcome?" if filled[least] == 0 else ""
        return Finding(
            Severity.HIGH if sure[0] else Severity.MEDIUM if sure[1] else Severity.LOW,
            "missing",
            f"what is missing in {_listed(names)} knows the label ({bits:.2f} bits): filled in {filled[most]:.1%} of "
            f"class {evidence.classes[most]!r}, in {filled[least]:.1%} of class {evidence.classes[least]!r}{after}",
            "Find out why it is missing. " + ASK,
            columns=names,
            interval=interval(vote.counts[most, 0], vote.counts[most].sum()),
            effect=Effect(float(together.mean()), float(votes.right(alike).mean()), len(gaps)),
        )

    yield Suspicion(p, finding)


def _separates(counts: Array, skill: float) -> float:
    """The chance that the bins tell a class from the others as well as they do, if the skill were no more than this."""
    n, rest = counts.sum(), counts.sum(axis=0) - counts
    right = np.maximum(counts, rest).sum(axis=1)
    base = np.maximum(counts.sum(axis=1), rest.sum(axis=1)) / n
    chances = [skilled(n - own, int(n), usual, skill) for own, usual in zip(right, base, strict=True)]
    return min(1.0, len(chances) * min(chances))


def _gaps(evidence: Evidence) -> Iterator[list[int]]:
    """Columns with missing cells, those missing in the same rows together."""
    alike: dict[bytes, list[int]] = {}
    for j, column in enumerate(evidence.columns):
        gaps = column.missing[: evidence.train]
        if gaps.any() and not gaps.all():
            alike.setdefault(np.packbits(gaps).tobytes(), []).append(j)
    yield from alike.values()


def _listed(names: tuple[str, ...]) -> str:
    return f"{names[0]!r}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _subset(evidence: Evidence, votes: Votes, together: Array) -> Iterator[Suspicion]:
    """Columns added one by one, the best alone first: do a few do as well as all, and is there a jump?"""
    d, n = len(votes.votes), len(together)
    if d < 1 / SUBSET or skilled(n - together.sum(), n, evidence.base, STRONG) > LEVEL:
        return
    alone = [votes.right_alone(j).mean() for j in range(d)]
    order = np.argsort(-np.array(alone), kind="stable")
    joint = np.tile(np.log(np.maximum(votes.prior, 1e-300)), (n, 1))
    scores: list[float] = []
    for j in order[: int(SUBSET * d)]:
        joint += votes.votes[j].say_without(votes.group)
        right = joint.argmax(axis=1) == votes.group
        scores.append(float(right.mean()))
        if better(together, right) > WORSE:
            break
    else:
        return
    names = tuple(evidence.columns[j].name for j in order[: len(scores)])
    yield Suspicion(
        skilled(n - right.sum(), n, evidence.base, STRONG),
        lambda: Finding(
            Severity.LOW,
            "subset",
            f"{len(names)} of {d} columns do as well as all: accuracy {scores[-1]:.3f} against {together.mean():.3f} "
            f"(added one by one: {', '.join(f'{score:.3f}' for score in scores)})",
            "High quality, or leakage: look at these first. " + ASK,
            columns=names,
            interval=interval(float(right.sum()), n),
            effect=Effect(float(together.mean()), float(votes.right(order[: len(scores)].tolist()).mean()), n),
        ),
    )


def _empty(evidence: Evidence, column: Cells) -> Iterator[Suspicion]:
    """A column with one value, or none."""
    gaps = column.missing[: evidence.train]
    cells = (column.numbers if column.numbers is not None else column.coded[0])[: evidence.train]
    if not gaps.all() and (gaps.any() or (cells != cells[0]).any()):
        return
    what = "is empty" if gaps.all() else f"holds {column.shown(0)!r} in every row"
    yield Suspicion(
        None,
        lambda: Finding(
            Severity.LOW, "constant", f"column {column.name!r} {what}", "Leave it out.", columns=(column.name,)
        ),
    )
