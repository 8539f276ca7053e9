"""What a column or a target is not is refused in one line; what the user insists on is done."""

import json
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import priory
from priory.sources import ReadOptions, open_files
from priory.sources.column_inference import infer_columns
from priory.sources.column_types import ColumnOptions
from shell import GOOD, write


def number_rows(bad="oops", share=0.02, n=100):
    """Rows of which a share has a bad cell in the column ``n``."""
    every = round(1 / share)
    return [["ab"[i % 2], bad if i % every == every - 1 else f"{i}.5"] for i in range(n)]


def train(run, path, *options):
    return run("train", path, "--target", "label", "--plain", "--json", *options)


# -- one bad cell ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_a_bad_cell_among_numbers_is_an_error_that_names_it(run, share):
    write("data.csv", ["label", "n"], number_rows(share=share))
    code, _, err = train(run, "data.csv")
    line = round(1 / share) + 1
    assert (code, err) == (
        3,
        f"priory: data.csv:{line}:2: 'oops' is not a number; correct it, or use --missing oops, --coerce or "
        "--type n=label\n",
    )
    assert not Path("data.priory").exists()


def test_a_column_with_fewer_numbers_is_labels(run):
    write("data.csv", ["label", "n"], number_rows(share=0.5))
    code, out, _ = train(run, "data.csv")
    assert (code, json.loads(out)["columns"]) == (0, {"n": "categorical"})


@pytest.mark.parametrize(
    ("option", "family"),
    [("--type=n=label", "categorical"), ("--missing=oops", None), ("--coerce", None)],
)
def test_the_user_decides_what_becomes_of_a_bad_cell(run, option, family):
    write("data.csv", ["label", "n"], number_rows())
    code, out, err = train(run, "data.csv", option)
    assert code == 0
    found = json.loads(out)["columns"]["n"]
    assert found == family if family else found != "categorical"
    noted = "priory: column 'n': read 2 cells without a number as missing\n"
    assert (noted in err) == (option == "--coerce")


def test_coerced_cells_are_missing_and_nothing_else_changes(run):
    write("bad.csv", ["label", "n"], number_rows())
    write("blank.csv", ["label", "n"], number_rows(bad=""))
    assert train(run, "bad.csv", "--coerce")[0] == train(run, "blank.csv")[0] == 0
    models = [priory.load(f"{name}.priory") for name in ("bad", "blank")]
    np.testing.assert_array_equal(*(model.predict_proba({"n": [3.0, 50.0]}) for model in models))


def test_learning_and_forgetting_coerce_too(run):
    write("data.csv", ["label", "n"], number_rows(bad=""))
    write("more.csv", ["label", "n"], [["a", "1.5"], ["b", "oops"], ["a", "1e999"]])
    assert train(run, "data.csv")[0] == 0
    error = "more.csv:3:2: 'oops' is not a number; correct it, or leave the cell empty\n"
    for command in ("learn", "forget"):
        assert run(command, "data.priory", "more.csv")[::2] == (3, f"priory: {error}")
        code, _, err = run(command, "data.priory", "more.csv", "--coerce")
        assert code == 0, err
        assert "priory: column 'n': read 2 cells without a number as missing\n" in err


@pytest.mark.parametrize("learned", [[], ["--learned"]])
def test_a_report_counts_coerced_cells(run, learned):
    write("data.csv", ["label", "n"], number_rows())
    assert train(run, "data.csv", "--coerce")[0] == 0
    code, _, err = run("report", "data.priory", "data.csv", "-o", "page.html", "--coerce", *learned)
    assert code == 0, err
    assert "priory: column 'n': read 2 cells without a number as missing\n" in err


def test_a_long_or_odd_cell_is_not_suggested_as_missing(run):
    write("data.csv", ["label", "the n"], number_rows(bad="no number at all, and a long cell"))
    assert train(run, "data.csv")[2] == (
        "priory: data.csv:51:2: 'no number at all, and a long cell' is not a number; correct it, or use --coerce or "
        "--type 'the n'=label\n"
    )


