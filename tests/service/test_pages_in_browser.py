"""The page in Chromium: the tasks that people come with, done with mouse and keyboard as they would do them.

They need playwright and Chromium; the check of accessibility also needs axe-core, whose file ``PRIORY_AXE`` names.
"""

import os
import shutil
from pathlib import Path

import pytest

from priory.service.changes import CreateRequest, LearnRequest
from priory.service.labelled_rows import RowBatch
from priory.service.server import create_demo_models
from running_service import run_service

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
AXE = Path(os.environ.get("PRIORY_AXE", "node_modules/axe-core/axe.min.js"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, such as Debian's package chromium"),
]

WEATHER = "outlook,wind,play\n" + "sunny,weak,yes\nsunny,strong,yes\nrain,strong,no\nrain,weak,no\n" * 5
SCRIPT = "<script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with run_service(tmp_path_factory.mktemp("service"), port=0) as service:
        create_demo_models(service)
        yield service


@pytest.fixture
def problems():
    """What the browser complains about, and addresses of other hosts."""
    return []


def is_problem(message):
    """Whether the browser complains; a page that is left aborts what it has asked for, which htmx calls an error."""
    return message.type == "error" and not message.text.startswith(("htmx:sendAbort", "htmx:afterRequest"))


@pytest.fixture
def page(browser, service, problems):
    """A page that fails the test if the browser refuses or misses anything on it."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}", viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda message: problems.append(message.text) if is_problem(message) else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url) if "127.0.0.1" not in request.url else None)
    yield page
    context.close()
    assert problems == []


def wait_for(page, text):
    page.get_by_text(text).first.wait_for()


def count_rows(service, name="messages"):
    return service.store.models[name].n_rows


def test_upload_a_table_and_ask_it(page, service):
    page.goto("/")
    page.get_by_label("File").set_input_files(
        {"name": "weather.csv", "mimeType": "text/csv", "buffer": WEATHER.encode()}
    )
    page.get_by_label("Model", exact=True).fill("weather")
    page.get_by_label("Column of labels").fill("play")
    page.get_by_role("button", name="Upload and learn").click()
    wait_for(page, "Learned 20 rows of weather.csv")
    page.get_by_role("link", name="Open weather").click()
    page.get_by_role("link", name="Try").click()
    page.get_by_label("outlook").fill("rain")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="no", exact=True).wait_for()
    assert count_rows(service, "weather") == 20


def test_the_overview_shows_scores_and_figures(page):
    page.goto("/models/messages")
    page.get_by_role("img", name="calibration").wait_for()
    assert page.get_by_role("img", name="confusion").bounding_box()["width"] > 200
    wait_for(page, "Strongest evidence")
    fill = page.evaluate("getComputedStyle(document.querySelector('figure svg path[fill=\"#2f6db5\"]')).fill")
    assert fill == "rgb(47, 109, 181)"


def test_try_a_text_correct_it_and_undo(page, service):
    before = count_rows(service)
    page.goto("/models/messages/try")
    page.get_by_label("Text").fill("Win a prize: send your rent money now")
    page.get_by_role("button", name="Ask").click()
    page.locator("mark").first.wait_for()
    page.get_by_role("button", name="urgent").click()
    wait_for(page, "Learned as urgent.")
    assert count_rows(service) == before + 1
    page.locator("h2").first.click()  # away from the button, so that a key is not typed into a field
    page.keyboard.press("u")
    wait_for(page, "Undone")
    assert count_rows(service) == before


def test_label_a_queue_by_keys(page, service):
    before = count_rows(service)
    page.goto("/models/messages/queue")
    page.get_by_label("Texts, one in each line").fill("Can you send 20 euros?\nserver is down, act now\nlunch?")
    page.get_by_role("button", name="Add rows").click()
    wait_for(page, "Row 1 of 3")
    assert page.get_by_label("Texts, one in each line").input_value() == ""
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("j")
    wait_for(page, "Row 2 of 3")
    page.keyboard.press("k")
    wait_for(page, "Row 1 of 3")
    page.keyboard.press("2")
    wait_for(page, "Row 1 of 2")
    page.keyboard.press("1")
    wait_for(page, "Row 1 of 1")
    assert count_rows(service) == before + 2
    page.get_by_label("Shortcut keys").uncheck()
    page.keyboard.press("1")
    page.get_by_label("Shortcut keys").check()
    page.keyboard.press("u")
    wait_for(page, "of 2,")
    page.keyboard.press("u")
    wait_for(page, "of 3,")
    assert count_rows(service) == before


def test_find_and_forget_a_person(page, service):
    service_rows = count_rows(service, "inbox")
    page.goto("/models/inbox/rows")
    page.get_by_label("A name, an address, a phrase").fill("jonas")
    page.keyboard.press("Enter")
    wait_for(page, "found.")
    n_found = page.locator("#found").get_by_role("checkbox").count()
    page.get_by_role("button", name="Forget the chosen rows for good").click()
    wait_for(page, "Forgotten and erased")
    wait_for(page, "No learned row contains")
    assert count_rows(service, "inbox") == service_rows - n_found < service_rows


def test_the_answer_follows_a_changed_value_and_targets_are_offered(page, service, tmp_path):
    page.goto("/models/inbox/try")
    page.get_by_label("links").fill("0")
    page.get_by_label("hour").fill("11")
    page.get_by_role("heading", name="The ledger").wait_for()
    before = page.locator("#answer").inner_text()
    page.get_by_label("links").fill("6")
    page.get_by_label("links").press("Tab")
    page.wait_for_function("before => document.querySelector('#answer').innerText !== before", arg=before)
    (tmp_path / "guests.csv").write_text('age,"the city",came\n3,Rome,yes\n')
    page.goto("/")
    page.get_by_label("File").set_input_files(tmp_path / "guests.csv")
    page.wait_for_function("document.querySelectorAll('#known-columns option').length === 3")
    offered = page.evaluate("[...document.querySelectorAll('#known-columns option')].map(e => e.value)")
    assert offered == ["came", "the city", "age"]


def test_audit_and_history(page, service):
    page.goto("/models/messages/audit")
    page.get_by_role("button", name="Audit the rows").click()
    page.get_by_text("findings:").wait_for()
    page.goto("/models/messages/try")
    page.get_by_label("Text").fill("one more message")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("button", name="normal").click()
    wait_for(page, "Learned as normal.")
    before = count_rows(service)
    page.get_by_role("link", name="History").click()
    page.get_by_label("Only").select_option("undo")
    page.wait_for_function("!document.querySelector('#events').innerText.includes('Forget')")
    page.get_by_label("Only").select_option("learn")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget change").first.click()
    wait_for(page, "Forgotten: 1 row")
    assert count_rows(service) == before - 1


def test_compare_two_models_by_keyboard(page, service):
    rows = RowBatch("text", ("server is down", "lunch at noon"), ("urgent", "normal"))
    service.writer.submit(CreateRequest("other", "ann")).result()
    service.writer.submit(LearnRequest("other", "ann", rows=rows)).result()
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/models/messages/compare")
    page.get_by_label("Compare messages with").select_option("other")
    page.get_by_label("Or rows").fill("the server is down\nlunch at noon\n")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_for(page, "2 rows, of which")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_play_with_candies_and_tennis(page):
    page.goto("/play")
    for _ in range(3):
        page.get_by_role("button", name="Draw a lime").click()
    wait_for(page, "P(next is lime) = 0.7961.")
    page.get_by_label("outlook", exact=True).select_option("overcast")
    wait_for(page, "Play tennis: yes")
    ends = "[...document.querySelectorAll('.figure-svg *')].map(one => one.getBoundingClientRect().right)"
    assert max(page.evaluate(ends)) <= 1280  # the style of the page does not reach into the figures


def test_a_typed_script_stays_text(page, service):
    page.goto("/models/messages/try")
    page.get_by_label("Text").fill(SCRIPT)
    page.get_by_role("button", name="Ask").click()
    page.get_by_label("Another class").fill(SCRIPT)
    page.get_by_role("button", name="Learn", exact=True).click()
    wait_for(page, "Learned as")
    for path in ("history", "queue", "rows?phrase=broken", ""):
        page.goto(f"/models/messages/{path}".rstrip("/"))
        assert "broken" not in page.title()
        assert page.locator("img[src=x]").count() == 0
    page.goto("/models/messages/history")
    page.get_by_role("button", name="Undo change").first.click()
    wait_for(page, "is undone.")


def test_an_error_is_told_on_the_page_and_goes_away(page, problems):
    page.goto("/models/inbox/try")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("alert").get_by_text("fill in at least one column").wait_for()
    assert all("422" in problem for problem in problems)
    problems.clear()
    page.get_by_label("hour").fill("9")
    page.get_by_role("button", name="Ask").click()
    wait_for(page, "The ledger")
    assert page.get_by_role("alert").inner_text() == ""


PATHS = [
    "/",
    "/models/messages",
    "/models/messages/try",
    "/models/inbox/try",
    "/models/messages/queue",
    "/models/messages/rows?phrase=server",
    "/models/messages/audit",
    "/models/messages/compare",
    "/models/messages/traffic",
    "/models/messages/history",
    "/play",
]


@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core: npm install axe-core, or PRIORY_AXE=.../axe.min.js")
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_has_no_serious_finding(page, colours):
    page.emulate_media(color_scheme=colours, reduced_motion="reduce")
    for path in PATHS:
        page.goto(path)
        if path == "/models/messages":
            page.get_by_role("img", name="calibration").wait_for()
        if path == "/models/messages/try":
            page.get_by_label("Text").fill("Win a prize now")
            page.get_by_role("button", name="Ask").click()
            page.locator("mark").first.wait_for()
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("async () => (await axe.run()).violations")
        serious = [
            (path, one["id"], node["html"][:120])
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
        assert serious == []


def test_no_page_is_wider_than_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 800})
    for path in PATHS:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
