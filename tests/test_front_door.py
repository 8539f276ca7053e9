"""The public API: every exported name exists, is documented, and is imported only when it is used."""

import subprocess
import sys

import pytest

import priory
from paths import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", priory.__all__)
def test_every_public_name_is_there_and_in_the_readme(name):
    assert getattr(priory, name).__doc__
    assert name in README
    assert name in dir(priory)


def test_what_is_not_exported_is_not_there():
    with pytest.raises(AttributeError, match="module 'priory' has no attribute 'nonsense'"):
        priory.nonsense  # noqa: B018  (the access is the test)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, priory; print(sorted({'sklearn', 'scipy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
