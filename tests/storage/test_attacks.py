"""Files that are not valid models: each is refused with a message of one line, and nothing in them is run."""

import hashlib
import json
import os
import pickle
import sys
import time
import tracemalloc

import numpy as np
import pytest

import fuzz_models
import priory as pr
from hostile_edits import EDITS, pack_manifest
from priory import naive_bayes as nb
from priory.core.exact_sums import ExactSums
from priory.errors import DataError, ModelFileError, ModelTooLargeError
from priory.storage.container import FORMAT_VERSION, HEADER_STRUCT, MAGIC_BYTES, ArraySections, pack_model_file
from priory.storage.validation import list_estimators
from priory.storage.value_trees import encode_value
from priory.text.token_bags import TokenBags

TEXTS, LABELS = ["win cash", "cash", "lunch été"], ["spam", "spam", "ham"]
PLAIN = {"sections": [], "parts": [], "sha256": [], "signature": None}  # of a manifest
ROWS = [{"sender": "a", "hour": 1.5}, {"sender": "b", "hour": 7.5}, {"sender": "b", "hour": 8.0}]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.priory"


@pytest.fixture
def words(path):
    """The bytes of a small model."""
    pr.save(pr.TextClassifier().fit(TEXTS, LABELS), path)
    return path.read_bytes()


def refused(path, blob, because, looks=(pr.load, pr.storage.inspect)):
    path.write_bytes(blob)
    for look in looks:
        with pytest.raises(ModelFileError) as error:
            look(path)
        message = str(error.value)
        assert message.startswith(f"{path}: ")
        assert because in message
        assert "\n" not in message


def forged(model, change):
    """The file of a model with its tree changed, and every checksum right."""
    sections = ArraySections()
    tree = json.loads(json.dumps(encode_value(model, sections)))
    return b"".join(pack_model_file(change(tree) or tree, sections))


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_flipped_byte_is_refused(words, path):
    for i in range(len(words)):
        path.write_bytes(words[:i] + bytes([words[i] ^ (1 << i % 8)]) + words[i + 1 :])
        with pytest.raises(ModelFileError):
            pr.load(path)


@pytest.mark.slow
def test_every_flipped_byte_of_a_note_is_refused(path):
    pr.save(pr.TextClassifier(salt=1), path, notes={"card": b"made in spring", "more": b"x" * 64})
    words = path.read_bytes()
    for i in range(len(words)):
        path.write_bytes(words[:i] + bytes([words[i] ^ (1 << i % 8)]) + words[i + 1 :])
        with pytest.raises(ModelFileError):
            pr.load(path)


def test_bytes_between_notes_are_refused(path):
    pr.save(pr.TextClassifier(salt=1), path, notes={"card": b"abc"})
    blob = path.read_bytes()
    _, form, least, length, size, _ = HEADER_STRUCT.unpack(blob[:64])
    body = b"abc" + bytes(60) + b"x"
    sums = [hashlib.sha256(part).hexdigest().encode() for part in (blob[-64:], body)]
    manifest = blob[64 : 64 + length].replace(*sums)
    head = HEADER_STRUCT.pack(MAGIC_BYTES, form, least, length, size, bytes(32))[:-32]
    blob = head + hashlib.sha256(head + manifest).digest() + manifest + blob[64 + length : -64] + body
    refused(path, blob, "bytes between its parts")


def test_every_truncation_is_refused(words, path):
    for size in range(0, len(words), 5):
        path.write_bytes(words[:size])
        with pytest.raises(ModelFileError):
            pr.load(path)


def test_trailing_bytes_are_refused(words, path):
    refused(path, words + bytes(64), "longer than it says")


@pytest.mark.parametrize(
    ("blob", "what"),
    [
        (b"", "it is empty"),
        (pickle.dumps({}), "it is a pickle; priory never loads pickles"),
        (b"PK\3\4" + bytes(99), "it is a zip file"),
        (b"\x1f\x8b" + bytes(99), "it is a gzip file; unpack it first"),
        (b"<!doctype html>" + bytes(99), "it is a web page or XML"),
        (b"label,text\n" * 9, "it starts with other bytes than a model"),
        (MAGIC_BYTES, "cut short"),
    ],
    ids=["empty", "pickle", "zip", "gzip", "html", "csv", "head"],
)
def test_other_files_are_told_from_models(blob, what, path):
    refused(path, blob, what)


