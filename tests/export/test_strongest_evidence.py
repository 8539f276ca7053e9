"""The strongest evidence for each class: one source for the terminal, for JSON and for the report."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from priory import NaiveBayes, TextClassifier, inbox, report
from priory.export.strongest_evidence import find_strongest_evidence
from priory.model.ledger_output import DECIBANS_PER_NAT
from shell import write


def draw_sorted_rows():
    """1,200 rows of three classes, sorted by class, and a column that speaks for each of them."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 400)
    noise = rng.normal(size=1200)
    return labels, noise + np.repeat([0, 3, 6], 400), rng.normal(size=1200)


@pytest.mark.slow
def test_every_class_of_a_sorted_file_has_evidence():
    labels, x, noise = draw_sorted_rows()
    table = {"x": x.tolist(), "noise": noise.tolist()}
    evidence = find_strongest_evidence(NaiveBayes().fit(table, labels), table, labels)
    assert list(evidence) == ["a", "b", "c"]
    assert all(found[0].name == "x" for found in evidence.values())


@pytest.mark.slow
def test_the_order_of_rows_hardly_matters():
    labels, x, noise = draw_sorted_rows()
    order = np.random.default_rng(1).permutation(1200)
    found = []
    for rows in (np.arange(1200), order):
        table = {"x": x[rows].tolist(), "noise": noise[rows].tolist()}
        found.append(find_strongest_evidence(NaiveBayes().fit(table, labels[rows]), table, labels[rows]))
    for label in "abc":
        assert found[0][label][0].decibans == pytest.approx(found[1][label][0].decibans, rel=0.15)


def test_a_column_is_weighed_against_all_other_classes_together():
    labels, rows = ["a", "a", "b", "c"], [{"x": "p"}, {"x": "p"}, {"x": "q"}, {"x": "p"}]
    model = NaiveBayes("categorical", calibrate=False).fit(rows, labels)
    ledger = model.explain(rows[:1])[0]
    a, b, c = np.exp(ledger.lines[0].log_likelihood)
    expected = np.log(a / (b / 2 + c / 2)) * DECIBANS_PER_NAT
    assert find_strongest_evidence(model, rows, np.array(labels))["a"][0].decibans == pytest.approx(expected)


def test_what_rules_out_all_other_classes_is_infinite_evidence():
    rows = [{"x": "p"}, {"x": "p"}, {"x": "q"}, {"x": "q"}]
    model = NaiveBayes("categorical", estimate="ml", calibrate=False).fit(rows, list("aabb"))
    evidence = find_strongest_evidence(model, rows, np.array(list("aabb")))
    assert evidence["a"][0].decibans == math.inf


def test_words_are_those_of_the_model_and_a_hashed_model_has_none():
    messages, labels = inbox()
    texts, labels = [message["text"] for message in messages], np.array(labels)
    model = TextClassifier().fit(texts, labels)
    for label, found in find_strongest_evidence(model, texts, labels).items():
        expected = model.evidence(label, 10)
        assert [(e.name, e.decibans, e.own_count) for e in found] == [(t, db, n[label]) for t, db, n in expected]
    assert find_strongest_evidence(TextClassifier(buckets=64).fit(texts, labels), texts, labels) == {}
    assert find_strongest_evidence(object(), texts, labels) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["table", "texts"])
def test_the_terminal_json_and_the_report_show_the_same_numbers(kind, run):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    messages, labels = inbox()
    order = np.argsort(labels, kind="stable")  # a sorted file
    names = list(messages[0]) if kind == "table" else ["text"]
    write("inbox.csv", [*names, "label"], [[*(messages[i][name] for name in names), labels[i]] for i in order])
    arguments = ["train", "inbox.csv", "--target", "label", "--no-audit", "--force", "--report", "inbox.html"]
    terminal = run(*arguments)[1]
    evidence = json.loads(run(*arguments, "--json")[1])["evidence"]
    html = Path("inbox.html").read_text()
    section = html[html.index('<h2 id="evidence">') : html.index('<h2 id="mistakes">')]
    assert list(evidence) == ["normal", "spam", "urgent"]
    for label, lines in evidence.items():
        assert len(lines) >= 3
        of_class = section[section.index(f"<h3>{label}</h3>") :].split("</section>")[0]
        shown = re.findall(r'class="name">(.*?)</td>.*?class="n">(.*?)</td>', of_class)
        assert shown[: len(lines)] == [(name, f"{decibans:+.1f}") for name, decibans in lines]
        said = " ".join(terminal[terminal.index(f"  {label}: ") :].split())
        assert said.startswith(f"{label}: " + ", ".join(f"{name} {decibans:+.1f}" for name, decibans in lines))


@pytest.mark.slow
def test_the_report_of_a_sorted_table_has_evidence_for_every_class():
    pytest.importorskip("jinja2")
    labels, x, noise = draw_sorted_rows()
    table = {"x": x.tolist(), "noise": noise.tolist()}
    html = report(NaiveBayes().fit(table, labels), table, labels).html
    assert all(f"<section><h3>{label}</h3>" in html for label in "abc")
