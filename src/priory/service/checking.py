"""``priory serve --check``: verify journal and snapshots, and that erased rows are really gone."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from priory.errors import PrioryError
from priory.service.journal import Journal
from priory.service.model_store import ModelStore
from priory.service.rows import contains_phrase, decode_row_batch
from priory.workflows.callbacks import format_count


@dataclass
class CheckResult:
    """Result of a check: lines of text, and the number of problems."""

    lines: list[str] = field(default_factory=list)
    problems: int = 0

    def note(self, line: str, is_problem: bool = False) -> None:
        self.lines.append(f"{'problem' if is_problem else 'ok'}: {line}")
        self.problems += is_problem


def check_folder(folder: Path, search: Sequence[str] = ()) -> CheckResult:
    """Check the data folder of a stopped service; the texts ``search`` must not occur in any file."""
    result = CheckResult()
    if not (folder / "journal.sqlite").exists():
        result.note(f"{folder} is not the data folder of a service", True)
        return result
    try:
        store = ModelStore(folder)
    except PrioryError as error:
        result.note(str(error), True)
        return result
    rows_with: dict[str, int] = {}
    try:
        _check_journal(store.journal, result)
        # decoded rows, compared without regard to case, Unicode form and blanks
        rows_with = {text: _count_rows_with(store.journal, text) for text in search}
        for name, model in sorted(store.models.items()):
            result.note(f"{name}: {model.n_rows:,.0f} rows, version {model.version}")
    except sqlite3.Error as error:
        result.note(f"journal: {error}", True)
    finally:
        store.close()
    # after closing the store, so that all files are complete
    for text in search:
        places = sorted(str(path.relative_to(folder)) for path in find_files_with(folder, text))
        if n_rows := rows_with.get(text, 0):  # another spelling, which a search of the bytes misses
            places.append(f"{format_count(n_rows, 'row')} of the journal")
        result.note(f"{text[:40]!r} occurs in {', '.join(places) or 'no file'}", bool(places))
    return result


def _check_journal(journal: Journal, result: CheckResult) -> None:
    found = journal.check_integrity()
    result.note(f"journal: {found}", found != "ok")
    due = journal.list_models_to_erase()
    result.note(f"journal: {len(due)} models with rows that are still to be erased", bool(due))


def _count_rows_with(journal: Journal, phrase: str) -> int:
    batches = map(decode_row_batch, journal.read_bodies())
    pairs = (pair for batch in batches for pair in zip(batch.rows, batch.labels or (), strict=True))
    return sum(contains_phrase(row, label, phrase) for row, label in pairs)


def find_files_with(folder: Path, text: str) -> Iterator[Path]:
    """Yield the files that contain a text in any Unicode normal form, verbatim or escaped as in JSON."""
    forms = {text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD"))}
    escaped = {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (False, True)}
    spellings = [spelling.encode() for spelling in forms | escaped]
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if any(spelling in content for spelling in spellings):
                yield path
