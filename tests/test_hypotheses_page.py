"""The page on hypothesis spaces: its examples run."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "hypotheses.md"


def test_examples_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 20
    assert failed == 0


@pytest.mark.parametrize("name", ["candy_bags", "next_lime", "belief", "version_space"])
def test_figures_are_there(name):
    assert f"figures/{name}.svg" in PAGE.read_text()
    assert (PAGE.parent / "figures" / f"{name}.svg").stat().st_size > 1000
