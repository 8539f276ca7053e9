"""Tables that are not text files: SQLite, DuckDB, Excel, and other ways of compressing a CSV."""

import bz2
import json
import lzma
import sqlite3
import zipfile
from datetime import date
from pathlib import Path

import pytest

from shell import GOOD, TEXTS, rows_of

ROWS = [("a" if i % 3 else "b", i % 3 + (i % 7) / 10, None if i % 11 == 0 else i % 5) for i in range(60)]


def write_sqlite(path, *tables):
    with sqlite3.connect(path) as connection:
        for table in tables:
            connection.execute(f'create table "{table}" (label text, "a number" real, n integer)')
            connection.executemany(f'insert into "{table}" values (?, ?, ?)', ROWS)


def write_duckdb(path, *tables):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(path) as connection:
        for table in tables:
            connection.execute(f'create table "{table}" (label text, "a number" double, n integer)')
            connection.executemany(f'insert into "{table}" values (?, ?, ?)', ROWS)


def write_excel(path, *tables):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for table in tables:
        sheet = book.create_sheet(table)
        for row in [("label", "a number", "n"), *ROWS]:
            sheet.append(row)
    book.save(path)


WRITERS = {"data.sqlite": write_sqlite, "data.duckdb": write_duckdb, "data.xlsx": write_excel}


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_of_a_database_is_read_like_a_csv(name, run):
    WRITERS[name](name, "loans")
    code, out, _ = run("train", name, "--target", "label", "--plain", "--json", "-o", "data.priory")
    assert code == 0
    answer = json.loads(out)
    assert (answer["rows"], answer["classes"]) == (60, {"a": 40.0, "b": 20.0})
    with open("data.csv", "w") as file:
        file.write("label,a number,n\n")
        file.writelines(f"{a},{b},{'' if c is None else c}\n" for a, b, c in ROWS)
    assert run("train", "data.csv", "--target", "label", "--plain", "-o", "csv.priory")[0] == 0
    assert Path("data.priory").read_bytes() == Path("csv.priory").read_bytes()
    assert run("predict", "data.priory", name, "-o", "out.csv")[0] == 0
    assert len(rows_of("out.csv")) == 60


@pytest.mark.parametrize("name", WRITERS)
def test_of_several_tables_one_is_named(name, run):
    unit = "sheet" if name.endswith("xlsx") else "table"
    WRITERS[name](name, "first", "second")
    err = run("train", name, "--target", "label")[2]
    assert err == f"priory: {name}: has 2 {unit}s; use --table with one of 'first', 'second'\n"
    err = run("train", name, "--target", "label", "--table", "frist")[2]
    assert err == f"priory: {name}: has no {unit} 'frist' (did you mean 'first'?); it has 'first', 'second'\n"
    assert run("train", name, "--target", "label", "--table", "second", "--plain")[0] == 0


def test_a_wrong_cell_of_a_database_is_named(run):
    write_sqlite("data.sqlite", "loans")
    with sqlite3.connect("data.sqlite") as connection:
        connection.execute("insert into loans values ('a', 'much', 3)")
    err = run("train", "data.sqlite", "--target", "label")[2]
    assert err.startswith("priory: data.sqlite: table 'loans', row 61, column 'a number': 'much' is not a number; ")
    with sqlite3.connect("data.sqlite") as connection:
        connection.execute("update loans set \"a number\" = x'ff00' where label = 'a'")
    err = run("train", "data.sqlite", "--target", "label")[2]
    assert err.endswith("column 'a number': holds bytes; convert them to text or numbers\n")


def test_a_wrong_cell_of_a_sheet_is_named_as_the_program_does(run):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("label", "n", "day"), *(("ab"[i % 2], i % 7 if i else "much", date(2024, 5, 1)) for i in range(30))]:
        book.active.append(row)
    book.save("book.xlsx")
    err = run("train", "book.xlsx", "--target", "label", "--ignore", "day")[2]
    assert err.startswith("priory: book.xlsx: sheet 'Sheet', cell B2: 'much' is not a number; ")


def test_damaged_files_are_one_line(run):
    Path("bad.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(range(256)) * 20)
    code, _, err = run("train", "bad.sqlite", "--target", "label")
    assert code == 3
    assert err.startswith("priory: bad.sqlite: cannot be read (")
    pytest.importorskip("openpyxl")
    with zipfile.ZipFile("bad.xlsx", "w") as packed:
        packed.writestr("xl/workbook.xml", "content")
    code, _, err = run("train", "bad.xlsx", "--target", "label")
    assert code == 3
    assert err.startswith("priory: bad.xlsx: is a damaged workbook (")


@pytest.mark.parametrize(("suffix", "pack"), [("bz2", bz2.compress), ("xz", lzma.compress)])
def test_bzip2_and_xz_are_unpacked(suffix, pack, run):
    name = f"mail.csv.{suffix}"
    half = len(GOOD) // 2
    Path(name).write_bytes(pack(GOOD[:half].encode()) + pack(GOOD[half:].encode()))  # two streams in one file
    code, out, _ = run("train", name, "--target", "label", "--plain", "--json")
    assert (code, json.loads(out)["rows"]) == (0, len(TEXTS))
    assert Path("mail.priory").exists()
    Path(name).write_bytes(pack(GOOD.encode())[:-8])
    assert run("train", name, "--target", "label", "--force")[::2] == (
        3,
        f"priory: {name}: ends early at byte {len(pack(GOOD.encode())) - 8}; copy it again\n",
    )


def test_a_file_that_unpacks_to_far_too_much_is_refused(run):
    name = "mail.csv.xz"
    Path(name).write_bytes(lzma.compress(b"label,text\n" + b"ham,a\n" * 12_000_000, preset=0))
    code, _, err = run("train", name, "--target", "label", "--force")
    assert (code, "decompresses to more than 200 times its size" in err) == (6, True)
