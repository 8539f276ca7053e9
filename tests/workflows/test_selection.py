"""Rows are kept by their score, in files of any size; what is wanted and what is not are records."""

import gzip
import io
import json
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priory
from priory import workflows
from priory.errors import DataError, StaleModelError
from priory.workflows import ColumnOptions, SelectionOptions
from priory.workflows.selection import find_lowest_key, make_sortable
from shell import GOOD, PRIORY

RECIPES = [f"bake the {food} with {n} eggs and butter" for n in range(2, 22) for food in ("cake", "bread")]
NEWS = [
    f"the minister of {n} said on monday that {what} rose" for n in range(20) for what in ("prices", "taxes", "rents")
]
MIXED = [text for pair in zip(NEWS, RECIPES[::2] * 3, strict=True) for text in pair]  # every other one is a recipe


@pytest.fixture
def folder(tmp_path):
    write_texts(tmp_path / "recipes.jsonl", RECIPES[1::2])
    write_texts(tmp_path / "crawl.jsonl", MIXED)
    return tmp_path


def write_texts(path, texts):
    path.write_text("".join(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(texts)))


def select(folder, **options):
    model = workflows.learn_contrast(folder / "recipes.jsonl", folder / "crawl.jsonl")
    return workflows.select(model, folder / "crawl.jsonl", options=SelectionOptions(**options))


def test_the_rows_that_are_like_the_wanted_ones_are_kept_in_their_order(folder):
    rows = select(folder, share=0.5)
    kept = rows.to_table()
    assert kept["n"].to_pylist() == list(range(1, len(MIXED), 2))
    assert (rows.n_rows, rows.n_kept) == (120, 60)
    assert rows.lowest == pytest.approx(min(kept["score"].to_pylist()), abs=0.01)
    assert rows.describe() == [
        f"kept 60 of 120 rows; the lowest score is {rows.lowest:+.1f} dB per 1,000 bytes for wanted"
    ]


def test_a_trained_model_keeps_the_rows_that_are_most_probable_of_a_class(folder):
    labels = ["food" if text in RECIPES else "news" for text in MIXED]
    model = priory.TextClassifier().fit(MIXED, labels)
    model.set_params(calibrate="loo")
    kept = workflows.select(model, folder / "crawl.jsonl", options=SelectionOptions(number=7, label="news")).to_table()
    log_odds = model.predict_log_proba(MIXED) @ [-1, 1]
    assert len(kept) == 7
    assert min(log_odds[kept["n"].to_pylist()]) >= sorted(log_odds)[-7]
    np.testing.assert_allclose(kept["score"], 10 / np.log(10) * log_odds[kept["n"].to_pylist()], atol=0.006)


def test_collections_learn_and_forget_texts_exactly(folder):
    path = folder / "weights.priory"
    priory.save(workflows.learn_contrast(folder / "recipes.jsonl", folder / "crawl.jsonl"), path)
    before = path.read_bytes()
    write_texts(folder / "more.jsonl", ["a very old newspaper", "an older one"])
    rest = ColumnOptions(label="rest")
    workflows.learn(path, folder / "more.jsonl", columns=rest)
    assert path.read_bytes() != before
    workflows.forget(path, folder / "more.jsonl", columns=rest)
    assert path.read_bytes() == before
    with pytest.raises(DataError, match=r"it was not learned in class .rest."):
        workflows.forget(path, folder / "more.jsonl", columns=rest)


def test_drawn_rows_follow_the_seed_and_prefer_probable_ones(folder):
    first, again, other = (select(folder, number=20, seed=seed).to_table()["n"].to_pylist() for seed in (1, 1, 2))
    assert first == again != other
    assert sum(n % 2 for n in first) > 15


def test_the_evidence_of_a_row_names_its_own_words_although_the_model_keeps_none(folder):
    kept = select(folder, number=1, explains=True).to_table()
    strongest = kept["evidence"][0].as_py().split("; ")
    assert len(strongest) == 5
    assert all(line.startswith("+") and line.split(" ", 1)[1] in kept["text"][0].as_py() for line in strongest)


