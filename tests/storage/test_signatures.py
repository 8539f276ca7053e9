"""Signed model files: with a key only what was signed by it is believed; without one, every flipped byte is seen."""

import hashlib
import json
import re
import sys

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import priory as pr
from priory.cli import main
from priory.errors import DataError, MissingDependencyError, ModelFileError
from priory.storage import sign, updating
from priory.storage.container import HEADER_STRUCT, ArraySections, pack_model_file
from priory.storage.signatures import load_signature_key
from priory.storage.value_trees import encode_value

TEXTS, LABELS = ["win cash", "cash", "lunch été"], ["spam", "spam", "ham"]
PEM = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)


def private_pem(key, encryption=None):
    return key.private_bytes(*PEM, encryption or serialization.NoEncryption())


def public_pem(key):
    return key.public_key().public_bytes(PEM[0], serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def keys(tmp_path):
    """Files with keys: two pairs."""
    for i in (1, 2):
        pair = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)
        (tmp_path / f"private{i}").write_bytes(private_pem(pair))
        (tmp_path / f"public{i}").write_bytes(public_pem(pair))
    return tmp_path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.priory"


@pytest.fixture
def model():
    return pr.TextClassifier(salt=1).fit(TEXTS, LABELS)


def refused(path, key, because):
    for look in (pr.load, pr.storage.inspect):
        with pytest.raises(ModelFileError, match=f"^{re.escape(str(path))}: .*{because}") as error:
            look(path, key=key)
        assert "\n" not in str(error.value)


def test_a_signed_file_is_read_with_its_key_and_without_one(keys, path, model):
    pr.save(model, path, key=keys / "private1")
    for key in (None, keys / "private1", keys / "public1"):
        assert pr.load(path, key=key).vocabulary_ == model.vocabulary_
    assert pr.storage.inspect(path, key=keys / "public1").signature == "ed25519"
    assert "signed    ed25519" in str(pr.storage.inspect(path))


def test_unsigned_files_and_other_keys_are_refused(keys, path, model):
    pr.save(model, path)
    refused(path, keys / "public1", "it is not signed")
    sign(path, keys / "private1")
    refused(path, keys / "public2", "belongs to another key or another file")


def test_what_was_changed_with_all_checksums_right_is_refused_by_the_key(keys, path, model):
    pr.save(model, path, key=keys / "private1")
    signature = path.read_bytes()[-64 - 32 : -32]

    class Forger:
        def sign_digest(self, digest):
            return signature

    sections = ArraySections()
    tree = encode_value(pr.TextClassifier(salt=2).fit(TEXTS, LABELS), sections)
    path.write_bytes(b"".join(pack_model_file(tree, sections, key=Forger())))
    assert pr.load(path).salt_ == 2
    refused(path, keys / "public1", "belongs to another key or another file")


@pytest.mark.slow
def test_every_flipped_byte_and_every_truncation_is_refused_without_a_key(keys, path, model):
    pr.save(model, path, key=keys / "private1", notes={"card": b"made in spring"})
    blob = path.read_bytes()
    for i in range(0, len(blob) - 200, 7):
        path.write_bytes(blob[:i] + bytes([blob[i] ^ (1 << i % 8)]) + blob[i + 1 :])
        with pytest.raises(ModelFileError):
            pr.load(path)
    for i in range(len(blob) - 200, len(blob)):  # the note, and the signature
        for damaged in (blob[:i] + bytes([blob[i] ^ (1 << i % 8)]) + blob[i + 1 :], blob[:i]):
            path.write_bytes(damaged)
            with pytest.raises(ModelFileError):
                pr.load(path)


def test_a_signature_that_is_missing_or_of_another_size_is_refused(keys, path, model):
    pr.save(model, path, key=keys / "private1")
    blob = path.read_bytes()
    _, form, least, length, size, _ = HEADER_STRUCT.unpack(blob[:64])
    for cut in (96, 64, 32, 1):
        head = HEADER_STRUCT.pack(blob[:8], form, least, length, size - cut, bytes(32))[:-32]
        digest = hashlib.sha256(head + blob[64 : 64 + length]).digest()
        path.write_bytes(head + digest + blob[64 : size - cut])
        with pytest.raises(ModelFileError, match="do not fill the file"):
            pr.load(path)


