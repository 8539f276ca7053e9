"""Model files survive: whatever strikes, the file is the old one or the new one, and nobody's learning is lost."""

import os
import re
import shutil
import stat
import subprocess
import sys
import threading

import pytest

import priory as pr
from paths import ROOT
from priory.errors import FileBusyError, PrioryWarning
from priory.storage import file_locks, updating
from priory.storage.file_locks import lock_descriptor, open_descriptor
from priory.storage.saved_files import make_temporary_name
from turns import count_turns

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
    lock, half = (path.with_name(name) for name in (".model.priory.lock", make_temporary_name(path.name)))
    lock.write_bytes(b"\0w")
    half.write_bytes(b"half")
    pr.save(pr.load(path), path, wait=0.05)
    assert os.listdir(path.parent) == [path.name]


def test_only_files_that_an_interrupted_writer_of_this_model_left_are_removed(path):
    """Every file whose name began and ended like that of a temporary file was removed."""
    others = [".model.priory.notes.new", ".model.priory.0123abcd.new", ".model.priory.0123456789abcdef.new"]
    others += [make_temporary_name("other.priory"), make_temporary_name(path.name)[1:]]
    for name in others:
        path.with_name(name).write_text("mine")
    link = path.with_name(make_temporary_name(path.name))
    link.symlink_to(path.with_name(others[0]))
    path.with_name(folder := make_temporary_name(path.name)).mkdir()
    pr.save(pr.load(path), path)
    assert sorted(os.listdir(path.parent)) == sorted([path.name, *others, link.name, folder])


def test_the_file_of_a_writer_who_is_alive_is_not_removed(path):
    half = path.with_name(make_temporary_name(path.name))
    descriptor = open_descriptor(half, os.O_RDWR | os.O_CREAT)
    lock_descriptor(descriptor)
    pr.save(pr.load(path), path)
    assert half.exists()
    os.close(descriptor)
    pr.save(pr.load(path), path)
    assert not half.exists()


# -- who may read and write --------------------------------------------------------------------------------------------


def test_a_model_file_is_its_owners_alone_unless_they_said_otherwise(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    pr.save(pr.load(path), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_keeps_a_file_that_the_administrator_updates(path):
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    with updating(path) as file:
        file.model.partial_fit(TEXTS, LABELS)
    now = path.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (1234, 2345, 0o640)


def test_an_owner_and_a_group_that_cannot_be_kept_are_said(path, monkeypatch):
    """Another user who may write to the folder; the permissions of the group are not given to another group."""
    path.chmod(0o660)
    real = os.lstat(path)
    other = os.stat_result((*real[:4], real.st_uid + 1, real.st_gid + 1, *real[6:]))
    monkeypatch.setattr(os, "lstat", lambda given: other if given == path else os.stat(given, follow_symlinks=False))

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    model = pr.load(path)
    with pytest.warns(PrioryWarning) as found:
        pr.save(model, path)
    assert [str(warning.message) for warning in found] == [
        f"{path} is no longer open to the group that it belonged to, of which you are not a member.",
        f"{path} now belongs to you: only the administrator can keep another user as the owner.",
    ]
    assert all(warning.filename == __file__ for warning in found)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_other_names_of_a_file_keep_the_old_model_and_the_user_is_told(path):
    other = path.with_name("other.priory")
    os.link(path, other)
    before = other.read_bytes()
    told = f"{path} was one of 2 hard links to a file; the others still have the old model."
    with pytest.warns(PrioryWarning, match=re.escape(told)), updating(path) as file:
        file.model.partial_fit(TEXTS, LABELS)
    assert other.read_bytes() == before != path.read_bytes()
    pr.save(pr.load(path), path)  # now it has one name, and there is nothing to say


# -- locks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_in_the_place_of_a_lock_is_named(path, kind):
    lock = path.with_name(".model.priory.lock")
    {"folder": lock.mkdir, "link": lambda: lock.symlink_to(path), "pipe": lambda: os.mkfifo(lock)}[kind]()
    before = path.read_bytes()
    with pytest.raises(FileExistsError) as error:
        pr.save(pr.load(path), path)
    assert error.value.filename == str(lock)
    assert error.value.strerror == (
        "it is in the place of a lock file, but is none, so the model cannot be changed; remove it"
    )
    assert path.read_bytes() == before
    assert os.path.lexists(lock)


def test_the_lock_of_another_user_is_waited_for_and_named(path, monkeypatch):
    lock = path.with_name(".model.priory.lock")
    lock.touch()

    def refuse(place, _):
        if place == lock and lock.exists():
            raise PermissionError(13, "Permission denied", str(place))
        return open_descriptor(place, _)

    monkeypatch.setattr(file_locks, "open_descriptor", refuse)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileBusyError, match=f"{lock}: another user is changing model.priory, or was interrupted"):
        pr.save(pr.load(path), path, wait=0.05)
    threading.Timer(0.05, lock.unlink).start()
    pr.save(pr.load(path), path, wait=5)


def test_a_folder_that_may_not_be_written_is_named_by_the_file(path, monkeypatch):
    def refuse(place, _):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(file_locks, "open_descriptor", refuse)
    with pytest.raises(PermissionError) as error:
        pr.save(pr.load(path), path)
    assert error.value.filename == str(path)


@pytest.mark.slow
def test_busy_writers_take_turns():
    """One had 698 turns, and the other 1."""
    turns, _ = count_turns(2, 2.0)
    assert min(turns) >= max(turns) / 4
    assert min(turns) > 3


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
