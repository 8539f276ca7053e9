"""Random histories: a model that has learned, forgotten and merged is, byte for byte, one that was given what is left.

    python benchmarks/exact_forgetting.py [--runs 10000] [--seed 0] [--kind "TextClassifier"] [--case 17] [--write]

Each case is an estimator with parameters, and rows of made-up cells: numbers from 5e-324 to 1.7e308, categories, texts
of any Unicode, dates, missing cells, duplicates, weights. Its rows are learned by several models in batches, forgotten
in other batches or one at a time, learned again, saved, loaded, and the models are merged in any order. The file of the
result is compared with that of a new model which is given the rows that are left in one `fit`, in another order. Kinds
with corrections have more rows, of which some are kept and some are not; they answer in between, with standby
corrections and without, and their files hold the corrections. `--kind` runs the kinds
whose names begin so, `--case` one case with its traceback. `--write` writes benchmarks/results/exact_forgetting.md. The
exit code is 1 if a file differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import priory as pr
from priory import naive_bayes as nb
from priory.core.content_hash import hash_content
from priory.model.cells import add_reserve

RESULTS = Path(__file__).parent / "results" / "exact_forgetting.md"
EXTREME_NUMBERS = [0.0, -0.0, 1.0, 5e-324, -5e-324, 2.3e-308, 1e-8, 0.1, 1e8, 1.7e9, 1e100, -1e300, 1.7e308, -1.7e308]
WORDS = [
    "cash",
    "win",
    "Win",
    "now",
    "lunch",
    "noon",
    "été",
    "Σίσυφος",
    "İstanbul",
    "日本語",
    "送餐",
    "a\0b",
    "😀",
    "x" * 70,
]
LABELS: list[list[Any]] = [["ham", "spam"], ["é", "e\u0301", "日本", "a\0", "a", ""], [3, -1, 10**12], [True, False]]
MEMORY_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None  # files are synced, which takes long on a disk
KEPT_ROWS = 40  # by some of the models with corrections, and a tenth of them in reserve
Row = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """Estimators that are tried together: what they are called, how one is made, and what its rows hold."""

    name: str
    make_estimator: Callable[[np.random.Generator], Any]
    columns: dict[str, Callable[[np.random.Generator], Any]]  # how a cell of each column is made up
    input: str = "table"  # "table", "texts", "matrix" or "frame"
    missing: float = 0.2  # the share of missing cells
    is_regression: bool = False
    takes_any_weight: bool = True  # not where counts are doubles that are fractions themselves
    n_rows: int = 14  # at most
    is_calibrated: bool = False  # then rows of weight one are also learned and forgotten one at a time

    @property
    def grows(self) -> bool:
        """Whether classes may be new in any batch."""
        return self.input in ("table", "texts")


@dataclass(frozen=True)
class Example:
    """One row, its label and its weight; examples are told apart by who they are."""

    row: Row
    label: Any
    weight: float


# -- made-up cells ---------------------------------------------------------------------------------------------------


def draw_number(rng: np.random.Generator) -> float:
    how = rng.integers(4)
    if how == 0:
        return float(rng.choice(EXTREME_NUMBERS))
    if how == 1:
        return float(np.ldexp(rng.normal(), int(rng.integers(-1000, 1000))))
    return float(rng.normal()) if how == 2 else float(rng.integers(-3, 4))


def draw_amount(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1e-150, 0.1, 1.0, 2.5, 1e150, abs(rng.normal()) + 1e-3]))


def draw_count(rng: np.random.Generator) -> float:
    return float(rng.choice([0, 0, 1, 1, 2, 3, 40]))


def draw_fraction(rng: np.random.Generator) -> float:
    return float(rng.choice([0, 1 / 64, 0.5, 1, 3, 2.0**30, float(rng.integers(1 << 20)) / 64]))


def draw_bit(rng: np.random.Generator) -> float:
    return float(rng.integers(2))


def draw_category(rng: np.random.Generator) -> str:
    return str(rng.choice(["red", "green", "", "été", "nan", "None", "1", "a\0", "日本"]))


def draw_word(rng: np.random.Generator) -> str:
    if rng.random() < 0.8:
        return str(rng.choice(WORDS))
    points = [int(p) for p in rng.integers(1, 0x10FFFF, size=rng.integers(1, 5))]
    return "".join(chr(p) for p in points if not 0xD800 <= p < 0xE000)


def draw_text(rng: np.random.Generator) -> str:
    return " ".join(draw_word(rng) for _ in range(rng.integers(0, 7)))


def draw_date(rng: np.random.Generator) -> datetime:
    return datetime(2020, 1, 1) + timedelta(hours=int(rng.integers(40_000)))


def draw_examples(kind: Kind, rng: np.random.Generator) -> list[Example]:
    """Some rows, some of them twice."""
    labels, kind_of_weights = LABELS[rng.integers(len(LABELS))], rng.integers(4 if kind.takes_any_weight else 3)
    examples: list[Example] = []
    for _ in range(rng.integers(max(1, kind.n_rows // 2) if kind.is_calibrated else 1, kind.n_rows + 1)):
        cells = {
            name: None if rng.random() < kind.missing and kind.input != "texts" else draw(rng)
            for name, draw in kind.columns.items()
        }
        whole = float(rng.integers(kind.is_calibrated, 5))
        weight = [1.0, whole, whole / 8, round(float(10.0 ** rng.uniform(-3, 3)), 3)][kind_of_weights]
        label = draw_number(rng) if kind.is_regression else labels[rng.integers(len(labels))]
        example = Example(cells, label, weight)
        if examples and rng.random() < 0.2:
            example = replace(examples[rng.integers(len(examples))], weight=weight)
        examples.append(example)
    return examples


# -- kinds -----------------------------------------------------------------------------------------------------------


def make_table_model(rng: np.random.Generator, families: Any = "auto") -> Any:
    return pr.NaiveBayes(families, calibrate=False)


def make_text_model(rng: np.random.Generator, model: str = "binary", **options: Any) -> Any:
    more: list[dict[str, Any]] = [
        {},
        {"ngram_range": (1, 2)},
        {"analyzer": "char_wb", "ngram_range": (2, 3)},
        {"lowercase": False, "min_token_length": 1},
        {"extra_tokens": "!?"},
        {"stop_words": ["now", "cash"]},
    ]
    return pr.TextClassifier(model, calibrate=False, **(options or more[rng.integers(len(more))]))


def make_text_column(rng: np.random.Generator) -> Any:
    options: list[dict[str, Any]] = [
        {},
        {"model": "multinomial"},
        {"model": "bernoulli"},
        {"buckets": 64},
        {"vocabulary": ("cash", "win", "日本語"), "unknown": True},
    ]
    text = pr.families.Text(**options[rng.integers(len(options))])
    return pr.NaiveBayes({"text": text, "colour": "categorical"}, calibrate=False)


def repeat_column(draw: Callable[[np.random.Generator], Any], columns: int = 3) -> dict[str, Any]:
    return {f"c{j}": draw for j in range(columns)}


def make_corrected_table(rng: np.random.Generator) -> Any:
    """A model that keeps all rows, or a few of them."""
    families: Any = {"note": "text"} if rng.integers(2) else {"note": "categorical"}
    return pr.NaiveBayes(families, memory=[KEPT_ROWS, 1000][rng.integers(2)])


def make_corrected_texts(rng: np.random.Generator) -> Any:
    return pr.TextClassifier(["binary", "multinomial"][rng.integers(2)], memory=[KEPT_ROWS, 1000][rng.integers(2)])


PLAIN = {
    "size": lambda rng: float(rng.normal()),
    "events": draw_count,
    "colour": lambda rng: str(rng.choice(["red", "green", "blue"])),
    "when": draw_date,
    "note": lambda rng: str(rng.choice(["cash now", "lunch", "win cash", "noon"])),
}
MIXED = {"size": draw_number, "colour": draw_category, "note": draw_text, "events": draw_count, "flag": draw_bit}
CATEGORIES = {"colour": draw_category, "shape": draw_category}
TEXT_OPTIONS: dict[str, dict[str, Any]] = {
    "hashed": {"buckets": 32},
    "fixed vocabulary": {"vocabulary": ["win", "cash", "été"], "unknown": True},
}
TEXT_COLUMN = {"text": draw_text}
KINDS: list[Kind] = [
    Kind("NaiveBayes, categories", make_table_model, CATEGORIES),
    Kind("NaiveBayes, texts and categories", make_text_column, {"text": draw_text, "colour": draw_category}),
    Kind("NaiveBayes, counts", partial(make_table_model, families="histogram"), repeat_column(draw_count)),
    Kind("NaiveBayes, histograms", partial(make_table_model, families="histogram"), repeat_column(draw_number)),
    Kind("NaiveBayes, numbers", make_table_model, repeat_column(draw_number)),
    Kind("NaiveBayes, mixed", partial(make_table_model, families={"note": "text"}), MIXED),
    *(
        Kind(f"TextClassifier, {model}", partial(make_text_model, model=model), {"text": draw_text}, "texts")
        for model in ("binary", "multinomial", "bernoulli")
    ),
    *(
        Kind(f"TextClassifier, {name}", partial(make_text_model, model=m, **options), {"text": draw_text}, "texts")
        for name, options in TEXT_OPTIONS.items()
        for m in ("multinomial",)
    ),
    Kind("NaiveBayes, corrected", make_corrected_table, PLAIN, n_rows=60, is_calibrated=True),
    Kind(
        "TextClassifier, corrected", make_corrected_texts, {"text": draw_text}, "texts", n_rows=60, is_calibrated=True
    ),
    Kind("BernoulliNB", lambda _: nb.BernoulliNB(), repeat_column(draw_number), "matrix", 0.0),
    Kind("CategoricalNB", lambda _: nb.CategoricalNB(), repeat_column(draw_count), "matrix", 0.0),
    Kind("MultinomialNB", lambda _: nb.MultinomialNB(), repeat_column(draw_count), "matrix", 0.0),
    Kind("ComplementNB", lambda _: nb.ComplementNB(), repeat_column(draw_count), "matrix", 0.0),
    Kind(
        "MultinomialNB, fractions",
        lambda _: nb.MultinomialNB(),
        repeat_column(draw_fraction),
        "matrix",
        0.0,
        takes_any_weight=False,
    ),
    Kind("GaussianNB", lambda _: nb.GaussianNB(), repeat_column(draw_number), "matrix", 0.0),
    Kind("GaussianBayes", lambda _: nb.GaussianBayes(), repeat_column(draw_number), "matrix", 0.0),
    Kind(
        "BayesianLinearRegression",
        lambda _: pr.BayesianLinearRegression(prior=1.0),
        repeat_column(draw_number),
        "matrix",
        is_regression=True,
    ),
    Kind(
        "BayesianLinearRegression, categories",
        lambda _: pr.BayesianLinearRegression(prior=1.0),
        {"colour": draw_category, "size": draw_number},
        "frame",
        is_regression=True,
    ),
]


# -- histories -------------------------------------------------------------------------------------------------------


def build_input(kind: Kind, examples: list[Example], rng: np.random.Generator) -> Any:
    """The rows as one of the inputs that people have."""
    rows = [example.row for example in examples]
    if kind.input == "texts":
        return [row["text"] for row in rows]
    if kind.input == "matrix":
        cells = np.array([[np.nan if v is None else v for v in row.values()] for row in rows])
        return np.asfortranarray(cells) if rng.integers(2) else cells
    if kind.input == "frame":
        return pl.DataFrame(rows, schema={"colour": pl.String, "size": pl.Float64})
    return [rows, pd.DataFrame(rows), pl.DataFrame(rows, infer_schema_length=None)][rng.integers(3)]


@dataclass(frozen=True)
class Trainer:
    """How the estimators of one case learn and forget: with the same parameters and the same declared classes."""

    kind: Kind
    make_estimator: Callable[[], Any]
    classes: list[Any] | None
    rng: np.random.Generator

    def fit(self, examples: list[Example]) -> Any:
        if self.classes is not None:
            return self._change(self.make_estimator().partial_fit, examples, classes=self.classes)
        counted = [example for example in examples if example.weight]
        has_cells = any(cell not in (None, "") for example in counted for cell in example.row.values())
        estimator = self.make_estimator()  # fit refuses a table without a single cell
        return self._change(estimator.fit if has_cells or not self.kind.grows else estimator.partial_fit, examples)

    def learn(self, model: Any, examples: list[Example]) -> Any:
        if model is None or not hasattr(model, "statistics_"):
            return self.fit(examples)
        if not (self.kind.grows or self.kind.is_regression or self.classes) or self.rng.integers(3) == 0:
            return model + self.fit(examples) if self.rng.integers(2) else self.fit(examples) + model
        return self._change(model.partial_fit, examples)

    def forget(self, model: Any, examples: list[Example]) -> Any:
        if not self.kind.is_calibrated or self.rng.integers(2):
            return self._change(model.forget, examples)
        for example in examples:
            self._forget_one(model, example)
        return model

    def _forget_one(self, model: Any, example: Example) -> None:
        """Forget one row, between two answers, with standby corrections or without."""
        row = example.row["text"] if self.kind.input == "texts" else example.row
        if self.rng.random() < 0.1:
            model.prepare_standby()
        if self.rng.random() < 0.3:
            model.predict_proba_one(row)
        if example.weight == 1:
            model.forget_one(row, example.label)
        else:
            self._change(model.forget, [example])
        if self.rng.random() < 0.3 and hasattr(model, "statistics_"):
            model.predict_proba_one(row)

    def _change(self, method: Callable[..., Any], examples: list[Example], **options: Any) -> Any:
        weights = np.array([example.weight for example in examples])
        if (weights != 1).any():
            options["sample_weight"] = weights
        labels = [example.label for example in examples]
        return method(build_input(self.kind, examples, self.rng), labels, **options)


def split_examples(examples: list[Example], rng: np.random.Generator) -> list[list[Example]]:
    """The examples in another order and in batches, each of which has some weight."""
    order = [examples[i] for i in rng.permutation(len(examples))]
    order.sort(key=lambda example: example.weight == 0)  # so that what weighs nothing follows something that does
    cuts = np.flatnonzero(rng.random(len(order)) < 0.3)
    batches = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True) if b > a]
    while len(batches) > 1 and not any(example.weight for example in batches[-1]):
        batches[-2:] = [batches[-2] + batches[-1]]
    return batches


def live_through(trainer: Trainer, examples: list[Example], gone: list[Example]) -> Any:
    """One model that has learned all examples, and what is gone besides, and has forgotten that again."""
    rng, models = trainer.rng, [None] * int(trainer.rng.integers(1, 4))
    for batch in split_examples(examples + gone, rng):
        place = rng.integers(len(models))
        models[place] = trainer.learn(models[place], batch)
        if rng.random() < 0.15:  # one more that does not stay
            models[place] = trainer.forget(trainer.learn(models[place], batch[:1] + gone), batch[:1] + gone)
        if rng.random() < 0.15:
            models[place] = copy_through_file(models[place])
    there = [model for model in models if model is not None]
    total = there[0]
    for model in there[1:]:
        total = total + model if rng.integers(2) else model + total
    for batch in split_examples(gone, rng):
        total = trainer.forget(total, batch)
    return total


def copy_through_file(model: Any) -> Any:
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        pr.save(model, Path(folder, "model.priory"))
        return pr.load(Path(folder, "model.priory"))


def save_to_bytes(model: Any) -> bytes:
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        pr.save(model, Path(folder, "model.priory"))
        return Path(folder, "model.priory").read_bytes()


def is_same(model: Any, other: Any) -> bool:
    """Whether a model with too few rows in reserve has the counts, the rows in use and the corrections of another."""
    if len(model.statistics_.sample) >= add_reserve(KEPT_ROWS):
        return False  # its file is to be the other's
    parts = [
        (one.statistics_.n, one.statistics_.parts, used.hashes, used.weight, used.group, one.corrections_version_)
        for one in (model, other)
        if (used := one.statistics_.sample.take_used()) is not None
    ]
    return model.memory == KEPT_ROWS and hash_content(parts[0]) == hash_content(parts[1])


def run_case(kind: Kind, seed: int) -> bool:
    """Whether the file of a model with a history is that of a new model."""
    rng = np.random.default_rng([seed, *kind.name.encode()])
    parameters = int(rng.integers(1 << 30))
    examples = draw_examples(kind, rng)
    is_declared = not kind.is_regression and rng.random() < 0.3
    classes = sorted({example.label for example in examples}) if is_declared else None
    is_gone = rng.random(len(examples)) < rng.choice([0.2, 0.5, 0.8])
    gone = [example for example, leaves in zip(examples, is_gone, strict=True) if leaves]
    left = [example for example, leaves in zip(examples, is_gone, strict=True) if not leaves]
    if kind.is_calibrated:  # no more than the kept rows in reserve
        gone, left = gone[: KEPT_ROWS // 10], [*left, *gone[KEPT_ROWS // 10 :]]
    if not any(example.weight for example in left):
        left = [*left, replace(examples[0], weight=1.0)]
    if not any(example.weight for example in gone):
        gone = []
    trainer = Trainer(kind, lambda: kind.make_estimator(np.random.default_rng(parameters)), classes, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = live_through(trainer, left, gone)
        if kind.is_calibrated and not gone:
            model.refresh()  # corrections that were learned on are derived anew
        reference = trainer.fit([left[i] for i in rng.permutation(len(left))])
        return save_to_bytes(model) == save_to_bytes(reference) or (kind.is_calibrated and is_same(model, reference))


# -- the whole -------------------------------------------------------------------------------------------------------


def try_case(kind: Kind, seed: int) -> str:
    """ "" if the files are equal, else "differs" or the error."""
    try:
        return "" if run_case(kind, seed) else "differs"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def run_chunk(place: int, seeds: list[int]) -> list[str]:
    return [try_case(KINDS[place], seed) for seed in seeds]


def run_all(runs: int, seed: int, prefix: str = "") -> dict[str, dict[int, str]]:
    """For each kind, what each of its cases came to; ``runs`` in all."""
    places = [place for place, kind in enumerate(KINDS) if kind.name.startswith(prefix)]
    results: dict[str, dict[int, str]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = {}
        for number, place in enumerate(places):
            many = runs // len(places) + (number < runs % len(places))
            seeds = [seed * 1_000_000 + case for case in range(many)]
            jobs[place] = seeds, pool.submit(run_chunk, place, seeds)
        for place, (seeds, job) in jobs.items():
            results[KINDS[place].name] = dict(zip(seeds, job.result(), strict=True))
    return results


def format_table(results: dict[str, dict[int, str]]) -> str:
    rows = [(name, len(cases), sum(not what for what in cases.values())) for name, cases in results.items()]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    lines = [f"| {name} | {tried:,} | {equal:,} |" for name, tried, equal in rows]
    return "\n".join(["| kind | histories | equal files |", "|---|---:|---:|", *lines])


def write_results(runs: int, seed: int, table: str) -> None:
    RESULTS.write_text(
        f"""# Forgotten means never seen

