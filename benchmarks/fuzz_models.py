"""Model files with right checksums and wrong content: each must be refused when it is loaded, or be harmless.

    python benchmarks/fuzz_models.py [--edits 4000] [--seed 1] [--write]
    python benchmarks/fuzz_models.py --edit 17                  one edit, with what became of it
    python benchmarks/fuzz_models.py --atheris [-runs=100000]   edits and raw bytes guided by coverage; needs atheris

The files of models of every class that can be saved (`example_models`) are edited in every way of `hostile_edits`, with
every checksum right, as a hostile author would do. A file must be refused with one line, or the model must be harmless:
it predicts finite probabilities that sum to one, it is saved, loaded and saved again to the same bytes, and it learns
more rows. It may refuse rows with one of Priory's own errors, for example because the edit renamed a column. Anything
else is a failure, and the exit status is then 1. `--write` writes benchmarks/results/fuzz_models.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from example_models import Example, make_examples
from hostile_edits import EDITS, RandomChoices, make_edited_file
from priory.errors import ModelFileError, ModelTooLargeError, PrioryError
from priory.storage import load, save
from priory.storage.container import ArraySections, pack_model_file
from priory.storage.signatures import Ed25519Key, load_signature_key
from priory.storage.value_trees import encode_value

RESULTS = Path(__file__).parent / "results" / "fuzz_models.md"
MAX_SECONDS, MAX_BYTES = 5.0, 200e6  # of a processor, for one file of a few kilobytes; more is a failure
MAX_MESSAGE = 600  # characters of a message that is still one line for people
VERDICTS = ("refused at load", "harmless: works", "harmless: refuses the rows")
FAILURES = (
    "raw error at load",
    "message of several lines",
    "cannot be saved",
    "differs after saving",
    "raw error later",
    "answers NaN",
    "costly",
)


class OutOfTimeError(BaseException):
    """A file took so long that it was given up."""


class Outcome(NamedTuple):
    """What became of one edited file."""

    number: int
    example: Example
    edit: str
    verdict: str
    reason: str


def give_up(*_: object) -> None:
    raise OutOfTimeError


def judge_file(path: Path, example: Example) -> tuple[str, str]:
    """What becomes of a file: the verdict, and what led to it."""
    try:
        model = load(path)
    except (ModelFileError, ModelTooLargeError) as error:
        is_short = "\n" not in str(error) and len(str(error)) < MAX_MESSAGE
        return "refused at load" if is_short else "message of several lines", str(error)
    except Exception:
        return "raw error at load", traceback.format_exc()
    refusals: list[str] = []
    try:
        first = _ask(refusals, lambda: _predict(model, example))
        if first is not None and not _is_answer(model, first):
            return "answers NaN", repr(first[:3])
        if hasattr(model, "predict_proba_one") and isinstance(example.rows, list):
            one = _ask(refusals, lambda: [[*model.predict_proba_one(example.rows[0]).values()]])
            if one and one[0] and not _is_answer(model, np.array(one)):
                return "answers NaN", repr(one)
        if hasattr(model, "explain"):
            _ask(refusals, lambda: str(model.explain(example.rows[:2])))
        repr(model)
    except Exception:
        return "raw error later", traceback.format_exc()
    try:
        save(model, path)
        before = path.read_bytes()
        again = load(path)
        save(again, path)
    except Exception:
        return "cannot be saved", traceback.format_exc()
    if path.read_bytes() != before:
        return "differs after saving", "the second file has other bytes"
    if first is not None and not np.array_equal(first, _predict(again, example)):
        return "differs after saving", "the answers"
    try:
        if hasattr(model, "partial_fit"):
            _ask(refusals, lambda: model.partial_fit(example.rows[:1], example.labels[:1]))
    except Exception:
        return "raw error later", traceback.format_exc()
    return ("harmless: refuses the rows", refusals[0]) if refusals and first is None else ("harmless: works", "")


def _predict(model: Any, example: Example) -> Any:
    return (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(example.rows)


def _is_answer(model: Any, answer: Any) -> bool:
    """Whether an answer consists of finite numbers, and those of a classifier are probabilities that sum to one."""
    if not hasattr(model, "predict_proba"):
        return bool(np.isfinite(answer).all())
    return bool(np.all((answer >= 0) & (answer <= 1)) and np.allclose(answer.sum(axis=1), 1, rtol=0, atol=1e-9))


def _ask(refusals: list[str], question: Callable[[], Any]) -> Any:
    """The answer to a question; None if it was refused in words meant for people, which are kept."""
    try:
        return question()
    except PrioryError as error:
        refusals.append(str(error))
    except Exception as error:
        # scikit-learn's own words for rows of other columns
        if not any(words in str(error) for words in ("expecting", "feature names should match", "not fitted")):
            raise
        refusals.append(str(error))
    return None


def judge_within_limits(path: Path, example: Example) -> tuple[str, str]:
    """The verdict; a file that takes too long or too much memory is a failure, whatever else it does."""
    tracemalloc.reset_peak()
    held, began = tracemalloc.get_traced_memory()[0], time.process_time()
    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, 4 * MAX_SECONDS)
    try:
        verdict, reason = judge_file(path, example)
    except OutOfTimeError:
        verdict, reason = "costly", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    seconds, size = time.process_time() - began, tracemalloc.get_traced_memory()[1] - held
    if seconds > MAX_SECONDS or size > MAX_BYTES:
        return "costly", f"{verdict}: {seconds:.1f} s, {size / 1e6:.0f} MB"
    return verdict, reason


def run_edits(numbers: range, seed: int) -> list[Outcome]:
    """What becomes of edited files, which models and kinds of edits take in turn."""
    found, kinds = [], list(EDITS)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        path, examples = Path(folder) / "model.priory", make_examples()
        tracemalloc.start()
        for number in numbers:
            example, kind = examples[number % len(examples)], kinds[number // len(examples) % len(kinds)]
            path.write_bytes(make_edited_file(example, RandomChoices(seed * 1_000_003 + number), kind))
            found.append(Outcome(number, example, kind, *judge_within_limits(path, example)))
        tracemalloc.stop()
    return found


def format_table(title: str, verdicts: list[tuple[str, str]]) -> str:
    """The numbers of verdicts as a Markdown table, one row for each name."""
    counts: dict[str, Counter[str]] = {}
    for name, verdict in [*verdicts, *(("all", verdict) for _, verdict in verdicts)]:
        counts.setdefault(name, Counter())[verdict if verdict in VERDICTS else "failures"] += 1
    columns = (*VERDICTS, "failures")
    lines = [f"| {title} | {' | '.join(columns)} |", "|---|" + "--:|" * len(columns)]
    return "\n".join(
        [*lines, *(f"| {name} | {' | '.join(f'{n[c]:,}' for c in columns)} |" for name, n in counts.items())]
    )


def format_results(found: list[Outcome], edits: int, seed: int) -> str:
    """The page of results."""
    by_model = format_table("model", sorted((outcome.example.name, outcome.verdict) for outcome in found))
    by_edit = format_table("the first edit", [(outcome.edit, outcome.verdict) for outcome in found])
    return f"""# Hostile model files

