"""The rule of succession: how sure a record of n rows can make a model.

Had a model been right about all n rows, the odds that it is right about the next one would be n + 1 : 1 (Laplace). So
the classes that are not the likeliest have 1 / (n + 1) of its probability together, each its share by the base rate:

    p(d | x)  =  max(p_model(d | x), p(d) / (1 - p(c)) / (n + 1)) / Z,      d other than c, the likeliest class

An answer within the limit is not changed. The likeliest class stays so, and the base rate is always within the limit: a
class that was seen has a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priory.core.logspace import log, log_normalise
from priory.core.typing import Array

ROUNDING = 1e-9  # nats that are no evidence
LIMIT_NAME = "limit of"  # how the name of its line in a ledger begins


@dataclass(frozen=True, eq=False)
class Succession:
    """The limit that a record sets to the answers of its model."""

    n_rows: float  # their weight, if they are weighted or have decayed
    log_prior: Array  # (classes,): of the base rate

    @cached_property
    def _base(self) -> Array:
        """(classes,): log p(c)."""
        return log_normalise(self.log_prior)

    @cached_property
    def _rivals(self) -> Array:
        """(classes,): the log of n + 1 times the probability of all other classes."""
        return log(-np.expm1(self._base)) + np.log1p(self.n_rows)

    def limit(self, log_probabilities: Array) -> Array:
        """(..., classes): log p(c | x) within the limit."""
        least = self.find_least(log_probabilities)
        if (log_probabilities >= least).all():
            return log_probabilities
        return log_normalise(np.maximum(log_probabilities, least))

    def find_least(self, log_probabilities: Array) -> Array:
        """(..., classes): the log of the least probability of each class but the likeliest, where that has one."""
        best = log_probabilities.argmax(axis=-1)[..., None]
        is_best = log_probabilities == log_probabilities.max(axis=-1, keepdims=True)
        return np.where(is_best, -np.inf, self._base - self._rivals[best])

    @property
    def name(self) -> str:
        """What a ledger calls it."""
        return f"{LIMIT_NAME} {self.n_rows:,.6g} row{'' if self.n_rows == 1 else 's'}"

    def limit_lines(self, lines: Array, log_prior: Array, answers: Array) -> Array:
        """(rows, classes, lines + 1): the lines of ledgers as far as they count in the answers, and what is missing.

        No line, and no sum of lines, is longer than the longest answer. The last line is what the class prior as it
        counts (classes,) and the lines (rows, classes, lines) lack of the answers (rows, classes).
        """
        longest = -self.find_least(answers)[:, :, None]
        own = lines[np.arange(len(lines)), answers.argmax(axis=1)][:, None]  # (rows, 1, lines): of the likeliest class
        with np.errstate(invalid="ignore"):  # what is impossible in both is no evidence
            apart = np.clip(np.nan_to_num(lines - own, nan=0.0, posinf=np.inf, neginf=-np.inf), -longest, longest)
        total = np.abs(apart.sum(axis=2, keepdims=True))
        apart *= np.minimum(1.0, longest / np.maximum(total, ROUNDING))
        lines = np.where(np.isfinite(own), own, 0.0) + apart
        possible = np.isfinite(answers) & np.isfinite(log_prior)
        missing = np.where(possible, answers, 0.0) - np.where(possible, log_prior, 0.0) - lines.sum(axis=2)
        missing -= np.where(possible, missing, 0.0).sum(axis=1, keepdims=True) / possible.sum(axis=1, keepdims=True)
        missing[~possible | (np.abs(missing) < ROUNDING)] = 0.0
        return np.concatenate([lines, missing[:, :, None]], axis=2)