`python benchmarks/exact_forgetting.py --runs {runs} --seed {seed} --write`: random histories of a model: rows of
made-up cells (numbers from 5e-324 to 1.7e308, categories, texts of any Unicode, dates, missing cells, duplicates, whole
and fractional weights) are learned in batches by up to three models, forgotten in other batches or one at a time,
saved, loaded, and merged. The file of the result is compared, byte for byte, with that of a new model that is given the
rows that are left in one `fit`. Where kinds are "corrected" the files hold corrections, and rows are forgotten that are
kept and that are not, with answers in between, by standby corrections or not. Of models that keep only some rows, a
kept row that is forgotten leaves a smaller reserve: once it is below a tenth of the rows in use, counts, the rows in
use and corrections are compared.

{table}
""",
        encoding="utf-8",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="")
    parser.add_argument("--case", type=int)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.case is not None:
        for kind in [kind for kind in KINDS if kind.name.startswith(given.kind)]:
            try:
                print(f"{kind.name}: {'equal' if run_case(kind, given.seed * 1_000_000 + given.case) else 'differs'}")
            except Exception:
                traceback.print_exc()
        return 0
    start = time.perf_counter()
    results = run_all(given.runs, given.seed, given.kind)
    table = format_table(results)
    print(table)
    wrong = [(name, case, what) for name, cases in results.items() for case, what in cases.items() if what]
    for name, case, what in wrong[:20]:
        print(f"{name}, case {case}: {what[:200]}")
    print(f"{given.runs:,} histories in {time.perf_counter() - start:.0f} s, {len(wrong):,} differ")
    if given.write:
        write_results(given.runs, given.seed, table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
