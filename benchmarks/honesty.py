"""Whether answers are honest: on labels that are pure noise, on tables with signal, and along streams from their start.

    python benchmarks/honesty.py [tables of noise] [tables with signal] [processes]    # writes results/honesty.md

Each table is judged from inside, by `evaluate()`, and from outside, on new rows. On noise the model should answer with
the base rate and claim no more; how far its answers are from the base rate tells that from intervals which are merely
too wide. With signal, what is claimed should be what new rows get: the differences, in units of their standard error,
have mean 0 and deviation 1. Every fifth table of noise is a real one whose labels were shuffled. Real tables (see
datasets.py; without them, there are simulated ones only) are cut in two halves, several times. Along a stream each row
is answered before it is learned, and the odds claimed are compared with how often the answers were right. Progress goes
to the standard error; a table takes about two seconds of one core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import datasets
import priory as pr

RESULTS = Path(__file__).parent / "results"
NEW_ROWS = 2000
MAX_REAL_ROWS = 2000  # that are learned
REAL_SPLITS = 2  # of each real table
MIN_NOISE_ROWS, NOISE_SIZES = 15, (15, 50, 200)  # the smallest table, and where groups of sizes begin
STREAMS = ("spamassassin", "sms_spam", "trec_questions", "adult", "titanic")
WINDOWS = (0, 25, 50, 100, 200, 500, 2000)  # rows learned before
LEAST = 1e-15  # no probability counts as less
WORDS = np.array([f"{a}{b}" for a in ("ka", "lo", "mi", "ne", "ru", "so", "ta", "vi") for b in "abcdefghijklmnopqrst"])


class Table(NamedTuple):
    """Rows to learn and new rows."""

    kind: str
    x: pd.DataFrame
    y: np.ndarray
    new_x: pd.DataFrame
    new_y: np.ndarray


def make_columns(kind: str, rows: int, columns: int, rng: np.random.Generator) -> pd.DataFrame:
    if kind == "texts":
        lengths = rng.integers(3, 30, rows)
        return pd.DataFrame({"text": [" ".join(rng.choice(WORDS, n)) for n in lengths]})
    made = {
        "labels": lambda: np.array(list("abcdefgh"))[rng.integers(0, rng.integers(2, 9), rows)].astype(object),
        "numbers": lambda: np.exp(rng.normal(size=rows)) if rng.random() < 0.3 else rng.normal(size=rows),
        "counts": lambda: rng.poisson(rng.gamma(1.0, 4.0), rows).astype(float),
    }
    return pd.DataFrame({f"c{j}": made[kind]() for j in range(columns)})


def take_real(name: str, seed: int, shuffle: bool) -> Table:
    """Some rows of a real table to learn, and others that are new; the labels as they are, or shuffled."""
    found = datasets.table(name)
    assert found is not None
    table, labels = found[0].reset_index(drop=True), np.asarray(found[1]).astype(str)
    rng = np.random.default_rng(20_000 + seed)
    order = rng.permutation(len(table))
    rows = min(len(table) // 2, MAX_REAL_ROWS)
    own, new = order[:rows], order[rows : rows + NEW_ROWS]
    y = rng.permutation(labels) if shuffle else labels
    new = new[np.isin(y[new], y[own])]  # a class that was never seen has no honest probability
    return Table("real tables, shuffled" if shuffle else name, table.iloc[own], y[own], table.iloc[new], y[new])


def list_real() -> list[str]:
    return [name for name in datasets.CLASSIFICATION if (datasets.DATA / name).exists()]


def make_noise(seed: int) -> Table:
    """A table whose labels have nothing to do with its columns."""
    real = list_real()
    if seed % 5 == 4 and real:
        return take_real(real[seed // 5 % len(real)], seed, shuffle=True)
    rng = np.random.default_rng(seed)
    kind = ("labels", "numbers", "counts", "texts")[seed % 4]
    rows, columns = int(np.exp(rng.uniform(np.log(MIN_NOISE_ROWS), np.log(2000)))), int(rng.integers(5, 101))
    share = rng.uniform(0.2, 0.5)
    x = make_columns(kind, rows + NEW_ROWS, columns, rng)
    y = np.where(rng.random(len(x)) < share, "yes", "no")
    return Table(kind, x[:rows], y[:rows], x[rows:], y[rows:])


def make_signal(seed: int) -> Table:
    """Numbers, some of which matter: one by one, in pairs, or not at all."""
    rng = np.random.default_rng(10_000 + seed)
    rows, columns = int(np.exp(rng.uniform(np.log(100), np.log(2000)))), int(rng.integers(4, 31))
    x = rng.normal(size=(rows + NEW_ROWS, columns))
    logit = x[:, : columns // 2] @ rng.normal(0, 1 / np.sqrt(columns), columns // 2) + rng.normal() * x[:, 0] * x[:, 1]
    if seed % 2:
        x = np.round(x)
    y = np.where(rng.random(len(x)) < 1 / (1 + np.exp(-rng.uniform(0.5, 2.5) * logit)), "yes", "no")
    table = pd.DataFrame(x, columns=[f"c{j}" for j in range(columns)])
    if seed % 3 == 0:
        table = table.round().astype(int).astype(str)
    return Table("simulated", table[:rows], y[:rows], table[rows:], y[rows:])


def log_losses(answers: np.ndarray, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return -answers[np.arange(len(y)), np.searchsorted(classes, y)]


def base_losses(learned: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The losses of answering with the share of each class among the rows learned."""
    classes, counts = np.unique(learned, return_counts=True)
    return -np.log(counts / counts.sum())[np.searchsorted(classes, y)]


