"""Fixtures and settings that many tests share.

Property tests have no deadline. They try new examples on every run, and the same ones where CI is set; the profile
"quick" (`make quick`) tries fewer of them.
"""

import os
import shutil

import pytest
from hypothesis import settings

from priory import inbox
from priory.cli import main, terminal
from shell import TEXTS, write

settings.register_profile("priory", deadline=None, derandomize="CI" in os.environ)
settings.register_profile("quick", settings.get_profile("priory"), max_examples=10)
settings.load_profile("priory")

collect_ignore = ["toy_family.py"]  # registers classes, which a second import under another name would repeat


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIORY_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def run(here, capsys, monkeypatch):
    """A function that runs a command and returns its exit code, standard output and standard error.

    Progress is not shown, however long a command takes.
    """
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LOG_LINES", 3600.0)

    def run_command(*arguments):
        capsys.readouterr()
        code = main(list(arguments))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run_command


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with mail.csv and inbox.csv, and a model trained on each."""
    folder = tmp_path_factory.mktemp("made")
    messages, labels = inbox()
    rows = [[*message.values(), label] for message, label in zip(messages, labels, strict=True)]
    write(folder / "mail.csv", ["label", "text"], TEXTS)
    write(folder / "inbox.csv", [*messages[0], "label"], rows)
    for name, option in (("mail", "--no-audit"), ("inbox", "--plain")):
        files = [f"{folder}/{name}.csv", "-o", f"{folder}/{name}.priory"]
        assert main(["train", *files, "--target", "label", option]) == 0
    return folder


@pytest.fixture
def mail(made, here):
    """mail.csv, and mail.priory trained on it, in the working directory."""
    for name in ("mail.csv", "mail.priory"):
        shutil.copy(made / name, here)


@pytest.fixture
def table(made, here):
    """inbox.csv, and inbox.priory trained on it, in the working directory."""
    for name in ("inbox.csv", "inbox.priory"):
        shutil.copy(made / name, here)
