"""Training from files: what is said of it, what can be asked for, and what was learned."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import priory
from priory import inbox
from priory.estimators.text_classifier import TextClassifier
from shell import TEXTS, write


def test_train_says_what_a_person_wants_to_know(mail, run):
    code, out, err = run("train", "mail.csv", "--target", "label", "--force")
    assert (code, err) == (0, "")
    assert out.startswith("6 rows, 2 classes: ham 3, spam 3\ncolumns, by the family that explains them best\n")
    for part in (
        "  text, 25 different words: text\n",
        "scores: each row judged by a model that has not seen it",
        "accuracy",
        "log loss",
        "base rate",
        "calibration",
        "spam: ",
        "wrote mail.priory",
    ):
        assert part in out
    assert "\x1b" not in out


def test_train_answers_in_json(mail, run):
    _, out, _ = run("train", "mail.csv", "--target", "label", "--force", "--json")
    answer = json.loads(out)
    assert (answer["rows"], answer["classes"], answer["sampled"]) == (6, {"ham": 3.0, "spam": 3.0}, 6)
    assert answer["model"] == "mail.priory"
    assert answer["scores"]["accuracy"]


def test_a_trained_model_is_the_one_of_the_library(mail):
    texts, labels = [text for _, text in TEXTS], [label for label, _ in TEXTS]
    trained = priory.load("mail.priory")
    again = TextClassifier().fit(texts, labels)  # too few rows to say anything about themselves: no corrections
    assert trained.vocabulary_ == again.vocabulary_
    np.testing.assert_allclose(trained.predict_proba(texts), again.predict_proba(texts))


def test_columns_can_be_said(table, run):
    code, out, _ = run(
        *["train", "inbox.csv", "--target", "label", "--force", "--plain", "--json"],
        *["--type", "hour=label", "--type", "links=poisson", "--ignore", "sender", "--text", "text"],
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["columns"] == {"hour": "categorical", "links": "poisson", "text": "text"}


def test_a_tree_of_texts_needs_no_target(run):
    for label, text in TEXTS:
        folder = Path("tree") / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(os.listdir(folder))}.txt").write_text(text)
    assert run("train", "tree", "--no-audit")[0] == 0
    _, out, _ = run("predict", "tree.priory", "tree", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert all(row["label"] == row["predicted_label"] for row in rows)
    assert rows[0]["path"] == "tree/ham/0.txt"


def test_a_column_that_is_empty_is_left_out_and_said(run):
    write("a.csv", ["label", "x", "e"], [["a", 1, ""], ["b", 2, ""], ["a", 1.5, ""]])
    code, out, err = run("train", "a.csv", "--target", "label", "--json", "--no-audit")
    assert code == 0
    assert "priory: column 'e' is empty and was left out\n" in err
    assert json.loads(out)["left_out"] == ["e"]


def test_repairs_are_counted(run):
    Path("a.csv").write_text("label,x\na,1\nb,2\nb,3,4\na\n,5\na,2\n")
    code, _, err = run("train", "a.csv", "--target", "label", "--ragged", "skip", "--skip-unlabelled", "--no-audit")
    assert code == 0
    assert "padded or skipped 2 malformed rows\n" in err
    assert "skipped 1 row without a label\n" in err


def pairs_decide():
    """Rows whose label is told by two columns together, and by neither alone."""
    rng = np.random.default_rng(0)
    a, b, noise = rng.integers(0, 2, (3, 400))
    y = np.where(rng.random(400) < 0.05, noise, a ^ b)
    return [["yes" if label else "no", "ab"[i], "cd"[j]] for label, i, j in zip(y, a, b, strict=True)]


def test_a_table_is_refined_and_has_no_option_for_it(run):
    write("xor.csv", ["label", "a", "b"], pairs_decide())
    how = ["train", "xor.csv", "--target", "label", "--force", "--no-audit"]
    code, out, _ = run(*how, "--json")
    assert code == 0
    assert json.loads(out)["scores"]["accuracy"]["value"] > 0.9
    for option in ("--refine", "--no-refine"):
        code, _, err = run(*how, option)
        assert code != 0
        assert f"{option} is only for a single column of texts; the columns are 'a', 'b'" in err


def test_refined_texts_answer_as_the_library_does_and_learning_on_keeps_it(run):
    messages, labels = inbox()
    rows = [[y, m["text"]] for m, y in zip(messages, labels, strict=True)]
    write("all.csv", ["label", "text"], rows)
    run("train", "all.csv", "--target", "label", "--no-audit", "--refine", "--model", "multinomial")
    texts = [text for _, text in rows]
    trained = priory.load("all.priory")
    again = TextClassifier("multinomial", refine=True).fit(texts, [y for y, _ in rows])
    assert trained.corrections_.names == ("tempering", "refinement")
    np.testing.assert_allclose(trained.predict_proba(texts), again.predict_proba(texts), atol=1e-6)
    _, out, _ = run("predict", "all.priory", "all.csv", "--json")
    told = [json.loads(line)["probability"] for line in out.splitlines()]
    np.testing.assert_allclose(told, again.predict_proba(texts).max(axis=1), atol=1e-5)
    write("more.csv", ["label", "text"], rows[:9])
    code, _, err = run("learn", "all.priory", "more.csv")
    assert (code, err) == (0, "")
    assert priory.load("all.priory").corrections_.names == ("tempering", "refinement")


def test_fewer_rows_may_be_drawn_to_judge_by(table, run):
    _, out, _ = run("train", "inbox.csv", "--target", "label", "--force", "--no-audit", "--json", "--sample", "60")
    assert (json.loads(out)["rows"], json.loads(out)["sampled"]) == (308, 60)


def test_texts_without_spaces_between_words_are_read_in_pairs_of_characters(run):
    reviews = [
        ("好评", "送餐很快味道很好"),
        ("差评", "送餐太慢味道很差"),
        ("好评", "味道好下次再来"),
        ("差评", "太慢了不来了"),
    ]
    write("reviews.csv", ["label", "review"], reviews)
    assert run("train", "reviews.csv", "--target", "label", "--plain")[0] == 0
    assert "味道" in priory.load("reviews.priory").vocabulary_
    _, out, _ = run("explain", "reviews.priory", "送餐太慢", "--json")
    assert json.loads(out)[0]["label"] == "差评"


def test_what_is_odd_but_allowed(run):
    write("odd.csv", ["label", "", "x"], [["a", 5, 1], ["b", 6, 2]])
    code, out, err = run("train", "odd.csv", "--target", "label", "--ignore", "", "--plain", "--json")
    assert (code, json.loads(out)["columns"]) == (0, {"x": "histogram"})
    assert err == "priory: no class has two rows; how much the values of a class vary is only a guess\n"
    write("price.csv", ["label", "x"], [[f"{i / 7:.3f}", i] for i in range(50)])
    assert run("train", "price.csv", "--target", "label", "--labels-as-text", "--plain")[0] == 0
    write("same.csv", ["label", "x", "one"], [["ab"[i % 2], i, 7] for i in range(9)])
    assert run("train", "same.csv", "--target", "label", "--plain")[0] == 0
    _, out, _ = run("predict", "same.priory", "same.csv", "--json")
    assert all(0 < json.loads(line)["probability"] < 1 for line in out.splitlines())


@pytest.mark.parametrize("data", ["mail", "inbox"])
def test_no_virtual_examples_are_allowed_and_what_is_certain_stays_finite(mail, table, run, data):
    assert run("train", f"{data}.csv", "--target", "label", "--alpha", "0", "--plain", "--force")[0] == 0
    code, out, _ = run("predict", f"{data}.priory", f"{data}.csv", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert all(abs(row["certainty"]) <= 9999.9 for row in found)
    assert max(row["probability"] for row in found) == 1.0
