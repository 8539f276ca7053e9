"""Lock files across processes, with fair turns under contention."""

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
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.001, 0.005  # between two attempts to get the lock
HAND_OVER_SECONDS = 4 * MAX_POLL_SECONDS  # how long the last holder pauses before it competes for the lock again
CONTENDED_SECONDS = 1.0  # how long a file counts as contended after another process waited for it

_contended_until: dict[str, float] = {}  # by lock file, in monotonic time


@contextmanager
def lock_file(path: Path, wait: float = LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold an exclusive lock on a file.

    The lock is taken on a file ``.name.lock`` in the same folder, which is removed when the lock is released. The
    kernel releases it when the process ends. Since the previous holder removes the lock file, a lock is valid only if
    the locked file is still the one in the folder.

    A waiting process writes a byte into the lock file. A holder that finds one pauses before it asks for the lock
    again, for longer than the polling interval of the others, so that each of them has a turn.
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
        if os.fstat(descriptor).st_size:  # another process has written a byte: it is waiting
            _contended_until[str(lock)] = time.monotonic() + CONTENDED_SECONDS
        release_lock(descriptor, lock)


def _take_lock(path: Path, lock: Path, until: float) -> int:
    """Wait for the lock and return its descriptor; raise FileBusyError after the time ``until``."""
    _check_not_planted(lock)
    while (descriptor := _try_lock(path, lock)) is None:
        _check_not_planted(lock)
        if time.monotonic() > until:
            raise _make_busy_error(path, lock)
        # random, so that waiting processes do not stay in step
        time.sleep(random.uniform(MIN_POLL_SECONDS, MAX_POLL_SECONDS))
    return descriptor


def _try_lock(path: Path, lock: Path) -> int | None:
    """Return the descriptor of the lock file, or None if another process has the lock."""
    with name_path_in_errors(path):
        try:
            descriptor = open_descriptor(lock, os.O_RDWR | os.O_CREAT)
        except PermissionError:
            if os.path.lexists(lock):
                return None  # another user is changing the file
            raise
        try:
            lock_descriptor(descriptor)
            # the previous holder may have removed the file between opening and locking
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
    """Raise FileExistsError if the lock path is a link, folder or pipe: waiting would not help."""
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
    """Tell the holder of a lock that another process is waiting."""
    with suppress(OSError):
        os.lseek(descriptor, 1, os.SEEK_SET)  # byte 0 is locked, and Windows does not allow writing to it
        os.write(descriptor, b"w")


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
