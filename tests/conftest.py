"""What many tests need.

Property tests take the time they need; they explore anew on every run, and repeat themselves where CI is set.
"""

import os
import shutil

import pytest
from hypothesis import settings

from priory.cli import main
from priory.data import inbox
from shell import TEXTS, write

settings.register_profile("priory", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("priory")

collect_ignore = ["toy_family.py"]  # registers classes, which a second import under another name would repeat


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIORY_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def run(here, capsys):
    """Type a command: its exit code, standard output and standard error."""

    def typed(*arguments):
        capsys.readouterr()
        code = main(list(arguments))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return typed


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with mail.csv and inbox.csv, and a model of each."""
    folder = tmp_path_factory.mktemp("made")
    messages, labels = inbox()
    rows = [[*message.values(), label] for message, label in zip(messages, labels, strict=True)]
    write(folder / "mail.csv", ["label", "text"], TEXTS)
    write(folder / "inbox.csv", [*messages[0], "label"], rows)
    for name, how in (("mail", "--no-audit"), ("inbox", "--plain")):
        files = [f"{folder}/{name}.csv", "-o", f"{folder}/{name}.priory"]
        assert main(["train", *files, "--target", "label", how]) == 0
    return folder


@pytest.fixture
def mail(made, here):
    """mail.csv, and mail.priory made of it."""
    for name in ("mail.csv", "mail.priory"):
        shutil.copy(made / name, here)


@pytest.fixture
def table(made, here):
    """inbox.csv, and inbox.priory made of it."""
    for name in ("inbox.csv", "inbox.priory"):
        shutil.copy(made / name, here)
