"""Findings of the audit in words, and how sure each of them is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy import ndarray as Array
from scipy.special import betainc, betaincinv, chdtrc, rel_entr

from priory.core.display_table import import_pandas
from priory.evaluation.curves import roc_curve

if TYPE_CHECKING:
    import pandas as pd


MIN_EXPECTED_COUNT = 5.0  # per cell, for the chi-square approximation
RARE_CLASS_SHARE = 0.05  # of all rows; smaller classes are pooled


def binomial_tail(successes: float, trials: float, p: float) -> float:
    """Return P(X >= successes) of a binomial X; fractions are interpolated smoothly."""
    return 1.0 if successes <= 0 else float(betainc(successes, max(trials - successes, 0.0) + 1, p))


def clopper_pearson_interval(successes: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a proportion (Clopper and Pearson)."""
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return low, high


def mcnemar_p_value(correct: Array, other_correct: Array) -> float:
    """McNemar's exact one-sided test of the hypothesis that the first predictions are no better than the second."""
    only, other_only = int((correct & ~other_correct).sum()), int((other_correct & ~correct).sum())
    return binomial_tail(only, only + other_only, 0.5)


def measure_association(counts: Array) -> tuple[float, float]:
    """Return the mutual information of a contingency table, in bits, and the p-value of independence.

    Rare rows are pooled, and neighbouring columns are joined until the expected count of each cell is at least
    `MIN_EXPECTED_COUNT`.
    """
    table = np.asarray(counts, dtype=float)
    rows, n = table.sum(axis=1), table.sum()
    rare = rows < RARE_CLASS_SHARE * n  # (rows,)
    table = np.vstack([table[~rare], table[rare].sum(axis=0)])
    table = table[table.any(axis=1)]
    if len(table) < 2:
        return 0.0, 1.0
    # the smallest column sum for which every expected count is large enough
    needed = MIN_EXPECTED_COUNT * n / table.sum(axis=1).min()
    columns = table.sum(axis=0)
    # (columns,): the joined column of each column
    part = np.minimum((np.cumsum(columns) - columns) // needed, max(n // needed - 1, 0))
    table = np.add.reduceat(table, np.flatnonzero(np.diff(part, prepend=-1)), axis=1)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    if not freedom:
        return 0.0, 1.0
    pearson = float(((table - expected) ** 2 / expected).sum())
    return float(rel_entr(table, expected).sum()) / (n * np.log(2)), float(chdtrc(freedom, pearson))


def measure_presence_association(present_counts: Array, class_totals: Array) -> tuple[Array, Array]:
    """Return mutual information (bits) and p-values of many binary features, (features,) each.

    ``present_counts`` (features, classes) is the number of rows of each class in which each feature is present. Classes
    with too few rows for a feature are left out of its sum and of its degrees of freedom.
    """
    share = present_counts.sum(axis=1, keepdims=True) / max(class_totals.sum(), 1)
    enough = np.minimum(share, 1 - share) * class_totals >= MIN_EXPECTED_COUNT
    # (present or absent, features, classes)
    observed = np.stack([present_counts, class_totals - present_counts])
    expected = np.stack([share * class_totals, (1 - share) * class_totals])
    with np.errstate(divide="ignore", invalid="ignore"):
        pearson = np.where(enough, (observed - expected) ** 2 / expected, 0.0).sum(axis=(0, 2))
    # (features,): classes used; with all of them, one degree of freedom is lost
    classes = enough.sum(axis=1)
    p = np.where(classes > 1, chdtrc(np.maximum(classes - (classes == len(class_totals)), 1), pearson), 1.0)
    return rel_entr(observed, expected).sum(axis=(0, 2)) / (np.log(2) * max(class_totals.sum(), 1)), p


def auc_with_error(score: Array, positive: Array) -> tuple[float, float]:
    """Return the area under the ROC curve, and its standard error under independence (Mann-Whitney)."""
    m, n = float(positive.sum()), float((~positive).sum())
    area = roc_curve(positive, score, np.ones(len(score))).area.value
    return area, float(np.sqrt((m + n + 1) / (12 * m * n)))


FALSE_ALARM_LEVEL = 0.01  # family-wise error rate of the tests of one audit
BAD_DATA_EXIT_CODE = 3  # the exit code of the command line for data that cannot be trusted
MAX_ITEMS_SHOWN = 5  # rows, columns and examples that are printed


class Severity(IntEnum):
    """Low: good to know; medium: check it before you trust the score; high: the score cannot be trusted."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3

    def __str__(self) -> str:
        return self.name.lower()


class Effect(NamedTuple):
    """The accuracy with the leak and without it, on this number of rows."""

    before: float
    after: float
    rows: int

    @classmethod
    def of(cls, correct: Array, correct_without: Array) -> Effect:
        """The effect on answers: whether each is correct, with the leak and without it."""
        return cls(float(correct.mean()), float(correct_without.mean()), len(correct))

    def __str__(self) -> str:
        return f"accuracy {self.before:.3f} with it, {self.after:.3f} without it ({self.rows:,} rows)"


@dataclass(frozen=True)
class Finding:
    """One possible leak; ``rows`` of the training table and ``test_rows`` count from 0."""

    severity: Severity
    kind: str
    what: str
    advice: str
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    test_rows: tuple[int, ...] = ()
    examples: tuple[str, ...] = ()
    p: float | None = None  # adjusted for all tests of the audit; None if it was counted
    interval: tuple[float, float] | None = None  # 95 %, of the first share or accuracy in ``what``
    effect: Effect | None = None

    @property
    def sure(self) -> str:
        """The certainty of the finding in words."""
        p_value = "" if self.p is None else "p < 1e-6" if self.p < 1e-6 else f"p = {self.p:.2g}"
        certainty = p_value or "counted, not inferred"
        if self.interval is None:
            return certainty
        return f"{certainty}, 95 % interval {self.interval[0]:.3f} to {self.interval[1]:.3f}"

    def record(self) -> dict[str, Any]:
        """Return the finding as a dictionary of plain values, with all rows and examples."""
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {**fields, "severity": str(self.severity), "effect": self.effect and self.effect._asdict()}

    def format_lines(self) -> Iterator[tuple[str, str]]:
        """Yield the printed lines, each with its title."""
        where = [
            f"columns {_format_first_items(self.columns)}" if self.columns else "",
            f"rows {_format_first_items(self.rows)}" if self.rows else "",
            f"test rows {_format_first_items(self.test_rows)}" if self.test_rows else "",
        ]
        if any(where):
            yield "where", "; ".join(part for part in where if part)
        for example in self.examples[:MAX_ITEMS_SHOWN]:
            yield "e.g.", _escape_unprintable(example)
        yield "sure", self.sure
        if self.effect is not None:
            yield "score", str(self.effect)
        yield "do", self.advice

    def __str__(self) -> str:
        head = f"{str(self.severity).upper():6}  {_escape_unprintable(self.what)}"
        return "\n".join(
            [head, *(f"        {title:6}{_escape_unprintable(text)}" for title, text in self.format_lines())]
        )


class Suspicion(NamedTuple):
    """A p-value (None if counted), and a function that builds the finding if it is significant."""

    p: float | None
    build_finding: Callable[[], Finding]


@dataclass(frozen=True)
class Findings(Sequence[Finding]):
    """The findings of an audit, most severe first."""

    found: tuple[Finding, ...]
    tests: int = 0  # the number of significance tests

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> Findings: ...
    def __getitem__(self, place: int | slice) -> Finding | Findings:
        return replace(self, found=self.found[place]) if isinstance(place, slice) else self.found[place]

    def __len__(self) -> int:
        return len(self.found)

    @property
    def severity(self) -> Severity | None:
        """The highest severity; None if there are no findings."""
        return max((finding.severity for finding in self.found), default=None)

    @property
    def exit_code(self) -> int:
        """The exit code of the command line: 0 if no severity is above low, otherwise 3 (bad data)."""
        return BAD_DATA_EXIT_CODE if (self.severity or Severity.LOW) > Severity.LOW else 0

    def of(self, kind: str) -> Findings:
        """Return the findings of one kind."""
        return replace(self, found=tuple(finding for finding in self.found if finding.kind == kind))

    def records(self) -> list[dict[str, Any]]:
        """Return all findings as dictionaries of plain values."""
        return [finding.record() for finding in self.found]

    def to_json(self) -> str:
        """Return all findings as JSON, with every row number."""
        return json.dumps(
            {"exit_code": self.exit_code, "tests": self.tests, "findings": self.records()}, indent=1, allow_nan=False
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per finding."""
        frame: pd.DataFrame = import_pandas().DataFrame(self.records(), columns=list(Finding.__dataclass_fields__))
        return frame

    def summary(self) -> str:
        """Return the number of findings and tests in one line."""
        counts = [f"{sum(f.severity == s for f in self.found)} {s}" for s in sorted(Severity, reverse=True)]
        found = "1 finding" if len(self) == 1 else f"{len(self)} findings"
        return f"{found}: {', '.join(counts)}; {self.tests} tests, false alarms at most {FALSE_ALARM_LEVEL:.0%}"

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.found), self.summary()])

    def __repr__(self) -> str:
        return str(self)

    def to_html(self) -> str:
        """Return an HTML section for a report, escaped and without scripts, links or styles; see `FINDINGS_CSS`."""
        items = "".join(
            f'<article class="{finding.severity}"><h3><b>{finding.severity}</b> {_escape_markup(finding.what)}</h3><dl>'
            + "".join(f"<dt>{title}</dt><dd>{_escape_markup(text)}</dd>" for title, text in finding.format_lines())
            + "</dl></article>"
            for finding in self.found
        )
        head = f'<h2 id="leakage">Leakage</h2><p>{_escape_markup(self.summary())}</p>'
        return f'<section class="leakage">{head}{items}</section>'

    def _repr_html_(self) -> str:
        return f"<style>{FINDINGS_CSS}</style>{self.to_html()}"


