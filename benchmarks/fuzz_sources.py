"""Random files through the readers: whatever the bytes are, the result is rows or one clear error.

    python benchmarks/fuzz_sources.py csv|jsonl|mail|mbox|gzip|zstd|parquet|arrow [-runs=1000000] [-max_len=2000]

Needs atheris. The options are libFuzzer's; it starts from the files in `tests/corpus/<format>`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["priory.sources"]):
    from priory.sources import ReadOptions, mail, mail_structure, open_files
    from priory.sources.column_inference import infer_columns
    from priory.sources.column_types import ColumnOptions, LabelReader

from priory.errors import PrioryError

SUFFIX = {"gzip": ".csv.gz", "zstd": ".csv.zst", "mail": ".eml"}
START = {"gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "zstd": b"\x28\xb5\x2f\xfd", "mbox": b"From "}


def read(path: str) -> None:
    """Do everything that a command does with a file before a model sees it."""
    rows = open_files([path], ReadOptions())
    options = ColumnOptions(target=rows.names[0], skip_unlabelled=True, labels_as_text=True)
    names = options.find_features(rows)
    columns, labels = None, LabelReader(rows.names[0], options)
    for chunk in rows.read_chunks((rows.names[0], *names)):
        columns = columns or infer_columns(chunk, names, options).columns
        _, kept = labels.read(chunk)
        columns.read(kept)
        columns.read_input_rows(kept)


def main() -> None:
    kind, *options = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    path = str(folder / f"input{SUFFIX.get(kind, f'.{kind}')}")

    def one(data: bytes) -> None:
        start = START.get(kind, b"")
        whole = data if data.startswith(start[:2]) else start + data
        if kind == "mail":
            mail.read_mail(whole).text.encode()
        elif kind == "mbox":
            for message in mail_structure.split_mbox(iter([whole])):
                mail.read_mail(message)
        else:
            Path(path).write_bytes(whole)
            with suppress(PrioryError):  # an error in one line is what is wanted
                read(path)

    seeds = Path(__file__).resolve().parents[1] / "tests" / "corpus" / kind
    atheris.Setup([sys.argv[0], tempfile.mkdtemp(), str(seeds), *options], one)
    try:
        atheris.Fuzz()
    finally:
        if os.path.exists(path):
            os.unlink(path)


if __name__ == "__main__":
    main()
