"""Drift: changed columns and tokens are named, unchanged rows give no alarm, and blocks do not matter."""

import numpy as np
import pytest

from priory import DriftMonitor, find_drift
from priory.errors import DataError

WORDS = np.array([f"w{k}" for k in range(80)])


def make_table(rows, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]).astype(object)
    return {"kept": rng.normal(size=rows), "moved": rng.normal(size=rows) + shift, "label": labels}


def make_texts(rows, seed, more=()):
    rng = np.random.default_rng(seed)
    return [" ".join([*rng.choice(WORDS, 6), *(word for word in more if rng.random() < 0.4)]) for _ in range(rows)]


def take(table, part):
    return {name: column[part] for name, column in table.items()}


def test_a_changed_column_is_named():
    found = find_drift(make_table(400, 0), make_table(400, 1, shift=0.8))
    assert found.names == ["moved"]
    assert found.lines[0].after > found.lines[0].before
    assert "moved: from" in str(found)


def test_unchanged_tables_give_no_alarm():
    alarms = sum(bool(find_drift(make_table(200, seed), make_table(300, 1000 + seed))) for seed in range(60))
    assert alarms <= 2


def test_a_new_word_is_named():
    found = find_drift(make_texts(200, 0), make_texts(200, 1, more=("crypto",)))
    assert found.names == ["crypto"]
    assert not find_drift(make_texts(200, 0), make_texts(200, 1))


def test_a_new_label_and_missing_cells_are_seen():
    before, after = {"x": ["a", "b"] * 60}, {"x": ["a", "new"] * 60}
    assert find_drift(before, after).lines[0].value in ("b", "(other)", "new")
    assert find_drift(before, {"x": ["a", None] * 60}).names == ["x"]


def test_classes_are_compared_and_columns_within_them():
    rng = np.random.default_rng(0)
    y, x = rng.integers(0, 2, 400), rng.normal(size=400)
    # the distribution of x is the same, its relation to the class is not
    before, after = {"x": x + y}, {"x": x + 1 - y}
    assert not find_drift(before, after)
    assert find_drift(before, after, y, y).names == ["x"]
    assert find_drift(before, before, y, 0 * y).names[0] == "(class)"


@pytest.mark.parametrize("step", [1, 7, 32, 500])
def test_a_change_is_found_in_any_batches(step):
    before, after = make_table(200, 1), make_table(300, 2, 1.5)
    stream = {name: np.append(before[name], after[name]) for name in before}
    monitor, found = DriftMonitor(make_table(300, 0)), None
    for start in range(0, 500, step):
        rows = take(stream, slice(start, start + step))
        one = {name: column[0] for name, column in rows.items()}
        found = found or monitor.update(one if step == 1 else rows)
    assert found.names == ["moved"]
    assert found.since in range(160, 240)


def test_after_an_alarm_the_new_rows_are_usual():
    monitor = DriftMonitor(make_table(300, 0))
    assert monitor.update(make_table(200, 1, shift=2.0))
    assert not monitor.update(make_table(600, 2, shift=2.0))
    assert monitor.update(make_table(300, 3, shift=0.0))


def test_texts_and_classes_of_a_stream():
    monitor = DriftMonitor(make_texts(150, 0), ["a", "b"] * 75)
    assert not monitor.update(make_texts(90, 1), ["a", "b"] * 45)
    found = monitor.update(make_texts(200, 2, more=("crypto",)), ["b", "c"] * 100)
    assert set(found.names) & {"crypto", "(class)"}


def test_bad_input_is_an_error_and_changes_nothing():
    monitor = DriftMonitor(make_table(100, 0))
    with pytest.raises(DataError, match="otherwise none"):
        monitor.update(make_table(10, 1), ["a"] * 10)
    with pytest.raises(DataError, match="false_alarms is 2"):
        DriftMonitor(make_table(100, 0), false_alarms=2)
    with pytest.raises(DataError, match="for each row of both"):
        find_drift(make_table(10, 0), make_table(10, 1), ["a"] * 10)
    labelled = DriftMonitor(make_table(100, 0), ["a", "b"] * 50)
    with pytest.raises(DataError, match="10 rows and 3 classes"):
        labelled.update(make_table(10, 1), ["a"] * 3)
    assert not labelled.update(make_table(64, 2), ["a", "b"] * 32)
    assert labelled.n_rows == 64
