"""Files in: every format gives the same rows; whatever the bytes, there are rows or one line."""

import csv
import gzip
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from file_rows import CSV, JSON, ROWS, TABLE, as_rows, read, zstd
from paths import ROOT
from priory import load
from priory.cli.entry_point import main
from priory.errors import DataError
from priory.sources import byte_streams as streams_module
from priory.sources import discovery
from priory.sources.record_files import RecordReader

FILES = {
    "a.csv": CSV.encode(),
    "bom.csv": b"\xef\xbb\xbf" + CSV.encode(),
    "a.tsv": CSV.replace(",", "\t").replace("code\t q", "code, q").encode(),
    "semicolon.csv": CSV.replace(",", ";").replace("code; q", "code, q").encode(),
    "crlf.csv": CSV.replace("\n", "\r\n").replace("two\r\n", "two\n").encode(),
    "cr.csv": CSV.replace("\n", "\r").replace("two\r", "two\n").encode(),
    "mixed_line_ends.csv": CSV.replace("\n01", "\r\n01").replace("\nNA", "\rNA").encode(),
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
    assert as_rows(read(tmp_path / "a.csv", encoding=encoding)) == ROWS
    if encoding != "latin-1":
        assert as_rows(read(tmp_path / "a.csv", encoding="auto")) == ROWS


FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)


@pytest.mark.slow
@given(st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=20), st.integers(1, 40))
def test_what_python_writes_is_read_back_whatever_the_blocks(tmp_path_factory, rows, block):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    block_then, streams_module.READ_BLOCK_BYTES = streams_module.READ_BLOCK_BYTES, block
    try:
        found = [(row["a"], row["b"]) for row in read(path)]
    finally:
        streams_module.READ_BLOCK_BYTES = block_then
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


CORPUS = ROOT / "tests" / "corpus"


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


class BarTable:
    """A format that the package does not know: cells between vertical bars."""

    unit, name = "page", "1"

    def __init__(self, path):
        lines = Path(path).read_text().splitlines()
        self.columns, *self.records = (line.strip("|").split("|") for line in lines)

    def read_records(self, column_names):
        places = [self.columns.index(name) for name in column_names]
        return (tuple(record[place] for place in places) for record in self.records)

    def locate_cell(self, row, column):
        return f"line {row + 2}, {column}"


def test_a_file_format_is_one_entry(tmp_path, monkeypatch):
    def open_bars(path, options, report_progress):
        return RecordReader(path, BarTable(path), report_progress)

    known = discovery.FileFormat(open_bars, (".bars",), lambda path, start: start.startswith(b"|"))
    monkeypatch.setitem(discovery.FORMATS, "bars", known)
    for name in ("people.bars", "people"):  # by its ending, and by its first byte
        path = tmp_path / name
        path.write_text("|age|answer|\n" + "|31|yes|\n|77|no|\n" * 20)
        assert read(path)[:2] == [{"age": "31", "answer": "yes"}, {"age": "77", "answer": "no"}]
        model = str(tmp_path / f"{name}.priory")
        assert main(["train", str(path), "--target", "answer", "--plain", "-o", model, "--format", "bars"]) == 0
        assert load(model).predict([{"age": 30}]) == ["yes"]


def test_a_format_that_nobody_knows_is_named(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    with pytest.raises(DataError, match=r"format is 'jsonlines'; use one of csv, .*did you mean 'jsonl'"):
        read(tmp_path / "a.csv", format="jsonlines")
