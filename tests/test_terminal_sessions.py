"""The terminal sessions in the documents are what the commands really print.

PRIORY_WRITE=1 python -m pytest tests/test_terminal_sessions.py    # writes the real output into the documents
"""

import os
import re
import shlex
import sys
from contextlib import redirect_stderr

import pytest

from paths import ROOT
from priory.cli import main, terminal

BLOCK = re.compile(r"(```console\n)(.*?)(```\n)", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
BAR_OR_GAP = re.compile(r"([-+ ])\1+")
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(page.read_text())]


def run_session(session, capsys):
    """The commands of a session, each followed by what it prints."""
    shown = []
    for command in re.findall(r"^\$ (.*)$", session, re.MULTILINE):
        name, *arguments = shlex.split(command)
        capsys.readouterr()
        if name == "cd":
            os.chdir(arguments[0])
        elif name == "priory":
            with redirect_stderr(sys.stdout):  # in the order that a terminal shows
                main(arguments)
        else:
            assert name == "pip"
        shown.append(f"$ {command}\n{capsys.readouterr().out}")
    return "".join(shown)


def read_page(text):
    """The words of a page, and its numbers: bars of signs and gaps may have any length."""
    text = BAR_OR_GAP.sub(r"\1", text)
    return NUMBER.split(text), NUMBER.findall(text)


def is_close(number, shown):
    """Whether two numbers differ by rounding: by one in the last digit, or by 1 in 1,000 if they have decimals."""
    _, _, decimals = shown.partition(".")
    relative = 1e-3 * float(shown) if decimals else 0.0
    return abs(float(number) - float(shown)) <= max(1.01 * 10.0 ** -len(decimals), relative)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_session_is_as_it_is_shown(page, capsys, tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LOG_LINES", 3600.0)  # however slow the machine is
    text = page.read_text()

    def run_block(block):
        (tmp_path / str(block.start())).mkdir()
        monkeypatch.chdir(tmp_path / str(block.start()))
        return block[1] + run_session(block[2], capsys) + block[3]

    found = BLOCK.sub(run_block, text)
    if "PRIORY_WRITE" in os.environ:
        page.write_text(found)
    words, numbers = read_page(found)
    words_shown, numbers_shown = read_page(text)
    assert words == words_shown
    # other processors round otherwise, and corrections are fitted in single precision
    differing = [pair for pair in zip(numbers, numbers_shown, strict=True) if not is_close(*pair)]
    assert not differing
