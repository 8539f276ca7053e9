"""Reports on few rows and on many: texts and tables, of two classes and of twenty."""

import re
from dataclasses import replace

import numpy as np
import pytest

from priory import NaiveBayes, TextClassifier, report, workflows
from priory.workflows import TrainingOptions
from shell import write

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def draw_texts(n_rows, n_classes):
    rng = np.random.default_rng(0)
    rows = []
    for c in rng.integers(n_classes, size=n_rows):
        own, other = rng.integers(8, size=3), rng.integers(400, size=5)
        rows.append([f"class{c}", " ".join([*(f"w{5 * c + j}" for j in own), *(f"v{j}" for j in other)])])
    return ["label", "text"], rows


def draw_table(n_rows, n_classes):
    rng = np.random.default_rng(0)
    group = rng.integers(n_classes, size=n_rows)
    numbers = rng.normal(size=n_rows) + 2 * group
    colours = np.where(rng.random(n_rows) < 0.5, group % 3, rng.integers(3, size=n_rows))
    return ["label", "size", "colour"], [
        [f"class{c}", f"{x:.3f}", "rgb"[colour]] for c, x, colour in zip(group, numbers, colours, strict=True)
    ]


def list_sizes():
    for draw in (draw_texts, draw_table):
        for n_rows in (100, 5000, 50_000):
            for n_classes in (2, 20):
                slow = n_rows == 50_000 or (n_rows == 5000 and n_classes == 20)
                yield pytest.param(draw, n_rows, n_classes, marks=pytest.mark.slow if slow else ())


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "n_rows", "n_classes"), list_sizes())
def test_training_reports_on_any_number_of_rows(draw, n_rows, n_classes, here):
    header, rows = draw(n_rows, n_classes)
    write("rows.csv", header, rows)
    result = workflows.train("rows.csv", target="label", options=TrainingOptions(audit=False))
    html = result.report().html
    n_scored = len(result.scores.truth)
    shown = f"{n_rows:,} rows" if n_scored == n_rows else f"{n_scored:,} of {n_rows:,} rows"
    assert f"<td>{shown}, each judged by the model without it</td>" in html
    assert f"<b>{result.scores.accuracy.value:.1%}</b>" in html
    has_curve = len(result.labels) == n_rows  # it takes all rows that the model has learned
    assert html.count("<svg role") == 4 + has_curve
    assert ('id="curve"' in html) == has_curve
    assert (result.labels[result.scores.positions] == result.model.classes_[result.scores.truth]).all()


@pytest.mark.slow
def test_the_scored_rows_of_many_are_found_again(monkeypatch):
    """Where only some rows are scored, mistakes are shown with their own number, text and label."""
    monkeypatch.setattr("priory.model.cells.MEMORY_OF_TEXTS", 100)
    _, rows = draw_texts(301, 2)
    labels = ["class0" if i % 9 == 0 else label for i, (label, _) in enumerate(rows)]  # some of them wrong
    texts = [text for _, text in rows]
    model = TextClassifier().fit(texts, labels)
    scores = model.evaluate(texts, labels)
    assert len(scores.truth) == 110  # with the reserve
    assert len(set(scores.positions.tolist())) == 110
    assert (np.array(labels)[scores.positions] == model.classes_[scores.truth]).all()
    html = report(model, texts, labels).html
    shown = re.findall(r"row (\d+): <b>(\w+)</b> mistaken for", html)
    assert len(shown) > 2
    for row, truth in shown:
        assert labels[int(row)] == truth
        assert int(row) in scores.positions
    first = re.search(r'<div class="text">(.*?)</div>', html)[1]
    assert re.sub("<.*?>", "", first) == texts[int(shown[0][0])]


@pytest.mark.parametrize("folds", ["auto", 5])
def test_the_positions_of_scores_are_those_of_their_rows(folds):
    header, rows = draw_table(150, 3)
    table = [dict(zip(header[1:], row[1:], strict=True)) for row in rows]
    labels = np.array([row[0] for row in rows])
    scores = NaiveBayes().fit(table, labels).evaluate(table, labels, folds=folds)
    assert (labels[scores.positions] == np.array(scores.classes)[scores.truth]).all()
    assert replace(scores, positions=None).accuracy == scores.accuracy
