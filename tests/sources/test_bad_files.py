"""Files that are wrong are refused with the place and what to do; repairs are asked for by name."""

import base64
import gzip
import io
import json
import re
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import hostile_files
from file_rows import CSV, TABLE, read, zstd
from priory.errors import DataError, ModelTooLargeError
from priory.sources import ReadOptions, open_files
from priory.sources import arrow_files as columnar
from priory.sources import byte_streams as streams_module
from priory.sources import json_lines as jsonlines

BAD = {  # file name: (content, how it is read, the message after the name)
    "empty.csv": (b"", {}, ": is empty; give a file with rows"),
    "newlines.csv": (b"\n\n", {}, ": is empty; give a file with a header and rows"),
    "header.csv": (b"a,b\n", {}, ": has a header but no rows; give a file with rows"),
    "utf16.csv": ("a,b\n1,2\n".encode("utf-16"), {}, ": looks like UTF-16; use --encoding utf-16"),
    "bytes.csv": (
        b"a,b\n1,2\n3,\xff\n",
        {},
        ":3:2: byte 10 of the file is not UTF-8; use --encoding latin-1 (or the right one), or --errors replace",
    ),
    "nul.csv": (b"a,b\n1,2\n3,x\0y\n", {}, ":3:2: contains a NUL byte; remove it"),
    "open.csv": (
        b'a,b\n1,2\n3,"x\n4,5\n',
        {},
        ":3:2: opens a quote that is never closed; close it, double it, or use --no-quotes if quotes have no meaning",
    ),
    "swallowed.csv": (
        b'a,b\n1,2\n3,"x\n4,5\n6,"y"\n7,8\n',
        {},
        ":3:2: opens a quote that is only closed in line 5; close it, double it, or use --no-quotes "
        "if quotes have no meaning",
    ),
    "long.csv": (
        b'a,b\n1,"two\nlines"\n1,2,3\n',
        {},
        ":4:3: has 3 fields, the header has 2; correct it, or use --ragged pad or --ragged skip",
    ),
    "first_row_longer.csv": (
        b"a,b\n1,2,3\n1,2,3\n",
        {},
        ":2:3: has 3 fields, the header has 2; correct it, or use --ragged pad or --ragged skip",
    ),
    "short.csv": (
        b"a,b\n1,2\n1\n",
        {},
        ":3:1: has 1 field, the header has 2; correct it, or use --ragged pad or --ragged skip",
    ),
    "twice.csv": (
        b"a,b,a\n1,2,3\n",
        {},
        ":1:3: column 'a' is also column 1; rename one of them, or use --no-header if this row is data",
    ),
    "early.csv.gz": (gzip.compress(CSV.encode() * 9)[:-9], {}, r": ends early at byte \d+; copy it again"),
    "garbage.csv.gz": (
        gzip.compress(CSV.encode()) + b"tail",
        {},
        r": has other data after the compressed data, before byte \d+; remove it",
    ),
    "broken.csv.gz": (
        b"\x1f\x8b\x08\x00" + b"\x00" * 6 + b"\xff" * 20,
        {},
        r": is damaged before byte \d+ \(.*\); compress it again",
    ),
    "early.csv.zst": (zstd(CSV.encode() * 9)[:-9], {}, r": ends early at byte \d+; copy it again"),
    "twice.csv.gz": (gzip.compress(gzip.compress(CSV.encode())), {}, ": is compressed twice; decompress it once"),
    "zip.csv": (b"PK\x03\x04....", {}, ": is a zip file; unpack it first"),
    "pickle.csv": (b"\x80\x04\x95....", {}, ": is a pickle; priory never loads pickles"),
    "bad.jsonl": (
        b'{"a":1}\n{"a":}\n',
        {},
        r":2:6: is not JSON \(Expecting value\); correct the line, or use --skip-bad",
    ),
    "nan.jsonl": (b'{"a":NaN}', {}, ":1: contains NaN, which is not JSON; use null for missing values"),
    "big.jsonl": (b'{"a":1e999}', {}, ":1: contains 1e999, which is too large for a float; give a smaller number"),
    "integer.jsonl": (b'{"a":%d}' % 2**70, {}, f":1: /a is an integer beyond {2**63 - 1}; give it as text"),
    "keys.jsonl": (b'{"a":1,"a":2}', {}, ":1: has 'a' twice; give every key once"),
    "deep.jsonl": (b'{"a":' + b"[" * 100_000, {}, ":1: is nested too deeply; give flat objects"),
    "list.jsonl": (b"[1,2]", {"format": "jsonl"}, ":1: is a list, not an object; give one object per line"),
    "inside.jsonl": (b'{"a":{"b":1}}', {}, ":1: /a is an object; give text or a number"),
    "surrogate.jsonl": (
        b'{"a":"\\ud800"}',
        {},
        ":1: /a contains half a surrogate pair; remove or replace it",
    ),
    "nul.jsonl": (b'{"a":"x\\u0000"}', {}, ":1: /a contains a NUL character; remove it"),
    "mixed.jsonl": (
        b'{"a":1}\n\n{"a":"x"}\n',
        {},
        ":3: /a is text, but other rows have another type; use one type",
    ),
    "nothing.jsonl": (b"{}\n{}", {}, ": has no columns; give a table with columns"),
    "cut.parquet": (b"PAR1" + b"\0" * 50, {}, r": cannot be read \(.*\); write it again"),
    "cut.arrow": (b"ARROW1" + b"\0" * 50, {}, r": cannot be read \(.*\); write it again"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_place(tmp_path, name):
    content, how, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path / name, **how)
    pattern = message if "\\" in message else re.escape(message)
    assert re.fullmatch(re.escape(str(tmp_path / name)) + pattern, str(caught.value)), str(caught.value)


def test_a_quote_left_open_in_a_column_nobody_wants_is_found(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'a,b\n1,2\n3,"x')
    with pytest.raises(DataError, match=r"a.csv:3:2: opens a quote that is never closed"):
        read(tmp_path / "a.csv", "a")


def test_repairs_are_asked_for_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n1\n1,2,3\n4,5\n")
    assert [tuple(row.values()) for row in read(path, ragged="skip")] == [("1", "2"), ("4", "5")]
    padded = [tuple(row.values()) for row in read(path, ragged="pad")]
    assert padded == [("1", "2"), ("1", ""), ("1", "2"), ("4", "5")]
    path.write_bytes(b"a,b\n1,\xff\n")
    assert read(path, errors="replace") == [{"a": "1", "b": "�"}]
    path.write_bytes(b'a,b\n1,"x\n2,y"\n')
    assert [row["b"] for row in read(path, quotes=False)] == ['"x', 'y"']
    lines = tmp_path / "a.jsonl"
    lines.write_bytes(b'{"a":1}\n{"a":\n{"a":2}\n')
    assert [row["a"] for row in read(lines, max_bad_lines=1)] == [1, 2]


@pytest.mark.parametrize("packed", ["gz", "zst"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, packed, monkeypatch):
    monkeypatch.setattr(streams_module, "MIN_UNPACK_LIMIT", 1 << 20)
    data = b"a,b\n" + b"1,2\n" * (1 << 22)
    (tmp_path / "a").write_bytes(gzip.compress(data) if packed == "gz" else zstd(data))
    with pytest.raises(ModelTooLargeError, match="decompresses to more than 200 times its size"):
        read(tmp_path / "a", format="csv")


@pytest.mark.parametrize("members", [1, 64])
def test_a_bomb_is_judged_by_the_bytes_that_were_decompressed(tmp_path, monkeypatch, members):
    """All bytes that were read counted: a bomb of 2 MB might unpack to 400 MB before it was refused."""
    monkeypatch.setattr(streams_module, "MIN_UNPACK_LIMIT", 4 << 20)
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes((1 << 26) // members)) * members)
    unpacked = []
    with pytest.raises(ModelTooLargeError, match="decompresses to more than 200 times its size"):
        unpacked.extend(map(len, streams_module.read_unpacked_blocks(str(tmp_path / "a.gz"))))
    assert 0 < sum(unpacked) <= 4 << 20


LONG_LINES = {  # the content, the limits that are lowered, the message after the name
    "cell.csv": (
        b"a,b\n1,2\n3," + b"x" * (5 << 20),
        {"csv_files.MAX_LINE_BYTES": 3 << 20},
        ":3: has more than 3 MB in one line; split it",
    ),
    "quoted.csv": (
        b'a,b\n1,"' + b"x y " * (5 << 18) + b'"\n',
        {"csv_files.MAX_LINE_BYTES": 3 << 20},
        ":2: has more than 3 MB in one line; split it",
    ),
    "cells.csv": (
        b"a,b\r\n" + b"1," * (5 << 19),
        {"csv_files.MAX_LINE_BYTES": 3 << 20},
        ":2: has more than 3 MB in one line; split it",
    ),
    "string.jsonl": (
        b'{"a":1}\n{"a":"' + b"x" * (5 << 20) + b'"}\n',
        {"json_lines.MAX_LINE_BYTES": 3 << 20},
        ":2: has more than 3 MB in one line; split it",
    ),
    "values.jsonl": (
        b'{"a":"text"}\n{"a":[' + b"1," * (1 << 20) + b"1]}\n",
        {"json_lines.MAX_SYNTAX_BYTES": 1 << 20},
        ":2: has millions of values; give flat objects with fewer keys",
    ),
    "header.csv": (
        b"a," * (9 << 19),
        {},
        ":1: the first line has more than 8 MB; begin the file with a header",
    ),
    "name.csv": (
        b"a," + b"x" * 200_000 + b"\n1,2\n",
        {},
        ":1:2: the column name has 200,000 characters; begin the file with a header of short names",
    ),
}


@pytest.mark.parametrize("name", LONG_LINES)
def test_a_long_line_is_refused_before_it_is_in_memory(tmp_path, monkeypatch, name):
    content, limits, message = LONG_LINES[name]
    for limit, size in limits.items():
        monkeypatch.setattr(f"priory.sources.{limit}", size)
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ModelTooLargeError, DataError)) as caught:
        read(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}{message}"


def test_a_line_of_one_long_text_is_not_taken_for_millions_of_values(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonlines, "MAX_SYNTAX_BYTES", 1 << 10)
    text = '[1,2,"\\"] {' * 10_000
    (tmp_path / "a.jsonl").write_text(json.dumps({"a": text}) + "\n")
    assert read(tmp_path / "a.jsonl") == [{"a": text}]


def test_a_line_that_ends_where_a_block_ends_is_read(tmp_path, monkeypatch):
    for size in (1, 2, 7, 8, 9, 100):
        monkeypatch.setattr(streams_module, "READ_BLOCK_BYTES", size)
        (tmp_path / "a.jsonl").write_bytes(b'{"a":1}\n\n{"a":2}\n{"a":3}')
        assert [row["a"] for row in read(tmp_path / "a.jsonl")] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by /proc")
@pytest.mark.parametrize("name", ["1 GB in one cell, gzip", "a cell of 300 MB", "a quoted cell of 300 MB with lines"])
def test_what_took_hundreds_of_megabytes_to_refuse_takes_a_fraction(name):
    """681 MB and 909 MB; benchmarks/hostile_files.py has more such files."""
    size, _, said = hostile_files.measure_file(name)
    assert "larger than 25 MB" in said or "more than 50 MB" in said
    assert size < 250


def test_a_cell_longer_than_a_block_is_read_and_one_beyond_the_limit_is_not(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 10 + f'3,"{"x" * (9 << 20)}"\n' + "4,5\n" * 10)
    assert [len(row["b"]) for row in read(path)] == [1] * 10 + [9 << 20] + [1] * 10
    path.write_text("a,b\n" + f"3,{'x' * (26 << 20)}\n")
    with pytest.raises(ModelTooLargeError, match=r"a.csv:2: a cell is larger than 25 MB; split it, or close its quote"):
        read(path)


def test_parquet_of_other_types_is_refused_by_column(tmp_path):
    path = str(tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"a": [1], "when": pa.array([0], pa.duration("s")), "deep": [[1]]}), path)
    for column in ("when", "deep"):
        with pytest.raises(
            DataError, match=f"column '{column}' has type .*; convert it to text or numbers, or use --ignore {column}"
        ):
            read(path, column)
    assert read(path, "a") == [{"a": 1}]


