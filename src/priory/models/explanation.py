"""The evidence ledger: why a row was given its class. The prior, one line for each column, and their sum.

Evidence is shown in decibans: 10 log10 of the odds ratio of two classes. 10 decibans make the odds ten times as large.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING, overload

import numpy as np

from priory.core.terminal_width import display_width, pad_to_width
from priory.core.typing import Array, Label
from priory.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

MAX_LEDGER_LINES = 20
MAX_VALUE_WIDTH = 40  # characters of a cell
DECIBANS_PER_NAT = 10 / math.log(10)


@dataclass(frozen=True)
class LedgerLine:
    """One entry: a name, the value found, and its log probability under each class."""

    name: str
    value: object
    log_likelihood: tuple[float, ...]
    spans: tuple[tuple[int, int], ...] = ()  # where a token stands in the text


@dataclass(frozen=True)
class Ledger:
    """The explanation of one row: log probabilities for each class in ``prior`` and ``lines``, which sum to ``total``.

    The *weight of evidence* of a line is what it adds to the log odds of the most probable class against the second.
    The prior is the class prior as it counts for the answer. If the model is tempered (each part has a weight, fitted
    to rows left out), it is the class prior times its weight, and its name is "prior (tempered)".
    """

    classes: tuple[Label, ...]
    prior: LedgerLine
    lines: tuple[LedgerLine, ...]
    text: str | None = None

    def entries(self) -> tuple[LedgerLine, ...]:
        """The prior and all lines."""
        return (self.prior, *self.lines)

    @property
    def total(self) -> tuple[float, ...]:
        """log p(c, x) for each class: the entries summed exactly, rounded once."""
        return tuple(_sum_exactly(line.log_likelihood[c] for line in self.entries()) for c in range(len(self.classes)))

    def ranked(self) -> list[int]:
        """The class numbers, most probable first."""
        total = self.total
        return sorted(range(len(total)), key=lambda c: -total[c])

    @property
    def no_evidence(self) -> bool:
        """Whether the answer is the prior alone."""
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
        """The entries as rows of a data frame: a column for each class, and the weight of evidence in decibans."""
        pd = import_pandas()
        rows = [
            {"name": line.name, "value": line.value}
            | {f"log p({label})": line.log_likelihood[c] for c, label in enumerate(self.classes)}
            | {"decibans": weight * DECIBANS_PER_NAT}
            for line, weight in zip(self.entries(), self.weights(), strict=True)
        ]
        return pd.DataFrame(rows)

    def _format_rows(self) -> tuple[str, list[tuple[str, str, float]]]:
        ranked = self.ranked()
        weights = [w * DECIBANS_PER_NAT for w in self.weights()]
        rival = f" against {self.classes[ranked[1]]}" if len(ranked) > 1 else ""
        rows = [(line.name, format_value(line.value), w) for line, w in zip(self.entries(), weights, strict=True)]
        rows = [rows[0], *sorted(rows[1:], key=lambda row: -abs(row[2]))]
        return f"{self.classes[ranked[0]]}{rival}", rows

    def __str__(self) -> str:
        title, rows = self._format_rows()
        name = max(display_width(row[0]) for row in rows[:MAX_LEDGER_LINES])
        value = max(display_width(row[1]) for row in rows[:MAX_LEDGER_LINES])
        widest = max((abs(w) for *_, w in rows if math.isfinite(w)), default=0.0) or 1.0
        lines = [
            f"{pad_to_width(n, name)}  {pad_to_width(v, value)}  {w:+8.1f} dB  {_format_bar(w, widest)}".rstrip()
            for n, v, w in rows[:MAX_LEDGER_LINES]
        ]
        if len(rows) > MAX_LEDGER_LINES:
            rest = math.fsum(w for *_, w in rows[MAX_LEDGER_LINES:])
            lines.append(f"{f'and {len(rows) - MAX_LEDGER_LINES} more':<{name + value + 2}}  {rest:+8.1f} dB")
        total = self.log_odds() * DECIBANS_PER_NAT
        foot = f"{'total':<{name}}  {'':<{value}}  {total:+8.1f} dB  p {format_winner_probability(self)}"
        return "\n".join([title, *lines, foot])

    def _repr_html_(self) -> str:
        title, rows = self._format_rows()
        cells = [*rows, ("total", "", self.log_odds() * DECIBANS_PER_NAT)]
        body = "".join(
            f"<tr><td>{escape(n)}</td><td>{escape(v)}</td><td style='text-align:right'>{w:+.1f}</td></tr>"
            for n, v, w in cells
        )
        text = "" if self.text is None else f"<p>{self.marked()}</p>"
        head = "<tr><th>evidence</th><th>value</th><th>decibans</th></tr>"
        caption = f"<caption>{escape(title)}, p {escape(format_winner_probability(self))}</caption>"
        return f"<table>{caption}{head}{body}</table>{text}"

    def marked(
        self, for_class: Label | None = None, against: Label | None = None, max_characters: int | None = None
    ) -> str:
        """The text as HTML: evidence for the most probable class in green, against it in red, the stronger the darker.

        The text is cut after ``max_characters``.
        """
        weight = {}
        for line, w in zip(self.lines, self.weights(for_class, against)[1:], strict=True):
            weight.update(dict.fromkeys(line.spans, w))
        widest = max(map(abs, weight.values()), default=1.0) or 1.0
        text, out, at = (self.text or "")[:max_characters], "", 0
        for (start, end), w in sorted(weight.items()):
            if at <= start and end <= len(text):  # do not mark an n-gram inside another one twice
                colour = "0,150,60" if w > 0 else "200,40,40"
                shade = f"background:rgba({colour},{abs(w) / widest:.2f})"
                out += escape(text[at:start]) + f'<mark style="{shade}">{escape(text[start:end])}</mark>'
                at = end
        return out + escape(text[at:]) + ("…" if len(text) < len(self.text or "") else "")


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
    ) -> Ledgers:
        """One ledger a row; ``terms`` is (rows, classes, columns), ``cells`` the values shown."""
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

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._ledgers))

    def _repr_html_(self) -> str:
        return "".join(ledger._repr_html_() for ledger in self._ledgers)

    def to_frame(self) -> pd.DataFrame:
        """All entries in one data frame, with the number of the row they explain."""
        pd = import_pandas()
        frames = [ledger.to_frame().assign(row=row) for row, ledger in enumerate(self._ledgers)]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def import_pandas() -> ModuleType:
    """The module pandas; an error says what to install."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError("to_frame needs pandas: pip install 'priory[pandas]'.", name=error.name) from None
    return pd