def test_a_newer_file_is_refused_by_name(words, path):
    _, _, _, length, size, _ = HEADER_STRUCT.unpack(words[:64])
    old = pr.__version__.encode()
    manifest = words[64 : 64 + length].replace(b'"priory":"' + old + b'"', b'"priory":"9.1.0"')
    head = HEADER_STRUCT.pack(MAGIC_BYTES, FORMAT_VERSION + 1, FORMAT_VERSION + 1, length, size, bytes(32))[:-32]
    blob = head + hashlib.sha256(head + manifest).digest() + manifest + words[64 + length :]
    refused(path, blob, f"made by priory 9.1.0 (format {FORMAT_VERSION + 1}); this is {pr.__version__}")


def with_formats(blob, form, needed):
    """The file with other format numbers, and the checksum of its header right."""
    _, _, _, length, size, _ = HEADER_STRUCT.unpack(blob[:64])
    head = HEADER_STRUCT.pack(MAGIC_BYTES, form, needed, length, size, bytes(32))[:-32]
    manifest = blob[64 : 64 + length]
    return head + hashlib.sha256(head + manifest).digest() + blob[64:]


TEXT_2 = int.from_bytes(b"2", "little")


@pytest.mark.parametrize(
    ("form", "needed", "what"),
    [
        (0, 0, "says format 0, to be read from format 0 on, which no version writes; get the file again"),
        (2, 0, "says format 2, to be read from format 0 on, which no version writes; get the file again"),
        (1, 2, "says format 1, to be read from format 2 on, which no version writes; get the file again"),
        (7, 7, "(format 7); this is {version}, which reads up to format 3: upgrade priory."),
        (7, 2, "(format 7); this is {version}, which reads up to format 3: upgrade priory."),
        (2, 2**32 - 1, "(format 4294967295); this is {version}, which reads up to format 3: upgrade priory."),
        (TEXT_2, TEXT_2, "(format 50); this is {version}, which reads up to format 3: upgrade priory."),
    ],
)
def test_a_format_that_this_version_does_not_know_is_refused_with_what_to_do(words, path, form, needed, what):
    refused(path, with_formats(words, form, needed), what.format(version=pr.__version__))


# -- what is no file ---------------------------------------------------------------------------------------------------


def test_only_files_are_opened(words, path):
    pipe, link, loop = (path.with_name(name) for name in ("pipe", "link", "loop"))
    os.mkfifo(pipe)
    link.symlink_to(path)
    loop.symlink_to(loop)
    for place, what in ((pipe, "a pipe or a device"), (link, "a symbolic link"), (loop, "a symbolic link")):
        with pytest.raises(ModelFileError, match=f"{place}: it is {what}"):
            pr.load(place)
    with pytest.raises(ModelFileError, match="a pipe or a device"):
        pr.load("/dev/zero")
    with pytest.raises(IsADirectoryError):
        pr.load(path.parent)
    with pytest.raises(FileNotFoundError):
        pr.load(path.with_name("none"))


def test_sizes_are_compared_before_anything_is_allocated(path):
    with open(path, "wb") as file:  # a sparse file: it says it has a tebibyte, and takes none
        manifest = b"{}"
        head = HEADER_STRUCT.pack(MAGIC_BYTES, FORMAT_VERSION, FORMAT_VERSION, len(manifest), 1 << 40, bytes(32))[:-32]
        file.write(head + hashlib.sha256(head + manifest).digest() + manifest)
        file.truncate(1 << 40)
    with pytest.raises(ModelFileError, match="its manifest has no priory"):
        pr.load(path)
    manifest = json.dumps(
        {"priory": "1", "model": None, **PLAIN, "sections": [{"kind": "<f8", "bytes": (1 << 40) - 256}]}
    ).encode()
    with open(path, "r+b") as file:
        head = HEADER_STRUCT.pack(MAGIC_BYTES, FORMAT_VERSION, FORMAT_VERSION, len(manifest), 1 << 40, bytes(32))[:-32]
        file.write(head + hashlib.sha256(head + manifest).digest() + manifest)
    with pytest.raises(ModelTooLargeError, match=r"it needs 1024.0 GiB"):
        pr.load(path)


