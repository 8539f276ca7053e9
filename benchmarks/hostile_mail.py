"""Hostile mail: 200 messages and mboxes of 1 MB, each made to cost time or memory, each read in a process of its own.

    python benchmarks/hostile_mail.py [name]      # only the attacks whose name contains this

Each attack comes in five variants. Every file must be read within 1 s of processor time and 200 MB, and the process must
end well. Writes benchmarks/results/hostile_mail.md.
"""

from __future__ import annotations

import base64
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from priory.sources import ReadOptions, open_files

SIZE = 1_000_000
VARIANTS = range(5)
MAX_SECONDS, MAX_MEGABYTES = 1.0, 200.0
HANG_SECONDS = 60  # a process that takes longer is killed
HTML = b"Content-Type: text/html; charset=utf-8\n\n"
MIXED = b"Content-Type: multipart/mixed; boundary=x\n\n"


def fill(start: bytes, unit: bytes, end: bytes, size: int) -> bytes:
    """A message of the given size: the unit is repeated between start and end."""
    room = size - len(start) - len(end)
    return start + unit * (room // len(unit)) + end


def number(template: bytes, size: int) -> bytes:
    """The template with rising numbers, repeated up to the given size."""
    count = size // len(template)
    return b"".join(template % i for i in range(count))[:size]


def nest(depth: int, inner: bytes, edge: bytes = b"b%d") -> bytes:
    """The inner bytes within as many multiparts, every boundary line of which comes before them."""
    edges = [edge % i if b"%" in edge else edge for i in range(depth)]
    return b"".join(b"Content-Type: multipart/mixed; boundary=%s\n\n--%s\n" % (e, e) for e in edges) + inner


def encode(inner: bytes) -> bytes:
    return b"Content-Transfer-Encoding: base64\n" + HTML + base64.encodebytes(inner)


MARKS = ["\u0301\u0327", "\u0316\u0301\u0334", "\uff9e\u0301", "\u0344\u0316", "\u0f73\u0f39\u0301"]
CHARSETS = [b"punycode", b"idna", b"unicode_escape", b"utf-7", b"iso-2022-jp-2004"]
EXPANDING = ["\ufdfa", "\u3300", "\u1f82", "\ufdfb\u0301", "\U0001d15e"]
ENTITIES = [b"&a", b"&#9", b"&lt", b"&CounterClockwiseContourIntegra", b"&#x10ffff;"]
TAGS = [b"<", b"<p ", b"<!--", b"<script>", b"</p\n"]
NAMES = [b"Subject", b"To", b"From", b"Cc", b"Reply-To"]

# Each attack makes a file of a size, in variants 0 to 4.
ATTACKS: dict[str, Callable[[int, int], bytes]] = {
    "alternating combining marks": lambda size, i: fill(
        b"Content-Type: text/plain; charset=utf-8\n\na", MARKS[i].encode(), b"", size
    ),
    "combining marks between invisible characters": lambda size, i: fill(
        b"\na", ("\u200b".join(MARKS[i]) + "\u2060").encode(), b"", size
    ),
    "letters that normalise to many": lambda size, i: fill(b"\n", EXPANDING[i].encode(), b"", size),
    "slow character sets": lambda size, i: fill(
        b"Content-Type: text/plain; charset=%s\n\nxn--" % CHARSETS[i], [b"a-9z", b"\\u0041", b"+AAE-"][i % 3], b"", size
    ),
    "a part in every character set": lambda size, i: MIXED
    + b"".join(
        b"--x\nContent-Type: text/plain; charset=%s%d\n\n" % (CHARSETS[i], n) + b"\xff\x1b$B" * 300
        for n in range(size // 1300)
    ),
    "Content-Type of semicolons": lambda size, i: fill(
        b"Content-Type: text/plain", [b";", b"; ", b';a="', b";a*0=", b"; a=\\"][i], b"\n\nx", size
    ),
    "Content-Type with continued parameters": lambda size, i: b"Content-Type: multipart/mixed"
    + number([b";\n boundary*%d=x", b"; boundary*%d*=%%41", b";boundary*=%d''x", b";a*%d*=''", b"; charset*%d=utf"][i], size)
    + b"\n\n--x\n\nx",
    "nested parts with boundary lines": lambda size, i: fill(
        nest([10, 30, 100, 300, 1000][i], b"\n"), b"".join(b"--b%d\n" % n for n in range(0, 300, 7)), b"", size
    ),
    "nested parts, unclosed": lambda size, i: nest(size // [50, 60, 70, 80, 400][i], b"x", [b"b%d", b"x", b"%d" * 3, b"b" * 20, b"b" * 180][i] if i != 2 else b"b%d"),
    "nested parts in lines like boundaries": lambda size, i: fill(
        nest(30, b"\n", b"e" * [1, 10, 60, 200, 1000][i] + b"%d"), b"--" + b"e" * [1, 10, 60, 200, 1000][i] + b"\n", b"", size
    ),
    "many parts": lambda size, i: fill(
        MIXED, [b"--x\n", b"--x\n\nx\n", b"--x\nA:b\n\n", b"--x\n" + MIXED, b"--x\n\n" + b"y" * 980 + b"\n"][i], b"", size
    ),
    "many small HTML parts": lambda size, i: fill(
        MIXED, b"--x\n" + HTML + TAGS[i] * (850 // len(TAGS[i])) + b"\n", b"--x--", size
    ),
    "messages in messages": lambda size, i: fill(
        [b"", MIXED + b"--x\n", HTML[:-1], b"Subject: s\n", b"A: b\n"][i], b"Content-Type: message/rfc822\n\n", b"x", size
    ),
    "messages in messages in parts": lambda size, i: fill(
        MIXED, b"--x\n" + b"Content-Type: message/rfc822\n\n" * [5, 28, 29, 31, 100][i], b"", size
    ),
    "lines like boundaries": lambda size, i: fill(MIXED, [b"--\n", b"--y\n", b"--x-\n", b"-- x\n", b"--x \t y\n"][i], b"", size),
    "enormous boundary": lambda size, i: (
        b"Content-Type: multipart/mixed; boundary=" + b"b" * (size // 2) + b"\n\n--" + b"b" * (size // 2 - 60)
        if i == 0
        else b'Content-Type: multipart/mixed; boundary="' + fill(b"", [b"\\", b"b ", b"\n b", b"--"][i - 1], b'"\n\n--x\n', size)
    ),
    "boundary of blanks": lambda size, i: fill(MIXED + b"--", [b" ", b"\t", b"- ", b"x ", b"\r"][i], b"x\n", size),
    "many headers": lambda size, i: number([b"X-%d: y\n", b"a%d:\n", b"To: a%d\n", b"Content-Type: a/%d\n", b"%d:\n \n"][i], size),
    "folded header": lambda size, i: fill(NAMES[i] + b": ", [b"\n ", b"\n\t", b"a\n ", b"\r\n ", b"\n  a:"][i], b"\n\nx", size),
    "long header": lambda size, i: fill(NAMES[i] + b": ", [b"a, ", b"(", b"\\", b'"', b"<a@b>, "][i], b"\n\nx", size),
    "encoded words": lambda size, i: fill(
        NAMES[i] + b": ",
        [b"=?utf-8?q?=C3?= ", b"=?", b"=?a?q?", b"=?utf-7?b?K0FB?=", b"=?x?q?a?=\n "][i],
        b"\n\nx",
        size,
    ),
    "encoded words in many headers": lambda size, i: fill(
        b"",
        b"".join(n + b": " + [b"=?a?q?" * 600, b"=?punycode?q?a-b?= " * 200, b"=?" * 1900, b"=?x%d?b?YQ==?=" * 200, b"?= =?" * 800][i] + b"\n" for n in NAMES),
        b"\nx",
        size,
    ),
    "header without an end": lambda size, i: fill([b"a", b"Subject", b"a:\n", b"From ", b">From "][i], [b"a", b" ", b"\t", b"\r", b"\0"][i], b"", size),
    "unclosed tags": lambda size, i: fill(HTML, TAGS[i], b"", size),
    "nested tags": lambda size, i: fill(HTML, [b"<b><i>", b"<div>", b"<a <b ", b"</script ", b"<script </script "][i], b"", size),
    "comments within words": lambda size, i: fill(HTML, [b"a<!---->", b"<!-->", b"<!--->-", b"<!- -", b"--><!--"][i], b"", size),
    "hidden elements": lambda size, i: fill(
        HTML, [b"<style></style>", b"<head></head >", b"<script></script", b"<style>", b"<script></head>"][i], b"", size
    ),
    "entities": lambda size, i: fill(HTML, ENTITIES[i], b"", size),
    "a number of a million digits": lambda size, i: fill(HTML + [b"&#", b"&#x", b"&#0", b"&#X0", b"&#-"][i], [b"9", b"f", b"0", b"0", b"1"][i], b";", size),
    "base64": lambda size, i: fill(
        b"Content-Transfer-Encoding: base64\n\n", [b"=", b"Q=", b"!", b"QUJD\n", b"A\n\n"][i], b"", size
    ),
    "base64 of attacks": lambda size, i: encode(
        [
            fill(b"", TAGS[2], b"", size * 7 // 10),
            fill(b"a", MARKS[0].encode(), b"", size * 7 // 10),
            fill(b"&#", b"9", b"", size * 7 // 10),
            fill(b"", b"\0", b"", size * 7 // 10),
            fill(b"", EXPANDING[0].encode(), b"", size * 7 // 10),
        ][i]
    ),
    "quoted-printable": lambda size, i: fill(
        b"Content-Transfer-Encoding: quoted-printable\n\n", [b"=", b"=\n", b"= ", b"=ZZ", b"=00"][i], b"", size
    ),
    "unknown transfer encoding": lambda size, i: fill(
        b"Content-Transfer-Encoding: " + [b"x-uuencode", b"uue", b"\0", b"a" * 100_000, b"binary;" * 9000][i] + b"\n\n",
        b"begin 644 a\nM" + b"!" * 60 + b"\n",
        b"",
        size,
    ),
    "NUL": lambda size, i: fill([b"", b"\n", HTML, b"Subject: ", b"Content-Type: text/"][i], b"\0", b"\n\nx", size),
    "bytes that are no text": lambda size, i: fill([b"", b"\n", HTML, b"Subject: ", b"Content-Type: "][i], bytes(range(14, 256)), b"", size),
    "invalid UTF-8": lambda size, i: fill(b"\n", [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80"][i], b"", size),
    "line ends": lambda size, i: fill(b"Subject: s\n\n", [b"\n", b"\r", b"\r\n", b"\n\r", b" \n"][i], b"", size),
    "attachments with long names": lambda size, i: fill(
        MIXED,
        b"--x\nContent-Type: image/png; name" + [b"=", b"*=utf-8''", b"*0=", b"*0*=''%41;name*1=", b'="'][i] + b"%41=?a?q?" * 100 + b"\n\n",
        b"",
        size,
    ),
    "an mbox of From lines": lambda size, i: fill(
        b"From a\n", [b"From \n", b"\nFrom \n", b"\n\nFrom \n\n", b"\n\n>From \n", b"\n" + b" " * 40 + b"\nFrom "][i], b"", size
    ),
    "an mbox of small messages": lambda size, i: fill(
        b"From a\n",
        [b"\nx\n\nFrom \n", b"A:\n\nx\n\nFrom \n", b"Subject: s\n\n<p>\n\nFrom a\n", "\né\n\nFrom a\n".encode(), MIXED + b"--x\n\nx\n--x--\n\nFrom \n"][i],
        b"",
        size,
    ),
}  # fmt: skip


class Reading(NamedTuple):
    """What it took to read one file: seconds of processor time, megabytes, rows, and the flags that were raised."""

    seconds: float
    megabytes: float
    rows: int
    flags: tuple[str, ...]


def read_file(path: str) -> Reading:
    """Read every row of one file; the memory is the most that this process ever had."""
    start = time.process_time()
    opened = open_files([path], ReadOptions(format="mail"))
    rows = sum(chunk.batch.num_rows for chunk in opened.read_chunks(("text",)))
    flags = tuple(flag for file in opened.files for flag in getattr(file, "flags", ()))
    return Reading(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, rows, flags)


def read_in_process(path: str) -> Reading | None:
    """Read a file in a new process; None if it fails or takes too long."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(read_file, (path,)).get(HANG_SECONDS)
        except Exception as error:  # the failure of the process is the result
            print(f"{type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
            return None


def run_attacks(part_of_name: str) -> Iterator[str]:
    """The rows of the table, one for each attack."""
    with tempfile.TemporaryDirectory() as folder:
        for name, attack in ATTACKS.items():
            if part_of_name not in name:
                continue
            readings = []
            for variant in VARIANTS:
                path = Path(folder, "hostile.eml")
                path.write_bytes(attack(SIZE, variant))
                readings.append(read_in_process(str(path)))
            yield format_row(name, readings)
            print(format_row(name, readings), file=sys.stderr, flush=True)


def format_row(name: str, readings: list[Reading | None]) -> str:
    done = [reading for reading in readings if reading]
    within = sum(r.seconds <= MAX_SECONDS and r.megabytes <= MAX_MEGABYTES for r in done)
    flags = ", ".join(sorted({flag for r in done for flag in r.flags}))
    seconds, megabytes = max((r.seconds for r in done), default=0), max((r.megabytes for r in done), default=0)
    return f"| {name} | {len(readings)} | {within} | {seconds:.2f} | {megabytes:.0f} | {flags} |"


def main() -> None:
    part_of_name = "".join(sys.argv[1:2])
    rows = list(run_attacks(part_of_name))
    page = Path(__file__).parent / "results" / "hostile_mail.md"
    text = (
        f"""# Hostile mail

`python benchmarks/hostile_mail.py`: {len(ATTACKS) * len(VARIANTS)} messages and mboxes of 1 MB, each made to cost time or
memory. Every file is read to rows in a process of its own: the seconds are processor time of the slowest variant, the
megabytes the most that its process ever held, Python and the library included (an empty message takes about as much as
the smallest number). Within: at most {MAX_SECONDS:g} s and {MAX_MEGABYTES:g} MB, without an error. The flags are counted and
reported by `priory train`.

| attack | files | within | slowest, s | most, MB | flags |
|---|---|---|---|---|---|
"""
        + "\n".join(rows)
        + "\n"
    )
    if not part_of_name:
        page.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
