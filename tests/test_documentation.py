"""What the documents say is true: their examples run."""

import doctest

import pytest

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
