"""The evidence ledger explains a prediction: the prior, one line for each column, and their sum.

Evidence is shown in decibans: 10 log10 of the odds ratio of two classes, so 10 decibans multiply the odds by ten. It
can also be shown in nats, in bits, or as probabilities and factors of the odds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

import numpy as np

from priory.core.display_table import import_pandas
from priory.core.typing import Array, Label
from priory.errors import DataError
from priory.models.ledger_formatting import (
    EVIDENCE_UNITS,
    UNITS_PER_NAT,
    exp_or_infinity,
    format_ledger,
    format_ledger_html,
    mark_text,
)
from priory.models.shapley_values import ShapleyValues, compute_shapley_values

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LedgerLine:
    """One entry: a name, the value of the row, and its log probability under each class."""

    name: str
    value: object
    log_likelihood: tuple[float, ...]
    spans: tuple[tuple[int, int], ...] = ()  # positions of a token in the text


@dataclass(frozen=True)
class Ledger:
    """The explanation of one row: log probabilities of each class in ``prior`` and ``lines``, which sum to ``total``.

    The *weight of evidence* of a line is its contribution to the log odds of the most probable class against the
    second. If the model is tempered (each part has a weight, fitted to held-out rows), the prior is the class prior
    times its weight, and its name is "prior (tempered)".
    """

    classes: tuple[Label, ...]
    prior: LedgerLine
    lines: tuple[LedgerLine, ...]
    text: str | None = None
    unit: str = "decibans"  # of the output: decibans, nats, bits, or probability
    corrections: tuple[str, ...] = ()  # names of the model's corrections to naive Bayes
    smoothing: str = ""  # describes the virtual rows, if they are many compared to the learned rows

    def entries(self) -> tuple[LedgerLine, ...]:
        """The prior and all lines."""
        return (self.prior, *self.lines)

    @property
    def total(self) -> tuple[float, ...]:
        """log p(c, x) for each class: the sum of the entries, correctly rounded."""
        return tuple(_sum_exactly(line.log_likelihood[c] for line in self.entries()) for c in range(len(self.classes)))

    def ranked(self) -> list[int]:
        """The class numbers, most probable first."""
        total = self.total
        return sorted(range(len(total)), key=lambda c: -total[c])

    @property
    def no_evidence(self) -> bool:
        """Whether the prediction is based on the prior alone."""
        return not any(any(line.log_likelihood) for line in self.lines)

    @property
    def winner(self) -> Label:
        """The most probable class."""
        return self.classes[self.ranked()[0]]

    def weights(self, for_class: Label | None = None, against: Label | None = None) -> list[float]:
        """Weight of evidence of each entry in nats, for one class (the winner) against another (the runner-up)."""
        ranked = self.ranked()
        a = ranked[0] if for_class is None else self.classes.index(for_class)
        if len(ranked) == 1:
            return [0.0 for _ in self.entries()]
        b = next(c for c in ranked if c != a) if against is None else self.classes.index(against)
        return [_subtract_or_zero(line.log_likelihood[a], line.log_likelihood[b]) for line in self.entries()]

    def log_odds(self, for_class: Label | None = None, against: Label | None = None) -> float:
        """The sum of the weights of evidence."""
        return _sum_exactly(self.weights(for_class, against))

    def to_frame(self) -> pd.DataFrame:
        """The entries as rows of a data frame: a column for each class, and the weight of evidence.

        In the unit "probability" the columns are probabilities, and the weight is the factor of the odds.
        """
        pd = import_pandas()
        if self.unit == "probability":
            rows = [
                {"name": line.name, "value": line.value}
                | {f"p({label})": exp_or_infinity(line.log_likelihood[c]) for c, label in enumerate(self.classes)}
                | {"factor": exp_or_infinity(weight)}
                for line, weight in zip(self.entries(), self.weights(), strict=True)
            ]
            return pd.DataFrame(rows)
        rows = [
            {"name": line.name, "value": line.value}
            | {f"log p({label})": line.log_likelihood[c] for c, label in enumerate(self.classes)}
            | {self.unit: weight * UNITS_PER_NAT[self.unit]}
            for line, weight in zip(self.entries(), self.weights(), strict=True)
        ]
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        return format_ledger(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return format_ledger_html(self)

    def probabilities(self) -> tuple[float, ...]:
        """p(c | row) for each class; NaN if every class is ruled out."""
        total = np.asarray(self.total)
        with np.errstate(invalid="ignore"):
            shares = np.exp(total - total.max())
        return tuple((shares / shares.sum()).tolist())

    def marked(
        self, for_class: Label | None = None, against: Label | None = None, max_characters: int | None = None
    ) -> str:
        """The text as HTML, with evidence for and against the most probable class marked by CSS classes.

        The text is cut after ``max_characters``.
        """
        weight = {}
        for line, w in zip(self.lines, self.weights(for_class, against)[1:], strict=True):
            weight.update(dict.fromkeys(line.spans, w))
        return mark_text(self.text or "", weight, max_characters)


class Ledgers(Sequence[Ledger]):
    """The ledgers of several rows."""

    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        self._ledgers = list(ledgers)

    @classmethod
    def of(
        cls,
        classes: Array,
        log_prior: Array,
        terms: Array,
        names: Sequence[str],
        cells: Sequence[Sequence[object]],
        prior_name: str = "prior",
        unit: str = "decibans",
        corrections: tuple[str, ...] = (),
        smoothing: str = "",
    ) -> Ledgers:
        """Make a ledger for each row; ``terms`` is (rows, classes, columns), ``cells`` the displayed values."""
        prior = LedgerLine(prior_name, "", tuple(log_prior.tolist()))
        return cls(
            [
                Ledger(
                    tuple(classes.tolist()),
                    prior,
                    tuple(
                        LedgerLine(name, value, tuple(term))
                        for name, value, term in zip(names, values, row.T.tolist(), strict=True)
                    ),
                    unit=unit,
                    corrections=corrections,
                    smoothing=smoothing,
                )
                for row, values in zip(terms, cells, strict=True)
            ]
        )

    @overload
    def __getitem__(self, i: int) -> Ledger: ...

    @overload
    def __getitem__(self, i: slice) -> Ledgers: ...

    def __getitem__(self, i: int | slice) -> Ledger | Ledgers:
        return Ledgers(self._ledgers[i]) if isinstance(i, slice) else self._ledgers[i]

    def __len__(self) -> int:
        return len(self._ledgers)

    def __iter__(self) -> Iterator[Ledger]:
        return iter(self._ledgers)

    def convert_unit(self, unit: str) -> Ledgers:
        """The same ledgers, shown in another unit."""
        return Ledgers([replace(ledger, unit=check_unit(unit)) for ledger in self._ledgers])

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._ledgers))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(ledger._repr_html_() for ledger in self._ledgers)

    def shapley_values(self) -> ShapleyValues:
        """The evidence as exact Shapley values, which sum to the log-odds with the base value."""
        if not self._ledgers:
            raise DataError("there is no row to explain; give at least one.")
        first = self._ledgers[0]
        rows = [[(line.name, line.value, np.array(line.log_likelihood)) for line in ledger.lines] for ledger in self]
        return compute_shapley_values(first.classes, np.array(first.prior.log_likelihood), rows)

    def to_frame(self) -> pd.DataFrame:
        """All entries in one data frame, with a column for the row number."""
        pd = import_pandas()
        frames = [ledger.to_frame().assign(row=row) for row, ledger in enumerate(self._ledgers)]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _sum_exactly(terms: Iterable[float]) -> float:
    values = list(terms)
    return math.fsum(values) if all(map(math.isfinite, values)) else float(np.sum(values))


def _subtract_or_zero(a: float, b: float) -> float:
    return 0.0 if a == b else a - b


def check_unit(unit: str) -> str:
    """Return the unit of evidence, or raise an error that lists the valid ones."""
    if unit not in EVIDENCE_UNITS:
        raise DataError(f"unit is {unit!r}; use one of {', '.join(EVIDENCE_UNITS)}.")
    return unit
