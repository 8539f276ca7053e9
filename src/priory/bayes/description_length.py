"""Description length: the optimal code for an event of probability p has ``-log2 p`` bits.

Three codes for the same data:

    two-part      name the hypothesis, then the data given it      L(h) + L(D|h)            MDL, which is MAP in bits
    mixture       average over all hypotheses                      -log2 P(D)               the evidence in bits
    prequential   predict each observation from earlier ones       Σ -log2 P(x_t | x_<t)    the same, by the chain rule
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.logspace import log
from priory.core.typing import FittedClassifier, MatrixLike
from priory.families import dirichlet
from priory.families.base import Family

LOG_2 = math.log(2)


class Bits(NamedTuple):
    """A two-part code: the bits that name the hypothesis, and the bits of the data given that hypothesis."""

    hypothesis: float
    data: float

    @property
    def total(self) -> float:
        return self.hypothesis + self.data


def to_bits(log_probability: ArrayLike) -> Array:
    """Return ``-log2 p`` from ``log p``.

    >>> to_bits(np.log([0.5, 0.125])).tolist()
    [1.0, 3.0]
    """
    return np.asarray(log_probability, dtype=float) / -LOG_2 + 0.0  # + 0.0: certainty costs 0 bits, not -0


def two_part(log_prior: float, log_likelihood: float) -> Bits:
    """Return the two-part code of a hypothesis of probability ``P(h)`` and data of probability ``P(D | h)``.

    Three limes from a bag with prior probability 0.2 and three quarters of limes:

    >>> [round(b, 3) for b in two_part(math.log(0.2), 3 * math.log(0.75))]
    [2.322, 1.245]
    """
    return Bits(float(to_bits(log_prior)), float(to_bits(log_likelihood)))


def mixture(family: Family[Any, Any, Any, Any], x: ArrayLike) -> float:
    """Return the bits of the data with the parameters integrated out: ``-log2`` of the family's evidence.

    >>> from priory.families.bernoulli import Bernoulli
    >>> round(mixture(Bernoulli(1, 1), [1, 1, 0]), 4)  # log2 12
    3.585
    """
    return float(np.sum(to_bits(family.log_evidence(family.observe(x)))))


def prequential(family: Family[Any, Any, Any, Any], observations: Iterable[Any]) -> float:
    """Return the bits of the observations, each predicted from the earlier ones.

    Heads, heads, tails are predicted with probabilities 1/2, 2/3 and 1/4, whose product is the evidence 1/12:

    >>> from priory.families.bernoulli import Bernoulli
    >>> round(prequential(Bernoulli(1, 1), [1, 1, 0]), 4)
    3.585
    """
    total = 0.0
    for x in observations:
        total += float(np.sum(to_bits(family.log_predictive(x))))
        family = family + family.observe([x])
    return total


def label_log_probabilities(model: FittedClassifier, x: MatrixLike, y: Array, classes: Array, rows: float) -> Array:
    """Return the log probability of each label under a model fitted on ``rows`` rows.

    The model may not know all classes. Its prediction counts as ``rows`` observations, and one more is divided equally
    among all k classes, so a label of probability zero costs ``log2 (rows + 1) + log2 k`` bits instead of infinitely
    many.
    """
    column_of = {label: j for j, label in enumerate(model.classes_)}
    column = np.array([column_of.get(label, -1) for label in y])  # (rows,): -1 for a class unknown to the model
    p = np.where(column < 0, 0.0, model.predict_proba(x)[np.arange(len(y)), column])
    return log_shared_probability(p, rows, len(classes))


def log_shared_probability(p: ArrayLike, rows: float, n_classes: int) -> Array:
    """Smooth the probability ``p`` of a label, predicted by a model fitted on ``rows`` rows, and return its logarithm.

    One additional observation is divided equally among all classes:

    >>> np.exp(log_shared_probability([1.0, 0.0], rows=9, n_classes=2)).round(4).tolist()
    [0.95, 0.05]
    """
    return log((rows * np.asarray(p, dtype=float) + 1 / n_classes) / (rows + 1))


def label_bits(counts: ArrayLike) -> Array:
    """Return the bits of a sequence of labels, given the counts (..., classes): the Dirichlet(1/k) evidence.

    The prior counts as one observation. The first label then costs ``log2 k`` bits, which names the label; further
    labels of the same class cost little, and each exception costs more.

    >>> label_bits([[1, 0], [4, 0], [3, 1], [2, 2]]).round(2).tolist()
    [1.0, 1.87, 4.68, 5.42]
    """
    n = np.asarray(counts, dtype=float)
    return to_bits(dirichlet.log_evidence(np.asarray(1 / n.shape[-1]), n))
