"""Model files written by a fuzzer: each is loaded, or refused with one of Priory's own errors; nothing else may happen.

    pip install atheris
    python benchmarks/fuzz_models.py [-runs=1000000] [-seed=1] [-max_len=4096]

Half of the inputs are files as the fuzzer writes them, starting from the files of small models. The other half are
edits of a model's tree, arrays, notes and manifest, put into a file with every checksum right, some of them signed:
what a hostile author would write. A model that is loaded then has to predict, learn and be saved: it may refuse, but it
must not crash. A file that was signed with another key is never loaded.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import atheris
import numpy as np

import priory as pr
import priory.bag_of_words.tokenizer
from priory import naive_bayes as nb
from priory.errors import PrioryError

with atheris.instrument_imports():
    from priory.storage import inspect as inspected
    from priory.storage import load, save
    from priory.storage.container import HEADER_STRUCT, ArraySections, pack_model_file
    from priory.storage.signatures import SharedSecretKey
    from priory.storage.value_encoding import encode_value

ROWS = [{"a": "xx", "b": 1.5, "c": 2}, {"a": "yy", "b": -7.0, "c": 0}, {"a": "yy", "b": None, "c": 1}] * 2
NUMBERS = np.array([[0, 1], [1, 0], [2, 1], [1, 3]])
LONG = [" ".join(f"word{i}" for i in range(80)), "word1 word300"]
TEXTS, LABELS = ["win cash", "cash été", "lunch at noon"], ["spam", "spam", "ham"]
MODELS: list[tuple[Any, Any]] = [
    (pr.TextClassifier(salt=1).fit(TEXTS, LABELS), TEXTS),
    (pr.TextClassifier("multinomial", ngram_range=(1, 2), min_df=2, salt=1).fit(TEXTS, LABELS), TEXTS),
    (pr.TextClassifier(buckets=8, salt=1).fit(TEXTS, LABELS), TEXTS),
    (pr.TextClassifier(salt=1).fit(LONG, ["spam", "ham"]), LONG),
    (pr.NaiveBayes(alpha=1.0).fit(ROWS, [0, 1, 1] * 2).decay(0.5), ROWS),
    (pr.NaiveBayes({"a": pr.families.Text}).fit(ROWS, [0, 1, 1] * 2), ROWS),
    *((kind().fit(NUMBERS, [0, 0, 1, 1]), NUMBERS) for kind in (nb.GaussianNB, nb.BernoulliNB, nb.CategoricalNB)),
    *((kind().fit(NUMBERS, [0, 0, 1, 1]), NUMBERS) for kind in (nb.MultinomialNB, nb.PoissonNB, nb.GaussianBayes)),
    (pr.BayesianLinearRegression().fit(NUMBERS, [0.0, 1.0, 2.0, 2.5]), NUMBERS),
    (pr.BayesianLogisticRegression().fit(NUMBERS, [0, 1, 0, 1]), NUMBERS),
]
ODD: list[Any] = [None, True, -1, 0, 1, 2**31, 2**63, 10**30, -0.5, 1e308, "", "x", "é", [], {}, {"tuple": []}]
ODD += [
    {"float": "nan"},
    {"class": "Words"},
    {"array": ["<f8", [0]]},
    {"list": [1]},
    {"strings": ["O", [2], {"array": ["<i8", [2]]}]},
]
ODD += [{"narrow": ["<f8", {"array": ["|u1", [80, 2]]}]}, {"steps": {"array": ["|u1", [80]]}}, {"array": ["|u1", [2]]}]
PARTS: list[Any] = [
    {"name": "card", "bytes": 5, "optional": True},
    {"name": "x", "bytes": 0, "optional": False},
    [],
    {},
]
SECRET, OTHER = (SharedSecretKey(bytes([i]) * 32) for i in (1, 2))


def parts_of(model: Any) -> tuple[str, ArraySections]:
    sections = ArraySections()
    return json.dumps(encode_value(model, sections)), sections


SEEDS = [parts_of(model) for model, _ in MODELS]
PATH = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)) / "model.priory"


KEY = PATH.with_name("key")
KEY.write_bytes(SECRET.value)


def place(tree: Any, data: atheris.FuzzedDataProvider) -> tuple[Any, Any]:
    """A random place in a tree: the container, and the name or number in it."""
    holder, key = {"": tree}, ""
    while isinstance(holder[key], dict | list) and len(holder[key]) and data.ConsumeIntInRange(0, 7):
        holder = holder[key]
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        key = keys[data.ConsumeIntInRange(0, len(keys) - 1)]
    return holder, key


def edited(data: atheris.FuzzedDataProvider) -> tuple[int, bytes]:
    """The file of a model after some edits of its tree and arrays."""
    number = data.ConsumeIntInRange(0, len(SEEDS) - 1)
    tree, sections = json.loads(SEEDS[number][0]), ArraySections(dict(SEEDS[number][1].arrays))
    for _ in range(data.ConsumeIntInRange(1, 4)):
        if data.ConsumeBool():
            holder, key = place(tree, data)
            other, at = place(tree, data)
            deed = data.ConsumeIntInRange(0, 4)
            if deed == 0:
                holder[key] = copy.deepcopy(data.PickValueInList(ODD))
            elif deed == 1:
                holder[key] = json.loads(json.dumps(other[at]))
            elif deed == 2:
                del holder[key]
            elif deed == 3 and isinstance(holder, dict):
                holder[data.ConsumeUnicodeNoSurrogates(8)] = holder.pop(key)
            else:
                holder[key] = data.ConsumeInt(8) if data.ConsumeBool() else data.ConsumeFloat()
                holder[key] = holder[key] if np.isfinite(float(holder[key])) else None
        elif sections.arrays:
            kind = data.PickValueInList(sorted(sections.arrays))
            arrays = list(sections.arrays[kind])
            which = data.ConsumeIntInRange(0, len(arrays) - 1)
            raw = bytearray(arrays[which].tobytes())
            if raw:
                at = data.ConsumeIntInRange(0, len(raw) - 1)
                new = data.ConsumeBytes(8)[: len(raw) - at]
                raw[at : at + len(new)] = new
            arrays[which] = np.frombuffer(bytes(raw), dtype=kind)
            sections.arrays[kind] = arrays
    parts = {name: data.ConsumeBytes(70) for name in ("card", "x")[: data.ConsumeIntInRange(0, 2)]}
    key = data.PickValueInList([None, SECRET, OTHER])
    blob = b"".join(pack_model_file(tree, sections, parts, key))
    return number, reseal_file(blob, key, data) if data.ConsumeBool() else blob


def reseal_file(blob: bytes, key: SharedSecretKey | None, data: atheris.FuzzedDataProvider) -> bytes:
    """The file after an edit of its manifest, with a correct header and signature."""
    fields = HEADER_STRUCT.unpack(blob[:64])
    content, start = json.loads(blob[64 : 64 + fields[3]]), 64 + fields[3]
    body = blob[start + -start % 64 : len(blob) - (64 if key else 0)]
    name = data.PickValueInList(sorted(content))
    holder, at = place(content[name], data) if data.ConsumeBool() else (content, name)
    holder[at] = copy.deepcopy(data.PickValueInList(PARTS + ODD)) if data.ConsumeBool() else data.ConsumeInt(8)
    manifest = json.dumps(content).encode()
    size = 64 + len(manifest) + -len(manifest) % 64 + len(body) + (64 if key else 0)
    head = HEADER_STRUCT.pack(*fields[:3], len(manifest), size, bytes(32))[:-32]
    digest = hashlib.sha256(head + manifest).digest()
    signature = key.sign_digest(digest) if key else b""
    end = signature + hashlib.sha256(digest + signature).digest() if key else b""
    return head + digest + manifest + bytes(-len(manifest) % 64) + body + end


def one_input(data: bytes) -> None:
    provider = atheris.FuzzedDataProvider(data)
    deed = provider.ConsumeIntInRange(0, 15)
    number, blob = edited(provider) if deed % 2 else (0, provider.ConsumeBytes(len(data)))
    PATH.write_bytes(blob)
    key = KEY if deed in (5, 7) else None
    try:
        model = inspected(PATH) if deed < 4 else load(PATH, key=key)
    except PrioryError:
        return
    assert key is None or blob[-64:-32] == SECRET.sign_digest(blob[32:64]), "loaded what was not signed"
    if deed == 15:
        use_model(model, MODELS[number][1])


def use_model(model: Any, X: Any) -> None:
    """Use a loaded model in every way; whatever it answers, it must not crash."""
    for question in (
        lambda: model.predict(X),
        lambda: model.partial_fit(X[:1], model.classes_[:1]),
        lambda: save(model, PATH),
    ):
        try:
            question()
        except PrioryError:
            pass
        except (MemoryError, RecursionError, SystemError):
            raise
        except Exception:
            pass


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as corpus:
        for number, (tree, sections) in enumerate(SEEDS):
            blob = b"".join(pack_model_file(json.loads(tree), sections))
            (Path(corpus) / f"whole{number}").write_bytes(blob + b"\0")
            blob = b"".join(pack_model_file(json.loads(tree), sections, {"card": b"hello"}, SECRET))
            (Path(corpus) / f"signed{number}").write_bytes(blob + b"\0")
        for number in range(32):
            (Path(corpus) / f"edit{number}").write_bytes(bytes(range(number, number + 40)) + b"\1")
        options = sys.argv[1:] or ["-runs=1000000"]
        atheris.Setup([sys.argv[0], *options, corpus], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
