"""Model files with right checksums and wrong content: each must be refused when it is loaded, or be harmless.

    python benchmarks/fuzz_models.py [edits] [seed]            random edits; prints the table of results/fuzz_models.md
    python benchmarks/fuzz_models.py --atheris [-runs=100000]  edits and raw bytes guided by coverage; needs atheris

The files of models of every kind are taken apart, their trees and arrays are edited, and they are put together again
with every checksum right, as a hostile author would do. A model that is loaded must then predict without NaN, give the
same answers after saving and loading it again, and learn more rows. It may refuse rows with one of Priory's own errors,
for example because the edit renamed a column. Anything else is a failure, and the exit status is then 1.
"""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

import priory as pr
from priory import naive_bayes as nb
from priory.errors import ModelFileError, ModelTooLargeError, PrioryError
from priory.regression.linear_posterior import NormalInverseGamma
from priory.storage import load, save
from priory.storage.container import ArraySections, pack_model_file
from priory.storage.signatures import SharedSecretKey
from priory.storage.value_encoding import encode_value

MAX_SECONDS, MAX_BYTES = 5.0, 200e6  # for one file of a few kilobytes; more is a failure


class OutOfTimeError(BaseException):
    """A file took so long that it was given up."""


def give_up(*_: object) -> None:
    raise OutOfTimeError


class Choices(Protocol):
    """What decides how a file is edited: a seeded generator, or the bytes of a coverage-guided fuzzer."""

    def ConsumeIntInRange(self, low: int, high: int) -> int: ...
    def ConsumeBool(self) -> bool: ...
    def ConsumeInt(self, n_bytes: int) -> int: ...
    def ConsumeFloat(self) -> float: ...
    def ConsumeBytes(self, n_bytes: int) -> bytes: ...
    def ConsumeUnicodeNoSurrogates(self, n_characters: int) -> str: ...
    def PickValueInList(self, values: list[Any]) -> Any: ...


class RandomChoices(random.Random):
    """The choices of a seeded generator, by the names that atheris gives them."""

    def ConsumeIntInRange(self, low: int, high: int) -> int:
        return self.randint(low, high)

    def ConsumeBool(self) -> bool:
        return self.random() < 0.5

    def ConsumeInt(self, n_bytes: int) -> int:
        return int.from_bytes(self.randbytes(n_bytes), signed=True) >> self.choice([0, 20, 40, 60])

    def ConsumeFloat(self) -> float:
        return float(np.frombuffer(self.randbytes(8), dtype=float)[0]) if self.random() < 0.5 else self.gauss(0, 10)

    def ConsumeBytes(self, n_bytes: int) -> bytes:
        return self.randbytes(n_bytes)

    def ConsumeUnicodeNoSurrogates(self, n_characters: int) -> str:
        return "".join(self.choice("aBé_送0 ") for _ in range(self.randint(0, n_characters)))

    def PickValueInList(self, values: list[Any]) -> Any:
        return self.choice(values)


class Example(NamedTuple):
    """A fitted model, and rows with their labels that it can read."""

    name: str
    model: Any
    rows: Any
    labels: Sequence[Any]


