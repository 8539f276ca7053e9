"""Files in: every format gives the same rows; what is wrong is said with its place."""

import csv
import gzip
import re
import resource
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.errors import DataError, TooLarge
from priory.sources import Asked, Faults, columnar, open_files
from priory.sources import streams as streams_module
from priory.sources.kinds import Labels, Said, inferred
from priory.sources.output import guarded, restored
from priory.sources.streams import Decoding

ROWS = [("01", "Ünïcode, quoted", 1.5), ("1", 'a "word" of', -2.0), ("NA", "two\nlines", None)]
TABLE = pa.table(dict(zip(("label", "text", "x"), map(list, zip(*ROWS, strict=True)), strict=True)))
CSV = 'label,text,x\n01,"Ünïcode, quoted",1.5\n1,"a ""word"" of",-2.0\nNA,"two\nlines",\n'
JSON = (
    '{"label":"01","text":"Ünïcode, quoted","x":1.5}\n\n{"label":"1","text":"a \\"word\\" of","x":-2}\n'
    '{"label":"NA","text":"two\\nlines","x":null}'
)


def read(path, *wanted, **how):
    rows = open_files([str(path)], Asked(**how))
    batches = [chunk.batch for chunk in rows.chunks(wanted or rows.names)]
    return pa.Table.from_batches(batches).to_pylist()


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(data)
    return sink.getvalue().to_pybytes()


def as_rows(found):
    """Rows with their numbers read, whatever the file knew of types."""
    return [(row["label"], row["text"], float(row["x"]) if row["x"] not in ("", None) else None) for row in found]


FILES = {
    "a.csv": CSV.encode(),
    "bom.csv": b"\xef\xbb\xbf" + CSV.encode(),
    "a.tsv": CSV.replace(",", "\t").replace("code\t q", "code, q").encode(),
    "semicolon.csv": CSV.replace(",", ";").replace("code; q", "code, q").encode(),
    "crlf.csv": CSV.replace("\n", "\r\n").replace("two\r\n", "two\n").encode(),
    "cr.csv": CSV.replace("\n", "\r").replace("two\r", "two\n").encode(),
    "no_final_newline.csv": CSV.rstrip("\n").encode(),
    "blank_lines.csv": CSV.replace("\n1,", "\n\n\n1,").encode(),
    "a.csv.gz": gzip.compress(CSV.encode()),
    "no_suffix": gzip.compress(CSV.encode()),
    "two_members.csv.gz": gzip.compress(CSV[:30].encode()) + gzip.compress(CSV[30:].encode()) + b"\0" * 10,
    "a.csv.zst": zstd(CSV.encode()),
    "a.jsonl": JSON.encode(),
    "json_by_content": JSON.encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_every_text_format_gives_the_same_rows(tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name])
    assert as_rows(read(tmp_path / name)) == ROWS


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "stream.arrow", "parquet_by_content"])
def test_columnar_formats_give_the_same_rows(tmp_path, name):
    path = str(tmp_path / name)
    if "parquet" in name:
        pa.parquet.write_table(TABLE, path)
    elif name == "stream.arrow":
        with pa.ipc.new_stream(path, TABLE.schema) as out:
            out.write_table(TABLE)
    elif name == "a.arrow":
        with pa.ipc.new_file(path, TABLE.schema) as out:
            out.write_table(TABLE)
    else:
        pa.feather.write_feather(TABLE, path)
    assert as_rows(read(path)) == ROWS


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_other_encodings_are_read_when_they_are_named(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(CSV.encode(encoding))
    assert as_rows(read(tmp_path / "a.csv", decoding=Decoding(encoding))) == ROWS
    if encoding != "latin-1":
        assert as_rows(read(tmp_path / "a.csv", decoding=Decoding("auto"))) == ROWS


FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)


@given(st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=20), st.integers(1, 40))
def test_what_python_writes_is_read_back_whatever_the_blocks(tmp_path_factory, rows, block):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    block_then, streams_module.BLOCK = streams_module.BLOCK, block
    try:
        found = [(row["a"], row["b"]) for row in read(path)]
    finally:
        streams_module.BLOCK = block_then
    assert found == rows


def test_globs_and_folders_are_read_in_order_and_by_name(tmp_path):
    (tmp_path / "b.csv").write_text("x,label\n2,q\n")
    (tmp_path / "a.csv").write_text("label,x\np,1\n")
    wanted = [{"label": "p", "x": "1"}, {"label": "q", "x": "2"}]
    assert read(tmp_path, "label", "x") == wanted
    assert read(tmp_path / "*.csv", "label", "x") == wanted
    (tmp_path / "c.csv").write_text("label\nr\n")
    with pytest.raises(DataError, match=r"c.csv: has no column 'x'; it has 'label'"):
        read(tmp_path, "label", "x")


