"""The figures of the course that can be dragged, in a real browser: their numbers are the library's, to 1e-9."""

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, norm

import build_docs
from browser import open_page, serve_folder, start_browser
from priory import BayesianLinearRegression, Continuum, Hypotheses, NaiveBayes
from priory.bayes.course import check, format_answer, list_exercises
from priory.families import Bernoulli, Gaussian
from priory.regression import NormalInverseGamma
from test_worked_examples import joint, posterior, table
from worked_examples import WORKED_EXAMPLES

pytestmark = pytest.mark.slow

FIGURES = ["candy-bags", "coin", "two-bells", "m-estimate", "tennis", "reliability", "posterior-lines"]
PAGE = """<!DOCTYPE html><html lang="en"><head><title>figures</title><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="figures.css">
<script type="module" src="course.js"></script></head><body><main><h1>Figures</h1>{places}</main></body></html>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "course"
    build_docs.stage_scripts(folder)
    places = "".join(f'<div class="play" data-figure="{name}"><img alt="{name}"></div>' for name in FIGURES)
    places += '<div class="exercise" data-exercise="library-1"></div>'
    (folder / "all.html").write_text(PAGE.format(places=places))
    for name in FIGURES:
        (folder / f"{name}.html").write_text(PAGE.format(places=f'<div class="play" data-figure="{name}"><img></div>'))
    with serve_folder(folder) as served:
        yield served


@pytest.fixture(scope="module")
def browser():
    with start_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def compute(browser, address):
    """Calls a function of a module in the browser."""
    page = open_page(browser)
    page.goto(f"{address}/coin.html")

    def call(module, expression):
        return page.evaluate(f"import('/{module}.js').then(async m => ({expression}))")

    yield call
    page.close()


def open_figure(browser, address, name, **options):
    page = open_page(browser, **options)
    page.goto(f"{address}/{name}.html", wait_until="networkidle")
    page.wait_for_selector(".figure-words:not(:empty)")
    return page


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limes", "cherries"), [(0, 0), (1, 0), (3, 0), (2, 1), (30, 20)])
def test_candy_bags_are_the_hypotheses_of_the_library(compute, limes, cherries):
    shares, weights = [0, 0.25, 0.5, 0.75, 1], [0.1, 0.2, 0.4, 0.2, 0.1]
    bags = Hypotheses(
        dict(enumerate(weights)), {h: {"lime": share, "cherry": 1 - share} for h, share in enumerate(shares)}
    ).update_many(["lime"] * limes + ["cherry"] * cherries)
    drawn = compute("figure-candy-bags", f"m.learn({[3 * w for w in weights]}, {limes}, {cherries})")
    assert drawn["posterior"] == pytest.approx(list(bags.posterior.values()), rel=1e-9, abs=1e-12)
    assert drawn["next"] == pytest.approx(bags.predict_proba()["lime"], rel=1e-9)
    assert drawn["evidence"] == pytest.approx(bags.evidence, rel=1e-9)


@pytest.mark.parametrize(("a", "b", "heads", "tails"), [(1, 1, 7, 3), (5, 5, 7, 3), (2.5, 40, 0, 12), (60, 60, 100, 3)])
def test_the_coin_is_the_continuum_of_the_library(compute, a, b, heads, tails):
    coin = Continuum(("H", "T"), Bernoulli(a, b)).update_many(["H"] * heads + ["T"] * tails)
    drawn = compute("figure-coin", f"m.learn({a}, {b}, {heads}, {tails})")
    assert [drawn["ml"], drawn["map"]] == pytest.approx([coin.ml(), coin.map()], rel=1e-9)
    assert drawn["mean"] == pytest.approx(coin.predict_proba()["H"], rel=1e-9)
    assert drawn["logEvidence"] == pytest.approx(coin.log_evidence, rel=1e-9)
    assert drawn["interval"] == pytest.approx(beta.ppf([0.025, 0.975], a + heads, b + tails).tolist(), rel=1e-9)
    density = compute("figure-coin", f"m.logDensity(0.3, {a + heads}, {b + tails})")
    assert density == pytest.approx(float(coin.log_density(0.3)), rel=1e-9)


def bells(means, sds, prior):
    def density(mean, sd):
        return lambda x: float(np.exp(Gaussian().log_density(x, (mean, sd**2))))

    return Hypotheses({0: prior, 1: 1 - prior}, {c: density(means[c], sds[c]) for c in (0, 1)})


@pytest.mark.parametrize(
    ("means", "sds", "prior", "count"),
    [([-1.5, 1.5], [1, 1], 0.5, 1), ([0, 2], [1, 1], 0.9, 1), ([0, 0.5], [1, 2], 0.5, 2), ([0, 0], [2, 1], 0.01, 2)],
)
def test_two_bells_have_the_borders_and_posteriors_of_the_library(compute, means, sds, prior, count):
    given = json.dumps({"means": means, "sds": sds, "prior": prior})
    for x in (-2.0, 0.3, 4.0):
        wanted = list(bells(means, sds, prior).update(x).posterior.values())
        assert compute("figure-two-bells", f"m.posterior({x}, {given})") == pytest.approx(wanted, rel=1e-9)
    borders = compute("figure-two-bells", f"m.borders({given})")
    assert len(borders) == count
    for border in borders:
        assert bells(means, sds, prior).update(border).posterior[0] == pytest.approx(0.5, abs=1e-9)

    def overlap(x):
        return min(prior * norm.pdf(x, means[0], sds[0]), (1 - prior) * norm.pdf(x, means[1], sds[1]))

    cuts = [-20, *borders, 20]
    error = sum(quad(overlap, low, high, epsabs=1e-13)[0] for low, high in pairwise(cuts))
    assert compute("figure-two-bells", f"m.errorRate({given})") == pytest.approx(error, abs=1e-9)


@pytest.mark.parametrize("m", [0, 1, 3, 12])
def test_m_estimates_are_those_of_the_library(compute, m):
    rows, labels, _ = table(WORKED_EXAMPLES["go_to_library"])
    tables = NaiveBayes.textbook(m).fit(rows, labels).tables_
    drawn = compute("figure-m-estimate", f"m.estimate(m.COUNTS, {m})")
    for one in tables.estimates:
        if one.column == "outlook":
            assert drawn[one.value][["No", "Yes"].index(one.label)] == pytest.approx(one.estimate, rel=1e-9)


@pytest.mark.parametrize("m", [0, 3, 7])
@pytest.mark.parametrize("known", [4, 3, 2, 0])
def test_the_ledger_of_tennis_is_that_of_the_library(compute, m, known):
    example = WORKED_EXAMPLES["play_tennis"]
    values = [value if k < known else None for k, value in enumerate(example["query"])]
    rows, play, query = table({**example, "query": values})
    model = NaiveBayes.textbook(m).fit(rows, play)
    drawn = compute("figure-tennis", f"m.judge({json.dumps([value or '' for value in values])}, {m})")
    assert drawn["product"] == pytest.approx(list(joint(model, query).values()), rel=1e-9)
    assert drawn["posterior"] == pytest.approx(list(posterior(model, query).values()), rel=1e-9)


@pytest.mark.parametrize(("gap", "copies"), [(1, 1), (1, 5), (1.5, 4)])
def test_copied_columns_claim_what_the_library_claims(compute, gap, copies):
    for x in (-1.0, 0.2, 2.0):
        claimed = compute("figure-reliability", f"m.claim({x}, {gap}, {copies})")
        copied = bells([0, gap], [1, 1], 0.5).update_many([x] * copies)
        single = bells([0, gap], [1, 1], 0.5).update(x)
        assert claimed == pytest.approx(copied.posterior[1], rel=1e-9)
        certainty = max(claimed, 1 - claimed)
        true = compute("figure-reliability", f"m.truth({certainty}, {copies})")
        assert true == pytest.approx(max(single.posterior.values()), rel=1e-9)
    loss = quad(lambda x: norm.pdf(x) * np.logaddexp(0, copies * gap * (x - gap / 2)), -12, 12, epsabs=1e-12, limit=200)
    assert compute("figure-reliability", f"m.logLoss({gap}, {copies})") == pytest.approx(loss[0], rel=1e-9)


@pytest.mark.parametrize("strength", [0.1, 1, 20])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_posterior_lines_are_those_of_the_library(compute, strength, n):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n), rng.normal(size=n)
    prior = NormalInverseGamma.isotropic(columns=1, strength=strength, shape=3.0, scale=1.0)
    model = BayesianLinearRegression(prior=prior).fit(x[:, None], y)
    points = np.column_stack([x, y]).tolist()
    belief = compute("figure-posterior-lines", f"m.learn({points}, {{strength: {strength}}})")
    assert belief["intercept"] == pytest.approx(float(model.intercept_), rel=1e-9)
    assert belief["slope"] == pytest.approx(float(model.coef_[0]), rel=1e-9)
    assert belief["logEvidence"] == pytest.approx(model.log_evidence_, rel=1e-9)
    for at in (-3.0, 0.5):
        wanted = np.ravel(model.predict_interval([[at]], level=0.9)).tolist()
        drawn = compute("figure-posterior-lines", f"m.predict(m.learn({points}, {{strength: {strength}}}), {at})")
        assert drawn == pytest.approx(wanted, rel=1e-9)


def test_the_browser_checks_answers_as_the_library_does(compute):
    tried = ["1", "0.5", "50%", "1/3", "yes", "0.1, 0.2", "8", "-2", "2.5e-1"]
    texts = {
        one.name: [*map(format_answer, (one.answer, *(mistake.answer for mistake in one.mistakes))), *tried]
        for one in list_exercises()
    }
    expression = f"""import('/exercises-data.js').then(data => Object.entries({json.dumps(texts)}).map(
        ([name, tried]) => [name, tried.map(text => m.check(data.default[name], text).message)]))"""
    said = dict(compute("exercises", f"await ({expression})"))
    assert said == {name: [repr(check(name, text)) for text in tried] for name, tried in texts.items()}


# -- mouse, finger, keyboard -----------------------------------------------------------------------------------------


def test_arrow_keys_move_a_bell(browser, address):
    page = open_figure(browser, address, "two-bells")
    knob = page.get_by_role("slider", name="mean of the blue bell")
    knob.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert float(knob.get_attribute("aria-valuenow")) == pytest.approx(-0.4)
    assert "Border at 0.55" in page.locator(".figure-words").inner_text()
    assert page.problems == []
    page.close()


def drag(page, knob, dx, dy):
    box = knob.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=4)
    page.mouse.up()


def test_the_mouse_drags_the_prior_of_the_coin(browser, address):
    page = open_figure(browser, address, "coin")
    before = page.locator(".figure-words").inner_text()
    drag(page, page.get_by_role("slider", name="mean of the prior"), 90, 0)
    now = page.locator(".figure-words").inner_text()
    a = float(page.get_by_role("slider", name="mean of the prior").get_attribute("aria-valuenow")) * 10
    coin = Continuum(("H", "T"), Bernoulli(a, 10 - a)).update_many(["H"] * 7 + ["T"] * 3)
    assert before != now
    assert f"mean {coin.predict_proba()['H']:.4g}," in now
    page.close()


def test_a_finger_drags_a_point_of_the_lines(browser, address):
    page = open_figure(browser, address, "posterior-lines", has_touch=True, viewport={"width": 390, "height": 800})
    knob = page.get_by_role("slider", name="point 1")
    box = knob.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    before = page.locator(".figure-words").inner_text()
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 5):
        point = {"x": x, "y": y - 15 * step}
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert page.locator(".figure-words").inner_text() != before
    assert page.locator(".handle").count() == 3  # the finger moved a point and added none
    page.touchscreen.tap(x + 60, y + 60)
    assert page.locator(".handle").count() == 4
    page.close()


def test_candies_are_drawn_and_put_back(browser, address):
    page = open_figure(browser, address, "candy-bags")
    for _ in range(3):
        page.get_by_role("button", name="Draw a lime").click()
    assert "MAP: h5, with 0.421. P(next is lime) = 0.7961." in page.locator(".figure-words").inner_text()
    page.get_by_role("button", name="Put the last back").click()
    assert "2 limes" in page.locator(".figure-words").inner_text()
    page.close()


def test_a_day_is_chosen_and_its_ledger_read(browser, address):
    page = open_figure(browser, address, "tennis")
    assert "no, with 0.7954" in page.locator(".figure-words").inner_text()
    page.get_by_label("temperature").select_option("")
    assert "no, with 0.8663" in page.locator(".figure-words").inner_text()
    page.close()


def test_an_exercise_says_which_mistake_it_was(browser, address):
    page = open_page(browser)
    page.goto(f"{address}/all.html", wait_until="networkidle")
    box = page.get_by_label("Answer to library-1")
    box.fill("0.8")
    box.press("Enter")
    assert page.locator(".exercise output").inner_text() == repr(check("library-1", 0.8))
    box.fill("8 %")
    page.get_by_role("button", name="Check").click()
    assert page.locator(".exercise output").inner_text() == "Right."
    assert page.problems == []
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_fit_and_do_not_move_where_that_is_asked_for(browser, address, width, scheme):
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
    page = open_page(browser, **options)
    page.goto(f"{address}/all.html", wait_until="networkidle")
    assert page.locator(".figure").count() == len(FIGURES)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    times = "[...document.querySelectorAll('.figure-bar')].map(one => getComputedStyle(one).transitionDuration)"
    assert set(page.evaluate(times)) == {"0s"}
    assert page.problems == []
    page.close()


def test_without_script_the_static_picture_stays(browser, address):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{address}/coin.html")
    assert page.locator(".play img").count() == 1
    assert page.locator(".figure").count() == 0
    page.close()
