"""Files that are documents: a tree of texts by class, mboxes, maildirs, messages. A row is a text and its label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from priory.errors import DataError, TooLarge
from priory.sources import mail
from priory.sources.byte_streams import BLOCK, Decoding, Told, opened, shown, untold, utf8
from priory.sources.chunk import MOST_IN_A_CELL, Chunk, File

TEXT, LABEL, PATH = "text", "label", "path"
BATCH, CHARACTERS = 2048, 1 << 22  # documents and characters at a time
TRACE = re.compile(rb"From |(Return-Path|Received|Delivered-To|X-Original-To):", re.IGNORECASE)


class Documents(File):
    """Rows ``label, path, text``: every file a document, or, if it is an mbox, many."""

    names = (LABEL, PATH, TEXT)

    def __init__(
        self, root: str, files: list[tuple[str, Path]], kind: str, how: Decoding, keep_going: bool, told: Told = untold
    ) -> None:
        self.path, self.files, self.kind, self.how, self.keep_going = root, files, kind, how, keep_going
        self.told = told
        self.flags: dict[str, int] = {}
        self.unreadable: list[str] = []

    def chunks(self, wanted: tuple[str, ...]) -> Iterator[Chunk]:
        import pyarrow as pa

        rows, start = self._rows(), 0
        while block := list(_some(rows)):
            columns = {
                name: pa.array(cells, pa.string())
                for name, cells in zip(self.names, zip(*block, strict=True), strict=True)
            }
            yield Chunk(pa.RecordBatch.from_arrays([columns[n] for n in wanted], names=list(wanted)), self, start)
            start += len(block)
        if not start:
            raise DataError(f"{shown(self.path)}: holds no documents; give a folder for each class, or an mbox")

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for label, file in self.files:
            try:
                for number, text in enumerate(self._texts(file)):
                    yield label, shown(file) + (f"#{number + 1}" if number else ""), text
            except PermissionError:
                if not self.keep_going:
                    raise
                self.unreadable.append(shown(file))

    def _texts(self, file: Path) -> Iterator[str]:
        if self.kind == "text":
            yield self._plain(file)
            return
        raw = opened(str(file), self.told)
        for message in mail.messages(raw) if is_mbox(file) else [_start(raw)]:
            text, flags = mail.read(message)
            for flag in flags:
                self.flags[flag] = self.flags.get(flag, 0) + 1
            yield text + "".join(f"\n{flag}:" for flag in flags if flag == "zw")

    def _plain(self, file: Path) -> str:
        if file.stat().st_size == 0:
            return ""
        blocks = utf8(str(file), opened(str(file), self.told), self.how)
        raw = _start(blocks)
        if len(raw) > MOST_IN_A_CELL:
            raise TooLarge(f"{shown(file)}: has {len(raw):,} bytes and more; the limit is {MOST_IN_A_CELL:,}")
        try:
            return raw.decode().replace("\0", " ")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{shown(file)}:{line}: byte {error.start} is not UTF-8; use --encoding latin-1 (or what it is), or "
                "--errors replace"
            ) from None

    def place(self, row: int, column: str) -> str:
        _, path, _ = next(islice(self._rows(), row, None))
        return path


def _some(rows: Iterator[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    size = 0
    for row in islice(rows, BATCH):
        yield row
        size += len(row[-1])
        if size > CHARACTERS:
            return


def _start(blocks: Iterator[bytes]) -> bytes:
    """As much of a document as may be read, and a little more, which tells that it is too long."""
    return b"".join(islice(blocks, 2 + MOST_IN_A_CELL // BLOCK))


def is_mbox(file: Path) -> bool:
    with file.open("rb") as opened_file:
        return opened_file.read(5) == b"From "


def is_mail(file: Path) -> bool:
    """Whether a file begins as mail does on its way: no text that people write does."""
    with file.open("rb") as opened_file:
        return TRACE.match(opened_file.read(20)) is not None


def is_maildir(folder: Path) -> bool:
    return (folder / "cur").is_dir() and (folder / "new").is_dir()


def by_class(root: Path, kind: str) -> list[tuple[str, Path]]:
    """The files below a folder, each with its class: the name of the folder (or the mbox) it is in below the root."""
    if is_maildir(root):
        return [(root.name, file) for file in _maildir(root)]
    found: list[tuple[str, Path]] = []
    for entry in sorted(root.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            files = _maildir(entry) if is_maildir(entry) else sorted(f for f in entry.rglob("*") if f.is_file())
            found.extend((entry.name, file) for file in files if not file.name.startswith("."))
        elif kind == "mail" and entry.is_file():
            found.append((entry.stem, entry))
    return found


def _maildir(folder: Path) -> list[Path]:
    return sorted(file for part in ("cur", "new") for file in (folder / part).iterdir() if file.is_file())