def test_limits_of_parquet_are_checked_before_it_is_read(tmp_path, monkeypatch):
    path = str(tmp_path / "a.parquet")
    pa.parquet.write_table(TABLE, path)
    monkeypatch.setattr(columnar, "MAX_FILE_COLUMNS", 2)
    with pytest.raises(ModelTooLargeError, match="has 3 columns; the limit is 2"):
        read(path)
    monkeypatch.setattr(columnar, "MAX_FILE_COLUMNS", 3)
    monkeypatch.setattr(columnar, "MAX_ROW_GROUP_BYTES", 10)
    with pytest.raises(ModelTooLargeError, match=r"row group 0 decompresses to .* bytes; write smaller groups"):
        read(path)


def test_an_encrypted_parquet_is_said_to_be_one(tmp_path):
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key, _):
            return base64.b64encode(key)

    for hidden in ("footer", "column"):
        path = str(tmp_path / f"{hidden}.parquet")
        how = encryption.EncryptionConfiguration("a", column_keys={"b": ["text"]}, plaintext_footer=hidden == "column")
        factory = encryption.CryptoFactory(lambda _: Keys())
        keys = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
        with pa.parquet.ParquetWriter(path, TABLE.schema, encryption_properties=keys) as writer:
            writer.write_table(TABLE)
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value) == f"{path}: is encrypted; decrypt it first"


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.jsonl"])
def test_a_cell_beyond_the_limit_is_refused_in_every_format(tmp_path, name, monkeypatch):
    for module in (columnar, jsonlines):
        monkeypatch.setattr(module, "MAX_CELL_BYTES", 3 << 20)
    path, table = str(tmp_path / name), pa.table({"label": ["a", "b"], "text": ["short", "x" * (3 << 20) + "x"]})
    if name == "a.parquet":
        pa.parquet.write_table(table, path)
    elif name == "a.arrow":
        pa.feather.write_feather(table, path)
    else:
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    with pytest.raises(ModelTooLargeError) as caught:
        read(path)
    place = f"{path}:2: /text" if name == "a.jsonl" else f"{path}: row 2, column 'text':"
    assert str(caught.value) == f"{place} is larger than 3 MB; split it"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_text_that_is_written_once_and_stands_in_many_rows_takes_no_more_memory(tmp_path, name):
    words = pa.array(["x" * (1 << 20), "short"])
    path, table = str(tmp_path / name), pa.table({"text": pa.DictionaryArray.from_arrays([0, 1] * 400, words)})
    pa.parquet.write_table(table, path) if name == "a.parquet" else pa.feather.write_feather(table, path)
    sizes = [chunk.batch.nbytes for chunk in open_files([path], ReadOptions()).read_chunks(("text",))]
    assert sum(sizes) > 400 << 20
    assert max(sizes) <= 130 << 20