def test_a_bad_cell_is_named_by_its_own_line_after_unlabelled_rows(run):
    rows = [["", "1"], ["a", "2"], ["", "3"], ["b", "4"], ["a", "bad"]]
    write("data.csv", ["label", "n"], rows)
    code, _, err = train(run, "data.csv", "--type", "n=numeric", "--skip-unlabelled")
    assert code == 3
    assert err.startswith("priory: data.csv:6:2: 'bad' is not a number")


def test_explain_names_the_line_of_a_bad_cell(table, run):
    write("new.csv", ["sender", "hour", "links", "text"], [["friend", h, "0", "hi"] for h in ("3", "4", "noon")])
    _, _, err = run("explain", "inbox.priory", "--from", "new.csv", "--row", "3")
    assert err == "priory: new.csv:4:2: 'noon' is not a number; correct it, or leave the cell empty\n"


# -- dates ----------------------------------------------------------------------------------------------------------

DATES = [
    "2024-03-01",
    "2024-03-01T12:30:00Z",
    "2024/3/1 12:30",
    "1.3.2024",
    "1 Mar 2024",
    "March 1, 2024",
    "1-Mar-2024",
]
AMBIGUOUS_DATES = ["3/1/24", "03/04/2024 12:30"]
NO_DATES = ["1.2.30", "192.168.1.1", "2024-99-01", "12-345-6789", "v2024", "555-1234", "2024"]


def infer_kind(tmp_path, cell, n=20):
    write(tmp_path / "data.csv", ["label", "when"], [["ab"[i % 2], cell] for i in range(n)])
    rows = open_files([str(tmp_path / "data.csv")], ReadOptions())
    chunk = next(rows.read_chunks(rows.names))
    return infer_columns(chunk, ("when",), ColumnOptions(target="label"))


@pytest.mark.parametrize("cell", DATES)
def test_the_parts_of_a_date_that_differ_are_learned(tmp_path, cell):
    write(tmp_path / "data.csv", ["label", "when"], [["ab"[i % 2], "2023-05-02" if i % 3 else cell] for i in range(20)])
    rows = open_files([str(tmp_path / "data.csv")], ReadOptions())
    chunk = next(rows.read_chunks(rows.names))
    found = infer_columns(chunk, ("when",), ColumnOptions(target="label"))
    assert found.dates == {"when": ["weekday", "month", "days since 2000"]}
    table = found.columns.read_arrow_table(chunk)
    assert [column[0].as_py() for column in table.columns] == ["Friday", "March", 8826.0]


@pytest.mark.parametrize("cell", AMBIGUOUS_DATES)
def test_a_date_that_could_be_read_in_two_ways_is_refused_in_one_line(tmp_path, cell):
    with pytest.raises(priory.errors.DataError) as caught:
        infer_kind(tmp_path, cell)
    assert str(caught.value) == (
        f"{tmp_path}/data.csv:2:2: '{cell}' is a date that could be read in two ways; use --day-first or "
        "--month-first, or --type when=label"
    )


@pytest.mark.parametrize("cell", NO_DATES)
def test_what_is_not_a_date_is_not_refused(tmp_path, cell):
    assert infer_kind(tmp_path, cell).columns.kinds["when"] in ("label", "number")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".jsonl"])
def test_dates_of_every_format_are_learned_unless_they_are_labels(run, suffix):
    days = pd.date_range("2024-01-01", periods=20)
    frame = pd.DataFrame({"label": list("ab") * 10, "when": days, "n": range(20)})
    save = {
        ".csv": lambda: frame.to_csv("data.csv", index=False),
        ".parquet": lambda: pa.parquet.write_table(pa.Table.from_pandas(frame), "data.parquet"),
        ".feather": lambda: pa.feather.write_feather(pa.Table.from_pandas(frame), "data.feather"),
        ".jsonl": lambda: frame.astype({"when": str}).to_json("data.jsonl", orient="records", lines=True),
    }
    save[suffix]()
    code, out, err = train(run, f"data{suffix}")
    assert code == 0
    assert "priory: column 'when' holds dates; learned as weekday and days since 2000\n" in err
    assert set(json.loads(out)["columns"]) >= {"when (weekday)", "when (days since 2000)"}
    assert train(run, f"data{suffix}", "--ignore", "when", "--force")[0] == 0
    _, out, _ = train(run, f"data{suffix}", "--type", "when=label", "--force")
    assert json.loads(out)["columns"]["when"] == "categorical"