def make_examples() -> list[Example]:
    """Small models of every class that can be saved, with most of what they can hold."""
    rng = np.random.default_rng(0)
    texts = ["win cash", "cash été now", "lunch at noon", "noon walk", "win a prize now", "walk at lunch"] * 4
    labels = ["spam", "spam", "ham", "ham", "spam", "ham"] * 4
    long = [" ".join(f"word{i}" for i in range(80)), "word1 word300"]
    table = [
        {"a": str(rng.choice(["x", "y", "z"])), "b": float(rng.normal()), "c": int(rng.poisson(3)), "d": i % 2}
        for i in range(120)
    ]
    for row in table[::7]:
        row["b"] = None
    group = ["yes" if row["c"] + rng.normal() > 3 else "no" for row in table]
    prose = [{"t": text, "n": float(i)} for i, text in enumerate(texts)]
    counts, amounts = rng.poisson(2, (12, 3)), rng.gamma(2.0, 1.0, (12, 3))
    numbers, codes = rng.normal(size=(12, 3)), np.array([0, 1, 2] * 4)
    frame = pd.DataFrame({"x": rng.normal(size=12), "kind": ["a", "b", "c"] * 4})
    target = rng.normal(size=12)
    declared = {"a": pr.families.Categorical(1.0), "b": pr.families.Gaussian(0.0, 1.0, 1.0, 1.0), "d": "bernoulli"}
    mixed = {"b": "histogram", "c": pr.families.Poisson(1.0, 1.0), "d": pr.families.Binomial(1)}
    hashed = pr.families.Text(buckets=8)
    text_options: list[dict[str, Any]] = [
        {},
        {"model": "multinomial", "ngram_range": (1, 2), "min_df": 2},
        {"buckets": 8},
        {"vocabulary": ["win", "lunch"], "unknown": True, "alpha": "evidence"},
        {"model": "bernoulli", "average": True, "class_prior": {"ham": 0.5, "spam": 0.5}},
        {"model": "complement", "stop_words": ["at"], "alpha": "loo"},
        {"model": "poisson", "max_df": 0.9, "max_features": 5, "class_prior": [0.3, 0.7], "calibrate": False},
        {"refine": True, "analyzer": "char", "ngram_range": (2, 2)},
    ]
    drop_ins = [
        (nb.GaussianNB(priors=[0.2, 0.3, 0.5]), numbers),
        (nb.BernoulliNB(), counts),
        (nb.CategoricalNB(min_categories=8), counts),
        (nb.MultinomialNB(alpha=[0.5, 1.0, 2.0], class_prior=[0.2, 0.3, 0.5]), counts),
        (nb.ComplementNB(norm=True), counts),
        (nb.PoissonNB(prior=pr.families.Poisson(1.0, 1.0)), counts),
        (nb.PoissonNB(estimate="ml"), counts),
        (nb.GammaNB(), amounts),
        (nb.GaussianBayes(), numbers),
        (nb.GaussianBayes(covariance="shared", estimate="ml"), numbers),
    ]
    logistic = [pr.BayesianLogisticRegression(**options) for options in ({}, {"method": "map", "prior": 1.0})]
    drawn = pr.BayesianLogisticRegression().fit(counts, codes)
    drawn.method, drawn._draws = "vi", drawn._mean + rng.normal(size=(5, *drawn._mean.shape))
    fitted: list[tuple[Any, Any, Sequence[Any]]] = [
        *((pr.TextClassifier(salt=1, **options).fit(texts, labels), texts, labels) for options in text_options),
        (pr.TextClassifier(salt=1).fit(long, ["spam", "ham"]), long, ["spam", "ham"]),
        (pr.NaiveBayes().fit(table, group), table, group),
        (pr.NaiveBayes(alpha=1.0, average=True, calibrate=False).fit(table, group).decay(0.5), table, group),
        (pr.NaiveBayes(declared, estimate="map", class_prior="uniform").fit(table, group), table, group),
        (pr.NaiveBayes(mixed, alpha="loo", refine=True, structure="auto").fit(table, group), table, group),
        (pr.NaiveBayes({"t": "text", "n": "gamma"}).fit(prose, labels), prose, labels),
        (pr.NaiveBayes({"t": hashed}, calibrate=False).fit(prose, labels), prose, labels),
        *((model.fit(rows, codes), rows, codes) for model, rows in drop_ins),
        *((model.fit(counts, codes), counts, codes) for model in logistic),
        (drawn, counts, codes),
        (pr.BayesianLinearRegression().fit(numbers, target), numbers, target),
        (pr.BayesianLinearRegression(1.0, fit_intercept=False).fit(frame, target), frame, target),
        (pr.BayesianLinearRegression(NormalInverseGamma.isotropic(3)).fit(numbers, target), numbers, target),
        (pr.NaiveBayes(), table, group),
    ]
    return [Example(type(model).__name__, model, rows, labels) for model, rows, labels in fitted]


ODD_VALUES: list[Any] = [None, True, False, -1, 0, 1, 2, 2**31, 2**63, 10**30, -0.5, 0.0, 1e308, 5e-324, "", "x", "é"]
ODD_NODES: list[Any] = [
    *ODD_VALUES,
    *([], {}, {"tuple": []}, {"tuple": [1.5]}, {"list": [1]}, {"list": ["x", 2]}, {"set": ["a"]}),
    *({"dict": []}, {"dict": [["a", 1]]}, {"float": "nan"}, {"float": "inf"}, {"objects": [[0], []]}),
    *({"class": "Words"}, {"class": "Gaussian"}, {"Gaussian": {}}, {"Term": {"column": 0}}, {"PartWeights": {}}),
    *({"array": ["<f8", [0]]}, {"array": ["|u1", [2]]}, {"scalar": {"array": ["<f8", []]}}),
    *({"narrow": ["<f8", {"array": ["|u1", [80, 2]]}]}, {"steps": {"array": ["|u1", [80]]}}),
    {"strings": ["O", [2], {"array": ["<i8", [2]]}]},
]
ODD_NUMBERS = [0.0, -0.0, -1.0, 0.5, 1e9, 1e16, 1e155, 1e300, 1.7e308, -1e308, 5e-324, 1e-200, np.nan, np.inf, -np.inf]


