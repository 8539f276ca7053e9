"""Boilerplate that identifies the class: mail headers, repeated lines, single tokens that answer alone.

A text's *head* is the lines `Name: value` before its first blank line. Where most texts have one, the score of the
whole text is compared with the score of the body; fields and lines that go with a class are named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from priory.bag_of_words import token_counts as words
from priory.core.typing import Array
from priory.leakage.audit_tables import Evidence
from priory.leakage.finders.columns import COPY, STRONG, skilled
from priory.leakage.findings import LEVEL, Effect, Finding, Severity, Suspicion
from priory.leakage.significance import better, interval, presences
from priory.leakage.text_scores import MOST, right

FIELD = re.compile(r"^([A-Za-z][\w-]*):", re.MULTILINE)
HEADED = 0.5  # of the texts have a head, where heads are looked at
REPEATED = 10  # documents that share a line, at least
TELLING = 0.9  # of the documents with a line are of one class


def find(evidence: Evidence) -> Iterator[Suspicion]:
    if evidence.labels is None:
        return
    for name, texts in evidence.texts.items():
        documents = [text.replace("\r\n", "\n") for text in texts[: evidence.train]]
        yield from _token(evidence, name, documents, evidence.labels)
        heads = [head(text) for text in documents]
        if np.mean([bool(lines) for lines in heads]) >= HEADED:
            yield from _heads(evidence, name, documents, heads, evidence.labels)
        yield from _lines(evidence, name, documents, evidence.labels)


def head(text: str) -> str:
    """The header of a text, empty where there is none: two fields or more, and nothing else but what continues them.

    >>> head("From: a@b.c\\nSubject: hello\\n there\\n\\nFrom: here on it is body")
    'From: a@b.c\\nSubject: hello\\n there'
    """
    first = text.partition("\n\n")[0]
    lines = first.split("\n")
    fitting = [line.startswith((" ", "\t", "From ")) or FIELD.match(line) for line in lines]
    return first if all(fitting) and len(FIELD.findall(first)) >= 2 else ""


def _heads(evidence: Evidence, name: str, documents: list[str], heads: list[str], labels: Array) -> Iterator[Suspicion]:
    step = max(1, len(documents) // MOST)
    some, top, y = documents[::step], heads[::step], labels[::step]
    bodies = [text[len(lines) :] for text, lines in zip(some, top, strict=True)]
    whole, inside, outside = right(some, y), right(bodies, y), right(top, y)
    errors = float(len(y) - outside.sum())
    strong = skilled(errors, len(y), evidence.base, STRONG) <= LEVEL
    fields = _fields(heads, labels, len(evidence.classes))
    shown = [_share(evidence, field, counts) for field, counts, _ in fields]

    def finding() -> Finding:
        return Finding(
            Severity.HIGH if strong or better(whole, inside) <= LEVEL else Severity.MEDIUM,
            "boilerplate",
            f"the headers of {name!r} know the class: alone they are right in {outside.mean():.1%} of the texts, "
            f"bodies in {inside.mean():.1%}",
            "Train and test on the bodies; what identifies a sender or a list will not be there next time.",
            columns=(name, *(field for field, _, _ in fields)),
            examples=tuple(shown),
            interval=interval(float(outside.sum()), len(y)),
            effect=Effect(float(whole.mean()), float(inside.mean()), len(y)),
        )

    yield Suspicion(skilled(errors, len(y), evidence.base, 0.0), finding)


def _fields(heads: list[str], labels: Array, groups: int) -> list[tuple[str, Array, float]]:
    """Header fields whose presence goes with the class, the most informative first: name, counts, bits."""
    index: dict[str, int] = {}
    places = [(index.setdefault(f, len(index)), i) for i, lines in enumerate(heads) for f in set(FIELD.findall(lines))]
    flat = np.array([place * groups + int(labels[i]) for place, i in places], dtype=np.int64)
    counts = np.bincount(flat, minlength=len(index) * groups).reshape(len(index), groups)
    bits, p = presences(counts, np.bincount(labels, minlength=groups))
    kept = [(field, counts[k], float(bits[k])) for field, k in index.items() if p[k] * len(p) <= LEVEL]
    return sorted(kept, key=lambda entry: -entry[2])


def _share(evidence: Evidence, field: str, counts: Array) -> str:
    assert evidence.labels is not None
    share = counts / np.maximum(np.bincount(evidence.labels, minlength=len(evidence.classes)), 1)
    most, least = int(share.argmax()), int(share.argmin())
    return f"{field}: in {share[most]:.0%} of {evidence.classes[most]}, {share[least]:.0%} of {evidence.classes[least]}"


def _lines(evidence: Evidence, name: str, documents: list[str], labels: Array) -> Iterator[Suspicion]:
    """Lines repeated word for word in many documents, nearly all of one class."""
    seen = [{line.strip() for line in text.split("\n")} - {""} for text in documents]
    if max(map(len, seen), default=0) < 2:
        return
    times = Counter(line for lines in seen for line in lines)
    index = {line: k for k, line in enumerate(line for line, n in times.items() if n >= REPEATED)}
    if not index:
        return
    groups = len(evidence.classes)
    flat = [
        index[line] * groups + int(c) for lines, c in zip(seen, labels, strict=True) for line in lines if line in index
    ]
    counts = np.bincount(np.array(flat, dtype=np.int64), minlength=len(index) * groups).reshape(-1, groups)
    _, p = presences(counts, np.bincount(labels, minlength=groups))
    telling = (counts.max(axis=1) >= TELLING * counts.sum(axis=1)) & (p * len(p) <= LEVEL)
    if not telling.any():
        return
    spelt = list(index)
    order = [int(k) for k in np.argsort(-counts.max(axis=1), kind="stable") if telling[k]]
    wanted = {spelt[k] for k in order}
    hit = np.array([bool(lines & wanted) for lines in seen])

    def finding() -> Finding:
        step = max(1, len(documents) // MOST)
        some, y = documents[::step], labels[::step]
        stripped = ["\n".join(line for line in text.split("\n") if line.strip() not in wanted) for text in some]
        before, after = right(some, y), right(stripped, y)
        return Finding(
            Severity.HIGH if better(before, after) <= LEVEL else Severity.MEDIUM,
            "boilerplate",
            f"{len(order):,} lines of {name!r} are repeated word for word in texts of one class; {hit.mean():.1%} of "
            "the texts have one",
            "Remove them: signatures, footers and templates identify the source, not what is said.",
            columns=(name,),
            rows=tuple(np.flatnonzero(hit).tolist()),
            examples=tuple(
                f"{spelt[k][:80]} ({counts[k].max()} of {counts[k].sum()} in {evidence.classes[counts[k].argmax()]})"
                for k in order[:5]
            ),
            interval=interval(float(hit.sum()), len(hit)),
            effect=Effect(float(before.mean()), float(after.mean()), len(before)),
        )

    yield Suspicion(float(min(1.0, p[telling].min() * len(p))), finding)


def _token(evidence: Evidence, name: str, documents: list[str], labels: Array) -> Iterator[Suspicion]:
    """Single tokens that answer nearly every text by being there or not."""
    counted = words.count(documents, labels, len(evidence.classes))
    total = np.bincount(labels, minlength=len(evidence.classes))
    there = counted.counts
    correct = there.max(axis=1) + (total - there).max(axis=1)
    if not len(correct):
        return
    k, n = int(correct.argmax()), len(documents)
    token = counted.taken(np.array([k])).tokens()[0]
    copy, strong = (
        min(1.0, len(correct) * skilled(float(n - correct[k]), n, evidence.base, skill)) for skill in (COPY, STRONG)
    )

    def finding() -> Finding:
        step = max(1, n // MOST)
        some, y = documents[::step], labels[::step]
        before, after = right(some, y), right(some, y, [token])
        return Finding(
            Severity.HIGH if copy <= LEVEL else Severity.MEDIUM,
            "boilerplate",
            f"the token {token!r} of {name!r} is nearly the label: alone it is right in {correct[k] / n:.1%} "
            "of the texts",
            "Remove it, and what it came with: it is the label in another form.",
            columns=(name,),
            examples=(_share(evidence, token, there[k]),),
            interval=interval(float(correct[k]), n),
            effect=Effect(float(before.mean()), float(after.mean()), len(y)),
        )

    yield Suspicion(strong, finding)
