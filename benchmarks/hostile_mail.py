"""Hostile mail: 200 messages and mboxes of 1 MB, each made to cost time or memory, each read in a process of its own.

    python benchmarks/hostile_mail.py [name]      # only the attacks whose name contains this

Each attack comes in five variants. Every file must be read without an error, within 1 s of processor time and 200 MB.
Writes benchmarks/results/hostile_mail.md.
"""

from __future__ import annotations

import base64
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from clock import best
from priory.sources import ReadOptions, open_files

SIZE = 1_000_000
VARIANTS = range(5)
MAX_SECONDS, MAX_MEGABYTES = 1.0, 200.0
HANG_SECONDS = 60  # a process that takes longer is killed
HTML = b"Content-Type: text/html; charset=utf-8\n\n"
MIXED = b"Content-Type: multipart/mixed; boundary=x\n\n"
MESSAGE = b"Content-Type: message/rfc822\n\n"
Attack = Callable[[int, int], bytes]  # makes a file of a size, in variants 0 to 4


def repeat(starts: bytes | list[bytes], units: bytes | list[bytes], end: bytes = b"") -> Attack:
    """A file that begins with the start, goes on with the unit as often as there is room, and ends with the end."""

    def make(size: int, variant: int) -> bytes:
        start = starts if isinstance(starts, bytes) else starts[variant]
        unit = units if isinstance(units, bytes) else units[variant]
        return start + unit * ((size - len(start) - len(end)) // len(unit)) + end

    return make


def count(start: bytes, templates: list[bytes], end: bytes = b"") -> Attack:
    """A file of pieces with rising numbers in them."""

    def make(size: int, variant: int) -> bytes:
        pieces, room = [], size - len(start) - len(end)
        while room > 0:
            pieces.append(templates[variant].replace(b"NUMBER", b"%d" % len(pieces)))
            room -= len(pieces[-1])
        return start + b"".join(pieces) + end

    return make


def encode(units: list[bytes]) -> Attack:
    """HTML of repeated units in base64."""

    def make(size: int, variant: int) -> bytes:
        inner = units[variant] * (size * 7 // 10 // len(units[variant]))
        return b"Content-Transfer-Encoding: base64\n" + HTML + base64.encodebytes(inner)

    return make


def nest(depth: int, edge: bytes = b"bNUMBER") -> bytes:
    """The beginning of a message of multiparts in multiparts."""
    edges = [edge.replace(b"NUMBER", b"%d" % i) for i in range(depth)]
    return b"".join(b"Content-Type: multipart/mixed; boundary=%s\n\n--%s\n" % (e, e) for e in edges)


MARKS = ["\u0301\u0327", "\u0316\u0301\u0334", "\uff9e\u0301", "\u0344\u0316", "\u0f73\u0f39\u0301"]
LONG_NORMAL_FORMS = ["\ufdfa", "\u3300", "\u1f82", "\ufdfb\u0301", "\U0001d15e"]
CHARSETS = [b"punycode", b"idna", b"unicode_escape", b"utf-7", b"iso-2022-jp-2004"]
TAGS = [b"<", b"<p ", b"<!--", b"<script>", b"</p\n"]
HEADERS = [b"Subject: ", b"To: ", b"From: ", b"Cc: ", b"Reply-To: "]
WORDS = [b"=?a?q?", b"=?punycode?q?a-b?= ", b"=?", b"=?x1?b?YQ==?=", b"?= =?"]
EDGES = [b"e" * length for length in (1, 10, 60, 200, 1000)]

ATTACKS: dict[str, Attack] = {
    "alternating combining marks": repeat(b"\na", [marks.encode() for marks in MARKS]),
    "combining marks between invisible characters": repeat(
        b"\na", ["\u200b".join(m + "\u2060").encode() for m in MARKS]
    ),
    "letters that normalise to many": repeat(b"\n", [letter.encode() for letter in LONG_NORMAL_FORMS]),
    "slow character sets": repeat(
        [b"Content-Type: text/plain; charset=%s\n\nxn--" % charset for charset in CHARSETS],
        [b"a-9z", b"a-9z", b"\\u0041", b"+AAE-", b"\x1b$B0!"],
    ),
    "a part in every character set": count(
        MIXED,
        [
            b"--x\nContent-Type: text/plain; charset=%sNUMBER\n\n" % charset + b"\xff\x1b$B" * 300
            for charset in CHARSETS
        ],
    ),
    "Content-Type of semicolons": repeat(
        b"Content-Type: text/plain", [b";", b"; ", b';a="', b";a*0=", b"; a=\\"], b"\n\nx"
    ),
    "Content-Type with continued parameters": count(
        b"Content-Type: multipart/mixed",
        [
            b";\n boundary*NUMBER=x",
            b";boundary*NUMBER*=%41",
            b";boundary*=NUMBER''x",
            b";a*NUMBER*=''",
            b";a*0*NUMBER=a",
        ],
        b"\n\n--x\n\nx",
    ),
    "nested parts with boundary lines": repeat(
        [nest(depth) + b"\n" for depth in (10, 30, 100, 300, 1000)], b"".join(b"--b%d\n" % i for i in range(0, 300, 7))
    ),
    "nested parts without an end": repeat(
        b"", [nest(100, edge) for edge in (b"bNUMBER", b"x", b"b" * 20, b"b" * 180, b"")]
    ),
    "nested parts and lines like boundaries": repeat(
        [nest(30, edge + b"NUMBER") for edge in EDGES], [b"--" + edge + b"\n" for edge in EDGES]
    ),
    "many parts": repeat(
        MIXED, [b"--x\n", b"--x\n\nx\n", b"--x\nA:b\n\n", b"--x\n" + MIXED, b"--x\n\n" + b"y" * 980 + b"\n"]
    ),
    "many small HTML parts": repeat(MIXED, [b"--x\n" + HTML + tag * (850 // len(tag)) + b"\n" for tag in TAGS]),
    "messages in messages": repeat([b"", MIXED + b"--x\n", HTML[:-1], b"Subject: s\n", b"A: b\n"], MESSAGE, b"x"),
    "messages in messages in parts": repeat(MIXED, [b"--x\n" + MESSAGE * depth for depth in (5, 28, 29, 31, 100)]),
    "lines like boundaries": repeat(MIXED, [b"--\n", b"--y\n", b"--x-\n", b"-- x\n", b"--x \t y\n"]),
    "enormous boundary": repeat(
        b'Content-Type: multipart/mixed; boundary="', [b"b", b"\\", b"b ", b"\n b", b"--"], b'"\n\n--b\n\nx'
    ),
    "boundary line of blanks": repeat(MIXED + b"--", [b" ", b"\t", b"- ", b"x ", b"\r"], b"x\n"),
    "many headers": count(
        b"", [b"X-NUMBER: y\n", b"aNUMBER:\n", b"To: aNUMBER\n", b"Content-Type: a/NUMBER\n", b"NUMBER:\n \n"]
    ),
    "folded header": repeat(HEADERS, [b"\n ", b"\n\t", b"a\n ", b"\r\n ", b"\n  a:"], b"\n\nx"),
    "long header": repeat(HEADERS, [b"a, ", b"(", b"\\", b'"', b"<a@b>, "], b"\n\nx"),
    "encoded words": repeat(
        HEADERS, [b"=?utf-8?q?=C3?= ", b"=?", b"=?a?q?", b"=?utf-7?b?K0FB?=", b"=?x?q?a?=\n "], b"\n\n"
    ),
    "encoded words in many headers": repeat(
        b"", [b"".join(header + word * (3900 // len(word)) + b"\n" for header in HEADERS) for word in WORDS], b"\nx"
    ),
    "header without an end": repeat(
        [b"a", b"Subject", b"a:\n", b">From ", b"a: "], [b"a", b" ", b"\t", b"\r", b"\xff"]
    ),
    "unclosed tags": repeat(HTML, TAGS),
    "nested tags": repeat(HTML, [b"<b><i>", b"<div>", b"<a <b ", b"</script ", b"<script </script "]),
    "comments within words": repeat(HTML, [b"a<!---->", b"<!-->", b"<!--->-", b"<!- -", b"--><!--"]),
    "hidden elements": repeat(
        HTML, [b"<style></style>", b"<head></head >", b"<script></script", b"<style>", b"<script></head>"]
    ),
    "entities": repeat(HTML, [b"&a", b"&#9", b"&lt", b"&CounterClockwiseContourIntegra", b"&#x10ffff;"]),
    "numbers of a million digits": repeat(
        [HTML + b"&#", HTML + b"&#x", HTML + b"&#0", HTML + b"&#X0", HTML + b"&#-"],
        [b"9", b"f", b"0", b"0", b"1"],
        b";",
    ),
    "base64": repeat(b"Content-Transfer-Encoding: base64\n\n", [b"=", b"Q=", b"!", b"QUJD\n", b"A\n\n"]),
    "base64 of attacks": encode([b"<!--", MARKS[0].encode(), b"&#", b"\0", LONG_NORMAL_FORMS[0].encode()]),
    "quoted-printable": repeat(
        b"Content-Transfer-Encoding: quoted-printable\n\n", [b"=", b"=\n", b"= ", b"=ZZ", b"=00"]
    ),
    "unknown transfer encoding": repeat(
        [
            b"Content-Transfer-Encoding: %s\n\n" % name
            for name in (b"x-uuencode", b"uue", b"\0", b"a" * 10_000, b";" * 9000)
        ],
        b"begin 644 a\nM" + b"!" * 60 + b"\n",
    ),
    "NUL": repeat([b"", b"\n", HTML, b"Subject: ", b"Content-Type: text/"], b"\0", b"\n\nx"),
    "bytes that are not text": repeat([b"", b"\n", HTML, b"Subject: ", b"Content-Type: "], bytes(range(14, 256))),
    "invalid UTF-8": repeat(b"\n", [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc3\xa9\xc3\xa9\xe9"]),
    "line ends": repeat(b"Subject: s\n\n", [b"\n", b"\r", b"\r\n", b"\n\r", b" \n"]),
    "attachments with long names": repeat(
        MIXED,
        [
            b"--x\nContent-Type: image/png; name" + name + b"%41=?a?q?" * 100 + b"\n\n"
            for name in (b"=", b"*=utf-8''", b"*0=", b"*0*=''%41;name*1=", b'="')
        ],
    ),
    "an mbox of From lines": repeat(
        b"From a\n", [b"From \n", b"\nFrom \n", b"\n\nFrom \n\n", b"\n\n>From \n", b"\n" + b" " * 40 + b"\nFrom "]
    ),
    "an mbox of small messages": repeat(
        b"From a\n",
        [
            b"\nx\n\nFrom \n",
            b"A:b\n\nx\n\nFrom \n",
            b"Subject: s\n\n<p>\n\nFrom a\n",
            "\né\n\nFrom a\n".encode(),
            MIXED + b"--x\n\nx\n--x--\n\nFrom \n",
        ],
    ),
}


PAGE = f"""# Hostile mail

`python benchmarks/hostile_mail.py`: {len(ATTACKS) * len(VARIANTS)} messages and mboxes of 1 MB, each made to cost time
or memory. Every file is read to rows in a process of its own. The seconds are processor time, the quickest of three
runs; the megabytes are the most that the process ever held, with about 100 for Python, Arrow and the library itself.
Both are those of the worst variant. Within: read without an error in {MAX_SECONDS:g} s and {MAX_MEGABYTES:g} MB.
`priory train` counts and explains the flags.

| attack | files | within | slowest, s | most, MB | flags |
|---|---|---|---|---|---|
"""


class Reading(NamedTuple):
    """What it took to read one file: seconds of processor time, megabytes, rows, and the flags that were raised."""

    seconds: float
    megabytes: float
    rows: int
    flags: tuple[str, ...]


def read_file(path: str) -> Reading:
    """Read every row of one file; the time is the quickest of three, the memory the most that this process ever had."""
    opened = open_files([path], ReadOptions(format="mail"))
    rows = 0

    def read_rows() -> None:
        nonlocal rows
        rows = sum(chunk.batch.num_rows for chunk in opened.read_chunks(("text",)))

    seconds = best(read_rows, 3, time.process_time)
    flags = tuple(flag for file in opened.files for flag in getattr(file, "flags", ()))
    return Reading(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, rows, flags)


def read_in_process(path: str) -> Reading | None:
    """Read a file in a new process; None if it fails or takes too long."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(read_file, (path,)).get(HANG_SECONDS)
        except Exception as error:  # the failure of the process is the result
            print(f"{type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
            return None


def run_attack(attack: Attack, folder: str) -> list[Reading | None]:
    """What it took to read each variant."""
    path, readings = Path(folder, "hostile.eml"), []
    for variant in VARIANTS:
        path.write_bytes(attack(SIZE, variant))
        readings.append(read_in_process(str(path)))
    return readings


def format_row(name: str, readings: list[Reading | None]) -> str:
    """A row of the table; a file that could not be read has taken forever."""
    done = [reading or Reading(float("inf"), float("inf"), 0, ("failed",)) for reading in readings]
    within = sum(reading.seconds <= MAX_SECONDS and reading.megabytes <= MAX_MEGABYTES for reading in done)
    seconds, megabytes = max(reading.seconds for reading in done), max(reading.megabytes for reading in done)
    flags = ", ".join(sorted({flag for reading in done for flag in reading.flags}))
    return f"| {name} | {len(done)} | {within} | {seconds:.2f} | {megabytes:.0f} | {flags} |"


def main() -> None:
    part_of_name, rows = "".join(sys.argv[1:2]), []
    with tempfile.TemporaryDirectory() as folder:
        for name, attack in ATTACKS.items():
            if part_of_name in name:
                rows.append(format_row(name, run_attack(attack, folder)))
                print(rows[-1], flush=True)
    if not part_of_name:
        table = "\n".join(rows)
        (Path(__file__).parent / "results" / "hostile_mail.md").write_text(f"{PAGE}{table}\n")


if __name__ == "__main__":
    main()
