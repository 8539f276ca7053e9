"""Drift alarms: how often without drift, how late with drift, and what a model gains that starts again at an alarm.

python benchmarks/drift.py [stationary streams]    # prints results/drift.md

Stationary streams have 2,000 rows after a reference of 300, at a declared rate of false alarms of 1 %. Streams with
drift are river's generators: 3,000 rows of one concept, then 3,000 of another; the first 300 are the reference. Delay:
rows from the change to the first alarm after it (3,000 if there is none). The detectors of river watch the mistakes of
river's naive Bayes; Priory's monitor watches the columns within the classes. Prequential accuracy: each row is
answered, then learned.
"""

import sys

import numpy as np
from river import drift, ensemble, naive_bayes
from river.datasets import synth

import priory
from priory.learning.drift_alarm import DriftMonitor

ROWS, REFERENCE, CHANGE = 2000, 300, 3000


def make_stationary(kind, rng):
    n, classes = REFERENCE + ROWS, None
    if kind == "numbers":
        table = {f"x{j}": rng.normal(size=n) for j in range(8)}
    elif kind == "heavy tails":
        table = {f"x{j}": rng.standard_cauchy(n) for j in range(8)}
    elif kind == "labels":
        p = rng.dirichlet(np.full(20, 0.3))
        table = {f"x{j}": rng.choice([f"v{k}" for k in range(20)], n, p=p).astype(object) for j in range(8)}
    elif kind == "classes":
        classes = rng.integers(0, 3, n)
        table = {f"x{j}": rng.normal(size=n) + classes for j in range(8)}
    else:
        words, p = [f"w{k}" for k in range(500)], 1 / np.arange(1, 501)
        return [" ".join(rng.choice(words, 12, p=p / p.sum())) for _ in range(n)], None
    return table, classes


def take(table, part):
    return {name: column[part] for name, column in table.items()} if isinstance(table, dict) else table[part]


def count_false_alarms(streams):
    print(f"# Drift alarms\n\n`python benchmarks/drift.py {streams}`\n")
    print(f"## {streams} stationary streams\n\n| kind | streams | with an alarm |\n|---|---|---|")
    kinds, total = ["numbers", "heavy tails", "labels", "classes", "texts"], 0
    for kind in kinds:
        found = 0
        for seed in range(streams // len(kinds)):
            table, y = make_stationary(kind, np.random.default_rng(seed))
            monitor = DriftMonitor(take(table, slice(REFERENCE)), None if y is None else y[:REFERENCE])
            rest = slice(REFERENCE, None)
            found += monitor.update(take(table, rest), None if y is None else y[rest]) is not None
        total += found
        print(f"| {kind} | {streams // len(kinds)} | {found} |", flush=True)
    print(f"| all | {streams} | {total} ({total / streams:.1%}) |\n")


GENERATORS = {
    "SEA": lambda k, seed: synth.SEA(variant=(2, 3)[k], noise=0.1, seed=seed),
    "STAGGER": lambda k, seed: synth.STAGGER(classification_function=k, seed=seed, balance_classes=False),
    "Agrawal": lambda k, seed: synth.Agrawal(classification_function=(0, 3)[k], perturbation=0.05, seed=seed),
    "LED": lambda k, seed: synth.LEDDrift(seed=seed, noise_percentage=0.1, n_drift_features=(0, 7)[k]),
    "Sine": lambda k, seed: synth.Sine(classification_function=(0, 2)[k], seed=seed, has_noise=False),
    "RandomRBF": lambda k, seed: synth.RandomRBF(seed_model=7 + k, seed_sample=seed, n_classes=3, n_features=8),
}


def make_rows(name, seed):
    one, two = (GENERATORS[name](k, 100 * seed + k) for k in (0, 1))
    return [*one.take(CHANGE), *two.take(CHANGE)]


def follow_priory(rows):
    """Rows of alarms, and the share of right answers."""
    monitor = DriftMonitor([x for x, _ in rows[:REFERENCE]], [y for _, y in rows[:REFERENCE]])
    model, alarms, right = priory.NaiveBayes(calibrate=False), [], 0
    for k, (x, y) in enumerate(rows):
        right += model.predict_one(x) == y
        model.learn_one(x, y)
        found = monitor.update(x, y) if k >= REFERENCE else None
        if found is not None:
            alarms.append(k)
            recent = rows[REFERENCE + found.since : k + 1]
            model = priory.NaiveBayes(calibrate=False).partial_fit([x for x, _ in recent], [y for _, y in recent])
    return alarms, right / len(rows)


def follow_river(rows, model, detector=None):
    alarms, right = [], 0
    for k, (x, y) in enumerate(rows):
        mistake = model.predict_one(x) != y
        right += not mistake
        model.learn_one(x, y)
        if detector is not None:
            detector.update(int(mistake))
            if detector.drift_detected:
                alarms.append(k)
                model = model.clone()
    return alarms, right / len(rows)


def measure_delay(alarms):
    """Alarms before the change, and the delay."""
    late = [k for k in alarms if k >= CHANGE]
    return sum(k < CHANGE for k in alarms), (late[0] - CHANGE if late else CHANGE)


def compare_detectors(seeds):
    print("## River's generators: alarms before the change / rows of delay / prequential accuracy\n")
    methods = {
        "Priory": follow_priory,
        "river NB + ADWIN": lambda rows: follow_river(rows, naive_bayes.GaussianNB(), drift.ADWIN()),
        "river NB + PageHinkley": lambda rows: follow_river(rows, naive_bayes.GaussianNB(), drift.PageHinkley()),
        "ADWINBagging (10 NB)": lambda rows: follow_river(
            rows, ensemble.ADWINBaggingClassifier(naive_bayes.GaussianNB(), seed=1)
        ),
        "river NB": lambda rows: follow_river(rows, naive_bayes.GaussianNB()),
    }
    print("| stream |", " | ".join(methods), "|\n" + "|---" * (1 + len(methods)) + "|")
    for name in GENERATORS:
        cells = []
        for method, follow in methods.items():
            found = [follow(make_rows(name, seed)) for seed in range(seeds)]
            accuracy = np.mean([a for _, a in found])
            early, delay = np.mean([measure_delay(alarms) for alarms, _ in found], axis=0)
            watched = "ADWINB" not in method and method != "river NB"
            cells.append(f"{early:.1f} / {delay:.0f} / {accuracy:.3f}" if watched else f"{accuracy:.3f}")
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    count_false_alarms(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
    compare_detectors(3)
