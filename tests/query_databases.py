"""Databases that answer an exported query, and the rows that are asked: DuckDB, SQLite, and PostgreSQL on a socket."""

import contextlib
import csv
import glob
import io
import math
import os
import shutil
import sqlite3
import subprocess
import tempfile


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def declare(columns, numbers, real, text):
    return ", ".join(f"{quote(c)} {real if c in numbers else text}" for c in columns)


def clean(cell):
    return None if cell is None or (isinstance(cell, float) and math.isnan(cell)) else cell


def ask_duckdb(query, table, columns, numbers, rows):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE {quote(table)} ({declare(columns, numbers, 'DOUBLE', 'VARCHAR')})")
    values = [[clean(row.get(c)) for c in columns] for row in rows]
    connection.executemany(f"INSERT INTO {quote(table)} VALUES ({', '.join('?' * len(columns))})", values)
    found = connection.execute(query)
    names = [d[0] for d in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def ask_sqlite(query, table, columns, numbers, rows):
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.execute(f"CREATE TABLE {quote(table)} ({declare(columns, numbers, 'REAL', 'TEXT')})")
    values = [[clean(row.get(c)) for c in columns] for row in rows]
    connection.executemany(f"INSERT INTO {quote(table)} VALUES ({', '.join('?' * len(columns))})", values)
    found = connection.execute(query)
    names = [d[0] for d in found.description]
    return [dict(zip(names, tuple(row), strict=True)) for row in found.fetchall()]


def find_postgres():
    """The folder with initdb and postgres; None if Debian's server is not installed."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return next((f for f in folders if os.path.exists(f"{f}/initdb") and os.path.exists(f"{f}/postgres")), None)


@contextlib.contextmanager
def start_postgres():
    """A server of its own on a unix socket, in a folder that is removed afterwards; yields the socket's folder."""
    programs = find_postgres()
    folder = tempfile.mkdtemp(prefix="pg")
    as_user = []
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, "nobody", "nogroup")
        as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    data = f"{folder}/data"
    start = [*as_user, f"{programs}/initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(start, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    options = [*as_user, f"{programs}/postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    server = subprocess.Popen(options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            ready = subprocess.run(
                ["psql", "-h", folder, "-U", "tester", "-c", "select 1", "postgres"], capture_output=True
            )
            if ready.returncode == 0:
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.1)
        yield folder
    finally:
        server.terminate()
        server.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def run_psql(socket, script):
    command = ["psql", "-h", socket, "-U", "tester", "-X", "-q", "-v", "ON_ERROR_STOP=1", "--csv", "postgres"]
    found = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[:2000]
    return found.stdout


def ask_postgres(socket, query, table, columns, numbers, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(["\\N" if clean(row.get(c)) is None else row[c] for c in columns])
    script = f"DROP TABLE IF EXISTS {quote(table)};\n"
    script += f"CREATE TABLE {quote(table)} ({declare(columns, numbers, 'float8', 'text')});\n"
    script += f"COPY {quote(table)} FROM STDIN (FORMAT csv, NULL '\\N');\n{text.getvalue()}\\.\n{query};\n"
    return list(csv.DictReader(io.StringIO(run_psql(socket, script))))