def test_a_manifest_beyond_the_limit_is_not_read(path):
    head = HEADER_STRUCT.pack(MAGIC_BYTES, FORMAT_VERSION, FORMAT_VERSION, 1 << 30, (1 << 30) + 64, bytes(32))
    with open(path, "wb") as file:
        file.write(head)
        file.truncate((1 << 30) + 64)
    with pytest.raises(ModelFileError, match="its manifest would have 1,073,741,824 bytes"):
        pr.load(path)


@pytest.mark.parametrize(
    ("manifest", "what"),
    [
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b"[]", "not a JSON object"),
        (b'{"priory": "1", "priory": "1"}', "given twice"),
        (b'{"priory": "1", "sections": [], "model": NaN}', "NaN is not JSON"),
        (b'{"priory": "1", "sections": [], "model": ' + b"9" * 5000 + b"}", "cannot be read"),
        ({"priory": "\x1b[2J"}, "does not name a version"),
        (b'{"priory": "1", "sections": []}', "which this version does not know"),
        ({"plugin": "os"}, "which this version does not know"),
        ({"sections": {}}, "no list of sections"),
        ({}, "int, which is not a model"),
        ({"sections": [{"kind": "|O", "bytes": 0}]}, "does not know the type of section"),
        ({"sections": [{"kind": "<f8", "bytes": -64}]}, "does not know the type of section"),
        ({"sections": [{"kind": "<f8", "bytes": 64}]}, "do not fill"),
        ({"sections": [{"kind": "<f8", "bytes": 0}] * 2}, "is there twice"),
        ({"sha256": [""]}, "a checksum differs"),
        ({"sha256": None}, "a checksum differs"),
        ({"signature": "none"}, "signed in a way this version does not know"),
        ({"signature": []}, "signed in a way this version does not know"),
        ({"signature": "ed25519"}, "do not fill"),
        ({"parts": {}}, "no list of parts"),
        ({"parts": [{"name": "x", "bytes": 0, "optional": False}]}, "cannot be used without its part 'x'"),
        ({"parts": [{"name": "x", "bytes": 0}]}, "is not a valid part"),
        ({"parts": [{"name": "x", "bytes": 0, "optional": 1}]}, "has no optional"),
        ({"parts": [{"name": "../x", "bytes": 0, "optional": True}]}, "'../x' is not a valid part"),
        ({"parts": [{"name": "x", "bytes": -64, "optional": True}]}, "is not a valid part"),
        ({"parts": [{"name": "x", "bytes": 0, "optional": True}] * 2}, "of different names"),
        ({"parts": [{"name": f"x{i}", "bytes": 0, "optional": True} for i in range(65)]}, "64 parts at most"),
        ({"parts": [{"name": "x", "bytes": 1 << 40, "optional": True}]}, "bytes in all"),
        ({"parts": [{"name": "x", "bytes": 64, "optional": True}]}, "do not fill"),
    ],
    ids=range(30),
)
def test_hostile_manifests_are_refused(manifest, what, path):
    if isinstance(manifest, dict):
        manifest = json.dumps({"priory": "1", "model": 1, **PLAIN, **manifest}).encode()
    start = HEADER_STRUCT.size + len(manifest)
    head = HEADER_STRUCT.pack(
        MAGIC_BYTES, FORMAT_VERSION, FORMAT_VERSION, len(manifest), start + -start % 64, bytes(32)
    )[:-32]
    path.write_bytes(head + hashlib.sha256(head + manifest).digest() + manifest + bytes(-start % 64))
    with pytest.raises(ModelFileError) as error:
        pr.load(path)
    assert what in str(error.value)


