"""The leakage audit: each kind of leak is found where it is, with a synthetic twin for every real one."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import priory as pr
from priory.errors import DataError, TooLarge
from priory.leakage import Finding, Findings, Severity, boilerplate, duplicates
from priory.leakage.chance import association, presences
from priory.leakage.finding import Suspicion, holm, judged
from priory.leakage.reading import read
from priory.leakage.shingles import SIZE, clusters
from priory.leakage.votes import Votes, binned

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "benchmarks"))

WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven"]
WORDS += ["inlet", "jetty", "knoll", "ledge", "marsh", "notch", "ocean", "prairie"]


def needs(name):
    return pytest.mark.skipif(not (DATA / name).exists(), reason=f"{name} is not there")


def loaded(name):
    import datasets

    return datasets.text(name)


def table(rows=1200, seed=0, classes=2):
    """A clean table: four columns that know a little, one of labels, one of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=rows) + 0.5 * j / 4 * y for j in range(5)})
    frame["shape"] = np.array(["round", "flat", "long"])[
        (rng.integers(3, size=rows) + (rng.random(rows) < 0.2) * y) % 3
    ]
    frame["y"] = np.array(["no", "yes", "maybe"])[y]
    return frame


def texts(rows=400, seed=0, length=30):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=rows)
    words = np.array(WORDS)
    weights = np.ones((2, len(words)))
    weights[1, :4] = 2
    weights /= weights.sum(axis=1, keepdims=True)
    return [" ".join(rng.choice(words, length, p=weights[c])) for c in y], np.array(["no", "yes"])[y].tolist()


def suspected(finder, train, test=None, target=None):
    """What one finder says, where the whole audit of a large collection would take the test's time."""
    return judged(finder.find(read(train, test, target, None, None, None)))


def kinds(findings, least=Severity.LOW):
    return {finding.kind for finding in findings if finding.severity >= least}


def only(findings, kind):
    found = findings.of(kind)
    assert len(found) == 1, str(findings)
    return found[0]


# -- clean tables say nothing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_clean_table_is_clean(seed):
    frame = table(seed=seed)
    findings = pr.audit(frame[:800], frame[800:], target="y")
    assert len(findings) == 0, str(findings)
    assert findings.exit_code == 0
    assert findings.severity is None


def test_clean_texts_are_clean():
    documents, labels = texts()
    assert len(pr.audit(documents[:300], documents[300:], target=(labels[:300], labels[300:]))) == 0


def test_copies_that_chance_explains_are_low():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"x{j}": rng.integers(2, size=500) for j in range(4)})
    found = only(pr.audit(frame, target=rng.integers(2, size=500)), "duplicates")
    assert found.severity == Severity.LOW
    assert "chance may explain them" in found.what


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
    assert "30 no model can get right" in found.what


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
    first, second = ({t.encode()[i : i + SIZE] for i in range(max(1, len(t.encode()) - SIZE + 1))} for t in (a, b))
    return len(first & second) / len(first | second)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_near_duplicates_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    documents = [" ".join(rng.choice(WORDS, rng.integers(3, 60))) for _ in range(20)]
    for text in documents[:10]:
        words = text.split(" ")
        words[rng.integers(len(words))] = "zebra"
        documents.append(" ".join(words))
    number = clusters(documents)
    pairs = [(i, j) for i in range(30) for j in range(i)]
    alike = {pair for pair in pairs if shared(documents[pair[0]], documents[pair[1]]) >= 0.8}
    linked = {pair for pair in pairs if number[pair[0]] == number[pair[1]]}
    assert alike <= linked
    for i, _ in linked - alike:  # linked by others
        assert any(i in pair for pair in alike)


@pytest.mark.parametrize("documents", [["", "", "a", "b"], ["short", "tiny"], ["", "x" * 50]])
def test_texts_too_short_to_compare_are_not_near(documents):
    assert len(set(clusters(documents).tolist())) == len(documents)


@needs("sms_spam")
def test_the_403_duplicates_of_sms_spam():
    documents, labels, *_ = loaded("sms_spam")
    found = only(pr.audit(documents, target=labels), "duplicates")
    assert "403 exactly" in found.what
    assert found.severity == Severity.HIGH


