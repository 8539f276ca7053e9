"""Textbook naive Bayes: a family for every kind of column, with the m-estimate as its prior.

    P(value | class) = (n_c + m p) / (n + m)        labels, 0 or 1, words that are present or absent
    μ = Σ x / n, σ² = Σ (x - μ)² / n                numbers: maximum likelihood

Both are posterior means under the priors below.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from priory.core.registration import register_record
from priory.errors import DataError
from priory.families import Bernoulli, Categorical, Gaussian, Text
from priory.families.base import AnyFamily

# With this prior the posterior mean of the variance is Σ (x - μ)² / n, and the mean has practically no virtual rows.
MAXIMUM_LIKELIHOOD_GAUSSIAN = Gaussian(location=0.0, strength=1e-300, shape=1.0, scale=0.0)

ValuePriors = Mapping[str, Mapping[Hashable, float]]  # column -> value -> its prior probability


@register_record("TextbookFamilies")
@dataclass(frozen=True)
class TextbookFamilies:
    """Families as in a textbook: Categorical for labels, Bernoulli for 0 and 1, Gaussian for other numbers.

    Parameters
    ----------
    m : float or "laplace"
        Virtual examples of each column; "laplace" adds one for each value, and 0 gives relative frequencies.
    p : dict of column to dict of value to probability, optional
        The prior share of each value of a column; all its values must be given. By default shares are equal.

    Examples
    --------
    >>> TextbookFamilies(m=3, p={"wind": {"weak": 0.5, "strong": 0.5}}).choose_family("wind", "label", False)
    Categorical(alpha=array([1.5, 1.5]), values=array(['strong', 'weak'], dtype='<U6'), m=None)
    """

    m: float | Literal["laplace"] = 0.0
    p: ValuePriors | None = None

    def __post_init__(self) -> None:
        if self.m != "laplace" and (isinstance(self.m, str) or not 0 <= self.m < np.inf):
            raise DataError(f"m is {self.m!r}; use a number of virtual examples from 0, or 'laplace'.")
        for name, shares in (self.p or {}).items():
            if self.m == 0 or self.m == "laplace":
                raise DataError(f"p says what the virtual examples of {name!r} are; give their number m as well.")
            if not np.isclose(sum(shares.values()), 1.0) or min(shares.values()) < 0:
                raise DataError(
                    f"p of column {name!r} sums to {sum(shares.values()):g}; give each value its share of 1."
                )

    def __hash__(self) -> int:
        return hash(self.m)

    def choose_family(self, name: str, kind: str, is_binary: bool) -> AnyFamily:
        """The family of a column; ``is_binary`` is true if it holds only the numbers 0 and 1."""
        shares = (self.p or {}).get(name)
        if kind == "text":
            return Text("bernoulli", alpha=1.0 if self.m == "laplace" else self.m / 2)
        if kind == "label" or (shares is not None and not (is_binary and set(shares) == {0, 1})):
            return self._choose_categorical(shares)
        if not is_binary:
            return MAXIMUM_LIKELIHOOD_GAUSSIAN
        share_of_one = 0.5 if shares is None else shares[1]
        return Bernoulli(1.0, 1.0) if self.m == "laplace" else Bernoulli.m_estimate(self.m, share_of_one)

    def _choose_categorical(self, shares: Mapping[Hashable, float] | None) -> Categorical:
        if self.m == "laplace":
            return Categorical(alpha=1.0)
        if shares is None:
            return Categorical(m=self.m)
        return Categorical(alpha=self.m * np.array(list(shares.values())), values=list(shares))
