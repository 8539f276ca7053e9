"""Find boilerplate that gives the class away: mail headers, repeated lines, single tokens.

The *header* of a text is the lines `Name: value` before its first blank line. If most texts have one, the score of the
whole texts is compared with the score of their bodies. Header fields and lines that go with a class are listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy import ndarray as Array

from priory.leakage import findings
from priory.leakage.audit_tables import AuditData, mark_correct_documents, sample_documents
from priory.leakage.finders.columns import CERTAIN_COPY_SKILL, STRONG_SKILL, skill_p_value
from priory.leakage.findings import Effect, Finding, Severity, Suspicion
from priory.text import token_counts as words
from priory.text.sparse_counts import make_dense_counts

HEADER_LINE_PATTERN = re.compile(r"^([A-Za-z][\w-]*):", re.MULTILINE)
MIN_SHARE_WITH_HEADER = 0.5  # minimum share of texts with a header
MIN_DOCUMENTS_SHARING_LINE = 10
MAX_CLASSES_OF_LABEL_TOKENS = 64  # only the largest classes are searched for a label token
MIN_LINE_CLASS_SHARE = 0.9  # share of the documents with a line that belong to one class


def find(data: AuditData) -> Iterator[Suspicion]:
    if data.labels is None:
        return
    for name, texts in data.texts.items():
        documents = [text.replace("\r\n", "\n") for text in texts[: data.n_train]]
        yield from _find_label_token(data, name, documents, data.labels)
        headers = [extract_header(text) for text in documents]
        if np.mean([bool(header) for header in headers]) >= MIN_SHARE_WITH_HEADER:
            yield from _find_header_leaks(data, name, documents, headers, data.labels)
        yield from _find_repeated_lines(data, name, documents, data.labels)


def extract_header(text: str) -> str:
    """Return the header of a text (two or more fields, with continuation lines), or "" if there is none.

    >>> extract_header("From: a@b.c\\nSubject: hello\\n there\\n\\nFrom: here on it is body")
    'From: a@b.c\\nSubject: hello\\n there'
    """
    first = text.partition("\n\n")[0]
    lines = first.split("\n")
    is_header = [line.startswith((" ", "\t", "From ")) or HEADER_LINE_PATTERN.match(line) for line in lines]
    return first if all(is_header) and len(HEADER_LINE_PATTERN.findall(first)) >= 2 else ""


def _find_header_leaks(
    data: AuditData, name: str, documents: list[str], headers: list[str], labels: Array
) -> Iterator[Suspicion]:
    sample, y = sample_documents(documents, labels)
    sampled_headers, _ = sample_documents(headers, labels)
    sampled_bodies = [text[len(header) :] for text, header in zip(sample, sampled_headers, strict=True)]
    by_text = mark_correct_documents(sample, y)
    by_body = mark_correct_documents(sampled_bodies, y)
    by_header = mark_correct_documents(sampled_headers, y)
    errors = float(len(y) - by_header.sum())
    strong = skill_p_value(errors, len(y), data.base_rate, STRONG_SKILL) <= findings.FALSE_ALARM_LEVEL
    fields = _find_informative_fields(headers, labels, len(data.classes))
    shown = [_format_class_shares(data, field, counts) for field, counts, _ in fields]

    def finding() -> Finding:
        return Finding(
            Severity.HIGH
            if strong or findings.mcnemar_p_value(by_text, by_body) <= findings.FALSE_ALARM_LEVEL
            else Severity.MEDIUM,
            "boilerplate",
            f"the headers of {name!r} predict the class: alone they are right in {by_header.mean():.1%} of the texts, "
            f"the bodies in {by_body.mean():.1%}",
            "Train and test on the bodies: senders and mailing lists will be different when the model is used.",
            columns=(name, *(field for field, _, _ in fields)),
            examples=tuple(shown),
            interval=findings.clopper_pearson_interval(float(by_header.sum()), len(y)),
            effect=Effect.of(by_text, by_body),
        )

    yield Suspicion(skill_p_value(errors, len(y), data.base_rate, 0.0), finding)


def _find_informative_fields(headers: list[str], labels: Array, n_classes: int) -> list[tuple[str, Array, float]]:
    """Return header fields whose presence depends on the class, most informative first: name, counts, bits."""
    names, counts = _count_presence([set(HEADER_LINE_PATTERN.findall(lines)) for lines in headers], labels, n_classes)
    bits, p = findings.measure_presence_association(counts, np.bincount(labels, minlength=n_classes))
    kept = [
        (field, counts[k], float(bits[k]))
        for k, field in enumerate(names)
        if p[k] * len(p) <= findings.FALSE_ALARM_LEVEL
    ]
    return sorted(kept, key=lambda entry: -entry[2])


def _count_presence(
    documents: Sequence[set[str]], labels: Array, n_classes: int, min_documents: int = 1
) -> tuple[list[str], Array]:
    """Return what is in so many documents or more, and the documents of each class that have it, (found, classes)."""
    times = Counter(part for parts in documents for part in parts)
    index = {part: k for k, part in enumerate(part for part, n in times.items() if n >= min_documents)}
    pairs = zip(documents, labels.tolist(), strict=True)
    flat = [index[part] * n_classes + c for parts, c in pairs for part in parts if part in index]
    counts = np.bincount(np.array(flat, dtype=np.int64), minlength=len(index) * n_classes)
    return list(index), counts.reshape(-1, n_classes)


def _format_class_shares(data: AuditData, field: str, counts: Array) -> str:
    assert data.labels is not None
    share = counts / np.maximum(np.bincount(data.labels, minlength=len(data.classes)), 1)
    most, least = int(share.argmax()), int(share.argmin())
    return f"{field}: in {share[most]:.0%} of {data.classes[most]}, {share[least]:.0%} of {data.classes[least]}"


def _find_repeated_lines(data: AuditData, name: str, documents: list[str], labels: Array) -> Iterator[Suspicion]:
    """Find lines that occur verbatim in many documents, nearly all of one class."""
    lines_of = [{line.strip() for line in text.split("\n")} - {""} for text in documents]
    if max(map(len, lines_of), default=0) < 2:
        return
    groups = len(data.classes)
    all_lines, counts = _count_presence(lines_of, labels, groups, MIN_DOCUMENTS_SHARING_LINE)
    if not all_lines:
        return
    _, p = findings.measure_presence_association(counts, np.bincount(labels, minlength=groups))
    gives_away = (counts.max(axis=1) >= MIN_LINE_CLASS_SHARE * counts.sum(axis=1)) & (
        p * len(p) <= findings.FALSE_ALARM_LEVEL
    )
    if not gives_away.any():
        return
    order = [int(k) for k in np.argsort(-counts.max(axis=1), kind="stable") if gives_away[k]]
    leaking = {all_lines[k] for k in order}
    # (documents,)
    hit = np.array([bool(lines & leaking) for lines in lines_of])

    def finding() -> Finding:
        sample, y = sample_documents(documents, labels)
        stripped = ["\n".join(line for line in text.split("\n") if line.strip() not in leaking) for text in sample]
        before, after = mark_correct_documents(sample, y), mark_correct_documents(stripped, y)
        return Finding(
            Severity.HIGH if findings.mcnemar_p_value(before, after) <= findings.FALSE_ALARM_LEVEL else Severity.MEDIUM,
            "boilerplate",
            f"{len(order):,} lines of {name!r} are repeated literally in texts of one class; {hit.mean():.1%} of "
            "the texts have one",
            "Remove them: signatures, footers and templates identify the source, not the content.",
            columns=(name,),
            rows=tuple(np.flatnonzero(hit).tolist()),
            examples=tuple(
                f"{all_lines[k][:80]} ({counts[k].max()} of {counts[k].sum()} in {data.classes[counts[k].argmax()]})"
                for k in order[:5]
            ),
            interval=findings.clopper_pearson_interval(float(hit.sum()), len(hit)),
            effect=Effect.of(before, after),
        )

    yield Suspicion(float(min(1.0, p[gives_away].min() * len(p))), finding)


def _find_label_token(data: AuditData, name: str, documents: list[str], labels: Array) -> Iterator[Suspicion]:
    """Find a token whose presence or absence predicts the class of nearly every text."""
    total = np.bincount(labels, minlength=len(data.classes))
    common = np.sort(np.argsort(-total, kind="stable")[:MAX_CLASSES_OF_LABEL_TOKENS])
    counted = words.count_tokens(documents, labels, len(data.classes))
    present = make_dense_counts(counted.take_classes(common).counts)  # (tokens, common classes)
    # (tokens,): correct answers if texts with the token get one class, and all others another one
    correct = present.max(axis=1) + (total[common] - present).max(axis=1)
    if not len(correct):
        return
    k, n = int(correct.argmax()), len(documents)
    best = counted.take_tokens(np.array([k]))
    [token] = best.tokens()
    # Bonferroni: the best of all tokens was chosen
    copy, strong = (
        min(1.0, len(correct) * skill_p_value(float(n - correct[k]), n, data.base_rate, skill))
        for skill in (CERTAIN_COPY_SKILL, STRONG_SKILL)
    )

    def finding() -> Finding:
        sample, y = sample_documents(documents, labels)
        before, after = mark_correct_documents(sample, y), mark_correct_documents(sample, y, [token])
        return Finding(
            Severity.HIGH if copy <= findings.FALSE_ALARM_LEVEL else Severity.MEDIUM,
            "boilerplate",
            f"the token {token!r} of {name!r} is nearly a copy of the label: alone it is right in {correct[k] / n:.1%} "
            "of the texts",
            "Remove it and the text around it: it is the label in another form.",
            columns=(name,),
            examples=(_format_class_shares(data, token, make_dense_counts(best.counts)[0]),),
            interval=findings.clopper_pearson_interval(float(correct[k]), n),
            effect=Effect.of(before, after),
        )

    yield Suspicion(strong, finding)
