"""Small fitted models of every class that can be saved, each with rows that it can read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import priory as pr
from priory import naive_bayes as nb
from priory.regression.linear_posterior import NormalInverseGamma


class Example(NamedTuple):
    """A fitted model, and rows with their labels that it can read."""

    name: str
    model: Any
    rows: Any
    labels: Sequence[Any]


@cache
def make_examples() -> list[Example]:
    """Small models of every class that can be saved, with most of what they can hold."""
    rng = np.random.default_rng(0)
    texts = ["win cash", "cash été now", "lunch at noon", "noon walk", "win a prize now", "walk at lunch"] * 4
    labels = ["spam", "spam", "ham", "ham", "spam", "ham"] * 4
    words, topics = [f"w{i} w{i // 2} été" for i in range(140)], [f"topic {i % 70}" for i in range(140)]
    long = [" ".join(f"word{i}" for i in range(80)), "word1 word300"]
    table = [
        {"a": str(rng.choice(["x", "y", "z"])), "b": float(rng.normal()), "c": int(rng.poisson(3)), "d": i % 2}
        for i in range(120)
    ]
    for row in table[::7]:
        row["b"] = None
    group = ["yes" if row["c"] + rng.normal() > 3 else "no" for row in table]
    prose = [{"t": text, "n": float(i)} for i, text in enumerate(texts)]
    counts = rng.poisson(2, (12, 3))
    numbers, codes = rng.normal(size=(12, 3)), np.array([0, 1, 2] * 4)
    frame = pd.DataFrame({"x": rng.normal(size=12), "kind": ["a", "b", "c"] * 4})
    target = rng.normal(size=12)
    declared = {"a": pr.families.Categorical(1.0), "b": pr.families.Gaussian(0.0, 1.0, 1.0, 1.0), "d": "bernoulli"}
    mixed = {"b": "histogram", "c": pr.families.Poisson(1.0, 1.0), "d": pr.families.Binomial(1)}
    hashed = pr.families.Text(buckets=8)
    text_options: list[dict[str, Any]] = [
        {},
        {"model": "multinomial", "ngram_range": (1, 2)},
        {"buckets": 8},
        {"vocabulary": ["win", "lunch"], "unknown": True, "alpha": "evidence"},
        {"model": "bernoulli", "class_prior": {"ham": 0.5, "spam": 0.5}},
        {"model": "bernoulli", "stop_words": ["at"], "alpha": 0.5},
        {"model": "multinomial", "max_tokens": 5, "class_prior": [0.3, 0.7], "calibrate": False},
        {"refine": True, "analyzer": "char", "ngram_range": (2, 2)},
    ]
    drop_ins = [
        (nb.GaussianNB(priors=[0.2, 0.3, 0.5]), numbers),
        (nb.BernoulliNB(), counts),
        (nb.DocumentAverageNB(), counts),
        (nb.CategoricalNB(min_categories=8), counts),
        (nb.MultinomialNB(alpha=[0.5, 1.0, 2.0], class_prior=[0.2, 0.3, 0.5]), counts),
        (nb.ComplementNB(norm=True), counts),
        (nb.GaussianBayes(), numbers),
        (nb.GaussianBayes(covariance="shared", estimate="ml"), numbers),
    ]
    logistic = [pr.BayesianLogisticRegression(**options) for options in ({}, {"method": "map", "prior": 1.0})]
    drawn = pr.BayesianLogisticRegression().fit(counts, codes)
    drawn.method, drawn._draws = "vi", drawn._mean + rng.normal(size=(5, *drawn._mean.shape))
    fitted: list[tuple[Any, Any, Sequence[Any]]] = [
        *((pr.TextClassifier(salt=1, **options).fit(texts, labels), texts, labels) for options in text_options),
        (pr.TextClassifier(salt=1).fit(long, ["spam", "ham"]), long, ["spam", "ham"]),
        (pr.TextClassifier(salt=1).fit(words, topics), words, topics),
        (pr.NaiveBayes().fit(table, group), table, group),
        (pr.NaiveBayes(alpha=1.0, calibrate=False).fit(table, group).decay(0.5), table, group),
        (pr.NaiveBayes(declared, estimate="map", class_prior="uniform").fit(table, group), table, group),
        (pr.NaiveBayes(mixed, alpha=0.5).fit(table, group), table, group),
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
