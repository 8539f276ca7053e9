"""Model files survive: whatever strikes, the file is the old one or the new one, and nobody's learning is lost."""

import os
import shutil
import stat
import subprocess
import sys
import threading

import pytest

import priory as pr
from paths import ROOT
from priory.errors import FileBusyError
from priory.storage import updating

CRASHES = ROOT / "benchmarks" / "crashes.py"
TEXTS, LABELS = ["win cash now", "cash prize", "lunch at noon"], ["spam", "spam", "ham"]


def may_trace():
    return shutil.which("strace") and subprocess.run(["strace", "-qq", "-e", "trace=none", "true"]).returncode == 0


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.priory"
    pr.save(pr.TextClassifier().fit(TEXTS, LABELS), path)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not may_trace(), reason="needs strace and the right to use it")
def test_killed_or_out_of_space_at_a_write_the_file_is_old_or_new_and_learners_at_once_lose_nothing():
    """A few of the points that benchmarks/crashes.py tries in full."""
    done = subprocess.run([sys.executable, CRASHES, "12"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| 8 | `updating` | 4 | no file | 64 |" in done.stdout
    assert "| 8 | `priory learn` | 4 | no file | 64 |" in done.stdout


def test_threads_that_learn_at_once_lose_nothing(tmp_path):
    path = tmp_path / "model.priory"

    def learn():
        for _ in range(5):
            with updating(path) as file:
                file.model = (file.model or pr.TextClassifier()).partial_fit(TEXTS, LABELS)

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pr.load(path).class_count_.tolist() == [20.0, 40.0]
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_the_old_file_is_there(path):
    code = f"""
import resource, priory as pr
from priory.storage import updating
model = pr.TextClassifier().fit([" ".join(f"w{{i}}" for i in range(9999))], ["spam"])
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    pr.save(model, {str(path)!r})
except OSError as error:
    print(type(error).__name__, error.filename)
"""
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"OSError {path}\n"
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_what_goes_wrong_while_updating_changes_nothing(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="Found input variables"), updating(path) as file:
        file.model.partial_fit(TEXTS, LABELS).partial_fit(TEXTS, LABELS[:1])
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_who_waits_too_long_is_told(path):
    with (
        updating(path),
        pytest.raises(FileBusyError, match=f"{path}: another process is changing it"),
        updating(path, wait=0.05),
    ):
        pass
    with updating(path, wait=0.05) as file:
        assert file.model is not None


def test_what_the_dead_left_behind_is_no_hindrance(path):
    lock, half = (path.with_name(name) for name in (".model.priory.lock", ".model.priory.0123abcd.new"))
    lock.touch()
    half.write_bytes(b"half")
    pr.save(pr.load(path), path, wait=0.05)
    assert os.listdir(path.parent) == [path.name]


def test_a_model_file_is_its_owners_alone_unless_they_said_otherwise(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    pr.save(pr.load(path), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_is_not_written_through(path):
    link = path.with_name("link.priory")
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic link") as error:
        pr.save(pr.load(path), link)
    assert error.value.filename == str(link)


def test_a_missing_folder_is_named(path):
    with pytest.raises(FileNotFoundError) as error:
        pr.save(pr.load(path), path.parent / "none" / "model.priory")
    assert error.value.filename == str(path.parent / "none" / "model.priory")


def test_a_mapped_model_stays_as_it_was_when_the_file_is_replaced(path):
    mapped = pr.load(path, mapped=True)
    before = mapped.predict_log_proba(TEXTS).tolist()
    pr.save(pr.TextClassifier().fit(["other"], ["other"]), path)
    assert mapped.predict_log_proba(TEXTS).tolist() == before
