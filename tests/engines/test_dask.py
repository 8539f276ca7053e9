"""Dask: any partitioning on any scheduler gives the bytes of one process, workers that die included."""

import os
import sys

import numpy as np
import pandas as pd
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'priory[dask]'")
pytest.importorskip("distributed", reason="Dask's scheduler is not installed: pip install 'priory[dask]'")

import cloudpickle  # noqa: E402
import dask.bag as db  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

import priory  # noqa: E402
from engine_data import (  # noqa: E402
    TASKS,
    fit_in_one_process,
    make_amounts,
    make_dated_table,
    make_mixed_table,
    make_texts,
    read_bytes,
)
from priory.errors import DataError, KindError, NotLearnedError  # noqa: E402
from priory.workflows import dask as engine  # noqa: E402

pytestmark = [
    pytest.mark.dask,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import the tests


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def partition(rows, n_partitions, seed=None):
    shuffled = rows if seed is None else rows.sample(frac=1, random_state=seed)
    return dd.from_pandas(shuffled, npartitions=n_partitions, sort=False)


@pytest.mark.parametrize("n_partitions", [1, 2, 7, 100])
@pytest.mark.parametrize("task", TASKS)
def test_any_partitioning_gives_the_bytes_of_one_process(task, n_partitions, tmp_path):
    make_model, make_rows, target = TASKS[task]
    model = engine.fit(make_model(), partition(make_rows(), n_partitions, seed=n_partitions), target=target)
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process(task), tmp_path)


@pytest.mark.parametrize("task", TASKS)
def test_a_cluster_gives_the_bytes_of_one_process(task, cluster, tmp_path):
    make_model, make_rows, target = TASKS[task]
    with Client(cluster):
        model = engine.fit(make_model(), partition(make_rows(), 7, seed=0), target=target)
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process(task), tmp_path)


def test_a_worker_that_is_killed_does_not_change_the_model(tmp_path):
    mark = str(tmp_path / "killed")

    def kill_once(rows):
        if len(rows) and not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(1)
        return rows

    rows = partition(make_texts(), 6)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs="CRITICAL",
        ) as fragile,
        Client(fragile),
    ):
        model = engine.fit(priory.TextClassifier(), rows.map_partitions(kill_once, meta=rows._meta), target="label")
    assert os.path.exists(mark)
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("text"), tmp_path)


def test_empty_partitions_are_skipped(tmp_path):
    rows = partition(make_mixed_table(), 10)
    none = rows.map_partitions(lambda part: part.iloc[:0], meta=rows._meta)
    model = engine.fit(priory.NaiveBayes(), dd.concat([none, rows, none]), target="label")
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("mixed table"), tmp_path)


def test_columns_that_hold_different_kinds_are_named():
    parts = [pd.DataFrame({"size": [value] * 3, "y": [0, 1, 1]}, dtype=object) for value in (1, "small")]
    with dask.config.set({"dataframe.convert-string": False}):
        rows = dd.from_map(lambda number: parts[number], [0, 1], meta=parts[0].iloc[:0])
        with pytest.raises(KindError, match="column 'size' holds numbers in one partition and labels in another"):
            engine.fit(priory.NaiveBayes(), rows, target="y")


def test_a_bag_of_pairs_is_texts_and_labels(tmp_path):
    rows = make_texts()
    bag = db.from_sequence(list(zip(rows["text"], rows["label"], strict=True)), npartitions=5)
    model = engine.fit(priory.TextClassifier(), bag)
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("text"), tmp_path)


def test_a_bag_of_dicts_is_a_table(tmp_path):
    bag = db.from_sequence(make_amounts().to_dict("records"), npartitions=3)
    model = engine.fit(priory.BayesianLinearRegression(), bag, target="y")
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("regression"), tmp_path)


def test_parquet_is_read_from_any_url(tmp_path):
    for number, part in enumerate(np.array_split(np.arange(700), 3)):
        make_mixed_table().iloc[part].to_parquet(f"memory://engines/{number}.parquet", index=False)
    model = engine.fit(priory.NaiveBayes(), dd.read_parquet("memory://engines/*.parquet"), target="label")
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("mixed table"), tmp_path)


def test_weights_are_a_column(tmp_path):
    rows = make_mixed_table().assign(times=np.arange(len(make_mixed_table())) % 3 + 1)
    model = engine.fit(priory.NaiveBayes(), partition(rows, 4), target="label", sample_weight="times")
    whole = priory.NaiveBayes().fit(rows.drop(columns=["label", "times"]), rows["label"], sample_weight=rows["times"])
    assert read_bytes(model, tmp_path) == read_bytes(whole, tmp_path)