@needs("imdb")
def test_the_123_texts_of_imdb_in_train_and_test():
    train, y, test, z = loaded("imdb")
    found = suspected(duplicates, train, test, (y, z))
    assert "123 exactly (123 different)" in next(f for f in found if f.test_rows).what


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


@needs("spamassassin")
def test_the_list_id_of_spamassassin():
    documents, labels, *_ = loaded("spamassassin")
    found = suspected(boilerplate, documents[::4], target=labels[::4])
    head = next(f for f in found if "headers" in f.what)
    assert head.severity == Severity.HIGH
    assert "List-Id" in head.columns[:4]


@needs("20newsgroups_bydate")
def test_the_headers_of_20_newsgroups():
    documents, labels, *_ = loaded("20newsgroups_bydate")
    found = suspected(boilerplate, documents[::6], target=labels[::6])
    head = next(f for f in found if "headers" in f.what)
    assert head.severity == Severity.HIGH
    assert head.effect.before > head.effect.after
    assert {"Distribution", "Organization"} & set(head.columns)


# -- columns -----------------------------------------------------------------------------------------------------------


def test_a_copy_of_the_target_is_found_and_costs_the_score():
    frame = table()
    frame["outcome_code"] = np.where(frame.y == "yes", 7.0, 3.0)
    found = only(pr.audit(frame, target="y"), "column")
    assert found.severity == Severity.HIGH
    assert found.columns == ("outcome_code",)
    assert found.effect.before == 1.0 > found.effect.after


def test_two_copies_do_not_hide_each_other():
    frame = table()
    frame["a"] = frame["b"] = (frame.y == "yes").astype(int)
    assert {f.columns for f in pr.audit(frame, target="y").of("column")} == {("a",), ("b",)}


def test_a_column_out_of_line_with_the_rest_is_found():
    frame = table()
    flipped = (frame.y == "yes") ^ (np.random.default_rng(0).random(len(frame)) < 0.1)
    frame["hint"] = flipped.map({True: "a", False: "b"})
    found = only(pr.audit(frame, target="y"), "column")
    assert found.severity == Severity.MEDIUM
    assert found.columns == ("hint",)


def test_a_few_columns_that_do_as_well_as_all_are_named():
    frame = table()
    frame["hint"] = (frame.y == "yes") ^ (np.random.default_rng(0).random(len(frame)) < 0.02)
    assert only(pr.audit(frame, target="y"), "subset").columns == ("hint",)


def test_missingness_that_knows_the_label_is_found():
    frame = table()
    frame["discharge"] = np.where(frame.y == "yes", np.random.default_rng(0).normal(size=len(frame)), np.nan)
    found = only(pr.audit(frame, target="y"), "missing")
    assert found.severity == Severity.HIGH
    assert "filled after the outcome?" in found.what


def test_missingness_at_random_is_not_found():
    frame = table()
    frame.loc[np.random.default_rng(0).random(len(frame)) < 0.3, "x1"] = np.nan
    assert "missing" not in kinds(pr.audit(frame, target="y"))


def test_constant_and_empty_columns_are_low():
    frame = table().assign(one=1, none=None)
    found = pr.audit(frame, target="y").of("constant")
    assert {(f.columns, f.severity) for f in found} == {(("one",), Severity.LOW), (("none",), Severity.LOW)}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", np.arange(1200)),
        ("ticket", np.cumsum(np.random.default_rng(0).integers(1, 9, 1200))),
        ("n", np.random.default_rng(0).permutation(1200)),
        ("patient_id", np.random.default_rng(0).choice(10**7, 1200, replace=False)),
        ("code", np.array([f"A{i * 7919 % 100003}" for i in range(1200)])),
    ],
)
def test_identifiers_are_found(name, values):
    found = only(pr.audit(table().assign(**{name: values}), target="y"), "identifier")
    assert (found.severity, found.columns) == (Severity.LOW, (name,))


def test_a_measurement_is_no_identifier():
    assert "identifier" not in kinds(pr.audit(table().assign(cents=np.random.default_rng(0).integers(0, 10**7, 1200))))


