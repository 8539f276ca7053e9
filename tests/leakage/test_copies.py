"""Leaks by copies: rows, near duplicates, headers and boilerplate; a synthetic twin for every real one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory as pr
from leakage_data import WORDS, kinds, loaded, needs, only, suspected, table, texts
from priory.leakage import Severity
from priory.leakage.finders import boilerplate, duplicates
from priory.leakage.row_hashes import SHINGLE_BYTES, cluster_texts

# -- duplicates --------------------------------------------------------------------------------------------------------


def test_rows_of_the_test_table_that_are_in_train_are_found():
    frame = table()
    test = pd.concat([frame[1000:], frame[:30]])
    found = only(pr.audit(frame[:1000], test, target="y"), "duplicates")
    assert found.severity == Severity.HIGH
    assert found.test_rows == tuple(range(200, 230))
    assert found.rows == tuple(range(30))
    assert found.interval[0] < 30 / 230 < found.interval[1]
    assert found.effect.rows == 230


def test_column_order_white_space_case_and_rounding_do_not_hide_a_copy():
    frame = table()
    disguised = frame[:40].copy()
    disguised["shape"] = "  " + disguised["shape"].str.upper() + " "
    disguised = pd.concat([disguised, table(60, seed=9)]).round(3)[list(reversed(frame.columns))]
    found = only(pr.audit(frame, disguised, target="y"), "duplicates")
    assert found.test_rows == tuple(range(40))
    assert "0 exactly" in found.what


def test_copies_in_one_table_that_will_be_split_are_found():
    frame = table()
    found = pr.audit(pd.concat([frame, frame[:50]]), target="y")
    assert only(found, "duplicates").rows == tuple(range(1200, 1250))
    assert only(found, "duplicates").severity == Severity.HIGH
    assert found.exit_code == 3


def test_copies_with_another_label_are_in_conflict():
    frame = table()
    other = frame[:30].assign(y=np.where(frame.y[:30] == "yes", "no", "yes"))
    found = only(pr.audit(pd.concat([frame, other]), target="y"), "conflicts")
    assert found.rows == (*range(30), *range(1200, 1230))
    assert "no model can predict 30 of them" in found.what


def test_oversampling_before_the_split_is_found():
    frame = table()
    few = frame[frame.y == "yes"][:100]
    majority = frame[frame.y == "no"]
    found = pr.audit(pd.concat([majority, few, few, few]).sample(frac=1, random_state=0), target="y")
    assert only(found, "oversampling").severity == Severity.HIGH
    assert len(only(found, "oversampling").rows) == 200


def test_the_copies_of_texts_are_found():
    documents, labels = texts()
    findings = pr.audit([*documents, *documents[:40]], target=[*labels, *labels[:40]])
    assert "40 exactly (40 with the same label)" in only(findings, "duplicates").what


def test_near_duplicate_texts_are_found_on_both_sides():
    documents, labels = texts(length=60)
    near = [text.replace("amber", "umber", 1) + " indeed" for text in documents[:25]]
    test = documents[300:] + near
    findings = pr.audit(documents[:300], test, target=(labels[:300], labels[300:] + labels[:25]))
    found = only(findings, "near-duplicates")
    assert found.test_rows == tuple(range(100, 125))
    assert found.rows == tuple(range(25))


def shared(a, b):
    """The share of shingles two texts have in common, by sets."""
    first, second = (
        {t.encode()[i : i + SHINGLE_BYTES] for i in range(max(1, len(t.encode()) - SHINGLE_BYTES + 1))} for t in (a, b)
    )
    return len(first & second) / len(first | second)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_near_duplicates_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    documents = [" ".join(rng.choice(WORDS, rng.integers(3, 60))) for _ in range(20)]
    for text in documents[:10]:
        words = text.split(" ")
        words[rng.integers(len(words))] = "zebra"
        documents.append(" ".join(words))
    number = cluster_texts(documents)
    pairs = [(i, j) for i in range(30) for j in range(i)]
    alike = {pair for pair in pairs if shared(documents[pair[0]], documents[pair[1]]) >= 0.8}
    linked = {pair for pair in pairs if number[pair[0]] == number[pair[1]]}
    assert alike <= linked
    for i, _ in linked - alike:  # linked by others
        assert any(i in pair for pair in alike)


@pytest.mark.parametrize("documents", [["", "", "a", "b"], ["short", "tiny"], ["", "x" * 50]])
def test_texts_too_short_to_compare_are_not_near(documents):
    assert len(set(cluster_texts(documents).tolist())) == len(documents)


@needs("sms_spam")
def test_the_403_duplicates_of_sms_spam():
    documents, labels, *_ = loaded("sms_spam")
    found = only(pr.audit(documents, target=labels), "duplicates")
    assert "403 exactly" in found.what
    assert found.severity == Severity.HIGH


@pytest.mark.slow
@needs("imdb")
def test_the_123_texts_of_imdb_in_train_and_test():
    train, y, test, z = loaded("imdb")
    found = suspected(duplicates, train, test, (y, z))
    assert "123 exactly (123 distinct)" in next(f for f in found if f.test_rows).what


@needs("spambase")
def test_the_391_duplicate_rows_of_spambase_and_that_its_rows_are_sorted():
    import datasets

    x, y = datasets.table("spambase")
    findings = pr.audit(x, target=y)
    assert "(391 with the same label)" in only(findings, "duplicates").what
    assert only(findings, "duplicates").severity == Severity.HIGH
    assert "order" in kinds(findings)


@needs("sst2")
def test_most_of_sst2_is_in_rt_polarity():
    found = pr.audit(loaded("rt_polarity")[0], loaded("sst2")[0]).of("duplicates")[0]
    assert 0.75 < len(found.test_rows) / 6920 < 0.80


# -- headers and boilerplate -------------------------------------------------------------------------------------------


def with_heads(documents, labels):
    heads = {"yes": "List-Id: <news.example>\nPrecedence: bulk\n", "no": "Received: by relay\n"}
    return [f"From: a@b.example\nSubject: x\n{heads[y]}\n{text}" for text, y in zip(documents, labels, strict=True)]


def test_headers_that_know_the_class_are_found():
    documents, labels = texts()
    found = pr.audit(with_heads(documents, labels), target=labels).of("boilerplate")
    head = next(f for f in found if "headers" in f.what)
    assert head.severity == Severity.HIGH
    assert "List-Id" in head.columns
    assert head.effect.before > head.effect.after
    assert any(example.startswith("List-Id: in 100% of yes, 0% of no") for example in head.examples)


def test_headers_with_the_line_ends_of_the_wire():
    documents, labels = texts()
    wired = [text.replace("\n", "\r\n") for text in with_heads(documents, labels)]
    assert any("headers" in f.what for f in pr.audit(wired, target=labels))


def test_repeated_lines_of_one_class_are_found():
    documents, labels = texts()
    signed = [
        t + ("\n-- \nSent from my list" if y == "yes" and i % 3 else "\nbye")
        for i, (t, y) in enumerate(zip(documents, labels, strict=True))
    ]
    found = pr.audit(signed, target=labels).of("boilerplate")
    assert any("Sent from my list" in example for f in found for example in f.examples)


def test_a_token_that_is_the_label_is_found():
    documents, labels = texts()
    found = only(pr.audit([f"{t} zz{y}" for t, y in zip(documents, labels, strict=True)], target=labels), "boilerplate")
    assert found.severity == Severity.HIGH
    assert "'zzno'" in found.what or "'zzyes'" in found.what


@pytest.mark.slow
@needs("spamassassin")
def test_the_list_id_of_spamassassin():
    documents, labels, *_ = loaded("spamassassin")
    found = suspected(boilerplate, documents[::4], target=labels[::4])
    head = next(f for f in found if "headers" in f.what)
    assert head.severity == Severity.HIGH
    assert "List-Id" in head.columns[:4]


@pytest.mark.slow
@needs("20newsgroups_bydate")
def test_the_headers_of_20_newsgroups():
    documents, labels, *_ = loaded("20newsgroups_bydate")
    found = suspected(boilerplate, documents[::6], target=labels[::6])
    head = next(f for f in found if "headers" in f.what)
    assert head.severity == Severity.HIGH
    assert head.effect.before > head.effect.after
    assert {"Distribution", "Organization"} & set(head.columns)
