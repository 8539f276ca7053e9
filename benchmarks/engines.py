"""Dask and Spark against one process, MLlib and dask-ml: seconds, memory of the driver, one worker and two.

    python benchmarks/engines.py [--copies 8] [--rows 10000000] [--engine Dask] [--engine Spark] [--write]

`--write` writes benchmarks/results/engines.md. Each measurement is a process of its own, so that memory is its own, and
is timed after a small warm-up: starting workers and importing are not in it. All models are without corrections, which
are derived on the driver from a sample and cost the same everywhere. Clusters listen to 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import datasets
from priory import NaiveBayes, TextClassifier
from priory.core.sharding import use_one_thread
from priory.learning.counting import add_parts

RESULTS = Path(__file__).parent / "results" / "engines.md"
PEERS = {"Dask": "dask-ml", "Spark": "MLlib"}
FILES, COLUMNS = 16, 10
WORD_FILES, WORDS_PER_FILE = 16, 250_000
MAX_TOKENS, BUCKETS = 50_000, 1 << 16
MIN_SECONDS_TIMED = 10.0  # a run is repeated, up to three times, until they took this long together
MAX_SECONDS = 240.0  # for one measurement, with its start and warm-up
SPARK_SETTINGS = (
    "--conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1 --conf spark.ui.enabled=false "
    "--conf spark.ui.showConsoleProgress=false --conf spark.log.level=OFF --conf spark.driver.memory=2g pyspark-shell"
)


# -- data --------------------------------------------------------------------------------------------------------------


def write_files(folder: Path, copies: int, rows: int) -> None:
    """Texts, a table of numbers and texts of words that hardly occur twice, in Parquet files of a few partitions."""
    found = datasets.text("imdb")
    if found is None:
        raise SystemExit("the IMDB texts are not there; see PRIORY_DATA")
    texts = pd.DataFrame({"text": found[0] * copies, "label": found[1] * copies})
    random = np.random.default_rng(0)
    for number in range(FILES):
        for kind in ("texts", "table"):
            (folder / kind).mkdir(exist_ok=True)
        texts.iloc[number::FILES].to_parquet(folder / "texts" / f"{number:02}.parquet", index=False)
        label = random.integers(0, 2, rows // FILES)
        cells = random.normal(label[:, None], 1.0, (len(label), COLUMNS)).round(3)
        table = pd.DataFrame(cells, columns=[f"x{j}" for j in range(COLUMNS)]).assign(label=label)
        table.to_parquet(folder / "table" / f"{number:02}.parquet", index=False)
    (folder / "words").mkdir()
    for number in range(WORD_FILES):
        words = random.integers(0, 1 << 40, (WORDS_PER_FILE // 50, 50))
        lines = [" ".join(f"w{word:x}" for word in row) for row in words.tolist()]
        rare = pd.DataFrame({"text": lines, "label": random.choice(["a", "b"], len(lines))})
        rare.to_parquet(folder / "words" / f"{number:02}.parquet", index=False)


def make_model(kind: str) -> Any:
    if kind == "texts":
        return TextClassifier("multinomial", calibrate=False)
    return NaiveBayes("gaussian", calibrate=False) if kind == "table" else TextClassifier(calibrate=False)


# -- what is timed -----------------------------------------------------------------------------------------------------


def fit_alone(kind: str, workers: int, stack: ExitStack) -> Callable[[list[str]], object]:
    """One process that learns one file after the other, on one core."""

    def run(paths: list[str]) -> object:
        model, parts = make_model(kind), []
        with use_one_thread():
            for path in paths:
                rows = pd.read_parquet(path)
                features = rows.drop(columns="label")
                counter = model.counter().with_profiles(list(features.columns), {})
                parts.append(counter.count(features, rows["label"]))
            return model.adopt(add_parts(parts))

    return run


def open_cluster(workers: int, stack: ExitStack) -> None:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0
    )
    stack.enter_context(cluster)
    stack.enter_context(Client(cluster))


def fit_dask(kind: str, workers: int, stack: ExitStack) -> Callable[[list[str]], object]:
    import dask.dataframe as dd

    from priory.workflows import dask as engine

    open_cluster(workers, stack)
    return lambda paths: engine.fit(make_model(kind), dd.read_parquet(paths), target="label")


def fit_dask_ml(kind: str, workers: int, stack: ExitStack) -> Callable[[list[str]], object]:
    """dask-ml's Incremental, with its hashing vectoriser for texts."""
    import dask.dataframe as dd
    from dask_ml.feature_extraction.text import HashingVectorizer
    from dask_ml.wrappers import Incremental
    from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB
    from sklearn.naive_bayes import MultinomialNB

    open_cluster(workers, stack)

    def run(paths: list[str]) -> object:
        frame = dd.read_parquet(paths)
        if kind == "texts":
            bag = frame["text"].to_bag()
            x: Any = HashingVectorizer(alternate_sign=False, norm=None).fit_transform(bag).compute_chunk_sizes()
            y = frame["label"].astype(object).to_dask_array(lengths=True)
            return Incremental(MultinomialNB()).fit(x, y, classes=["neg", "pos"])
        cells = frame.to_dask_array(lengths=True)
        return Incremental(SklearnGaussianNB()).fit(cells[:, :-1], cells[:, -1].astype(int), classes=[0, 1])

    return run


