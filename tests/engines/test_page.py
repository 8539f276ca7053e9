"""The page about engines is true: its examples run."""

import doctest

import pytest

from paths import ROOT

pytestmark = [
    pytest.mark.dask,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


def test_examples_of_the_page_run(spark_settings):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'priory[dask]'")
    page = ROOT / "docs" / "engines.md"
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
