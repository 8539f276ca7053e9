"""Building and installing: without a compiler there is one clear sentence, and the version has one place."""

import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import priory
from paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.slow
def test_a_source_build_without_a_compiler_says_so_in_one_sentence(tmp_path):
    shutil.copy(ROOT / "setup.py", tmp_path)
    shutil.copytree(ROOT / "src" / "priory" / "core" / "_kernel", tmp_path / "src" / "priory" / "core" / "_kernel")
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
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "priory.__version__"}
    assert re.search(rf"^## {re.escape(priory.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_every_python_that_is_claimed_is_tested():
    classifiers = PROJECT["project"]["classifiers"]
    claimed = {line.split()[-1] for line in classifiers if re.search(r"Python :: 3\.\d+$", line)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert claimed == set(re.findall(r'"(3\.\d+)"', workflow))


def test_the_templates_and_files_of_pages_are_in_the_package():
    package = ROOT / "src" / "priory"
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["priory"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    folders = [package / "service" / "pages" / name for name in ("templates", "static")]
    assert {path for folder in [*folders, package / "export" / "templates"] for path in folder.iterdir()} <= packed


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(workflow):
    """A tag can be moved to other code; a hash cannot. The version stands beside it."""
    used = re.findall(r"uses: *(.*)", workflow.read_text())
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+(\.\d+)+", action)] == []


def test_build_requirements_have_an_upper_bound():
    wanted = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    assert [str(one) for one in wanted if not any(bound.operator == "<" for bound in one.specifier)] == []


def list_requirements(extra):
    """The requirements of the package with an extra, and with the extras that it names."""
    for text in [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"][extra]]:
        requirement = Requirement(text)
        if requirement.name == "priory":
            for inner in requirement.extras:
                yield from list_requirements(inner)
        else:
            yield requirement


def test_the_lock_file_has_what_development_needs_by_hash():
    text = (ROOT / "requirements-dev.lock").read_text()
    assert "://" not in text  # no index of one workplace
    blocks = re.findall(r"^([\w.-]+)==(\S+).*((?:\n    --hash=sha256:[0-9a-f]{64}.*)+)", text, re.MULTILINE)
    assert len(blocks) == text.count("==") - text.count(" == ")  # each has hashes; markers have spaces
    locked = {}
    for name, version, _ in blocks:
        locked.setdefault(canonicalize_name(name), []).append(version)
    for requirement in list_requirements("test"):
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert any(map(requirement.specifier.contains, versions)), f"{requirement}: make lock"
