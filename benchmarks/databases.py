"""Learning inside a database: time beside the bare GROUP BYs, and bytes beside ``fit``.

python benchmarks/databases.py [rows ...]      # writes benchmarks/results/databases.md

The table is made up: four columns of labels and four of whole numbers, some cells of which are missing. PostgreSQL runs
on a socket of its own in a temporary folder, where Debian's package and psycopg are installed.
"""

import glob
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import clock
import priory as pr
from priory.workflows import databases
from priory.workflows.database_tables import open_table

RESULTS = Path(__file__).parent / "results" / "databases.md"
REPEATS = 7


def make_table(rows: int) -> pa.Table:
    """Labels of 3 to 200 values, whole numbers of 2 to 5,000, and two classes."""
    draw = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for name, values in (("region", 12), ("channel", 3), ("product", 200), ("weekday", 7)):
        cells = np.array([f"{name} {k}" for k in range(values)], dtype=object)[draw.integers(0, values, rows)]
        columns[name] = pa.array(cells, mask=draw.random(rows) < 0.02)
    for name, values in (("items", 20), ("member", 2), ("age", 90), ("price", 5_000)):
        columns[name] = pa.array(draw.integers(0, values, rows), mask=draw.random(rows) < 0.02)
    columns["paid"] = pa.array(np.array(["no", "yes"], dtype=object)[draw.integers(0, 2, rows)])
    return pa.table(columns)


@contextmanager
def store_duckdb(table: pa.Table, folder: str) -> Iterator[str]:
    with duckdb.connect(f"{folder}/rows.duckdb") as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM rows")
    yield f"duckdb:///{folder}/rows.duckdb"


@contextmanager
def store_sqlite(table: pa.Table, folder: str) -> Iterator[str]:
    kinds = ["INTEGER" if pa.types.is_integer(field.type) else "TEXT" for field in table.schema]
    with sqlite3.connect(f"{folder}/rows.db") as connection:
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(table.column_names, kinds, strict=True))
        connection.execute(f"CREATE TABLE t ({columns})")
        places = ", ".join("?" * table.num_columns)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({places})", rows)
    yield f"sqlite:///{folder}/rows.db"


@contextmanager
def store_postgresql(table: pa.Table, folder: str) -> Iterator[str]:
    import psycopg

    binaries = max(glob.glob("/usr/lib/postgresql/*/bin"))
    user = "postgres" if os.geteuid() == 0 else None
    shutil.chown(folder, user) if user else None

    def run(program: str, *arguments: str) -> None:
        command = [os.path.join(binaries, program), "-D", f"{folder}/data", *arguments]
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    run("initdb", "-A", "trust", "-U", "priory", "--no-sync")
    run("pg_ctl", "-o", f"-k {folder} -c listen_addresses= -c fsync=off", "-w", "-l", f"{folder}/log", "start")
    try:
        url = f"postgresql://priory@/postgres?host={folder}"
        kinds = ["INTEGER" if pa.types.is_integer(field.type) else "TEXT" for field in table.schema]
        with psycopg.connect(url, autocommit=True) as connection:
            columns = ", ".join(f"{name} {kind}" for name, kind in zip(table.column_names, kinds, strict=True))
            connection.execute(f"CREATE TABLE t ({columns})")
            with connection.cursor().copy("COPY t FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
            connection.execute("VACUUM ANALYZE t")
        yield url
    finally:
        run("pg_ctl", "-m", "fast", "stop")


def group_columns(url: str) -> None:
    """The bare GROUP BY of each column by class, with all of its answers fetched."""
    with open_table(url) as rows:
        names = [name for name in rows.names if name != "paid"]
        for query in [f"SELECT paid, {name}, count(*) FROM t GROUP BY 1, 2" for name in names]:
            if "duckdb" in url:
                rows.database.connection.execute(query).fetchall()
            else:
                cursor = rows.database.connection.cursor()
                cursor.execute(query)
                cursor.fetchall()


def read_bytes(model: Any, folder: str) -> bytes:
    path = Path(folder, "model.priory")
    pr.save(model, path)
    return path.read_bytes()


def measure(rows: int) -> Iterator[str]:
    """The lines of a table of so many rows; times are taken in turn, so that the load of the machine is shared."""
    table = make_table(rows)
    cells, labels = table.drop_columns(["paid"]), table.column("paid").to_pylist()
    options: dict[str, Any] = {"memory": 0, "calibrate": False}
    expected = pr.NaiveBayes(**options).fit(cells, labels)
    for name, store in (("DuckDB", store_duckdb), ("SQLite", store_sqlite), ("PostgreSQL", store_postgresql)):
        with tempfile.TemporaryDirectory(prefix="priory") as folder, store(table, folder) as url:
            runs: list[Callable[[], object]] = [
                lambda url=url: group_columns(url),
                lambda url=url: databases.fit(pr.NaiveBayes(**options), url, "paid"),
                lambda url=url: databases.fit(pr.NaiveBayes(calibrate=False), url, "paid"),
            ]
            bare, inside, kept = np.min([[clock.best(run, 1) for run in runs] for _ in range(REPEATS)], axis=0)
            model = databases.fit(pr.NaiveBayes(**options), url, "paid")
            same = read_bytes(model, tempfile.gettempdir()) == read_bytes(expected, tempfile.gettempdir())
        equal = "equal" if same else "DIFFERENT"
        yield f"| {rows:,} | {name} | {bare:.2f} | {inside:.2f} | {inside / bare:.2f} | {kept:.2f} | {equal} |"


def main(*sizes: int) -> None:
    """Measure all databases."""
    lines = []
    for rows in sizes or (40_000, 200_000):
        for line in measure(rows):
            lines.append(line)
            print(line, flush=True)
    text = f"""# Learning inside a database

`{" ".join(["python benchmarks/databases.py", *map(str, sizes)])}`: made-up rows with four columns of labels and four of
whole numbers; the fastest of {REPEATS} runs, in seconds. The bare queries are one `GROUP BY` for each column and class,
with the answers fetched. Inside: `priory.workflows.databases.fit` with `memory=0, calibrate=False`. Reading rows: the
same, where the model keeps a sample of rows, and so reads all of them once. Model files are compared with those of
`fit`.

| rows | database | bare GROUP BYs | inside | ratio | reading rows | bytes beside `fit` |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}
"""
    RESULTS.write_text(text)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
