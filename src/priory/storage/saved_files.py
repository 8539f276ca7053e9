"""Files that are never half-written: saved to a temporary file and renamed; hashed in blocks on all cores."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from priory.core.sharding import map_threads
from priory.errors import ModelFileError, PrioryWarning
from priory.storage.file_locks import lock_descriptor, name_path_in_errors, open_descriptor, release_lock, sync_folder

ALIGNMENT_BYTES = 64  # a cache line
HASH_BLOCK_BYTES = 1 << 20  # hashed independently, on several threads

FileBytes = memoryview | bytes


def make_padding(size: int) -> bytes:
    """Return the zero bytes that pad ``size`` bytes to a multiple of 64."""
    return bytes(-size % ALIGNMENT_BYTES)


def hash_blocks(chunks: Iterable[FileBytes]) -> list[str]:
    """Return the SHA-256 of each block of the concatenated chunks.

    >>> [digest[:8] for digest in hash_blocks([b"ab", b"c"])]
    ['ba7816bf']
    """
    blocks = list(_split_blocks(chunks))
    return list(map_threads(_hash_block, blocks)) if blocks else []


def _hash_block(block: list[memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in block:
        digest.update(piece)
    return digest.hexdigest()


def _split_blocks(chunks: Iterable[FileBytes]) -> Iterator[list[memoryview]]:
    """Regroup the chunks into blocks, without copying: each block is a list of views."""
    block: list[memoryview] = []
    room = HASH_BLOCK_BYTES
    for chunk in chunks:
        left = memoryview(chunk)
        while len(left):
            block.append(left[:room])
            left, room = left[room:], room - len(block[-1])
            if not room:
                yield block
                block, room = [], HASH_BLOCK_BYTES
    if block:
        yield block


TEMPORARY_NAME_PATTERN = re.compile(r"\.(?P<name>.+)\.(?P<token>[0-9a-f]{8})(?P<check>[0-9a-f]{8})\.new", re.DOTALL)


@contextmanager
def open_regular_file(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading; links, pipes and devices raise ModelFileError."""
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
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(mode):
            raise ModelFileError("it is a pipe or a device, not a file.")
        yield file


def replace_file(path: Path, chunks: Iterable[memoryview | bytes]) -> None:
    """Write a file atomically; OSErrors name this path, not the temporary file."""
    with name_path_in_errors(path):
        _write_and_rename(path, chunks)


def _write_and_rename(path: Path, chunks: Iterable[memoryview | bytes]) -> None:
    """Write a temporary file and rename it, so that a reader sees either the old file or the complete new one.

    The new file gets the owner and the permissions of the old one, with a warning if that is not possible.
    """
    old = _describe_old_file(path)
    _remove_stale_files(path)
    new = path.with_name(make_temporary_name(path.name))
    lost: list[str] = []
    try:
        descriptor = open_descriptor(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with open(descriptor, "wb") as file:
            lock_descriptor(descriptor)  # so that other processes do not remove it as stale
            if old is not None:
                lost = _keep_owner_and_mode(descriptor, old)
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            # the content must be on disk before the rename is
            os.fsync(descriptor)
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    for problem in lost:
        warnings.warn(PrioryWarning(f"{path} {problem}"), stacklevel=5)


def _describe_old_file(path: Path) -> os.stat_result | None:
    """Return the status of the file to be replaced, or None if it does not exist."""
    try:
        old = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(old.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link; give the path of the file itself", str(path))
    return old


def _keep_owner_and_mode(descriptor: int, old: os.stat_result) -> list[str]:
    """Copy owner, group and permissions of the old file to the new one; return warnings for what failed.

    If the group cannot be kept, the new group gets no permissions.
    """
    lost, mode, own = [], stat.S_IMODE(old.st_mode), os.fstat(descriptor)
    if old.st_nlink > 1:
        lost.append(f"was one of {old.st_nlink} hard links to a file; the others still have the old model.")
    if not hasattr(os, "fchown"):  # Windows, which had no fchmod before Python 3.13 either
        return lost
    if own.st_gid != old.st_gid:
        try:
            os.fchown(descriptor, -1, old.st_gid)
        except PermissionError:
            mode &= ~stat.S_IRWXG  # no permissions for another group
            lost.append("is no longer open to the group that it belonged to, of which you are not a member.")
    if own.st_uid != old.st_uid:
        try:
            os.fchown(descriptor, old.st_uid, -1)
        except PermissionError:
            lost.append("now belongs to you: only the administrator can keep another user as the owner.")
    os.fchmod(descriptor, mode)
    return lost


# -- temporary files of interrupted writers ---------------------------------------------------------------------------


def make_temporary_name(name: str) -> str:
    """Return a random name for the temporary file of ``name``, with a checksum that identifies it as ours.

    >>> len(make_temporary_name("mail.priory")) - len("mail.priory")
    22
    """
    token = os.urandom(4).hex()
    return f".{name}.{token}{_sign_token(name, token)}.new"


def is_temporary_name(candidate: str, name: str) -> bool:
    """Whether `make_temporary_name(name)` can have returned this name.

    >>> is_temporary_name(make_temporary_name("mail.priory"), "mail.priory")
    True
    >>> is_temporary_name(".mail.priory.0123456789abcdef.new", "mail.priory")
    False
    """
    found = TEMPORARY_NAME_PATTERN.fullmatch(candidate)
    return found is not None and found["name"] == name and found["check"] == _sign_token(name, found["token"])


def _sign_token(name: str, token: str) -> str:
    return hashlib.sha256(f"priory {token} {name}".encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _remove_stale_files(path: Path) -> None:
    """Remove temporary files of this file that no process has locked: their writers were interrupted.

    Files that cannot be opened, for example because they belong to another user, are kept.
    """
    with os.scandir(path.parent) as entries:
        stale = [entry.name for entry in entries if is_temporary_name(entry.name, path.name)]
    for name in stale:
        with suppress(OSError):
            descriptor = open_descriptor(path.with_name(name), os.O_RDWR)
            try:
                lock_descriptor(descriptor)
            except BlockingIOError:
                os.close(descriptor)
                continue
            release_lock(descriptor, path.with_name(name))
