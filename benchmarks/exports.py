"""Exported models beside `predict_proba`: in DuckDB, SQLite, PostgreSQL, onnxruntime, Node.js and Chromium.

    pip install duckdb psycopg[binary] onnx onnxruntime playwright statsmodels
    apt-get install postgresql nodejs chromium
    python benchmarks/exports.py [TABLE ...] [--untimed] [--write]         # writes benchmarks/results/exports.md

With names of tables, only their lines on the page are replaced.

Two thirds of the rows of a table are learned, by the default model and by plain naive Bayes. Asked are up to 150 of the
others, once as they are and once where a third of the cells is missing, new or extreme.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import psycopg
from playwright.sync_api import sync_playwright

import priory as pr
from clock import best
from priory.export.javascript import write_javascript
from priory.export.plan_sources import compile_plan
from priory.export.sql import write_sql
from release import read_table

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from query_databases import quote, start_postgres

RESULTS = Path(__file__).parent / "results" / "exports.md"
GIVEN = ["adult", "titanic", "penguins", "soybean", "nursery", "spambase"]
UNSEEN = ["digits", "anes96", "modechoice", "randhie"]  # nothing is chosen or mended by them
EXTREME = [1e300, -1e300, 1e-300, -0.0, 0.5, 2.0**53 + 2, -1.0]
MODELS = {"default": {}, "plain": {"calibrate": False}}
DIALECTS = {"DuckDB": "duckdb", "SQLite": "sqlite", "PostgreSQL": "postgres"}
DATABASES, N_TIMED = list(DIALECTS), 2_000
RUNTIMES = [*DATABASES, "onnxruntime", "Node.js", "Chromium"]


def split_table(name: str) -> tuple[pd.DataFrame, Any, pd.DataFrame]:
    """Rows to learn with their labels, and rows to ask."""
    X, y = read_table(name)
    order = np.random.default_rng(0).permutation(len(X))
    n = 2 * len(X) // 3
    return X.iloc[order[:n]], np.asarray(y)[order[:n]], X.iloc[order[n:]].reset_index(drop=True)


def spoil(X: pd.DataFrame) -> pd.DataFrame:
    """The same rows, where a third of the cells is missing, new or extreme; the last row has no cell."""
    rng, X = np.random.default_rng(1), X.copy()
    for name in X.columns:
        odd = [np.nan, *EXTREME] if X[name].dtype.kind == "f" else [None, "new'\" \\ label"]
        for at in np.flatnonzero(rng.random(len(X)) < 1 / 3):
            X.loc[at, name] = odd[0 if rng.random() < 0.5 else rng.integers(1, len(odd))]
    X.loc[len(X) - 1] = np.nan
    return X


def list_rows(X: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts with None for missing cells."""
    return X.astype(object).where(X.notna(), None).to_dict("records")


# -- runtimes: each yields a function that answers the rows -----------------------------------------------------------


@contextlib.contextmanager
def open_databases() -> Iterator[dict[str, Any]]:
    with start_postgres() as socket, psycopg.connect(f"postgresql://tester@/postgres?host={socket}") as server:
        server.execute("SET jit = off")  # compiling a query of a thousand expressions takes seconds
        yield {"DuckDB": duckdb.connect(), "SQLite": sqlite3.connect(":memory:"), "PostgreSQL": server}


