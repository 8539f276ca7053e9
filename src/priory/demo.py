"""The tour: learn real tables, judge the model by leave-one-out beside the base rate, explain, forget.

Run it with ``make demo`` or ``python -m priory.demo``.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

from priory.classifier import NaiveBayes
from priory.data import inbox
from priory.logspace import Array
from priory.text import TextClassifier


def main() -> None:
    print("posterior = prior + statistics(data)\n")
    messages, labels = inbox()
    mail = learn("inbox (hand-written: sender, hour, links and text)", messages, labels)
    print("\n  what each column was taken for, by evidence:")
    for column in mail.schema_.values():
        print(f"    {column}")

    wine = load_wine(as_frame=True)
    learn("wine", wine.data, wine.target_names[wine.target])

    scans = load_breast_cancer(as_frame=True)
    verdicts = scans.target_names[scans.target]
    tumours = learn("breast cancer", scans.data, verdicts)

    print("\nWhy? The ledger of one message, of its words, and of one tumour, in decibans:\n")
    shown(str(mail.explain(messages[2:3])[0]))
    words = TextClassifier().fit([row["text"] for row in messages], labels)
    shown(str(words.explain(messages[2]["text"])[0]))
    shown(str(tumours.explain(scans.data.iloc[:1])[0]))
    forgetting(messages, labels)


def learn(name: str, table: Any, labels: Any) -> NaiveBayes:
    """Fit, and judge every row by the model that has not seen it."""
    start = time.perf_counter()
    model = NaiveBayes().fit(table, labels)
    learned = time.perf_counter() - start
    progress(f"{name}: leaving out each of {len(labels)} rows in turn ...")
    honest = model.leave_one_out(table, labels)
    took = time.perf_counter() - start - learned
    progress("")
    truth = np.searchsorted(model.classes_, np.asarray(labels))
    base = np.bincount(truth) / len(truth)
    print(f"{name}: {len(labels)} rows, classes {', '.join(map(str, model.classes_))}")
    print(f"  {'':<24}accuracy   log loss")
    print(f"  {'base rate':<24}{base.max():8.1%}   {-(base * np.log(base)).sum():8.3f}")
    print(f"  {'leave-one-out':<24}{accuracy(honest, truth):8.1%}   {log_loss(honest, truth):8.3f}")
    print(f"  learned in {learned:.2f} s, all {len(labels)} rows left out in {took:.1f} s without a refit\n")
    return model


def forgetting(table: Any, labels: list[str]) -> None:
    """Learn everything, forget a third, compare with a model that never saw it."""
    third = len(labels) // 3
    model = NaiveBayes().fit(table, labels).forget(table[:third], labels[:third])
    never = NaiveBayes().fit(table[third:], labels[third:])
    gap = np.abs(model.predict_proba(table) - never.predict_proba(table)).max()
    print(f"Forget {third} of {len(labels)} messages: largest difference from never having seen them: {gap:.0e}")


def accuracy(log_proba: Array, truth: Array) -> float:
    return float(np.mean(log_proba.argmax(axis=1) == truth))


def log_loss(log_proba: Array, truth: Array) -> float:
    return float(-np.mean(log_proba[np.arange(len(truth)), truth]))


def shown(text: str) -> None:
    print("\n".join(f"    {line}" for line in text.splitlines()) + "\n")


def progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