`python benchmarks/fuzz_models.py --edits {edits} --seed {seed} --write`: {edits:,} files of models of every class that
can be saved, each with one to three edits, and every checksum right. A file is refused at load with one line, or it is
harmless: the model predicts finite probabilities that sum to one, it is saved, loaded and saved again to the same
bytes, and it learns more rows, or says in one line why it does not take them. Anything else is a failure, and so is a
file that takes more than {MAX_SECONDS:g} s of a processor or {MAX_BYTES / 1e6:g} MB.

{by_edit}

{by_model}
"""


def write_key(path: Path, number: int) -> Ed25519Key:
    """A private key in a file."""
    private = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(private.private_bytes(*pem))
    return load_signature_key(path)


def fuzz_with_atheris(options: list[str]) -> None:
    """Let the coverage of the storage modules guide the edits; every other input is bytes as the fuzzer writes them."""
    import atheris

    examples, path = make_examples(), Path(tempfile.mkdtemp()) / "model.priory"
    known, other = (write_key(path.with_name(f"key{i}"), i) for i in (1, 2))

    def judge_input(data: bytes) -> None:
        choices = atheris.FuzzedDataProvider(data)
        example = examples[choices.ConsumeIntInRange(0, len(examples) - 1)]
        is_raw = choices.ConsumeBool()
        path.write_bytes(choices.ConsumeBytes(len(data)) if is_raw else make_edited_file(example, choices))
        verdict, reason = judge_file(path, example)
        assert verdict in VERDICTS, f"{verdict}: {reason}"
        path.write_bytes(b"".join(pack_model_file(None, ArraySections(), key=choices.PickValueInList([known, other]))))
        try:
            load(path, key=path.with_name("key1"))
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edits", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edit", type=int)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a file that wants more gets MemoryError, a failure
    numbers = range(given.edits) if given.edit is None else range(given.edit, given.edit + 1)
    found = run_edits(numbers, given.seed)
    wrong = [outcome for outcome in found if outcome.verdict in FAILURES]
    for outcome in wrong if given.edit is None else found:
        print(
            f"edit {outcome.number}, {outcome.edit}, of {outcome.example.model!r}: {outcome.verdict}\n{outcome.reason}"
        )
    if given.edit is None:
        print(format_results(found, given.edits, given.seed))
    if given.write:
        RESULTS.write_text(format_results(found, given.edits, given.seed), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
