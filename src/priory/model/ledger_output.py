"""The ledger as text, as HTML, and as Shapley values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy import ndarray as Array

from priory.core.display_table import (
    SHADES,
    STYLE_SHEET,
    DisplayTable,
    display_width,
    format_cell,
    join_words,
    pad_to_width,
)
from priory.core.typing import Label
from priory.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    from priory.model.ledger import Ledger, SideOfClass


MAX_LEDGER_LINES = 20
MIN_TYPICALITY = 0.05  # a text that is less typical of its class is noted as unusual
MAX_CLASSES_OF_A_LEDGER = 4  # with a column of probabilities
DECIBANS_PER_NAT = 10 / math.log(10)
UNITS_PER_NAT = {"decibans": DECIBANS_PER_NAT, "nats": 1.0, "bits": 1 / math.log(2)}
UNIT_SYMBOLS = {"decibans": "dB", "nats": "nats", "bits": "bits"}
MAX_LOG_OF_A_FLOAT = 700.0
EVIDENCE_UNITS = (*UNITS_PER_NAT, "probability")


def format_ledger(ledger: Ledger) -> str:
    """The ledger as text."""
    if ledger.unit == "probability":
        return str(tabulate_probabilities(ledger))
    title, rows = _list_weights(ledger)
    symbol = UNIT_SYMBOLS[ledger.unit]
    name = max(display_width(row[0]) for row in rows[:MAX_LEDGER_LINES])
    value = max(display_width(row[1]) for row in rows[:MAX_LEDGER_LINES])
    widest = find_widest(w for *_, w in rows)
    lines = [
        f"{pad_to_width(n, name)}  {pad_to_width(v, value)}  {w:+8.1f} {symbol}  {_format_bar(w, widest)}".rstrip()
        for n, v, w in rows[:MAX_LEDGER_LINES]
    ]
    if len(rows) > MAX_LEDGER_LINES:
        rest = math.fsum(w for *_, w in rows[MAX_LEDGER_LINES:])
        lines.append(f"{f'and {len(rows) - MAX_LEDGER_LINES} more':<{name + value + 2}}  {rest:+8.1f} {symbol}")
    total = ledger.log_odds() * UNITS_PER_NAT[ledger.unit]
    foot = f"{'total':<{name}}  {'':<{value}}  {total:+8.1f} {symbol}  p {format_winner_probability(ledger)}"
    return "\n".join([title, *lines, foot, *_note_smoothing(ledger), *_note_doubt(ledger)])


def format_ledger_html(ledger: Ledger) -> str:
    """The ledger as an HTML table, and its text with the evidence marked."""
    table = tabulate_probabilities(ledger) if ledger.unit == "probability" else _tabulate_weights(ledger)
    text = "" if ledger.text is None else f'<p class="priory-text">{ledger.marked()}</p>'
    return f"<style>{STYLE_SHEET}</style>{table.to_html()}{text}"


def tabulate_probabilities(ledger: Ledger) -> DisplayTable:
    """Tabulate P(c), P(value | c) of every line, their product and P(c | row), and the factor of each on the odds.

    If there are many lines, the strongest are shown individually and the others as their product.
    """
    shown = ledger.ranked()[:MAX_CLASSES_OF_A_LEDGER]
    title, _ = _list_weights(ledger)
    prior, *weights = ledger.weights()
    # the strongest lines, shown in their original order
    strongest = sorted(range(len(weights)), key=lambda i: -abs(weights[i]))[:MAX_LEDGER_LINES]
    rest = [i for i in range(len(weights)) if i not in set(strongest)]
    rows = [_format_factors(ledger.prior.name, ledger.prior.log_likelihood, shown, prior)]
    for i in sorted(strongest):
        line = ledger.lines[i]
        name = _format_condition(line.name, line.value)
        rows.append(_format_factors(name, line.log_likelihood, shown, weights[i]))
    if rest:
        sums = [math.fsum(ledger.lines[i].log_likelihood[c] for i in rest) for c in range(len(ledger.classes))]
        rows.append(_format_factors(f"{len(rest)} more", sums, shown, math.fsum(weights[i] for i in rest)))
    rows.append(_format_factors("product", ledger.total, shown, ledger.log_odds()))
    posterior = ledger.probabilities()
    answer = ("P(class | row)", *(posterior[c] for c in shown), None)
    first = "p" if len(ledger.classes) == len(shown) else "p of the likeliest"
    columns = (first, *(format_cell(ledger.classes[c]) for c in shown), "odds ×")
    return DisplayTable(title, columns, (*rows, answer), "".join(_note_smoothing(ledger)))


def format_value(value: object) -> str:
    """Format a cell as text of bounded length, with control characters escaped.

    >>> format_value("a\\x1b[31m"), format_value(None), format_value(2.0), format_value(0.123456789)
    ('a\\\\x1b[31m', 'missing', '2', '0.123457')
    """
    if value is None:
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else format_cell(value)


def format_winner_probability(ledger: Ledger) -> str:
    """The probability of the most probable class, never rounded to certainty."""
    p = ledger.probabilities()[ledger.ranked()[0]]
    if math.isnan(p):
        return "undefined"
    return "> 0.9999" if p > 0.9999 and len(ledger.classes) > 1 else f"= {p:.4f}"


def find_widest(weights: Iterable[float]) -> float:
    """The largest finite weight, which scales the bars; 1 if there is none.

    >>> find_widest([3.0, -4.0, math.inf])
    4.0
    """
    return max((abs(weight) for weight in weights if math.isfinite(weight)), default=0.0) or 1.0


def mark_text(text: str, weight_of_span: Mapping[tuple[int, int], float], max_characters: int | None) -> str:
    """The text as HTML, its spans marked by classes: "for-1" to "for-5" and "against-1" to "against-5".

    >>> mark_text("a bad day", {(2, 5): -2.0}, None)
    'a <mark class="against-5">bad</mark> day'
    """
    widest = max(map(abs, weight_of_span.values()), default=1.0) or 1.0
    shown, out, at = text[:max_characters], "", 0
    for (start, end), weight in sorted(weight_of_span.items()):
        if at <= start and end <= len(shown):  # skip n-grams that overlap a marked span
            strength = 1.0 if math.isinf(weight) else abs(weight) / widest
            # 1 (faint) to SHADES
            shade = math.ceil(SHADES * strength) or 1
            side = "for" if weight > 0 else "against"
            out += f'{escape(shown[at:start])}<mark class="{side}-{shade}">{escape(shown[start:end])}</mark>'
            at = end
    return out + escape(shown[at:]) + ("…" if len(shown) < len(text) else "")


def _list_weights(ledger: Ledger) -> tuple[str, list[tuple[str, str, float]]]:
    """The title, and the name, value and weight of each entry: the prior, then the largest weights first."""
    ranked = ledger.ranked()
    scale = UNITS_PER_NAT.get(ledger.unit, 1.0)
    rival = f" against {ledger.classes[ranked[1]]}" if len(ranked) > 1 else ""
    corrected = f", corrected by {join_words(ledger.corrections)}" if ledger.corrections else ""
    rows = [
        (line.name, format_value(line.value), w * scale)
        for line, w in zip(ledger.entries(), ledger.weights(), strict=True)
    ]
    # the prior stays first
    rows = [rows[0], *sorted(rows[1:], key=lambda row: -abs(row[2]))]
    return f"{ledger.classes[ranked[0]]}{rival}{corrected}", rows


def _tabulate_weights(ledger: Ledger) -> DisplayTable:
    title, rows = _list_weights(ledger)
    cells = [*rows, ("total", "", ledger.log_odds() * UNITS_PER_NAT[ledger.unit])]
    return DisplayTable(
        f"{title}, p {format_winner_probability(ledger)}",
        ("evidence", "value", ledger.unit),
        tuple((n, v, f"{w:+.1f}") for n, v, w in cells),
        "".join(_note_smoothing(ledger)),
    )


def _note_smoothing(ledger: Ledger) -> list[str]:
    return [f"smoothed by {ledger.smoothing}"] if ledger.smoothing else []


def _note_doubt(ledger: Ledger) -> list[str]:
    """What is unusual about a text, if it is unusual for its class."""
    own = ledger.sides.get(ledger.winner)
    if own is None or ledger.doubt == "young" or own.typicality >= MIN_TYPICALITY:
        return []
    if ledger.doubt == "contrary":
        strength, share = f"{own.evidence_against:.0f} db against it", own.share_against
    else:
        strength, share = f"only {own.evidence_for:.0f} db for it", own.share_for
    return [f"unusual for {ledger.winner}: its strongest words have {strength}, as {share:.1%} of such texts do"]


def _format_condition(name: str, value: object) -> str:
    return name if value == "" else f"{name} = {format_value(value)}"


def _format_factors(
    name: str, log_likelihood: Sequence[float], shown: Sequence[int], weight: float
) -> tuple[object, ...]:
    return (name, *(_format_exp(log_likelihood[c]) for c in shown), _format_exp(weight))


def _format_exp(x: float) -> float | str:
    """Exponential of a number; formatted as a power of ten if it is too large or too small for a float.

    >>> _format_exp(0.0), _format_exp(-1000.0), _format_exp(-math.inf)
    (1.0, '1e-434', 0.0)
    """
    return exp_or_infinity(x) if abs(x) < MAX_LOG_OF_A_FLOAT or math.isinf(x) else f"1e{x / math.log(10):+.0f}"


def exp_or_infinity(x: float) -> float:
    """Exponential of a number; infinite instead of an OverflowError."""
    return math.exp(x) if x < MAX_LOG_OF_A_FLOAT else math.inf


def _format_bar(weight: float, max_weight: float) -> str:
    if not math.isfinite(weight):
        return "∞"
    return ("+" if weight > 0 else "-") * round(12 * abs(weight) / max_weight)


@dataclass(frozen=True)
class ShapleyValues:
    """Contributions of the columns to the log-odds, in nats, with the fields of ``shap.Explanation``.

    For two classes, ``values`` is (rows, columns), and ``base_values + values.sum(axis=1)`` are the log-odds of the
    second class. For more, it is (rows, columns, classes), and the softmax of that sum gives the probabilities. For
    texts, the columns are the tokens of all rows, and a token that does not occur in a row contributes zero.
    """

    values: Array
    base_values: Array
    data: Array  # (rows, columns): the cells, None if a row has no such line
    feature_names: tuple[str, ...]
    output_names: tuple[Label, ...] | Label

    def to_shap(self) -> Any:
        """Convert to a ``shap.Explanation``, for ``shap.plots``."""
        try:
            import shap
        except ImportError:
            raise MissingDependencyError("to_shap needs shap: pip install shap.", name="shap") from None
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if isinstance(self.output_names, tuple) else self.output_names,
        )


def compute_shapley_values(
    classes: tuple[Label, ...], prior: Array, rows: Sequence[Sequence[tuple[str, object, Array]]]
) -> ShapleyValues:
    """Shapley values of rows of lines (name, value, log probabilities (classes,)); ``prior`` is (rows, classes).

    Lines of the same name are added; their value is the first that is not None.
    """
    names = tuple(dict.fromkeys(name for lines in rows for name, _, _ in lines))
    place = {name: j for j, name in enumerate(names)}
    # (rows, columns, classes)
    terms = np.zeros((len(rows), len(names), len(classes)))
    data = np.full((len(rows), len(names)), None, dtype=object)
    for row, lines in enumerate(rows):
        for name, value, logs in lines:
            terms[row, place[name]] += logs
            if data[row, place[name]] is None:
                data[row, place[name]] = value
    if not (np.isfinite(terms).all() and np.isfinite(prior).all()):
        raise DataError("a cell rules a class out, and what is infinite has no share; use an alpha above 0.")
    # log-odds of the second class against the first
    if len(classes) == 2:
        return ShapleyValues(terms[..., 1] - terms[..., 0], prior[:, 1] - prior[:, 0], data, names, classes[1])
    return ShapleyValues(_centre(terms), _centre(prior), data, names, classes)


def _centre(logs: Array) -> Array:
    """Subtract the mean over the classes, which does not change probabilities."""
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


MAX_LINES_IN_JSON = 100
MAX_DECIBANS_IN_JSON = 9999.9  # JSON has no infinity

JSONValue: TypeAlias = "str | int | float | bool | Sequence[JSONValue] | Mapping[str, JSONValue] | None"


def convert_ledger_to_dict(ledger: Ledger) -> dict[str, JSONValue]:
    """Convert a ledger for JSON: the weight of each line for the winner against the runner-up, the largest first."""
    prior, *weights = (_round_decibans(weight) for weight in ledger.weights())
    lines = [
        {"name": line.name, "value": _convert_cell(line.value), "decibans": weight, "places": list(line.spans)}
        for line, weight in sorted(zip(ledger.lines, weights, strict=True), key=lambda pair: -abs(pair[1]))
    ]
    ranked = [str(ledger.classes[c]) for c in ledger.ranked()]
    return {
        "label": ranked[0],
        "against": ranked[1] if len(ranked) > 1 else None,
        "decibans": _round_decibans(ledger.log_odds()),
        "no_evidence": ledger.no_evidence,
        "prior": prior,
        "prior_name": ledger.prior.name,
        "corrections": list(ledger.corrections),
        "doubt": ledger.doubt,
        "sides": {str(label): _convert_side(side) for label, side in ledger.sides.items()},
        "evidence": lines[:MAX_LINES_IN_JSON],
    }


def _convert_side(side: SideOfClass) -> dict[str, JSONValue]:
    """Convert the evidence for and against a class, with the shares of texts of that class that have as much."""
    return {
        "for": round(side.evidence_for, 1),
        "against": round(side.evidence_against, 1),
        "share_for": round(side.share_for, 5),
        "share_against": round(side.share_against, 5),
        "typicality": round(side.typicality, 5),
        "texts": side.n_texts,
    }


def _round_decibans(nats: float) -> float:
    return round(max(-MAX_DECIBANS_IN_JSON, min(nats * DECIBANS_PER_NAT, MAX_DECIBANS_IN_JSON)), 2)


def _convert_cell(value: object) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
