"""Hostile files and the memory that it takes to refuse them: bombs, endless cells, manifests of nothing but nodes.

    python benchmarks/hostile_files.py [--name NAME] [--write]

Each file is made in a temporary folder and read in a process of its own, by the library function that a command would
use. The figure is the growth of the process's memory above what its imports took. `--write` writes
benchmarks/results/hostile_files.md. Linux only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa

from hostile_edits import pack_manifest

RESULTS = Path(__file__).parent / "results" / "hostile_files.md"
CELL, BOMB, MANIFEST = 300 << 20, 1 << 30, 14_000_000  # bytes
BLOCK = 1 << 20


def write_gzip(path: Path, blocks: Iterator[bytes]) -> None:
    pack = cache(gzip.compress)  # each block is a member of its own
    with open(path, "wb") as file:
        file.writelines(map(pack, blocks))


def write_zstd(path: Path, blocks: Iterator[bytes]) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        for block in blocks:
            file.write(block)


def write_plain(path: Path, blocks: Iterator[bytes]) -> None:
    with open(path, "wb") as file:
        file.writelines(blocks)


def make_blocks(begin: bytes, block: bytes, size: int, end: bytes = b"") -> Iterator[bytes]:
    """A beginning, a block again and again, and an end."""
    yield begin
    for _ in range(size // len(block)):
        yield block
    yield end


ROWS = b"3,some text\n" * (BLOCK // 12)
WORDS = b"some text " * (BLOCK // 10)
LINES = b"some, text\n" * (BLOCK // 11)
LETTERS = b"x" * BLOCK


def make_manifest(path: Path, tree: str) -> None:
    path.write_bytes(pack_manifest(f'{{"priory":"1","model":{tree}}}'.encode()))


FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "1 GB of rows, gzip": ("a.csv.gz", lambda p: write_gzip(p, make_blocks(b"label,text\n", ROWS, BOMB))),
    "1 GB of rows, zstd": ("a.csv.zst", lambda p: write_zstd(p, make_blocks(b"label,text\n", ROWS, BOMB))),
    "1 GB without a line end, gzip": ("a.csv.gz", lambda p: write_gzip(p, make_blocks(b"", LETTERS, BOMB))),
    "1 GB in one cell, gzip": ("a.csv.gz", lambda p: write_gzip(p, make_blocks(b"label,text\n3,", LETTERS, BOMB))),
    "1 GB of JSON lines, gzip": (
        "a.jsonl.gz",
        lambda p: write_gzip(p, make_blocks(b"", b'{"label":3,"text":"%s"}\n' % WORDS[:9999] * 100, BOMB)),
    ),
    "1 GB in one JSON string, gzip": ("a.jsonl.gz", lambda p: write_gzip(p, make_blocks(b'{"text":"', LETTERS, BOMB))),
    "1 GB in one text, gzip": ("a.txt.gz", lambda p: write_gzip(p, make_blocks(b"", WORDS, BOMB))),
    "1 GB in one mail, gzip": ("a.eml.gz", lambda p: write_gzip(p, make_blocks(b"Subject: s\n\n", WORDS, BOMB))),
    "a cell of 300 MB": ("a.csv", lambda p: write_plain(p, make_blocks(b"label,text\n3,", LETTERS, CELL, b"\n"))),
    "a quoted cell of 300 MB": (
        "a.csv",
        lambda p: write_plain(p, make_blocks(b'label,text\n3,"', WORDS, CELL, b'"\n')),
    ),
    "a quoted cell of 300 MB with lines": (
        "a.csv",
        lambda p: write_plain(p, make_blocks(b'label,text\n3,"', LINES, CELL, b'"\n')),
    ),
    "a row of 300 MB of cells": ("a.csv", lambda p: write_plain(p, make_blocks(b"a,b\n", b"xy," * (BLOCK // 3), CELL))),
    "a header of 300 MB": ("a.csv", lambda p: write_plain(p, make_blocks(b"", b"xy," * (BLOCK // 3), CELL))),
    "a JSON string of 300 MB": ("a.jsonl", lambda p: write_plain(p, make_blocks(b'{"text":"', LETTERS, CELL, b'"}\n'))),
    "a JSON line of 300 MB of numbers": (
        "a.jsonl",
        lambda p: write_plain(p, make_blocks(b'{"text":[', b"1," * (BLOCK // 2), CELL, b"1]}\n")),
    ),
    "a text of 300 MB": ("a.txt", lambda p: write_plain(p, make_blocks(b"", WORDS, CELL))),
    "a manifest of 14 MB of numbers": ("a.priory", lambda p: make_manifest(p, f"[{'1,' * (MANIFEST // 2)}1]")),
    "a manifest of 14 MB of objects": ("a.priory", lambda p: make_manifest(p, f"[{'{},' * (MANIFEST // 3)}1]")),
    "a manifest of 14 MB of names": (
        "a.priory",
        lambda p: make_manifest(p, "{" + ",".join(f'"{i:x}":1' for i in range(MANIFEST // 10)) + "}"),
    ),
}


def read_peak() -> int:
    """The largest memory of this process so far, in bytes."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def read_file(path: str) -> None:
    """Read one file to the end or to an error, and print what it took and said."""
    import pyarrow.csv  # noqa: F401 - what is imported is not counted

    from priory.errors import PrioryError
    from priory.sources import ReadOptions, open_files
    from priory.storage import load

    Path("/proc/self/clear_refs").write_text("5")
    before, began, said = read_peak(), time.perf_counter(), "read"
    try:
        if path.endswith(".priory"):
            load(path)
        else:
            files = open_files([path], ReadOptions(text_column="text" if ".txt" in path else None))
            for _ in files.read_chunks(files.files[0].names):
                pass
    except PrioryError as error:
        said = str(error).replace(path, Path(path).name)
    print(json.dumps([read_peak() - before, time.perf_counter() - began, said]))


def measure_file(name: str) -> tuple[float, float, str]:
    """Megabytes, seconds and the message for one of the files."""
    with tempfile.TemporaryDirectory() as folder:
        file_name, make = FILES[name]
        path = Path(folder) / file_name
        make(path)
        command = [sys.executable, __file__, "--read", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return float("inf"), float("inf"), done.stderr.strip().splitlines()[-1]
    size, seconds, said = json.loads(done.stdout)
    return size / 1e6, seconds, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", choices=FILES)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read_file(given.read)
        return
    lines = [
        "# Hostile files",
        "",
        "`python benchmarks/hostile_files.py --write`: the memory and the time that it takes to refuse a file, besides",
        "what the imports of the process take.",
        "",
        "| file | memory | time | what is said |",
        "|---|--:|--:|---|",
    ]
    for name in [given.name] if given.name else FILES:
        size, seconds, said = measure_file(name)
        lines.append(f"| {name} | {size:.0f} MB | {seconds:.1f} s | {said} |")
        print(lines[-1], flush=True)
    if given.write:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
