"""A service with a key answers a request to forget with a receipt and, once, with its opening."""

import json
from itertools import pairwise

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import priory as pr
from priory.storage.receipt_verifier import RefusedError
from priory.storage.receipts import verify_with_model as verify
from running_service import connect

ROWS = ["win cash now", "cash prize", "lunch at noon", "see you at noon", "claim the prize"]
LABELS = ["spam", "spam", "ham", "ham", "spam"]


@pytest.fixture
def key(tmp_path):
    key = ed25519.Ed25519PrivateKey.generate()
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return key


@pytest.fixture
def pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def test_receipts_follow_each_other_across_restarts(tmp_path, pem):
    with connect(tmp_path, sign_key=tmp_path / "key.pem") as client:
        client.create("mail")
        client.learn("mail", ROWS, LABELS)
        one = client.forget("mail", ROWS[:1], LABELS[:1], key="request 1")
        again = client.forget("mail", ROWS[:1], LABELS[:1], key="request 1")
        assert "opening" not in again
        assert again["receipt"] == one["receipt"]
        learned = client.learn("mail", ["free entry"], ["spam"])
        (tmp_path / "one.priory").write_bytes(client.download("mail"))
    with connect(tmp_path, sign_key=tmp_path / "key.pem") as client:
        two = client.forget("mail", id=learned["id"])
        three = client.forget("mail", ROWS[1:2], LABELS[1:2])
        (tmp_path / "model.priory").write_bytes(client.download("mail"))
        chain = client.get_receipts("mail")["receipts"]
        assert client.get_receipts("mail", after=3)["receipts"] == chain[4:]
    # what was learned since the last receipt is stated before more is forgotten
    assert [len(receipt["rows"]) for receipt in chain] == [0, 1, 0, 1, 1]
    assert [one["receipt"], two["receipt"], three["receipt"]] == [chain[1], chain[3], chain[4]]
    for before, after in pairwise(chain):
        assert verify(after, pem, previous=before)
    model = pr.load(tmp_path / "model.priory")
    assert "the one before" in verify(three["receipt"], pem, model, opening=three["opening"], previous=chain[3])
    with pytest.raises(RefusedError, match="has left"):
        verify(one["receipt"], pem, model, opening=one["opening"])
    on_disk = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    for secret in (*one["opening"]["salts"]["rows"], *three["opening"]["salts"]["rows"]):
        assert secret.encode() not in on_disk
    assert json.dumps(chain).encode().count(b"cash") == 0


def test_without_a_key_there_are_no_receipts(tmp_path):
    with connect(tmp_path) as client:
        client.create("mail")
        client.learn("mail", ROWS, LABELS)
        assert "receipt" not in client.forget("mail", ROWS[:1], LABELS[:1])
        assert client.get_receipts("mail") == {"model": "mail", "receipts": []}


def test_the_last_row_of_a_model_gets_a_receipt(tmp_path, pem):
    with connect(tmp_path, sign_key=tmp_path / "key.pem") as client:
        client.create("mail")
        client.learn("mail", ROWS[:1], LABELS[:1])
        answered = client.forget("mail", ROWS[:1], LABELS[:1])
        assert verify(answered["receipt"], pem, pr.TextClassifier(), opening=answered["opening"])