def mean_and_error(x: np.ndarray) -> tuple[float, float]:
    return float(np.mean(x)), float(np.std(x, ddof=1) / np.sqrt(len(x)))


def run_all(judge: Callable[[Any], tuple[Any, ...]], tasks: Sequence[Any], processes: int | None) -> list[Any]:
    """The result of each task; each is shown while the others are computed."""
    found = []
    with Pool(processes) as pool:
        for result in pool.imap(judge, tasks):
            found.append(result)
            print(f"{len(found)}/{len(tasks)}", *result[:1], file=sys.stderr, flush=True)
    return found


def judge_noise(seed: int) -> tuple[str, int, float, float, bool, bool]:
    """Kind and rows of a table, the excess of log loss on new rows, how far answers are from the base rate, claims."""
    table = make_noise(seed)
    model = pr.NaiveBayes().fit(table.x, table.y)
    answers = model.predict_log_proba(table.new_x)
    excess = log_losses(answers, table.new_y, model.classes_) - base_losses(table.y, table.new_y)
    shares = np.unique(table.y, return_counts=True)[1] / len(table.y)
    claimed = model.evaluate()
    return (
        table.kind,
        len(table.y),
        float(excess.mean()),
        float(np.abs(np.exp(answers) - shares).sum(axis=1).mean() / 2),
        bool(claimed.accuracy.low > claimed.base.accuracy),
        bool(claimed.gain["log_loss"].low > 0),
    )


def run_noise(tables: int, processes: int | None) -> list[str]:
    found = run_all(judge_noise, range(tables), processes)
    frame = pd.DataFrame(found, columns=["kind", "rows", "excess", "distance", "claims_accuracy", "claims_log_loss"])
    lines = [
        "## Noise",
        "",
        "Excess: mean log loss on new rows above that of the base rate. Distance: how much probability the answers to",
        "new rows move away from the base rate, on average. Claims: the 95 % interval of `evaluate()` is above the",
        "base rate. If answers varied, that would be so for 2.5 % of tables by chance; the base rate claims nothing.",
        "",
        "| kind | tables | excess | largest | distance | largest | claims by accuracy | claims by log loss |",
        "|---|---|---|---|---|---|---|---|",
    ]
    from_rows = np.array(NOISE_SIZES)[np.searchsorted(NOISE_SIZES, frame.rows, side="right") - 1]
    sizes = [(f"all, from {rows} rows", part) for rows, part in frame.groupby(from_rows)]
    for kind, part in [*frame.groupby("kind"), *sizes, ("all", frame)]:
        lines.append(
            f"| {kind} | {len(part)} | {part.excess.mean():.4f} | {part.excess.max():.4f} | "
            f"{part.distance.mean():.4f} | {part.distance.max():.4f} | "
            f"{part.claims_accuracy.mean():.1%} | {part.claims_log_loss.mean():.1%} |"
        )
    return lines


def judge_signal(task: tuple[str, int]) -> tuple[str, float, float]:
    """The name of a table, its claimed less its true log loss, and the standard error of that."""
    name, seed = task
    table = take_real(name, seed, shuffle=False) if name else make_signal(seed)
    model = pr.NaiveBayes().fit(table.x, table.y)
    claimed = model.evaluate().log_loss
    answers = model.predict_log_proba(table.new_x)
    true, true_error = mean_and_error(log_losses(answers, table.new_y, model.classes_))
    error = float(np.hypot((claimed.high - claimed.low) / 2 / 1.96, true_error))
    return table.kind, claimed.value - true, error


