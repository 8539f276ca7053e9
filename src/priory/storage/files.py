"""Files that are never half-written: saved to a temporary file and renamed, by one process at a time."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from priory.errors import FileBusyError, ModelFileError, PrioryError
from priory.storage.file_locks import lock_descriptor, open_descriptor, release_lock, sync_folder

LOCK_TIMEOUT_SECONDS = 30.0


@contextmanager
def open_regular_file(path: Path) -> Iterator[BinaryIO]:
    """The opened file; links, pipes and devices are refused."""
    try:
        descriptor = open_descriptor(path, os.O_RDONLY)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ModelFileError("it is a symbolic link; give the path of the file itself.") from None
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with open(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(mode):
            raise ModelFileError("it is a pipe or a device, not a file.")
        yield file


def replace_file(path: Path, chunks: Iterable[memoryview | bytes]) -> None:
    """Put a new file in the place of the old one; errors of the system name this path, not that of a temporary file."""
    with name_path_in_errors(path):
        _write_and_rename(path, chunks)


def _write_and_rename(path: Path, chunks: Iterable[memoryview | bytes]) -> None:
    """Write a temporary file and rename it: a reader finds the old file or the new one, always complete.

    The lock must be held, because temporary files that were left by interrupted writers are removed.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link; give the path of the file itself", str(path))
    for left in path.parent.glob(f".{_escape_glob(path.name)}.*.new"):
        left.unlink(missing_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = open_descriptor(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with open(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                if hasattr(os, "fchmod"):  # Windows had none before Python 3.13
                    os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(descriptor)
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def name_path_in_errors(path: Path) -> Iterator[None]:
    """Let errors of the system name this path instead of that of a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, PrioryError):
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None


@contextmanager
def lock_file(path: Path, wait: float = LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold the lock of a file, so that no other process changes it meanwhile.

    The lock is taken on a file ``.name.lock`` in the same folder, which is removed when the lock is released. The
    kernel releases it when a process ends in any way. Since the previous holder removes the lock file, the lock counts
    only if the file that was locked is still the one in the folder.
    """
    lock, until, pause = path.with_name(f".{path.name}.lock"), time.monotonic() + wait, 0.001
    while True:
        with name_path_in_errors(path):
            descriptor = open_descriptor(lock, os.O_RDWR | os.O_CREAT)
        try:
            lock_descriptor(descriptor)
            if _is_same_file(descriptor, lock):
                break
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(descriptor)
                raise FileBusyError(f"{path}: another process is changing it; try again later.") from None
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        release_lock(descriptor, lock)


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _escape_glob(name: str) -> str:
    """The name with its special characters escaped for a glob."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