@pytest.mark.parametrize("task", TASKS)
def test_forgetting_is_never_having_seen(task, tmp_path):
    make_model, make_rows, target = TASKS[task]
    model = engine.fit(make_model(), partition(make_rows(), 3), target=target)
    engine.forget(model, partition(make_rows().iloc[500:], 4), target=target)
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process(task, slice(500)), tmp_path)


def test_what_was_not_learned_cannot_be_forgotten():
    model = fit_in_one_process("text")
    strange = pd.DataFrame({"text": ["quite unheard of"], "label": ["ham"]})
    with pytest.raises(NotLearnedError, match="was not learned, or not this often; forget only rows that were learned"):
        engine.forget(model, partition(strange, 1), target="label")


def test_answers_are_those_of_the_model_and_computed_when_asked_for():
    rows = make_mixed_table()
    model = fit_in_one_process("mixed table")
    frame = partition(rows, 5)
    answered = engine.predict_proba(model, engine.predict(model, frame))
    assert list(answered.columns) == [*rows.columns, "prediction", "probability_ham", "probability_spam"]
    table = answered.compute().sort_index()
    features = rows.drop(columns="label")
    assert (table["prediction"].to_numpy() == model.predict(features)).all()
    np.testing.assert_allclose(table[["probability_ham", "probability_spam"]], model.predict_proba(features))


def test_dates_are_answered_scored_and_forgotten(tmp_path):
    rows, model = make_dated_table(), fit_in_one_process("dates")
    features = rows.drop(columns="late")
    answered = engine.predict_proba(model, partition(rows, 5)).compute().sort_index()
    np.testing.assert_allclose(answered["probability_yes"], model.predict_proba(features)[:, 1])
    scores = engine.evaluate(model, partition(rows, 4, seed=3), target="late")
    assert scores.log_loss == model.evaluate(features, rows["late"]).log_loss
    engine.forget(model, partition(rows.iloc[500:], 3), target="late")
    assert read_bytes(model, tmp_path) == read_bytes(fit_in_one_process("dates", slice(500)), tmp_path)


def test_dates_in_one_partition_and_strings_in_another_are_refused():
    parts = [pd.DataFrame({"when": cells, "y": ["a", "b"]}) for cells in ([pd.Timestamp("2024-01-01")] * 2, ["x", "y"])]
    frame = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].astype(object), verify_meta=False)
    with pytest.raises(KindError, match="column 'when' holds dates in one partition and labels in another"):
        engine.fit(priory.NaiveBayes(), frame, target="y")


def test_regressions_answer_numbers():
    rows, model = make_amounts(), fit_in_one_process("regression")
    table = engine.predict(model, partition(rows, 3)).compute().sort_index()
    np.testing.assert_allclose(table["prediction"], model.predict(rows[["a", "b", "c"]]))


@pytest.mark.parametrize("n_partitions", [1, 6])
def test_scores_are_those_of_one_process(n_partitions):
    model, rows = fit_in_one_process("mixed table"), make_mixed_table()
    scores = engine.evaluate(model, partition(rows, n_partitions, seed=3), target="label")
    assert scores.log_loss == model.evaluate(rows.drop(columns="label"), rows["label"]).log_loss


def test_estimators_run_under_joblib_with_the_dask_backend(cluster):
    import joblib
    from sklearn.model_selection import cross_val_score

    rows = make_mixed_table()[["size", "links", "label"]]
    with Client(cluster), joblib.parallel_config("dask"):
        scores = cross_val_score(priory.NaiveBayes(), rows[["size", "links"]], rows["label"], cv=3, n_jobs=2)
    expected = cross_val_score(priory.NaiveBayes(), rows[["size", "links"]], rows["label"], cv=3)
    assert scores.tolist() == expected.tolist()


def test_mistakes_are_explained():
    rows = partition(make_texts(), 2)
    with pytest.raises(DataError, match="which column is to be predicted"):
        engine.fit(priory.TextClassifier(), rows)
    with pytest.raises(DataError, match=r"the table has no column 'lable' \(did you mean 'label'\?\)"):
        engine.fit(priory.TextClassifier(), rows, target="lable")
    with pytest.raises(DataError, match="the table has a column 'label' already; give another name"):
        engine.predict(fit_in_one_process("text"), rows, name="label")
