"""One process at a time changes a file; others wait, and busy ones take turns."""

from __future__ import annotations

import errno
import os
import random
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from priory.errors import FileBusyError
from priory.storage.file_locks import lock_descriptor, name_path_in_errors, open_descriptor, release_lock

LOCK_TIMEOUT_SECONDS = 30.0
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.001, 0.005  # between two attempts of a process that waits
HAND_OVER_SECONDS = 4 * MAX_POLL_SECONDS  # for which whoever had the lock leaves it to those who wait
CONTENDED_SECONDS = 1.0  # for which a file counts as busy after somebody was seen waiting

_contended_until: dict[str, float] = {}  # by lock file: until when whoever had the lock lets others go first


@contextmanager
def lock_file(path: Path, wait: float = LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold the lock of a file, so that no other process changes it meanwhile.

    The lock is taken on a file ``.name.lock`` in the same folder, which is removed when the lock is released. The
    kernel releases it when a process ends in any way. Since the previous holder removes the lock file, the lock counts
    only if the file that was locked is still the one in the folder.

    Whoever waits writes a byte into the lock file. Where the holder finds one, it pauses before it asks for the lock
    again, for longer than those who wait pause between two attempts: each of them is as likely to be next.
    """
    lock = path.with_name(f".{path.name}.lock")
    if time.monotonic() < _contended_until.get(str(lock), 0.0):
        time.sleep(HAND_OVER_SECONDS)
    else:
        _contended_until.pop(str(lock), None)
    descriptor = _take_lock(path, lock, time.monotonic() + wait)
    try:
        yield
    finally:
        if os.fstat(descriptor).st_size:
            _contended_until[str(lock)] = time.monotonic() + CONTENDED_SECONDS
        release_lock(descriptor, lock)


def _take_lock(path: Path, lock: Path, until: float) -> int:
    """The descriptor of the lock file once it is locked; an error if others have it until then."""
    _check_not_planted(lock)
    while (descriptor := _try_lock(path, lock)) is None:
        _check_not_planted(lock)
        if time.monotonic() > until:
            raise _make_busy_error(path, lock)
        time.sleep(random.uniform(MIN_POLL_SECONDS, MAX_POLL_SECONDS))
    return descriptor


def _try_lock(path: Path, lock: Path) -> int | None:
    """The descriptor of the lock file, if it could be locked."""
    with name_path_in_errors(path):
        try:
            descriptor = open_descriptor(lock, os.O_RDWR | os.O_CREAT)
        except PermissionError:
            if os.path.lexists(lock):
                return None  # another user is changing the file
            raise
        try:
            lock_descriptor(descriptor)
            if _is_same_file(descriptor, lock):
                return descriptor
        except BlockingIOError:
            _mark_as_awaited(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None


def _check_not_planted(lock: Path) -> None:
    """Raise an error that names what is in the place of the lock file, but is none: to wait for it would not help."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(lock).st_mode):
            problem = "it is in the place of a lock file, but is none, so the model cannot be changed; remove it"
            raise FileExistsError(errno.EEXIST, problem, str(lock))


def _make_busy_error(path: Path, lock: Path) -> FileBusyError:
    if os.path.lexists(lock) and not os.access(lock, os.R_OK | os.W_OK):
        return FileBusyError(
            f"{lock}: another user is changing {path.name}, or was interrupted; try again, or ask them to remove this."
        )
    return FileBusyError(f"{path}: another process is changing it and holds {lock.name}; try again later.")


def _mark_as_awaited(descriptor: int) -> None:
    """Let the holder of a lock file know that somebody waits for it."""
    with suppress(OSError):
        os.lseek(descriptor, 1, os.SEEK_SET)  # Windows lets nobody write the byte that is locked
        os.write(descriptor, b"w")


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
