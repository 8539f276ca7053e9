"""JavaScript and the page: the same answers, in Node and in Chromium, without a network."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import priory as pr
from browser import open_page, start_browser
from exported_models import SCRIPT, TABLES, make_model, make_rows, make_text_model
from priory.export.javascript import plan_as_json, write_javascript, write_page, write_types
from priory.export.plan_sources import compile_plan

NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--virtual-time-budget=4000"]
needs_node = pytest.mark.skipif(NODE is None, reason="no Node.js")


def ask(folder, plan, rows, call="m.probabilities(r)"):
    (folder / "model.mjs").write_text(write_javascript(plan))
    (folder / "ask.mjs").write_text(
        f"import m from './model.mjs'; const rows = {json.dumps(rows)};"
        f"process.stdout.write(JSON.stringify(rows.map((r) => {call})));"
    )
    found = subprocess.run([NODE, str(folder / "ask.mjs")], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout)


@needs_node
@pytest.mark.parametrize("calibrate", ["loo", False])
@pytest.mark.parametrize("name", TABLES)
def test_javascript_answers_as_the_model_does(name, calibrate, tmp_path):
    model, (asked, rows) = make_model(name, calibrate), make_rows(name)
    np.testing.assert_allclose(ask(tmp_path, compile_plan(model), rows), model.predict_proba(asked), atol=1e-9)


@needs_node
@pytest.mark.parametrize(
    "options", [{}, {"pairs": True}, {"calibrate": False}, {"analyzer": "char_wb", "ngram_range": (2, 3)}]
)
def test_texts_are_split_as_the_model_does(options, tmp_path):
    texts = [
        "win cash now",
        "lunch at noon?",
        "Cash PRIZE, win!",
        "see you: 送餐很快 ok",
        "don't win a_prize 3x",
        "ΣΑΣ noon İ",
    ]
    model = pr.TextClassifier(**options).fit(texts * 8, ["spam", "ham"] * 24)
    asked = [
        *texts,
        "",
        "cafe\u0301 win",
        "a" * 3000,
        "русский_win текст",
        "x\u0301y 送很 cash prize win",
        "\U0001f600 win",
    ]
    found = ask(tmp_path, compile_plan(model), [{"text": text} for text in asked])
    np.testing.assert_allclose(found, model.predict_proba(asked), atol=1e-9)


@needs_node
def test_characters_of_words_are_hashed_as_the_model_does(tmp_path):
    model, texts = make_text_model()
    plan, asked = compile_plan(model), [*texts, "", "Kéting 送餐 bcdung", "a" * 2000, "x"]
    assert len(plan.tokens[0].characters)
    found = ask(tmp_path, plan, [{"text": text} for text in asked])
    np.testing.assert_allclose(found, model.predict_proba(asked), atol=1e-9)


@needs_node
def test_a_text_is_answered_without_each_of_its_words(tmp_path):
    model = pr.TextClassifier().fit(["win cash now", "lunch at noon"] * 20, ["spam", "ham"] * 20)
    [lines] = ask(tmp_path, compile_plan(model), [{"text": "win the cash lunch"}], "m.ledger(r)")
    odds = [10 * np.log10(p / (1 - p)) for p in model.predict_proba(["win the cash lunch", "win the cash"]).max(axis=1)]
    assert {line["value"] for line in lines} == {"win", "the", "cash", "lunch"}
    assert {line["value"]: line["decibans"] for line in lines}["lunch"] == pytest.approx(odds[0] - odds[1], abs=1e-6)
    [changes] = ask(tmp_path, compile_plan(model), [{"text": "cash lunch"}], "m.changes(r)")
    assert len(changes) == 1
    assert changes[0]["value"].startswith("without ")


@needs_node
def test_an_empty_label_that_was_learned_is_no_missing_cell(tmp_path):
    rows = [{"a": "", "b": "u"}, {"a": "x", "b": "u"}, {"a": "x", "b": "w"}] * 10
    model = pr.NaiveBayes().fit(rows, ["1", "2", "10"] * 10)
    asked = [{"a": "", "b": "u"}, {"a": None, "b": "u"}]
    np.testing.assert_allclose(ask(tmp_path, compile_plan(model), asked), model.predict_proba(asked), atol=1e-9)
    nothing = ask(tmp_path, compile_plan(model), [{"a": None, "b": ""}])
    np.testing.assert_allclose(nothing, model.predict_proba([{"a": None, "b": None}]), atol=1e-9)


@needs_node
def test_a_ledger_and_changes_are_of_the_same_answers(tmp_path):
    model, (_, rows) = make_model("labels", "loo"), make_rows("labels")
    [found] = ask(
        tmp_path, compile_plan(model), rows[:1], "({...m.predict(r), ledger: m.ledger(r), changes: m.changes(r)})"
    )
    assert max(found["probabilities"].values()) == found["probabilities"][str(found["label"])]
    assert {line["column"] for line in found["ledger"]} <= set(rows[0])
    for change in found["changes"]:
        changed = model.predict([{**rows[0], change["column"]: change["value"]}])[0]
        assert changed == change["label"] != found["label"]


@needs_node
def test_a_cell_that_is_no_number_is_an_error_that_names_it(tmp_path):
    plan, row = compile_plan(make_model("numbers", False)), {"amount": "many"}
    found = ask(
        tmp_path, plan, [row], "{ try { return m.predict(r) } catch (e) { return e.message } }".join(["(() => ", ")()"])
    )
    assert found == ["column amount holds many; give a number"]


def test_a_page_holds_no_training_row_and_reaches_nothing():
    page = write_page(compile_plan(make_model("mixed", "loo"), with_rows=False), f"A page {SCRIPT}")
    plan = json.loads(re.search(r'id="plan">(.*?)</script>', page, re.DOTALL)[1])
    assert plan["gaps"]["cells"] == []
    assert page.count("</script>") == 2
    assert "<script>alert" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=|https?://|import\(|fetch\(|XMLHttp|@@", page)
    assert "@@" not in write_types()


def test_json_is_safe_in_a_script_element():
    text = plan_as_json(compile_plan(make_model("mixed", False)))
    assert not set("<>&") & set(text)
    assert json.loads(text)["classes"] == make_model("mixed", False).classes_.tolist()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_answers_in_a_browser(tmp_path):
    model = make_model("mixed", "loo")
    (tmp_path / "page.html").write_text(write_page(compile_plan(model, with_rows=False), "Mixed"))
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'user'}", "--dump-dom", f"file://{tmp_path}/page.html"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    if not shown:
        pytest.skip("Chromium does not start here")
    prior = dict(
        zip(
            model.classes_.tolist(), model.predict_proba([dict.fromkeys(make_rows("mixed")[0].columns)])[0], strict=True
        )
    )
    bars = re.findall(r'class="bar"><span>(.*?)</span>.*?class="number">([\d.]+)&nbsp;%', shown)
    assert {html.unescape(label): float(p) for label, p in bars} == {
        label: pytest.approx(100 * p, abs=0.06) for label, p in prior.items()
    }


def test_a_csv_is_answered_under_the_names_of_its_classes(tmp_path):
    frame = pd.DataFrame({"n": np.arange(60.0), "__proto__": ["x", "y", "z"] * 20})
    model = pr.NaiveBayes().fit(frame, np.array(["9", "10", "-1"])[np.arange(60) // 20])
    (tmp_path / "page.html").write_text(write_page(compile_plan(model, with_rows=False), "Whole numbers"))
    (tmp_path / "rows.csv").write_text(frame[::20].to_csv(index=False))
    with start_browser() as browser:
        page = open_page(browser)
        page.goto(f"file://{tmp_path}/page.html")
        page.set_input_files("#csv", str(tmp_path / "rows.csv"))
        cells = page.eval_on_selector_all(
            "#rows tr", "(rows) => rows.map((r) => [...r.cells].map((c) => c.textContent))"
        )
        assert cells[0] == ["answer", *model.classes_, "n", "__proto__"]
        found = np.array([row[1:4] for row in cells[1:]], dtype=float)
        np.testing.assert_allclose(found, model.predict_proba(frame[::20]), atol=5.1e-5)
        assert [row[0] for row in cells[1:]] == model.predict(frame[::20]).tolist()
        page.fill("#cell0", "30")
        page.select_option("#cell1", label="y")
        page.wait_for_selector("#why td")
        assert page.inner_text("#answer .label") == model.predict([{"n": 30.0, "__proto__": "y"}])[0]
        assert not page.problems
        assert len(page.requested) == 1
