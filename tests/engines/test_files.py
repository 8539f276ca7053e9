"""Files on a cluster: `priory train` says the same with an engine as without, and writes the same model."""

import numpy as np
import pandas as pd
import pytest

from engine_data import make_amounts, make_mixed_table, make_texts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


def write_parts(rows, folder):
    for number, part in enumerate(np.array_split(np.arange(len(rows)), 3)):
        rows.iloc[part].to_parquet(folder / f"part-{number}.parquet", index=False)


def train(run, path, target, *engine):
    """What `priory train` says, and the bytes of the model."""
    options = ("--target", target, "-o", "model.priory", "--force", "--skip-unlabelled", *engine)
    code, said, notes = run("train", path, *options)
    assert code == 0, notes
    with open("model.priory", "rb") as file:
        return said, notes, file.read()


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        (make_mixed_table().assign(label=lambda rows: rows["label"].where(rows.index % 50 > 0)), "label"),
        (make_texts(), "label"),
        (make_amounts(), "y"),
    ],
    ids=["mixed table", "text", "regression"],
)
def test_dask_says_what_one_process_says(run, here, cluster, rows, target):
    write_parts(rows, here)
    expected = train(run, "part-*.parquet", target)
    assert (
        train(run, "part-*.parquet", target, "--engine", "dask", "--scheduler", cluster.scheduler_address) == expected
    )


def test_spark_says_what_one_process_says(run, here, spark_settings):
    write_parts(make_texts(), here)
    expected = train(run, "part-*.parquet", "label")
    assert train(run, "part-*.parquet", "label", "--engine", "spark", "--master", "local[2]")[::2] == expected[::2]


def test_parquet_is_read_from_urls(run, here):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'priory[dask]'")
    write_parts(make_texts(), here)
    expected = train(run, "part-*.parquet", "label")
    memory = fsspec.filesystem("memory")
    memory.put(str(here) + "/*.parquet", "/mail/")
    assert train(run, "memory://mail/*.parquet", "label") == expected
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'priory[dask]'")
    assert train(run, "memory://mail", "label", "--engine", "dask") == expected


def test_mistakes_are_explained(run, here):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'priory[dask]'")
    write_parts(make_texts().assign(label=pd.Series([None] * 700, dtype=object)), here)
    for given, problem in {
        ("*.parquet", "--scheduler", "127.0.0.1:1"): "--scheduler is the cluster of --engine dask; use both",
        ("*.parquet", "--engine", "dask", "--master", "local"): "--master is the cluster of --engine spark; use both",
        ("-", "--engine", "dask", "-o", "m.priory"): "give files instead of -",
        ("*.parquet", "--engine", "dask", "--skip-unlabelled"): "no rows to learn from",
        ("memory://nothing/*.parquet",): "matches no files",
    }.items():
        code, _, error = run("train", *given, "--target", "label")
        assert (code > 0, problem in error) == (True, True), error