# -- standard input ---------------------------------------------------------------------------------------------------


def piped(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("name", [name for name in BAD if name.endswith(("csv", "gz", "zst"))])
def test_what_is_wrong_with_standard_input_is_said_with_its_place(name, monkeypatch):
    content, how, message = BAD[name]
    piped(monkeypatch, content)
    with pytest.raises(DataError) as caught:
        read("-", **how)
    assert re.fullmatch("-" + (message if "\\" in message else re.escape(message)), str(caught.value))


@pytest.mark.slow
def test_a_fault_far_down_standard_input_is_found_and_so_is_a_cell(monkeypatch):
    rows = 'a,"two\nlines"\n' * 200_000
    piped(monkeypatch, f"x,y\n{rows}a,b,c\n".encode())
    with pytest.raises(DataError, match=r"^-:400002:3: has 3 fields, the header has 2"):
        read("-")
    piped(monkeypatch, f"x,y\n{rows}a,b\n".encode())
    *_, last = open_files(["-"], ReadOptions()).read_chunks(("x", "y"))
    assert str(last.make_cell_error(last.batch.num_rows - 1, "y", "is odd", "mend it")) == "-:400002:2: is odd; mend it"


def test_repairs_and_long_cells_work_on_standard_input(monkeypatch):
    piped(monkeypatch, b"a,b\n1,2\n1\n4,5\n")
    assert [row["a"] for row in read("-", ragged="skip")] == ["1", "4"]
    piped(monkeypatch, b"a,b\n1,2\n3," + b"x" * (3 << 20) + b"\n4,5\n")
    assert [len(row["b"]) for row in read("-")] == [1, 3 << 20, 1]


@pytest.mark.parametrize("copy", ["too long", "no room"])
def test_standard_input_of_any_length_is_read_once(monkeypatch, copy):
    if copy == "too long":
        monkeypatch.setattr("priory.sources.byte_streams.MAX_KEPT_BYTES", 10)
    else:
        monkeypatch.setattr("priory.sources.byte_streams.TemporaryFile", partial(open, "/dev/full", "wb", buffering=0))
    piped(monkeypatch, b"a,b\n" + b"1,2\n" * 1000)
    assert len(read("-")) == 1000
    piped(monkeypatch, b"a,b\n" + b"1,2\n" * 1000 + b"1,2,3\n")
    with pytest.raises(DataError, match=r"^-: .* after row \d+; save it to a file to see where$"):
        read("-")


def test_standard_input_is_named_once():
    with pytest.raises(DataError, match=r"^-: standard input is given twice; give it once$"):
        open_files(["-", "-"], ReadOptions())