def test_the_audit_still_takes_dates(run):
    write(
        "data.csv", ["label", "when", "n"], [["ab"[i % 2], f"2024-01-{i % 28 + 1:02}", i * 7 % 50] for i in range(60)]
    )
    assert run("audit", "data.csv", "--target", "label", "--time", "when", "--json")[0] in (0, 3)


# -- a target that is a number --------------------------------------------------------------------------------------


def write_prices(path, n=400, planted=True):
    rng = np.random.default_rng(0)
    price = rng.permutation(np.arange(1000, 1000 + n))
    tax = np.round(price * 0.19 + rng.normal(size=n), 3) if planted else rng.normal(size=n).round(3)
    columns = {"rooms": rng.integers(1, 6, n), "size": rng.normal(80, 20, n).round(1), "tax": tax, "price": price}
    pd.DataFrame(columns).to_csv(path, index=False)
    return pd.DataFrame(columns)


def test_a_target_with_many_numbers_is_predicted_as_a_number_unless_classes_are_insisted_on(run):
    write_prices("homes.csv")
    code, out, err = run("train", "homes.csv", "--target", "price", "--no-audit")
    assert code == 0
    assert "the target 'price' has more than 20 different numbers, so this is a regression" in err
    assert out.startswith("400 rows, a number to predict: price from 3 columns\n")
    for insisting in ("--classes", "--labels-as-text"):
        code, out, _ = run("train", "homes.csv", "--target", "price", insisting, "--plain", "--json", "--force")
        assert (code, len(json.loads(out)["classes"])) == (0, 400)


def test_a_model_that_was_insisted_on_learns_without_insisting(run):
    write_prices("homes.csv")
    assert run("train", "homes.csv", "--target", "price", "--classes", "--plain")[0] == 0
    for command in ("learn", "forget", "evaluate"):
        assert run(command, "homes.priory", "homes.csv")[0] == 0


def test_twenty_numbers_are_classes(run):
    write("data.csv", ["label", "n"], [[i % 20, i] for i in range(100)])
    assert train(run, "data.csv")[0] == 0


def test_many_numbers_are_noticed_wherever_they_come(tmp_path):
    pa.parquet.write_table(
        pa.table({"y": [0] * 9000 + list(range(9000)), "n": range(18000)}), tmp_path / "a.parquet", row_group_size=1000
    )
    with pytest.raises(priory.errors.DataError, match=r": [\d,]+ different values in the first [\d,]+ rows; bin it"):
        priory.workflows.train(tmp_path / "a.parquet", target="y")


def test_the_command_finds_a_planted_column_as_the_library_does(run):
    frame = write_prices("homes.csv")
    library = priory.audit(frame, target="price")
    code, out, _ = run("audit", "homes.csv", "--target", "price", "--json")
    assert code == library.exit_code == 3
    found = {(f["kind"], tuple(f["columns"])) for f in json.loads(out)["findings"]}
    assert ("column", ("tax",)) in found
    assert found == {(f.kind, f.columns) for f in library}


def test_a_test_table_has_the_same_kind_of_target(run):
    write_prices("homes.csv")
    write_prices("few.csv", n=10)
    assert run("audit", "homes.csv", "--test", "few.csv", "--target", "price", "--json")[0] == 3
    write("words.csv", ["rooms", "size", "tax", "price"], [[1, 2, 3, "dear"], [2, 3, 4, "cheap"]])
    assert run("audit", "homes.csv", "--test", "words.csv", "--target", "price")[::2] == (
        3,
        "priory: column 'price' holds numbers in one table and labels in the other; make it one or the other.\n",
    )