def pick_place(tree: Any, choices: Choices) -> tuple[Any, Any]:
    """A random place in a tree: the container, and the name or number in it."""
    holder, key = tree, choices.PickValueInList(list(tree))
    while isinstance(holder[key], dict | list) and len(holder[key]) and choices.ConsumeIntInRange(0, 7):
        holder = holder[key]
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = keys[choices.ConsumeIntInRange(0, len(keys) - 1)]
    return holder, key


def edit_tree(tree: Any, choices: Choices) -> None:
    """Replace, copy, remove or rename a node of the tree."""
    holder, key = pick_place(tree, choices)
    other, at = pick_place(tree, choices)
    deed = choices.ConsumeIntInRange(0, 5)
    if deed <= 1:
        holder[key] = copy.deepcopy(choices.PickValueInList(ODD_NODES))
    elif deed == 2:
        holder[key] = json.loads(json.dumps(other[at]))
    elif deed == 3:
        del holder[key]
    elif deed == 4 and isinstance(holder, dict):
        holder[choices.ConsumeUnicodeNoSurrogates(8)] = holder.pop(key)
    else:
        number = choices.ConsumeInt(8) if choices.ConsumeBool() else choices.ConsumeFloat()
        holder[key] = number if np.isfinite(float(number)) else None


def edit_array(sections: ArraySections, choices: Choices) -> None:
    """Overwrite some bytes or one number of an array."""
    kind = choices.PickValueInList(sorted(sections.arrays))
    arrays = list(sections.arrays[kind])
    which = choices.ConsumeIntInRange(0, len(arrays) - 1)
    array = arrays[which].copy()
    if array.size and array.dtype.kind == "f" and choices.ConsumeBool():
        array[choices.ConsumeIntInRange(0, array.size - 1)] = choices.PickValueInList(ODD_NUMBERS)
    elif array.size:
        raw = bytearray(array.tobytes())
        at = choices.ConsumeIntInRange(0, len(raw) - 1)
        new = choices.ConsumeBytes(8)[: len(raw) - at]
        raw[at : at + len(new)] = new
        array = np.frombuffer(bytes(raw), dtype=kind)
    arrays[which] = array
    sections.arrays[kind] = arrays


def make_edited_file(example: Example, choices: Choices) -> bytes:
    """The file of a model after some edits of its tree and arrays, every checksum right."""
    sections = ArraySections()
    tree = json.loads(json.dumps(encode_value(example.model, sections)))
    root, parameters = {"": tree}, tree[example.name]["parameters"]
    for _ in range(choices.PickValueInList([1, 1, 1, 2, 3])):
        where = choices.ConsumeIntInRange(0, 3)
        if where == 0 and parameters:
            edit_tree(parameters, choices)
        elif where == 1 or not sections.arrays:
            edit_tree(root if "" in root else parameters, choices)
        else:
            edit_array(sections, choices)
    return b"".join(pack_model_file(root.get(""), sections))


# -- what becomes of a file --------------------------------------------------------------------------------------------


def judge_file(path: Path, example: Example) -> tuple[str, str]:
    """What becomes of a file: the verdict, and what led to it."""
    try:
        model = load(path)
    except (ModelFileError, ModelTooLargeError) as error:
        return "refused at load", str(error)
    except Exception:
        return "raw error at load", traceback.format_exc()
    answer = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    refusals = []

    def attempt(question: Any) -> Any:
        try:
            return question()
        except PrioryError as error:
            refusals.append(str(error))
        except Exception as error:
            if "expecting" in str(error) or "feature names should match" in str(error) or "not fitted" in str(error):
                refusals.append(str(error))  # scikit-learn's own words for rows of other columns
                return None
            raise
        return None

    try:
        first = attempt(lambda: getattr(model, answer)(example.rows))
        if first is not None and not np.isfinite(first).all():
            return "answers NaN", repr(first[~np.isfinite(first).all(axis=-1)][:1])
        if hasattr(model, "explain"):
            attempt(lambda: str(model.explain(example.rows[:2])))
        repr(model)
    except Exception:
        return "raw error later", traceback.format_exc()
    try:
        save(model, path)
        again = load(path)
    except Exception:
        return "cannot be saved", traceback.format_exc()
    if first is not None and not np.array_equal(first, getattr(again, answer)(example.rows)):
        return "differs after saving", ""
    try:
        if hasattr(model, "partial_fit"):
            attempt(lambda: model.partial_fit(example.rows[:1], example.labels[:1]))
    except Exception:
        return "raw error later", traceback.format_exc()
    return ("harmless: refuses the rows", refusals[0]) if refusals and first is None else ("harmless: works", "")