BIG = 14_000_000  # characters of a manifest that took 308 MB of memory, or more
BIG_TREES = {
    "numbers": lambda: "[" + "1," * (BIG // 2) + "1]",
    "lists": lambda: "[" + "[]," * (BIG // 3) + "1]",
    "objects": lambda: "[" + "{}," * (BIG // 3) + "1]",
    "strings": lambda: "[" + ",".join(f'"{i:x}"' for i in range(BIG // 8)) + "]",
    "names": lambda: "{" + ",".join(f'"{i:x}":1' for i in range(BIG // 10)) + "}",
}


@pytest.mark.parametrize("kind", BIG_TREES)
def test_nodes_are_counted_before_they_are_parsed(path, kind):
    manifest = f'{{"priory":"1","model":{BIG_TREES[kind]()}}}'.encode()
    path.write_bytes(pack_manifest(manifest))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="its manifest has far more nodes than a model of its size"):
        pr.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(manifest)


def test_a_model_that_could_not_be_read_again_is_not_saved(path, monkeypatch):
    deep = "x"
    for _ in range(40):
        deep = [deep]
    with pytest.raises(DataError, match="nested more than 64 deep"):
        pr.save(pr.TextClassifier(vocabulary={"a": deep}), path)
    monkeypatch.setattr("priory.storage.container.FREE_TREE_BYTES", 0)
    with pytest.raises(ModelTooLargeError, match=r"too many parts: its manifest has far more nodes .*; use fewer"):
        pr.save(pr.NaiveBayes(dict.fromkeys("abcdefgh", "gaussian")), path)
    assert not path.exists()


# -- what cannot be meant ----------------------------------------------------------------------------------------------


def put(place, value):
    """A change of a tree: the node at the end of ``place`` becomes ``value``."""

    def change(tree):
        node = tree
        for step in place[:-1]:
            node = node[step]
        node[place[-1]] = value

    return change


SEEN = ("learned", "statistics_", "Seen")
PART = (*SEEN, "parts", "tuple", 0, "Words")
TREES = [
    (put(("TextClassifier", "learned", "predict"), 1), "does not learn an attribute 'predict'"),
    (put(("TextClassifier", "learned", "__class__"), 1), "does not learn an attribute '__class__'"),
    (put(("TextClassifier", "learned", "x"), 1), "does not learn an attribute 'x'"),
    (put(("TextClassifier", "parameters", "hook"), 1), "no parameters ['hook']"),
    (put(("TextClassifier", "parameters", "analyzer"), "(a+)+$"), "analyzer is '(a+)+$'; use"),
    (put(("TextClassifier", "parameters", "ngram_range"), {"tuple": [1, 10**9]}), "ngram_range is (1, 1000000000)"),
    (put(("TextClassifier", "parameters", "alpha"), -1.0), "alpha is -1.0"),
    (put(("TextClassifier", "parameters", "buckets"), 10**12), "does not fit the columns and parameters"),
    (put(("TextClassifier", "parameters", "stop_words"), {"os.system": {}}), "does not know 'os.system'"),
    (put(("TextClassifier", *SEEN[:2]), {"builtins.eval": {}}), "does not know 'builtins.eval'"),
    (put(("TextClassifier", *SEEN[:2]), {"class": "Words"}), "statistics_ is a type"),
    (put(("TextClassifier", *SEEN[:2]), None), "statistics_ is a NoneType"),
    (put(("TextClassifier", "learned"), {"n_features_in_": 1}), "has no statistics_"),
    (put(("TextClassifier", "learned", "clock_"), 0.0), "clock_ is 0.0"),
    (put(("TextClassifier", "learned", "clock_"), {"float": "nan"}), "clock_ holds nan"),
    (put(("TextClassifier", "learned", "salt_"), "x"), "salt_ is a str"),
    (put(("TextClassifier", *PART, "missed"), -1.0), "is not a valid Words: a count is negative"),
    (put(("TextClassifier", *PART, "extra"), 1), "a record Words has the fields"),
    (put(("TextClassifier", *PART, "n"), 3.0), "n is a float"),
    (put(("TextClassifier", *PART, "counts"), {"array": ["<f8", [10**9, 10**9]]}), "larger than what is left"),
    (put(("TextClassifier", *PART, "counts"), {"array": ["<f8", [-1, 2]]}), "has the shape"),
    (put(("TextClassifier", *PART, "counts"), {"array": ["<f8", [8]]}), "has the shape (8,)"),
    (put(("TextClassifier", *PART, "counts"), {"array": ["|O8", [4, 2]]}), "has no section '|O8'"),
    (put(("TextClassifier", *PART, "counts"), {"array": ["<f8", [4, 2], [0, 0]]}), "has the axes"),
    (put(("TextClassifier", *PART, "counts"), {"array": ["<f8", [0, 2**39]]}), "has the shape"),
    (put(("TextClassifier", *SEEN, "parts"), {"tuple": []}), "does not fit the columns"),
    (put(("TextClassifier", "learned", "statistics_"), {"tuple": [{"tuple": []}] * 9}), "statistics_ is a tuple"),
    (lambda tree: {"list": []}, "list, which is not a model"),
    (lambda tree: {**tree, "more": 1}, "neither a plain value nor an object with one name"),
]


@pytest.mark.parametrize(("change", "what"), TREES, ids=range(len(TREES)))
def test_hostile_trees_are_refused(change, what, path):
    path.write_bytes(forged(pr.TextClassifier(salt=1, memory=0).fit(TEXTS, LABELS), change))
    with pytest.raises(ModelFileError) as error:
        pr.load(path)
    assert what in str(error.value)


def test_arrays_that_nobody_asks_for_are_refused(path):
    for extra in (np.ones(3), np.ones(3, dtype=np.int16)):
        sections = ArraySections()
        tree = encode_value(pr.TextClassifier().fit(TEXTS, LABELS), sections)
        sections.add_array(extra)
        refused(path, b"".join(pack_model_file(tree, sections)), "holds more than the model has")


def with_arrays(model, **changed):
    """A file in which arrays of the only part were changed; the model itself is never asked whether it makes sense."""
    part = model.statistics_.parts[0]
    for name, value in changed.items():
        object.__setattr__(part, name, value)
    return forged(model, lambda tree: None)


def array(*values, kind=float):
    return np.array(values, dtype=kind)


WORDS = [
    ({"n": array(1.0, np.nan)}, "n holds nan"),
    ({"n": array(1.0, -2.0)}, "n is negative"),
    ({"n": array(1.0, 2.0, 3.0)}, "does not fit its other fields"),
    ({"n": array(1.0, 99.0)}, "a part has seen more rows than there were"),
    ({"n": array(1, 2, kind=np.int64)}, "n holds int64 instead of float64"),
    ({"counts": np.full((4, 2), -1.0)}, "a count is negative"),
    ({"counts": np.full((4, 2), np.inf)}, "counts holds inf"),
    ({"counts": np.full((4, 2), 1.7e308)}, "counts are at most 1e+100"),
    ({"arena": array(*b"\xff" * 18, kind=np.uint8)}, "the words are not UTF-8"),
    (
        {"ends": array(1, 2, 3, 18, kind=np.int64), "arena": array(*b"aab" + b"x" * 15, kind=np.uint8)},
        "one of them is there twice",
    ),
    (
        {"ends": array(1, 2, 3, 5, kind=np.int64), "arena": array(*"abéc".encode(), kind=np.uint8)},
        "the words are not UTF-8",
    ),
    ({"ends": array(3, 2, 9, 18, kind=np.int64)}, "do not follow one another"),
    ({"ends": array(3, 7, 9, 2**62, kind=np.int64)}, "do not follow one another"),
    ({"ends": array(3, 7, 9, -(2**63), kind=np.int64)}, "do not follow one another"),
]


@pytest.mark.parametrize(("changed", "what"), WORDS, ids=range(len(WORDS)))
def test_words_that_cannot_be_are_refused(changed, what, path):
    path.write_bytes(with_arrays(pr.TextClassifier(memory=0).fit(TEXTS, LABELS), **changed))
    with pytest.raises(ModelFileError) as error:
        pr.load(path)
    assert what in str(error.value)


def change_bags(**changed):
    """A model of texts whose kept texts were changed."""
    model = pr.TextClassifier().fit(TEXTS, LABELS)
    for name, value in changed.items():
        object.__setattr__(model.statistics_.sample.blocks[0].data, name, value)
    return model


def make_pairs(bucket):
    """The pairs of three texts of which the first shows one."""
    none, one = array(kind=np.int64), array(bucket, kind=np.int64)
    ends, letters = array(0, 1, 1, 1, kind=np.int64), array(9, 4, 9, kind=np.int64)
    return TokenBags(array(kind=np.uint8), none, ends, one, array(1.0), letters)


def change_sample(model, **changed):
    """A model whose kept rows were changed."""
    for name, value in changed.items():
        object.__setattr__(model.statistics_.sample, name, value)
    return model


def keep_rows_of(model, other):
    """A model that keeps the rows of another one."""
    return change_sample(model, blocks=other.statistics_.sample.blocks)


FITTED_TABLE = pr.NaiveBayes().fit(ROWS, LABELS)
KEPT_ROWS = [
    (lambda: change_bags(arena=array(*b"\xff" * 18, kind=np.uint8)), "the tokens are not UTF-8"),
    (lambda: change_bags(pairs=make_pairs(1 << 24)), "a pair has a bucket that is not there"),
    (lambda: pr.TextClassifier().fit(TEXTS, LABELS).set_params(vocabulary=["win"]), "does not fit the columns"),
    (lambda: change_bags(arena=array(kind=np.uint8), ends=array(kind=np.int64)), "does not fit the columns"),
    (
        lambda: change_sample(pr.NaiveBayes().fit(ROWS, LABELS), group=array(0, 1, 2**31 - 1, kind=np.int32)),
        "not learned",
    ),
    (lambda: change_sample(pr.NaiveBayes().fit(ROWS, LABELS), group=array(0, 0, 0, kind=np.int32)), "not learned"),
    (lambda: change_sample(pr.NaiveBayes().fit(ROWS, LABELS), weight=array(1, 1, 1e300)), "counts are at most"),
    (lambda: keep_rows_of(pr.TextClassifier().fit(TEXTS, LABELS), FITTED_TABLE), "does not fit the columns"),
    (
        lambda: keep_rows_of(pr.NaiveBayes().fit([[1.0], [2.0], [2.5]], LABELS), FITTED_TABLE),
        "does not fit the columns",
    ),
    (
        lambda: keep_rows_of(
            pr.TextClassifier(buckets=8, salt=1).fit(TEXTS, LABELS),
            pr.TextClassifier(buckets=8000, salt=1).fit(TEXTS, LABELS),
        ),
        "does not fit the columns",
    ),
]


@pytest.mark.parametrize(("make_model", "what"), KEPT_ROWS, ids=range(len(KEPT_ROWS)))
def test_kept_rows_that_cannot_be_are_refused(make_model, what, path):
    path.write_bytes(forged(make_model(), lambda tree: None))
    with pytest.raises(ModelFileError) as error:
        pr.load(path)
    assert what in str(error.value)


def make_sums(*limbs, base=0):
    """Sums of two classes and two columns with these limbs, whether they make sense or not."""
    return ExactSums(np.tile(np.array(limbs, dtype=np.int64), (2, 2, 1)), base)


NUMBERS = [
    (nb.GaussianNB(), {"second": ExactSums.from_floats(np.full((2, 2), -1.0))}, "a sum of squares is negative"),
    (nb.GaussianNB(), {"first": ExactSums.from_floats(np.ones((2, 3)))}, "other classes or columns than the counts"),
    (nb.GaussianNB(), {"first": np.ones((2, 2))}, "is a ndarray, which a Moments cannot have"),
    (nb.GaussianNB(), {"first": make_sums(1 << 40)}, "a limb is out of range"),
    (nb.GaussianNB(), {"first": make_sums(-1, 1)}, "a limb is out of range"),
    (nb.GaussianNB(), {"first": make_sums(0, 1)}, "wider than it needs to be"),
    (nb.GaussianNB(), {"first": make_sums(1, 0)}, "wider than it needs to be"),
    (nb.GaussianNB(), {"first": make_sums(1, base=5000)}, "larger or smaller than doubles can add up to"),
    (nb.GaussianNB(), {"first": make_sums(1, base=-5000)}, "larger or smaller than doubles can add up to"),
    (nb.GaussianNB(), {"first": ExactSums(np.ones((2, 2, 1)), 0)}, "not an array of 64-bit integers"),
    (nb.GaussianNB(), {"n": np.full((2, 2), 50.0)}, "the number of rows is not their weight"),
    (
        nb.GaussianNB(),
        {"n": np.full((2, 2), 50.0), "weight": ExactSums.from_floats(np.full((2, 2), 50.0))},
        "more rows than there were",
    ),
    (nb.BernoulliNB(), {"successes": np.full((2, 2), 50.0)}, "more successes than trials"),
    (nb.MultinomialNB(), {"tokens": np.full((2, 3), 1.0)}, "does not fit the columns"),
    (nb.CategoricalNB(), {"values": array(1, 0, kind=np.int64)}, "the values are not sorted"),
    (nb.CategoricalNB(), {"counts": np.full((2, 2), 9.0)}, "more rows than there were"),
]


@pytest.mark.parametrize(("model", "changed", "what"), NUMBERS, ids=range(len(NUMBERS)))
def test_sums_that_disagree_are_refused(model, changed, what, path):
    path.write_bytes(with_arrays(model.fit([[0, 1], [1, 0], [1, 1], [1, 0]], [0, 0, 1, 1]), **changed))
    with pytest.raises(ModelFileError) as error:
        pr.load(path)
    assert what in str(error.value)


def test_classes_that_are_unsorted_or_twice_are_refused(path):
    for classes in (["b", "a"], ["a", "a"], ["a", 1]):
        model = pr.TextClassifier().fit(TEXTS, LABELS)
        object.__setattr__(model.statistics_, "classes", np.array(classes, dtype=object))
        path.write_bytes(forged(model, lambda tree: None))
        with pytest.raises(ModelFileError, match="the classes are not sorted, or one of them is there twice"):
            pr.load(path)


LONG = "learned", "statistics_", "Seen", "parts", "tuple", 0, "Words"
WIDE = ("TextClassifier", *LONG, "counts")
ENDS = ("TextClassifier", *LONG, "ends")
NARROW = [
    (put(WIDE, {"narrow": ["<f8", {"array": ["|u1", [1 << 36]]}]}), "larger than what is left"),
    (put(WIDE, {"narrow": ["<i8", {"array": ["|u1", [80, 2]]}]}), "counts holds int64"),
    (put(WIDE, {"narrow": ["|u1", {"array": ["<f8", [0]]}]}), "does not hold unsigned integers of at most 32 bits"),
    (put(WIDE, {"narrow": ["|S9", {"array": ["|u1", [80, 2]]}]}), "cannot be widened to '|S9'"),
    (put(WIDE, {"narrow": ["|O", {"array": ["|u1", [80, 2]]}]}), "cannot be widened to '|O'"),
    (put(WIDE, {"narrow": [[], {"array": ["|u1", [80, 2]]}]}), "cannot be widened to []"),
    (put(WIDE, {"narrow": ["|i1", {"array": ["|u1", [80, 2]]}]}), "cannot be widened to '|i1'"),
    (put(WIDE, {"narrow": ["<f8", 3]}), "does not hold unsigned integers of at most 32 bits"),
    (put(WIDE, {"narrow": ["<f8"]}), "a pair is missing"),
    (put(ENDS, {"steps": {"array": ["|u1", [40, 2]]}}), "steps has the shape [40, 2]"),
    (put(ENDS, {"steps": {"steps": {"array": ["|u1", [80]]}}}), "does not hold unsigned integers of at most 32 bits"),
    (put(ENDS, {"steps": {"array": ["|u1", [79]]}}), "bytes between the arrays"),
]


@pytest.mark.parametrize(("change", "what"), NARROW, ids=range(len(NARROW)))
def test_narrow_numbers_that_cannot_be_are_refused(change, what, path):
    model = pr.TextClassifier(salt=1).fit([" ".join(f"word{i}" for i in range(80)), "word1"], ["a", "b"])
    path.write_bytes(forged(model, change))
    with pytest.raises(ModelFileError) as error:
        pr.load(path)
    assert what in str(error.value)


def test_what_is_widened_counts_before_it_is_allocated(path, monkeypatch):
    pr.save(nb.MultinomialNB().fit(np.ones((2, 100_000), dtype=int), [0, 1]), path)
    assert path.stat().st_size < 202_000
    pr.load(path)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 1_000_000}.__getitem__)
    with pytest.raises(ModelTooLargeError, match=r"it needs 0\.0 GiB; this machine has"):
        pr.load(path)


def test_categories_that_nobody_showed_are_in_proportion_to_the_file(path):
    """A kilobyte asked for a gigabyte, and for a minute."""
    model = nb.CategoricalNB().fit([[0, 1], [1, 0], [1, 1]], [0, 1, 1])
    for changed in ({"values": array(0, (1 << 27) - 2, kind=np.int64)}, {"values": array(0, 2**62, kind=np.int64)}):
        blob, began = with_arrays(model, **changed), time.monotonic()
        refused(path, blob, "number the categories from 0", looks=[pr.load])
        assert time.monotonic() - began < 1
    blob = forged(model, put(("CategoricalNB", "parameters", "min_categories"), 10**8))
    refused(path, blob, "", looks=[pr.load])
    pr.save(nb.CategoricalNB(min_categories=1000).fit([[0, 1], [999, 0]], [0, 1]), path)
    assert pr.load(path).n_categories_.tolist() == [1000, 1000]


SCHEMA = ("NaiveBayes", "learned", "_schema", "Schema")
SCHEMAS = [
    (put((*SCHEMA, "names"), {"tuple": ["sender", "sender"]}), "two columns have the same name"),
    (put((*SCHEMA, "names"), {"tuple": ["sender", "hour", "more"]}), "does not fit the columns"),
    (put((*SCHEMA, "blocks"), {"tuple": []}), "does not fit the columns"),
    (put((*SCHEMA, "blocks", "tuple", 0, "Block", "kind"), "code"), "kind is a str"),
    (put((*SCHEMA, "blocks", "tuple", 0, "Block", "candidates"), {"tuple": [{"class": "Words"}]}), "candidates is a"),
    (put((*SCHEMA, "blocks", "tuple", 1, "Block", "candidates"), {"tuple": [{"class": "Gaussian"}]}), "does not fit"),
    (put(("NaiveBayes", "learned", "n_features_in_"), 10**12), "does not fit the columns"),
    (put((*SCHEMA, "zones"), {"tuple": [{"tuple": ["hour", "../../etc/passwd"]}]}), "a time zone is not one"),
    (put((*SCHEMA, "zones"), {"tuple": [{"tuple": ["when", "UTC"]}]}), "not of a column of dates"),
    (put((*SCHEMA, "zones"), {"tuple": ["UTC"]}), "zones is a"),
    (put(("NaiveBayes", "parameters", "alpha"), 1e308), "alpha is 1e+308; use a number from 0 to 1e+100, or None"),
]


@pytest.mark.parametrize(("change", "what"), SCHEMAS, ids=range(len(SCHEMAS)))
def test_schemas_that_do_not_go_with_what_was_learned_are_refused(change, what, path):
    path.write_bytes(forged(pr.NaiveBayes().fit(ROWS, ["x", "y", "y"]), change))
    with pytest.raises(ModelFileError) as error:
        pr.load(path)
    assert what in str(error.value)


def list_members():
    """Arrays of corrections that answered NaN when they were filled with huge numbers."""
    tables = [e for e in fuzz_models.make_examples() if isinstance(e.model, pr.NaiveBayes)]
    [example] = [e for e in tables if e.model.alpha == 0.5]
    corrections = example.model.corrections_
    [gaussian] = [member for member in corrections.members if hasattr(member, "gaussian")]
    codes = next(c for block in corrections.encoding.blocks for c in block if len(c.scores))
    return example, [
        *((gaussian.gaussian, name) for name in ("means", "roots", "constants")),
        (corrections.evidence, "log_ratios"),
        (codes, "scores"),
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("which", range(5))
def test_corrections_that_answer_nan_are_refused(which, path):
    example, arrays = list_members()
    record, name = arrays[which]
    before = getattr(record, name)
    object.__setattr__(record, name, np.full_like(before, 1e200))
    try:
        refused(path, forged(example.model, lambda tree: None), "too large", looks=[pr.load])
    finally:
        object.__setattr__(record, name, before)


# -- made-up edits (benchmarks/fuzz_models.py makes 4,000 of them) -----------------------------------------------------


@pytest.mark.slow
def test_there_is_an_example_of_every_model_that_can_be_saved():
    assert {example.name for example in fuzz_models.make_examples()} == set(list_estimators())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_edited_files_are_refused_in_one_line_or_harmless():
    outcomes = fuzz_models.run_edits(range(0, 4000, 37), seed=0)
    assert len({outcome.edit for outcome in outcomes}) == len(EDITS)
    assert len({outcome.verdict for outcome in outcomes}) >= 2
    assert [outcome for outcome in outcomes if outcome.verdict not in fuzz_models.VERDICTS] == []


def test_loading_runs_no_code_and_opens_nothing_else(words, path):
    pr.load(path)  # whatever is imported is imported by now
    events = []
    sys.addaudithook(lambda event, arguments: events.append((event, arguments)) if listening else None)
    listening = True
    pr.load(path)
    listening = False
    names = [arguments[0] for event, arguments in events if event == "open"]
    assert [os.fspath(name) for name in names if not isinstance(name, int)] == [str(path)]
    assert not {event for event, _ in events} & {"import", "exec", "compile", "socket.connect", "subprocess.Popen"}


def test_feature_names_are_data(path):
    names = ["../../etc/passwd", "<script>", "\x1b[2J"]
    rows = [dict.fromkeys(names, 1.0), dict.fromkeys(names, 2.0)] * 2
    pr.save(pr.NaiveBayes().fit(rows, [0, 1, 0, 1]), path)
    assert pr.load(path).feature_names_in_.tolist() == names
