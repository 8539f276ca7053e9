"""What was named on the command line, found and opened: files, globs, folders, or standard input."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from priory.errors import DataError
from priory.sources.arrow_files import Arrow, Parquet
from priory.sources.byte_streams import STDIN, Decoding, Told, magic, opened, shown, untold, utf8
from priory.sources.chunk import Chunk, Faults, File
from priory.sources.csv_files import Separated
from priory.sources.document_files import Documents, by_class, is_mail, is_maildir, is_mbox
from priory.sources.json_lines import JSONLines

FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow", "text", "mail")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".mbox": "mail",
    ".eml": "mail",
}
PACKED = (".gz", ".zst")

Opener = Callable[[], File]


@dataclass(frozen=True)
class Asked:
    """How files are to be read, as far as somebody said."""

    format: str | None = None
    delimiter: str | None = None
    decoding: Decoding = field(default_factory=Decoding)
    faults: Faults = field(default_factory=Faults)
    keep_going: bool = False


class Rows:
    """All rows of all files, in order. The columns are those of the first; others may have them in another order.

    A file is opened when its turn comes: there may be more of them than can be open at once.
    """

    def __init__(self, openers: list[Opener]) -> None:
        self.openers = openers
        self.files = [openers[0]()]

    @property
    def names(self) -> tuple[str, ...]:
        return self.files[0].names

    @property
    def is_documents(self) -> bool:
        return isinstance(self.files[0], Documents)

    def chunks(self, wanted: tuple[str, ...]) -> Iterator[Chunk]:
        for number, opener in enumerate(self.openers):
            if number:
                self.files.append(opener())
            file = self.files[-1]
            absent = [name for name in wanted if name not in file.names]
            if absent:
                raise DataError(f"{shown(file.path)}: has no column {listed(absent)}; it has {listed(file.names)}")
            yield from file.chunks(wanted)


def open_files(paths: list[str], asked: Asked, told: Told = untold) -> Rows:
    """Every file that was named."""
    if paths.count(STDIN) > 1:
        raise DataError("-: standard input was named twice; name it once")
    openers = [opener for path in paths for opener in _found(path, asked, told)]
    if not openers:
        raise DataError(f"{', '.join(map(shown, paths))}: holds no files; name a file, a folder or a pattern")
    return Rows(openers)


def _found(path: str, asked: Asked, told: Told) -> list[Opener]:
    if path != STDIN and not os.path.lexists(path) and glob.has_magic(path):
        return [opener for found in sorted(glob.glob(path, recursive=True)) for opener in _found(found, asked, told)]
    if path != STDIN and Path(path).is_dir():
        return _folder(path, asked, told)
    return [partial(_file, path, asked, told)]


def _folder(path: str, asked: Asked, told: Told) -> list[Opener]:
    """Tables side by side, or a tree of documents by class."""
    root = Path(path)
    entries = sorted(e for e in root.iterdir() if not e.name.startswith("."))
    if asked.format not in ("text", "mail") and entries and all(e.is_file() for e in entries):
        return [partial(_file, str(e), asked, told) for e in entries]
    folders = [root, *(e for e in entries if e.is_dir())]
    kind = asked.format or ("mail" if any(map(is_maildir, folders)) or _holds_mail(root) else "text")
    if kind not in ("text", "mail"):
        raise DataError(f"{shown(path)}: is a folder of folders; read it as --format text or --format mail")
    return [partial(Documents, path, by_class(root, kind), kind, asked.decoding, asked.keep_going, told)]


def _holds_mail(root: Path) -> bool:
    """By its first file."""
    first = next((file for _, file in by_class(root, "text")), None)
    return first is not None and os.access(first, os.R_OK) and is_mail(first)


def _file(path: str, asked: Asked, told: Told) -> File:
    kind = asked.format or format_of(path)
    if kind in ("csv", "tsv"):
        delimiter = asked.delimiter or ("\t" if kind == "tsv" else None)
        return Separated(path, delimiter, asked.decoding, asked.faults, told)
    if kind == "jsonl":
        return JSONLines(path, asked.decoding, asked.faults, told)
    if path == STDIN:
        raise DataError(f"-: {kind} cannot be read from standard input; give a file")
    if kind == "parquet":
        return Parquet(path, told)
    if kind == "arrow":
        return Arrow(path, told)
    file = Path(path)
    return Documents(path, [(file.stem, file)], kind, asked.decoding, asked.keep_going, told)


def format_of(path: str) -> str:
    """By the first bytes where they tell, else by the name, else by a look at the text."""
    if path == STDIN:
        return "csv"
    start = magic(path)
    if start.startswith(b"PAR1") or start.startswith(b"PARE"):
        return "parquet"
    if start.startswith(b"ARROW1"):
        return "arrow"
    if is_mbox(Path(path)):
        return "mail"
    name = Path(path).name.lower()
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    suffix = Path(name).suffix
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    head = next(utf8(path, opened(path), Decoding("auto")), b"")
    return "jsonl" if head.lstrip()[:1] == b"{" else "csv"


def listed(names: tuple[str, ...] | list[str], most: int = 10) -> str:
    listed = ", ".join(map(repr, names[:most]))
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed
