"""What the documents say is true: their examples run, their links lead somewhere, the design is what `ls` shows."""

import doctest
import re

import pytest

from house_figures import read_layers
from paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page):
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_the_readme_opens_with_the_equation_and_two_commands():
    head = "\n".join((ROOT / "README.md").read_text().splitlines()[:12])
    assert "posterior = prior + statistics(data)" in head
    assert "make demo" in head
    assert "make test" in head


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("[A-Z]*.md"))], ids=lambda p: p.name)
def test_links_lead_to_a_file(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_design_has_a_paragraph_for_each_folder_in_the_order_of_the_layers():
    page = (ROOT / "docs" / "design.md").read_text()
    assert re.findall(r"^\*\*`(\w+)/?`\*\*", page, re.MULTILINE) == read_layers()