VERDICTS = ("refused at load", "harmless: works", "harmless: refuses the rows")
FAILURES = (
    "raw error at load",
    "cannot be saved",
    "differs after saving",
    "raw error later",
    "answers NaN",
    "costly",
)


def judge_within_limits(path: Path, example: Example) -> tuple[str, str]:
    """The verdict; a file that takes too long or too much memory is a failure, whatever else it does."""
    tracemalloc.reset_peak()
    held, began = tracemalloc.get_traced_memory()[0], time.perf_counter()
    signal.alarm(int(4 * MAX_SECONDS))
    try:
        verdict, reason = judge_file(path, example)
    except OutOfTimeError:
        verdict, reason = "costly", traceback.format_exc()
    finally:
        signal.alarm(0)
    seconds, size = time.perf_counter() - began, tracemalloc.get_traced_memory()[1] - held
    if seconds > MAX_SECONDS or size > MAX_BYTES:
        return "costly", f"{verdict}: {seconds:.1f} s, {size / 1e6:.0f} MB"
    return verdict, reason


def run_random_edits(edits: int, seed: int, report: Any = None) -> dict[str, Counter[str]]:
    """The verdicts on random edits, by the class of the model."""
    found: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        path, examples = Path(folder) / "model.priory", make_examples()
        tracemalloc.start()
        for number in range(edits):
            example = examples[number % len(examples)]
            path.write_bytes(make_edited_file(example, RandomChoices(seed * 1_000_003 + number)))
            verdict, reason = judge_within_limits(path, example)
            found.setdefault(example.name, Counter())[verdict] += 1
            if verdict in FAILURES and report:
                report(number, example, verdict, reason)
        tracemalloc.stop()
    return found


def format_table(found: dict[str, Counter[str]]) -> str:
    """The verdicts as a Markdown table, one row for each class of models."""
    columns = (*VERDICTS, *FAILURES)
    lines = [f"| model | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    rows = [*sorted(found.items()), ("all", sum(found.values(), Counter()))]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(str(n[c]) for c in columns)} |" for name, n in rows)])


def fuzz_with_atheris(options: list[str]) -> None:
    """Let the coverage of the storage modules guide the edits; every other input is bytes as the fuzzer writes them."""
    import atheris

    examples, path = make_examples(), Path(tempfile.mkdtemp()) / "model.priory"
    secret, other = (SharedSecretKey(bytes([i]) * 32) for i in (1, 2))
    path.with_name("key").write_bytes(secret.value)

    def judge_input(data: bytes) -> None:
        choices = atheris.FuzzedDataProvider(data)
        example = examples[choices.ConsumeIntInRange(0, len(examples) - 1)]
        is_raw = choices.ConsumeBool()
        path.write_bytes(choices.ConsumeBytes(len(data)) if is_raw else make_edited_file(example, choices))
        verdict, reason = judge_file(path, example)
        assert verdict in VERDICTS, f"{verdict}: {reason}"
        path.write_bytes(b"".join(pack_model_file(None, ArraySections(), key=choices.PickValueInList([secret, other]))))
        try:
            load(path, key=path.with_name("key"))
        except PrioryError:
            return
        raise AssertionError("a file without a model was loaded")

    atheris.instrument_all()
    with tempfile.TemporaryDirectory() as corpus:
        for number, example in enumerate(examples):
            sections = ArraySections()
            tree = encode_value(example.model, sections)
            (Path(corpus) / f"model{number}").write_bytes(b"".join(pack_model_file(tree, sections)) + b"\1")
        atheris.Setup([sys.argv[0], *(options or ["-runs=1000000"]), corpus], judge_input)
        atheris.Fuzz()


def main() -> int:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if sys.argv[1:2] == ["--atheris"]:
        fuzz_with_atheris(sys.argv[2:])
        return 0
    edits, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 4000, int(sys.argv[2]) if len(sys.argv) > 2 else 1

    def report(number: int, example: Example, verdict: str, reason: str) -> None:
        print(f"edit {number} of {example.model!r}: {verdict}\n{reason}", file=sys.stderr)

    signal.signal(signal.SIGALRM, give_up)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a file that wants more gets MemoryError, a failure
    began = time.perf_counter()
    found = run_random_edits(edits, seed, report)
    print(format_table(found))
    print(f"\n{edits:,} edits, seed {seed}, {time.perf_counter() - began:.0f} s.")
    return int(any(n[verdict] for n in found.values() for verdict in FAILURES))


if __name__ == "__main__":
    sys.exit(main())
