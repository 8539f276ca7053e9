"""Model files: the same bits again, learning that goes on, and nothing believed that cannot be."""

import inspect
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import (
    array_shapes,
    arrays,
    boolean_dtypes,
    floating_dtypes,
    integer_dtypes,
    unsigned_integer_dtypes,
)
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import priory as pr
from kept_models import FOLDER, KEPT
from priory import families as f
from priory import inbox
from priory import naive_bayes as nb
from priory.core.statistics import BY_NAME, EstimatorRegistration, RowCounts, Statistics, find_registration
from priory.errors import PrioryError, StaleModelError
from priory.families.base import ColumnFamily
from priory.storage.container import ArraySections, FileContents, pack_model_file
from priory.storage.validation import find_class
from priory.storage.value_trees import ModelDecoder, encode_value
from priory.text.token_counts import BagCounts
from priory.text.tokenizer import Tokenizer

MIXED, LABELS = inbox()
TEXTS = [row["text"] for row in MIXED]
RNG = np.random.default_rng(8)
NUMBERS = RNG.normal(size=(60, 4)) * [1.0, 10.0, 1e-3, 1e6]
COUNTS = RNG.poisson(2.0, size=(60, 4))
GROUPS = np.array(["no", "yes", "perhaps"])[RNG.integers(0, 3, 60)]

TABLES = [
    (pr.NaiveBayes(), MIXED, LABELS),
    (pr.NaiveBayes(alpha=0.5, class_prior={"normal": 0.5, "spam": 0.25, "urgent": 0.25}), MIXED, LABELS),
    (pr.NaiveBayes({"hour": f.Gaussian, "links": f.Poisson(2.0, 1.0), "sender": "categorical"}), MIXED, LABELS),
    (
        pr.NaiveBayes({"text": f.Text("multinomial", 0.1, Tokenizer(ngram_range=(1, 2)))}, estimate="mean"),
        MIXED,
        LABELS,
    ),
    (pr.NaiveBayes(f.Histogram(alpha=1.0)), NUMBERS.astype(np.float32), GROUPS),
    (pr.NaiveBayes(f.Binomial(trials=50)), COUNTS, GROUPS == "no"),
    (nb.GaussianNB(priors=[0.2, 0.3, 0.5]), NUMBERS, GROUPS),
    (nb.GaussianNB(), NUMBERS.astype(np.float32), GROUPS.astype("S")),
    (nb.BernoulliNB(alpha=np.array([1.0, 2.0, 0.5, 0.1])), COUNTS, GROUPS),
    (nb.MultinomialNB(), COUNTS, GROUPS),
    (nb.ComplementNB(norm=True), COUNTS, GROUPS),
    (nb.CategoricalNB(min_categories=12), COUNTS, GROUPS),
    (nb.GaussianBayes(covariance="shared"), NUMBERS, GROUPS),
]
WRITINGS = [
    (pr.TextClassifier(), TEXTS, LABELS),
    (pr.TextClassifier("multinomial", ngram_range=(1, 2), alpha="evidence", stop_words="en"), TEXTS, LABELS),
    (pr.TextClassifier("bernoulli", vocabulary=["free", "meeting", "now"], unknown=True), TEXTS, LABELS),
    (pr.TextClassifier("multinomial", buckets=64), TEXTS, LABELS),
    (pr.TextClassifier("multinomial", analyzer="char_wb", ngram_range=(2, 3), max_tokens=20_000), TEXTS, LABELS),
]
LINES = [
    (pr.BayesianLinearRegression(), NUMBERS[:, 1:], NUMBERS[:, 0]),
    (pr.BayesianLogisticRegression(), NUMBERS, GROUPS),
    (pr.BayesianLogisticRegression("map"), NUMBERS, GROUPS == "no"),
]

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))
WHOLE = integer_dtypes(endianness="<") | unsigned_integer_dtypes(endianness="<")
ANY_NUMBER = boolean_dtypes() | WHOLE | floating_dtypes(endianness="<", sizes=(16, 32, 64))


