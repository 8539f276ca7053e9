"""A model card: a page about a model file, from facts in the file only, in Markdown or HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from priory.core.display_table import join_words
from priory.export.report_page import render_template

MAX_CLASSES, MAX_COLUMNS = 20, 40
MIN_JUDGED_ROWS = 20
SCORES = {"accuracy": ("accuracy", ".1%"), "log_loss": ("log loss", ".3f"), "brier": ("Brier score", ".3f")}


class ModelCard:
    """The card of a model; ``facts`` is an inspection of its file, ``chain`` the state of its receipts, if any."""

    def __init__(self, title: str, model: Any, facts: Mapping[str, Any], chain: Mapping[str, Any] | None) -> None:
        self.facts = {
            "title": title,
            "training": _describe_training(model, facts),
            "n_judged": facts["kept_rows"],
            "scores": _list_scores(model) if facts["kept_rows"] >= MIN_JUDGED_ROWS else [],
            "privacy": _describe_privacy(model, facts),
            "chain": chain,
            "is_released": bool(facts["released"]),
            "sha256": facts["sha256"],
        }

    def to_markdown(self) -> str:
        """The card in Markdown."""
        return render_template("card.txt", self.facts | {"layout": "card_markdown.txt"}, _escape_markdown)

    def to_html(self) -> str:
        """The card as a page without scripts."""
        return render_template("card.txt", self.facts | {"layout": "card_html.txt"})


def _escape_markdown(text: object) -> str:
    plain = " ".join(str(text).split())
    return "".join(f"\\{c}" if c in "\\`*_[]|#<>&" else c for c in plain)


def _describe_training(model: Any, facts: Mapping[str, Any]) -> list[str]:
    target, kinds = getattr(model, "target_", None), getattr(model, "column_kinds_", {})
    decayed = f", decayed to {facts['clock']:g}" if facts["clock"] != 1 else ""
    columns = [f"{name} ({kinds.get(name, 'text')})" for name in facts["columns"]]
    return [
        f"{facts['model']} of priory {facts['version']}" + (f", which predicts {target!r}" if target else ""),
        f"{sum(facts['rows'].values()):,.0f} rows{decayed}",
        "classes: " + _list([f"{label} ({n:,.0f})" for label, n in facts["rows"].items()], MAX_CLASSES),
        "columns: " + (_list(columns, MAX_COLUMNS) or "one text"),
    ]


def _list_scores(model: Any) -> list[tuple[str, str, str]]:
    """The title of each score, its interval, and the score of the base rate."""
    scores = model.evaluate()
    bases = {name: scores.base_score(name) for name in SCORES}
    return [
        (title, format(getattr(scores, name), form), "" if bases[name] is None else format(bases[name], form))
        for name, (title, form) in SCORES.items()
    ]


def _describe_privacy(model: Any, facts: Mapping[str, Any]) -> list[str]:
    found = [f"It is a private release: its counts have noise, with epsilon {e:g}." for e in facts["released"]]
    if facts["kept_rows"]:
        found.append(f"The file holds {facts['kept_rows']:,} training rows, and whoever has it can read them.")
    found += [f"It holds {what}." for what in facts["reveals"] if not what.startswith("the cells of single training")]
    if facts["kept_rows"] >= MIN_JUDGED_ROWS:
        audit = model.audit_membership()
        guess = f"AUC {audit.area:.3f} (0.5 is chance), {audit.caught:.2%} of the rows at one false alarm in a thousand"
        found.append(f"Its answers allow guesses whether a row was learned: {guess}.")
    return found


def _list(names: Sequence[str], limit: int) -> str:
    return join_words([*names[:limit], *([f"{len(names) - limit} more"] if len(names) > limit else [])])
