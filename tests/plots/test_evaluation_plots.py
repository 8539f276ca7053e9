"""The evaluation figures show the numbers of the scores and ledgers, whatever the labels are called."""

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.special import softmax

from paths import ROOT
from priory import Scores, TextClassifier

pytest.importorskip("matplotlib")
from priory import plots
from priory.plots.canvas import render_inline_svg


def make_scores(classes=3, rows=200, names=None):
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, rows)
    p = softmax(rng.normal(size=(rows, classes)) + 2 * np.eye(classes)[y], axis=1)
    names = np.array(list(range(classes)) if names is None else names)
    return Scores.of(names[y], p, names)


def drawn(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")
    return figure.axes


def words(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("draw", [plots.confusion_matrix, plots.reliability_diagram, plots.roc_curves])
def test_a_figure_for_a_page_has_attributes_instead_of_styles_and_images(draw):
    picture = render_inline_svg(lambda: draw(make_scores()), "a <figure>")
    root = ET.fromstring(picture)
    assert root.get("aria-label") == "a <figure>"
    assert root.get("stroke-linejoin") == "round"
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"style", "image", "metadata"}
    assert not any("style" in element.attrib for element in root.iter())
    assert any(element.get("fill") == "currentColor" for element in root.iter())
    other = render_inline_svg(lambda: plots.score_histogram(make_scores()), "another")
    ids = [{element.get("id") for element in ET.fromstring(one).iter()} - {None} for one in (picture, other)]
    assert not {name for name in ids[0] & ids[1] if not name.startswith(("m", "p", "C"))}


def test_confusion_matrix_has_the_counts():
    scores = make_scores()
    (axes,) = drawn(plots.confusion_matrix(scores))
    assert words(axes) == [f"{n:g}" for n in scores.confusion.ravel() if n > 0]
    shade = axes.collections[0].get_array()[:, :, 3]
    assert shade[0, 0] == pytest.approx(0.04 + 0.96 * scores.per_class[0].recall.value)
    (axes,) = drawn(plots.confusion_matrix(make_scores(20)))
    assert not axes.texts


def test_of_many_classes_those_confused_most_are_drawn():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 100, 2000)
    answer = np.where(y < 20, (y + 1) % 20, y)  # the first twenty are confused with each other
    scores = Scores.of(y, np.eye(100)[answer], range(100))
    (axes,) = drawn(plots.confusion_matrix(scores))
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(names) == 60
    assert names[:20] == [str(c) for c in range(20)]
    assert axes.get_title() == "the 60 of 100 classes that were confused most often"


def test_reliability_before_and_after():
    scores = make_scores()
    above, below = drawn(plots.reliability_diagram({"before": make_scores(4), "after": scores}))
    marks = above.get_lines()[-1]
    seen = scores.reliability(10)
    assert marks.get_xdata() == pytest.approx([b.certainty for b in seen])
    assert marks.get_ydata() == pytest.approx([b.accuracy.value for b in seen])
    assert sum(bar.get_height() for bar in below.patches) == pytest.approx(400)
    assert drawn(plots.reliability_diagram(scores))


def test_histogram_counts_the_wrong_ones():
    scores = make_scores()
    (axes,) = drawn(plots.score_histogram(scores))
    wrong, right = (sum(bar.get_height() for bar in bars) for bars in axes.containers)
    assert (wrong, right) == pytest.approx((200 * (1 - scores.accuracy.value), 200 * scores.accuracy.value))


def test_evidence_of_a_ledger_and_of_a_class():
    model = TextClassifier().fit(["win cash now", "cash prize", "lunch at noon"], ["spam", "spam", "ham"])
    ledger = model.explain("cash cash for lunch")[0]
    (axes,) = drawn(plots.evidence_bars(ledger))
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["lunch", "cash × 2", "prior"]
    heights = dict(zip(names, [bar.get_width() for bar in axes.patches], strict=True))
    assert sum(heights.values()) == pytest.approx(ledger.log_odds() * 10 / np.log(10))
    evidence = model.evidence("spam")
    (axes,) = drawn(plots.evidence_bars(evidence))
    assert [bar.get_width() for bar in axes.patches][::-1] == pytest.approx([e.decibans for e in evidence])


def test_learning_curve_shows_the_base_rate():
    curve = {100: make_scores(rows=100), 1000: make_scores(rows=1000)}
    (axes,) = drawn(plots.learning_curve(curve))
    model, base = axes.get_lines()
    assert model.get_ydata() == pytest.approx([s.log_loss.value for s in curve.values()])
    assert base.get_ydata() == pytest.approx([s.base.log_loss for s in curve.values()])
    (axes,) = drawn(plots.learning_curve(curve, "calibration_error"))
    assert len(axes.get_lines()) == 1


def test_roc_curves_of_each_class():
    scores = make_scores()
    (axes,) = drawn(plots.roc_curves(scores))
    assert len(axes.get_lines()) == 4
    (axes,) = drawn(plots.roc_curves(make_scores(2)))
    assert len(axes.get_lines()) == 2  # the other class is its mirror image


HOSTILE = ["<script>alert(1)</script>", "$\\frac{", "漢字\x00]]>"]


@pytest.mark.parametrize("draw", [plots.confusion_matrix, plots.roc_curves])
def test_labels_are_text_and_nothing_else(draw):
    scores = make_scores(names=HOSTILE)
    picture = render_inline_svg(lambda: draw(scores), 'a "title"')
    root = ET.fromstring(picture)
    assert root.attrib["aria-label"] == 'a "title"'
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    written = "".join(root.itertext())
    assert "<script>alert(1)</script>" in written
    assert "$\\frac{" in written


def test_the_ink_is_that_of_the_page_and_the_bytes_are_the_same_each_time():
    one, two = (render_inline_svg(lambda: plots.score_histogram(make_scores()), "certainty") for _ in range(2))
    assert one == two
    assert "currentColor" in one
    assert "#333333" not in one


@pytest.mark.parametrize("name", ["confusion_matrix", "score_histogram", "reliability"])
def test_the_page_shows_them(name):
    page = ROOT / "docs" / "probabilities.md"
    assert f"figures/{name}.svg" in page.read_text()
    assert (page.parent / "figures" / f"{name}.svg").stat().st_size > 1000
