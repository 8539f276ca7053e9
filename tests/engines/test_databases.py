"""Learning inside a database: the same bytes as ``fit``, also with names that would be dangerous unquoted."""

import datetime
import glob
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import priory as pr
from priory.errors import DataError, NotLearnedError
from priory.workflows import databases
from shell import PRIORY

QUOTED = 'a"b; DROP TABLE t; --'
SCRIPT = "</script>%s"
KINDS = {"count": "INTEGER", "flag": "SMALLINT", "big": "BIGINT", "price": "NUMERIC(10,2)", "when": "DATE"}
INSIDE = {"memory": 0, "calibrate": False}
Rows = dict[str, list[Any]]


def make_rows(n: int = 400, with_doubles: bool = True) -> Rows:
    draw = random.Random(7)
    rows: Rows = {
        "colour": [draw.choice(["red", "Red", "blue", None, "x'; DROP TABLE t; --"]) for _ in range(n)],
        "count": [draw.choice([0, 1, 2, 3, 9, None]) for _ in range(n)],
        "flag": [draw.randrange(2) for _ in range(n)],
        "big": [draw.randrange(-(10**12), 10**12) for _ in range(n)],
        "price": [Decimal(draw.randrange(10**6)).scaleb(-2) for _ in range(n)],
        "when": [datetime.date(2024, 1, 1) + datetime.timedelta(days=draw.randrange(300)) for _ in range(n)],
        QUOTED: [draw.choice(["a", "b"]) for _ in range(n)],
        SCRIPT: [draw.choice(["</script>", "100 %", "b"]) for _ in range(n)],
        "note": [" ".join(draw.choices(["win", "cash", "lunch", "noon"], k=5)) + f" {i}" for i in range(n)],
    }
    if with_doubles:
        rows["temp"] = [draw.gauss(0, 3) for _ in range(n)]
    return rows | {"y": [draw.choice(["no", "yes", "yes", "</script>", None]) for _ in range(n)]}


def in_memory(rows: Rows, keep: Any = lambda row: True, dates_as_text: bool = False) -> tuple[Rows, list[str]]:
    """The rows with a label, as ``fit`` takes them."""
    names, cells = list(rows), list(zip(*rows.values(), strict=True))
    kept = [row for row in cells if row[-1] is not None and keep(dict(zip(names, row, strict=True)))]

    def convert(cell: Any) -> Any:
        if isinstance(cell, Decimal):
            return float(cell)
        return cell.isoformat() if dates_as_text and isinstance(cell, datetime.date) else cell

    columns = [list(map(convert, column)) for column in zip(*kept, strict=True)]
    return dict(zip(names[:-1], columns[:-1], strict=True)), columns[-1]


