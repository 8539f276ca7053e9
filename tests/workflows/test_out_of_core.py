"""Learning in chunks: the same statistics, whatever the chunks and the threads."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priory import inbox
from priory.errors import DataError
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.text_classifier import TextClassifier
from priory.sources.byte_streams import read_ahead
from priory.sources.cell_parsing import RowChunk
from priory.sources.column_types import ColumnOptions, LabelReader, ModelColumns
from priory.text import sparse_counts
from priory.workflows import out_of_core as streaming
from priory.workflows.out_of_core import DrawnRows, LabelledBatch, TextWorker, count_texts, learn_tables

ROWS, LABELS = inbox()
TABLE = pa.Table.from_pylist([{**row, "label": label} for row, label in zip(ROWS, LABELS, strict=True)])
MIXED = ModelColumns({"sender": "label", "hour": "number", "links": "number", "text": "text"})
TEXT = ModelColumns({"text": "text"})
FAMILIES = {"sender": "categorical", "text": "text"}


def cut(columns, sizes):
    """The inbox in chunks of these sizes, over and over."""
    labels, at, turn = LabelReader("label", ColumnOptions("label")), 0, 0
    whole = TABLE.combine_chunks().to_batches()[0]
    while at < len(whole):
        size = sizes[turn % len(sizes)]
        chunk = RowChunk(whole.slice(at, size), None, at)
        group, chunk = labels.read(chunk)
        yield LabelledBatch(columns.read(chunk), group, labels.names)
        at, turn = at + size, turn + 1


def learn_texts(model, batches, threads):
    rows = model.counter(samples=False).rows
    parameters = rows.vocabulary.tokenizer, rows.text_model.binary, rows.parameters.max_tokens, rows.memory
    streaming.learn_texts(model, *count_texts(batches, partial(TextWorker, *parameters), threads))


@pytest.mark.slow
@given(st.lists(st.integers(1, 200), min_size=1, max_size=4), st.integers(1, 4))
def test_texts_are_counted_alike_whatever_the_chunks(sizes, threads):
    model = TextClassifier()
    learn_texts(model, cut(TEXT, sizes), threads)
    whole = TextClassifier().fit([row["text"] for row in ROWS], LABELS)
    assert model.classes_.tolist() == whole.classes_.tolist()
    assert model.class_count_.tolist() == whole.class_count_.tolist()
    assert model.vocabulary_ == whole.vocabulary_
    np.testing.assert_array_equal(model.counts_, whole.counts_)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=4), st.integers(1, 3))
def test_texts_of_many_classes_are_counted_alike_whatever_the_chunks(sizes, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_counts, "MAX_DENSE_CLASSES", 2)  # the third class of the inbox is one too many
        patch.setattr(streaming, "MAX_PARTS", 3)
        model = TextClassifier()
        learn_texts(model, cut(TEXT, sizes), threads)
        whole = TextClassifier().fit([row["text"] for row in ROWS], LABELS)
        assert model.vocabulary_ == whole.vocabulary_
        assert (model.counts_ != whole.counts_).nnz == 0
        assert model.corrections_version_ == whole.corrections_version_


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(st.integers(20, 200), min_size=1, max_size=3), st.integers(1, 3))
def test_tables_are_counted_alike_whatever_the_chunks(sizes, threads):
    model = NaiveBayes(FAMILIES)
    learn_tables(model, cut(MIXED, sizes), threads)
    whole = NaiveBayes(FAMILIES).fit(ROWS, LABELS)
    assert model.class_count_.tolist() == whole.class_count_.tolist()
    assert {name: report.family for name, report in model.schema_.items()} == {
        name: report.family for name, report in whole.schema_.items()
    }
    np.testing.assert_allclose(
        model.predict_joint_log_proba(ROWS), whole.predict_joint_log_proba(ROWS), rtol=1e-9, atol=1e-9
    )


def test_what_goes_wrong_on_a_lane_is_raised():
    def batches():
        yield from cut(TEXT, [50])
        yield LabelledBatch([b"\xff\xfe broken"], np.zeros(1, np.int32), np.array(["a"], dtype=object))

    with pytest.raises(DataError, match="not UTF-8"):
        learn_texts(TextClassifier(), batches(), 2)


def test_of_no_rows_nothing_is_learned():
    with pytest.raises(DataError, match="no rows to learn from"):
        learn_texts(TextClassifier(), iter([]), 1)


@pytest.mark.slow
@given(st.lists(st.integers(1, 300), min_size=1, max_size=5))
def test_the_sample_does_not_depend_on_the_chunks(sizes):
    def sampled(sizes):
        sample, at, turn = DrawnRows(50), 0, 0
        while at < 1000:
            size = min(sizes[turn % len(sizes)], 1000 - at)
            sample.add(pa.RecordBatch.from_pydict({"x": np.arange(at, at + size)}))
            at, turn = at + size, turn + 1
        return sample.batch().column("x").to_pylist()

    drawn = sampled(sizes)
    assert drawn == sampled([1000])
    assert len(set(drawn)) == 50


def test_samples_of_files_add_to_that_of_all():
    batches = [pa.RecordBatch.from_pydict({"x": np.arange(100) + 100 * file}) for file in range(5)]
    whole, parts = DrawnRows(50), [DrawnRows(50) for _ in batches]
    for file, batch in enumerate(batches):
        whole.add(batch, file)
        parts[file].add(batch, file)
    total = (parts[3] + parts[1]) + (parts[4] + parts[0] + parts[2])
    assert total.rows == whole.rows == 500
    assert total.batch().equals(whole.batch())


def test_the_sample_of_long_documents_is_small(monkeypatch):
    monkeypatch.setattr(streaming, "MAX_SAMPLE_BYTES", 100_000)
    sample = DrawnRows(1000)
    for _ in range(100):
        sample.add(pa.RecordBatch.from_pydict({"text": ["x" * 1000] * 50}))
    assert 20 < sample.batch().num_rows <= 100


@pytest.mark.slow
def test_the_sample_is_uniform():
    hits = np.zeros(100)
    for seed in range(300):
        sample = DrawnRows(10, seed)
        for start in range(0, 100, 7):
            sample.add(pa.RecordBatch.from_pydict({"x": np.arange(start, min(start + 7, 100))}))
        hits[sample.batch().column("x").to_numpy()] += 1
    assert abs(hits[:50].sum() - 1500) < 4 * np.sqrt(750)
    assert hits.min() > 5


def test_reading_ahead_gives_the_same_items_and_the_same_error():
    assert list(read_ahead(iter(range(100)), 3)) == list(range(100))

    def broken():
        yield 1
        raise DataError("here")

    items = read_ahead(broken())
    assert next(items) == 1
    with pytest.raises(DataError, match="here"):
        next(items)
    endless = read_ahead(iter(int, 1))
    assert next(endless) == 0
    endless.close()
