"""Sums by group: time and bits of priory.exact.group_sums, polars, DuckDB and pandas.

python benchmarks/group_sums.py [rows]      # writes benchmarks/results/group_sums.md
"""

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import clock
import priory as pr

RESULTS = Path(__file__).parent / "results" / "group_sums.md"
GROUPS, REPEATS, ORDERS = 100, 3, 5


def make_table(rows: int, order: int) -> pa.Table:
    """Numbers of very different sizes, in one of several orders."""
    draw = np.random.default_rng(0)
    table = pa.table(
        {"g": draw.integers(0, GROUPS, rows), "v": draw.lognormal(0, 5, rows) * draw.choice([-1, 1], rows)}
    )
    return table.take(np.random.default_rng(order).permutation(rows))


def sum_by_duckdb(rows: pa.Table) -> Any:
    query = "SELECT g, sum(v) AS v FROM rows GROUP BY g ORDER BY g"
    return duckdb.sql(query).to_arrow_table().column("v").to_numpy()


SUMS: dict[str, Callable[[Any], Any]] = {
    "priory.exact.group_sums": lambda rows: pr.exact.group_sums(rows, "g").column("v").to_numpy(),
    "polars": lambda rows: rows.group_by("g").agg(pl.col("v").sum()).sort("g")["v"].to_numpy(),
    "DuckDB": sum_by_duckdb,
    "pandas": lambda rows: rows.groupby("g")["v"].sum().to_numpy(),
}
READERS: dict[str, Callable[[pa.Table], Any]] = {"polars": pl.from_arrow, "pandas": lambda rows: rows.to_pandas()}


def main(rows: int = 2_000_000) -> None:
    """Measure and write the table."""
    tables = [make_table(rows, order) for order in range(ORDERS)]
    frame = tables[0].to_pandas()
    exact = np.array([math.fsum(own) for _, own in frame.groupby("g")["v"]])
    lines = []
    for name, run in SUMS.items():
        ready = [READERS.get(name, lambda rows: rows)(table) for table in tables]
        found = [run(one) for one in ready]
        seconds = clock.best(lambda run=run, ready=ready: run(ready[0]), REPEATS, time.process_time)
        distinct = max(len({answer[g].tobytes() for answer in found}) for g in range(GROUPS))
        right = np.mean([answer == exact for answer in found])
        lines.append(f"| {name} | {seconds:.3f} | {distinct} | {right:.0%} |")
        print(lines[-1], flush=True)
    versions = f"polars {pl.__version__}, DuckDB {duckdb.__version__}, pandas {pd.__version__}"
    RESULTS.write_text(f"""# Sums by group

`python benchmarks/group_sums.py {rows}`: {rows:,} doubles in {GROUPS} groups, in {ORDERS} orders. Seconds of
processor time, the least of {REPEATS} runs; the largest number of different answers that a group got from the orders;
and the share of answers that are the double nearest to the exact sum. {versions}.

| | seconds | different answers | right to the last bit |
|---|---|---|---|
{chr(10).join(lines)}
""")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