def format_winner_probability(ledger: Ledger) -> str:
    """The probability of the most probable class, never rounded to certainty.

    >>> format_winner_probability(Ledger(("a", "b"), LedgerLine("prior", None, (0.0, -800.0)), ()))
    '> 0.9999'
    """
    total = np.asarray(ledger.total)
    top = total.max()
    if not np.isfinite(top):
        return "undefined"
    p = float(1 / np.exp(total - top).sum())
    return "> 0.9999" if p > 0.9999 and len(total) > 1 else f"= {p:.4f}"


def format_value(value: object) -> str:
    """A cell as text of bounded length, with control characters escaped.

    >>> format_value("a\\x1b[31m"), format_value(None), format_value(2.0), format_value(0.123456789)
    ('a\\\\x1b[31m', 'missing', '2', '0.123457')
    """
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value) if len(str(value)) <= MAX_VALUE_WIDTH else str(value)[: MAX_VALUE_WIDTH - 1] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _format_bar(weight: float, max_weight: float) -> str:
    if not math.isfinite(weight):
        return "∞"
    return ("+" if weight > 0 else "-") * round(12 * abs(weight) / max_weight)


def _sum_exactly(terms: Iterable[float]) -> float:
    values = list(terms)
    return math.fsum(values) if all(map(math.isfinite, values)) else float(np.sum(values))


def _subtract_or_zero(a: float, b: float) -> float:
    return 0.0 if a == b else a - b
