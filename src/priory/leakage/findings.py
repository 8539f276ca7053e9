"""Findings of an audit: severity, location, p-value, effect on the score, and advice.

A finder yields *suspicions*: a p-value, and the finding that it becomes if it is confirmed. The p-values of all finders
are corrected together (Holm's method), so the probability that a clean table causes any finding based on a test is at
most `FALSE_ALARM_LEVEL`, for any number of columns. A suspicion without a p-value was counted and is certain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from priory.core.typing import Array
from priory.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

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
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependencyError(
                "to_frame needs pandas: pip install priory[pandas]; to_json works without it."
            ) from None
        return pd.DataFrame(self.records(), columns=list(Finding.__dataclass_fields__))

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
