"""Locks and flags, as POSIX has them and as Windows would."""

import errno
import importlib.util
import os
import sys
from types import SimpleNamespace

import pytest

import priory
from priory.storage import file_locks


def load_for_windows(monkeypatch):
    """The module as Windows would import it: without POSIX flags, and with msvcrt instead of fcntl."""
    fcntl = pytest.importorskip("fcntl")

    def locking(descriptor, mode, n_bytes):
        fcntl.flock(descriptor, mode)

    fake = SimpleNamespace(locking=locking, LK_NBLCK=fcntl.LOCK_EX | fcntl.LOCK_NB)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(sys, "platform", "win32")
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"):
        monkeypatch.delattr(os, name)
    spec = importlib.util.spec_from_file_location("windows_file_locks", file_locks.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("system", ["this", "windows"])
def test_a_file_is_locked_by_one_at_a_time_until_it_is_released(tmp_path, monkeypatch, system):
    locks = file_locks if system == "this" else load_for_windows(monkeypatch)
    path = tmp_path / "x.lock"
    first = locks.open_descriptor(path, os.O_RDWR | os.O_CREAT)
    second = locks.open_descriptor(path, os.O_RDWR | os.O_CREAT)
    locks.lock_descriptor(first)
    with pytest.raises(BlockingIOError):
        locks.lock_descriptor(second)
    locks.release_lock(first, path)
    locks.lock_descriptor(second)
    locks.release_lock(second, path)
    assert not path.exists()
    locks.sync_folder(tmp_path)


@pytest.mark.parametrize("system", ["this", "windows"])
def test_a_symbolic_link_is_not_followed(tmp_path, monkeypatch, system):
    locks = file_locks if system == "this" else load_for_windows(monkeypatch)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        locks.open_descriptor(tmp_path / "link", os.O_RDWR | os.O_CREAT)
    assert not (tmp_path / "file").exists()


def test_a_model_file_is_read_where_there_is_no_preadv(tmp_path, monkeypatch):
    model = priory.TextClassifier().fit(["win cash", "lunch at noon"], ["spam", "ham"])
    priory.save(model, tmp_path / "m.priory")
    monkeypatch.delattr(os, "preadv")
    monkeypatch.delattr(os, "fchown")
    monkeypatch.delattr(os, "fchmod")
    priory.save(priory.load(tmp_path / "m.priory"), tmp_path / "m.priory")
    assert priory.load(tmp_path / "m.priory").predict(["cash"]).tolist() == ["spam"]