def test_more_files_than_can_be_open_at_once(tmp_path):
    for number in range(300):
        (tmp_path / f"{number:03}.csv").write_text(f"x\n{number}\n")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, most[1]))
    try:
        assert [int(row["x"]) for row in read(tmp_path)] == list(range(300))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


BAD = {  # file name: (content, how it is read, the message after the name)
    "empty.csv": (b"", {}, ": is empty; give a file with rows"),
    "newlines.csv": (b"\n\n", {}, ": is empty; give a file with a header and rows"),
    "header.csv": (b"a,b\n", {}, ": has a header but no rows; give a file with rows"),
    "utf16.csv": ("a,b\n1,2\n".encode("utf-16"), {}, ": looks like UTF-16; use --encoding utf-16"),
    "bytes.csv": (
        b"a,b\n1,2\n3,\xff\n",
        {},
        ":3:2: byte 10 of the file is not UTF-8; use --encoding latin-1 (or what it is), or --errors replace",
    ),
    "nul.csv": (b"a,b\n1,2\n3,x\0y\n", {}, ":3:2: holds a NUL byte; remove it"),
    "open.csv": (
        b'a,b\n1,2\n3,"x\n4,5\n',
        {},
        ":3:2: opens a quote that is never closed; close it, double it, or use --no-quotes if they mean nothing",
    ),
    "swallowed.csv": (
        b'a,b\n1,2\n3,"x\n4,5\n6,"y"\n7,8\n',
        {},
        ":3:2: opens a quote that is closed in line 5; close it, double it, or use --no-quotes if they mean nothing",
    ),
    "long.csv": (
        b'a,b\n1,"two\nlines"\n1,2,3\n',
        {},
        ":4:3: has 3 fields, header has 2; mend it, or use --ragged pad or --ragged skip",
    ),
    "first_row_longer.csv": (
        b"a,b\n1,2,3\n1,2,3\n",
        {},
        ":2:3: has 3 fields, header has 2; mend it, or use --ragged pad or --ragged skip",
    ),
    "short.csv": (
        b"a,b\n1,2\n1\n",
        {},
        ":3:1: has 1 field, header has 2; mend it, or use --ragged pad or --ragged skip",
    ),
    "twice.csv": (b"a,b,a\n1,2,3\n", {}, ":1:3: column 'a' is also column 1; rename one of them"),
    "early.csv.gz": (gzip.compress(CSV.encode() * 9)[:-9], {}, r": ends early at byte \d+; copy it again"),
    "garbage.csv.gz": (
        gzip.compress(CSV.encode()) + b"tail",
        {},
        r": has something else after the gzip data at byte \d+; cut it off",
    ),
    "broken.csv.gz": (
        b"\x1f\x8b\x08\x00" + b"\x00" * 6 + b"\xff" * 20,
        {},
        r": is broken before byte \d+ \(.*\); pack it again",
    ),
    "early.csv.zst": (zstd(CSV.encode() * 9)[:-9], {}, r": ends early or is broken at byte \d+; copy it again"),
    "twice.csv.gz": (gzip.compress(gzip.compress(CSV.encode())), {}, ": is packed twice; unpack it once"),
    "zip.csv": (b"PK\x03\x04....", {}, ": is a zip file; unpack it first"),
    "pickle.csv": (b"\x80\x04\x95....", {}, ": is a pickle; priory never loads pickles"),
    "bad.jsonl": (
        b'{"a":1}\n{"a":}\n',
        {},
        r":2:6: is not JSON \(Expecting value\); mend the line, or --skip-bad",
    ),
    "nan.jsonl": (b'{"a":NaN}', {}, ":1: holds NaN, which is no JSON; use null for what is missing"),
    "big.jsonl": (b'{"a":1e999}', {}, ":1: holds 1e999, which no float can hold; give a smaller number"),
    "integer.jsonl": (b'{"a":%d}' % 2**70, {}, f":1: /a is a whole number beyond {2**63 - 1}; give it as text"),
    "keys.jsonl": (b'{"a":1,"a":2}', {}, ":1: has 'a' twice; give every key once"),
    "deep.jsonl": (b'{"a":' + b"[" * 100_000, {}, ":1: is nested too deeply; give flat objects"),
    "list.jsonl": (b"[1,2]", {"format": "jsonl"}, ":1: is a list, not an object; give one object a line"),
    "inside.jsonl": (b'{"a":{"b":1}}', {}, ":1: /a is an object; give text or a number"),
    "surrogate.jsonl": (
        b'{"a":"\\ud800"}',
        {},
        ":1: /a holds half a surrogate pair; remove or replace it",
    ),
    "nul.jsonl": (b'{"a":"x\\u0000"}', {}, ":1: /a holds a NUL character; remove it"),
    "mixed.jsonl": (
        b'{"a":1}\n\n{"a":"x"}\n',
        {},
        ":3: /a is text and other rows hold other things; use one kind",
    ),
    "nothing.jsonl": (b"{}\n{}", {}, ": has no columns; give a table with some"),
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
    assert [tuple(row.values()) for row in read(path, faults=Faults("skip"))] == [("1", "2"), ("4", "5")]
    padded = [tuple(row.values()) for row in read(path, faults=Faults("pad"))]
    assert padded == [("1", "2"), ("1", ""), ("1", "2"), ("4", "5")]
    path.write_bytes(b"a,b\n1,\xff\n")
    assert read(path, decoding=Decoding("utf-8", "replace")) == [{"a": "1", "b": "�"}]
    path.write_bytes(b'a,b\n1,"x\n2,y"\n')
    assert [row["b"] for row in read(path, faults=Faults(quotes=False))] == ['"x', 'y"']
    lines = tmp_path / "a.jsonl"
    lines.write_bytes(b'{"a":1}\n{"a":\n{"a":2}\n')
    assert [row["a"] for row in read(lines, faults=Faults(skip_bad=1))] == [1, 2]


@pytest.mark.parametrize("packed", ["gz", "zst"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, packed, monkeypatch):
    monkeypatch.setattr(streams_module, "FREE", 1 << 20)
    data = b"a,b\n" + b"1,2\n" * (1 << 22)
    (tmp_path / "a").write_bytes(gzip.compress(data) if packed == "gz" else zstd(data))
    with pytest.raises(TooLarge, match="unpacks to more than 200 times its size"):
        read(tmp_path / "a", format="csv")


def test_a_cell_longer_than_a_block_is_read_and_one_beyond_the_limit_is_not(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 10 + f'3,"{"x" * (9 << 20)}"\n' + "4,5\n" * 10)
    assert [len(row["b"]) for row in read(path)] == [1] * 10 + [9 << 20] + [1] * 10
    path.write_text("a,b\n" + f"3,{'x' * (26 << 20)}\n")
    with pytest.raises(TooLarge, match=r"a.csv:2: a cell has over 25 MB; split it, or close its quote"):
        read(path)


def test_parquet_of_other_types_is_refused_by_column(tmp_path):
    path = str(tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"a": [1], "when": pa.array([0], pa.timestamp("s")), "deep": [[1]]}), path)
    for column in ("when", "deep"):
        with pytest.raises(
            DataError, match=f"column '{column}' holds .*; turn it into text or numbers, or --ignore it"
        ):
            read(path, column)
    assert read(path, "a") == [{"a": 1}]


