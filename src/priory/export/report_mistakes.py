"""The worst mistakes of a model: the rows whose true class had the lowest probability, with their evidence."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from priory.core.typing import Label
from priory.errors import PrioryError
from priory.evaluation.scores import Scores
from priory.export.strongest_evidence import ExplainingModel, take_input_rows
from priory.models.explanation import Ledger, LedgerLine
from priory.models.ledger_formatting import DECIBANS_PER_NAT, format_value

MAX_REPORT_MISTAKES = 8
MAX_LINES_OF_A_MISTAKE = 8  # besides the prior
MAX_REPORT_TEXT_LENGTH = 5000  # characters shown

MarkSafe = Callable[[str], str]


def describe_mistakes(
    model: object, X: object, scores: Scores, learned: bool, mark_safe: MarkSafe
) -> dict[str, object]:
    """Return the rows whose true class had the lowest probability, each with its evidence."""
    wrong = np.flatnonzero(scores.answer != scores.truth)
    # the most surprising first: -log p(truth)
    worst = wrong[np.argsort(-scores.surprise[wrong], kind="stable")][:MAX_REPORT_MISTAKES]
    how = "Rows whose true class was given the lowest probability; many have a wrong label. Rows are counted from 0."
    if isinstance(model, ExplainingModel):
        how += " The evidence is from the model without the row." if learned else ""
    return {
        "mistakes": [_describe_mistake(model, X, scores, int(row), learned, mark_safe) for row in worst],
        "mistakes_how": how,
    }


def _describe_mistake(
    model: object, X: object, scores: Scores, row: int, learned: bool, mark_safe: MarkSafe
) -> dict[str, object]:
    truth, answer = scores.classes[scores.truth[row]], scores.classes[scores.answer[row]]
    position = row if scores.positions is None else int(scores.positions[row])
    surprise = float(scores.surprise[row])
    mistake = {
        "row": position,
        "truth": format_value(truth),
        "answer": format_value(answer),
        "p": f"p = {math.exp(-surprise):.2g}" if surprise < 690 else "p < 1e-299",  # near underflow
        "text": None,
        "lines": [],
    }
    if not isinstance(model, ExplainingModel):
        return mistake
    example = take_input_rows(X, np.array([position]))
    ledger = (_forget_row(model, example, truth) if learned else model).explain(example)[0]
    text = None if ledger.text is None else mark_safe(ledger.marked(answer, truth, MAX_REPORT_TEXT_LENGTH))
    total = f"{ledger.log_odds(answer, truth) * DECIBANS_PER_NAT:+.1f}"
    return mistake | {"lines": _list_largest(ledger, answer, truth), "text": text, "total": total}


def _list_largest(ledger: Ledger, answer: Label, truth: Label) -> list[dict[str, object]]:
    """Return the prior, the lines of largest weight, and the sum of the others."""
    decibans = [weight * DECIBANS_PER_NAT for weight in ledger.weights(answer, truth)]
    prior, *lines = zip(ledger.entries(), decibans, strict=True)
    largest = sorted(lines, key=lambda pair: -abs(pair[1]))
    shown = [_format_line(line, weight) for line, weight in (prior, *largest[:MAX_LINES_OF_A_MISTAKE])]
    others = [weight for _, weight in largest[MAX_LINES_OF_A_MISTAKE:]]
    if others:
        shown.append({"name": f"{len(others)} others", "value": "", "decibans": math.fsum(others)})
    return shown


def _format_line(line: LedgerLine, decibans: float) -> dict[str, object]:
    if line.spans:
        value = "" if len(line.spans) == 1 else f"{len(line.spans)} times"
    else:
        value = "" if line.value == "" else format_value(line.value)
    return {"name": format_value(line.name), "value": value, "decibans": decibans}


def _forget_row(model: ExplainingModel, example: object, label: Label) -> ExplainingModel:
    """Return the model without the row, or unchanged if it cannot forget or would lose the class."""
    # a shallow copy: `forget` replaces the statistics of the twin only
    twin: Any = copy.copy(model)
    try:
        twin.forget(example, [label])
    except (AttributeError, PrioryError):
        return model
    without: ExplainingModel = twin
    return without if label in getattr(twin, "classes_", ()) else model
