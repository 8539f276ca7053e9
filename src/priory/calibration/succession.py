"""The rule of succession: a bound on the confidence of a model that has learned n rows.

If a model was right about all n rows, the odds that it is right about the next one are n + 1 : 1 (Laplace). So the
classes other than the likeliest together have at least 1 / (n + 1) of its probability, shared by the base rate:

    p(d | x)  =  max(p_model(d | x), p(d) / (1 - p(c)) / (n + 1)) / Z,      d other than c, the likeliest class

Probabilities within the bound do not change, and neither does the likeliest class. The base rate is always within the
bound, because a known class has at least one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priory.core.logspace import log, log_normalise
from priory.core.typing import Array

ROUNDING = 1e-9  # nats; less is a rounding error
LIMIT_NAME = "limit of"  # the beginning of its line's name in a ledger


@dataclass(frozen=True, eq=False)
class Succession:
    """The bound on the probabilities of a model that has learned ``n_rows`` rows."""

    n_rows: float  # the sum of weights, if rows are weighted or have decayed
    log_prior: Array  # (classes,): the log of the base rate

    @cached_property
    def _base(self) -> Array:
        """(classes,): log p(c)."""
        return log_normalise(self.log_prior)

    @cached_property
    def _rivals(self) -> Array:
        """(classes,): the log of n + 1 times the probability of all other classes."""
        return log(-np.expm1(self._base)) + np.log1p(self.n_rows)

    def limit(self, log_probabilities: Array) -> Array:
        """(..., classes): log p(c | x) within the bound."""
        least = self.find_least(log_probabilities)
        if (log_probabilities >= least).all():
            return log_probabilities
        return log_normalise(np.maximum(log_probabilities, least))

    def find_least(self, log_probabilities: Array) -> Array:
        """(..., classes): the lower bound on each log probability, given the likeliest class; -inf for that class."""
        best = log_probabilities.argmax(axis=-1)[..., None]
        is_best = log_probabilities == log_probabilities.max(axis=-1, keepdims=True)
        return np.where(is_best, -np.inf, self._base - self._rivals[best])

    @property
    def name(self) -> str:
        """The name of its line in a ledger."""
        return f"{LIMIT_NAME} {self.n_rows:,.6g} row{'' if self.n_rows == 1 else 's'}"

    def limit_lines(self, lines: Array, log_prior: Array, answers: Array) -> Array:
        """(rows, classes, lines + 1): the lines of ledgers, bounded like the answers, and their remainder.

        No line, and no sum of lines, exceeds the largest possible log odds. The remainder is the difference between the
        answers (rows, classes) and the sum of the log prior (classes,) and the lines (rows, classes, lines).
        """
        longest = -self.find_least(answers)[:, :, None]
        own = lines[np.arange(len(lines)), answers.argmax(axis=1)][:, None]  # (rows, 1, lines): of the likeliest class
        with np.errstate(invalid="ignore"):  # inf - inf: impossible in both classes, no evidence
            apart = np.clip(np.nan_to_num(lines - own, nan=0.0, posinf=np.inf, neginf=-np.inf), -longest, longest)
        # shrink all lines of a class alike if their sum exceeds the bound
        total = np.abs(apart.sum(axis=2, keepdims=True))
        apart *= np.minimum(1.0, longest / np.maximum(total, ROUNDING))
        lines = np.where(np.isfinite(own), own, 0.0) + apart
        # the remainder, centred over the classes that are possible
        possible = np.isfinite(answers) & np.isfinite(log_prior)
        missing = np.where(possible, answers, 0.0) - np.where(possible, log_prior, 0.0) - lines.sum(axis=2)
        missing -= np.where(possible, missing, 0.0).sum(axis=1, keepdims=True) / possible.sum(axis=1, keepdims=True)
        missing[~possible | (np.abs(missing) < ROUNDING)] = 0.0
        return np.concatenate([lines, missing[:, :, None]], axis=2)