def test_limits_of_parquet_are_checked_before_it_is_read(tmp_path, monkeypatch):
    path = str(tmp_path / "a.parquet")
    pa.parquet.write_table(TABLE, path)
    monkeypatch.setattr(columnar, "MOST_COLUMNS", 2)
    with pytest.raises(TooLarge, match="has 3 columns; the limit is 2"):
        read(path)
    monkeypatch.setattr(columnar, "MOST_COLUMNS", 3)
    monkeypatch.setattr(columnar, "MOST_BYTES", 10)
    with pytest.raises(TooLarge, match=r"row group 0 unpacks to .* bytes; write smaller groups"):
        read(path)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([1, 2]), ["1", "2"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([Decimal("1.50"), Decimal("2.00")]), ["1.50", "2.00"]),
        (pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
    ],
    ids=["whole", "boolean", "decimal", "dictionary"],
)
def test_labels_of_any_type_are_the_text_they_would_be_in_a_csv(tmp_path, values, text):
    path = str(tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"y": values, "x": [1.0, 2.0]}), path)
    chunk = next(open_files([path], Asked()).chunks(("y", "x")))
    labels = Labels("y", Said(target="y"))
    group, _ = labels.read(chunk)
    assert labels.names[group].tolist() == text


# -- what the columns are ---------------------------------------------------------------------------------------------


def columns(tmp_path, text, **said):
    (tmp_path / "a.csv").write_text(text)
    rows = open_files([str(tmp_path / "a.csv")], Asked())
    spoken = Said(target="y", **said)
    chunk = next(rows.chunks(rows.names))
    return inferred(chunk, spoken.features_in(rows), spoken), chunk, spoken


