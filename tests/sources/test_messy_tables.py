"""Tables as people have them: numbers and dates in many notations, read right or refused with the option that helps."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from priory import NaiveBayes, workflows
from priory.core.content_hash import hash_content
from priory.errors import DataError, KindError, PrioryWarning
from priory.sources.column_types import ColumnOptions
from priory.tables.number_formats import NumberFormat, find_common_format, find_number_formats

AMOUNTS = np.random.default_rng(7).gamma(2.0, 900.0, 60).round(2) + 0.25
LABELS = ["high" if amount > 1500 else "low" for amount in AMOUNTS]


def group(amount, thousands, decimal):
    whole, _, rest = f"{amount:,.2f}".partition(".")
    return whole.replace(",", thousands) + decimal + rest


WRITTEN = {
    "decimal comma": lambda x: f"{x:.2f}".replace(".", ","),
    "German": lambda x: group(x, ".", ","),
    "English": lambda x: group(x, ",", "."),
    "French": lambda x: group(x, "\u202f", ","),
    "French with a plain blank": lambda x: group(x, " ", ","),
    "Swiss": lambda x: group(x, "'", "."),
    "dollars": lambda x: "$" + group(x, ",", "."),
    "pounds with a blank": lambda x: "£ " + group(x, ",", "."),
    "euros behind": lambda x: group(x, ".", ",") + " €",
    "a code before": lambda x: "CHF " + group(x, "'", "."),
    "a code behind": lambda x: group(x, ",", ".") + " USD",
    "a unit": lambda x: f"{x:.2f} kg",
    "a unit without a blank": lambda x: f"{x:.2f}km/h",
    "per cent": lambda x: f"{x:.2f}%",
    "degrees": lambda x: f"{x:.2f} °C".replace(".", ","),
    "blanks around": lambda x: f"  {x:.2f}".replace(".", ",") + " ",
}
SIGNED = {
    "a sign": lambda x: f"{x:+.2f}".replace(".", ","),
    "the mathematical minus": lambda x: f"{x:.2f}".replace(".", ",").replace("-", "\u2212"),
    "parentheses": lambda x: f"({-x:,.2f})" if x < 0 else f"{x:,.2f}",
    "a sign before the currency": lambda x: f"-${-x:,.2f}" if x < 0 else f"${x:,.2f}",
}


def write_table(path, cells, labels=LABELS):
    pd.DataFrame({"amount": cells, "label": labels}).to_csv(path, index=False)
    return path


def learned_amounts(path, **options):
    """The model trained from a file, and the amounts as it keeps them, in the order of the file."""
    model = workflows.train(path, columns=ColumnOptions(target="label", **options), judge=False).model
    assert model.column_kinds_ == {"amount": "number"}
    return model


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
def test_numbers_in_a_notation_are_those_that_were_written(tmp_path, write):
    cells = [write(amount) for amount in AMOUNTS]
    model = learned_amounts(write_table(tmp_path / "messy.csv", cells))
    plain = learned_amounts(write_table(tmp_path / "plain.csv", AMOUNTS))
    table, truth = pd.DataFrame({"amount": cells[:5]}), pd.DataFrame({"amount": AMOUNTS[:5]})
    np.testing.assert_array_equal(model.predict_proba(table), plain.predict_proba(truth))
    np.testing.assert_array_equal(model.predict_proba(truth), plain.predict_proba(truth))
    assert model.predict_proba_one({"amount": cells[0]}) == pytest.approx(
        plain.predict_proba_one({"amount": AMOUNTS[0]}), abs=1e-8
    )


@pytest.mark.parametrize("write", SIGNED.values(), ids=SIGNED)
def test_negative_numbers_keep_their_sign(write):
    amounts = [-1234.5, 2.25, -0.75, 1000.0]
    cells = [write(amount) for amount in amounts]
    (form,) = find_number_formats(cells)
    assert NumberFormat.parse(form).read(cells).tolist() == amounts


@pytest.mark.parametrize("make_table", [pd.DataFrame, pl.DataFrame, dict, lambda d: pl.DataFrame(d).to_arrow()])
def test_a_messy_table_gives_one_model_from_memory_and_from_files(tmp_path, make_table):
    cells = [WRITTEN["German"](amount) for amount in AMOUNTS]
    frame = pd.DataFrame({"amount": cells, "label": LABELS})
    frame.to_excel(tmp_path / "messy.xlsx", index=False)
    model = NaiveBayes().fit(make_table({"amount": cells}), LABELS)
    assert model.column_formats_ == {"amount": "1.234,5"}
    for path in (write_table(tmp_path / "messy.csv", cells), tmp_path / "messy.xlsx"):
        assert hash_content(learned_amounts(path).statistics_) == hash_content(model.statistics_)


@pytest.mark.parametrize(
    ("options", "value"), [({"decimal": ","}, 1.234), ({"thousands": ","}, 1234.0), ({"decimal": "."}, 1234.0)]
)
def test_numbers_that_could_be_read_in_two_ways_need_an_option(tmp_path, options, value):
    path = write_table(tmp_path / "messy.csv", ["1,234", "5,678"] * 30)
    with pytest.raises(DataError) as caught:
        learned_amounts(path)
    assert str(caught.value) == (
        f"{path}:2:1: '1,234' is a number that could be read in two ways; use --decimal , or --thousands ,, or "
        "--type amount=label"
    )
    model = learned_amounts(path, **options)
    truth = learned_amounts(write_table(tmp_path / "plain.csv", [value, value * 5678 / 1234] * 30))
    np.testing.assert_allclose(
        model.predict_proba(pd.DataFrame({"amount": ["1,234"]})), truth.predict_proba(pd.DataFrame({"amount": [value]}))
    )


def test_a_cell_that_is_not_a_number_in_the_notation_of_its_column_is_named(tmp_path):
    cells = [WRITTEN["German"](amount) for amount in AMOUNTS]
    model = NaiveBayes().fit({"amount": cells}, LABELS)
    with pytest.raises(KindError, match="row 1, column 'amount' holds 'cheap'; this column is numbers"):
        model.predict({"amount": ["1,5", "cheap"]})
    path = write_table(tmp_path / "messy.csv", [*cells[:-1], "?"])
    with pytest.raises(DataError, match=r":61:1: '\?' is not a number like 1.234,5; correct it, or use --missing '\?'"):
        learned_amounts(path)
    assert learned_amounts(path, missing=frozenset("?")).column_formats_ == {"amount": "1.234,5"}


@pytest.mark.parametrize(
    ("odd", "others", "message"),
    [
        (lambda x: "k.A.", "German", "'k.A.' is not a number like 1.234,5; correct it, or use --missing k.A."),
        (lambda x: "unknown", "plain", "'unknown' is not a number; correct it, or use --missing unknown"),
        (lambda x: f"{1000 * x:.0f} g", "a unit", " g' is not a number like 1234.5 kg; correct it"),
        (WRITTEN["English"], "German", "' is not a number like 1.234,5; correct it"),
    ],
)
def test_a_column_of_numbers_in_which_some_cells_are_not_is_refused_rather_than_learned_as_labels(
    tmp_path, odd, others, message
):
    write = WRITTEN.get(others, str)
    cells = [odd(x) if i % 4 == 1 else write(x) for i, x in enumerate(AMOUNTS + 1000)]
    with pytest.raises(DataError) as caught:
        learned_amounts(write_table(tmp_path / "messy.csv", cells))
    assert ":3:1: " in str(caught.value)
    assert message in str(caught.value)
    assert learned_amounts(tmp_path / "messy.csv", coerce=True).class_count_.sum() == len(cells)


@pytest.mark.parametrize("write", [lambda i: f"{i}-{i + 9}", lambda i: f"10.0.{i}.1", lambda i: f"{i}{'abcde'[i % 5]}"])
def test_many_labels_with_digits_stay_labels(write):
    assert find_common_format([write(i) for i in range(100)]) is None


@pytest.mark.parametrize(
    "cells", [["A12", "B7"], ["18-25", "26-30"], ["1.2.3", "1.2.4"], ["007", "012"], ["3 kg", "5 g"]]
)
def test_labels_with_digits_stay_labels(cells):
    assert find_number_formats(cells) == []
    assert NaiveBayes().fit({"code": cells * 10}, ["a", "b"] * 10).column_kinds_ == {"code": "label"}


def test_strings_of_plain_digits_stay_labels():
    model = NaiveBayes().fit({"zip": ["10115", "80331"] * 10}, ["a", "b"] * 10)
    assert (model.column_kinds_, model.column_formats_) == ({"zip": "label"}, {})


def test_labels_that_could_be_numbers_in_one_batch_stay_the_labels_that_were_learned():
    sizes = ["3 kg", "5 kg", "500 g", "250 g"] * 20
    model = NaiveBayes(calibrate=False).fit({"size": sizes}, ["a", "b"] * 40)
    alone = model.predict_proba({"size": ["5 kg"]})
    np.testing.assert_array_equal(model.predict_proba({"size": ["5 kg"] * 12}), alone.repeat(12, axis=0))
    learned = model.partial_fit({"size": ["5 kg"] * 12}, ["a"] * 12)
    assert learned.class_count_.sum() == 92


ZIP_CODES = [f"{zip_code:05d}" for zip_code in (501, 1069, 10115, 80331)] * 15


@pytest.mark.parametrize("make_table", [pd.DataFrame, pl.DataFrame, dict])
def test_whole_numbers_with_leading_zeros_are_labels_from_memory_and_from_files(tmp_path, make_table):
    frame = pd.DataFrame({"zip": ZIP_CODES, "label": LABELS})
    frame.to_csv(tmp_path / "zip.csv", index=False)
    frame.to_excel(tmp_path / "zip.xlsx", index=False)
    model = NaiveBayes().fit(make_table({"zip": ZIP_CODES}), LABELS)
    assert model.column_kinds_ == {"zip": "label"}
    for name in ("zip.csv", "zip.xlsx"):
        notes = []
        callbacks = workflows.Callbacks(notify=notes.append)
        learned = workflows.train(tmp_path / name, target="label", judge=False, callbacks=callbacks).model
        assert hash_content(learned.statistics_) == hash_content(model.statistics_)
        assert notes == [
            "column 'zip' has leading zeros and is learned as labels; if it holds numbers, use --type zip=numeric"
        ]


@pytest.mark.parametrize(
    ("cells", "options", "kind"),
    [
        (["00123", "00045"], {"types": {"x": "numeric"}}, "number"),
        (["0.5", "1.5"], {}, "number"),
        (["0123", "12.5"], {}, "number"),
        (["0", "10"], {}, "number"),
        (["0123", ""], {}, "label"),
        (["0123", "NA"], {"missing": frozenset({"NA"})}, "label"),
    ],
)
def test_leading_zeros_decide_only_where_all_are_whole_numbers(tmp_path, cells, options, kind):
    pd.DataFrame({"x": cells * 20, "label": ["a", "b"] * 20}).to_csv(tmp_path / "x.csv", index=False)
    columns = ColumnOptions(target="label", keep_identifiers=True, **options)
    assert workflows.train(tmp_path / "x.csv", columns=columns, judge=False).model.column_kinds_ == {"x": kind}


def test_merged_cells_of_a_sheet_are_noted_with_their_range(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    rows = [["city", "age", "came"], *([city, age, "no" if age % 3 else "yes"] for age in range(20) for city in "ab")]
    notes = []
    for name, ranges in (("plain", []), ("merged", ["A2:A5", "A6:A9", "A10:B11", "A12:B13"])):
        workbook = openpyxl.Workbook()
        for row in rows:
            workbook.active.append(row)
        for cells in ranges:
            workbook.active.merge_cells(cells)
        workbook.save(tmp_path / f"{name}.xlsx")
        callbacks = workflows.Callbacks(notify=notes.append)
        workflows.train(tmp_path / f"{name}.xlsx", target="came", judge=False, callbacks=callbacks)
    assert notes == [
        f"{tmp_path / 'merged.xlsx'}: sheet 'Sheet' has merged cells (A10:B11, A12:B13, A2:A5 and 1 more); only the "
        "first of each has a value, and the others are read as missing"
    ]


def test_a_data_frame_in_which_a_word_makes_labels_of_numbers_is_warned_of():
    cells = [f"{amount:.2f}" for amount in AMOUNTS]
    cells[7] = "unknown"
    with pytest.warns(PrioryWarning, match="column 'amount' is learned as labels because of 'unknown'; make it None"):
        NaiveBayes(calibrate=False).fit(pd.DataFrame({"amount": cells}), LABELS)


def train_dates(path, cells, **options):
    pd.DataFrame({"when": cells, "label": ["a", "b"] * (len(cells) // 2)}).to_csv(path, index=False)
    return workflows.train(path, columns=ColumnOptions(target="label", **options), judge=False).model


@pytest.mark.parametrize(
    ("cells", "options", "month"),
    [
        (["03/04/2024", "25/04/2024"], {}, "April"),
        (["03/04/2024", "03/25/2024"], {}, "March"),
        (["03/04/2024", "05/04/2024"], {"day_first": True}, "April"),
        (["03/04/2024", "05/04/2024"], {"day_first": False}, "March"),
        (["03/04/24", "25/04/24"], {}, "April"),
    ],
)
def test_a_column_of_dates_decides_together_whether_the_day_comes_first(tmp_path, cells, options, month):
    model = train_dates(
        tmp_path / "dates.csv", [*cells, "11/11/2024" if "2024" in cells[0] else "11/11/24"] * 20, **options
    )
    written = model.explain(pd.DataFrame({"when": cells[:1]}))
    assert month in str(written)


def test_dates_in_both_orders_are_refused(tmp_path):
    with pytest.raises(DataError, match=r":3:1: '25/04/2024' is not a date; write it as 12/31/2024, or leave the cell"):
        train_dates(tmp_path / "dates.csv", ["04/25/2024", "25/04/2024", "04/26/2024", "04/27/2024"] * 10)


def test_a_date_with_equal_day_and_month_is_not_ambiguous(tmp_path):
    model = train_dates(tmp_path / "dates.csv", ["06/06/2024", "07/07/2024"] * 10)
    assert "when (month)" in model.column_kinds_


def test_labels_can_be_joined_while_they_are_read(tmp_path):
    notes = []
    path = write_table(tmp_path / "labels.csv", range(60), ["yes", "no", "yes ", "Yes", *["yes", "no"] * 28])
    options = ColumnOptions(target="label", label_map={"Yes": "yes"}, strip_labels=True)
    assert workflows.train(path, columns=options, judge=False).classes == {"yes": 31.0, "no": 29.0}
    workflows.train(path, target="label", judge=False, callbacks=workflows.Callbacks(notify=notes.append))
    assert notes == [
        "labels that may mean the same are different classes: 'yes' (29) and 'Yes' (1) and 'yes ' (1); to join some, "
        "use --map-label OLD=NEW or --strip-labels",
        "classes of one or two rows: 'Yes' (1), 'yes ' (1)",
    ]


def test_a_label_to_replace_that_does_not_occur_is_reported(tmp_path):
    notes = []
    path = write_table(tmp_path / "labels.csv", range(60), ["yes", "no"] * 29 + ["maybe"] * 2)
    options = ColumnOptions(target="label", label_map={"maybe": "no", "YES ": "no", "perhaps": "no"})
    workflows.train(path, columns=options, judge=False, callbacks=workflows.Callbacks(notify=notes.append))
    assert notes == [
        "--map-label: no row has the label 'YES ' (did you mean 'yes'?)",
        "--map-label: no row has the label 'perhaps'",
    ]


def test_a_regression_reads_and_remembers_the_notation_of_its_numbers(tmp_path):
    x = np.arange(60) + 0.5
    cells = [f"{v:.1f}".replace(".", ",") for v in x]
    prices = [f"{group(100 * v, '.', ',')} €" for v in x]
    pd.DataFrame({"size": cells, "price": prices}).to_csv(tmp_path / "prices.csv", index=False)
    model = workflows.train(tmp_path / "prices.csv", target="price", judge=False).model
    pd.DataFrame({"size": ["10,5"]}).to_csv(tmp_path / "new.csv", index=False)
    (answer,) = workflows.predict(model, tmp_path / "new.csv")
    assert answer.column("prediction")[0].as_py() == pytest.approx(1050.0, rel=1e-3)


def test_a_header_that_looks_like_a_row_is_noted(tmp_path):
    rows = "".join(f"{i % 9},{'ab'[i % 2]},2024-05-{1 + i % 28:02d},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    (tmp_path / "rows.csv").write_text(rows)
    (tmp_path / "years.csv").write_text("2019,kind,2024-05-01,came\n" + rows)
    notes = []
    for name, target in (("years", "came"), ("rows", "no")):
        callbacks = workflows.Callbacks(notify=notes.append)
        workflows.train(tmp_path / f"{name}.csv", target=target, judge=False, callbacks=callbacks)
    assert [note for note in notes if "--no-header" in note] == [
        "the first row looks like data rather than names of columns; if it is, use --no-header"
    ]


ROWS = "age,city,came\n" + "".join(f"{i % 40},{'ab'[i % 2]},{'yes' if i % 3 else 'no'}\n" for i in range(40))
HEADERS = {
    "a title": ("Guests of 2024\n\n" + ROWS, "; line 3 has it: remove the lines above it"),
    "a title with a comma": ("Guests, of 2024\n" + ROWS, "; line 2 has it: remove the lines above it"),
    "no header": (ROWS.partition("\n")[2], "; if the first row is data, use --no-header"),
    "blanks between cells": (ROWS.replace(",", " "), "; use --delimiter ' '"),
    "another table": ("name,verdict\nann,good\n", ""),
}


@pytest.mark.parametrize(("text", "remedy"), HEADERS.values(), ids=HEADERS)
def test_a_target_that_the_first_line_lacks_is_looked_for(tmp_path, text, remedy):
    (tmp_path / "guests.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        workflows.train(tmp_path / "guests.csv", target="came")
    assert "has no column 'came'" in str(caught.value)
    assert str(caught.value).endswith(remedy or "it has 'name', 'verdict'")


def test_a_row_of_sums_may_be_skipped_with_the_rows_without_a_label(tmp_path):
    path = write_table(tmp_path / "sums.csv", [*AMOUNTS, "Total"], [*LABELS, ""])
    assert learned_amounts(path, skip_unlabelled=True).class_count_.sum() == 60


def test_columns_in_one_notation_are_noted_in_one_line(tmp_path):
    cells = [WRITTEN["German"](x) for x in AMOUNTS]
    pd.DataFrame({**{f"x{i}": cells for i in range(12)}, "label": LABELS}).to_csv(tmp_path / "wide.csv", index=False)
    notes = []
    callbacks = workflows.Callbacks(notify=notes.append)
    workflows.train(tmp_path / "wide.csv", target="label", judge=False, callbacks=callbacks)
    listed = ", ".join(f"'x{i}'" for i in range(10))
    assert notes == [f"columns {listed} and 2 more hold numbers written like 1.234,5"]


def test_a_target_below_the_title_of_a_sheet_is_found(tmp_path):
    pd.DataFrame([["Guests of 2024", None], ["age", "came"], [3, "yes"]]).to_excel(
        tmp_path / "guests.xlsx", index=False, header=False
    )
    with pytest.raises(DataError, match="row 2 has it: remove the rows above it"):
        workflows.train(tmp_path / "guests.xlsx", target="came")


def test_an_array_of_json_is_refused(tmp_path):
    (tmp_path / "rows.json").write_text('[{"a": 1, "came": "yes"}]')
    with pytest.raises(DataError, match=r"rows.json: is a JSON array; write each of its objects on a line of its own"):
        workflows.train(tmp_path / "rows.json", target="came")