def test_changing_a_file_keeps_its_signature_only_with_the_private_key(keys, path, model):
    pr.save(model, path, key=keys / "private1")
    with updating(path, key=keys / "private1") as file:
        file.model.partial_fit(TEXTS, LABELS)
    with updating(path, key=keys / "public1") as file:
        assert file.model.class_count_.tolist() == [2.0, 4.0]
    refused(path, keys / "public1", "it is not signed")
    with pytest.raises(ModelFileError, match="it is not signed"), updating(path, key=keys / "public1"):
        pass
    sign(path, keys / "private1")
    assert pr.load(path, key=keys / "public1").class_count_.tolist() == [2.0, 4.0]
    with updating(path) as file:
        file.model.partial_fit(TEXTS, LABELS)
    refused(path, keys / "public1", "it is not signed")


def test_keys_that_are_none_are_refused_and_nothing_is_written(keys, path, model):
    locked = private_pem(ed25519.Ed25519PrivateKey.generate(), serialization.BestAvailableEncryption(b"word"))
    bad = {
        "secret": (bytes(32), "is not a PEM key"),
        "long": (bytes(70_000), "is not a PEM key"),
        "empty": (b"", "is not a PEM key"),
        "broken": (b"-----BEGIN PRIVATE KEY-----\nxyz\n-----END PRIVATE KEY-----\n", "is not a PEM key"),
        "locked": (locked, "without a password"),
        "curve": (private_pem(ec.generate_private_key(ec.SECP256R1())), "is not an Ed25519 key"),
        "public": ((keys / "public1").read_bytes(), "is a public key, which can only check signatures"),
    }
    for name, (content, what) in bad.items():
        (keys / name).write_bytes(content)
        with pytest.raises(DataError, match=f"^{re.escape(str(keys / name))}: .*{what}") as error:
            pr.save(model, path, key=keys / name)
        assert "\n" not in str(error.value)
        assert not path.exists()
    for missing in (keys / "none", keys):
        with pytest.raises(OSError, match=re.escape(str(missing))):
            pr.save(model, path, key=missing)


def test_ed25519_without_its_package_says_what_to_install(keys, path, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingDependencyError, match=r"pip install priory\[sign\]"):
        pr.save(model, path, key=keys / "private1")


def test_a_private_key_is_not_shown(keys):
    assert "private=" not in repr(load_signature_key(keys / "private1"))


def test_the_command_line_signs_and_requires_signatures(keys, path, capsys, monkeypatch):
    monkeypatch.chdir(keys)
    (keys / "mail.csv").write_text("label,text\n" + "".join(f"{y},{x}\n" for x, y in zip(TEXTS, LABELS, strict=True)))

    def run(*arguments):
        capsys.readouterr()
        code = main(list(arguments))
        return code, *capsys.readouterr()

    assert run("train", "mail.csv", "--target", "label", "--text", "text", "--plain")[0] == 0
    strict = ("--require-signature", "public1")
    using = [
        ("predict", "mail.priory", "mail.csv"),
        ("explain", "mail.priory", "cash"),
        ("evaluate", "mail.priory", "mail.csv"),
        ("inspect", "mail.priory"),
        ("merge", "mail.priory", "mail.priory", "-o", "both.priory"),
        ("learn", "mail.priory", "mail.csv"),
        ("sign", "mail.priory", "--key", "private2"),
    ]
    for command in using:
        code, _, err = run(*strict, *command)
        assert (code, err) == (
            4,
            "priory: mail.priory: it is not signed; sign it with `priory sign`, or get a signed file.\n",
        )
    assert run("sign", "mail.priory", "--key", "private1") == (0, "signed mail.priory: ed25519\n", "")
    for command in using[:-2]:
        code, _, err = run(*strict, *command)
        assert (code, "sign" in err) == (0, False)
    code, out, _ = run(*strict, "inspect", "mail.priory", "--json")
    assert (code, json.loads(out)["signature"]) == (0, "ed25519")
    assert run("--require-signature", "private1", "learn", "mail.priory", "mail.csv")[0] == 0
    assert run(*strict, "learn", "mail.priory", "mail.csv")[0] == 0
    assert run(*strict, "learn", "mail.priory", "mail.csv")[0] == 4
    assert run("sign", "mail.priory", "--key", "none") == (5, "", "priory: none: no such file or directory\n")
    assert run("sign", "mail.priory", "--key", "public1")[0] == 3
    assert run("sign", "mail.csv", "--key", "private1")[0] == 4
