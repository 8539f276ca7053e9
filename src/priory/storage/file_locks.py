"""Opening and locking files on POSIX and on Windows."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from priory.errors import PrioryError

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
