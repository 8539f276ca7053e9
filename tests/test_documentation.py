"""What the documents say is true: their examples run, their links lead somewhere, the design is what `ls` shows."""

import doctest
import re

import pytest

import build_docs
import priory
from house_figures import read_layers
from paths import ROOT
from priory import plots

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "engines.md"], ids=lambda p: p.name)  # needs clusters
def test_examples_run(page):
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_every_figure_is_in_the_course_or_in_the_guides():
    texts = [path.read_text() for path in [*PAGES, *(ROOT / "docs" / "figures").glob("*.py")]]
    missing = [name for name in plots.__all__ if not any(f"plots.{name}(" in text for text in texts)]
    assert missing == []


def test_the_reference_has_every_public_name():
    listed = {name for module in build_docs.PUBLIC_MODULES for name in build_docs.list_public_names(module)}
    modules = {name.rpartition(".")[2] for name in build_docs.PUBLIC_MODULES}
    assert set(priory.__all__) <= listed | modules


def test_every_page_of_the_site_is_in_a_table_of_contents():
    listed = set()
    for index in (ROOT / "docs").rglob("index.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", index.read_text(), re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {(index.parent / name).resolve() for name in names}
    pages = {page.with_suffix("") for page in (ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "index"}
    assert pages <= listed


def test_the_readme_opens_with_the_equation_and_two_commands():
    head = "\n".join((ROOT / "README.md").read_text().splitlines()[:12])
    assert "posterior = prior + statistics(data)" in head
    assert "make demo" in head
    assert "make test" in head


def test_every_figure_in_the_table_of_the_readme_is_on_the_page_of_its_row():
    rows = re.findall(r"^\| (.*) \| \[\w+\]\((benchmarks/.*\.md)\) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) >= 8
    for cells, page in rows:
        measured = (ROOT / page).read_text()
        for figure in re.findall(r"\d[\d,.]*\d|\d", cells.partition(" | ")[2]):
            assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d,]|\.\d)", measured), f"{figure} is not in {page}"


def test_the_readme_quotes_what_was_measured_of_single_rows():
    results = (ROOT / "benchmarks" / "results" / "one_row.md").read_text()
    single, batch = re.findall(r"\| Priory, corrected, 300,000 tokens known \| (.*) \|", results)
    (learn, _, predict, _), (_, answer, partial_fit, _) = single.split(" | "), batch.split(" | ")
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"one message is learned in {learn} microseconds and answered in {predict};" in readme
    assert f"the next answer takes {answer} ms, and `partial_fit` of one message takes {partial_fit} ms" in readme


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("[A-Z]*.md"))], ids=lambda p: p.name)
def test_links_lead_to_a_file(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_design_has_a_paragraph_for_each_folder_in_the_order_of_the_layers():
    page = (ROOT / "docs" / "design.md").read_text()
    assert re.findall(r"^\*\*`(\w+)/?`\*\*", page, re.MULTILINE) == read_layers()


def test_the_design_names_modules_that_exist():
    page = (ROOT / "docs" / "design.md").read_text()
    rooms = page[page.index("## The rooms") : page.index("## Choices")]
    source = ROOT / "src" / "priory"
    modules = {path.relative_to(source).with_suffix("").as_posix() for path in source.rglob("*")}
    known = modules | {name.rpartition("/")[2] for name in modules} | {"priory", *dir(priory.NaiveBayes)}
    named = {name.strip("/") for name in re.findall(r"`([a-z_/]+)`", rooms)}
    assert named - known == set()