def run_signal(tables: int, processes: int | None) -> list[str]:
    tasks = [("", seed) for seed in range(tables)]
    tasks += [(name, seed) for name in list_real() for seed in range(REAL_SPLITS)]
    found = run_all(judge_signal, tasks, processes)
    frame = pd.DataFrame(found, columns=["kind", "difference", "error"])
    lines = [
        "",
        "## Signal",
        "",
        "Claimed less true log loss, its mean and the error of that; and its z-scores, of tables whose answers vary.",
        "",
        "| tables | number | mean | error | mean z | deviation of z |",
        "|---|---|---|---|---|---|",
    ]
    simulated = frame.kind == "simulated"
    for title, part in (("simulated", frame[simulated]), ("real", frame[~simulated]), ("all", frame)):
        if len(part) > 1:
            mean, error = mean_and_error(part.difference.to_numpy())
            varied = part[part.error > 0.001]  # where the base rate answers, losses hardly vary
            z = varied.difference / varied.error
            lines.append(
                f"| {title} | {len(part)} | {mean:+.4f} | {error:.4f} | {z.mean():+.2f} | {z.std(ddof=1):.2f} |"
            )
    return lines


def read_stream(name: str) -> tuple[list[Any], list[str]]:
    """Rows in a random order, at most as many as the last window reaches to, and their labels."""
    if name in datasets.CLASSIFICATION:
        frame, y = datasets.table(name)
        rows = [{k: v for k, v in row.items() if v is not None and v == v} for row in frame.to_dict("records")]
        labels = y.tolist()
    else:
        texts, own, more, others = datasets.text(name)
        rows, labels = [*texts, *more], [*own, *others]
    order = np.random.default_rng(0).permutation(len(rows))[: WINDOWS[-1] + 1]
    return [rows[i] for i in order], [labels[i] for i in order]


def judge_stream(name: str) -> tuple[str, pd.DataFrame, float]:
    """Each answer: rows learned before, claimed odds, whether it is right, log losses; and the area above the curve.

    Rows are left out until two classes are known, and rows of new classes; the curve is of the commonest class.
    """
    rows, labels = read_stream(name)
    model, counts = pr.NaiveBayes() if name in datasets.CLASSIFICATION else pr.TextClassifier(), dict[str, int]()
    commonest, found, curve = max(sorted(set(labels)), key=labels.count), [], []
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        if len(counts) > 1 and label in counts:
            answer = model.predict_proba_one(row)
            best = max(answer, key=answer.__getitem__)
            odds = answer[best] / max(1 - answer[best], LEAST)
            base = -np.log(counts[label] / number)
            found.append((number, odds, best == label, -np.log(max(answer[label], LEAST)), base))
            curve.append((label == commonest, answer.get(commonest, 0.0)))
        model.learn_one(row, label)
        counts[label] = counts.get(label, 0) + 1
    return name, pd.DataFrame(found, columns=["number", "odds", "right", "loss", "base"]), measure_area_above(curve)


def measure_area_above(curve: Sequence[tuple[bool, float]]) -> float:
    """The percentage of pairs of a row of the class and another one that are in the wrong order."""
    is_class, p = map(np.array, zip(*curve, strict=True))
    _, ranks, counts = np.unique(p, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - (counts - 1) / 2)[ranks]  # the mean rank of equal ones
    n = is_class.sum()
    return float(100 - 100 * (middle[is_class].sum() - n * (n + 1) / 2) / (n * (len(p) - n)))


def run_streams(processes: int | None) -> list[str]:
    names = [name for name in STREAMS if (datasets.DATA / name).exists()]
    lines = [
        "",
        "## Streams",
        "",
        "Each row is answered before it is learned, one at a time, in a random order. Claimed: the median odds of the",
        "answers. Right: how many answers were right for each wrong one, with one virtual answer of each kind.",
        "",
        "| stream | rows learned before | claimed | right | wrong answers | log loss | base rate |",
        "|---|---|---|---|---|---|---|",
    ]
    summary = ["", "| stream | log loss of all answers | area above the ROC curve |", "|---|---|---|"]
    for name, frame, area in run_all(judge_stream, names, processes):
        for first, last in pairwise(WINDOWS):
            part = frame[(frame.number >= first) & (frame.number < last)]
            if len(part):
                right = (part.right.sum() + 1) / ((~part.right).sum() + 1)
                lines.append(
                    f"| {name} | {first} to {last - 1} | {part.odds.median():,.1f} : 1 | {right:,.1f} : 1 | "
                    f"{(~part.right).sum()} of {len(part)} | {part.loss.mean():.3f} | {part.base.mean():.3f} |"
                )
        summary.append(f"| {name} | {frame.loss.mean():.4f} | {area:.3f} % |")
    return [*lines, *summary]


def main() -> None:
    warnings.simplefilter("ignore")
    given = [int(argument) for argument in sys.argv[1:]]
    noise, signal, processes = [*given, *(500, 200, None)[len(given) :]]
    head = [
        "# Honesty on noise, on signal and along streams",
        "",
        f"`python benchmarks/honesty.py {noise} {signal}`",
        "",
    ]
    lines = [*head, *run_noise(noise, processes)]
    lines += run_signal(signal, processes)
    lines += run_streams(processes)
    print("\n".join(lines))
    (RESULTS / "honesty.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
