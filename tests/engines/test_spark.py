"""Spark: any partitioning gives the bytes of one process, tasks that fail included."""

import os

import numpy as np
import pyarrow as pa
import pytest

import priory
from engine_data import (
    TASKS,
    fit_in_one_process,
    make_amounts,
    make_dated_table,
    make_mixed_table,
    make_texts,
    read_bytes,
)
from priory.errors import DataError, MissingDependencyError, NotLearnedError
from priory.naive_bayes import GaussianNB
from priory.workflows import spark as engine

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def spark(spark_settings):
    """Two threads on this machine that nobody else can reach; a task may fail three times."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2,4]").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def partition(spark, rows, n_partitions):
    return spark.createDataFrame(pa.Table.from_pandas(rows, preserve_index=False)).repartition(n_partitions)


@pytest.mark.parametrize(
    ("task", "n_partitions"),
    [
        ("mixed table", 1),
        ("mixed table", 7),
        ("text", 2),
        ("text", 100),
        ("regression", 1),
        ("regression", 7),
    ],
)
def test_any_partitioning_gives_the_bytes_of_one_process(spark, task, n_partitions, tmp_path):
    make_model, make_rows, target = TASKS[task]
    rows = make_rows().sample(frac=1, random_state=n_partitions)
    model = engine.fit(make_model(), partition(spark, rows, n_partitions), target=target)
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process(task), tmp_path)


def test_a_task_that_fails_once_does_not_change_the_model(spark, tmp_path):
    mark = str(tmp_path / "failed")

    def fail_once(batches):
        for batch in batches:
            if not os.path.exists(mark):
                open(mark, "w").close()
                raise RuntimeError("this task fails once")
            yield batch

    rows = partition(spark, make_texts(), 3)
    model = engine.fit(priory.TextClassifier(), rows.mapInArrow(fail_once, rows.schema), target="label")
    assert os.path.exists(mark)
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("text"), tmp_path)


def test_drop_ins_learn_from_arrow(spark, tmp_path):
    rows = make_amounts().assign(y=make_amounts()["y"] > 0)
    model = engine.fit(GaussianNB(), partition(spark, rows, 2), target="y")
    whole = GaussianNB().fit(rows[["a", "b", "c"]], rows["y"])
    assert read_bytes(model, tmp_path) == read_bytes(whole, tmp_path)


def test_rows_from_parquet_are_forgotten_as_if_never_seen(spark, tmp_path):
    rows = make_mixed_table()
    for name, part in (("a", rows.iloc[:500]), ("b", rows.iloc[500:])):
        part.to_parquet(tmp_path / f"{name}.parquet", index=False)
    model = engine.fit(priory.NaiveBayes(), spark.read.parquet(f"{tmp_path}/*.parquet"), target="label")
    engine.forget(model, spark.read.parquet(f"{tmp_path}/b.parquet"), target="label")
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("mixed table", slice(500)), tmp_path)
    strange = partition(spark, rows.iloc[:1].assign(sender="nobody"), 1)
    with pytest.raises(NotLearnedError, match="was not learned, or not this often"):
        engine.forget(model, strange, target="label")


def test_answers_are_those_of_the_model(spark):
    rows, model = make_mixed_table().assign(row=np.arange(700)), fit_in_one_process("mixed table")
    answered = engine.predict_proba(model, engine.predict(model, partition(spark, rows, 3)))
    assert answered.columns == [*rows.columns, "prediction", "probability_ham", "probability_spam"]
    table = answered.toArrow().sort_by("row")
    features = rows.drop(columns=["label", "row"])
    assert table["prediction"].to_pylist() == model.predict(features).tolist()
    np.testing.assert_allclose(table["probability_spam"].to_numpy(), model.predict_proba(features)[:, 1])


def test_moments_are_those_of_the_time_zone_of_the_session(spark, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # Spark keeps no other
    rows = make_dated_table()
    model = engine.fit(priory.NaiveBayes(), partition(spark, rows, 3), target="late")
    there = rows.assign(**{name: rows[name].dt.tz_localize("Asia/Tokyo") for name in ("sent", "rare")})
    there["read"] = rows["read"].dt.tz_convert("Asia/Tokyo")
    whole = priory.NaiveBayes().fit(there.drop(columns="late"), rows["late"])
    assert read_bytes(model, tmp_path) == read_bytes(whole, tmp_path)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "UTC"])
def test_dates_are_answered_scored_and_forgotten(spark, zone, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", zone)
    rows, model = make_dated_table(), fit_in_one_process("dates")
    features = rows.drop(columns="late")
    answered = engine.predict_proba(model, partition(spark, rows.assign(row=np.arange(700)), 3)).toArrow()
    np.testing.assert_allclose(
        answered.sort_by("row")["probability_yes"].to_numpy(), model.predict_proba(features)[:, 1]
    )
    scores = engine.evaluate(model, partition(spark, rows, 4), target="late")
    assert scores.log_loss == model.evaluate(features, rows["late"]).log_loss
    engine.forget(model, partition(spark, rows.iloc[500:], 2), target="late")
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("dates", slice(500)), tmp_path)


def test_workers_with_another_python_are_named_in_one_line(spark, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/usr/bin/python3")
    with pytest.raises(MissingDependencyError, match="PYSPARK_PYTHON") as raised:
        engine.fit(priory.TextClassifier(), partition(spark, make_texts(), 2), target="label")
    assert "\n" not in str(raised.value)


def test_scores_are_those_of_one_process(spark):
    model, rows = fit_in_one_process("text"), make_texts()
    scores = engine.evaluate(model, partition(spark, rows, 4), target="label")
    assert scores.log_loss == model.evaluate(rows["text"], rows["label"]).log_loss


def test_errors_of_tasks_are_those_of_one_process(spark):
    rows = partition(spark, make_texts().assign(weight=-1.0), 2)
    with pytest.raises(DataError, match="weight"):
        engine.fit(priory.TextClassifier(), rows, target="label", sample_weight="weight")


def test_mistakes_are_explained(spark):
    rows = partition(spark, make_texts(), 1)
    with pytest.raises(DataError, match=r"the table has no column 'lable' \(did you mean 'label'\?\)"):
        engine.fit(priory.TextClassifier(), rows, target="lable")
