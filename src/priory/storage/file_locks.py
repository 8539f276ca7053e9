"""One process at a time changes a file: locks on POSIX and Windows, and turns among busy writers."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from priory.errors import FileBusyError, PrioryError

FLAG_NAMES = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")  # not every system has all of them
OPEN_FLAGS = sum(getattr(os, name, 0) for name in FLAG_NAMES)  # without O_BINARY Windows would translate line ends


def open_descriptor(path: Path, flags: int) -> int:
    """Open a file without following symbolic links (ELOOP) or blocking on pipes; child processes do not inherit it.

    A new file is readable by its owner only.
    """
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags | OPEN_FLAGS, 0o600)


if sys.platform == "win32":
    import msvcrt

    def lock_descriptor(descriptor: int) -> None:
        """Lock an open file for this process until it is closed; raises BlockingIOError if another process has it."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    def release_lock(descriptor: int, path: Path) -> None:
        """Close and remove a lock file; Windows keeps it if another process has opened it meanwhile."""
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()

else:
    import fcntl

    def lock_descriptor(descriptor: int) -> None:
        """Lock an open file for this process until it is closed; raises BlockingIOError if another process has it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release_lock(descriptor: int, path: Path) -> None:
        """Remove a lock file, then close it: a process that then locks the removed file detects that it is gone."""
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a rename survives a power failure (not on Windows)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def name_path_in_errors(path: Path) -> Iterator[None]:
    """Make OSErrors name this path instead of a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, PrioryError):
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None


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
        time.sleep(MIN_POLL_SECONDS + (MAX_POLL_SECONDS - MIN_POLL_SECONDS) * os.urandom(1)[0] / 255)
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
