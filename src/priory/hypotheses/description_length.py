"""Description length in bits: the shortest code for what has probability p is ``-log2 p`` bits long.

Three ways to send the data, from one table of log probabilities:

    two-part      name the hypothesis, then the data under it      L(h) + L(D|h)            MDL, which is MAP in bits
    mixture       never name it: all hypotheses, weighed           -log2 P(D)               the evidence in bits
    prequential   predict each observation from those before it    Σ -log2 P(x_t | x_<t)    the same, by the chain rule
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from priory.core.logspace import log
from priory.core.typing import Array
from priory.errors import DataError
from priory.families import dirichlet

LOG_2 = math.log(2)


class Bits(NamedTuple):
    """A two-part code: the bits that name the hypothesis, and those of the data once it is known."""

    hypothesis: float
    data: float

    @property
    def total(self) -> float:
        return self.hypothesis + self.data


class OnlineLearner(Protocol):
    """What the prequential code asks: predict one observation, then learn it. Every family does."""

    def log_predictive(self, x: Any, /) -> Any: ...
    def observe(self, x: Any, /) -> Any: ...
    def __add__(self, statistics: Any, /) -> Self: ...


def to_bits(log_probability: ArrayLike) -> Array:
    """``-log2 p`` from ``log p``.

    >>> to_bits(np.log([0.5, 0.125])).tolist()
    [1.0, 3.0]
    """
    return np.asarray(log_probability, dtype=float) / -LOG_2 + 0.0  # + 0.0: certainty costs 0 bits, not -0


def two_part(log_prior: float, log_likelihood: float) -> Bits:
    """The code that names a hypothesis of probability ``P(h)`` and then data of probability ``P(D | h)``.

    The bag of three limes and a quarter cherries:

    >>> [round(b, 3) for b in two_part(math.log(0.2), 3 * math.log(0.75))]
    [2.322, 1.245]
    """
    return Bits(float(to_bits(log_prior)), float(to_bits(log_likelihood)))


def parametric(log_likelihood: float, parameters: int, rows: float) -> Bits:
    """The two-part code of a model with real parameters: each is worth stating to ``½ log2 n`` bits, not more.

    >>> parametric(math.log(2**-100), parameters=3, rows=1024)
    Bits(hypothesis=15.0, data=100.0)
    """
    return Bits(0.5 * parameters * math.log2(max(rows, 1.0)), float(to_bits(log_likelihood)))


def mixture(family: Any, x: ArrayLike) -> float:
    """Bits of the data with the parameters integrated out: ``-log2`` of the family's evidence.

    >>> from priory.families.bernoulli import Bernoulli
    >>> round(mixture(Bernoulli(1, 1), [1, 1, 0]), 4)  # log2 12
    3.585
    """
    return float(np.sum(to_bits(family.log_evidence(family.observe(x)))))


def prequential(learner: OnlineLearner, observations: Iterable[Any]) -> float:
    """Bits of the observations, each predicted from those before it.

    Heads, heads, tails are predicted with 1/2, 2/3 and 1/4, whose product is the evidence 1/12:

    >>> from priory.families.bernoulli import Bernoulli
    >>> round(prequential(Bernoulli(1, 1), [1, 1, 0]), 4)
    3.585
    """
    total = 0.0
    for x in observations:
        total += float(np.sum(to_bits(learner.log_predictive(x))))
        learner = learner + learner.observe([x])
    return total


def prequential_labels(model: Any, x: Any, y: ArrayLike, classes: ArrayLike, starts: Iterable[int]) -> float:
    """Bits of the labels ``y`` under any model with ``fit`` and ``predict_proba``, refitted at each of ``starts``.

    The rows before the first start are sent with a uniform code, ``log2 k`` bits each; then each block is predicted by
    the model fitted on all rows before it.
    """
    labels, known = np.asarray(y), np.asarray(classes)
    edges = [*starts, len(labels)]
    if not edges[:-1] or edges[0] < 1 or any(a >= b for a, b in pairwise(edges)):
        raise DataError(
            f"starts {edges[:-1]} for {len(labels)} rows: give increasing row numbers from 1 to {len(labels) - 1}."
        )
    total = edges[0] * math.log2(len(known))
    for start, stop in pairwise(edges):
        fitted = model.fit(x[:start], labels[:start])
        total += float(to_bits(label_log_probabilities(fitted, x[start:stop], labels[start:stop], known, start)).sum())
    return total


def label_log_probabilities(model: Any, x: Any, y: Array, classes: Array, rows: float) -> Array:
    """Log probability of each label under a model fitted on ``rows`` rows, which may not know all the classes.

    What the model says is taken for ``rows`` observations, and one is added for all the classes together: a model that
    calls impossible what then happens pays ``log2 (rows + 1) + log2 k`` bits, not infinitely many.
    """
    column = {label: j for j, label in enumerate(model.classes_)}
    where = np.array([column.get(label, -1) for label in y])
    said = np.where(where < 0, 0.0, model.predict_proba(x)[np.arange(len(y)), where])
    return log((rows * said + 1 / len(classes)) / (rows + 1))


def label_bits(counts: ArrayLike) -> Array:
    """Bits of a sequence of labels of which only these counts (…, classes) matter: the Dirichlet(1/k) evidence.

    The prior is worth one observation. The first label then costs ``log2 k`` bits, which names the label; the rest of a
    pure sequence is almost free, and each exception is paid for.

    >>> label_bits([[1, 0], [4, 0], [3, 1], [2, 2]]).round(2).tolist()
    [1.0, 1.87, 4.68, 5.42]
    """
    seen = np.asarray(counts, dtype=float)
    return to_bits(dirichlet.log_evidence(np.asarray(1 / seen.shape[-1]), seen))
