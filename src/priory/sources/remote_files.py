"""Parquet files at URLs, such as object stores, through fsspec, which is imported on use."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from priory.errors import DataError, MissingDependencyError
from priory.sources.byte_streams import format_path


def is_url(path: str) -> bool:
    """Whether a path names a file on another file system, such as ``s3://bucket/mail.parquet``."""
    return "://" in path


def find_remote_files(url: str) -> list[str]:
    """The Parquet files that a URL, a pattern or a folder names, in order."""
    system, path = _import_fsspec().core.url_to_fs(url)
    pattern = path.rstrip("/") + "/*.parquet" if system.isdir(path) else path
    found = sorted(system.glob(pattern))
    if any(not name.endswith(".parquet") for name in found):
        raise DataError(f"{format_path(url)}: is not Parquet; at URLs nothing else is read")
    return [system.unstrip_protocol(name) for name in found]


def open_remote_file(url: str) -> Any:
    """A file at a URL, open for reading."""
    return _import_fsspec().open(url, "rb").open()


def _import_fsspec() -> ModuleType:
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError("files at URLs need fsspec: pip install fsspec.", name=error.name) from None
    return fsspec
