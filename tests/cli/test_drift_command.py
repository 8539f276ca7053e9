"""``priory drift`` names what has changed between two files."""

import json

import pytest

from priory.cli.entry_point import main


@pytest.fixture
def files(tmp_path):
    for name, words in {"old": ("noon", "home"), "same": ("home", "noon"), "new": ("noon", "crypto")}.items():
        rows = [f"see you {words[k % 2]},{k % 7},{'ab'[k % 2]}" for k in range(120)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,size,label", *rows]))
    return tmp_path


def test_changed_words_are_named(files, capsys):
    assert main(["drift", str(files / "old.csv"), "--new", str(files / "new.csv")]) == 3
    assert "crypto" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_unchanged_rows_exit_with_zero(files, capsys, more):
    assert main(["drift", str(files / "old.csv"), "--new", str(files / "old.csv"), *more]) == 0
    assert "no drift" in capsys.readouterr().out


def test_the_target_and_json(files, capsys):
    command = ["drift", str(files / "old.csv"), "--new", str(files / "same.csv"), "--target", "label", "--json"]
    assert main(command) == 3
    found = json.loads(capsys.readouterr().out)
    assert [line["name"] for line in found["changes"]] == ["text"]


def test_a_missing_file_is_one_line(files, capsys):
    assert main(["drift", str(files / "old.csv"), "--new", str(files / "none.csv")]) == 5
    assert capsys.readouterr().err.count("\n") == 1
