"""The commands that the documents name exist: targets of make, scripts of benchmarks, and all options of `priory`."""

import importlib
import re
import shlex
import subprocess

import click
import pytest

from paths import ROOT
from priory.cli.entry_point import HOMES, app

RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *RESULTS,
]
CODE = re.compile(r"`([^`\n]+)`|^(?:    |\$ )(\S.*)|^(priory .*)", re.MULTILINE)  # in a line, indented, in a session


def find_commands(program):
    """Each command of a program that a page names, as its arguments."""
    found = {}
    for page in PAGES:
        for match in CODE.finditer(page.read_text()):
            for command in re.split(r"&&|;| \| ", next(filter(None, match.groups()))):
                name, *arguments = _split_words(command) or [""]
                if name == program and arguments:
                    found.setdefault(" ".join(arguments), (page.name, arguments))
    return [pytest.param(arguments, id=f"{page}: {text}") for text, (page, arguments) in sorted(found.items())]


def _split_words(command):
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # a quotation mark in prose
        return []
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):  # OMP_NUM_THREADS=1 python ...
        del words[0]
    return words


def test_commands_are_found():
    assert {"test", "docs"} <= {p.values[0][0] for p in find_commands("make")}
    assert len(find_commands("priory")) > 60
    assert len(find_commands("python")) > 20


@pytest.mark.parametrize("arguments", find_commands("make"))
def test_make_knows_a_target(arguments):
    run = subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def check_options(command, arguments):
    """Read the arguments as the command does, without running it; an unknown option is an error."""
    command.make_parser(click.Context(command)).parse_args(list(arguments))


@pytest.mark.parametrize("arguments", find_commands("priory"))
def test_the_command_line_knows_a_command_and_its_options(arguments):
    place = next((place for place, word in enumerate(arguments) if word in HOMES), None)
    check_options(app, arguments[:place])
    if place is None:
        assert all(word.startswith("-") for word in arguments), "there is no such command"
    else:
        check_options(app.get_command(click.Context(app), arguments[place]), arguments[place + 1 :])


@pytest.mark.parametrize("arguments", find_commands("python"))
def test_a_script_of_the_project_is_there(arguments):
    if arguments[0].startswith(("benchmarks/", "tools/")):
        assert (ROOT / arguments[0]).is_file()


# which only some benchmarks need
PEERS = ("apsw", "atheris", "lightgbm", "mapie", "modAL", "onnxruntime", "playwright", "river")


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_can_be_imported(path):
    for peer in PEERS:
        if re.search(rf"^(?:import|from) {peer}\b", path.read_text(), re.MULTILINE):
            pytest.importorskip(peer)
    importlib.import_module(path.stem)


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_results_begin_with_a_title(page):
    """Without one Sphinx refuses the page, and with it the site."""
    assert re.match(r"# \S", page.read_text())
