"""Building and installing: without a compiler there is one clear sentence, and the version has one place."""

import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

import priory
from paths import ROOT


@pytest.mark.slow
def test_a_source_build_without_a_compiler_says_so_in_one_sentence(tmp_path):
    shutil.copy(ROOT / "setup.py", tmp_path)
    shutil.copytree(ROOT / "src" / "priory" / "_kernel", tmp_path / "src" / "priory" / "_kernel")
    command = [sys.executable, "setup.py", "-q", "build_ext"]
    environment = {**os.environ, "CC": shutil.which("false")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1] == (
        "error: priory is compiled when it is installed from source, and that failed: install a C compiler and "
        "Python's headers (Debian and Ubuntu: apt install build-essential python3-dev; macOS: xcode-select --install), "
        "or install a wheel, which needs neither."
    )


def test_the_version_has_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "priory.__version__"}
    assert re.search(rf"^## {re.escape(priory.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_every_python_that_is_claimed_is_tested():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    claimed = {line.split()[-1] for line in classifiers if re.search(r"Python :: 3\.\d+$", line)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert claimed == set(re.findall(r'"(3\.\d+)"', workflow))


def test_the_templates_and_files_of_pages_are_in_the_package():
    package = ROOT / "src" / "priory"
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["priory"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    folders = [package / "service" / "pages" / name for name in ("templates", "static")]
    assert {path for folder in [*folders, package / "export" / "templates"] for path in folder.iterdir()} <= packed