def through_a_file(value):
    sections = ArraySections()
    tree = encode_value(value, sections)
    with tempfile.TemporaryFile() as file:
        file.writelines(pack_model_file(tree, sections))
        file.seek(0)
        contents = FileContents(file)
    back = ModelDecoder(contents).decode_node(contents.tree)
    contents.check_all_read()
    return back


def named(case):
    return str(case[0]).replace("\n", "")[:60]


def answers(model, X):
    return model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else np.stack(model.predict(X, True))


def same(a, b, X):
    """To the last bit."""
    return np.array_equal(answers(a, X), answers(b, X)) and np.array_equal(a.predict(X), b.predict(X))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.priory"


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLES + WRITINGS + LINES, ids=named)
def test_a_loaded_model_answers_bit_for_bit_the_same(case, path):
    model, X, y = case
    model = clone(model).fit(X, y)
    pr.save(model, path)
    loaded = pr.load(path)
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    assert same(loaded, model, X)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLES + WRITINGS, ids=named)
def test_a_loaded_model_goes_on_learning_forgets_and_merges(case, path):
    model, X, y = case
    model = clone(model).fit(X, y)
    pr.save(model, path)
    loaded = pr.load(path)
    for each in (model, loaded):
        each.partial_fit(X[:20], y[:20])
        each.forget(X[10:30], y[10:30])
    assert same(loaded, model, X)
    assert same(loaded + pr.load(path), model + pr.load(path), X)


def test_a_faded_model_keeps_its_clock(path):
    model = pr.TextClassifier().fit(TEXTS, LABELS).decay(0.5)
    pr.save(model, path)
    loaded = pr.load(path)
    assert loaded.clock_ == 0.5
    with pytest.raises(StaleModelError, match="learned_at"):
        loaded.forget(TEXTS[:1], LABELS[:1])
    for each in (model, loaded):
        each.forget(TEXTS[:1], LABELS[:1], learned_at=1.0)
    assert same(loaded, model, TEXTS)


def test_a_model_that_learned_nothing_yet_keeps_its_parameters(path):
    pr.save(pr.TextClassifier("multinomial", ngram_range=(1, 2)), path)
    assert pr.load(path).fit(TEXTS, LABELS).ngram_range == (1, 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            DecisionTreeClassifier(),
            "cannot save a DecisionTreeClassifier; a model file holds one of Bayesian",
        ),
        (
            pr.MDLTreeClassifier(),
            "cannot save a MDLTreeClassifier; a model file holds one of Bayesian",
        ),
        (pr.BayesianLogisticRegression(random_state=np.random.RandomState(0)), "random_state is a RandomState, which"),
        (pr.NaiveBayes(families=print), "families is a builtin_function_or_method, which a model file"),
    ],
    ids=["foreign", "tree", "state", "function"],
)
def test_what_cannot_be_saved_is_said_and_nothing_is_written(model, message, path):
    with pytest.raises(PrioryError) as error:
        pr.save(model, path)
    assert message in str(error.value)
    assert os.listdir(path.parent) == []


@pytest.mark.slow
def test_inspect_tells_what_a_file_holds_and_would_reveal(path):
    pr.save(pr.NaiveBayes({"links": f.Poisson(2.0, 1.0)}).fit(MIXED, LABELS).decay(0.5), path)
    told = pr.storage.inspect(path)
    assert (told.model, told.classes, told.clock) == ("NaiveBayes", ["normal", "spam", "urgent"], 0.5)
    assert told.rows == {"normal": 67.5, "spam": 48.5, "urgent": 38.0}
    assert told.columns["links"] == ["Poisson(shape=2.0, rate=1.0)"]
    assert told.columns["text"] == ["Text"]
    assert told.words == len({w for t in TEXTS for w in pr.TextClassifier().fit([t], [0]).vocabulary_})
    assert told.bytes == path.stat().st_size
    assert json.loads(json.dumps(told.as_dict()))["version"] == pr.__version__
    assert "words of the training texts" in str(told)
    assert "the cells of single training rows, and their classes" in str(told)


def test_inspect_shows_control_characters_escaped(path):
    pr.save(pr.NaiveBayes().fit([{"\x1b[31mred<b>": 1.0}, {"\x1b[31mred<b>": 2.0}] * 2, ["\x1b[2J", "b"] * 2), path)
    assert "\x1b" not in str(pr.storage.inspect(path))
    assert pr.load(path).classes_.tolist() == ["\x1b[2J", "b"]