def fill_table(database: str, connection: Any, X: pd.DataFrame) -> None:
    real, text = {"SQLite": ("REAL", "TEXT"), "PostgreSQL": ("float8", "text")}.get(database, ("DOUBLE", "VARCHAR"))
    kinds = [real if X[name].dtype.kind == "f" else text for name in X]
    connection.execute('DROP TABLE IF EXISTS "rows"')
    declared = ", ".join(f"{quote(name)} {kind}" for name, kind in zip(X, kinds, strict=True))
    connection.execute(f'CREATE TABLE "rows" ({declared})')
    if database == "DuckDB":
        connection.register("given", X)
        connection.execute('INSERT INTO "rows" SELECT * FROM given')
        return
    rows = [tuple(row.values()) for row in list_rows(X)]
    if database == "PostgreSQL":
        with connection.cursor().copy('COPY "rows" FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)
    else:
        connection.executemany(f'INSERT INTO "rows" VALUES ({", ".join("?" * len(kinds))})', rows)


def ask_database(connection: Any, query: str, n_classes: int) -> np.ndarray:
    found = connection.execute(query).fetchall()
    return np.array([row[len(row) - n_classes :] for row in found], dtype=float)


def make_inputs(plan: Any, X: pd.DataFrame) -> dict[str, np.ndarray]:
    """The inputs of a graph: one matrix of numbers, or one column each."""
    if all(column.kind == "number" for column in plan.columns):
        return {"X": X[[column.name for column in plan.columns]].to_numpy(dtype=float)}
    found = {}
    for column in plan.columns:
        cells = X[[column.name]]
        is_number = column.kind == "number"
        found[column.name] = cells.to_numpy(dtype=float) if is_number else cells.fillna("").to_numpy(dtype=object)
    return found


def time_node(folder: str, module: str, rows: list[dict[str, Any]]) -> tuple[np.ndarray, float]:
    """Answers, and the seconds of the fastest of three runs."""
    Path(folder, "model.mjs").write_text(module)
    Path(folder, "rows.json").write_text(json.dumps(rows))
    Path(folder, "ask.mjs").write_text(
        "import m from './model.mjs'; import { readFileSync } from 'fs';\n"
        f"const rows = JSON.parse(readFileSync({json.dumps(folder + '/rows.json')})); {TIMED}\n"
        "process.stdout.write(JSON.stringify([found, seconds]));"
    )
    done = subprocess.run(["node", f"{folder}/ask.mjs"], capture_output=True, text=True, check=True)
    found, seconds = json.loads(done.stdout)
    return np.array(found), seconds


TIMED = """let found, seconds = Infinity;
for (let i = 0; i < 3; i++) {
  const start = performance.now();
  found = rows.map((row) => m.probabilities(row));
  seconds = Math.min(seconds, (performance.now() - start) / 1000);
}"""


def time_chromium(browser: Any, module: str, rows: list[dict[str, Any]]) -> tuple[np.ndarray, float]:
    page = browser.new_page()
    page.add_script_tag(type="module", content=module.replace("export default new Scorer", "window.m = new Scorer"))
    page.wait_for_function("window.m !== undefined")
    found, seconds = page.evaluate(f"(rows) => {{ {TIMED}\nreturn [found, seconds]; }}", rows)
    page.close()
    return np.array(found), seconds


# -- the query written by hand ----------------------------------------------------------------------------------------


def write_by_hand(database: str, connection: Any, X: pd.DataFrame, y: np.ndarray) -> str:
    """Textbook naive Bayes as one writes it: logs of labels are joined, numbers have a normal density."""
    classes = sorted(set(y.tolist()))
    real, text = ("float8", "text") if database == "PostgreSQL" else ("DOUBLE", "VARCHAR")
    mark, greatest = ("%s" if database == "PostgreSQL" else "?"), ("max" if database == "SQLite" else "greatest")
    sums, joins = [[repr(math.log((y == c).mean()))] for c in classes], []
    for j, name in enumerate(X):
        if X[name].dtype.kind == "f":
            for own, c in zip(sums, classes, strict=True):
                cells = X.loc[y == c, name]
                mean, spread = float(cells.mean()), float(cells.var(ddof=0)) + 1e-9
                away = f"(r.{quote(name)}-({mean!r}))"
                own.append(f"coalesce({-0.5 * math.log(2 * math.pi * spread)!r}-{away}*{away}/{2 * spread!r},0)")
            continue
        counts = pd.crosstab(X[name], y).reindex(columns=classes, fill_value=0)
        logs = np.log((counts + 1) / (counts.sum() + len(counts)))
        connection.execute(f"DROP TABLE IF EXISTS logs{j}")
        columns = ", ".join(f"w{k} {real}" for k in range(len(classes)))
        connection.execute(f"CREATE TABLE logs{j} (label {text}, {columns})")
        lines = [(label, *row) for label, row in zip(logs.index, logs.to_numpy().tolist(), strict=True)]
        places = ", ".join([mark] * (len(classes) + 1))
        connection.cursor().executemany(f"INSERT INTO logs{j} VALUES ({places})", lines)
        joins.append(f"LEFT JOIN logs{j} ON logs{j}.label = r.{quote(name)}")
        for k, own in enumerate(sums):
            own.append(f"coalesce(logs{j}.w{k},0)")
    every = range(len(classes))
    scores = ", ".join(f"{'+'.join(own)} AS l{k}" for k, own in enumerate(sums))
    top, total = f"{greatest}({', '.join(f'l{k}' for k in every)})", "+".join(f"e{k}" for k in every)
    shifted = ", ".join(f"exp({greatest}(l{k}-top,-700)) AS e{k}" for k in every)
    return (
        f"SELECT {', '.join(f'e{k}/({total}) AS p{k}' for k in every)} FROM (SELECT {shifted} FROM (SELECT s.*, {top} "
        f'AS top FROM (SELECT {scores} FROM "rows" r {" ".join(joins)}) s) t) u'
    )


# -- the tables of results --------------------------------------------------------------------------------------------


def measure(
    name: str, databases: dict[str, Any], browser: Any, folder: str, is_timed: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each model: its name, the largest differences, and rows per second if it is timed."""
    X, y, asked = split_table(name)
    few = asked.iloc[:150].reset_index(drop=True)
    few = pd.concat([few, spoil(few)], ignore_index=True)
    many = asked.iloc[np.arange(N_TIMED if is_timed else 1) % len(asked)].reset_index(drop=True)
    for title, options in MODELS.items():
        model = pr.NaiveBayes(**options).fit(X, y)
        plan, expected = compile_plan(model), model.predict_proba(few)
        found: dict[str, Any] = {"predict": N_TIMED / best(lambda: model.predict_proba(many), 3)}  # noqa: B023 - called at once
        for database, connection in databases.items():
            query = write_sql(plan, "rows", DIALECTS[database])
            fill_table(database, connection, few)
            answers = ask_database(connection, query, len(model.classes_))
            fill_table(database, connection, many)
            seconds = time_query(connection, query)
            by_hand = time_query(connection, write_by_hand(database, connection, X, y))
            found[database] = np.abs(answers - expected).max(), N_TIMED / seconds, N_TIMED / by_hand
        session = onnxruntime.InferenceSession(pr.to_onnx(model).SerializeToString())
        answers, inputs = session.run(["probabilities"], make_inputs(plan, few))[0], make_inputs(plan, many)
        seconds = best(lambda: session.run(["probabilities"], inputs), 3)  # noqa: B023 - called at once
        found["onnxruntime"] = np.abs(answers - expected).max(), N_TIMED / seconds
        module = write_javascript(plan)
        for runtime, ask in (("Node.js", partial(time_node, folder)), ("Chromium", partial(time_chromium, browser))):
            answers, _ = ask(module, list_rows(few))
            _, seconds = ask(module, list_rows(many))
            found[runtime] = (
                np.abs(answers - expected).max(),
                N_TIMED / max(seconds, 1e-6),
            )  # browsers' clocks are coarse
        yield title, found


def time_query(connection: Any, query: str) -> float:
    """Seconds until all answers are fetched: the fastest of three runs, or of those that begin within ten seconds."""
    seconds: list[float] = []
    while len(seconds) < 3 and sum(seconds) < 10:
        seconds.append(best(lambda: connection.execute(query).fetchall(), 1))
    return min(seconds)


def format_lines(name: str, title: str, found: dict[str, Any]) -> tuple[str, str]:
    differences = " | ".join(f"{found[runtime][0]:.0e}" for runtime in RUNTIMES)
    speeds = [f"{found['predict']:,.0f}"]
    speeds += [f"{found[d][1]:,.0f} ({found[d][2]:,.0f})" for d in DATABASES]
    speeds += [f"{found[r][1]:,.0f}" for r in RUNTIMES[len(DATABASES) :]]
    return f"| {name} | {title} | {differences} |", f"| {name} | {title} | {' | '.join(speeds)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--untimed", action="store_true", help="only the differences")
    parser.add_argument("--write", action="store_true")
    given, differences, speeds = parser.parse_args(), [], []
    warnings.simplefilter("ignore")
    with open_databases() as databases, sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-background-networking"]
        )
        for name in given.tables or [*GIVEN, *UNSEEN]:
            for title, found in measure(name, databases, browser, folder, not given.untimed):
                difference, speed = format_lines(name, title, found)
                differences.append(difference)
                speeds += [] if given.untimed else [speed]
                print(difference, "" if given.untimed else speed, sep="\n", flush=True)
            if given.write:
                RESULTS.write_text(
                    PAGE.format(*(merge_lines(k, lines) for k, lines in enumerate((differences, speeds))))
                )
        browser.close()


def merge_lines(k: int, lines: list[str]) -> str:
    """The lines of the k-th table of results, with those of tables that were not measured now."""
    pages = RESULTS.read_text().split("\n## ")[1:] if RESULTS.exists() else ["", ""]
    known = [line for line in pages[k].splitlines() if line.startswith("| ")][1:]
    found = {tuple(line.split(" | ")[:2]): line for line in [*known, *lines]}
    head = ["table", "model", *["predict"] * k, *RUNTIMES]
    order = sorted(found, key=lambda key: [*GIVEN, *UNSEEN].index(key[0].removeprefix("| ")))
    rule = "|---" * len(head) + "|"
    return "\n".join([f"| {' | '.join(head)} |", rule, *(found[key] for key in order)])


PAGE = f"""# Exported models

`python benchmarks/exports.py --write`: two thirds of the rows of each table are learned, by the default model and by
plain naive Bayes (`calibrate=False`). Nothing was mended by means of {", ".join(UNSEEN)}.

## Largest difference from `predict_proba`

Of up to 300 rows: 150 that were not learned, as they are, and again with a third of the cells missing, new or extreme
({", ".join(map(str, EXTREME))}).

{{}}

## Rows per second

{N_TIMED:,} rows, all answers fetched, the fastest of three runs (of a query, of those that begin within ten seconds);
JavaScript answers one row at a time. In parentheses a query written by hand: textbook naive Bayes, for each column of
labels a join with a table of logs, for numbers the normal density. PostgreSQL runs with `jit = off`; DuckDB plans a
query for most of the time, whatever the number of rows.

{{}}
"""

if __name__ == "__main__":
    main()
