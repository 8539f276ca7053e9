"""A model card: a page about a model file, from facts in the file only, in Markdown or HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Literal, NamedTuple

from priory.core.display_table import join_words

MAX_CLASSES, MAX_COLUMNS = 20, 40
MIN_JUDGED_ROWS = 20
SCORES = {"accuracy": ("accuracy", ".1%"), "log_loss": ("log loss", ".3f"), "brier": ("Brier score", ".3f")}
FORGET_COMMAND = (
    "priory forget MODEL rows.csv --where person=NAME --sign-key key.pem --receipt r.json --opening NAME.json"
)
VERIFY_COMMAND = "priory verify r.json --key public.pem --opening NAME.json --model MODEL"


class Part(NamedTuple):
    """A heading, a paragraph, an item of a list, a row of a table (the first is its head), or code."""

    kind: Literal["h1", "h2", "p", "li", "th", "td", "pre"]
    texts: tuple[str, ...]


class ModelCard:
    """The card of a model; ``facts`` is an inspection of its file, ``chain`` the state of its receipts, if any."""

    def __init__(self, title: str, model: Any, facts: Mapping[str, Any], chain: Mapping[str, Any] | None) -> None:
        self.parts = [
            Part("h1", (title,)),
            Part("h2", ("What it was trained on",)),
            *_describe_training(model, facts),
            Part("h2", ("How good it is",)),
            *_describe_scores(model),
            Part("h2", ("What it reveals",)),
            *_describe_privacy(model, facts),
            Part("h2", ("What was forgotten",)),
            *_describe_receipts(chain),
            Part("h2", ("How to ask for erasure",)),
            *_describe_erasure(model),
            Part("p", (f"SHA-256 of the manifest of the file: {facts['sha256']}",)),
        ]

    def to_markdown(self) -> str:
        """The card in Markdown."""
        lines, before = [], ""
        for kind, texts in self.parts:
            # lists and tables are one block; everything else is separated by a blank line
            lines += [""] if before and (kind, before) not in (("li", "li"), ("td", "th"), ("td", "td")) else []
            cells = [_escape_markdown(text) for text in texts]
            if kind in ("th", "td"):
                lines.append(f"| {' | '.join(cells)} |")
                lines += [f"|{'---|' * len(cells)}"] if kind == "th" else []
            else:
                marks = {"h1": "# ", "h2": "## ", "li": "* ", "p": "", "pre": "    "}
                lines.append(marks[kind] + (texts[0] if kind == "pre" else cells[0]))
            before = kind
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """The card as a page without scripts."""
        body = []
        for i, (kind, texts) in enumerate(self.parts):
            if kind in ("th", "td"):
                is_last = i + 1 == len(self.parts) or self.parts[i + 1].kind != "td"
                row = "".join(f"<{kind}>{escape(text)}</{kind}>" for text in texts)
                body.append(f"{'<table>' if kind == 'th' else ''}<tr>{row}</tr>{'</table>' if is_last else ''}")
            else:
                body.append(f"<{kind}>{escape(texts[0])}</{kind}>")
        style = "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font-family:system-ui;line-height:1.5}"
        style += "td,th{padding:.1rem .8rem .1rem 0;text-align:left}pre{white-space:pre-wrap}"
        title = escape(self.parts[0].texts[0])
        head = f'<meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"
        )


def _escape_markdown(text: str) -> str:
    plain = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\`*_[]|#<>&" else c for c in plain)


def _describe_training(model: Any, facts: Mapping[str, Any]) -> Iterator[Part]:
    target = getattr(model, "target_", None)
    kind = f"{facts['model']} of priory {facts['version']}"
    yield Part("li", (f"{kind}, which predicts {target!r}" if target else kind,))
    decayed = f", decayed to {facts['clock']:g}" if facts["clock"] != 1 else ""
    yield Part("li", (f"{sum(facts['rows'].values()):,.0f} rows{decayed}",))
    yield Part("li", ("classes: " + _list([f"{label} ({n:,.0f})" for label, n in facts["rows"].items()], MAX_CLASSES),))
    kinds = getattr(model, "column_kinds_", {})
    columns = [f"{name} ({kinds.get(name, 'text')})" for name in facts["columns"]]
    yield Part("li", ("columns: " + (_list(columns, MAX_COLUMNS) or "one text"),))


def _describe_scores(model: Any) -> Iterator[Part]:
    sample = model.statistics_.sample
    if sample is None or len(sample) < MIN_JUDGED_ROWS:
        yield Part("p", ("The file keeps too few rows to judge it by.",))
        return
    scores = model.evaluate()
    how = f"On {len(sample):,} rows that the file keeps, each judged by a model that has not seen it; 95 % intervals."
    yield Part("p", (how,))
    yield Part("th", ("score", "model", "base rate"))
    for name, (title, form) in SCORES.items():
        base = scores.base_score(name)
        yield Part("td", (title, format(getattr(scores, name), form), "" if base is None else format(base, form)))


def _describe_privacy(model: Any, facts: Mapping[str, Any]) -> Iterator[Part]:
    for epsilon in facts["released"]:
        yield Part("li", (f"It is a private release: its counts have noise, with epsilon {epsilon:g}.",))
    if facts["kept_rows"]:
        yield Part("li", (f"The file holds {facts['kept_rows']:,} training rows, and whoever has it can read them.",))
    yield from (Part("li", (f"It holds {what}.",)) for what in facts["reveals"])
    if facts["kept_rows"] >= MIN_JUDGED_ROWS:
        audit = model.audit_membership()
        guess = f"AUC {audit.area:.3f} (0.5 is chance), {audit.caught:.2%} of the rows at one false alarm in a thousand"
        yield Part("li", (f"Its answers allow guesses whether a row was learned: {guess}.",))


def _describe_receipts(chain: Mapping[str, Any] | None) -> Iterator[Part]:
    if chain is None:
        yield Part("p", ("The file has no receipts: what was forgotten is not recorded in it.",))
        return
    yield Part("p", (f"Receipts of model {chain['model']}; those without rows state what was learned.",))
    yield Part("th", ("receipt", "time", "rows forgotten"))
    yield from (Part("td", (str(counter), time, str(n_rows))) for counter, time, n_rows in chain["issued"])


def _describe_erasure(model: Any) -> Iterator[Part]:
    if model.released_:
        yield Part("p", ("A private release cannot forget; ask whoever keeps the model that was released.",))
        return
    yield Part("p", ("Whoever keeps the model can forget rows exactly, as if they had never been learned:",))
    yield Part("pre", (FORGET_COMMAND,))
    yield Part("p", ("Ask for the receipt and its opening. Anybody can verify them:",))
    yield Part("pre", (VERIFY_COMMAND,))


def _list(names: Sequence[str], limit: int) -> str:
    return join_words([*names[:limit], *([f"{len(names) - limit} more"] if len(names) > limit else [])])
