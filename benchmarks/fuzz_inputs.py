"""Made-up inputs for the library: every call answers or raises one of Priory's own errors, on one line; nothing aborts.

    python benchmarks/fuzz_inputs.py [--runs 1000] [--seed 0] [--case 17] [--write]

Each case is an estimator with made-up parameters, made-up tables, labels and weights (many of them broken on purpose:
sparse matrices with wrong index arrays, double columns, texts that are not UTF-8, mixed types, infinities, dates), and
a few calls. The cases run in another process, so that an abort is noticed and named. `--case` runs one case here, with
the traceback. `--write` writes benchmarks/results/fuzz_inputs.md. The exit code is 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

import priory as pr
from priory import naive_bayes as nb
from priory.errors import PrioryError

RESULTS = Path(__file__).parent / "results" / "fuzz_inputs.md"
MAX_MESSAGE = 600  # characters of a message that is still one line for people
ODD_CELLS: list[Any] = [
    *(None, float("nan"), float("inf"), -0.0, 5e-324, 1e308, 2**53 + 1, 10**400, True, "", "a", "\ud800", b"x", 1j),
    *(datetime.date(2024, 1, 1), decimal.Decimal("1.5"), decimal.Decimal("NaN"), pd.NA, pd.NaT, [1], {"a": 1}, object),
    np.float32(3),
]
WORDS = ["cash", "win", "now", "lunch", "noon", "été", "Σίσυφος", "日本語", "\0", "😀"]
ESTIMATORS: list[tuple[Callable[..., Any], dict[str, list[Any]]]] = [
    (
        pr.NaiveBayes,
        {
            "families": ["auto", "gaussian", "categorical", "text", "odd", {"a": "poisson"}, 5, {"zz": "gamma"}],
            "alpha": [None, 1.0, 0, -1, "odd", float("nan")],
            "estimate": ["bayes", "ml", "odd"],
            "class_prior": ["estimated", "uniform", [0.5, 0.5], {"x": 2}, "odd"],
            "calibrate": ["loo", False],
        },
    ),
    (
        pr.TextClassifier,
        {
            "model": ["binary", "multinomial", "bernoulli", "odd"],
            "alpha": [1.0, 0.0, -1, "evidence", "odd"],
            "buckets": [None, 8, 0, -1, 10**12],
            "ngram_range": [(1, 1), (1, 2), (2, 1), (0, 0)],
            "vocabulary": [None, ["cash"], [], [1]],
        },
    ),
    (nb.GaussianNB, {"priors": [None, [0.5, 0.5], [2, 3]]}),
    (nb.MultinomialNB, {"alpha": [1.0, 0.0, -1]}),
    (nb.ComplementNB, {"alpha": [1.0, 0.0]}),
    (nb.BernoulliNB, {"binarize": [0.0, None, -1, 2.5]}),
    (nb.CategoricalNB, {"min_categories": [None, 3, -1]}),
    (nb.GaussianBayes, {}),
    (pr.BayesianLinearRegression, {"prior": ["evidence", 1.0, -1, "odd"]}),
    (pr.BayesianLogisticRegression, {"method": ["laplace", "map", "odd"]}),
    (pr.MDLDiscretiser, {}),
    (pr.MDLTreeClassifier, {}),
]


class Maker:
    """Makes parameters, tables, labels and weights by the random numbers of one case."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_rows = int(self.rng.integers(0, 12))
        self.n_columns = int(self.rng.integers(0, 4))

    def pick(self, options: list[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def parameters(self, choices: dict[str, list[Any]]) -> dict[str, Any]:
        return {name: self.pick(values) for name, values in choices.items() if self.chance(0.15)}

    def cells(self) -> list[Any]:
        """A column: numbers, labels or texts, with odd cells in some."""
        kind = self.pick(["number", "count", "label", "text"])
        make: dict[str, Callable[[], Any]] = {
            "number": lambda: float(self.rng.normal()),
            "count": lambda: int(self.rng.integers(0, 5)),
            "label": lambda: self.pick(["red", "green", "blue"]),
            "text": lambda: " ".join(self.pick(WORDS) for _ in range(int(self.rng.integers(0, 6)))),
        }
        column = [make[kind]() for _ in range(self.n_rows)]
        while self.chance(0.3) and column:
            column[int(self.rng.integers(len(column)))] = self.pick(ODD_CELLS)
        return column

    def table(self) -> Any:
        """A table, a list or something else; where another library does not even make it, a list."""
        make = self.pick([self.array, self.frame, self.rows, self.sparse, self.texts, self.arrow, self.nonsense])
        try:
            return make()
        except (ValueError, TypeError, OverflowError, IndexError):
            return self.cells()

    def good_table(self, kind: Callable[..., Any]) -> Any:
        """A table that the estimator takes, so that what comes after ``fit`` is tried too."""
        self.n_rows = max(self.n_rows, 4)
        if kind is pr.TextClassifier:
            return [" ".join(self.pick(WORDS) for _ in range(5)) for _ in range(self.n_rows)]
        if kind is pr.NaiveBayes and self.chance(0.7):
            return {
                "a0": self.rng.integers(0, 4, self.n_rows),
                "b1": [self.pick(["red", "green"]) for _ in range(self.n_rows)],
                "c2": self.rng.normal(size=self.n_rows),
            }
        return self.rng.integers(0, 4, (self.n_rows, max(self.n_columns, 1)))

    def array(self) -> Any:
        kind = self.pick(["f8", "f4", "i8", "u8", "?", "O", "U3", "c16", "M8[s]", "f2", "S3"])
        shape = self.pick([(self.n_rows, self.n_columns), (self.n_rows,), (self.n_rows, self.n_columns, 2), ()])
        values = self.rng.integers(0, 4, shape)
        if self.chance(0.2) and kind in ("f8", "f4"):
            values = np.where(self.rng.random(shape) < 0.2, self.pick([np.nan, np.inf, 1e300, -1.0]), values)
        found = np.asarray(values).astype(kind)
        return np.ma.MaskedArray(found, mask=self.rng.random(shape) < 0.3) if self.chance(0.1) else found

    def columns(self) -> dict[str, list[Any]]:
        return {self.pick(["a", "b", "c", "", "é"]) + str(j): self.cells() for j in range(self.n_columns)}

    def frame(self) -> Any:
        columns = self.columns()
        if self.chance(0.2):
            columns = dict.fromkeys(columns, pd.array(self.rng.integers(0, 3, self.n_rows)))
        found = pd.DataFrame(columns)
        if self.chance(0.2):
            found.columns = [self.pick(["a", "b", 1, None, "\ud800"]) for _ in found.columns]
        if self.chance(0.2) and found.shape[1]:
            name, kind = found.columns[0], self.pick(["category", "string", "Sparse", "datetime64[ns]", "boolean"])
            try:
                return found.assign(**{str(name): found.iloc[:, 0].astype(kind)})
            except (ValueError, TypeError, OverflowError):
                return found
        if self.chance(0.3):  # polars panics over cells that it does not know
            plain = {"a": self.rng.normal(size=self.n_rows), "b": ["red"] * self.n_rows}
            return self.pick([pl.DataFrame, pl.LazyFrame])(plain)
        return found

    def rows(self) -> Any:
        columns = self.columns()
        shown = self.pick([0, 1, 2])
        if shown == 0:
            return columns
        pairs = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        rows: list[Any] = pairs if shown == 1 else [list(row.values()) for row in pairs]
        if self.chance(0.2) and rows:
            rows[0] = self.pick([None, [], {}, 5, "text", rows[0]])
        return rows

    def sparse(self) -> Any:
        rows, columns = self.n_rows, max(self.n_columns, 1)
        dense = self.rng.integers(0, 3, (rows, columns)) * (self.rng.random((rows, columns)) < 0.5)
        matrix = self.pick([sparse.csr_array, sparse.csr_matrix])(dense.astype(self.pick(["f8", "i8", "f4"])))
        matrix = matrix.asformat(self.pick(["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]))
        for name in ("indptr", "indices", "row", "col", "data"):
            if self.chance(0.3) and isinstance(getattr(matrix, name, None), np.ndarray):
                self.break_array(matrix, name)
        return matrix

    def break_array(self, matrix: Any, name: str) -> None:
        values = np.array(getattr(matrix, name))
        deed = self.pick(["cell", "short", "long", "kind", "negative", "huge"])
        if deed in ("cell", "negative", "huge") and values.size:
            bad = {"cell": 7, "negative": -3, "huge": 2**31 - 1}[deed]
            values.flat[int(self.rng.integers(values.size))] = bad
        elif deed == "short":
            values = values[:-1]
        elif deed == "long":
            values = np.append(values, values[-1:])
        elif deed == "kind":
            values = values.astype(float) + 0.5
        try:
            setattr(matrix, name, values)
        except (ValueError, TypeError):  # SciPy refuses it: nothing to try
            return

    def texts(self) -> Any:
        found = [self.pick(["win cash", "lunch", b"caf\xe9", "", "x" * 50, *ODD_CELLS]) for _ in range(self.n_rows)]
        if self.chance(0.7):
            found = [str(text).encode("utf-8", "replace").decode() for text in found]
        return self.pick([list, tuple, np.array, pd.Series, iter])(found) if self.chance(0.9) else "one text"

    def arrow(self) -> Any:
        offsets = pa.py_buffer(np.arange(self.n_rows + 1, dtype=np.int32))
        raw = bytes(self.rng.choice([97, 98, 255], self.n_rows, p=[0.6, 0.3, 0.1]).astype(np.uint8))
        texts = pa.Array.from_buffers(pa.string(), self.n_rows, [None, offsets, pa.py_buffer(raw)])
        numbers = pa.array(self.rng.normal(size=self.n_rows))
        days = pa.array([0] * self.n_rows, self.pick([pa.date32(), pa.timestamp("s"), pa.time32("s"), pa.int64()]))
        columns = [self.pick([texts, texts.dictionary_encode(), numbers, days]) for _ in range(self.n_columns)]
        if self.chance(0.2):
            return texts
        return pa.table(columns, names=[self.pick(["a", "b", "c"]) + str(j) for j in range(len(columns))])

    def nonsense(self) -> Any:
        return self.pick(
            [None, 5, "text", object(), lambda: 0, {"a": 5}, {"a": [1], "b": [1, 2]}, [[1, 2], [3]], [[[]]]]
        )

    def labels(self) -> Any:
        """Labels that fit the rows more often than not."""
        n = self.n_rows if self.chance(0.85) else int(self.rng.integers(0, 9))
        kind = self.pick(["str", "int", "bool", "float", "odd", "one"])
        values: list[Any] = [
            {"str": "xy"[i % 2], "int": i % 3, "bool": i % 2 == 0, "float": i / 3, "odd": i % 2, "one": "x"}[kind]
            for i in range(n)
        ]
        if kind == "odd" and values:
            values[int(self.rng.integers(len(values)))] = self.pick(ODD_CELLS)
        if self.chance(0.1):
            return self.pick([None, 5, "text", values[:1] * 3, [values], pd.DataFrame({"y": values})])
        shape = self.pick([list, np.array, pd.Series, tuple, lambda v: pa.array([str(x) for x in v])])
        try:
            return shape(values)
        except (ValueError, TypeError, OverflowError, UnicodeError, pa.ArrowException):
            return values

    def weights(self) -> Any:
        if self.chance(0.8):
            return None
        good = self.rng.random(self.n_rows)
        return self.pick([good, good * 0, -good, good[:1], good * np.nan, "odd", [[1.0]], 5, good * 1e308, list(good)])


def run_case(seed: int) -> list[str]:
    """Make a case and run its calls; what each of them led to, and the first thing that went wrong."""
    maker, found = Maker(seed), []
    kind, choices = maker.pick(ESTIMATORS)
    good = [maker.good_table(kind)] if maker.chance(0.6) else []
    tables, labels = [*good, *(maker.table() for _ in range(3))], [maker.labels() for _ in range(2)]
    if good:
        labels[0] = [i % 2 for i in range(maker.n_rows)]
    weights = maker.weights()

    def ask(name: str, call: Callable[[], Any]) -> Any:
        try:
            answer = call()
        except PrioryError as error:
            message = str(error)
            if "\n" in message or len(message) > MAX_MESSAGE or not message:
                raise AssertionError(f"{name}: the message is not one line: {message[:200]!r}") from error
            found.append("refused")
            return None
        found.append("answered")
        return answer

    model = kind(**maker.parameters(choices))
    takes_weights = kind is not pr.MDLDiscretiser
    fitted = ask("fit", lambda: model.fit(tables[0], labels[0], *([weights] if takes_weights else [])))
    if maker.chance(0.1):
        ask("audit", lambda: pr.audit(tables[0], tables[1], target=maker.pick([labels[0], "a0", None])))
    if fitted is None:
        return found
    for table in tables:
        for name in ("predict", "predict_proba", "explain", "transform"):
            if hasattr(model, name):
                answer = ask(name, lambda name=name, table=table: getattr(model, name)(table))
                if name == "predict_proba" and answer is not None and np.isnan(np.asarray(answer)).any():
                    raise AssertionError("predict_proba answers NaN")
        for name in ("partial_fit", "forget", "refresh"):
            if hasattr(model, name) and maker.chance(0.5):
                ask(name, lambda name=name, table=table: getattr(model, name)(table, labels[1]))
    if hasattr(model, "merge"):
        other = maker.pick([model, 5, None, kind(), nb.GaussianNB().fit([[1.0], [2.0]], [0, 1])])
        if other.__class__ is not kind or other is model:
            ask("merge", lambda: model.merge(other))
    return found


def run_worker(first: int, last: int, seed: int) -> None:
    """Run cases and print for each a line of JSON: what its calls led to, or what went wrong."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for case in range(first, last):
        print(json.dumps({"case": case, "begins": True}), flush=True)
        try:
            result: dict[str, Any] = {"case": case, "found": run_case(seed * 1_000_000 + case)}
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            at = next((f for f in reversed(frames) if "priory" in f.filename), frames[-1])
            where = f"{Path(at.filename).name}:{at.lineno}"
            result = {"case": case, "wrong": f"{type(error).__name__}: {str(error)[:150]!r} ({where})"}
        print(json.dumps(result), flush=True)


def run_all(runs: int, seed: int) -> tuple[Counter[str], dict[int, str]]:
    """All cases, in processes that are started again after an abort: outcomes of calls, and what went wrong by case."""
    counts: Counter[str] = Counter()
    wrong: dict[int, str] = {}
    first = 0
    while first < runs:
        command = [sys.executable, __file__, "--worker", str(first), str(runs), "--seed", str(seed)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        for line in worker.stdout:
            if not line.startswith('{"case"'):  # LAPACK prints too
                continue
            result = json.loads(line)
            first = result["case"] + 1
            counts.update(result.get("found", []))
            if "wrong" in result:
                wrong[result["case"]] = result["wrong"]
            elif "begins" in result:
                wrong[result["case"]] = "the process ended"
            else:
                wrong.pop(result["case"], None)
        if worker.wait():
            wrong[first - 1] = f"the process ended with exit code {worker.returncode}"
    return counts, wrong


def write_results(runs: int, seed: int, counts: Counter[str], wrong: dict[int, str]) -> None:
    RESULTS.write_text(
        f"""# Made-up inputs

`python benchmarks/fuzz_inputs.py --runs {runs} --seed {seed} --write`: {runs:,} cases, each an estimator with made-up
parameters, tables, labels and weights, many of them broken on purpose. A call answers, or raises one of Priory's own
errors on one line. Anything else is counted as wrong: another error, NaN as a probability, or a process that ends.

| | |
|---|---|
| cases | {runs:,} |
| calls that were answered | {counts["answered"]:,} |
| calls that were refused in one line | {counts["refused"]:,} |
| cases that went wrong | {len(wrong):,} |
""",
        encoding="utf-8",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        run_worker(*given.worker, given.seed)
        return 0
    if given.case is not None:
        print(run_case(given.seed * 1_000_000 + given.case))
        return 0
    counts, wrong = run_all(given.runs, given.seed)
    for case, what in sorted(wrong.items()):
        print(f"case {case}: {what}")
    print(f"{given.runs:,} cases: {counts['answered']:,} answered, {counts['refused']:,} refused, {len(wrong):,} wrong")
    if given.write:
        write_results(given.runs, given.seed, counts, wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
