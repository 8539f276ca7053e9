"""Make the test vectors of docs/format.md: small model files with rows, the record and answers as JSON.

python tools/make_format_vectors.py             # writes tests/format_vectors/
"""

import json
import math
import random
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import priory as pr
from priory.learning.record_export import export_record, export_rows

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "format_vectors"
COLOURS = ("red", "green", "blue", "</script>", 'violet"; DROP TABLE t; --')
WORDS = ["cash", "prize", "win", "free", "offer", "bonus", "lunch", "noon", "meeting", "report"]
WORDS += ["Éclair", "Москва", "北京烤鸭", "naïve", "x2", "plan"]
Row = dict[str, Any]
Columns = dict[str, list[Any]]


def draw_count(draw: random.Random, mean: float) -> int:
    """A Poisson count, from uniform numbers alone."""
    count, left = 0, draw.random()
    while left > math.exp(-mean):
        count, left = count + 1, left * draw.random()
    return count


def make_rows(seed: int, rows: int, classes: int, gaps: float) -> tuple[list[Row], list[str]]:
    """Rows of all kinds of columns, with their labels; some cells are missing."""
    draw, made, labels = random.Random(seed), [], []
    for _ in range(rows):
        c = draw.randrange(classes)
        text = " ".join(draw.choice(WORDS[: 6 + 3 * c] if draw.random() < 0.5 else WORDS) for _ in range(7))
        row = {
            "colour": COLOURS[min(draw.randrange(4) + (c == 1), 4)],
            "flag": int(draw.random() < 0.3 + 0.3 * c),
            "count": draw_count(draw, 1.5 + c),
            "size": round(draw.gauss(10 + c, 2), 1),
            "income": round(draw.gammavariate(2 + c, 3.0), 2),
            "balance": 0.0 if draw.random() < 0.55 else round(draw.gauss(5 * c, 9), 3),
            "when": (date(2024, 1, 1) + timedelta(days=draw.randrange(300))).isoformat(),
            "note": text,
        }
        made.append({name: cell for name, cell in row.items() if draw.random() >= gaps})
        labels.append(f"class {c}")
    return made, labels


def to_columns(rows: list[Row], names: list[str]) -> Columns:
    """Rows as columns, with dates as dates."""
    table: Columns = {name: [row.get(name) for row in rows] for name in names}
    if "when" in table:
        table["when"] = [None if day is None else date.fromisoformat(day) for day in table["when"]]
    return table


def make_tables() -> Iterator[tuple[str, Callable[[], Row]]]:
    """Tables, plain and corrected."""
    kinds = {
        "labels": (["colour"], 2, 0.05),
        "numbers": (["flag", "count", "size", "income", "balance"], 2, 0.0),
        "mixed": (["colour", "count", "size", "when"], 3, 0.1),
        "texts": (["note", "size"], 2, 0.0),
    }
    for number, (name, (columns, classes, gaps)) in enumerate(kinds.items()):
        for suffix, options in (("plain", {"calibrate": False}), ("corrected", {})):
            yield f"{name}-{suffix}", partial(make_table, number, columns, classes, gaps, options)
    yield "few-rows", partial(make_table, 8, ["colour", "size"], 2, 0.0, {}, rows=12)


def make_table(seed: int, names: list[str], classes: int, gaps: float, options: Row, rows: int = 90) -> Row:
    """A model of a table; the rows to answer have gaps, and new and extreme values."""
    learned, labels = make_rows(seed, rows, classes, gaps)
    asked, _ = make_rows(seed + 100, 20, classes, 0.2)
    odd = [{"colour": "never seen"}, {"size": 1e9, "count": 10**6}, {"income": -1.0, "count": -3, "flag": 2}, {}]
    asked = [{name: row[name] for name in names if name in row} for row in [*asked, *odd]]
    families = {"note": "text"} if "note" in names else "auto"
    model = pr.NaiveBayes(families, **options).fit(to_columns(learned, names), labels)
    answers = model.predict_log_proba(to_columns(asked, names))
    return describe(model, to_columns(learned, names), labels, asked, answers)


def make_texts() -> Iterator[tuple[str, Callable[[], Row]]]:
    """Texts alone, plain and corrected."""
    for suffix, classes, options in (
        ("plain", 2, {"calibrate": False, "ngram_range": (1, 2)}),
        ("corrected", 3, {}),
        ("occurrences", 2, {"model": "multinomial"}),
    ):
        yield f"documents-{suffix}", partial(make_documents, classes, options)
    yield "documents-finer", make_finer_documents


def make_documents(classes: int, options: Row) -> Row:
    """A model of texts."""
    learned, labels = make_rows(20, 90, classes, 0.0)
    asked = [row["note"] for row in make_rows(120, 10, classes, 0.0)[0]]
    asked += ["", "never seen", "北京 ÉCLAIR МОСКВА́ win-win", "e\u0301clair İstanbul Σας a1_b 12"]
    texts = [row["note"] for row in learned]
    model = pr.TextClassifier(**options).fit(texts, labels)
    return describe(model, texts, labels, asked, model.predict_log_proba(asked))


def make_finer_documents() -> Row:
    """A model that weighs pairs of neighbours and n-grams of characters: endings and marks tell the class."""
    draw, texts, labels = random.Random(9), [], []
    for _ in range(400):
        c = draw.randrange(2)
        stems = ["".join(draw.choice("bdfgklmnprt") for _ in range(3)) for _ in range(3)]
        endings = [draw.choice((("ing", "ung", "é"), ("eux", "ois", "a"))[c ^ (draw.random() < 0.3)]) for _ in stems]
        marks = ("!?", "; x")[c ^ (draw.random() < 0.2)]
        texts.append(" ".join(map("".join, zip(stems, endings, strict=True))) + marks)
        labels.append(f"class {c}")
    model = pr.TextClassifier().fit(texts[:370], labels[:370])
    asked = [*texts[370:], "", "a x; y!?", "北京烤鸭kéting bbung_12 Ünd", "b" * 1500, "bdeux\u0301 €x 😀 !? ;"]
    return describe(model, texts[:370], labels[:370], asked, model.predict_log_proba(asked))


def describe(model: Any, learned: Any, labels: list[str], asked: list[Any], answers: Any) -> Row:
    """A vector: the model, the rows that it learned, its record, and what it answers."""
    state = model.learned_
    rows = export_rows(state, learned, lambda classes, strict: (classes, np.searchsorted(classes, labels)))
    answered = {"rows": asked, "log_probabilities": np.asarray(answers).tolist()}
    return {"model": model, "learned": rows, "labels": labels, "record": export_record(state), **answered}


def main() -> None:
    """Write all vectors."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for name, make in [*make_tables(), *make_texts()]:
        vector = make()
        pr.save(vector.pop("model"), FOLDER / f"{name}.priory")
        text = json.dumps(vector, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        (FOLDER / f"{name}.json").write_text(text.replace('},{"cells"', '},\n{"cells"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
