"""A sample that changes row by row is the one that records have."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from priory.core.content_hash import hash_value, scramble_number
from priory.model.cells import NumberCells, RowSample, finish_row_hash, hash_column_name, hash_labelled_rows
from priory.model.open_model import OpenSample

MEMORY = 6
CLASSES = np.array(["a", "b"], dtype=object)
STEPS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1), st.booleans()), max_size=60)


def sample_rows(rows, group, memory=MEMORY):
    cells = [NumberCells(np.array(rows, dtype=float).reshape(-1, 1))]
    return RowSample.of([("x",)], cells, CLASSES, np.asarray(group, dtype=np.int32), None, memory, list)[0]


def assert_same(a, b):
    assert (a.memory, a.limit) == (b.memory, b.limit)
    for name in ("hashes", "group", "weight"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist()
    assert a.blocks[0].data.tobytes() == b.blocks[0].data.tobytes()


@given(STEPS)
def test_it_is_the_sample_of_the_same_steps_on_records(steps):
    closed = sample_rows([1.0, 2.0], [0, 1])
    opened, times = OpenSample(closed), {(1, 0): 1, (2, 1): 1}
    before = closed
    for value, group, learn in steps:
        part = sample_rows([value], [group])
        row_hash = int(part.hashes[0])
        if learn:
            changes, after = opened.add(row_hash, value, group), closed + part
            times[value, group] = times.get((value, group), 0) + 1
        elif times.get((value, group), 0):
            assert opened.can_remove(row_hash)
            changes, after = opened.remove(row_hash), closed - part
            times[value, group] -= 1
        else:
            assert opened.can_remove(row_hash) == (row_hash >= opened.limit)
            continue
        assert changes == after.count_changes(closed)
        closed = after
        assert_same(opened.close(sample_rows), closed)
    assert opened.closed is before


def test_the_hash_of_one_row_is_that_of_many():
    cells = [NumberCells(np.array([[3.0]]))]
    whole = int(hash_labelled_rows([("x",)], cells, CLASSES, np.array([1]))[0])
    one = cells[0].hash_columns()[0] ^ np.uint64(hash_column_name("x"))
    assert finish_row_hash(hash_value("b"), scramble_number(int(one[0]))) == whole