# -- names and files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "train good.csv --target lable",
            "good.csv: has no column 'lable' (did you mean 'label'?); it has 'label', 'text'",
        ),
        (
            "train good.csv --target LABEL",
            "good.csv: has no column 'LABEL' (did you mean 'label'?); it has 'label', 'text'",
        ),
        (
            "train good.csv --target label --ignore txt",
            "good.csv: has no column 'txt' (did you mean 'text'?); it has 'label', 'text'",
        ),
        (
            "predict mail.priory typo.csv",
            "typo.csv: has no column 'text' (did you mean 'texts'?), which the model needs; it has 'label', 'texts'",
        ),
        ("train photo.png --target label", "photo.png: is a PNG image; give a table or texts"),
        ("predict mail.priory photo.png", "photo.png: is a PNG image; give a table or texts"),
        ("train photo.png --target label --encoding latin-1", "photo.png: is a PNG image; give a table or texts"),
        ("train old.xls --target label", "old.xls: is an old Excel or Word file; save it as CSV or as plain text"),
        ("train pack.zip --target label", "pack.zip: is a zip file; unpack it first"),
    ],
)
def test_a_wrong_name_or_file_gets_advice(mail, run, arguments, message):
    Path("good.csv").write_text(GOOD)
    Path("typo.csv").write_text(GOOD.replace("text", "texts", 1))
    Path("photo.png").write_bytes(make_png())
    make_zip("pack.zip", "data.csv")
    Path("old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500))
    assert run(*arguments.split())[::2] == (3, f"priory: {message}\n")


def make_png():
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(b"\0\0")) + part(b"IEND", b"")


def make_zip(path, *names):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, "content " * 50)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_text_of_an_arrow_file_that_is_not_utf8_is_named(run, suffix):
    offsets = pa.py_buffer(np.array([0, 1, 2, 3], np.int32))
    bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xffb")])
    table = pa.table({"label": ["a", "b", "a"], "text": bad})
    write_table = pa.parquet.write_table if suffix == ".parquet" else pa.feather.write_feather
    write_table(table, f"data{suffix}")
    assert run("train", f"data{suffix}", "--target", "label")[::2] == (
        3,
        f"priory: data{suffix}: row 2, column 'text' holds bytes that are not UTF-8; "
        "decode them with the right encoding first.\n",
    )


# -- forgetting -----------------------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_forgotten_is_named_by_its_line(table, run):
    lines = Path("inbox.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("some.csv").write_text("".join([*lines[:4], "nobody,9,0,win cash,spam\n", *lines[4:6]]), encoding="utf-8")
    code, _, err = run("forget", "inbox.priory", "some.csv")
    assert (code, err) == (
        3,
        "priory: some.csv:5:1: column 'sender', 'nobody', was not learned in class 'spam', or not this often; "
        "forget only rows that were learned; the model is unchanged\n",
    )


def test_a_text_that_cannot_be_forgotten_is_named_by_its_line(mail, run):
    write("some.csv", ["label", "text"], [["", "x"], ["ham", "an unheard-of word"]])
    code, _, err = run("forget", "mail.priory", "some.csv", "--skip-unlabelled")
    assert code == 3
    assert err.startswith("priory: some.csv:3:1: token ")
    assert err.endswith("forget only rows that were learned; the model is unchanged\n")


def test_labels_that_may_mean_the_same_are_named_by_train_and_audit(run):
    labels = ["yes"] * 20 + ["Yes", "yes ", "yse"] + ["no"] * 20
    write("visits.csv", ["n", "came"], [[i % 7, label] for i, label in enumerate(labels)])
    same = "labels that may mean the same are different classes: 'yes' (20) and 'Yes' (1) and 'yes ' (1) and 'yse' (1)"
    code, out, err = run("train", "visits.csv", "--target", "came", "--no-audit", "--json")
    assert code == 0
    assert f"priory: {same}; to join some, use --map-label OLD=NEW or --strip-labels\n" in err
    assert json.loads(out)["classes"] == {"yes": 20.0, "no": 20.0, "Yes": 1.0, "yes ": 1.0, "yse": 1.0}
    code, out, _ = run("audit", "visits.csv", "--target", "came")
    assert "labels that may mean the same" in out