@pytest.mark.parametrize("options", [{}, {"calibrate": False, "model": "multinomial", "ngram_range": (1, 2)}])
@pytest.mark.parametrize("buckets", [1 << 18, 16])
def test_ledgers_of_hashed_models_add_up(buckets, options):
    labels = ["food" if text in RECIPES else "news" for text in MIXED]
    model = priory.TextClassifier(buckets=buckets, **options).fit(MIXED, labels)
    text = "bake bread on monday with 12 eggs eggs"
    entries = model.explain(text)[0].entries()
    total = np.sum([line.log_likelihood for line in entries], axis=0)
    log_proba = model.predict_log_proba([text])[0]
    assert total[0] - total[1] == pytest.approx(log_proba[0] - log_proba[1])
    with pytest.raises(StaleModelError, match="a hashed model of characters or mail keeps no tokens"):
        priory.TextClassifier(buckets=64, analyzer="char").fit(MIXED, labels).explain(text)


def test_files_of_any_kind_give_the_same_rows(folder):
    content = (folder / "crawl.jsonl").read_bytes()
    (folder / "crawl.jsonl.gz").write_bytes(gzip.compress(content))
    (folder / "crawl.jsonl.zst").write_bytes(pa.compress(content, "zstd", asbytes=True))
    pq.write_table(pa.table({"text": MIXED, "n": range(len(MIXED))}), folder / "crawl.parquet")
    model = workflows.learn_contrast(folder / "recipes.jsonl", folder / "crawl.jsonl")
    kept = [
        workflows.select(model, folder / name).to_table()["n"].to_pylist()
        for name in ("crawl.jsonl", "crawl.jsonl.gz", "crawl.jsonl.zst", "crawl.parquet")
    ]
    assert all(rows == kept[0] for rows in kept)
    assert len(kept[0]) == 12


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0])), st.integers(0, 50)
)
def test_the_lowest_kept_key_is_that_of_a_sorted_list(numbers, n_kept):
    n_kept = min(n_kept, len(numbers))
    keys = make_sortable(np.array(numbers))
    lowest, n_equal = find_lowest_key(io.BytesIO(keys.tobytes()), n_kept)
    assert int((keys > np.uint64(lowest)).sum()) + n_equal == n_kept
    if n_kept:
        assert lowest == sorted(keys.tolist())[-n_kept]
    assert np.array_equal(np.argsort(keys, kind="stable"), np.lexsort((np.signbit(numbers) == 0, numbers)))


def test_wrong_requests_are_one_line(folder):
    with pytest.raises(DataError, match=r"share is 1\.5; use a number from 0 to 1"):
        SelectionOptions(share=1.5)
    with pytest.raises(DataError, match=r"the model has no class 'x'; use --class with one of 'rest', 'wanted'"):
        select(folder, label="x")
    write_texts(folder / "few.jsonl", ["text"])
    body = ColumnOptions(types={"body": "text"})
    with pytest.raises(DataError, match=r"few\.jsonl: has no column 'body'; name the column of the texts with --text"):
        workflows.learn_contrast(folder / "few.jsonl", folder / "crawl.jsonl", columns=body)


def run(folder, *arguments):
    done = subprocess.run([*PRIORY, *arguments], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_the_command_makes_a_model_keeps_rows_and_says_how_many(folder):
    code, _, err = run(
        folder, "select", "w.priory", "crawl.jsonl", "--like", "recipes.jsonl", "-n", "3", "--why", "-o", "kept.jsonl"
    )
    assert code == 0, err
    assert "kept 3 of 120 rows; the lowest score is" in err
    kept = [json.loads(line) for line in (folder / "kept.jsonl").read_text().splitlines()]
    assert [sorted(row) for row in kept] == [["evidence", "n", "score", "text"]] * 3
    code, out, _ = run(folder, "select", "w.priory", "crawl.jsonl", "-n", "3", "--json")
    assert [json.loads(line)["n"] for line in out.splitlines()] == [row["n"] for row in kept]
    code, _, err = run(folder, "select", "w.priory", "crawl.jsonl", "--like", "recipes.jsonl", "-o", "more.jsonl")
    assert (code, "w.priory: already exists; use --force to replace it" in err) == (5, True)


@pytest.mark.slow
def test_all_rows_of_a_file_without_labels_may_be_given_one(tmp_path):
    (tmp_path / "mail.csv").write_text(GOOD)
    (tmp_path / "spam.txt.csv").write_text("text\nwin the cash prize\nfree cash prize\n")
    assert run(tmp_path, "train", "mail.csv", "--target", "label", "--plain")[0] == 0
    assert run(tmp_path, "learn", "mail.priory", "spam.txt.csv", "--label", "spam")[0] == 0
    assert priory.load(tmp_path / "mail.priory").class_count_.tolist() == [3, 5]
    assert run(tmp_path, "forget", "mail.priory", "spam.txt.csv", "--label", "spam")[0] == 0
    assert priory.load(tmp_path / "mail.priory").class_count_.tolist() == [3, 3]
