"""The report: one page that holds everything, says it honestly, and lets nothing through that is not text."""

import re
import sys
from base64 import b64encode
from hashlib import sha256
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.naive_bayes import GaussianNB

import priory
from priory import NaiveBayes, Scores, TextClassifier, audit, inbox, report
from priory.errors import PrioryError
from priory.estimators.learning_curve import score_by_rows
from priory.export.html_report import ReportSubject

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


class Page(HTMLParser):
    """The tags of a page, its words, and whether all that was opened was closed."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def texts():
    rows, labels = inbox()
    texts = [row["text"] for row in rows]
    return TextClassifier().fit(texts, labels), texts, labels


@pytest.fixture(scope="module")
def of_texts(texts):
    return report(*texts)


def test_the_page_says_what_the_scores_say(texts, of_texts):
    model, X, y = texts
    scores = model.evaluate(X, y)
    page = Page(of_texts.html)
    assert page.open == []
    assert scores.verdict in page.text
    assert f"accuracy {scores.accuracy.value:.1%}" in page.text
    assert f"base rate {scores.base.accuracy:.1%}" in page.text
    shown = [
        "Calibration",
        "Correct and wrong answers",
        "The strongest evidence",
        "The worst mistakes",
        "What was learned",
        "What the answers reveal",
        "How to reproduce this",
    ]
    assert list_headings(of_texts.html) == shown
    assert re.findall('<li><a href="#.*?">(.*?)</a></li>', of_texts.html) == shown
    named = [attributes["aria-label"] for tag, attributes in page.tags if tag == "svg" and "aria-label" in attributes]
    assert named[:2] == ["reliability diagram", "histogram of certainty"]
    assert named[-2:] == ["confusion matrix", "ROC curves"]
    assert len(named) == 4 + 3  # and one for each class


def list_headings(html):
    return re.findall("<h2[^>]*>(.*?)</h2>", html)


def test_every_entry_of_the_contents_leads_somewhere_and_no_id_occurs_twice(of_texts):
    tags = Page(of_texts.html).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"].removeprefix("#") for tag, attributes in tags if tag == "a"]
    assert links
    assert set(links) <= set(ids)
    used = re.findall(r'url\(#(.*?)\)|href="#(.*?)"', of_texts.html)
    assert {name or other for name, other in used} <= set(ids)


def test_the_page_works_under_its_strict_policy(of_texts):
    """No style attributes, one style sheet, and a policy that allows it by its hash."""
    page = Page(of_texts.html)
    assert not [tag for tag, attributes in page.tags if "style" in attributes]
    assert sum(tag == "style" for tag, _ in page.tags) == 1
    sheet = re.search("<style>(.*?)</style>", of_texts.html, re.DOTALL)[1]
    digest = b64encode(sha256(sheet.encode()).digest()).decode()
    [policy] = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:"
    assert "style=" not in of_texts._repr_html_().replace(escape(of_texts.html), "")


def test_each_class_has_its_own_calibration(texts, of_texts):
    scores = texts[0].evaluate(*texts[1:])
    section = of_texts.html[of_texts.html.index("Each class by itself") :]
    for c, label in enumerate(scores.classes):
        p = np.exp(scores.log_probabilities[:, c])
        mean, share = np.average(p, weights=scores.weight), scores.shares[c]
        assert f'<th scope="row">{label}</th><td class="n" data-label="mean probability">{mean:.1%}</td>' in section
        assert f'<td class="n" data-label="share of rows">{share:.1%}</td>' in section


def test_a_learning_curve_has_its_section(texts):
    model, X, y = texts
    html = report(model, X, y, curve=score_by_rows(model, X, y, [100, 200])).html
    assert list_headings(html)[2] == "Learning curve"


def test_the_last_section_says_how_to_make_it_again(texts):
    subject = ReportSubject("mail.csv", "label", "mail.priory", command="priory report mail.priory 'a b.csv' -o r.html")
    html = report(*texts, subject=subject).html
    assert "priory report mail.priory &#39;a b.csv&#39; -o r.html</pre>" in html
    assert f"priory {priory.__version__}, Python " in html
    assert "<td>TextClassifier mail.priory</td>" in html


def test_the_page_needs_nothing_from_anywhere(of_texts):
    for tag, attributes in Page(of_texts.html).tags:
        assert tag not in {"script", "link", "img", "iframe", "object"}
        for name in ("src", "href", "xlink:href"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)


def test_the_worst_mistake_comes_first_with_the_ledger_of_the_model_without_it(texts, of_texts):
    model, X, y = texts
    scores = model.evaluate(X, y)
    wrong = np.flatnonzero(scores.answer != scores.truth)
    place = int(wrong[scores.surprise[wrong].argmax()])
    worst, answer = int(scores.positions[place]), model.classes_[scores.answer[place]]
    assert f"row {worst}:" in of_texts.html
    twin = TextClassifier().fit(X, y).forget([X[worst]], [y[worst]])
    ledger = twin.explain(X[worst])[0]
    total = ledger.log_odds(answer, y[worst]) * 10 / np.log(10)
    first = of_texts.html[of_texts.html.index("<details") :]
    assert f"{total:+.1f} decibans in total" in first[: first.index("</details>")]
    assert ledger.marked(answer, y[worst]) in first
    assert model.class_count_.sum() == len(y)  # the model itself has forgotten nothing


@pytest.mark.slow
def test_a_table_shows_its_columns_and_families():
    data = load_wine(as_frame=True)
    model = NaiveBayes().fit(data.data, data.target)
    html = report(model, data.data, data.target).html
    assert Page(html).open == []
    for name, column in model.schema_.items():
        assert f'<th scope="row">{name}</th><td data-label="family">{column.family}</td>' in html
    evidence = html[html.index('id="evidence"') : html.index('id="mistakes"')]
    assert "proline" in evidence


def test_a_column_shows_what_is_missing_and_how_often_values_occur():
    rows = [{"n": None if i % 4 == 0 else float(i), "c": "red" if i % 3 else "blue"} for i in range(60)]
    labels = ["a", "b"] * 30
    html = report(NaiveBayes().fit(rows, labels), rows, labels).html
    columns = html[html.index('id="columns"') :]
    assert '<td class="wider" data-label="values">1 to 59, median 30</td>' in columns
    assert '<td class="n" data-label="missing">25.0%</td>' in columns
    assert '<td class="wider" data-label="values">red, blue</td>' in columns
    red, blue = re.search('aria-label="c: red, blue">(.*?)</svg>', columns)[1].count("<rect"), 2
    assert red == 2 * blue  # two values, each with both classes


def test_the_page_shows_what_was_learned(of_texts):
    rows = [{"wind": "weak"}, {"wind": "strong"}, {"wind": "weak"}, {"wind": "weak"}] * 5
    page = report(NaiveBayes.textbook().fit(rows, ["yes", "no"] * 10), rows, ["yes", "no"] * 10).html
    assert "P(wind | class), Categorical" in page
    assert "5/10 = 0.5" in page
    assert "P(word | class), binary" in of_texts.html


def test_any_scikit_learn_classifier_can_be_reported_on():
    X, y = load_iris(return_X_y=True)
    page = Page(report(GaussianNB().fit(X, y), X, y).html)
    assert "each fifth judged by a model of the other four" in page.text
    assert "The strongest evidence" not in page.text


def test_a_model_that_evaluates_itself_is_shown_beside_the_plain_one(texts):
    _, X, y = texts

    class Tempered(TextClassifier):
        def evaluate(self, X, y):
            return Scores.of(y, np.full((len(y), 3), 1 / 3), self.classes_)

    html = report(Tempered().fit(X, y), X, y).html
    assert "plain: calibration error" in html
    assert "as it answers: calibration error" in html
    assert "Does not beat the base rate" in html


PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><svg onload=alert(1)>",
    "{{ 7 * 7 }}",
    "'onmouseover='alert(1)",
    "</td></tr></table><iframe src=javascript:alert(1)>",
]


@pytest.mark.slow
def test_nothing_in_the_data_becomes_part_of_the_page():
    rng = np.random.default_rng(0)
    labels = [PAYLOADS[i % 3] for i in range(60)]
    texts = [f"word{i % 7} {PAYLOADS[i % 6]} {label}" for i, label in enumerate(labels)]
    rows = [
        {PAYLOADS[0]: text, PAYLOADS[1]: float(rng.normal()), PAYLOADS[4]: label}
        for text, label in zip(texts, labels, strict=True)
    ]
    shuffled = [labels[i] for i in rng.permutation(60)]
    model = TextClassifier(min_token_length=1)
    pages = [
        report(model.fit(texts, shuffled), texts, shuffled),
        report(NaiveBayes().fit(rows, shuffled), rows, shuffled),
        report(NaiveBayes().fit(rows, labels), rows, labels),
    ]
    for one in pages:
        page = Page(one.html)
        assert page.open == []
        assert not {"script", "img", "iframe"} & {tag for tag, _ in page.tags}
        assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
        assert "<script>alert(1)</script>" in page.text
        assert "49" not in re.findall(r"(?<=class=\"name\">).*?(?=<)", one.html)
        inside = Page(one._repr_html_())
        assert [tag for tag, _ in inside.tags] == ["iframe"]
        assert inside.tags[0][1]["srcdoc"] == one.html


@pytest.mark.slow
@pytest.mark.parametrize("labels", [["a"] * 40, ["a", "b"] * 20, [True, False, False, False] * 10])
def test_there_is_a_page_even_where_there_is_little_to_say(labels):
    rows = [{"colour": "red" if i % 3 else "blue", "n": i % 5} for i in range(len(labels))]
    for model in (NaiveBayes(), NaiveBayes("categorical", estimate="ml")):
        assert "base rate" in report(model.fit(rows, labels), rows, labels).html


def test_findings_of_an_audit_have_their_place(texts):
    class Findings:
        def to_html(self):
            return "<p>3 duplicates</p>"

    html = report(*texts, findings=Findings()).html
    assert html.index('id="learned"') < html.index("<p>3 duplicates</p>") < html.index('id="reproduce"')


def test_it_is_saved_as_it_is(of_texts, tmp_path):
    file = of_texts.save(tmp_path / "report.html")
    assert file.read_text("utf-8") == of_texts.html


def test_without_jinja2_the_error_says_what_to_install(texts, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(PrioryError) as error:
        report(*texts)
    assert str(error.value) == "a report needs jinja2: pip install 'priory[report]'."


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["polars", "pyarrow", "array", "dict"])
def test_any_table_can_be_reported_on(kind):
    data = load_iris(as_frame=True)
    X = data.data
    if kind == "polars":
        X = pytest.importorskip("polars").from_pandas(X)
    elif kind == "pyarrow":
        X = pytest.importorskip("pyarrow").Table.from_pandas(X)
    elif kind == "array":
        X = X.to_numpy()
    else:
        X = {name: X[name].tolist() for name in X}
    assert "The columns" in report(NaiveBayes().fit(X, data.target), X, data.target).html


@pytest.mark.slow
def test_the_title_says_what_is_predicted_and_when():
    data = load_iris(as_frame=True)
    html = report(GaussianNB().fit(data.data, data.target), data.data, data.target.rename("species")).html
    assert "<title>Predicting species: report</title>" in html
    title = html[html.index("<header>") : html.index("</header>")]
    assert "<h1>Predicting species</h1>" in title
    facts = dict(re.findall('<th scope="row">(.*?)</th><td>(.*?)</td>', title))
    assert (facts["target"], facts["model"]) == ("species", "GaussianNB")
    assert facts["classes"] == "0 33.3%, 1 33.3%, 2 33.3%"
    assert facts["rows"].startswith("150 rows, ")
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d", facts["made"])


def test_no_heading_stands_over_nothing(texts):
    html = report(*texts, findings=audit([{"text": text} for text in texts[1]], target=texts[2])).html
    assert "Leakage" in list_headings(html)
    assert not re.search(r"</h[23]>\s*(<section[^>]*>|<style>.*?</style>|\s)*<h2", html, re.DOTALL)


def test_the_calibration_sentence_is_about_the_model_that_answers(texts, of_texts):
    scores = texts[0].evaluate(*texts[1:])
    plain = Scores.of(texts[2], texts[0].leave_one_out(*texts[1:]), texts[0].classes_, logs=True)
    text = Page(of_texts.html).text
    assert f"{scores.certainty.mean():.1%} certain on average, {scores.accuracy.value:.1%} right." in text
    assert (
        f"The calibration error is {scores.calibration_error.value:.1%} and the log loss {scores.log_loss.value:.3f}. "
        f"Before corrections (the plain line) they were {plain.calibration_error.value:.1%} and "
        f"{plain.log_loss.value:.3f}."
    ) in text
    assert f"expects to be wrong {scores.expected_error.value:.1%} of the time" in text


def test_rows_that_were_held_out_are_predicted_by_the_model_as_it_is(texts):
    _, X, y = texts
    model = TextClassifier().fit(X[:200], y[:200])
    scores = Scores.of(y[200:], model.predict_proba(X[200:]), model.classes_)
    page = Page(report(model, X[200:], y[200:], learned=False).html)
    assert "108 rows, none of them learned by the model" in page.text
    for name, form in (("accuracy", ".1%"), ("log_loss", ".3f"), ("brier", ".3f")):
        assert f"{getattr(scores, name).value:{form}}" in page.text
    worst = int(np.where(scores.answer != scores.truth, scores.surprise, -1).argmax())
    truth, answer = y[200 + worst], model.classes_[scores.answer[worst]]
    total = model.explain(X[200 + worst])[0].log_odds(answer, truth) * 10 / np.log(10)
    assert f"row {worst}: {truth} mistaken for {answer}" in page.text
    assert f"evidence for {answer} against {truth}: {total:+.1f} decibans in total" in page.text


def test_too_few_rows_have_a_page_that_says_so():
    rows, labels = [[1.0], [9.0], [2.0]], ["a", "b", "a"]
    html = report(NaiveBayes().fit(rows, labels), rows, labels).html
    assert Page(html).open == []
    assert "Too few rows to judge the model: 3 rows are scored, and at least 6 are needed." in html
    assert list_headings(html)[-1] == "How to reproduce this"
    assert 'class="card"' not in html
    assert "reliability diagram" not in html


def test_a_column_of_texts_is_described_by_its_length_and_not_by_its_values():
    rows = [{"note": f"the parcel number {i} came {'late' if i % 2 else 'today'}", "n": i % 3} for i in range(40)]
    labels = ["bad" if i % 2 else "good" for i in range(40)]
    model = NaiveBayes({"note": "text"}, calibrate=False).fit(rows, labels)
    page = report(model, rows, labels).html
    assert " characters on average" in page
    assert "parcel number 1 came" not in page.split('id="columns"')[1].split("<h2")[0]


def test_the_strongest_pairs_are_named_with_their_correlation_within_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    shared = rng.normal(size=300)
    X = {"a": shared, "b": shared + 0.3 * rng.normal(size=300), "c": rng.normal(size=300), "d": 3.0 * y}
    page = Page(report(NaiveBayes(calibrate=False).fit(X, y), X, y).html).text
    pairs = page.partition("The strongest pairs")[2].partition("What was learned")[0]
    assert "a and b +0.9" in pairs
    assert "a and c" not in pairs
    assert "The strongest pairs" not in Page(report(NaiveBayes().fit({"c": X["c"]}, y), {"c": X["c"]}, y).html).text