def open_spark(workers: int, stack: ExitStack) -> Any:
    os.environ |= {
        "PYSPARK_SUBMIT_ARGS": SPARK_SETTINGS,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master(f"local[{workers}]").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    stack.callback(session.stop)
    return session


def fit_spark(kind: str, workers: int, stack: ExitStack) -> Callable[[list[str]], object]:
    from priory.workflows import spark as engine

    session = open_spark(workers, stack)
    return lambda paths: engine.fit(make_model(kind), session.read.parquet(*paths), target="label")


def fit_mllib(kind: str, workers: int, stack: ExitStack) -> Callable[[list[str]], object]:
    """MLlib's pipelines: tokenizer, CountVectorizer and NaiveBayes; or its Gaussian naive Bayes."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes as SparkNaiveBayes
    from pyspark.ml.feature import CountVectorizer, RegexTokenizer, StringIndexer, VectorAssembler

    session = open_spark(workers, stack)
    if kind == "texts":
        stages: list[Any] = [
            StringIndexer(inputCol="label", outputCol="class"),
            RegexTokenizer(inputCol="text", outputCol="words", pattern=r"\W+", minTokenLength=2),
            CountVectorizer(inputCol="words", outputCol="features", vocabSize=1 << 20),
            SparkNaiveBayes(labelCol="class"),
        ]
    else:
        names = [f"x{j}" for j in range(COLUMNS)]
        stages = [
            VectorAssembler(inputCols=names, outputCol="features"),
            SparkNaiveBayes(labelCol="label", modelType="gaussian"),
        ]
    return lambda paths: Pipeline(stages=stages).fit(session.read.parquet(*paths))


def fit_bounded(kind: str, workers: int, stack: ExitStack, **declared: Any) -> Callable[[list[str]], object]:
    """Words that hardly occur twice, on Dask, with a declared bound."""
    import dask.dataframe as dd

    from priory.workflows import dask as engine

    open_cluster(workers, stack)
    return lambda paths: engine.fit(TextClassifier(calibrate=False, **declared), dd.read_parquet(paths), target="label")


MEASURED: dict[str, Callable[..., Callable[[list[str]], object]]] = {
    "one process": fit_alone,
    "Dask": fit_dask,
    "dask-ml": fit_dask_ml,
    "Spark": fit_spark,
    "MLlib": fit_mllib,
    "all words": fit_bounded,
    "max_tokens": lambda *given: fit_bounded(*given, max_tokens=MAX_TOKENS),
    "buckets": lambda *given: fit_bounded(*given, buckets=BUCKETS),
}


def measure_here(name: str, kind: str, workers: int, folder: Path) -> dict[str, float]:
    """Seconds of the quickest run over all files, and the most memory that the driver's process has ever had."""
    warnings.simplefilter("ignore")
    with ExitStack() as stack:
        run = MEASURED[name](kind, workers, stack)
        paths = sorted(map(str, (folder / kind).glob("*.parquet")))
        run(paths[:2])
        before = read_peak_memory()
        times: list[float] = []
        while len(times) < 3 and sum(times) < MIN_SECONDS_TIMED:
            start = time.perf_counter()
            run(paths)
            times.append(time.perf_counter() - start)
        after = read_peak_memory()
    return {"seconds": min(times), "megabytes": after, "more_megabytes": after - before}


def read_peak_memory() -> float:
    """The most megabytes that this process has had; unlike that of getrusage, it does not include its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(name: str, kind: str, workers: int, folder: Path) -> dict[str, float]:
    """`measure_here` in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--one",
        name,
        "--kind",
        kind,
        "--workers",
        str(workers),
        "--folder",
        str(folder),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        output, errors = process.communicate(timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its workers too
        process.communicate()
        print(f"{kind:6} {name:12} {workers} took more than {MAX_SECONDS:.0f} s", flush=True)
        return {"seconds": math.inf, "megabytes": math.nan, "more_megabytes": math.nan}
    try:
        result: dict[str, float] = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"{name}, {kind}: {errors[-2000:]}") from None
    print(f"{kind:6} {name:12} {workers} {result}", flush=True)
    return result


# -- the page ----------------------------------------------------------------------------------------------------------


def describe_ratio(ratio: float) -> str:
    return f"{ratio:.1f}x" if 0 < ratio < math.inf else "one took too long"


def describe_seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < math.inf else f"more than {MAX_SECONDS:.0f}"


def write_report(folder: Path, copies: int, rows: int, engines: list[str]) -> str:
    """All measurements, as a page."""
    chosen = " ".join(f"--engine {engine}" for engine in engines)
    lines = [
        "# Engines",
        "",
        f"`python benchmarks/engines.py --copies {copies} --rows {rows} {chosen}` on {os.cpu_count()} cores: the IMDB "
        f"training texts {copies} times, and {rows:,} rows of {COLUMNS} numbers, in {FILES} Parquet files each. "
        "Seconds are of the quickest of up to three runs after a warm-up; the driver's memory is the most that its "
        "process ever had (on Spark without the JVM's).",
        "",
        "| rows | who | workers | seconds | driver, MB |",
        "|---|---|---|---|---|",
    ]
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    for kind in ("texts", "table"):
        for name, workers in [("one process", 1), *((n, w) for n in engines for w in (1, 2))]:
            found[kind, name, workers] = measure(name, kind, workers, folder)
        for engine in engines:
            found[kind, PEERS[engine], 2] = measure(PEERS[engine], kind, 2, folder)
    for (kind, name, workers), result in found.items():
        lines.append(
            f"| {kind} | {name} | {workers} | {describe_seconds(result['seconds'])} | {result['megabytes']:.0f} |"
        )
    seconds = {key: result["seconds"] for key, result in found.items()}
    lines += ["", "| ratio | texts | table |", "|---|---|---|"]
    ratios = {
        "dask-ml's Incremental : ours on Dask, two workers": (("dask-ml", 2), ("Dask", 2)),
        "MLlib : ours on Spark, two workers": (("MLlib", 2), ("Spark", 2)),
        "ours on Dask, one worker : one process": (("Dask", 1), ("one process", 1)),
        "ours on Spark, one worker : one process": (("Spark", 1), ("one process", 1)),
        "Dask, one worker : two workers": (("Dask", 1), ("Dask", 2)),
        "Spark, one worker : two workers": (("Spark", 1), ("Spark", 2)),
    }
    for title, (above, below) in ratios.items():
        if ("texts", *above) not in seconds or ("texts", *below) not in seconds:
            continue
        cells = [describe_ratio(seconds[kind, *above] / seconds[kind, *below]) for kind in ("texts", "table")]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += [
        "",
        f"Vocabularies without an end: {WORD_FILES} files, each with {WORDS_PER_FILE:,} random words that hardly occur "
        "twice, learned on Dask with two workers.",
        "",
        "| declared | seconds | driver, MB | more than after two files, MB |",
        "|---|---|---|---|",
    ]
    bounds = (
        ("all words", "nothing"),
        ("max_tokens", f"max_tokens={MAX_TOKENS:,}"),
        ("buckets", f"buckets={BUCKETS:,}"),
    )
    for name, title in bounds:
        result = measure(name, "words", 2, folder)
        cells = [describe_seconds(result["seconds"]), f"{result['megabytes']:.0f}", f"{result['more_megabytes']:.0f}"]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engine", action="append", choices=list(PEERS), help="by default both")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", choices=list(MEASURED), help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure_here(given.one, given.kind, given.workers, given.folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), given.copies, given.rows)
        page = write_report(Path(folder), given.copies, given.rows, given.engine or list(PEERS))
    print(page)
    if given.write:
        RESULTS.write_text(page)


if __name__ == "__main__":
    main()
