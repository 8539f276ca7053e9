"""Building and installing: without a compiler there is one clear sentence, and the version has one place."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import priory
from build_archives import pack_again
from paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.slow
def test_a_source_build_without_a_compiler_says_so_in_one_sentence(tmp_path):
    for name in ("setup.py", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
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


def test_the_description_on_pypi_has_no_link_that_leads_nowhere(tmp_path):
    for name in ("setup.py", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    asked = [sys.executable, "setup.py", "-q", "--long-description"]
    text = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    headings = {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)", text, re.M)}
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert [target for target in targets if not target.startswith("https:") and target[1:] not in headings] == []
    assert "| mean log loss, 16 tables | 0.1854 |" in text


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


def test_the_small_extras_do_not_bring_the_large_packages():
    large = {"jax", "jaxlib", "blackjax", "onnx", "onnxruntime", "pyspark", "dask"}
    for extra in ("test", "report", "serve"):
        assert {canonicalize_name(requirement.name) for requirement in list_requirements(extra)}.isdisjoint(large)


def test_the_demo_installs_only_what_it_needs():
    planned = subprocess.run(
        ["make", "--dry-run", "VENV=.venv-of-nobody", "demo"], cwd=ROOT, capture_output=True, text=True
    )
    assert ".[report]" in planned.stdout
    assert ".[test]" not in planned.stdout


def test_an_archive_packed_again_depends_on_contents_alone(tmp_path):
    packed = []
    for seconds in (1, 2):
        source, archive = tmp_path / "a.txt", tmp_path / f"{seconds}.tar.gz"
        source.write_text("the same")
        os.utime(source, (seconds, seconds))
        with tarfile.open(archive, "w:gz") as opened:
            opened.add(source, "folder/a.txt")
        pack_again(archive, 1_000_000_000)
        packed.append(archive.read_bytes())
    assert packed[0] == packed[1]
    with tarfile.open(tmp_path / "1.tar.gz") as opened:
        assert opened.extractfile("folder/a.txt").read() == b"the same"


def test_the_conda_recipe_has_the_version_and_the_requirements_of_the_package():
    recipe = (ROOT / "recipe" / "meta.yaml").read_text()
    assert f'{{% set version = "{priory.__version__}" %}}' in recipe
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1].split("    - ")[1:]
    assert [line.strip().replace(" ", "") for line in run] == ["python", *PROJECT["project"]["dependencies"]]
    for requirement in PROJECT["build-system"]["requires"]:
        name, bounds = re.fullmatch(r"([A-Za-z]+)(.*)", requirement).groups()
        assert f"- {name.lower()} {bounds}" in recipe
