"""The documentation site in a real browser: no errors, no request to another host, and search finds things.

`make docs` builds the site. The test needs it, playwright, and a Chromium (of playwright, or the system's).
"""

import functools
import http.server
import shutil
import threading

import pytest

from paths import ROOT

SITE = ROOT / "build" / "site"
PAGES = ["index.html", "course/index.html", "course/naive-bayes.html", "gallery/index.html", "api/index.html"]
COURSE = sorted((ROOT / "docs" / "course").glob("*.md"))
WIDTHS = (1280, 390)

pytestmark = pytest.mark.slow


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Keep the output of the tests clean."""


@pytest.fixture(scope="module")
def address():
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    handler = functools.partial(SilentHandler, directory=SITE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no browser: {error}")
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    opened = browser.new_page()
    opened.problems, opened.requested = [], []
    opened.on("console", lambda message: opened.problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on("request", lambda request: opened.requested.append(request.url))
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
    assert len(sizes) == source.read_text().count("```{image}")
    assert all(size > 300 for size in sizes)
    assert page.problems == []


def test_search_finds_a_page_of_the_course(page, address):
    page.goto(f"{address}/search.html?q=nomogram", wait_until="networkidle")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    found = page.evaluate("[...document.querySelectorAll('#search-results li a')].map(link => link.href)")
    assert any("nomogram" in link for link in found)
    assert page.problems == []