def test_kinds_are_inferred_from_a_sample_and_can_be_said(tmp_path):
    text = "y,n,c,t,e,s\n" + "".join(f"a,{i / 3},red,some words of {i},,{i}\n" for i in range(9))
    (found, empty), _, _ = columns(tmp_path, text)
    assert (found.kinds, empty) == ({"n": "number", "c": "label", "t": "text", "s": "number"}, ["e"])
    said = {"types": {"s": "label", "c": "text"}, "ignore": ("t",)}
    (found, _), _, _ = columns(tmp_path, text, **said)
    assert found.kinds == {"n": "number", "c": "text", "s": "label"}


NUMBERS = {
    " 3 ": 3.0,
    "1e5": 1e5,
    "+2.5": 2.5,
    "-0": 0.0,
    "1e-320": 1e-320,
    "9223372036854775807": 2.0**63,
    "": np.nan,
}
NO_NUMBERS = {
    "1,5": "'1,5' is not a number; write the decimal point as a point",
    "0x1f": "'0x1f' is not a number; mend it, or use --missing 0x1f or --type x=label",
    "१२": "'१२' is not a number; mend it, or use --missing १२ or --type x=label",
    "inf": "'inf' is not a number; mend it, or use --missing inf or --type x=label",
    "1e400": "'1e400' is not a number; mend it, or use --missing 1e400 or --type x=label",
    "NA": "'NA' is not a number; mend it, or use --missing NA or --type x=label",
    "9" * 30: f"the whole number '{'9' * 30}' is beyond 2^63 - 1; write it with an exponent, or use --type x=label",
}


@pytest.mark.parametrize(("cell", "value"), NUMBERS.items())
def test_numbers_are_read_as_they_are_written(tmp_path, cell, value):
    (found, _), chunk, _ = columns(tmp_path, f"y,x\na,1\nb,{cell}\n")
    np.testing.assert_array_equal(found.read(chunk).columns[0].numbers, [1.0, value])


@pytest.mark.parametrize(("cell", "message"), NO_NUMBERS.items())
def test_what_is_no_number_is_named(tmp_path, cell, message):
    def read_numbers(**said):
        (found, _), chunk, _ = columns(tmp_path, f'y,x\na,1\na,2\nb,"{cell}"\n', **said)
        found.read(chunk)

    for said in ({"types": {"x": "numeric"}}, {}):
        with pytest.raises(DataError) as caught:
            read_numbers(**said)
        assert str(caught.value) == f"{tmp_path}/a.csv:4:2: {message}"


def test_labels_stay_text(tmp_path):
    names = ["01", "1", "NA", "None", "true", "True", "nan"]
    _, chunk, said = columns(tmp_path, "y,x\n" + "".join(f"{name},1\n" for name in names))
    labels = Labels("y", said)
    group, _ = labels.read(chunk)
    assert labels.names[group].tolist() == names
    missing = Said(target="y", missing=frozenset({"NA", "None"}), skip_unlabelled=True)
    some = Labels("y", missing)
    group, kept = some.read(chunk)
    assert some.names[group].tolist() == ["01", "1", "true", "True", "nan"]
    assert (kept.batch.num_rows, some.unlabelled) == (5, 2)
    with pytest.raises(DataError, match=r"a.csv:4:1: has no label; give it one, or use --skip-unlabelled"):
        Labels("y", Said(target="y", missing=frozenset({"NA"}))).read(chunk)


# -- out --------------------------------------------------------------------------------------------------------------


@given(st.text(st.sampled_from("'=+-@\t\r1a."), max_size=6))
def test_formulas_are_guarded_and_can_be_restored(cell):
    [safe] = guarded(pa.array([cell])).to_pylist()
    assert restored(safe) == cell
    assert not safe.startswith(("=", "@", "\t", "\r"))
    if safe.startswith(("+", "-")):
        float(safe)


# -- whatever the bytes -----------------------------------------------------------------------------------------------

CORPUS = Path(__file__).parent / "corpus"
SUFFIX = {"gzip": ".csv.gz", "zstd": ".csv.zst", "mail": ".eml"}


@pytest.mark.parametrize("kind", sorted(folder.name for folder in CORPUS.iterdir()))
def test_whatever_the_bytes_there_are_rows_or_one_line(tmp_path, kind):
    for seed in sorted((CORPUS / kind).iterdir()):
        path = tmp_path / f"{seed.name}{SUFFIX.get(kind, f'.{kind}')}"
        path.write_bytes(seed.read_bytes())
        said = ""
        try:
            assert read(path)
        except DataError as error:
            said = str(error)
        assert "\n" not in said
        assert not said or said.startswith(str(path))
