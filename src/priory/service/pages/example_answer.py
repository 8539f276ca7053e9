"""The prediction for one example with its ledger, and how a change of the model affected it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from priory.model.ledger import Ledger
from priory.model.ledger_output import DECIBANS_PER_NAT, find_widest, format_value
from priory.service.labelled_rows import Row, RowBatch, RowLabel, convert_to_input
from priory.service.served_model import ServedModel

MAX_LINES_SHOWN = 25
MAX_CHANGES_SHOWN = 10
MAX_TEXT_SHOWN = 20_000  # characters
MIN_CHANGE_DECIBANS = 0.05


@dataclass(frozen=True)
class EvidenceLine:
    """One entry of a ledger: its weight in decibans, and the length of its bar relative to the longest."""

    name: str
    value: str
    decibans: float
    share: float  # from 0 to 1


@dataclass(frozen=True)
class ExampleAnswer:
    """The prediction for one text or row, ready to be displayed."""

    version: int
    label: str
    against: str  # the second most probable class
    probabilities: tuple[tuple[str, float], ...]  # the most probable first
    lines: tuple[EvidenceLine, ...]
    n_more: int
    rest: float  # decibans of the lines that are not shown
    total: float
    text: Markup | None
    corrections: tuple[str, ...]


@dataclass(frozen=True)
class ChangedLine:
    """A number before and after a change of the model; None if it did not exist."""

    name: str
    before: float | None
    after: float | None


def explain_example(model: ServedModel, row: str | Row) -> Ledger:
    model.check_fitted()
    batch = RowBatch(model.entry.kind, (row,))
    return model.estimator.explain(convert_to_input(batch, model.estimator))[0]


def answer_example(model: ServedModel, row: str | Row) -> ExampleAnswer:
    ledger = explain_example(model, row)
    ranked, probabilities = ledger.ranked(), ledger.probabilities()
    names = [str(label) for label in ledger.classes]
    prior, *weights = (weight * DECIBANS_PER_NAT for weight in ledger.weights())
    # the strongest evidence first, for or against
    order = sorted(range(len(weights)), key=lambda place: -abs(weights[place]))
    shown = order[:MAX_LINES_SHOWN]
    widest = find_widest([prior, *(weights[place] for place in shown)])
    lines = [EvidenceLine(ledger.prior.name, "", prior, abs(prior) / widest)]
    for place in shown:
        line, weight = ledger.lines[place], weights[place]
        lines.append(EvidenceLine(line.name, format_value(line.value), weight, abs(weight) / widest))
    return ExampleAnswer(
        model.version,
        names[ranked[0]],
        names[ranked[1]] if len(ranked) > 1 else "",
        tuple((names[c], probabilities[c]) for c in ranked),
        tuple(lines),
        len(order) - len(shown),
        sum(weights[place] for place in order[MAX_LINES_SHOWN:]),
        ledger.log_odds() * DECIBANS_PER_NAT,
        None if ledger.text is None else Markup(ledger.marked(max_characters=MAX_TEXT_SHOWN)),  # escaped
        ledger.corrections,
    )


def compare_probabilities(before: ServedModel, after: ServedModel, row: str | Row) -> list[ChangedLine]:
    """Return the probability of each class before and after a change, most probable first."""
    old, new = (_read_probabilities(model, row) for model in (before, after))
    names = sorted({*old, *new}, key=lambda name: -new.get(name, 0.0))
    return [ChangedLine(name, old.get(name), new.get(name)) for name in names]


def compare_evidence(before: ServedModel, after: ServedModel, row: str | Row, label: RowLabel) -> list[ChangedLine]:
    """Return the ledger entries that changed most, in decibans for a class."""
    old, new = (_read_weights(model, row, label) for model in (before, after))
    lines = [ChangedLine(name, old.get(name), new.get(name)) for name in dict.fromkeys([*new, *old])]
    changed = [line for line in lines if _measure_change(line) >= MIN_CHANGE_DECIBANS]
    return sorted(changed, key=lambda line: -_measure_change(line))[:MAX_CHANGES_SHOWN]


def _measure_change(line: ChangedLine) -> float:
    return abs((line.after or 0.0) - (line.before or 0.0))


def _read_probabilities(model: ServedModel, row: str | Row) -> dict[str, float]:
    if not model.is_fitted:
        return {}
    ledger = explain_example(model, row)
    return dict(zip(map(str, ledger.classes), ledger.probabilities(), strict=True))


def _read_weights(model: ServedModel, row: str | Row, label: RowLabel) -> dict[str, float]:
    if not model.is_fitted:
        return {}
    ledger = explain_example(model, row)
    if label not in ledger.classes or len(ledger.classes) < 2:
        return {}
    names = [line.name for line in ledger.entries()]
    weights = [weight * DECIBANS_PER_NAT for weight in ledger.weights(for_class=label)]
    return dict(zip(names, weights, strict=True))