def run_priory(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PRIORY, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def create(connection: Any, table: str, rows: Rows, place: str, kinds: dict[str, str]) -> None:
    columns = ", ".join(f"{quote(name)} {kinds.get(name, kinds[''])}" for name in rows)
    connection.execute(f"CREATE TABLE {quote(table)} ({columns})")
    connection.cursor().executemany(
        f"INSERT INTO {quote(table)} VALUES ({', '.join([place] * len(rows))})",
        list(zip(*rows.values(), strict=True)),
    )


def read_bytes(model: Any, folder: pathlib.Path) -> bytes:
    pr.save(model, folder / "model.priory")
    return (folder / "model.priory").read_bytes()


@pytest.fixture
def sqlite_url(tmp_path):
    def convert(cell: Any) -> Any:
        return float(cell) if isinstance(cell, Decimal) else str(cell) if isinstance(cell, datetime.date) else cell

    connection = sqlite3.connect(tmp_path / "rows.db")
    rows = {name: list(map(convert, column)) for name, column in make_rows().items()}
    create(connection, "t", rows, "?", KINDS | {"temp": "REAL", "": "TEXT COLLATE NOCASE"})
    connection.commit()
    connection.close()
    return f"sqlite:///{tmp_path}/rows.db?table=t"


@pytest.fixture
def duckdb_url(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        create(connection, QUOTED, make_rows(), "?", KINDS | {"temp": "DOUBLE", "": "VARCHAR"})
    return f"duckdb:///{tmp_path}/rows.duckdb"


@pytest.fixture(scope="module")
def postgresql_url():
    """A server of Debian's package on a socket of its own, in a temporary folder."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'priory[postgresql]'")
    binaries = max(glob.glob("/usr/lib/postgresql/*/bin"), default=shutil.which("initdb") and "")
    if binaries is None:
        pytest.skip("there is no PostgreSQL server")
    user = "postgres" if os.geteuid() == 0 else None  # a server does not run as root
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        if user:
            shutil.chown(folder, user)

        def run(program: str, *arguments: str) -> None:
            command = [os.path.join(binaries, program), "-D", f"{folder}/data", *arguments]
            subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL, timeout=120)

        run("initdb", "-A", "trust", "-U", "priory", "--no-sync")
        run("pg_ctl", "-o", f"-k {folder} -c listen_addresses= -c fsync=off", "-w", "-l", f"{folder}/log", "start")
        try:
            url = f"postgresql://priory@/postgres?host={folder}"
            with psycopg.connect(url, autocommit=True) as connection:
                create(connection, QUOTED, make_rows(), "%s", KINDS | {"temp": "DOUBLE PRECISION", "": "TEXT"})
            yield url
        finally:
            run("pg_ctl", "-m", "fast", "stop")


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def url(request) -> Iterator[str]:
    return request.getfixturevalue(f"{request.param}_url")


@pytest.mark.parametrize("options", [INSIDE, {}], ids=["inside", "keeping rows"])
def test_a_model_equals_the_one_of_fit_to_the_byte(url, options, tmp_path):
    learned = databases.fit(pr.NaiveBayes(**options), url, "y")
    expected = pr.NaiveBayes(**options).fit(*in_memory(make_rows(), dates_as_text=url.startswith("sqlite")))
    assert read_bytes(learned, tmp_path) == read_bytes(expected, tmp_path)


def test_forgetting_with_a_condition_is_never_having_learned(url, tmp_path):
    model = databases.fit(pr.NaiveBayes(**INSIDE), url, "y")
    databases.forget(model, url, "y", {"colour": "x'; DROP TABLE t; --", SCRIPT: "100 %"})
    rest = in_memory(
        make_rows(),
        lambda row: row["colour"] != "x'; DROP TABLE t; --" or row[SCRIPT] != "100 %",
        dates_as_text=url.startswith("sqlite"),
    )
    assert read_bytes(model, tmp_path) == read_bytes(pr.NaiveBayes(**INSIDE).fit(*rest), tmp_path)


def test_rows_that_were_not_learned_cannot_be_forgotten(url):
    model = databases.fit(pr.NaiveBayes(**INSIDE), url, "y", {"colour": "red"})
    with pytest.raises(NotLearnedError, match="the model is unchanged"):
        databases.forget(model, url, "y", {"colour": "blue"})


def test_wrong_tables_and_columns_are_named(url, tmp_path):
    with pytest.raises(DataError, match="has no column 'whhy'"):
        databases.fit(pr.NaiveBayes(), url, "whhy")
    with pytest.raises(DataError, match="has no column 'nope'"):
        databases.fit(pr.NaiveBayes(), url, "y", {"nope": "1"})
    with pytest.raises(DataError, match="cannot be opened"):
        databases.fit(pr.NaiveBayes(), f"duckdb:///{tmp_path}/nothing.duckdb", "y")


def test_the_command_learns_and_forgets_inside_the_database(sqlite_url, tmp_path):
    model, other = tmp_path / "a.priory", tmp_path / "b.priory"
    trained = run_priory("train", sqlite_url, "--target", "y", "--memory", "0", "-o", model, "--json")
    assert trained.returncode == 0
    assert "counting inside the database" in trained.stderr
    assert "'temp': doubles, whose cells are read" in trained.stderr
    assert json.loads(trained.stdout)["rows"] == len(in_memory(make_rows())[1])
    assert run_priory("forget", model, sqlite_url, "--where", "flag=1").returncode == 0
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///").removesuffix("?table=t")) as connection:
        connection.execute("DELETE FROM t WHERE flag = 1")
    assert run_priory("train", sqlite_url, "--target", "y", "--memory", "0", "-o", other).returncode == 0
    assert model.read_bytes() == other.read_bytes()
