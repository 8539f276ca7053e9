"""A model card says what is in the file, and nothing else."""

import random

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import priory as pr
from priory.cli import main
from priory.storage.receipts import ReceiptBook
from priory.workflows import make_card


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A file of a model that has forgotten a row, with receipts."""
    monkeypatch.chdir(tmp_path)
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key = ed25519.Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, *private)
    (tmp_path / "key.pem").write_bytes(key)
    rng = np.random.default_rng(0)
    X = [
        {"age": int(a), "<b>_city_": c}
        for a, c in zip(rng.integers(18, 80, 60), rng.choice(["A", "B"], 60), strict=True)
    ]
    y = ["yes" if row["age"] > 50 else "no" for row in X]
    model = pr.NaiveBayes().fit(X, y)
    book = ReceiptBook("key.pem", "salts")
    book.issue_state(model)
    book.forget(model, X[:2], y[:2])
    pr.save(model, "people.priory")
    return model


def test_a_card_has_the_facts_of_the_file(people):
    text = make_card("people.priory").to_markdown()
    assert "58 rows" in text
    assert text.count("training rows") == 1  # what the file holds is said once
    assert "* It holds sums over the rows of each class." in text
    assert "| accuracy |" in text
    assert "| 1 | 20" in text  # receipt 1 with its time
    assert "AUC 0." in text
    assert "priory forget MODEL" in text


def test_names_from_the_data_are_escaped(people):
    card = make_card("people.priory")
    assert "<b>" not in card.to_html()
    assert "&lt;b&gt;_city_" in card.to_html()
    assert "\\<b\\>\\_city\\_" in card.to_markdown()


def test_the_command_writes_markdown_or_html(people, tmp_path, capsys):
    assert main(["card", "people.priory"]) == 0
    assert capsys.readouterr().out.startswith("# people.priory\n\n## What it was trained on\n\n* NaiveBayes")
    assert main(["card", "people.priory", "-o", "card.html"]) == 0
    page = (tmp_path / "card.html").read_text()
    assert page.count("<table>") == page.count("</table>") == 2
    assert "<script" not in page
    assert main(["card", "people.priory", "-o", "card.html"]) == 5


def test_models_without_rows_and_releases_have_cards(people, tmp_path):
    pr.save(pr.TextClassifier(memory=0).fit(["win cash", "lunch"], ["spam", "ham"]), "texts.priory")
    text = make_card("texts.priory").to_markdown()
    assert "too few rows to judge" in text
    assert "no receipts" in text
    domains = {"age": (0, 100), "<b>_city_": ["A", "B"]}
    released = people.release(1, domains=domains, classes=["yes", "no"], source=random.Random(0))
    pr.save(released, "public.priory")
    assert "with epsilon 1" in make_card("public.priory").to_markdown()
    assert "cannot forget" in make_card("public.priory").to_markdown()
