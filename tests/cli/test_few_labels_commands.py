"""``priory ask`` and ``priory learn --unlabelled``: rows without labels on the command line."""

import csv

import numpy as np
import pytest

import priory
from priory.cli.entry_point import main

PATHS = ["soup lunch,food/soup", "bread noon,food", "roof,home"]
WORDS = {"spam": ["cash", "win", "prize", "bank"], "ham": ["lunch", "noon", "soup", "home"]}


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)

    def make_rows(rows):
        labels = rng.choice(["spam", "ham"], rows)
        noise = [f"w{k}" for k in range(50)]
        return [(" ".join([*rng.choice(WORDS[label], 2), *rng.choice(noise, 5)]), label) for label in labels]

    known, new = make_rows(30), make_rows(200)
    (tmp_path / "known.csv").write_text("\n".join(["text,label", *(f"{text},{label}" for text, label in known)]))
    (tmp_path / "new.csv").write_text("\n".join(["text", *(text for text, _ in new)]))
    assert main(["train", str(tmp_path / "known.csv"), "--target", "label", "-o", str(tmp_path / "m.priory")]) == 0
    return tmp_path


def test_rows_to_label_are_written(files, capsys):
    capsys.readouterr()
    assert main(["ask", str(files / "m.priory"), str(files / "new.csv"), "-n", "5"]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(out.splitlines()))
    assert [set(row) for row in rows] == [{"text", "row", "information"}] * 5
    texts = (files / "new.csv").read_text().splitlines()
    assert all(texts[int(row["row"])] == row["text"] for row in rows)
    assert "5 rows to label" in err


def test_texts_without_label_are_learned_and_forgotten_with_the_model(files, capsys):
    before = (files / "m.priory").read_bytes()
    assert main(["learn", str(files / "m.priory"), str(files / "new.csv"), "--unlabelled"]) == 0
    assert "200 texts without label" in capsys.readouterr().err
    model = priory.load(files / "m.priory")
    assert model.unlabelled
    assert model.class_count_.sum() == 30
    assert (files / "m.priory").read_bytes() != before


def test_tables_take_no_rows_without_label(files, capsys):
    (files / "table.csv").write_text("\n".join(["x,label", *(f"{k},{'ab'[k % 2]}" for k in range(30))]))
    assert main(["train", str(files / "table.csv"), "--target", "label", "-o", str(files / "t.priory")]) == 0
    (files / "more.csv").write_text("x\n1\n2\n")
    assert main(["learn", str(files / "t.priory"), str(files / "more.csv"), "--unlabelled"]) == 3
    assert "models of texts" in capsys.readouterr().err


def test_several_labels_are_learned_predicted_and_scored(files, capsys):
    rng = np.random.default_rng(1)
    held = [[label for label in WORDS if rng.random() < 0.5] for _ in range(160)]
    noise = [f"w{k}" for k in range(40)]
    texts = [" ".join([*(rng.choice(WORDS[label]) for label in row), *rng.choice(noise, 5)]) for row in held]
    lines = [f"{text},{';'.join(row)}" for text, row in zip(texts, held, strict=True)]
    for name, part in {"train": lines[:120], "test": lines[120:]}.items():
        (files / f"{name}.csv").write_text("\n".join(["text,tags", *part]))
    model, train, test = (str(files / name) for name in ("tags.priory", "train.csv", "test.csv"))
    assert main(["train", train, "--target", "tags", "--multilabel", ";", "-o", model]) == 0
    assert "micro F1" in capsys.readouterr().out
    assert main(["predict", model, test, "--proba"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    right = [set(row["labels"].split(";")) == set(row["tags"].split(";")) for row in rows]
    assert np.mean(right) > 0.7
    assert 0 <= float(rows[0]["probability_spam"]) <= 1
    assert main(["evaluate", model, test]) == 0
    assert "subset accuracy" in capsys.readouterr().out
    assert main(["evaluate", model, test, "--curve"]) == 3
    assert main(["explain", model, "cash"]) == 3
    assert "several labels" in capsys.readouterr().err
    assert main(["report", model, test, "-o", str(files / "tags.html")]) == 0
    page = (files / "tags.html").read_text()
    assert all(f"<td>{label}</td>" in page for label in WORDS)


def test_several_labels_in_any_order_are_learned_and_forgotten_as_sets(files, capsys):
    rows = ["cash lunch,spam;ham", "lunch noon,ham", "cash win,spam", "see you,"] * 3
    for name, lines in {"a": rows, "more": ["bank soup,spam;ham"], "same": ["bank soup, ham ; spam"]}.items():
        (files / f"{name}.csv").write_text("\n".join(["text,tags", *lines]))
    model = files / "tags.priory"
    assert main(["train", str(files / "a.csv"), "--target", "tags", "--multilabel", ";", "-o", str(model)]) == 0
    assert main(["predict", str(model), str(files / "a.csv"), "--proba"]) == 0
    before = capsys.readouterr().out.splitlines()
    assert main(["learn", str(model), str(files / "more.csv")]) == 0
    assert main(["forget", str(model), str(files / "same.csv")]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(files / "a.csv"), "--proba"]) == 0
    assert capsys.readouterr().out.splitlines() == before[-13:]
    assert main(["forget", str(model), str(files / "more.csv")]) == 3
    assert "more.csv:2" in capsys.readouterr().err


def test_labels_that_are_paths_bring_their_parents_along(files, capsys):
    (files / "p.csv").write_text(
        "\n".join(["text,tags", *["soup lunch,food/soup", "bread noon,food", "roof,home"] * 5])
    )
    model, path = str(files / "p.priory"), str(files / "p.csv")
    assert main(["train", path, "--target", "tags", "--multilabel", ";", "--hierarchy", "-o", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, path, "--proba", "--threshold", "f1"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert all(float(row["probability_food/soup"]) <= float(row["probability_food"]) for row in rows)
    assert rows[0]["labels"] == "food;food/soup"
    assert main(["predict", model, path, "--threshold", "2"]) == 2


def test_texts_without_label_are_forgotten(files):
    model = files / "m.priory"
    for command in (["learn", "new.csv"], ["forget", "new.csv"]):
        assert main([command[0], str(model), str(files / command[1]), "--unlabelled"]) == 0
    left = priory.load(model)
    assert left.learned_.unlabelled is None
    assert left.statistics_.n.sum() == 30
