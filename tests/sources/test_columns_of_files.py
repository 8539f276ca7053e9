"""What the columns are, what their cells mean, and cells out again."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.errors import DataError
from priory.sources import ReadOptions, open_files
from priory.sources.column_inference import infer_columns
from priory.sources.column_types import ColumnOptions, LabelReader
from priory.sources.writers import escape_formulas, unescape_formula


def columns(tmp_path, text, **said):
    (tmp_path / "a.csv").write_text(text)
    rows = open_files([str(tmp_path / "a.csv")], ReadOptions())
    spoken = ColumnOptions(target="y", **said)
    chunk = next(rows.read_chunks(rows.names))
    found = infer_columns(chunk, spoken.find_features(rows), spoken)
    return (found.columns, found.empty), chunk, spoken


def test_kinds_are_inferred_from_a_sample_and_can_be_said(tmp_path):
    text = "y,n,c,t,e,s\n" + "".join(f"a,{i / 3},red,some words of {i},,{i}\n" for i in range(9))
    (found, empty), _, _ = columns(tmp_path, text)
    assert (found.kinds, empty) == ({"n": "number", "c": "label", "t": "text", "s": "number"}, ["e"])
    said = {"types": {"s": "label", "c": "text"}, "ignore": ("t",)}
    (found, _), _, _ = columns(tmp_path, text, **said)
    assert found.kinds == {"n": "number", "c": "text", "s": "label"}


NUMBERS = {
    " 3 ": 3.0,
    "1e5": 1e5,
    "+2.5": 2.5,
    "-0": 0.0,
    "1e-320": 1e-320,
    "9223372036854775807": 2.0**63,
    "": np.nan,
}


NO_NUMBERS = {
    "0x1f": "'0x1f' is not a number; correct it, or use --missing 0x1f, --coerce or --type x=label",
    "१२": "'१२' is not a number; correct it, or use --missing '१२', --coerce or --type x=label",
    "inf": "'inf' is not a number; correct it, or use --missing inf, --coerce or --type x=label",
    "1e400": "'1e400' is not a number; correct it, or use --missing 1e400, --coerce or --type x=label",
    "NA": "'NA' is not a number; correct it, or use --missing NA, --coerce or --type x=label",
    "9" * 30: f"the integer '{'9' * 30}' is beyond 2^63 - 1; write it with an exponent, or use --type x=label",
}


@pytest.mark.parametrize(("cell", "value"), NUMBERS.items())
def test_numbers_are_read_as_they_are_written(tmp_path, cell, value):
    (found, _), chunk, _ = columns(tmp_path, f"y,x\na,1\nb,{cell}\n")
    np.testing.assert_array_equal(found.read(chunk).columns[0].numbers, [1.0, value])


@pytest.mark.parametrize(("cell", "message"), NO_NUMBERS.items())
def test_what_is_no_number_is_named(tmp_path, cell, message):
    def read_numbers(**said):
        (found, _), chunk, _ = columns(tmp_path, f'y,x\na,1\na,2\nb,"{cell}"\n', **said)
        found.read(chunk)

    for said in ({"types": {"x": "numeric"}}, {}):
        with pytest.raises(DataError) as caught:
            read_numbers(**said)
        assert str(caught.value) == f"{tmp_path}/a.csv:4:2: {message}"


def test_labels_stay_text(tmp_path):
    names = ["01", "1", "NA", "None", "true", "True", "nan"]
    _, chunk, said = columns(tmp_path, "y,x\n" + "".join(f"{name},1\n" for name in names))
    labels = LabelReader("y", said)
    group, _ = labels.read(chunk)
    assert labels.names[group].tolist() == names
    missing = ColumnOptions(target="y", missing=frozenset({"NA", "None"}), skip_unlabelled=True)
    some = LabelReader("y", missing)
    group, kept = some.read(chunk)
    assert some.names[group].tolist() == ["01", "1", "true", "True", "nan"]
    assert (kept.batch.num_rows, some.n_unlabelled) == (5, 2)
    with pytest.raises(DataError, match=r"a.csv:4:1: has no label; give it one, or use --skip-unlabelled"):
        LabelReader("y", ColumnOptions(target="y", missing=frozenset({"NA"}))).read(chunk)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([1, 2]), ["1", "2"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([Decimal("1.50"), Decimal("2.00")]), ["1.50", "2.00"]),
        (pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
    ],
    ids=["whole", "boolean", "decimal", "dictionary"],
)
def test_labels_of_any_type_are_the_text_they_would_be_in_a_csv(tmp_path, values, text):
    path = str(tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"y": values, "x": [1.0, 2.0]}), path)
    chunk = next(open_files([path], ReadOptions()).read_chunks(("y", "x")))
    labels = LabelReader("y", ColumnOptions(target="y"))
    group, _ = labels.read(chunk)
    assert labels.names[group].tolist() == text


@given(st.text(st.sampled_from("'=+-@\t\r1a."), max_size=6))
def test_formulas_are_guarded_and_can_be_restored(cell):
    [safe] = escape_formulas(pa.array([cell])).to_pylist()
    assert unescape_formula(safe) == cell
    assert not safe.startswith(("=", "@", "\t", "\r"))
    if safe.startswith(("+", "-")):
        float(safe)