FINDINGS_CSS = (
    ".leakage article{border-left:.4em solid #999;padding:0 1em;margin:1em 0}"
    ".leakage article.high{border-color:#b00}.leakage article.medium{border-color:#d80}"
    ".leakage h3{font-size:1em;font-weight:normal}.leakage dl{display:grid;grid-template-columns:4em 1fr;margin:0}"
    ".leakage dd{margin:0;overflow-wrap:anywhere}"
)


def confirm_suspicions(suspicions: Iterable[Suspicion]) -> Findings:
    """Build the findings of suspicions that were counted, or are significant after Holm's correction."""
    all_suspicions = list(suspicions)
    corrected = iter(adjust_p_values(np.array([s.p for s in all_suspicions if s.p is not None], dtype=float)).tolist())
    found = []
    for suspicion in all_suspicions:
        p = None if suspicion.p is None else next(corrected)
        if p is None or p <= FALSE_ALARM_LEVEL:
            finding = suspicion.build_finding()
            found.append(finding if p is None else replace(finding, p=p))
    found.sort(key=lambda finding: -finding.severity)  # stable: otherwise in the order of the finders
    return Findings(tuple(found), sum(s.p is not None for s in all_suspicions))


def adjust_p_values(p: Array) -> Array:
    """Adjust p-values for multiple testing by Holm's method (1979).

    >>> adjust_p_values(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    # the smallest p-value is multiplied by the number of tests, the next by one less, ...
    steps = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)  # adjusted values must not decrease
    return corrected


def _format_first_items(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:MAX_ITEMS_SHOWN]))
    return f"{shown} and {len(values) - MAX_ITEMS_SHOWN:,} more" if len(values) > MAX_ITEMS_SHOWN else shown


def _escape_unprintable(text: str) -> str:
    """Escape control characters, which could move the cursor of a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _escape_markup(text: str) -> str:
    return escape(_escape_unprintable(text))
