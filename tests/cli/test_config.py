"""Options from priory.toml or pyproject.toml, in the current folder."""

import json

import pytest

ROWS = "id;betrag;farbe;label\n" + "".join(
    f"{i};{i % 7},5;{'rot' if i % 3 else 'blau'};{'ja' if i % 2 else 'nein'}\n" for i in range(60)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "kauf.csv").write_text(ROWS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(run, *arguments):
    code, out, err = run("train", "kauf.csv", "--force", "--json", *arguments)
    assert code == 0, err
    return json.loads(out), err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("priory.toml", 'target = "label"\nignore = ["id"]\n[train]\nplain = true\n[predict]\ntop = 2\n'),
        ("pyproject.toml", '[tool.priory]\ntarget = "label"\nignore = "id"\n[tool.priory.train]\nplain = true\n'),
    ],
)
def test_a_file_gives_defaults_and_says_so(folder, run, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    result, err = train(run)
    assert set(result["columns"]) == {"betrag", "farbe"}
    assert result["scores"] is None  # plain
    assert f"priory: options from {name}: " in err


def test_the_command_line_comes_first(folder, run):
    (folder / "priory.toml").write_text('target = "farbe"\n[train]\nplain = true\n', encoding="utf-8")
    assert set(train(run, "--target", "label")[0]["classes"]) == {"ja", "nein"}


def test_tables_and_lists_are_pairs_and_names(folder, run):
    text = 'target = "label"\ncolumns = ["betrag", "farbe"]\n[train]\nplain = true\ntype = {betrag = "label"}\n'
    (folder / "priory.toml").write_text(text, encoding="utf-8")
    assert train(run)[0]["columns"] == {"betrag": "categorical", "farbe": "categorical"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('tagret = "label"', "priory.toml: 'tagret' is no option (did you mean 'target'?); remove it"),
        ("[train]\nplane = true", "priory.toml: [train] 'plane' is no option (did you mean 'plain'?); remove it"),
        ("target = ", "priory.toml: is not TOML"),
        ("alpha = -1", "-1.0 is not allowed"),
    ],
)
def test_a_wrong_file_is_one_line(folder, run, text, problem):
    (folder / "priory.toml").write_text(text, encoding="utf-8")
    code, _, err = run("train", "kauf.csv")
    assert (code, len(err.splitlines())) == (2, 1)
    assert problem in err


def test_the_short_help_leaves_out_what_the_long_one_has(run):
    short, long = run("train", "--help")[1], run("train", "--help-all")[1]
    assert "--target" in short
    assert "--encoding" not in short
    assert "--encoding" in long
    assert "Reading files:" in long