def test_a_hashed_model_reveals_no_words(path):
    pr.save(pr.TextClassifier(buckets=64, memory=0).fit(TEXTS, LABELS), path)
    assert pr.storage.inspect(path).reveals == [
        "words, or buckets of words, that at least two training texts had; with few texts, words of one too",
        "counts of hashed words, and the salt with which a guessed word can be looked up",
    ]
    assert b"meeting" not in path.read_bytes()


def test_notes_go_with_the_model_and_are_kept_by_those_who_do_not_know_them(path, tmp_path):
    notes = {"card": "für Müller".encode(), "empty": b"", "x-2": bytes(range(256)) * 5}
    pr.save(pr.TextClassifier().fit(TEXTS, LABELS), path, notes=notes)
    model = pr.load(path)
    assert model.notes == notes
    assert pr.storage.inspect(path).notes == {"card": 12, "empty": 0, "x-2": 1280}
    assert "note      'card' 12 bytes" in str(pr.storage.inspect(path))
    with pr.storage.updating(path) as file:
        file.model.partial_fit(TEXTS[:9], LABELS[:9])
    pr.save(pr.load(path), tmp_path / "copy.priory")
    assert pr.load(tmp_path / "copy.priory").notes == notes
    assert same(pr.load(path), model.partial_fit(TEXTS[:9], LABELS[:9]), TEXTS)
    pr.save(model, path, notes={})
    assert not hasattr(pr.load(path), "notes")
    assert not hasattr(clone(model), "notes")


@pytest.mark.parametrize(
    ("notes", "what"),
    [
        ({"Card": b""}, "names have 1 to 64 characters of a-z, 0-9 and hyphen"),
        ({"": b""}, "names have"),
        ({"card": "text"}, "the note 'card' is a str; notes are bytes"),
        ({"card": bytes((16 << 20) + 1)}, "16,777,216 bytes in all"),
        ({f"n{i}": b"" for i in range(65)}, "64 parts at most"),
    ],
    ids=["name", "empty", "text", "large", "many"],
)
def test_notes_that_cannot_be_are_said_and_nothing_is_written(notes, what, path):
    with pytest.raises(PrioryError, match=what):
        pr.save(pr.TextClassifier(), path, notes=notes)
    assert os.listdir(path.parent) == []


def subclasses(kind):
    return {s for direct in kind.__subclasses__() for s in {direct, *subclasses(direct)}}


@pytest.mark.parametrize(
    "kind",
    sorted(
        (k for k in subclasses(Statistics) | subclasses(ColumnFamily) if k.__name__ != "HypothesisStatistics"), key=str
    ),
    ids=lambda k: k.__name__,
)
def test_every_record_and_family_of_the_package_has_a_name_in_files(kind):
    if kind.__module__.startswith("priory.") and not inspect.isabstract(kind) and kind not in (RowCounts, BagCounts):
        assert find_class(find_registration(kind).name).cls is kind


def test_a_new_process_knows_the_records_of_tables_and_texts_without_importing_scikit_learn():
    of_arrays = ("priory.naive_bayes.", "priory.regression.")
    records = [r for r in BY_NAME.values() if r.cls.__module__.startswith("priory.")]
    names = [r.name for r in records if not r.cls.__module__.startswith(of_arrays)]
    names = [name for name in names if not isinstance(BY_NAME[name], EstimatorRegistration)]
    program = (
        "import sys; from priory.core.lazy_imports import skip_slow_imports; skip_slow_imports(); "
        "from priory.storage.validation import find_class; "
        f"print([name for name in {names} if find_class(name) is None], 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\n"


@pytest.mark.parametrize("name", KEPT)
def test_a_file_that_was_written_before_is_read_and_written_with_the_same_bytes(name, path):
    """tests/model_files holds files of today's format; `python tests/kept_models.py` writes them anew if it changes."""
    stored = FOLDER / f"{name}.priory"
    model, (_, X, y) = pr.load(stored), KEPT[name]
    assert same(model, clone(model).fit(X, y), X)
    pr.save(model, path)
    assert path.read_bytes() == stored.read_bytes()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(SCALARS, inner)))