def test_a_row_number_of_a_sorted_table_knows_the_label():
    frame = table().sort_values("y", kind="stable").reset_index(drop=True)
    found = pr.audit(frame.assign(number=np.arange(1200)), target="y")
    assert {f.severity for f in found.of("identifier")} == {Severity.LOW, Severity.MEDIUM}
    assert only(found, "column").columns == ("number",)
    assert "order" in kinds(found)


@needs("titanic")
@needs("breast_cancer_wisconsin")
@pytest.mark.parametrize(
    ("name", "column", "label"), [("breast_cancer_wisconsin", "id", "class"), ("titanic", "PassengerId", "Survived")]
)
def test_the_ids_of_real_tables(name, column, label):
    frame = pd.read_csv(DATA / name / f"{name}.csv")
    meta = json.loads((DATA / name / "meta.json").read_text())
    found = pr.audit(frame, target=meta["label"]).of("identifier")
    assert column in {f.columns[0] for f in found}


# -- groups, time, drift -----------------------------------------------------------------------------------------------


def patients(rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    patient = rng.integers(rows // 4, size=rows)
    marks = rng.normal(size=(rows // 4, 4)) * 3
    frame = pd.DataFrame(marks[patient] + rng.normal(size=(rows, 4)), columns=list("abcd"))
    frame["y"] = (marks[patient, 0] + rng.normal(size=rows) > 0).astype(int)
    return frame.assign(patient=rng.permutation(10**6)[patient])


def test_a_group_on_both_sides_is_found():
    frame = patients()
    found = only(pr.audit(frame[:1000], frame[1000:], target="y", groups="patient"), "groups")
    assert found.severity == Severity.HIGH
    share = frame.patient[1000:].isin(frame.patient[:1000]).mean()
    assert found.what.startswith(f"{share:.1%}")
    assert found.effect.rows == 500


def test_groups_given_as_arrays_and_kept_apart_are_fine():
    frame = patients()
    side = frame.patient % 3 == 0
    train, test = frame[~side], frame[side]
    given_groups = (train.patient.to_numpy(), test.patient.to_numpy())
    parts = [part.drop(columns="patient") for part in (train, test)]
    assert "groups" not in kinds(pr.audit(*parts, target="y", groups=given_groups))


def test_a_column_that_looks_like_a_group_is_suggested():
    frame = patients()
    found = only(pr.audit(frame[:1000], frame[1000:], target="y"), "groups")
    assert (found.severity, found.columns) == (Severity.MEDIUM, ("patient",))


def test_training_rows_later_than_test_rows_are_found():
    frame = table().assign(day=pd.date_range("2024-01-01", periods=1200, freq="h"))
    shuffled = frame.sample(frac=1, random_state=0)
    found = only(pr.audit(shuffled[:800], shuffled[800:], target="y", time="day"), "time")
    assert found.severity == Severity.HIGH
    assert len(found.rows) > 700
    zoned = shuffled.assign(day=shuffled.day.dt.tz_localize("UTC"))
    assert only(pr.audit(zoned[:800], zoned[800:], target="y", time="day"), "time").rows == found.rows
    assert "time" not in kinds(pr.audit(frame[:800], frame[800:], target="y", time="day"))


def test_dates_written_as_labels_stand_in_their_order():
    frame = table().assign(day=pd.date_range("2024-01-01", periods=1200).strftime("%Y-%m-%d"))
    assert "time" in kinds(pr.audit(frame[400:], frame[:400], target="y", time="day"), Severity.HIGH)
    assert "time" not in kinds(pr.audit(frame[:800], frame[800:], target="y", time="day"))


def hospital(rows, first, seed):
    """At hospital I the suspected are sent to the better scanner; at hospital II there is no such rule."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.4
    better = np.where(rng.random(rows) < 0.9, ill, ~ill) if first else rng.random(rows) < 0.1
    return pd.DataFrame(
        {
            "shadow": rng.normal(size=rows) + ill,
            "age": rng.normal(60, 9, size=rows),
            "scanner": np.where(better, "fine", "coarse"),
            "diagnosis": np.where(ill, "cancer", "none"),
        }
    )


def test_the_scanner_of_hospital_one():
    findings = pr.audit(hospital(2000, True, 0), hospital(1000, False, 1), target="diagnosis")
    assert only(findings, "drift").columns == ("scanner",)
    shortcut = only(findings, "shortcut")
    assert (shortcut.severity, shortcut.columns) == (Severity.HIGH, ("scanner",))
    assert only(findings, "column").columns == ("scanner",)
    assert shortcut.effect.after > shortcut.effect.before


def test_the_views_of_an_article():
    """Predict how many views an article will get: what knows is its author, and its date."""
    rng = np.random.default_rng(0)
    author = rng.integers(200, size=1200)
    fame = rng.normal(size=200)
    frame = pd.DataFrame(
        {
            "date": rng.permutation(pd.date_range("2023-01-01", periods=1200, freq="D")),
            "length": rng.normal(800, 200, size=1200).round() + 100 * fame[author],
            "author": np.array([f"author {i * 37 % 200}" for i in range(200)])[author],
            "language": rng.choice(["en", "de"], size=1200),
            "views": np.exp(4 + fame[author] + 0.3 * rng.normal(size=1200)).round(),
        }
    )
    findings = pr.audit(frame[:800], frame[800:], target="views")
    assert only(findings, "groups").columns == ("author",)
    assert (only(findings, "time").columns, only(findings, "time").severity) == (("date",), Severity.LOW)
    assert "say time='date'" in only(findings, "time").advice


def test_texts_of_another_place_are_told_apart():
    documents, _ = texts()
    other = [f"{text} parish vicar" for text in texts(seed=1)[0]]
    found = only(pr.audit(documents, other), "drift")
    assert found.severity == Severity.HIGH
    assert found.examples[0].startswith(("parish", "vicar"))


# -- preparation -------------------------------------------------------------------------------------------------------


def numbers(rows=300, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)), rng.integers(2, size=rows)


@pytest.mark.parametrize(
    "step",
    [StandardScaler(), MinMaxScaler(), SimpleImputer(), SelectKBest(f_classif, k=2)],
    ids=lambda s: type(s).__name__,
)
def test_a_step_fitted_to_the_test_rows_is_found(step):
    x, y = numbers()
    train, test = x[:200], x[200:]
    honest = make_pipeline(step, LogisticRegression()).fit(train, y[:200])
    assert "preparation" not in kinds(pr.audit(train, test, (y[:200], y[200:]), pipeline=honest))
    peeked = make_pipeline(step.fit(x, y), LogisticRegression())
    peeked[-1].fit(peeked[0].transform(train), y[:200])
    found = only(pr.audit(train, test, (y[:200], y[200:]), pipeline=peeked), "preparation")
    assert found.severity == Severity.HIGH
    assert found.columns == (peeked.steps[0][0],)


def test_a_model_fitted_to_the_test_rows_is_found():
    frame = table()
    x = frame[["x3", "x4"]]
    for rows, leaked in ((800, False), (1200, True)):
        model = make_pipeline(StandardScaler().fit(x[:800]), LogisticRegression())
        model[-1].fit(model[0].transform(x[:rows]), frame.y[:rows])
        given = frame[["x3", "x4", "y"]]
        assert ("preparation" in kinds(pr.audit(given[:800], given[800:], target="y", pipeline=model))) is leaked


def test_a_scaler_is_judged_without_the_labels_of_the_test_rows():
    x, y = numbers()
    peeked = make_pipeline(StandardScaler().fit(x), LogisticRegression())
    peeked[-1].fit(peeked[0].transform(x[:200]), y[:200])
    assert only(pr.audit(x[:200], x[200:], y[:200], pipeline=peeked), "preparation").columns == ("standardscaler",)


def test_a_vocabulary_of_train_and_test_is_found():
    documents, labels = texts()
    test = [f"{text} unheard" for text in documents[300:]]
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    pipeline.fit(documents[:300] + test, labels)
    found = pr.audit(documents[:300], test, target=(labels[:300], labels[300:]), pipeline=pipeline).of("preparation")
    assert "'unheard'" in found[0].examples[0]
    pipeline.fit(documents[:300], labels[:300])
    assert "preparation" not in kinds(
        pr.audit(documents[:300], test, target=(labels[:300], labels[300:]), pipeline=pipeline)
    )


def test_a_transformer_of_columns_is_looked_into():
    frame = table()
    x = frame.drop(columns="y")
    mixed = make_column_transformer((StandardScaler(), ["x0", "x1"]), (OneHotEncoder(), ["shape"]))
    honest = make_pipeline(mixed, LogisticRegression()).fit(x[:800], frame.y[:800])
    assert "preparation" not in kinds(pr.audit(frame[:800], frame[800:], target="y", pipeline=honest))
    peeked = make_pipeline(mixed, LogisticRegression()).fit(x, frame.y)
    found = pr.audit(frame[:800], frame[800:], target="y", pipeline=peeked).of("preparation")
    assert any("standardscaler.mean_" in f.what for f in found)


# -- what comes in, what goes out --------------------------------------------------------------------------------------


def leaky():
    frame = table()
    return frame.assign(answer=(frame.y == "yes").astype(int), note="<b>&\x1b[31m")


@pytest.mark.parametrize(
    "given",
    [
        lambda f: (f, "y"),
        lambda f: (pl.from_pandas(f), "y"),
        lambda f: (pl.from_pandas(f).to_arrow(), "y"),
        lambda f: (f.to_dict("records"), "y"),
        lambda f: (f.to_dict("list"), "y"),
        lambda f: (f.drop(columns="y"), f.y.to_numpy()),
        lambda f: (f.drop(columns="y"), f.y),
        lambda f: (f.drop(columns="y"), f.y.tolist()),
    ],
    ids=["pandas", "polars", "pyarrow", "dicts", "columns", "array", "series", "list"],
)
def test_every_table_gives_the_same_findings(given):
    train, target = given(leaky())
    assert {f.columns for f in pr.audit(train, target=target) if f.kind == "column"} == {("answer",)}


def test_an_array_of_numbers():
    frame = leaky()
    found = pr.audit(frame[["x0", "x1", "x2", "answer"]].to_numpy(), target=frame.y)
    assert only(found, "column").columns == ("x3",)


def test_a_quantity_to_predict_is_cut_into_parts():
    frame = table().drop(columns="y")
    views = np.exp(np.random.default_rng(0).normal(size=len(frame)))
    found = pr.audit(frame.assign(shares=views * 3, views=views), target="views")
    assert only(found, "column").columns == ("shares",)


def test_findings_are_a_sequence_the_gravest_first():
    findings = pr.audit(leaky(), target="y")
    assert isinstance(findings, Findings)
    assert isinstance(findings[0], Finding)
    assert isinstance(findings[:1], Findings)
    assert [f.severity for f in findings] == sorted((f.severity for f in findings), reverse=True)
    assert findings.severity == Severity.HIGH
    assert findings.exit_code == 3
    assert findings[-1:].exit_code == 0


def test_findings_as_a_table_and_as_json():
    findings = pr.audit(leaky(), target="y")
    frame = findings.to_frame()
    assert len(frame) == len(findings)
    assert frame.severity[0] == "high"
    plain = json.loads(findings.to_json())
    assert plain["exit_code"] == 3
    assert plain["findings"][0]["columns"] == ["answer"]
    assert plain["findings"][0]["effect"]["before"] == 1.0


def test_what_is_shown_cannot_harm_the_reader():
    findings = pr.audit(leaky(), target="y")
    assert "\x1b" not in str(findings)
    assert "\\x1b" in str(findings)
    page = findings.to_html()
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    assert page.count("<article") == len(findings)
    assert "<script" not in page
    assert "http" not in page


def test_a_finding_in_words():
    frame = table().assign(one=1)
    assert str(pr.audit(frame, target="y")) == (
        "LOW     column 'one' holds '1' in every row\n"
        "        where columns one\n"
        "        sure  counted, not inferred\n"
        "        do    Leave it out.\n\n"
        "1 finding: 0 high, 0 medium, 1 low; 8 tests, false alarms at most 1%"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: pr.audit(f, target="z"), "the table has no column 'z'"),
        (lambda f: pr.audit(f, target=[1, 2, 3]), "target has 3 values but the table 1200 rows"),
        (lambda f: pr.audit(f, f.rename(columns=lambda c: c + "_")), "train and test share no column"),
        (lambda f: pr.audit(f, f.assign(x0="a"), target="y"), "column 'x0' holds numbers in one table and labels in"),
        (lambda f: pr.audit(f.assign(y=f.y.where(f.x0 > -1)), target="y"), "the target 'y' is missing"),
        (lambda f: pr.audit(f, target="y", pipeline=StandardScaler()), "pipeline needs the test table"),
        (lambda f: pr.audit(f[:0], target="y"), "a table has no rows"),
    ],
)
def test_what_cannot_be_audited_is_said(call, message):
    with pytest.raises(DataError, match=message):
        call(table())


def test_a_target_with_too_many_classes_is_refused_before_the_memory_is_taken():
    with pytest.raises(TooLarge, match="the target 'target' has 20,000 values in 20,000 rows"):
        pr.audit({"x": np.arange(20_000.0)}, target=[f"c{i}" for i in range(20_000)])


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_few_rows_are_enough_to_ask(rows):
    frame = table()[:rows]
    findings = pr.audit(frame, frame, target="y")
    assert findings.exit_code in (0, 3)
    assert json.loads(findings.to_json())["findings"] is not None


# -- the parts ---------------------------------------------------------------------------------------------------------


def test_votes_without_a_row_are_those_of_the_other_rows():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=60)
    bins = [(rng.integers(4, size=60), 4), (rng.integers(2, size=60), 2)]
    votes = Votes.of(bins, group, 3)
    share = np.bincount(group, minlength=3) / 60
    for i in range(60):
        others = np.arange(60) != i
        expected = np.log(share)
        for codes, size in bins:
            counts = np.zeros((3, size))
            np.add.at(counts, (group[others], codes[others]), 1)
            expected = expected + np.log1p(counts[:, codes[i]] / share)
        assert np.allclose(votes.joint[i], expected)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_a_column_alone_answers_as_its_votes_do(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(rng.integers(2, 5), size=40)
    votes = Votes.of([(rng.integers(5, size=40), 5)], group, 5)
    joint = votes.joint.copy()
    own = joint[np.arange(40), group]
    joint[np.arange(40), group] = -np.inf
    assert np.array_equal(votes.right_alone(0), own > joint.max(axis=1))


def test_votes_without_rows_are_those_of_a_refit():
    rng = np.random.default_rng(0)
    group, codes = rng.integers(2, size=80), rng.integers(6, size=100)
    votes = Votes.of([(codes, 6)], group, 2)
    gone = np.arange(0, 80, 3)
    kept = np.setdiff1d(np.arange(80), gone)
    refit = Votes.of([(np.concatenate([codes[kept], codes[80:]]), 6)], group[kept], 2)
    new = slice(80, 100)
    assert np.array_equal(votes.without(gone).answers(new), refit.answers(slice(len(kept), len(kept) + 20)))


def test_bins_are_of_equal_content_and_the_first_is_for_what_is_missing():
    x = np.append(np.random.default_rng(0).normal(size=10_000), np.nan)
    bins, size = binned(x, len(x))
    assert bins[-1] == 0
    counts = np.bincount(bins, minlength=size)[1:]
    assert counts[counts > 0].min() > 300


def test_holm_is_the_step_down_of_the_book():
    p = np.random.default_rng(0).random(20) ** 3
    order = np.argsort(p)
    expected = np.empty(20)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, (20 - rank) * p[i])
        expected[i] = min(running, 1.0)
    assert np.allclose(holm(p), expected)


def test_suspicions_that_do_not_hold_are_dropped():
    made = Finding(Severity.HIGH, "x", "what", "do")
    found = judged([Suspicion(0.004, lambda: made), Suspicion(0.5, lambda: made), Suspicion(None, lambda: made)])
    assert [f.p for f in found] == [0.008, None]
    assert found.tests == 2


def test_tests_are_those_of_scipy():
    from scipy.stats import chi2_contingency

    counts = np.random.default_rng(0).integers(20, 60, size=(3, 5))
    assert association(counts)[1] == pytest.approx(chi2_contingency(counts, correction=False).pvalue)
    total = counts.sum(axis=1)
    _, p = presences(counts.T, total)
    pair = np.stack([counts[:, 2], total - counts[:, 2]], axis=1)
    assert p[2] == pytest.approx(chi2_contingency(pair, correction=False).pvalue)
