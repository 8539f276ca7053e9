"""The page about engines is true: its examples run."""

import doctest
import os
import shutil

import pytest

from paths import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


def test_examples_of_the_page_run(local_spark_settings):
    for name in ("dask", "distributed", "pyspark"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'priory[dask,spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17, and there is no java")
    page = ROOT / "docs" / "engines.md"
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
