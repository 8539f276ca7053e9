"""The documentation site in a real browser: no errors, no request to another host, and search finds things.

`make docs` builds the site. The test needs it, playwright, and a Chromium (of playwright, or the system's).
"""

import os
from pathlib import Path

import pytest

from browser import open_page, serve_folder, start_browser
from paths import ROOT

SITE = ROOT / "build" / "site"
PAGES = ["index.html", "course/index.html", "course/slides.html", "api/index.html"]
COURSE = sorted((ROOT / "docs" / "course").glob("*.md"))
PAGES += [f"course/{source.stem}.html" for source in COURSE if source.stem not in ("index", "slides")]
WIDTHS = (1280, 390)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address():
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    with serve_folder(SITE) as served:
        yield served


@pytest.fixture(scope="module")
def browser():
    with start_browser() as opened:
        yield opened


@pytest.fixture
def page(browser):
    opened = open_page(browser)
    yield opened
    opened.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_without_errors_and_without_other_hosts(page, address, name, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}/{name}", wait_until="networkidle")
    assert page.problems == []
    assert [url for url in page.requested if not url.startswith((address, "data:"))] == []
    assert page.locator("h1").first.inner_text()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width + 1, f"the page is {wide} pixels wide"


@pytest.mark.parametrize("source", COURSE, ids=lambda source: source.stem)
def test_images_of_the_course_are_there(page, address, source):
    page.goto(f"{address}/course/{source.stem}.html", wait_until="load")
    sizes = page.evaluate("[...document.querySelectorAll('article img')].map(image => image.naturalWidth)")
    assert len(sizes) == 2 * source.read_text().count("<picture>")  # light and dark
    assert all(size > 300 for size in sizes)
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_formulas_are_typeset_and_figures_are_of_the_theme(browser, address, scheme):
    page = open_page(browser, color_scheme=scheme)
    page.goto(f"{address}/course/distributions.html", wait_until="networkidle")
    assert page.locator(".formula").count() == page.locator(".formula .katex").count() > 50
    assert page.locator(".katex-error").count() == 0
    assert page.evaluate("document.fonts.check('16px KaTeX_Main')")
    shown = page.evaluate(
        "[...document.querySelectorAll('article img')].filter(one => one.checkVisibility()).map(one => one.src)"
    )
    assert shown
    assert all(("dark" in source.rpartition("/")[2]) == (scheme == "dark") for source in shown)
    page.close()


@pytest.mark.parametrize("query", ["m-estimate", "nomogram", "Gibbs"])
def test_search_finds_a_page_of_the_course(page, address, query):
    page.goto(f"{address}/search.html?q={query}", wait_until="networkidle")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    found = page.evaluate("[...document.querySelectorAll('#search-results li a')].map(link => link.href)")
    assert any("/course/" in link for link in found)
    assert page.problems == []


@pytest.mark.parametrize("source", COURSE, ids=lambda source: source.stem)
def test_slides_can_be_walked_through(page, address, source):
    if source.stem in ("index", "slides"):
        pytest.skip("not a page of the course")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{address}/course/{source.stem}-slides.html", wait_until="networkidle")
    total = page.evaluate("Reveal.getTotalSlides()")
    assert total > 5
    seen = set()
    for _ in range(total):
        heading, height = page.evaluate("(slide => [slide.innerText, slide.scrollHeight])(Reveal.getCurrentSlide())")
        seen.add(heading)
        assert height < 900, heading
        page.keyboard.press("Space")
    assert len(seen) == total
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(browser, address, name, scheme):
    axe = os.environ.get("PRIORY_AXE")
    if not axe:
        pytest.skip("PRIORY_AXE does not name the file of axe-core")
    page = open_page(browser, color_scheme=scheme)
    page.goto(f"{address}/{name}", wait_until="networkidle")
    page.evaluate(Path(axe).read_text(encoding="utf-8"))
    found = page.evaluate("axe.run('article').then(result => result.violations)")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
    page.close()
