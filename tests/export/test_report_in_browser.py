"""The report in a real browser, on a phone and on a desk: nothing is cut, and nothing scrolls sideways."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from browser import open_page, serve_folder, start_browser
from priory import NaiveBayes, TextClassifier, inbox, report

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.slow

# elements that end beyond the window, unless their own box scrolls or they are in a part that is closed
CUT = """() => [...document.querySelectorAll("main *")].filter(e => e.checkVisibility({contentVisibilityAuto: true})
    && !e.closest("details:not([open])") && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    rows, labels = inbox()
    numbers, codes = load_breast_cancer(return_X_y=True, as_frame=True)
    wide = numbers.iloc[:200].rename(columns={"mean radius": "a_name_without_a_blank_" * 3})
    truth = pd.Series(np.array(["malignant", "benign"])[codes[:200]], name="verdict")
    texts = [row["text"] for row in rows]
    plain = NaiveBayes(calibrate=False)
    made = {
        "mixed": report(plain.fit(rows, labels), rows, labels),
        "wide": report(plain.fit(wide, truth), wide, truth),
        "texts": report(TextClassifier(calibrate=False).fit(texts, labels), texts, labels),
    }
    for name, page in made.items():
        page.save(folder / f"{name}.html")
    with serve_folder(folder) as served:
        yield served


@pytest.fixture(scope="module")
def browser():
    with start_browser() as opened:
        yield opened


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["mixed", "wide", "texts"])
def test_nothing_is_cut_and_nothing_scrolls_sideways(browser, address, name, width):
    page = open_page(browser, viewport={"width": width, "height": 900})
    page.goto(f"{address}/{name}.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []
    bars = page.evaluate("[...document.querySelectorAll('.evidence .bar')].map(e => e.getBoundingClientRect().width)")
    assert min(width for width in bars if width > 0) >= 60
    assert [text for text in page.problems if "favicon" not in text and "404" not in text] == []
    page.close()


def test_a_summary_for_everybody_comes_first(browser, address):
    page = open_page(browser, viewport={"width": 390, "height": 900})
    page.goto(f"{address}/wide.html")
    summary = page.locator("p.verdict").inner_text()
    assert "Of 100 rows that it has not learned, it answers" in summary
    assert "Its most frequent mistake is" in summary
    assert page.locator("p.verdict").bounding_box()["y"] < 300
    page.close()