def test_plain_values_come_back_as_they_were(value):
    assert repr(through_a_file(value)) == repr(value)


def held(value, kind):
    """Whether a kind of number has this value."""
    with np.errstate(all="ignore"):
        try:
            return kind.kind == "f" if value != value else np.array(value).astype(kind).item() == value
        except (ValueError, OverflowError):
            return False


@given(arrays(ANY_NUMBER, array_shapes(min_dims=0, max_dims=4, min_side=0)), st.randoms())
def test_arrays_come_back_with_their_bits_and_their_layout(array, random):
    axes = random.sample(range(array.ndim), array.ndim)
    given_, back = array.transpose(axes), through_a_file(array.transpose(axes))
    assert (back.dtype, back.shape) == (given_.dtype, given_.shape)
    assert back.tobytes() == given_.tobytes()
    assert back.flags.c_contiguous == given_.flags.c_contiguous or given_.size <= 1
    assert back.flags.f_contiguous == given_.flags.f_contiguous or given_.size <= 1


@given(
    ANY_NUMBER.flatmap(
        lambda kind: arrays(
            kind,
            st.tuples(st.integers(65, 99), st.integers(1, 2)),
            elements=st.sampled_from(
                [
                    v
                    for v in (0, 1, 255, 256, 65535, 65536, 2**32 - 1, 2**32, -1, 0.5, -0.0, np.nan, np.inf)
                    if held(v, kind)
                ]
            ),
        )
    ),
    st.booleans(),
)
def test_whole_numbers_come_back_with_their_bits_from_fewer_bytes(array, turned):
    array = array.T if turned else array
    back = through_a_file(array)
    assert (back.dtype, back.shape, back.flags.c_contiguous) == (array.dtype, array.shape, array.flags.c_contiguous)
    assert back.tobytes() == array.tobytes()


@given(st.lists(st.integers(0, 1 << 33), min_size=65), st.sampled_from([np.int64, np.int32, np.uint64]))
def test_rising_numbers_come_back_as_they_were(steps, kind):
    array = np.cumsum(np.array(steps) % 1000 if kind == np.int32 else steps, dtype=kind)
    back = through_a_file(array)
    assert back.dtype == kind
    assert back.tolist() == array.tolist()


def test_counts_of_words_lie_in_the_file_as_narrow_as_they_are(path):
    words = [f"word{i:03}" for i in range(100)]
    pr.save(pr.TextClassifier(memory=0).fit([" ".join(words), "other text"], ["a", "b"]), path)
    assert pr.storage.inspect(path).sections == {"<i8": 64, "|u1": 64 + 128 + 768 + 256, "<f8": 128}
    assert pr.load(path).statistics_.parts[0].counts.dtype == float


@given(st.lists(st.text()), st.sampled_from(["O", "U"]))
def test_strings_come_back_as_they_were(strings, kind):
    strings = [s.rstrip("\0") for s in strings] if kind == "U" else strings
    array = np.array(strings, dtype=object if kind == "O" else str)
    back = through_a_file(array)
    assert back.dtype.kind == kind
    assert back.tolist() == strings


@pytest.mark.parametrize(
    "model",
    [nb.GaussianNB(), nb.GaussianBayes(), pr.NaiveBayes(), pr.BayesianLinearRegression()],
    ids=lambda model: type(model).__name__,
)
def test_nothing_of_a_forgotten_row_is_left_in_the_file(model, path):
    rng = np.random.default_rng(7)
    X, y = rng.gamma(5.0, 3.0, (60, 3)), np.arange(60) % 2
    model.fit(X, y)
    gone = [0, 1, 2, 30]  # the first of each class among them
    pr.save(model.forget(X[gone], y[gone]), path)
    numbers = np.frombuffer(path.read_bytes()[: path.stat().st_size // 8 * 8], "<f8")
    mantissas = set(np.frexp(numbers[np.isfinite(numbers)])[0].tolist())  # whatever power of two is the unit
    assert not mantissas & set(np.frexp(X[gone])[0].ravel().tolist())
